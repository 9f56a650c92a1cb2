/* XRC: domains and their handles, SRQs with numbers, QPs of one half, and a receiving QP with several handles. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "fixture.h"
#include "loop_host.h"

static struct ibv_xrcd *open_domain(struct fixture *f, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};
	errno = 0;
	return ibv_open_xrcd(f->context, &attr);
}

static struct ibv_srq *create_srq(struct fixture *f, struct ibv_xrcd *xrcd)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 16, .max_sge = 2 },
		.comp_mask =
			IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = f->pd,
		.xrcd = xrcd,
		.cq = f->cq,
	};
	errno = 0;
	return ibv_create_srq_ex(f->context, &attr);
}

static uint32_t number_of(struct ibv_srq *srq)
{
	uint32_t number = 0;
	assert_int_equal(ibv_get_srq_num(srq, &number), 0);
	return number;
}

static struct ibv_qp *create_recv(struct fixture *f, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_context = f,
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};
	errno = 0;
	return ibv_create_qp_ex(f->context, &attr);
}

static struct ibv_qp *create_send(struct fixture *f, uint64_t operations)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = f->cq,
		.cap = { .max_send_wr = 8, .max_send_sge = 2 },
		.qp_type = IBV_QPT_XRC_SEND,
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD | (operations ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.pd = f->pd,
		.send_ops_flags = operations,
	};
	errno = 0;
	return ibv_create_qp_ex(f->context, &attr);
}

/* Each half with the attributes that it needs and, where it is taken for RC, with those of the other half too. */
static void connect_half(struct ibv_qp *qp, uint32_t dest_qpn, bool as_rc)
{
	bool is_recv = as_rc || qp->qp_type == IBV_QPT_XRC_RECV;
	bool is_send = as_rc || qp->qp_type == IBV_QPT_XRC_SEND;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest_qpn,
		.rq_psn = 100,
		.sq_psn = 100,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 1,
		.timeout = 8,
		.retry_cnt = 2,
		.rnr_retry = 2,
		.ah_attr = fixture_ah_attr() };
	fixture_init_qp(qp);
	assert_int_equal(ibv_modify_qp(qp, &attr,
				 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					 (is_recv ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)),
		0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(qp, &attr,
				 IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
					 (is_send ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)),
		0);
}

static void connect_halves(struct ibv_qp *send, struct ibv_qp *recv)
{
	connect_half(recv, send->qp_num, false);
	connect_half(send, recv->qp_num, false);
}

static int post_shared(struct ibv_srq *srq, uint64_t wr_id, struct ibv_sge sge)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;
	return ibv_post_srq_recv(srq, &wr, &bad);
}

static int descriptor(void)
{
	char path[] = "/tmp/verbena-xrc-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	unlink(path);
	return fd;
}

static void domain__of_an_inode_is_shared_by_its_opens(void **state)
{
	struct fixture *f = *state;
	int fd = descriptor(), again = dup(fd), other = descriptor();
	assert_null(open_domain(f, fd, 0));
	assert_int_equal(errno, EAGAIN);
	struct ibv_xrcd *first = open_domain(f, fd, O_CREAT | O_EXCL);
	assert_non_null(first);
	assert_null(open_domain(f, again, O_CREAT | O_EXCL));
	assert_int_equal(errno, EINVAL);
	struct ibv_xrcd *second = open_domain(f, again, 0), *third = open_domain(f, other, O_CREAT);
	assert_non_null(second);
	assert_non_null(third);

	/* A QP of one handle reaches the SRQ of the other, not that of another inode. */
	struct ibv_srq *srq = create_srq(f, second), *foreign = create_srq(f, third);
	struct ibv_qp *recv = create_recv(f, first), *send = create_send(f, 0);
	connect_halves(send, recv);
	assert_int_equal(post_shared(srq, 7, fixture_sge(f, 0, 64)), 0);
	assert_int_equal(post_shared(foreign, 8, fixture_sge(f, 0, 64)), 0);
	struct ibv_sge from = fixture_sge(f, 512, 32);
	struct ibv_send_wr wr = { .wr_id = 1, .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND };
	wr.qp_type.xrc.remote_srqn = number_of(srq);
	assert_int_equal(fixture_post(send, wr), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fixture_complete(f->cq).status, IBV_WC_SUCCESS);
	wr.qp_type.xrc.remote_srqn = number_of(foreign);
	assert_int_equal(fixture_post(send, wr), 0);
	assert_int_equal(fixture_complete(f->cq).status, IBV_WC_REM_INV_REQ_ERR);

	assert_int_equal(ibv_close_xrcd(first), EBUSY);
	assert_int_equal(ibv_close_xrcd(second), EBUSY);
	assert_int_equal(ibv_destroy_qp(recv), 0);
	assert_int_equal(ibv_destroy_qp(send), 0);
	assert_int_equal(ibv_close_xrcd(first), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_srq(foreign), 0);
	assert_int_equal(ibv_close_xrcd(second), 0);
	assert_int_equal(ibv_close_xrcd(third), 0);
	assert_null(open_domain(f, fd, 0)); /* gone with its last handle */
	assert_int_equal(errno, EAGAIN);
	close(fd);
	close(again);
	close(other);
}

