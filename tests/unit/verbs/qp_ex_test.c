/* The ibv_wr_* way of posting: which operations there are, batches, and that each does what the request of the same
 * name does. */
#include <string.h>
#include "fixture.h"
#include "loop_host.h"

static struct ibv_qp *create_ex(struct fixture *f, enum ibv_qp_type type, uint64_t operations)
{
	struct ibv_qp_init_attr_ex attr;
	memset(&attr, 0xAB, sizeof(attr)); /* only what comp_mask names may be read */
	attr.qp_context = f;
	attr.send_cq = attr.recv_cq = f->cq;
	attr.srq = NULL;
	attr.cap = (struct ibv_qp_cap){ 8, 8, 2, 2, 64 };
	attr.qp_type = type;
	attr.sq_sig_all = 0;
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.pd = f->pd;
	attr.send_ops_flags = operations;
	errno = 0;
	return ibv_create_qp_ex(f->context, &attr);
}

static struct ibv_qp_ex *connect_ex(struct fixture *f)
{
	f->left = create_ex(f, IBV_QPT_RC, 0x3ff);
	assert_non_null(f->left);
	f->right = fixture_create_qp(f, IBV_QPT_RC, NULL);
	fixture_connect(f->left, f->right->qp_num);
	fixture_connect(f->right, f->left->qp_num);
	return ibv_qp_to_qp_ex(f->left);
}

static void wr__operations_are_checked_at_creation(void **state)
{
	struct fixture *f = *state;
	assert_null(create_ex(f, IBV_QPT_RC, IBV_QP_EX_WITH_TSO));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(create_ex(f, IBV_QPT_UD, IBV_QP_EX_WITH_ATOMIC_WRITE));
	assert_null(create_ex(f, IBV_QPT_UD, IBV_QP_EX_WITH_RDMA_WRITE));
	assert_null(create_ex(f, IBV_QPT_UC, IBV_QP_EX_WITH_RDMA_READ));
	struct ibv_qp_init_attr_ex attr = { .comp_mask = 1 << 30 };
	assert_null(ibv_create_qp_ex(f->context, &attr));
	assert_int_equal(errno, EINVAL);
	/* Newer headers look behind the structure: behind FLUSH nothing may be there. */
	f->left = create_ex(f, IBV_QPT_RC, IBV_QP_EX_WITH_SEND);
	assert_null(*(void **)((char *)ibv_qp_to_qp_ex(f->left) + sizeof(struct ibv_qp) + 200));
}

