/* What belongs to an id: its queue pair, SRQ and completion queues, who destroys which of them, and how connecting,
 * disconnecting and joining a group move them. Over real verbs, whose packets come straight back. */
#include "loop.h"
#include "../verbs/loop_host.h"
#include "../verbs/fixture.h"

enum { PORT = 7471 };

static struct fixture *f;
static struct rdma_event_channel *channel, *passive;
static struct rdma_cm_id *id;

static int setup_space(void **state, enum rdma_port_space ps)
{
	int error = loop_setup(state) || fixture_open((void **)&f);
	loop_set_verbs(f->context, f->pd);
	channel = rdma_create_event_channel();
	passive = rdma_create_event_channel();
	return error || rdma_create_id(channel, &id, NULL, ps) || rdma_bind_addr(id, loop_address("10.0.0.1", 0));
}

static int setup(void **state)
{
	return setup_space(state, RDMA_PS_TCP);
}

static int setup_datagram(void **state)
{
	return setup_space(state, RDMA_PS_UDP);
}

static int teardown(void **state)
{
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	rdma_destroy_event_channel(passive);
	return fixture_close((void **)&f) || loop_teardown(state);
}

static void assert_fails(int result, int error)
{
	assert_int_equal(result, -1);
	assert_int_equal(errno, error);
}

static struct ibv_qp_init_attr attributes(struct ibv_cq *cq)
{
	return (struct ibv_qp_init_attr){
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = id->qp_type,
	};
}

static struct ibv_qp_attr query(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr;
}

/* ---- What is whose ----------------------------------------------------------------------------------------------- */

static void qp__without_queues_gets_some_that_go_with_it(void **state)
{
	struct ibv_qp_init_attr attr = attributes(NULL);

	assert_int_equal(rdma_create_qp(id, f->pd, &attr), 0);
	assert_int_equal(query(id->qp).qp_state, IBV_QPS_INIT);
	assert_ptr_equal(attr.send_cq, id->send_cq);
	assert_ptr_equal(attr.recv_cq, id->recv_cq);
	assert_ptr_not_equal(id->send_cq, id->recv_cq);
	assert_ptr_equal(id->send_cq->channel, id->send_cq_channel);
	assert_ptr_equal(id->recv_cq->cq_context, id); /* rdma_get_recv_comp asserts it */
	assert_fails(rdma_create_qp(id, f->pd, &attr), EINVAL);
	rdma_destroy_qp(id);
	assert_null(id->qp);
	assert_null(id->send_cq);
	assert_null(id->recv_cq_channel);
}

static void qp__leaves_the_programs_queues_alone(void **state)
{
	struct ibv_qp_init_attr attr = attributes(f->cq);

	assert_int_equal(rdma_create_qp(id, f->pd, &attr), 0);
	assert_null(id->send_cq);
	rdma_destroy_qp(id);
	assert_int_equal(ibv_req_notify_cq(f->cq, 0), 0);
}

static void qp__that_cannot_be_leaves_nothing(void **state)
{
	struct ibv_qp_init_attr attr = attributes(NULL);
	struct ibv_qp_init_attr_ex full = { .cap = attr.cap, .qp_type = IBV_QPT_RC };
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *other = ibv_open_device(devices[0]);
	struct ibv_pd *pd = ibv_alloc_pd(other);
	ibv_free_device_list(devices);

	assert_fails(rdma_create_qp(id, pd, &attr), EINVAL);
	full.cap.max_send_sge = 1 << 20;
	assert_fails(rdma_create_qp_ex(id, &full), EINVAL);
	assert_null(full.send_cq); /* that was made for it and is gone */
	assert_null(full.recv_cq);
	assert_null(id->send_cq);
	assert_null(id->recv_cq_channel);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

static void qp__needs_a_device(void **state)
{
	struct ibv_qp_init_attr attr = attributes(f->cq);
	struct rdma_cm_id *anywhere;

	assert_int_equal(rdma_create_id(channel, &anywhere, NULL, RDMA_PS_TCP), 0);
	assert_fails(rdma_create_qp(anywhere, f->pd, &attr), EINVAL);
	rdma_destroy_id(anywhere);
}

/* Without being named; and what is left of the two keeps the queues. */
static void srq__is_the_qps_and_outlives_it(void **state)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_qp_init_attr attr = attributes(NULL);

	assert_int_equal(rdma_create_srq(id, NULL, &srq), 0);
	assert_ptr_equal(id->srq->pd, f->pd); /* the device's */
	assert_fails(rdma_create_srq(id, NULL, &srq), EINVAL);
	assert_int_equal(rdma_create_qp(id, f->pd, &attr), 0);
	assert_ptr_equal(id->qp->srq, id->srq);
	rdma_destroy_qp(id);
	assert_non_null(id->send_cq);
	rdma_destroy_srq(id);
	assert_null(id->srq);
	assert_null(id->send_cq);
}

static void datagram__is_ready_to_send_at_once(void **state)
{
	struct ibv_qp_init_attr attr = attributes(f->cq);

	assert_int_equal(rdma_create_qp(id, f->pd, &attr), 0);
	assert_int_equal(query(id->qp).qp_state, IBV_QPS_RTS);
	assert_int_equal(query(id->qp).qkey, RDMA_UDP_QKEY);
}

/* ---- What moves it ----------------------------------------------------------------------------------------------- */