static void domain__wrong_attributes_are_refused(void **state)
{
	struct fixture *f = *state;
	struct ibv_xrcd_init_attr attr = { .comp_mask = IBV_XRCD_INIT_ATTR_FD, .fd = -1, .oflags = O_CREAT };
	errno = 0;
	assert_null(ibv_open_xrcd(f->context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS | IBV_XRCD_INIT_ATTR_RESERVED;
	assert_null(ibv_open_xrcd(f->context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(open_domain(f, 12345, O_CREAT));
	assert_int_equal(errno, EBADF);
	loop_set_forked(true);
	assert_null(open_domain(f, -1, O_CREAT));
	assert_int_equal(errno, EPERM);
	loop_set_forked(false);
}

static void srq__needs_domain_and_cq_and_has_a_number(void **state)
{
	struct fixture *f = *state;
	struct ibv_xrcd *xrcd = open_domain(f, -1, O_CREAT);
	struct ibv_srq_init_attr_ex attr = { .attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD,
		.srq_type = IBV_SRQT_XRC,
		.pd = f->pd,
		.xrcd = xrcd,
		.cq = f->cq };
	assert_null(ibv_create_srq_ex(f->context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.srq_type = IBV_SRQT_TM + 1;
	assert_null(ibv_create_srq_ex(f->context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);

	struct ibv_srq *first = create_srq(f, xrcd), *second = create_srq(f, xrcd);
	assert_true(number_of(first) && number_of(second) && number_of(first) != number_of(second));
	assert_true(number_of(first) < 1 << 24);
	struct ibv_srq_init_attr basic = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *plain = ibv_create_srq(f->pd, &basic);
	uint32_t number;
	assert_int_equal(ibv_get_srq_num(plain, &number), EINVAL);
	struct ibv_qp_init_attr rc = { .send_cq = f->cq, .recv_cq = f->cq, .srq = first, .qp_type = IBV_QPT_RC };
	assert_null(ibv_create_qp(f->pd, &rc)); /* an XRC SRQ is reached by its number alone */
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_destroy_cq(f->cq), EBUSY);
	assert_int_equal(ibv_destroy_srq(plain), 0);
	assert_int_equal(ibv_destroy_srq(first), 0);
	assert_int_equal(ibv_destroy_srq(second), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static void qp__halves_have_nothing_of_the_other(void **state)
{
	struct fixture *f = *state;
	struct ibv_xrcd *xrcd = open_domain(f, -1, O_CREAT);
	struct ibv_qp_init_attr init = { .send_cq = f->cq, .recv_cq = f->cq, .qp_type = IBV_QPT_XRC_RECV };
	assert_null(ibv_create_qp(f->pd, &init)); /* a domain is needed, which only the extended call can name */
	assert_int_equal(errno, EINVAL);
	init.qp_type = IBV_QPT_XRC_SEND;
	init.cap = (struct ibv_qp_cap){ .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 };
	struct ibv_qp *send = ibv_create_qp(f->pd, &init), *recv = create_recv(f, xrcd);
	assert_non_null(send);
	assert_non_null(recv);
	assert_int_equal(init.cap.max_recv_wr, 0);
	assert_null(recv->pd);
	assert_null(recv->send_cq);
	connect_halves(send, recv);

	struct ibv_qp_attr now;
	assert_int_equal(ibv_query_qp(recv, &now, IBV_QP_STATE, &init), 0);
	assert_int_equal(init.qp_type, IBV_QPT_XRC_RECV);
	assert_int_equal(init.cap.max_send_wr + init.cap.max_recv_wr, 0);
	assert_ptr_equal(init.qp_context, f);
	struct ibv_sge sge = fixture_sge(f, 0, 8);
	assert_int_equal(fixture_post_recv(send, 1, &sge), EINVAL);
	assert_int_equal(fixture_post_recv(recv, 1, &sge), EINVAL);
	assert_int_equal(
		fixture_post(recv, (struct ibv_send_wr){ .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }),
		EINVAL);
	assert_int_equal(ibv_destroy_qp(send), 0);
	assert_int_equal(ibv_destroy_qp(recv), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static void qp__the_builder_names_the_srq(void **state)
{
	struct fixture *f = *state;
	struct ibv_xrcd *xrcd = open_domain(f, -1, O_CREAT);
	struct ibv_srq *srq = create_srq(f, xrcd);
	struct ibv_qp *send = create_send(f, IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ);
	struct ibv_qp *recv = create_recv(f, xrcd);
	connect_halves(send, recv);
	assert_int_equal(post_shared(srq, 7, fixture_sge(f, 0, 64)), 0);
	memset(f->buffer + 512, 'x', 48);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(send);
	ibv_wr_start(ex);
	ex->wr_id = 3;
	ibv_wr_send_imm(ex, 0x11223344);
	ibv_wr_set_sge(ex, f->mr->lkey, (uintptr_t)f->buffer + 512, 48);
	ibv_wr_set_xrc_srqn(ex, number_of(srq));
	ex->wr_id = 4;
	ibv_wr_rdma_read(ex, f->mr->rkey, (uintptr_t)f->buffer + 512);
	ibv_wr_set_sge(ex, f->mr->lkey, (uintptr_t)f->buffer + 1024, 48);
	ibv_wr_set_xrc_srqn(ex, number_of(srq));
	assert_int_equal(ibv_wr_complete(ex), 0);
	for (int i = 0; i < 3; i++) {
		struct ibv_wc wc = fixture_complete(f->cq);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.wr_id != 7)
			continue;
		assert_int_equal(wc.qp_num, recv->qp_num);
		assert_int_equal(wc.src_qp, send->qp_num);
		assert_int_equal(wc.imm_data, 0x11223344);
	}
	assert_memory_equal(f->buffer, f->buffer + 512, 48);
	assert_memory_equal(f->buffer + 1024, f->buffer + 512, 48);
	assert_int_equal(ibv_destroy_qp(send), 0);
	assert_int_equal(ibv_destroy_qp(recv), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static void qp__attributes_of_the_other_half_are_ignored(void **state)
{
	struct fixture *f = *state;
	struct ibv_xrcd *xrcd = open_domain(f, -1, O_CREAT);
	struct ibv_qp *send = create_send(f, 0), *recv = create_recv(f, xrcd);
	connect_half(recv, send->qp_num, true);
	connect_half(send, recv->qp_num, true);
	struct ibv_qp_attr now;
	struct ibv_qp_init_attr init;
	assert_int_equal(ibv_query_qp(recv, &now, IBV_QP_STATE, &init), 0);
	assert_int_equal(now.max_rd_atomic + now.retry_cnt + now.rnr_retry, 0);
	assert_int_equal(now.max_dest_rd_atomic, 4);
	assert_int_equal(ibv_query_qp(send, &now, IBV_QP_STATE, &init), 0);
	assert_int_equal(now.max_dest_rd_atomic + now.min_rnr_timer, 0);
	assert_int_equal(now.max_rd_atomic, 4);
	assert_int_equal(ibv_destroy_qp(send), 0);
	assert_int_equal(ibv_destroy_qp(recv), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static struct ibv_qp *open_qp(struct fixture *f, struct ibv_xrcd *xrcd, uint32_t qp_num, void *context)
{
	struct ibv_qp_open_attr attr = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
						      IBV_QP_OPEN_ATTR_CONTEXT | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = qp_num,
		.xrcd = xrcd,
		.qp_context = context,
		.qp_type = IBV_QPT_XRC_RECV };
	errno = 0;
	return ibv_open_qp(f->context, &attr);
}

/* The QP stays until its last handle goes, and each handle hears of its events. */
static void qp__is_opened_by_its_number(void **state)
{
	struct fixture *f = *state;
	struct ibv_xrcd *xrcd = open_domain(f, -1, O_CREAT), *other = open_domain(f, -1, O_CREAT);
	struct ibv_srq *srq = create_srq(f, xrcd);
	struct ibv_qp *send = create_send(f, 0), *recv = create_recv(f, xrcd);
	connect_halves(send, recv);
	assert_null(open_qp(f, xrcd, recv->qp_num + 1, NULL));
	assert_int_equal(errno, EINVAL);
	assert_null(open_qp(f, xrcd, send->qp_num, NULL));
	assert_null(open_qp(f, other, recv->qp_num, NULL));
	struct ibv_qp *opened = open_qp(f, xrcd, recv->qp_num, &opened);
	assert_non_null(opened);
	assert_int_equal(opened->qp_num, recv->qp_num);
	assert_int_equal(opened->state, IBV_QPS_RTS);
	assert_ptr_equal(opened->qp_context, &opened);

	uint32_t number = recv->qp_num;
	assert_int_equal(ibv_destroy_qp(recv), 0);
	struct ibv_qp *again = open_qp(f, xrcd, number, NULL);
	assert_non_null(again);
	assert_int_equal(post_shared(srq, 7, fixture_sge(f, 0, 64)), 0);
	struct ibv_sge from = fixture_sge(f, 512, 32);
	struct ibv_send_wr wr = { .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND };
	wr.qp_type.xrc.remote_srqn = number_of(srq);
	assert_int_equal(fixture_post(send, wr), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fixture_complete(f->cq).status, IBV_WC_SUCCESS);

	wr.qp_type.xrc.remote_srqn = number_of(srq) + 1;
	assert_int_equal(fixture_post(send, wr), 0);
	assert_int_equal(fixture_complete(f->cq).status, IBV_WC_REM_INV_REQ_ERR);
	unsigned heard = 0;
	for (int i = 0; i < 2; i++) {
		struct ibv_async_event event;
		assert_int_equal(ibv_get_async_event(f->context, &event), 0);
		assert_int_equal(event.event_type, IBV_EVENT_QP_REQ_ERR);
		heard |= event.element.qp == opened ? 1 : event.element.qp == again ? 2 : 0;
		ibv_ack_async_event(&event);
	}
	assert_int_equal(heard, 3);
	struct ibv_qp_attr now;
	struct ibv_qp_init_attr init;
	assert_int_equal(ibv_query_qp(again, &now, IBV_QP_STATE, &init), 0);
	assert_int_equal(now.qp_state, IBV_QPS_ERR);
	assert_int_equal(ibv_destroy_qp(opened), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), EBUSY);
	assert_int_equal(ibv_destroy_qp(again), 0);
	assert_null(open_qp(f, xrcd, number, NULL));
	assert_int_equal(ibv_destroy_qp(send), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
	assert_int_equal(ibv_close_xrcd(other), 0);
}

static void close__takes_domains_srqs_and_handles(void **state)
{
	struct fixture *f = *state;
	struct ibv_context *context = ibv_open_device(f->context->device);
	struct fixture another = { .context = context, .pd = ibv_alloc_pd(context) };
	another.cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_xrcd *xrcd = open_domain(&another, -1, O_CREAT);
	assert_non_null(create_srq(&another, xrcd));
	struct ibv_qp *recv = create_recv(&another, xrcd);
	assert_non_null(open_qp(&another, xrcd, recv->qp_num, NULL));
	assert_non_null(open_qp(&another, xrcd, recv->qp_num, NULL));
	assert_int_equal(ibv_close_device(context), 0);
}

static void device__says_that_it_has_xrc(void **state)
{
	struct fixture *f = *state;
	struct ibv_device_attr attr;
	assert_int_equal(ibv_query_device(f->context, &attr), 0);
	assert_true(attr.device_cap_flags & IBV_DEVICE_XRC);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)
	const struct CMUnitTest tests[] = {
		TEST(domain__of_an_inode_is_shared_by_its_opens),
		TEST(domain__wrong_attributes_are_refused),
		TEST(srq__needs_domain_and_cq_and_has_a_number),
		TEST(qp__halves_have_nothing_of_the_other),
		TEST(qp__attributes_of_the_other_half_are_ignored),
		TEST(qp__the_builder_names_the_srq),
		TEST(qp__is_opened_by_its_number),
		TEST(close__takes_domains_srqs_and_handles),
		TEST(device__says_that_it_has_xrc),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
