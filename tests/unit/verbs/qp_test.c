/* Queue pairs: creation, attributes, posting, windows, datagrams and multicast. */
#include <stdlib.h>
#include <string.h>
#include "fixture.h"
#include "loop_host.h"

static struct ibv_qp *try_create(struct fixture *f, enum ibv_qp_type type, struct ibv_qp_cap cap)
{
	struct ibv_qp_init_attr attr = { .send_cq = f->cq, .recv_cq = f->cq, .cap = cap, .qp_type = type };
	errno = 0;
	return ibv_create_qp(f->pd, &attr);
}

static void qp__creation_fails_above_the_limits(void **state)
{
	struct fixture *f = *state;
	const struct ibv_qp_cap wrong[] = {
		{ .max_send_wr = VB_MAX_QP_WR + 1, .max_send_sge = 1 },
		{ .max_recv_wr = VB_MAX_QP_WR + 1, .max_recv_sge = 1 },
		{ .max_send_wr = 1, .max_send_sge = VB_MAX_SGE + 1 },
		{ .max_recv_wr = 1, .max_recv_sge = VB_MAX_SGE + 1 },
		{ .max_send_wr = 1, .max_inline_data = VB_MAX_INLINE + 1 },
	};
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_null(try_create(f, IBV_QPT_RC, wrong[i]));
		assert_int_equal(errno, EINVAL);
	}
	struct ibv_qp_cap good = { .max_send_wr = 1, .max_send_sge = 1 };
	assert_null(try_create(f, IBV_QPT_DRIVER, good));
	assert_int_equal(errno, EOPNOTSUPP);
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = good };
	assert_null(ibv_create_qp(f->pd, &attr));
	assert_int_equal(errno, EINVAL);
}