/* As a program built with later headers calls it: the operation behind today's structure. */
static void wr__flush_is_there_for_later_programs(void **state)
{
	struct fixture *f = *state;
	typedef void (*flush)(struct ibv_qp_ex *, uint32_t, uint64_t, size_t, uint8_t, uint8_t);
	const int access_flush = 1 << 8;
	assert_null(create_ex(f, IBV_QPT_UC, 1 << 11));
	f->left = create_ex(f, IBV_QPT_RC, 1 << 11);
	assert_non_null(f->left);
	f->right = fixture_create_qp(f, IBV_QPT_RC, NULL);
	fixture_connect(f->left, f->right->qp_num);
	fixture_connect(f->right, f->left->qp_num);
	struct ibv_qp_attr attr = { .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | access_flush };
	assert_int_equal(ibv_modify_qp(f->right, &attr, IBV_QP_ACCESS_FLAGS), 0);
	struct ibv_mr *mr = ibv_reg_mr(f->pd, f->buffer, 4096, IBV_ACCESS_LOCAL_WRITE | access_flush);
	assert_non_null(mr);
	assert_null(ibv_reg_mr(f->pd, f->buffer, 4096, IBV_ACCESS_LOCAL_WRITE | 1 << 9)); /* persistent */

	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(f->left);
	flush wr_flush = *(flush *)((char *)qp + sizeof(struct ibv_qp) + 192); /* behind the operations of release 44 */
	ibv_wr_start(qp);
	qp->wr_id = 1, qp->wr_flags = IBV_SEND_SIGNALED;
	wr_flush(qp, mr->rkey, (uintptr_t)f->buffer, 4096, 1, 0);
	assert_int_equal(ibv_wr_complete(qp), 0);
	struct ibv_wc wc = fixture_complete(f->cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, 8);
	ibv_wr_start(qp);
	wr_flush(qp, mr->rkey, (uintptr_t)f->buffer, 1ull << 32, 1, 0);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	ibv_wr_start(qp);
	wr_flush(qp, f->mr->rkey, (uintptr_t)f->buffer, 8, 1, 0); /* of a region that does not allow it */
	assert_int_equal(ibv_wr_complete(qp), 0);
	assert_int_equal(fixture_complete(f->cq).status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void wr__atomic_write_needs_no_inline_room(void **state)
{
	struct fixture *f = *state;
	uint64_t *word = (uint64_t *)(f->buffer + 4096), value = 0x1122334455667788;
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = f->pd,
		.send_cq = f->cq,
		.recv_cq = f->cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1 },
		.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE };
	f->left = ibv_create_qp_ex(f->context, &attr);
	assert_non_null(f->left);
	f->right = fixture_create_qp(f, IBV_QPT_RC, NULL);
	fixture_connect(f->left, f->right->qp_num);
	fixture_connect(f->right, f->left->qp_num);
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(f->left);
	ibv_wr_start(qp);
	qp->wr_id = 1, qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(qp, f->mr->rkey, (uintptr_t)word, &value);
	value = 0; /* ours again */
	assert_int_equal(ibv_wr_complete(qp), 0);
	struct ibv_wc wc = fixture_complete(f->cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_ATOMIC_WRITE);
	assert_true(*word == 0x1122334455667788);
	/* By list: eight bytes, no more and no less. */
	f->buffer[0] = 0x77;
	struct ibv_sge sge = fixture_sge(f, 0, 8);
	struct ibv_send_wr wr = { .opcode = IBV_WR_ATOMIC_WRITE,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)word, .rkey = f->mr->rkey } };
	assert_int_equal(fixture_post(f->left, wr), 0);
	assert_int_equal(fixture_complete(f->cq).status, IBV_WC_SUCCESS);
	assert_memory_equal(word, f->buffer, 8);
	sge.length = 7;
	assert_int_equal(fixture_post(f->left, wr), EINVAL);
	wr.num_sge = 0;
	assert_int_equal(fixture_post(f->left, wr), EINVAL);
	attr.qp_type = IBV_QPT_UC;
	assert_null(ibv_create_qp_ex(f->context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
}

static void wr__a_batch_is_posted_at_complete(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_ex *qp = connect_ex(f);
	struct ibv_sge to = fixture_sge(f, 8192, 64);
	struct ibv_wc wc;
	uint64_t *word = (uint64_t *)(f->buffer + 4096);
	char text[16] = "inline";
	memset(f->buffer, 0x5A, 64);
	assert_int_equal(fixture_post_recv(f->right, 4, &to), 0);

	ibv_wr_start(qp);
	qp->wr_id = 1, qp->wr_flags = 0;
	ibv_wr_rdma_write(qp, f->mr->rkey, (uintptr_t)f->buffer + 5000);
	ibv_wr_set_sge(qp, f->mr->lkey, (uintptr_t)f->buffer, 64);
	qp->wr_id = 2, qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_fetch_add(qp, f->mr->rkey, (uintptr_t)word, 3);
	ibv_wr_set_sge(qp, f->mr->lkey, (uintptr_t)f->buffer + 256, 8);
	qp->wr_id = 3, qp->wr_flags = 0;
	ibv_wr_send_imm(qp, 0xBEEF);
	ibv_wr_set_inline_data(qp, text, sizeof(text));
	memset(text, 0, sizeof(text)); /* ours again */
	assert_int_equal(ibv_poll_cq(f->cq, 1, &wc), 0);
	assert_int_equal(ibv_wr_complete(qp), 0);

	bool is_received = false, is_added = false;
	for (int i = 0; i < 2; i++) {
		wc = fixture_complete(f->cq);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		is_received |= wc.opcode == IBV_WC_RECV && wc.imm_data == 0xBEEF && wc.byte_len == 16;
		is_added |= wc.opcode == IBV_WC_FETCH_ADD && wc.wr_id == 2;
	}
	assert_true(is_received && is_added);
	assert_int_equal(*word, 3);
	assert_string_equal((char *)f->buffer + 8192, "inline");
	assert_memory_equal(f->buffer, f->buffer + 5000, 64);
}

static void wr__an_error_or_abort_posts_nothing(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_ex *qp = connect_ex(f);
	struct ibv_sge many[VB_MAX_SGE + 1] = { 0 };
	struct ibv_wc wc;
	qp->wr_id = 1, qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_start(qp);
	ibv_wr_rdma_write(qp, f->mr->rkey, (uintptr_t)f->buffer);
	ibv_wr_set_sge(qp, f->mr->lkey, (uintptr_t)f->buffer, 8);
	ibv_wr_rdma_write(qp, f->mr->rkey, (uintptr_t)f->buffer);
	ibv_wr_set_sge_list(qp, VB_MAX_SGE + 1, many);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	ibv_wr_start(qp);
	ibv_wr_rdma_write(qp, f->mr->rkey, (uintptr_t)f->buffer);
	ibv_wr_set_sge(qp, f->mr->lkey, (uintptr_t)f->buffer, 8);
	ibv_wr_abort(qp);
	ibv_wr_start(qp);
	for (int i = 0; i < 10000; i++)
		ibv_wr_rdma_write(qp, f->mr->rkey, (uintptr_t)f->buffer);
	assert_int_equal(ibv_wr_complete(qp), ENOMEM);
	for (int i = 0; i < 10; i++)
		assert_int_equal(ibv_poll_cq(f->cq, 1, &wc), 0);
	/* and the queue is whole: all of it can still be filled */
	ibv_wr_start(qp);
	qp->wr_id = 9;
	ibv_wr_rdma_read(qp, f->mr->rkey, (uintptr_t)f->buffer);
	ibv_wr_set_sge(qp, f->mr->lkey, (uintptr_t)f->buffer + 64, 8);
	assert_int_equal(ibv_wr_complete(qp), 0);
	assert_int_equal(fixture_complete(f->cq).wr_id, 9);
}

static void wr__datagram_setters_come_in_any_order(void **state)
{
	struct fixture *f = *state;
	struct ibv_ah_attr attr = fixture_ah_attr();
	struct ibv_ah *ah = ibv_create_ah(f->pd, &attr);
	f->left = create_ex(f, IBV_QPT_UD, IBV_QP_EX_WITH_SEND);
	f->right = fixture_create_qp(f, IBV_QPT_UD, NULL);
	fixture_start_ud(f->left);
	fixture_start_ud(f->right);
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(f->left);
	struct ibv_sge to = fixture_sge(f, 4096, 104);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fixture_post_recv(f->right, 1, &to), 0);
	qp->wr_flags = 0;
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, f->mr->lkey, (uintptr_t)f->buffer, 64);
	ibv_wr_set_ud_addr(qp, ah, f->right->qp_num, QKEY);
	ibv_wr_send(qp);
	ibv_wr_set_ud_addr(qp, ah, f->right->qp_num, QKEY);
	ibv_wr_set_sge(qp, f->mr->lkey, (uintptr_t)f->buffer, 32);
	assert_int_equal(ibv_wr_complete(qp), 0);
	assert_int_equal(fixture_complete(f->cq).byte_len, 104);
	assert_int_equal(fixture_complete(f->cq).byte_len, 72);
	ibv_wr_start(qp);
	ibv_wr_send(qp); /* to nobody */
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* ---- Against ibv_post_send --------------------------------------------------------------------------------------- */