/* Fetched at last, the event names the group. */
static void group__has_the_qp_until_it_goes(void **state)
{
	struct ibv_qp_init_attr attr = attributes(f->cq);

	assert_int_equal(rdma_create_qp(id, f->pd, &attr), 0);
	assert_int_equal(rdma_join_multicast(id, loop_address("224.1.2.3", 0), NULL), 0);
	assert_int_equal(loop_groups(), 0);
	loop_expect(channel, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_int_equal(loop_groups(), 1);
	rdma_destroy_qp(id); /* no QP that is attached can be destroyed */
	assert_int_equal(loop_groups(), 0);
	assert_int_equal(rdma_leave_multicast(id, loop_address("224.1.2.3", 0)), 0);
}

static struct rdma_cm_id *request_of(struct rdma_cm_id *listener, uint8_t initiator_depth)
{
	struct rdma_conn_param param = {
		.responder_resources = 2, .initiator_depth = initiator_depth, .retry_count = 3, .rnr_retry_count = 5
	};
	struct ibv_qp_init_attr attr = attributes(f->cq);

	assert_int_equal(rdma_bind_addr(listener, loop_address("10.0.0.1", PORT)), 0);
	assert_int_equal(rdma_listen(listener, 1), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, loop_address("10.0.0.1", PORT), 1), 0);
	loop_expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(rdma_create_qp(id, f->pd, &attr), 0);
	assert_int_equal(rdma_resolve_route(id, 1), 0);
	loop_expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	assert_int_equal(rdma_connect(id, &param), 0);
	struct rdma_cm_id *request = loop_expect(passive, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	assert_int_equal(rdma_create_qp(request, f->pd, &attr), 0);
	return request;
}

static struct rdma_cm_id *create_listener(void)
{
	struct rdma_cm_id *listener;
	assert_int_equal(rdma_create_id(passive, &listener, NULL, RDMA_PS_TCP), 0);
	return listener;
}

static void end(struct rdma_cm_id *request, struct rdma_cm_id *listener)
{
	rdma_destroy_qp(request);
	rdma_destroy_id(request);
	rdma_destroy_id(listener);
}

static void connection__brings_both_qps_to_one_another(void **state)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1, .rnr_retry_count = 4 };
	struct rdma_cm_id *listener = create_listener(), *request = request_of(listener, 2);
	struct ibv_sge from = fixture_sge(f, 0, 64), to = fixture_sge(f, 64, 64);

	assert_int_equal(rdma_accept(request, &param), 0);
	loop_expect(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	loop_expect(passive, RDMA_CM_EVENT_ESTABLISHED, 0);
	struct ibv_qp_attr mine = query(id->qp), theirs = query(request->qp);
	assert_int_equal(mine.qp_state, IBV_QPS_RTS);
	assert_int_equal(theirs.qp_state, IBV_QPS_RTS);
	assert_int_equal(mine.dest_qp_num, request->qp->qp_num);
	assert_int_equal(theirs.dest_qp_num, id->qp->qp_num);
	assert_int_equal(mine.max_rd_atomic, 1); /* what the peer grants of what we asked for */
	assert_int_equal(theirs.max_dest_rd_atomic, 1);
	assert_int_equal(mine.retry_cnt, 3);
	assert_int_equal(mine.rnr_retry, 4);
	assert_int_equal(theirs.rnr_retry, 5);

	f->buffer[63] = 7;
	assert_int_equal(fixture_post_recv(request->qp, 2, &to), 0);
	struct ibv_send_wr wr = { .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND };
	assert_int_equal(fixture_post(id->qp, wr), 0);
	assert_int_equal(fixture_complete(f->cq).wr_id, 2);
	assert_int_equal(f->buffer[127], 7);
	end(request, listener);
}

static void disconnection__flushes_what_was_posted(void **state)
{
	struct rdma_cm_id *listener = create_listener(), *request = request_of(listener, 2);
	struct ibv_sge to = fixture_sge(f, 0, 64);

	assert_int_equal(rdma_accept(request, NULL), 0);
	loop_expect(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(fixture_post_recv(id->qp, 9, &to), 0);
	assert_int_equal(rdma_disconnect(id), 0);
	struct ibv_wc wc = fixture_complete(f->cq);
	assert_int_equal(wc.wr_id, 9);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	end(request, listener);
	loop_expect(channel, RDMA_CM_EVENT_DISCONNECTED, 0);
}

/* The program has connected its QP elsewhere meanwhile: whoever accepted must not wait for a confirmation. */
static void reply__to_a_qp_that_cannot_be_moved_is_refused(void **state)
{
	struct rdma_cm_id *listener = create_listener(), *request = request_of(listener, 2);

	assert_int_equal(rdma_accept(request, NULL), 0);
	fixture_connect(id->qp, 77);
	loop_expect(channel, RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL);
	assert_ptr_equal(loop_expect(passive, RDMA_CM_EVENT_REJECTED, VB_CM_REJ_CONSUMER), request);
	assert_int_equal(query(id->qp).qp_state, IBV_QPS_ERR);
	end(request, listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(qp__without_queues_gets_some_that_go_with_it, setup, teardown),
		cmocka_unit_test_setup_teardown(qp__leaves_the_programs_queues_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(qp__that_cannot_be_leaves_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(qp__needs_a_device, setup, teardown),
		cmocka_unit_test_setup_teardown(srq__is_the_qps_and_outlives_it, setup, teardown),
		cmocka_unit_test_setup_teardown(datagram__is_ready_to_send_at_once, setup_datagram, teardown),
		cmocka_unit_test_setup_teardown(group__has_the_qp_until_it_goes, setup_datagram, teardown),
		cmocka_unit_test_setup_teardown(connection__brings_both_qps_to_one_another, setup, teardown),
		cmocka_unit_test_setup_teardown(disconnection__flushes_what_was_posted, setup, teardown),
		cmocka_unit_test_setup_teardown(reply__to_a_qp_that_cannot_be_moved_is_refused, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
