/* Completion queues and events: pollers, channels, asynchronous events, and what destroying waits for. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "fixture.h"
#include "loop_host.h"

static void send_one(struct fixture *f, uint64_t wr_id, unsigned flags)
{
	struct ibv_sge to = fixture_sge(f, 4096, 64), from = fixture_sge(f, 0, 64);
	assert_int_equal(fixture_post_recv(f->right, wr_id, &to), 0);
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = flags
	};
	assert_int_equal(fixture_post(f->left, wr), 0);
}

static void take_event(struct fixture *f)
{
	struct ibv_cq *cq;
	void *context;
	unsigned notified = loop_host_notified;
	assert_int_equal(ibv_get_cq_event(f->channel, &cq, &context), 0);
	assert_int_equal(loop_host_notified, notified + 1);
	assert_ptr_equal(cq, f->cq);
	assert_ptr_equal(context, f);
}

static void cq__creation_is_checked(void **state)
{
	struct fixture *f = *state;
	assert_null(ibv_create_cq(f->context, 0, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq(f->context, -5, NULL, NULL, 0));
	assert_null(ibv_create_cq(f->context, VB_MAX_CQE + 1, NULL, NULL, 0));
	assert_null(ibv_create_cq(f->context, 16, NULL, NULL, f->context->num_comp_vectors));
	assert_null(ibv_create_cq(f->context, 16, NULL, NULL, -1));
	struct ibv_cq *cq = ibv_create_cq(f->context, 16, NULL, NULL, 0);
	assert_true(cq->cqe >= 16);
	assert_int_equal(ibv_resize_cq(cq, 300), 0);
	assert_true(cq->cqe >= 300);
	assert_int_equal(ibv_resize_cq(cq, 0), EINVAL);
	assert_int_equal(ibv_resize_cq(cq, VB_MAX_CQE + 1), EINVAL);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* Programs name their CPU, which may be the highest that the machine can have. */
static void cq__vector_may_be_the_number_of_any_cpu(void **state)
{
	struct fixture *f = *state;
	int vectors = f->context->num_comp_vectors;
	assert_true(vectors >= sysconf(_SC_NPROCESSORS_CONF));
	for (int vector = 0; vector < vectors; vector++) {
		struct ibv_cq *cq = ibv_create_cq(f->context, 4, NULL, f->channel, vector);
		assert_non_null(cq);
		assert_int_equal(ibv_destroy_cq(cq), 0);
	}
	struct ibv_cq_init_attr_ex attr = { .cqe = 4, .comp_vector = (uint32_t)vectors - 1 };
	struct ibv_cq_ex *extended = ibv_create_cq_ex(f->context, &attr);
	assert_non_null(extended);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(extended)), 0);
	attr.comp_vector++;
	assert_null(ibv_create_cq_ex(f->context, &attr));
	assert_int_equal(errno, EINVAL);
}

static void cq__is_busy_while_a_qp_uses_it(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(ibv_destroy_cq(f->cq), EBUSY);
	assert_int_equal(ibv_destroy_comp_channel(f->channel), EBUSY);
}

static void cq__polls_what_the_engine_completed(void **state)
{
	struct fixture *f = *state;
	struct ibv_wc wc[4];
	assert_int_equal(ibv_poll_cq(f->cq, 4, wc), 0);
	send_one(f, 7, IBV_SEND_SIGNALED);
	bool is_sent = false, is_received = false;
	for (int i = 0; i < 2; i++) {
		struct ibv_wc one = fixture_complete(f->cq);
		assert_int_equal(one.status, IBV_WC_SUCCESS);
		assert_int_equal(one.wr_id, 7);
		assert_int_equal(one.pkey_index, 0);
		assert_int_equal(one.slid, 0);
		if (one.opcode == IBV_WC_SEND)
			is_sent = one.qp_num == f->left->qp_num;
		if (one.opcode == IBV_WC_RECV)
			is_received = one.qp_num == f->right->qp_num && one.byte_len == 64;
	}
	assert_true(is_sent && is_received);
}