struct outcome {
	struct ibv_wc sent, received;
	bool is_told; /* of something solicited */
	uint8_t memory[BUFFER_BYTES];
};

enum { TARGET = 4096, RESULT = 256, RECEIVED = 8192 };

static bool is_received(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static struct ibv_sge source_of(struct fixture *f, enum ibv_wr_opcode opcode)
{
	bool is_result = opcode == IBV_WR_RDMA_READ || is_atomic(opcode);
	return fixture_sge(f, is_result ? RESULT : 0, is_atomic(opcode) ? 8 : 48);
}

static void post(struct fixture *f, enum ibv_wr_opcode opcode)
{
	uintptr_t target = (uintptr_t)f->buffer + TARGET;
	struct ibv_sge sge = source_of(f, opcode);
	struct ibv_send_wr wr = { .wr_id = 5, .sg_list = &sge, .num_sge = 1, .opcode = opcode };

	wr.send_flags = IBV_SEND_SIGNALED | (is_received(opcode) ? IBV_SEND_SOLICITED : 0);
	wr.imm_data = 0xABCD;
	if (is_atomic(opcode)) {
		wr.wr.atomic.remote_addr = target;
		wr.wr.atomic.rkey = f->mr->rkey;
		wr.wr.atomic.compare_add = 0x1111111111111111;
		wr.wr.atomic.swap = 0x2222222222222222;
	} else {
		wr.wr.rdma.remote_addr = target;
		wr.wr.rdma.rkey = f->mr->rkey;
	}
	assert_int_equal(fixture_post(f->left, wr), 0);
}

static void build_opcode(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode, uint32_t rkey, uintptr_t target)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qp, rkey, target);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qp, rkey, target, 0xABCD);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qp, rkey, target);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(qp, rkey, target, 0x1111111111111111, 0x2222222222222222);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(qp, rkey, target, 0x1111111111111111);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qp, 0xABCD);
		break;
	default:
		ibv_wr_send(qp);
	}
}