static void qp__objects_must_be_of_one_context(void **state)
{
	struct fixture *f = *state;
	struct ibv_context *other = ibv_open_device(f->context->device);
	struct ibv_cq *foreign = ibv_create_cq(other, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = { .send_cq = f->cq, .recv_cq = foreign, .qp_type = IBV_QPT_RC };
	errno = 0;
	assert_null(ibv_create_qp(f->pd, &attr));
	assert_int_equal(errno, EINVAL);
	errno = 0;
	assert_null(ibv_create_cq(other, 4, NULL, f->channel, 0));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_destroy_cq(foreign), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

static void qp__creation_writes_back_what_was_granted(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_init_attr attr = {
		.qp_context = f,
		.send_cq = f->cq,
		.recv_cq = f->cq,
		.cap = { .max_send_wr = 5,
			.max_recv_wr = 6,
			.max_send_sge = 2,
			.max_recv_sge = 3,
			.max_inline_data = 10 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_qp *qp = ibv_create_qp(f->pd, &attr);
	assert_non_null(qp);
	assert_true(attr.cap.max_send_wr >= 5 && attr.cap.max_recv_wr >= 6 && attr.cap.max_inline_data >= 10);
	assert_int_equal(qp->state, IBV_QPS_RESET);
	assert_true(qp->qp_num > 1 && qp->qp_num < 0xffffff);
	assert_null(ibv_qp_to_qp_ex(qp));
	struct ibv_qp_attr now;
	struct ibv_qp_init_attr init;
	assert_int_equal(ibv_query_qp(qp, &now, IBV_QP_CAP | IBV_QP_STATE, &init), 0);
	assert_memory_equal(&now.cap, &attr.cap, sizeof(now.cap));
	assert_int_equal(now.qp_state, IBV_QPS_RESET);
	assert_ptr_equal(init.qp_context, f);
	assert_ptr_equal(init.send_cq, f->cq);
	assert_int_equal(init.sq_sig_all, 1);
	assert_int_equal(init.qp_type, IBV_QPT_RC);
	f->left = qp;
}

static void qp__attributes_come_back_as_they_were_set(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	struct ibv_ah_attr ah = fixture_ah_attr();
	assert_int_equal(f->left->state, IBV_QPS_RTS);
	assert_int_equal(ibv_query_qp(f->left, &attr, IBV_QP_AV, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.cur_qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.path_mtu, IBV_MTU_1024);
	assert_int_equal(attr.dest_qp_num, f->right->qp_num);
	assert_int_equal(attr.rq_psn, 100);
	assert_int_equal(attr.sq_psn, 100);
	assert_int_equal(attr.timeout, 8);
	assert_int_equal(attr.retry_cnt, 2);
	assert_int_equal(attr.rnr_retry, 7);
	assert_int_equal(attr.max_rd_atomic, 4);
	assert_int_equal(attr.max_dest_rd_atomic, 4);
	assert_int_equal(attr.min_rnr_timer, 1);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(attr.path_mig_state, IBV_MIG_MIGRATED);
	assert_int_equal(
		attr.qp_access_flags, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	assert_memory_equal(&attr.ah_attr, &ah, sizeof(ah));
}

/* Programs read there where they moved the QP last, and UCX asserts it when a QP has failed. */
static void qp__state_changes_only_by_calls_that_name_it(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_attr attr = { .min_rnr_timer = 2 };
	struct ibv_qp_init_attr init;
	struct ibv_sge from = fixture_sge(f, 0, 8);
	struct ibv_send_wr wr = {
		.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .wr.rdma = { 0, f->mr->rkey + 1 }
	};
	assert_int_equal(fixture_post(f->left, wr), 0);
	assert_int_equal(fixture_complete(f->cq).status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_query_qp(f->left, &attr, IBV_QP_CAP, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	assert_int_equal(f->left->state, IBV_QPS_RTS);
	assert_int_not_equal(ibv_modify_qp(f->left, &attr, IBV_QP_MIN_RNR_TIMER), 0);
	assert_int_equal(f->left->state, IBV_QPS_RTS);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_not_equal(ibv_modify_qp(f->left, &attr, IBV_QP_STATE), 0);
	assert_int_equal(f->left->state, IBV_QPS_RTS);
	assert_int_equal(ibv_query_qp(f->left, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(f->left->state, IBV_QPS_ERR);
	attr.qp_state = IBV_QPS_RESET;
	assert_int_equal(ibv_modify_qp(f->left, &attr, IBV_QP_STATE), 0);
	assert_int_equal(f->left->state, IBV_QPS_RESET);
}

static void qp__refuses_attributes_that_no_roce_port_has(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 2 };
	const int init_mask = IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS;
	f->left = fixture_create_qp(f, IBV_QPT_RC, NULL);
	assert_int_equal(ibv_modify_qp(f->left, &attr, init_mask), EINVAL);
	attr.port_num = 1, attr.pkey_index = 1;
	assert_int_equal(ibv_modify_qp(f->left, &attr, init_mask), EINVAL);
	attr.pkey_index = 0;
	assert_int_equal(ibv_modify_qp(f->left, &attr, init_mask & ~IBV_QP_PORT), EINVAL); /* required */
	assert_int_equal(ibv_modify_qp(f->left, &attr, init_mask | IBV_QP_ALT_PATH), EOPNOTSUPP);
	assert_int_equal(f->left->state, IBV_QPS_RESET);
	assert_int_equal(ibv_modify_qp(f->left, &attr, init_mask), 0);
	assert_int_equal(f->left->state, IBV_QPS_INIT);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS };
	assert_int_equal(ibv_modify_qp(f->left, &attr, IBV_QP_STATE), EINVAL);
}

/* ---- post_send, post_recv ---------------------------------------------------------------------------------------- */

/* As the kernel does, and at once, not when the first packet is lost. */
static void qp__to_an_address_without_a_route_is_unreachable(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .ah_attr = fixture_ah_attr() };
	const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	unsigned before, after;
	f->left = fixture_create_qp(f, IBV_QPT_UC, NULL);
	fixture_init_qp(f->left);
	memcpy(rtr.ah_attr.grh.dgid.raw, LOOP_UNROUTED.raw, 16);
	loop_logged(&before);
	assert_int_equal(ibv_modify_qp(f->left, &rtr, mask), ENETUNREACH);
	assert_non_null(strstr(loop_logged(&after), "no route from 10.0.0.1 to 192.0.2.1"));
	assert_int_equal(after, before + 1);
	assert_int_equal(f->left->state, IBV_QPS_INIT);
	for (int i = 0; i < 100; i++) {
		errno = 0;
		assert_null(ibv_create_ah(f->pd, &rtr.ah_attr));
		assert_int_equal(errno, ENETUNREACH);
	}
	loop_logged(&after);
	assert_in_range(after, before + 2, before + 10);
	rtr.ah_attr = fixture_ah_attr();
	assert_int_equal(ibv_modify_qp(f->left, &rtr, mask), 0);
}

/* Programs for InfiniBand, which name the peer by its LID. */
static void qp__without_a_grh_is_refused_with_what_it_needs(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .ah_attr = { .dlid = 3, .port_num = 1 }
	};
	const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	unsigned before, after;
	f->left = fixture_create_qp(f, IBV_QPT_UC, NULL);
	fixture_init_qp(f->left);
	loop_logged(&before);
	assert_int_equal(ibv_modify_qp(f->left, &rtr, mask), EINVAL);
	assert_non_null(strstr(loop_logged(&after), "RoCE needs is_global and sgid_index"));
	assert_int_equal(ibv_modify_qp(f->left, &rtr, mask), EINVAL);
	loop_logged(&after);
	assert_int_equal(after, before + 1);
}

static void post__stops_at_the_first_bad_request(void **state)
{
	struct fixture *f = *state;
	struct ibv_sge from = fixture_sge(f, 0, 8);
	struct ibv_send_wr *bad = NULL;
	struct ibv_send_wr third = { .wr_id = 3, .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE };
	struct ibv_send_wr second = { .wr_id = 2, .next = &third, .opcode = IBV_WR_TSO };
	struct ibv_send_wr first = { .wr_id = 1,
		.next = &second,
		.sg_list = &from,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)f->buffer + 4096, f->mr->rkey } };
	assert_int_equal(ibv_post_send(f->left, &first, &bad), EINVAL);
	assert_ptr_equal(bad, &second);
	assert_int_equal(fixture_complete(f->cq).wr_id, 1);

	struct ibv_sge many[VB_MAX_SGE + 1] = { 0 };
	struct ibv_recv_wr recv = { .sg_list = many, .num_sge = VB_MAX_SGE + 1 }, *bad_recv;
	assert_int_equal(ibv_post_recv(f->left, &recv, &bad_recv), EINVAL);
	assert_ptr_equal(bad_recv, &recv);
	recv.num_sge = -1;
	assert_int_equal(ibv_post_recv(f->left, &recv, &bad_recv), EINVAL);
	recv.num_sge = 0;
	int posted = 0, err;
	while ((err = ibv_post_recv(f->left, &recv, &bad_recv)) == 0 && posted < 100000)
		posted++;
	assert_int_equal(err, ENOMEM);
	assert_true(posted >= 16);
}

static void post__refuses_a_qp_in_reset(void **state)
{
	struct fixture *f = *state;
	f->left = fixture_create_qp(f, IBV_QPT_RC, NULL);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };
	assert_int_equal(fixture_post(f->left, wr), EINVAL);
	assert_int_equal(fixture_post_recv(f->left, 1, NULL), EINVAL);
}

static void post__rdma_and_atomics_reach_memory(void **state)
{
	struct fixture *f = *state;
	struct ibv_sge sge = fixture_sge(f, 0, 3000);
	for (int i = 0; i < 3000; i++)
		f->buffer[i] = (uint8_t)(i * 7 + 1);
	struct ibv_send_wr wr = { .wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)f->buffer + 4096, f->mr->rkey } };
	assert_int_equal(fixture_post(f->left, wr), 0);
	assert_int_equal(fixture_complete(f->cq).opcode, IBV_WC_RDMA_WRITE);
	assert_memory_equal(f->buffer, f->buffer + 4096, 3000);

	sge = fixture_sge(f, 8192, 3000);
	wr.opcode = IBV_WR_RDMA_READ;
	assert_int_equal(fixture_post(f->left, wr), 0);
	assert_int_equal(fixture_complete(f->cq).opcode, IBV_WC_RDMA_READ);
	assert_memory_equal(f->buffer, f->buffer + 8192, 3000);

	uint64_t *word = (uint64_t *)(f->buffer + 4096), before;
	*word = 5;
	sge = fixture_sge(f, 0, 8);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = (uintptr_t)word;
	wr.wr.atomic.rkey = f->mr->rkey;
	wr.wr.atomic.compare_add = 10;
	assert_int_equal(fixture_post(f->left, wr), 0);
	assert_int_equal(fixture_complete(f->cq).opcode, IBV_WC_FETCH_ADD);
	memcpy(&before, f->buffer, 8);
	assert_int_equal(before, 5);
	assert_int_equal(*word, 15);
	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.compare_add = 15;
	wr.wr.atomic.swap = 99;
	assert_int_equal(fixture_post(f->left, wr), 0);
	assert_int_equal(fixture_complete(f->cq).opcode, IBV_WC_COMP_SWAP);
	assert_int_equal(*word, 99);
}

static void post__immediates_and_inline_data_arrive(void **state)
{
	struct fixture *f = *state;
	struct ibv_sge to = fixture_sge(f, 4096, 64);
	char text[] = "inline needs no region";
	struct ibv_sge from = { (uintptr_t)text, sizeof(text), 0 };
	assert_int_equal(fixture_post_recv(f->right, 1, &to), 0);
	struct ibv_send_wr wr = { .sg_list = &from,
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.send_flags = IBV_SEND_INLINE,
		.imm_data = 0xCAFE };
	assert_int_equal(fixture_post(f->left, wr), 0);
	struct ibv_wc wc = fixture_complete(f->cq);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, 0xCAFE);
	assert_int_equal(wc.byte_len, sizeof(text));
	assert_string_equal((char *)f->buffer + 4096, text);
	char big[100];
	from = (struct ibv_sge){ (uintptr_t)big, sizeof(big), 0 };
	assert_int_equal(fixture_post(f->left, wr), EINVAL); /* 64 bytes were granted */
}