static void channel__is_readable_exactly_while_an_event_waits(void **state)
{
	struct fixture *f = *state;
	assert_false(fixture_is_readable(f->channel->fd));
	assert_int_equal(ibv_req_notify_cq(f->cq, 0), 0);
	send_one(f, 1, 0);
	assert_true(fixture_is_readable(f->channel->fd));
	take_event(f);
	assert_false(fixture_is_readable(f->channel->fd));
	fixture_complete(f->cq);
	send_one(f, 2, 0); /* not armed again */
	fixture_complete(f->cq);
	assert_false(fixture_is_readable(f->channel->fd));
	ibv_ack_cq_events(f->cq, 1);
}

static void channel__is_told_of_what_came_between_polling_and_arming(void **state)
{
	struct fixture *f = *state;
	struct ibv_wc wc[4];
	assert_int_equal(ibv_poll_cq(f->cq, 4, wc), 0);
	send_one(f, 1, 0);
	assert_false(fixture_is_readable(f->channel->fd));
	ibv_req_notify_cq(f->cq, 0);
	assert_true(fixture_is_readable(f->channel->fd));
	take_event(f);
	assert_true(ibv_poll_cq(f->cq, 4, wc) > 0);
	ibv_ack_cq_events(f->cq, 1);
	ibv_req_notify_cq(f->cq, 0);
	assert_false(fixture_is_readable(f->channel->fd));
}

static void channel__counts_notices_of_one_cq(void **state)
{
	struct fixture *f = *state;
	for (int i = 0; i < 3; i++) {
		ibv_req_notify_cq(f->cq, 0);
		send_one(f, 1, 0);
		fixture_complete(f->cq);
	}
	for (int i = 0; i < 3; i++) {
		assert_true(fixture_is_readable(f->channel->fd));
		take_event(f);
	}
	assert_false(fixture_is_readable(f->channel->fd));
	ibv_ack_cq_events(f->cq, 3);
}

static void channel__obeys_o_nonblock(void **state)
{
	struct fixture *f = *state;
	struct ibv_cq *cq;
	void *context;
	fcntl(f->channel->fd, F_SETFL, fcntl(f->channel->fd, F_GETFL) | O_NONBLOCK);
	assert_int_equal(ibv_get_cq_event(f->channel, &cq, &context), -1);
	assert_int_equal(errno, EAGAIN);
	fcntl(f->context->async_fd, F_SETFL, O_NONBLOCK);
	struct ibv_async_event event;
	assert_int_equal(ibv_get_async_event(f->context, &event), -1);
	assert_int_equal(errno, EAGAIN);
}

static void channel__wakes_a_waiter_that_drives_the_lane(void **state)
{
	struct fixture *f = *state;
	struct ibv_sge to = fixture_sge(f, 4096, 64), from = fixture_sge(f, 0, 64);
	ibv_req_notify_cq(f->cq, 0);
	/* No receive is posted to left: the peer retries after an RNR NAK, which only driving brings about. */
	assert_int_equal(fixture_post_recv(f->right, 1, &to), 0);
	struct ibv_send_wr wr = { .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND };
	loop_set_blocked(true);
	assert_int_equal(fixture_post(f->left, wr), 0);
	loop_set_blocked(false);
	take_event(f);
	ibv_ack_cq_events(f->cq, 1);
	assert_int_equal(fixture_complete(f->cq).opcode, IBV_WC_RECV);
}