static void build(struct fixture *f, enum ibv_wr_opcode opcode)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(f->left);
	struct ibv_sge sge = source_of(f, opcode);

	ibv_wr_start(qp);
	qp->wr_id = 5;
	qp->wr_flags = IBV_SEND_SIGNALED | (is_received(opcode) ? IBV_SEND_SOLICITED : 0);
	build_opcode(qp, opcode, f->mr->rkey, (uintptr_t)f->buffer + TARGET);
	ibv_wr_set_sge_list(qp, 1, &sge);
	assert_int_equal(ibv_wr_complete(qp), 0);
}

static void run(struct fixture *f, enum ibv_wr_opcode opcode, bool is_built, struct outcome *outcome)
{
	struct ibv_sge to = fixture_sge(f, RECEIVED, 64);

	memset(outcome, 0, sizeof(*outcome));
	memset(f->buffer, 0, sizeof(f->buffer));
	memset(f->buffer, 0x5A, 64);
	memset(f->buffer + TARGET, 0x11, 64);
	if (is_received(opcode))
		assert_int_equal(fixture_post_recv(f->right, 6, &to), 0);
	assert_int_equal(ibv_req_notify_cq(f->cq, 1), 0);
	(is_built ? build : post)(f, opcode);
	for (int i = 0; i < 1 + is_received(opcode); i++) {
		struct ibv_wc wc = fixture_complete(f->cq);
		*(wc.qp_num == f->left->qp_num ? &outcome->sent : &outcome->received) = wc;
	}
	outcome->is_told = fixture_is_readable(f->channel->fd);
	if (outcome->is_told) {
		struct ibv_cq *cq;
		void *context;
		assert_int_equal(ibv_get_cq_event(f->channel, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
	}
	memcpy(outcome->memory, f->buffer, sizeof(f->buffer));
}

static void expect_same_completion(const struct ibv_wc *a, const struct ibv_wc *b)
{
	assert_int_equal(a->status, b->status);
	assert_int_equal(a->wr_id, b->wr_id);
	assert_int_equal(a->opcode, b->opcode);
	assert_int_equal(a->byte_len, b->byte_len);
	assert_int_equal(a->wc_flags, b->wc_flags);
	if (a->wc_flags & IBV_WC_WITH_IMM)
		assert_int_equal(a->imm_data, b->imm_data);
}

static void wr__does_what_the_request_of_the_same_name_does(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ,
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD };
	static struct outcome posted, built;
	struct fixture *f = *state;

	connect_ex(f);
	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		run(f, opcodes[i], false, &posted);
		run(f, opcodes[i], true, &built);
		assert_int_equal(posted.sent.status, IBV_WC_SUCCESS);
		expect_same_completion(&posted.sent, &built.sent);
		expect_same_completion(&posted.received, &built.received);
		assert_int_equal(posted.is_told, is_received(opcodes[i]));
		assert_int_equal(built.is_told, posted.is_told);
		assert_memory_equal(posted.memory, built.memory, BUFFER_BYTES);
	}
}

/* Of the one before: neither its immediate data, nor its flags, nor its list. */
static void wr__begins_with_nothing_of_another(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_ex *qp = connect_ex(f);
	struct ibv_sge to = fixture_sge(f, RECEIVED, 64);
	struct ibv_wc wc;

	for (int i = 0; i < 2; i++)
		assert_int_equal(fixture_post_recv(f->right, (uint64_t)i, &to), 0);
	ibv_wr_start(qp);
	qp->wr_id = 8, qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_imm(qp, 0xABCD);
	ibv_wr_set_inline_data(qp, "text", 4);
	qp->wr_id = 9, qp->wr_flags = 0;
	ibv_wr_send(qp);
	assert_int_equal(ibv_wr_complete(qp), 0);
	for (int i = 0; i < 3; i++) {
		wc = fixture_complete(f->cq);
		if (wc.qp_num == f->left->qp_num) {
			assert_int_equal(wc.wr_id, 8);
			continue;
		}
		assert_int_equal(wc.byte_len, wc.wr_id ? 0 : 4);
		assert_int_equal(wc.wc_flags & IBV_WC_WITH_IMM, wc.wr_id ? 0 : IBV_WC_WITH_IMM);
	}
	assert_int_equal(ibv_poll_cq(f->cq, 1, &wc), 0);
}