/* ---- Windows ----------------------------------------------------------------------------------------------------- */

static enum ibv_wc_status write_through(struct fixture *f, uint32_t rkey, unsigned offset)
{
	struct ibv_sge from = fixture_sge(f, 0, 8);
	struct ibv_send_wr wr = { .sg_list = &from,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)f->buffer + offset, rkey } };
	assert_int_equal(fixture_post(f->left, wr), 0);
	return fixture_complete(f->cq).status;
}

static void mw__type_1_is_bound_by_ibv_bind_mw(void **state)
{
	struct fixture *f = *state;
	struct ibv_mw *mw = ibv_alloc_mw(f->pd, IBV_MW_TYPE_1);
	assert_non_null(mw);
	uint32_t old = mw->rkey;
	struct ibv_mw_bind bind = { .wr_id = 4,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { f->mr, (uintptr_t)f->buffer + 4096, 64, IBV_ACCESS_REMOTE_WRITE } };
	assert_int_equal(ibv_bind_mw(f->right, mw, &bind), 0);
	assert_int_not_equal(mw->rkey, old);
	struct ibv_wc wc = fixture_complete(f->cq);
	assert_int_equal(wc.opcode, IBV_WC_BIND_MW);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(write_through(f, mw->rkey, 4096), IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(f->mr), EBUSY);
	assert_int_equal(write_through(f, mw->rkey, 4096 + 64), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

static void mw__type_2_is_bound_and_invalidated_by_requests(void **state)
{
	struct fixture *f = *state;
	struct ibv_mw *mw = ibv_alloc_mw(f->pd, IBV_MW_TYPE_2);
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	struct ibv_send_wr bind = {
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { mw, rkey,
			{ f->mr, (uintptr_t)f->buffer + 4096, 64, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE } }
	};
	assert_int_equal(fixture_post(f->right, bind), 0);
	assert_int_equal(fixture_complete(f->cq).status, IBV_WC_SUCCESS);
	assert_int_equal(write_through(f, rkey, 4096), IBV_WC_SUCCESS);
	/* the peer sends an invalidation along */
	struct ibv_sge to = fixture_sge(f, 8192, 64), from = fixture_sge(f, 0, 8);
	assert_int_equal(fixture_post_recv(f->right, 1, &to), 0);
	struct ibv_send_wr send = {
		.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = rkey
	};
	assert_int_equal(fixture_post(f->left, send), 0);
	struct ibv_wc wc = fixture_complete(f->cq);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, rkey);
	assert_int_equal(write_through(f, rkey, 4096), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

/* ---- Datagrams --------------------------------------------------------------------------------------------------- */

static void ud__carries_its_header_and_can_be_answered(void **state)
{
	struct fixture *f = *state;
	f->left = fixture_create_qp(f, IBV_QPT_UD, NULL);
	f->right = fixture_create_qp(f, IBV_QPT_UD, NULL);
	fixture_start_ud(f->left);
	fixture_start_ud(f->right);
	struct ibv_ah_attr attr = fixture_ah_attr();
	struct ibv_ah *ah = ibv_create_ah(f->pd, &attr);
	struct ibv_sge to = fixture_sge(f, 4096, 40 + 64), from = fixture_sge(f, 0, 64);
	memset(f->buffer, 0x33, 64);
	assert_int_equal(fixture_post_recv(f->right, 1, &to), 0);
	struct ibv_send_wr wr = {
		.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND, .wr.ud = { ah, f->right->qp_num, QKEY }
	};
	assert_int_equal(fixture_post(f->left, wr), 0);
	struct ibv_wc wc = fixture_complete(f->cq);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, 104);
	assert_int_equal(wc.src_qp, f->left->qp_num);
	assert_true(wc.wc_flags & IBV_WC_GRH);
	assert_int_equal(wc.sl, 0xA); /* IPv4 */
	assert_memory_equal(f->buffer + 4096 + 40, f->buffer, 64);
	struct ibv_ah *back = ibv_create_ah_from_wc(f->pd, &wc, (struct ibv_grh *)(f->buffer + 4096), 1);
	assert_non_null(back);
	assert_int_equal(ibv_destroy_ah(back), 0);
	wr.wr.ud.ah = NULL;
	assert_int_equal(fixture_post(f->left, wr), EINVAL);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void mcast__a_group_reaches_who_is_attached(void **state)
{
	struct fixture *f = *state;
	struct vb_gid mapped = vb_gid_from_ipv4(224, 1, 2, 3);
	union ibv_gid group, not_a_group = { { [10] = 0xff, 0xff, 10, 0, 0, 1 } };
	memcpy(group.raw, mapped.raw, 16);
	f->left = fixture_create_qp(f, IBV_QPT_UD, NULL);
	f->right = fixture_create_qp(f, IBV_QPT_UD, NULL);
	fixture_start_ud(f->left);
	fixture_start_ud(f->right);
	assert_int_equal(ibv_attach_mcast(f->right, &not_a_group, 0), EINVAL);
	assert_int_equal(ibv_detach_mcast(f->right, &group, 0), EINVAL);
	assert_int_equal(ibv_attach_mcast(f->right, &group, 0), 0);
	assert_int_equal(ibv_attach_mcast(f->right, &group, 0), 0); /* twice is once */
	assert_int_equal(loop_groups(), 1);
	assert_int_equal(ibv_destroy_qp(f->right), EBUSY);

	struct ibv_ah_attr attr = fixture_ah_attr();
	attr.grh.dgid = group;
	struct ibv_ah *ah = ibv_create_ah(f->pd, &attr);
	struct ibv_sge to = fixture_sge(f, 4096, 104), from = fixture_sge(f, 0, 64);
	assert_int_equal(fixture_post_recv(f->right, 6, &to), 0);
	struct ibv_send_wr wr = {
		.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND, .wr.ud = { ah, 0xffffff, QKEY }
	};
	assert_int_equal(fixture_post(f->left, wr), 0);
	assert_int_equal(fixture_complete(f->cq).wr_id, 6);
	assert_int_equal(ibv_detach_mcast(f->right, &group, 0), 0);
	assert_int_equal(loop_groups(), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void uc__writes_without_answers(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .ah_attr = fixture_ah_attr() };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS };
	f->left = fixture_create_qp(f, IBV_QPT_UC, NULL);
	f->right = fixture_create_qp(f, IBV_QPT_UC, NULL);
	for (int i = 0; i < 2; i++) {
		struct ibv_qp *qp = i ? f->left : f->right, *other = i ? f->right : f->left;
		rtr.dest_qp_num = other->qp_num;
		fixture_init_qp(qp);
		assert_int_equal(ibv_modify_qp(qp, &rtr,
					 IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN),
			0);
		assert_int_equal(ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	}
	memset(f->buffer, 0x77, 3000);
	struct ibv_sge from = fixture_sge(f, 0, 3000);
	struct ibv_send_wr wr = { .sg_list = &from,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)f->buffer + 4096, f->mr->rkey } };
	assert_int_equal(fixture_post(f->left, wr), 0);
	assert_int_equal(fixture_complete(f->cq).status, IBV_WC_SUCCESS);
	assert_memory_equal(f->buffer + 4096, f->buffer, 3000);
	wr.opcode = IBV_WR_RDMA_READ;
	assert_int_equal(fixture_post(f->left, wr), EINVAL);
}

int main(void)
{
#define WITH_DEVICE(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)
#define WITH_QPS(name)    cmocka_unit_test_setup_teardown(name, fixture_connect_rc, fixture_close)
	const struct CMUnitTest tests[] = {
		WITH_DEVICE(qp__creation_fails_above_the_limits),
		WITH_DEVICE(qp__objects_must_be_of_one_context),
		WITH_DEVICE(qp__creation_writes_back_what_was_granted),
		WITH_QPS(qp__attributes_come_back_as_they_were_set),
		WITH_QPS(qp__state_changes_only_by_calls_that_name_it),
		WITH_DEVICE(qp__refuses_attributes_that_no_roce_port_has),
		WITH_DEVICE(qp__to_an_address_without_a_route_is_unreachable),
		WITH_DEVICE(qp__without_a_grh_is_refused_with_what_it_needs),
		WITH_QPS(post__stops_at_the_first_bad_request),
		WITH_DEVICE(post__refuses_a_qp_in_reset),
		WITH_QPS(post__rdma_and_atomics_reach_memory),
		WITH_QPS(post__immediates_and_inline_data_arrive),
		WITH_QPS(mw__type_1_is_bound_by_ibv_bind_mw),
		WITH_QPS(mw__type_2_is_bound_and_invalidated_by_requests),
		WITH_DEVICE(ud__carries_its_header_and_can_be_answered),
		WITH_DEVICE(mcast__a_group_reaches_who_is_attached),
		WITH_DEVICE(uc__writes_without_answers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