/* What a reader brings himself is not counted in the descriptor before he has taken his own. */
static void channel__tells_others_what_a_waiter_has_brought_and_not_taken(void **state)
{
	struct fixture *f = *state;
	struct ibv_cq *second = ibv_create_cq(f->context, 16, NULL, f->channel, 0), *cq;
	struct ibv_qp_init_attr attr = { .send_cq = f->cq,
		.recv_cq = second,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 } };
	struct ibv_qp *right = ibv_create_qp(f->pd, &attr), *left = fixture_create_qp(f, IBV_QPT_RC, NULL);
	struct ibv_sge to = fixture_sge(f, 4096, 64), from = fixture_sge(f, 0, 64);
	struct ibv_send_wr wr = {
		.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED
	};
	void *context;
	fixture_connect(left, right->qp_num);
	fixture_connect(right, left->qp_num);
	ibv_req_notify_cq(f->cq, 0);
	ibv_req_notify_cq(second, 0);
	assert_int_equal(fixture_post_recv(right, 1, &to), 0);
	loop_set_blocked(true);
	assert_int_equal(fixture_post(left, wr), 0);
	loop_set_blocked(false);
	for (int left_over = 1; left_over >= 0; left_over--) {
		assert_int_equal(ibv_get_cq_event(f->channel, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
		assert_int_equal(fixture_is_readable(f->channel->fd), left_over);
	}
	assert_int_equal(ibv_destroy_qp(left), 0);
	assert_int_equal(ibv_destroy_qp(right), 0);
	assert_int_equal(ibv_destroy_cq(second), 0);
}

static void channel__solicited_only_skips_the_rest(void **state)
{
	struct fixture *f = *state;
	ibv_req_notify_cq(f->cq, 1);
	send_one(f, 1, 0);
	fixture_complete(f->cq);
	assert_false(fixture_is_readable(f->channel->fd));
	send_one(f, 2, IBV_SEND_SOLICITED);
	fixture_complete(f->cq);
	assert_true(fixture_is_readable(f->channel->fd));
	take_event(f);
	ibv_ack_cq_events(f->cq, 1);
}

static void cq__destroying_forgets_events_nobody_fetched(void **state)
{
	struct fixture *f = *state;
	ibv_req_notify_cq(f->cq, 0);
	send_one(f, 1, 0);
	assert_true(fixture_is_readable(f->channel->fd));
	/* The fixture destroys the CQ; would it wait for an acknowledgement, the test would hang. */
}

struct destroyer {
	struct ibv_cq *cq;
	atomic_bool is_done;
};

static void *destroy_cq(void *argument)
{
	struct destroyer *destroyer = argument;
	assert_int_equal(ibv_destroy_cq(destroyer->cq), 0);
	atomic_store(&destroyer->is_done, true);
	return NULL;
}

static void cq__destroying_waits_for_acknowledgements(void **state)
{
	struct fixture *f = *state;
	struct destroyer destroyer = { .cq = f->cq };
	pthread_t thread;
	ibv_req_notify_cq(f->cq, 0);
	send_one(f, 1, 0);
	take_event(f);
	assert_int_equal(ibv_destroy_qp(f->left), 0);
	assert_int_equal(ibv_destroy_qp(f->right), 0);
	f->left = f->right = NULL;
	pthread_create(&thread, NULL, destroy_cq, &destroyer);
	usleep(50000);
	assert_false(atomic_load(&destroyer.is_done));
	ibv_ack_cq_events(f->cq, 1);
	pthread_join(thread, NULL);
	assert_true(atomic_load(&destroyer.is_done));
	f->cq = ibv_create_cq(f->context, 16, f, f->channel, 0);
}

/* ---- The extended poller ----------------------------------------------------------------------------------------- */

static struct ibv_cq_ex *create_ex(struct fixture *f, uint64_t wc_flags)
{
	struct ibv_cq_init_attr_ex attr;
	memset(&attr, 0xAB, sizeof(attr)); /* only what comp_mask names may be read */
	attr.cqe = 32;
	attr.cq_context = f;
	attr.channel = NULL;
	attr.comp_vector = 0;
	attr.wc_flags = wc_flags;
	attr.comp_mask = 0;
	errno = 0;
	return ibv_create_cq_ex(f->context, &attr);
}

static void cq_ex__shows_one_completion_at_a_time(void **state)
{
	struct fixture *f = *state;
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_cq_ex *cq = create_ex(f, IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
						    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	assert_non_null(cq);
	struct ibv_cq *plain = f->cq;
	f->cq = ibv_cq_ex_to_cq(cq);
	struct ibv_qp *left = fixture_create_qp(f, IBV_QPT_RC, NULL), *right = fixture_create_qp(f, IBV_QPT_RC, NULL);
	fixture_connect(left, right->qp_num);
	fixture_connect(right, left->qp_num);
	f->left = left, f->right = right;

	assert_int_equal(ibv_start_poll(cq, &attr), ENOENT);
	attr.comp_mask = 1;
	assert_int_equal(ibv_start_poll(cq, &attr), EINVAL);
	attr.comp_mask = 0;
	send_one(f, 5, 0);
	send_one(f, 6, 0);
	assert_int_equal(ibv_start_poll(cq, &attr), 0);
	assert_int_equal(cq->status, IBV_WC_SUCCESS);
	assert_int_equal(cq->wr_id, 5);
	assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RECV);
	assert_int_equal(ibv_wc_read_byte_len(cq), 64);
	assert_int_equal(ibv_wc_read_qp_num(cq), right->qp_num);
	assert_int_equal(ibv_wc_read_slid(cq), 0);
	uint64_t stamp = ibv_wc_read_completion_ts(cq);
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	assert_int_equal(ibv_query_rt_values_ex(f->context, &values), 0);
	assert_true(stamp <= (uint64_t)values.raw_clock.tv_nsec);
	assert_int_equal(ibv_next_poll(cq), 0);
	assert_int_equal(cq->wr_id, 6);
	assert_int_equal(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	send_one(f, 8, 0); /* the plain poller works too */
	assert_int_equal(fixture_complete(f->cq).wr_id, 8);

	assert_int_equal(ibv_destroy_qp(left), 0);
	assert_int_equal(ibv_destroy_qp(right), 0);
	f->left = f->right = NULL;
	assert_int_equal(ibv_destroy_cq(f->cq), 0);
	f->cq = plain;
}

/* Field by field as ibv_poll_cq shows it, of a datagram that carries most of them. */
static void cq_ex__reads_what_the_plain_poller_shows(void **state)
{
	struct fixture *f = *state;
	struct ibv_poll_cq_attr none = { 0 };
	struct ibv_cq_ex *cq = create_ex(f, IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
						    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	struct ibv_cq *plain = f->cq;
	struct ibv_ah_attr attr = fixture_ah_attr();
	struct ibv_ah *ah = ibv_create_ah(f->pd, &attr);
	struct ibv_sge from = fixture_sge(f, 0, 16), to = fixture_sge(f, 4096, 256);

	f->left = fixture_create_qp(f, IBV_QPT_UD, NULL);
	f->cq = ibv_cq_ex_to_cq(cq);
	f->right = fixture_create_qp(f, IBV_QPT_UD, NULL);
	f->cq = plain;
	fixture_start_ud(f->left);
	fixture_start_ud(f->right);
	struct ibv_send_wr wr = { .sg_list = &from,
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.imm_data = 0xABCD,
		.wr.ud = { ah, f->right->qp_num, QKEY } };
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fixture_post_recv(f->right, 7, &to), 0);
		assert_int_equal(fixture_post(f->left, wr), 0);
	}
	struct ibv_wc wc = fixture_complete(ibv_cq_ex_to_cq(cq));
	assert_int_equal(ibv_start_poll(cq, &none), 0);
	assert_int_equal(cq->wr_id, wc.wr_id);
	assert_int_equal(wc.imm_data, 0xABCD);
	assert_int_equal(ibv_wc_read_imm_data(cq), wc.imm_data);
	assert_int_equal(wc.src_qp, f->left->qp_num);
	assert_int_equal(ibv_wc_read_src_qp(cq), wc.src_qp);
	assert_int_equal(ibv_wc_read_wc_flags(cq), wc.wc_flags);
	assert_int_equal(ibv_wc_read_byte_len(cq), wc.byte_len);
	assert_int_equal(ibv_wc_read_vendor_err(cq), wc.vendor_err);
	assert_int_equal(ibv_wc_read_sl(cq), wc.sl);
	assert_int_equal(ibv_wc_read_dlid_path_bits(cq), 0);
	/* As far back from now by one clock as by the other. */
	struct timespec wall, monotonic;
	clock_gettime(CLOCK_REALTIME, &wall);
	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	int64_t offset = (wall.tv_sec - monotonic.tv_sec) * 1000000000ll + wall.tv_nsec - monotonic.tv_nsec;
	int64_t stamps = (int64_t)(ibv_wc_read_completion_wallclock_ns(cq) - ibv_wc_read_completion_ts(cq));
	assert_true(llabs(stamps - offset) < 1000000000);
	ibv_end_poll(cq);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_qp(f->right), 0);
	f->right = NULL;
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static void cq_ex__refuses_what_it_has_not(void **state)
{
	struct fixture *f = *state;
	assert_null(create_ex(f, IBV_WC_EX_WITH_CVLAN));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(create_ex(f, IBV_WC_EX_WITH_FLOW_TAG));
	assert_null(create_ex(f, 1ull << 40));
	struct ibv_cq_init_attr_ex attr = { .cqe = 4, .comp_mask = 1 << 20 };
	assert_null(ibv_create_cq_ex(f->context, &attr));
	assert_int_equal(errno, EINVAL);
}

/* ---- Asynchronous events ----------------------------------------------------------------------------------------- */

static void async__port_events_need_no_object(void **state)
{
	struct fixture *f = *state;
	struct ibv_async_event event;
	assert_false(fixture_is_readable(f->context->async_fd));
	loop_change_port(false);
	loop_change_port(true);
	loop_change_gids();
	assert_true(fixture_is_readable(f->context->async_fd));
	assert_int_equal(ibv_get_async_event(f->context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_PORT_ERR);
	assert_int_equal(event.element.port_num, 1);
	ibv_ack_async_event(&event);
	assert_int_equal(ibv_get_async_event(f->context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_PORT_ACTIVE);
	assert_int_equal(ibv_get_async_event(f->context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_GID_CHANGE);
	assert_int_equal(event.element.port_num, 1);
	assert_false(fixture_is_readable(f->context->async_fd));
}

static void ignore_signal(int signal) {}

struct interrupter {
	pthread_t victim;
	unsigned times;
	atomic_bool is_over;
};

/* Interrupts so often, or until it is over, then lets an event come. */
static void *interrupt(void *argument)
{
	struct interrupter *interrupter = argument;
	for (unsigned i = 0; i < interrupter->times && !atomic_load(&interrupter->is_over); i++) {
		usleep(20000);
		pthread_kill(interrupter->victim, SIGUSR1);
	}
	usleep(20000);
	loop_change_port(false);
	return NULL;
}

static int wait_through_signals(struct fixture *f, int flags, unsigned times)
{
	struct sigaction action = { .sa_handler = ignore_signal, .sa_flags = flags }, before;
	struct interrupter interrupter = { .victim = pthread_self(), .times = times };
	struct ibv_async_event event;
	pthread_t thread;
	sigaction(SIGUSR1, &action, &before);
	pthread_create(&thread, NULL, interrupt, &interrupter);
	errno = 0;
	int result = ibv_get_async_event(f->context, &event);
	int error = errno;
	atomic_store(&interrupter.is_over, true);
	pthread_join(thread, NULL);
	sigaction(SIGUSR1, &before, NULL);
	if (result)
		assert_int_equal(error, EINTR);
	else
		assert_int_equal(event.event_type, IBV_EVENT_PORT_ERR);
	return result;
}

static void async__signals_end_a_wait_as_they_end_a_read(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(wait_through_signals(f, SA_RESTART, 2), 0);
	assert_int_equal(wait_through_signals(f, 0, 500), -1); /* the first that comes while it waits */
}

static void async__srq_limit_and_last_wqe_are_delivered(void **state)
{
	struct fixture *f = *state;
	struct ibv_srq_init_attr init = { .srq_context = f, .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(f->pd, &init);
	assert_non_null(srq);
	assert_ptr_equal(srq->srq_context, f);
	assert_true(init.attr.max_wr >= 8);
	f->left = fixture_create_qp(f, IBV_QPT_RC, NULL);
	f->right = fixture_create_qp(f, IBV_QPT_RC, srq);
	fixture_connect(f->left, f->right->qp_num);
	fixture_connect(f->right, f->left->qp_num);
	struct ibv_sge to = fixture_sge(f, 4096, 64), from = fixture_sge(f, 0, 64);
	struct ibv_recv_wr recv = { .wr_id = 9, .sg_list = &to, .num_sge = 1 }, *bad;
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_post_srq_recv(srq, &recv, &bad), 0);
	struct ibv_srq_attr limit = { .srq_limit = 2 };
	assert_int_equal(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_query_srq(srq, &limit), 0);
	assert_int_equal(limit.srq_limit, 2);
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);

	struct ibv_send_wr wr = { .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND };
	assert_int_equal(fixture_post(f->left, wr), 0);
	assert_int_equal(fixture_complete(f->cq).wr_id, 9);
	struct ibv_async_event event;
	assert_true(fixture_is_readable(f->context->async_fd));
	assert_int_equal(ibv_get_async_event(f->context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, srq);
	ibv_ack_async_event(&event);

	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	assert_int_equal(ibv_modify_qp(f->right, &attr, IBV_QP_STATE), 0);
	assert_int_equal(ibv_get_async_event(f->context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(event.element.qp, f->right);
	ibv_ack_async_event(&event);
	assert_int_equal(ibv_destroy_qp(f->right), 0);
	f->right = NULL;
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void async__a_dead_qp_is_explained_once(void **state)
{
	struct fixture *f = *state;
	struct ibv_sge from = fixture_sge(f, 0, 64);
	int before = loop_deaths();
	struct ibv_send_wr wr = { .wr_id = 3, .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND };
	loop_set_blocked(true);
	assert_int_equal(fixture_post(f->left, wr), 0);
	struct ibv_wc wc = fixture_complete(f->cq);
	assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(wc.wr_id, 3);
	assert_int_equal(loop_deaths(), before + 1);
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	assert_int_equal(ibv_query_qp(f->left, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	assert_int_equal(f->left->state, IBV_QPS_ERR);
}

static void cq__overrun_is_an_async_error(void **state)
{
	struct fixture *f = *state;
	struct ibv_cq *small = ibv_create_cq(f->context, 1, NULL, NULL, 0), *usual = f->cq;
	struct ibv_async_event event;
	struct ibv_wc wc;
	f->cq = small;
	f->left = fixture_create_qp(f, IBV_QPT_RC, NULL);
	f->right = fixture_create_qp(f, IBV_QPT_RC, NULL);
	fixture_connect(f->left, f->right->qp_num);
	fixture_connect(f->right, f->left->qp_num);
	for (int i = 0; i <= small->cqe; i++)
		send_one(f, 1, 0);
	assert_true(fixture_is_readable(f->context->async_fd));
	bool is_seen = false;
	while (fixture_is_readable(f->context->async_fd)) {
		assert_int_equal(ibv_get_async_event(f->context, &event), 0);
		is_seen |= event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == small;
		ibv_ack_async_event(&event);
	}
	assert_true(is_seen);
	int got;
	while ((got = ibv_poll_cq(small, 1, &wc)) > 0)
		;
	assert_int_equal(got, -EIO);
	assert_int_equal(ibv_destroy_qp(f->left), 0);
	assert_int_equal(ibv_destroy_qp(f->right), 0);
	f->left = f->right = NULL;
	assert_int_equal(ibv_destroy_cq(small), 0);
	f->cq = usual;
}

int main(void)
{
#define WITH_DEVICE(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)
#define WITH_QPS(name)    cmocka_unit_test_setup_teardown(name, fixture_connect_rc, fixture_close)
	const struct CMUnitTest tests[] = {
		WITH_DEVICE(cq__creation_is_checked),
		WITH_DEVICE(cq__vector_may_be_the_number_of_any_cpu),
		WITH_QPS(cq__is_busy_while_a_qp_uses_it),
		WITH_QPS(cq__polls_what_the_engine_completed),
		WITH_QPS(channel__is_readable_exactly_while_an_event_waits),
		WITH_QPS(channel__is_told_of_what_came_between_polling_and_arming),
		WITH_QPS(channel__counts_notices_of_one_cq),
		WITH_DEVICE(channel__obeys_o_nonblock),
		WITH_QPS(channel__wakes_a_waiter_that_drives_the_lane),
		WITH_QPS(channel__tells_others_what_a_waiter_has_brought_and_not_taken),
		WITH_QPS(channel__solicited_only_skips_the_rest),
		WITH_QPS(cq__destroying_forgets_events_nobody_fetched),
		WITH_QPS(cq__destroying_waits_for_acknowledgements),
		WITH_DEVICE(cq_ex__shows_one_completion_at_a_time),
		WITH_DEVICE(cq_ex__reads_what_the_plain_poller_shows),
		WITH_DEVICE(cq_ex__refuses_what_it_has_not),
		WITH_DEVICE(async__port_events_need_no_object),
		WITH_DEVICE(async__signals_end_a_wait_as_they_end_a_read),
		WITH_DEVICE(async__srq_limit_and_last_wqe_are_delivered),
		WITH_QPS(async__a_dead_qp_is_explained_once),
		WITH_DEVICE(cq__overrun_is_an_async_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