static void wr__inline_data_is_gathered_up_to_its_room(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_ex *qp = connect_ex(f);
	struct ibv_sge to = fixture_sge(f, RECEIVED, 64);
	struct ibv_data_buf parts[3] = { { "ab", 2 }, { NULL, 0 }, { "cde", 3 } };
	static char large[VB_MAX_INLINE];

	assert_int_equal(fixture_post_recv(f->right, 6, &to), 0);
	qp->wr_flags = 0;
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_inline_data_list(qp, 3, parts);
	assert_int_equal(ibv_wr_complete(qp), 0);
	assert_int_equal(fixture_complete(f->cq).byte_len, 5);
	assert_memory_equal(f->buffer + RECEIVED, "abcde", 5);
	parts[1] = (struct ibv_data_buf){ large, sizeof(large) - 4 };
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_inline_data_list(qp, 3, parts);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
}

/* ---- Windows ----------------------------------------------------------------------------------------------------- */

static enum ibv_wc_status write_through(struct fixture *f, uint32_t rkey)
{
	struct ibv_sge from = fixture_sge(f, 0, 8);
	struct ibv_send_wr wr = { .sg_list = &from,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)f->buffer + TARGET, rkey } };
	assert_int_equal(fixture_post(f->right, wr), 0);
	return fixture_complete(f->cq).status;
}

static void bind(struct fixture *f, struct ibv_mw *mw, uint32_t rkey, int expected)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(f->left);
	struct ibv_mw_bind_info info = { f->mr, (uintptr_t)f->buffer + TARGET, 64, IBV_ACCESS_REMOTE_WRITE };

	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_bind_mw(qp, mw, rkey, &info);
	assert_int_equal(ibv_wr_complete(qp), expected);
	if (!expected)
		assert_int_equal(fixture_complete(f->cq).opcode, IBV_WC_BIND_MW);
}

static void wr__window_is_bound_and_invalidated_at_home(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_ex *qp = connect_ex(f);
	struct ibv_mw *mw = ibv_alloc_mw(f->pd, IBV_MW_TYPE_2), *other = ibv_alloc_mw(f->pd, IBV_MW_TYPE_1);
	uint32_t rkey = ibv_inc_rkey(mw->rkey);

	bind(f, other, ibv_inc_rkey(other->rkey), EINVAL); /* ibv_bind_mw's */
	bind(f, mw, rkey, 0);
	assert_int_equal(write_through(f, rkey), IBV_WC_SUCCESS);
	ibv_wr_start(qp);
	ibv_wr_local_inv(qp, rkey);
	assert_int_equal(ibv_wr_complete(qp), 0);
	assert_int_equal(fixture_complete(f->cq).opcode, IBV_WC_LOCAL_INV);
	assert_int_equal(write_through(f, rkey), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dealloc_mw(other), 0);
}

static void wr__window_is_invalidated_from_afar(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_ex *qp = connect_ex(f);
	struct ibv_mw *mw = ibv_alloc_mw(f->pd, IBV_MW_TYPE_2);
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { mw, rkey, { f->mr, (uintptr_t)f->buffer + TARGET, 64, IBV_ACCESS_REMOTE_WRITE } } };

	assert_int_equal(fixture_post(f->right, wr), 0);
	assert_int_equal(fixture_complete(f->cq).status, IBV_WC_SUCCESS);
	assert_int_equal(fixture_post_recv(f->right, 6, NULL), 0);
	qp->wr_flags = 0;
	ibv_wr_start(qp);
	ibv_wr_send_inv(qp, rkey);
	assert_int_equal(ibv_wr_complete(qp), 0);
	struct ibv_wc wc = fixture_complete(f->cq);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, rkey);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

int main(void)
{
#define WITH_DEVICE(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)
	const struct CMUnitTest tests[] = {
		WITH_DEVICE(wr__operations_are_checked_at_creation),
		WITH_DEVICE(wr__flush_is_there_for_later_programs),
		WITH_DEVICE(wr__atomic_write_needs_no_inline_room),
		WITH_DEVICE(wr__a_batch_is_posted_at_complete),
		WITH_DEVICE(wr__an_error_or_abort_posts_nothing),
		WITH_DEVICE(wr__datagram_setters_come_in_any_order),
		WITH_DEVICE(wr__does_what_the_request_of_the_same_name_does),
		WITH_DEVICE(wr__begins_with_nothing_of_another),
		WITH_DEVICE(wr__inline_data_is_gathered_up_to_its_room),
		WITH_DEVICE(wr__window_is_bound_and_invalidated_at_home),
		WITH_DEVICE(wr__window_is_invalidated_from_afar),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
