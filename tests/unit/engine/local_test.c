/* Requests that go as descriptors: what they do, every refusal, waiting, and whatever ends in the middle. That they do
 * what packets do is local_alike_test.c, READs are local_read_test.c's. */
#include <errno.h>
#include "base/random.h"
#include "local.h"

static void assert_arrived(struct pair *p, uint32_t length)
{
	assert_memory_equal(p->side[1].memory + PLACE, p->side[0].memory + SOURCE, length);
	assert_int_equal(p->side[1].memory[PLACE + length], 0);
}

static const uint32_t lengths[] = { 0, 1, 8, VB_LOCAL_INLINE, VB_LOCAL_INLINE + 1, 4096, 4097, VB_LOCAL_PART,
	VB_LOCAL_PART + 1, LONG };

static void try_send(enum vb_qp_type type, uint32_t length, uint32_t lend_from)
{
	struct pair *p = pair_open(type, true, lend_from);
	fill(p, 0, SOURCE, length);
	pair_post_receive(p, 1, 5, PLACE, LONG);
	pair_post(p, 0, VB_WR_SEND, SOURCE, length, 0);
	pair_settle(p);
	assert_arrived(p, length);
	assert_int_equal(pair_completion(p, 1).byte_len, length);
	assert_done(p, VB_WC_SEND);
	assert_int_equal(p->pulls > 0, lend_from && length >= lend_from);
	assert_nothing_more(p);
	pair_close(p);
}

static void send__of_any_length_arrives(void **state)
{
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		try_send(VB_QP_RC, lengths[i], 0);
		try_send(VB_QP_RC, lengths[i], LENDS);
		try_send(VB_QP_UC, lengths[i], 0);
		try_send(VB_QP_UC, lengths[i], LENDS);
	}
}

static void try_write(uint32_t length, uint32_t lend_from, bool has_imm)
{
	struct pair *p = pair_open(VB_QP_RC, true, lend_from);
	struct vb_sge sge = pair_sge(p, 0, SOURCE, length);
	struct vb_send_wr wr = pair_wr(p, 0, has_imm ? VB_WR_RDMA_WRITE_WITH_IMM : VB_WR_RDMA_WRITE, &sge, PLACE);
	wr.imm_or_inv = 99;
	fill(p, 0, SOURCE, length);
	if (has_imm)
		pair_post_receive(p, 1, 5, 0, 0);
	assert_int_equal(pair_try_post(p, 0, &wr), 0);
	pair_settle(p);
	assert_arrived(p, length);
	assert_done(p, VB_WC_RDMA_WRITE);
	if (has_imm) {
		struct vb_wc wc = pair_completion(p, 1);
		assert_int_equal(wc.opcode, VB_WC_RECV_RDMA_WITH_IMM);
		assert_int_equal(wc.imm_or_inv, 99);
		assert_int_equal(wc.byte_len, length);
	}
	assert_nothing_more(p);
	pair_close(p);
}

static void write__of_any_length_arrives(void **state)
{
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (int kind = 0; kind < 4; kind++)
			try_write(lengths[i], kind & 1 ? LENDS : 0, kind & 2);
}

static void atomics__say_what_was_there(void **state)
{
	struct pair *p = pair_open(VB_QP_RC, true, 0);
	struct vb_sge sge = pair_sge(p, 0, 8, 8);
	struct vb_send_wr add = pair_wr(p, 0, VB_WR_ATOMIC_FETCH_AND_ADD, &sge, PLACE);
	struct vb_send_wr swap = pair_wr(p, 0, VB_WR_ATOMIC_CMP_AND_SWP, &sge, PLACE);
	struct vb_send_wr store = pair_wr(p, 0, VB_WR_ATOMIC_WRITE, NULL, PLACE + 8);
	struct vb_send_wr flush = pair_wr(p, 0, VB_WR_FLUSH, NULL, PLACE);
	add.compare_add = 5;
	swap.compare_add = 5;
	swap.swap = 77;
	store.sge_count = flush.sge_count = 0;
	store.swap = 1234;
	flush.flush_type = VB_FLUSH_GLOBAL;
	flush.flush_length = 64;
	assert_int_equal(pair_try_post(p, 0, &add), 0);
	pair_settle(p);
	assert_done(p, VB_WC_FETCH_ADD);
	assert_int_equal(word_at(p, 0, 8), 0);
	assert_int_equal(pair_try_post(p, 0, &swap), 0);
	assert_int_equal(pair_try_post(p, 0, &store), 0);
	assert_int_equal(pair_try_post(p, 0, &flush), 0);
	pair_settle(p);
	assert_done(p, VB_WC_COMP_SWAP);
	assert_done(p, VB_WC_ATOMIC_WRITE);
	assert_done(p, VB_WC_FLUSH);
	assert_int_equal(word_at(p, 0, 8), 5);
	assert_int_equal(word_at(p, 1, PLACE), 77);
	assert_int_equal(word_at(p, 1, PLACE + 8), 1234);
	pair_close(p);
}

static struct vb_mw *bind_window(struct pair *p, int of)
{
	struct vb_mw *mw;
	assert_int_equal(vb_mw_create(p->side[of].pd, 2, &mw), 0);
	struct vb_send_wr bind = { .opcode = VB_WR_BIND_MW,
		.flags = VB_SEND_SIGNALED,
		.bind = { mw, p->side[of].mr, (1 << 20) + PLACE, 64, VB_ACCESS_REMOTE_WRITE, vb_mw_key(mw) + 1 } };
	assert_int_equal(pair_try_post(p, of, &bind), 0);
	pair_settle(p);
	assert_int_equal(pair_completion(p, of).status, VB_WC_SUCCESS);
	return mw;
}

static void send__with_invalidate_closes_a_window(void **state)
{
	struct pair *p = pair_open(VB_QP_RC, true, 0);
	struct vb_mw *mw = bind_window(p, 1);
	struct vb_sge sge = pair_sge(p, 0, SOURCE, 8);
	struct vb_send_wr wr = pair_wr(p, 0, VB_WR_SEND_WITH_INV, &sge, 0);
	wr.imm_or_inv = vb_mw_key(mw);
	pair_post_receive(p, 1, 5, PLACE, 8);
	assert_int_equal(pair_try_post(p, 0, &wr), 0);
	pair_settle(p);
	assert_int_equal(pair_completion(p, 1).flags, VB_WC_WITH_INV);
	assert_done(p, VB_WC_SEND);
	assert_int_equal(vb_mw_destroy(mw), 0);
	pair_close(p);
}

/* ---- Refusals ---------------------------------------------------------------------------------------------------- */

static void assert_refused(struct pair *p, enum vb_wc_status status, enum vb_cause_kind cause, enum vb_cause_kind peers)
{
	struct vb_cause seen;
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE + 64); /* behind it, and never executed */
	pair_settle(p);
	struct vb_wc wc = pair_completion(p, 0);
	assert_int_equal(wc.status, status);
	assert_int_equal(wc.vendor_err, cause);
	assert_int_equal(pair_completion(p, 0).status, VB_WC_WR_FLUSH_ERR);
	assert_int_equal(vb_qp_state(p->side[0].qp), VB_QPS_ERR);
	assert_int_equal(vb_qp_state(p->side[1].qp), peers ? VB_QPS_ERR : VB_QPS_RTS);
	vb_qp_cause(p->side[1].qp, &seen);
	assert_int_equal(seen.kind, peers);
	assert_int_equal(p->side[1].memory[PLACE + 64], 0);
	assert_true(vb_cq_is_empty(p->side[0].cq));
	pair_close(p);
}

static void refusal__of_a_key(void **state)
{
	static const uint32_t sizes[] = { 8, 1000, LONG };
	for (int i = 0; i < 6; i++) {
		struct pair *p = open_filled(i < 3 ? 0 : LENDS);
		struct vb_sge sge = pair_sge(p, 0, SOURCE, sizes[i % 3]);
		struct vb_send_wr wr = pair_wr(p, 0, VB_WR_RDMA_WRITE, &sge, PLACE);
		wr.rkey ^= 0x100;
		assert_int_equal(pair_try_post(p, 0, &wr), 0);
		assert_refused(p, VB_WC_REM_ACCESS_ERR, VB_CAUSE_NAK_REMOTE_ACCESS, VB_CAUSE_REMOTE_BAD_RKEY);
	}
}

static void refusal__of_a_range(void **state)
{
	static const enum vb_wr_opcode opcodes[] = { VB_WR_RDMA_WRITE, VB_WR_RDMA_READ, VB_WR_ATOMIC_FETCH_AND_ADD };
	for (int i = 0; i < 3; i++) {
		struct pair *p = open_filled(0);
		pair_post(p, 0, opcodes[i], SOURCE, 8, PAIR_BYTES - (i == 2 ? 0 : 7));
		assert_refused(p, VB_WC_REM_ACCESS_ERR, VB_CAUSE_NAK_REMOTE_ACCESS, VB_CAUSE_REMOTE_BAD_RKEY);
	}
}

static void refusal__of_a_right(void **state)
{
	struct pair *p = open_filled(LENDS);
	p->side[1].qp->attr.access = VB_ACCESS_REMOTE_READ;
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, LONG, PLACE);
	assert_refused(p, VB_WC_REM_INV_REQ_ERR, VB_CAUSE_NAK_INVALID_REQUEST, VB_CAUSE_REMOTE_BAD_REQUEST);
}

static void refusal__of_a_crooked_atomic(void **state)
{
	struct pair *p = open_filled(0);
	pair_post(p, 0, VB_WR_ATOMIC_FETCH_AND_ADD, SOURCE, 8, PLACE + 4);
	assert_refused(p, VB_WC_REM_INV_REQ_ERR, VB_CAUSE_NAK_INVALID_REQUEST, VB_CAUSE_REMOTE_BAD_REQUEST);
}

static void refusal__of_reads_that_were_not_granted(void **state)
{
	struct pair *p = open_filled(0);
	p->side[1].qp->attr.max_dest_rd_atomic = 0;
	pair_post(p, 0, VB_WR_RDMA_READ, SOURCE, 8, 0);
	assert_refused(p, VB_WC_REM_INV_REQ_ERR, VB_CAUSE_NAK_INVALID_REQUEST, VB_CAUSE_REMOTE_BAD_REQUEST);
}

static void refusal__of_a_message_that_is_too_long(void **state)
{
	static const uint32_t sizes[] = { 9, 1000, LONG };
	for (int i = 0; i < 6; i++) {
		struct pair *p = open_filled(i < 3 ? 0 : LENDS);
		pair_post_receive(p, 1, 5, PLACE, sizes[i % 3] - 1);
		pair_post(p, 0, VB_WR_SEND, SOURCE, sizes[i % 3], 0);
		pair_settle(p);
		assert_int_equal(pair_completion(p, 1).status, VB_WC_LOC_LEN_ERR);
		assert_int_equal(p->pulls, 0);
		memset(p->side[1].memory + PLACE, 0, LONG); /* parts of it have landed, as packets would */
		assert_refused(p, VB_WC_REM_INV_REQ_ERR, VB_CAUSE_NAK_INVALID_REQUEST, VB_CAUSE_RECV_TOO_SHORT);
	}
}

static void refusal__of_a_receive_without_memory(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct pair *p = open_filled(i ? LENDS : 0);
		struct vb_sge sge = pair_sge(p, 1, PLACE, LONG);
		sge.lkey ^= 0x100;
		assert_int_equal(vb_rq_post(p->side[1].qp, &(struct vb_recv_wr){ .sges = &sge, .sge_count = 1 }), 0);
		pair_post(p, 0, VB_WR_SEND, SOURCE, i ? LONG : 8, 0);
		pair_settle(p);
		if (i) { /* what cannot be pulled comes by the heap, and is judged there */
			assert_int_equal(p->pulls, 0);
			assert_true(p->side[0].qp->local->never_lends);
		}
		assert_int_equal(pair_completion(p, 1).status, VB_WC_LOC_PROT_ERR);
		assert_refused(p, VB_WC_REM_OP_ERR, VB_CAUSE_NAK_REMOTE_OPERATION, VB_CAUSE_RECV_SGE);
	}
}

static void failure__of_our_own_entry_comes_when_it_is_the_oldest(void **state)
{
	struct pair *p = open_filled(LENDS);
	struct vb_sge sge = pair_sge(p, 0, SOURCE, LONG);
	struct vb_send_wr wr = pair_wr(p, 0, VB_WR_RDMA_WRITE, &sge, PLACE);
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE);
	sge.lkey ^= 0x100;
	assert_int_equal(pair_try_post(p, 0, &wr), 0);
	pair_settle(p);
	assert_done(p, VB_WC_RDMA_WRITE);
	assert_refused(p, VB_WC_LOC_PROT_ERR, VB_CAUSE_LOCAL_SGE, VB_CAUSE_NONE);
}

static void failure__of_what_is_lent_and_not_there(void **state)
{
	struct pair *p = open_filled(LENDS);
	p->outcome = VB_PULL_FAULT;
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, LONG, PLACE);
	assert_refused(p, VB_WC_LOC_PROT_ERR, VB_CAUSE_LOCAL_FAULT, VB_CAUSE_NONE);
}

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

/* What was on its way behind the one that found no receive is not executed before it comes again. */
static void rnr__is_asked_again_in_order(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct pair *p = open_filled(i ? LENDS : 0);
		uint32_t length = i ? LONG : 8;
		pair_post(p, 0, VB_WR_SEND, SOURCE, length, 0);
		pair_post(p, 0, VB_WR_SEND_WITH_IMM, SOURCE, length, 0);
		pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, length, PLACE);
		pair_settle(p);
		assert_nothing_more(p);
		assert_int_equal(p->side[1].memory[PLACE], 0);
		pair_post_receive(p, 1, 1, 0, LONG);
		pair_post_receive(p, 1, 2, 0, LONG);
		pair_settle(p);
		assert_nothing_more(p);
		pair_run(p, 2);
		assert_int_equal(pair_completion(p, 1).wr_id, 1);
		struct vb_wc second = pair_completion(p, 1);
		assert_int_equal(second.wr_id, 2);
		assert_int_equal(second.flags, VB_WC_WITH_IMM);
		assert_done(p, VB_WC_SEND);
		assert_done(p, VB_WC_SEND);
		assert_done(p, VB_WC_RDMA_WRITE);
		assert_arrived(p, length);
		assert_nothing_more(p);
		pair_close(p);
	}
}

static void rnr__ends_with_the_retries(void **state)
{
	struct pair *p = open_filled(0);
	pair_post(p, 0, VB_WR_SEND, SOURCE, 8, 0);
	pair_run(p, 8);
	assert_refused(p, VB_WC_RNR_RETRY_EXC_ERR, VB_CAUSE_RNR_RETRY_EXCEEDED, VB_CAUSE_NONE);
}

static void absence__is_waited_for(void **state)
{
	struct pair *p = pair_open_lanes(true, 0);
	for (int i = 0; i < 2; i++)
		p->side[i].qp = pair_qp(&p->side[i], VB_QP_RC, NULL);
	pair_to_rtr(p, 0);
	pair_to_rts(p, 0);
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE);
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE);
	pair_settle(p);
	pair_to_rtr(p, 1);
	pair_run(p, 4);
	assert_done(p, VB_WC_RDMA_WRITE);
	assert_done(p, VB_WC_RDMA_WRITE);
	assert_nothing_more(p);
	pair_close(p);
}

static void absence__ends_with_the_retries(void **state)
{
	struct pair *p = open_filled(0);
	assert_int_equal(vb_qp_destroy(p->side[1].qp), 0);
	p->side[1].qp = NULL;
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE);
	pair_run(p, 3);
	assert_nothing_more(p);
	pair_run(p, 40);
	struct vb_wc wc = pair_completion(p, 0);
	assert_int_equal(wc.status, VB_WC_RETRY_EXC_ERR);
	assert_int_equal(wc.vendor_err, VB_CAUSE_RETRY_EXCEEDED);
	pair_close(p);
}

/* The answer goes by another ring than the ack before it, which a descriptor carries, and is read first. */
static void absence__follows_the_ack_to_what_came_before(void **state)
{
	struct pair *p = open_filled(0);
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE);
	pair_send(p, 0);
	pair_take_descriptors(p, 1, PAIR_RING);
	pair_post(p, 1, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE);
	pair_send(p, 1);
	assert_int_equal(vb_qp_destroy(p->side[1].qp), 0);
	p->side[1].qp = NULL;
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE);
	pair_send(p, 0);
	pair_take_descriptors(p, 1, PAIR_RING);
	pair_send(p, 1);
	pair_take_answers(p, 0);
	assert_done(p, VB_WC_RDMA_WRITE);
	pair_run(p, 43);
	assert_int_equal(pair_completion(p, 0).status, VB_WC_RETRY_EXC_ERR);
	pair_close(p);
}

/* Said again later, it would be taken for an ack of what the next connection asks. */
static void farewell__repeats_only_an_ack_that_a_descriptor_carried(void **state)
{
	for (int is_carried = 0; is_carried < 2; is_carried++) {
		struct pair *p = open_filled(0);
		pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE);
		pair_send(p, 0);
		pair_take_descriptors(p, 1, PAIR_RING);
		if (is_carried)
			pair_post(p, 1, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE);
		pair_send(p, 1);
		assert_int_equal(p->answers, 1 - is_carried);
		vb_local_take_leave(p->side[1].qp);
		pair_send(p, 1);
		assert_int_equal(p->answers, 1);
		assert_int_equal(vb_qp_destroy(p->side[1].qp), 0);
		p->side[1].qp = NULL;
		pair_send(p, 1);
		assert_int_equal(p->answers, 1);
		pair_close(p);
	}
}

/* Nor does another descriptor carry it then. */
static void farewell__goes_as_an_answer_beside_what_is_still_sent(void **state)
{
	struct pair *p = open_filled(0);
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE);
	pair_send(p, 0);
	pair_take_descriptors(p, 1, PAIR_RING);
	pair_post(p, 1, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE);
	vb_local_take_leave(p->side[1].qp);
	pair_send(p, 1);
	assert_int_equal(p->answers, 1);
	assert_int_equal(p->descriptors, 2);
	vb_local_take_leave(p->side[1].qp);
	pair_send(p, 1);
	assert_int_equal(p->answers, 1);
	pair_close(p);
}

/* As long as it pleases: nobody asks again, and nothing is lost. */
static void silence__of_a_living_peer_is_no_error(void **state)
{
	struct pair *p = open_filled(0);
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE);
	for (int i = 0; i < 1000; i++) {
		pair_step_local(p, 0, PAIR_RING);
		p->now = vb_time_add(p->now, 10 * VB_S);
		pair_advance(p);
	}
	assert_int_equal(p->descriptors, 1);
	pair_settle(p);
	assert_done(p, VB_WC_RDMA_WRITE);
	pair_close(p);
}

static void pull__that_is_refused_becomes_parts(void **state)
{
	struct pair *p = open_filled(LENDS);
	p->outcome = VB_PULL_REFUSED;
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE);
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, LONG, PLACE);
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, LONG, PLACE);
	pair_settle(p);
	for (int i = 0; i < 3; i++)
		assert_done(p, VB_WC_RDMA_WRITE);
	assert_int_equal(p->pulls, 1);
	assert_arrived(p, LONG);
	pair_close(p);
}

/* The fence waits for READs; one more READ than may be under way waits too. */
static void reads__are_as_many_as_were_agreed_on(void **state)
{
	struct pair *p = open_filled(0);
	struct vb_sge sge = pair_sge(p, 0, SOURCE, 8);
	struct vb_send_wr fenced = pair_wr(p, 0, VB_WR_RDMA_WRITE, &sge, PLACE);
	fenced.flags |= VB_SEND_FENCE;
	for (int i = 0; i < 6; i++)
		pair_post(p, 0, VB_WR_RDMA_READ, PLACE, 8, 0);
	assert_int_equal(pair_try_post(p, 0, &fenced), 0);
	pair_step_local(p, 0, PAIR_RING);
	assert_int_equal(p->descriptors, 4);
	pair_step_local(p, 1, PAIR_RING);
	pair_step_local(p, 0, PAIR_RING);
	assert_int_equal(p->descriptors, 6);
	pair_settle(p);
	assert_int_equal(p->descriptors, 7);
	for (int i = 0; i < 6; i++)
		assert_done(p, VB_WC_RDMA_READ);
	assert_done(p, VB_WC_RDMA_WRITE);
	pair_close(p);
}

/* ---- Order ------------------------------------------------------------------------------------------------------- */

/* Nobody sees the answer to a message before that message's completion; a descriptor carries both. */
static void answer__comes_after_the_completion(void **state)
{
	struct pair *p = open_filled(0);
	pair_post_receive(p, 0, 5, PLACE, 8);
	pair_post_receive(p, 1, 5, PLACE, 8);
	pair_post(p, 0, VB_WR_SEND, SOURCE, 8, 0);
	pair_step_local(p, 0, PAIR_RING);
	pair_take_descriptors(p, 1, PAIR_RING);
	pair_post(p, 1, VB_WR_SEND, SOURCE, 8, 0);
	pair_step_local(p, 1, PAIR_RING);
	assert_int_equal(p->answers, 0);
	pair_step_local(p, 0, PAIR_RING);
	assert_int_equal(pair_completion(p, 0).opcode, VB_WC_SEND);
	assert_int_equal(pair_completion(p, 0).opcode, VB_WC_RECV);
	pair_settle(p);
	assert_int_equal(p->answers, 1);
	pair_close(p);
}

/* Begun as packets, a connection goes on by descriptors once nothing is under way; and back. */
static void way__changes_while_nothing_is_under_way(void **state)
{
	struct pair *p = pair_open(VB_QP_RC, false, 0);
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE);
	pair_step_wire(p, 0);
	p->is_local = true;
	pair_be_local_peers(p);
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE);
	pair_settle(p);
	assert_int_equal(p->descriptors, 0);
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE);
	pair_settle(p);
	assert_int_equal(p->descriptors, 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(vb_lane_set_local_peer(p->side[i].lane, &p->side[!i].gid, (uint8_t)(2 - i), NULL), 0);
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE);
	pair_run(p, 1);
	assert_int_equal(p->descriptors, 1);
	for (int i = 0; i < 4; i++)
		assert_done(p, VB_WC_RDMA_WRITE);
	pair_close(p);
}

/* A peer whose requests come by descriptors may send packets all the same: they are answers to nothing. */
static void packets__answer_no_descriptor(void **state)
{
	struct pair *p = open_filled(0);
	struct vb_path path = { .src = p->side[1].gid, .dst = p->side[0].gid };
	struct vb_packet ack = { .opcode = VB_RC | VB_ACKNOWLEDGE,
		.pkey = VB_PKEY_DEFAULT,
		.dest_qpn = vb_qp_number(p->side[0].qp),
		.psn = 0xfffff0,
		.syndrome = VB_AETH_ACK | VB_AETH_NO_CREDITS };
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE);
	pair_send(p, 0);
	vb_lane_receive(p->side[0].lane, &path, &ack, 1, p->now);
	pair_check(p);
	assert_nothing_more(p);
	pair_settle(p);
	assert_done(p, VB_WC_RDMA_WRITE);
	pair_close(p);
}

/* ---- XRC, tags --------------------------------------------------------------------------------------------------- */

static void xrc__goes_to_the_srq_that_is_named(void **state)
{
	struct pair *p = pair_open_lanes(true, LENDS);
	struct vb_xrcd *xrcd;
	struct vb_srq *srq;
	assert_int_equal(vb_xrcd_create(p->side[1].nic, &xrcd), 0);
	assert_int_equal(
		vb_srq_create(p->side[1].pd,
			&(struct vb_srq_config){ .max_wr = 4, .max_sge = 1, .xrcd = xrcd, .cq = p->side[1].cq }, &srq),
		0);
	struct vb_qp_config recv = { .type = VB_QP_XRC_RECV, .xrcd = xrcd };
	struct vb_qp_config send = { .type = VB_QP_XRC_SEND,
		.pd = p->side[0].pd,
		.send_cq = p->side[0].cq,
		.max_send_wr = 4,
		.max_send_sge = 1 };
	assert_int_equal(vb_qp_create(p->side[0].lane, &send, &p->side[0].qp), 0);
	assert_int_equal(vb_qp_create(p->side[1].lane, &recv, &p->side[1].qp), 0);
	pair_connect(p);
	fill(p, 0, SOURCE, LONG);
	struct vb_sge sge = pair_sge(p, 1, PLACE, LONG), from = pair_sge(p, 0, SOURCE, LONG);
	assert_int_equal(vb_srq_post(srq, &(struct vb_recv_wr){ .wr_id = 9, .sges = &sge, .sge_count = 1 }), 0);
	struct vb_send_wr wr = pair_wr(p, 0, VB_WR_SEND, &from, 0);
	wr.remote_srqn = vb_srq_number(srq);
	assert_int_equal(pair_try_post(p, 0, &wr), 0);
	pair_settle(p);
	assert_arrived(p, LONG);
	assert_int_equal(pair_completion(p, 1).wr_id, 9);
	assert_done(p, VB_WC_SEND);
	wr.remote_srqn ^= 1;
	assert_int_equal(pair_try_post(p, 0, &wr), 0);
	pair_settle(p);
	assert_int_equal(pair_completion(p, 0).status, VB_WC_REM_INV_REQ_ERR);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(vb_qp_destroy(p->side[i].qp), 0);
		p->side[i].qp = NULL;
	}
	struct vb_event event;
	while (vb_lane_next_event(p->side[1].lane, &event))
		;
	assert_int_equal(vb_srq_destroy(srq), 0);
	assert_int_equal(vb_xrcd_destroy(xrcd), 0);
	pair_close(p);
}

static void tags__find_the_buffer_of_what_is_lent(void **state)
{
	static const uint8_t header[VB_TAG_HEADER] = { 3, [15] = 42 }; /* eager, tag 42 */
	for (int i = 0; i < 2; i++) {
		struct pair *p = pair_open_lanes(true, i ? LENDS : 0);
		struct vb_srq *srq;
		struct vb_tag_op add = { .kind = VB_TAG_ADD,
			.recv_wr_id = 11,
			.tag = 42,
			.mask = UINT64_MAX,
			.sge = pair_sge(p, 1, PLACE, LONG) };
		assert_int_equal(vb_srq_create(p->side[1].pd,
					 &(struct vb_srq_config){
						 .max_wr = 4, .max_sge = 1, .cq = p->side[1].cq, .max_tags = 4 },
					 &srq),
			0);
		assert_int_equal(vb_srq_tag_op(p->side[1].lane, srq, &add, p->now), 0);
		p->side[0].qp = pair_qp(&p->side[0], VB_QP_RC, NULL);
		p->side[1].qp = pair_qp(&p->side[1], VB_QP_RC, srq);
		pair_connect(p);
		fill(p, 0, SOURCE, LONG);
		memcpy(p->side[0].memory + SOURCE, header, sizeof(header));
		pair_post(p, 0, VB_WR_SEND, SOURCE, LONG, 0);
		pair_settle(p);
		assert_int_equal(pair_completion(p, 1).flags, VB_WC_TM_MATCH);
		struct vb_wc wc = pair_completion(p, 1);
		assert_int_equal(wc.wr_id, 11);
		assert_int_equal(wc.byte_len, LONG - VB_TAG_HEADER);
		assert_memory_equal(
			p->side[1].memory + PLACE, p->side[0].memory + SOURCE + VB_TAG_HEADER, LONG - VB_TAG_HEADER);
		assert_int_equal(p->pulls, i ? 2 : 0);
		assert_done(p, VB_WC_SEND);
		assert_int_equal(vb_qp_destroy(p->side[1].qp), 0);
		p->side[1].qp = NULL;
		struct vb_event event;
		while (vb_lane_next_event(p->side[1].lane, &event))
			;
		assert_int_equal(vb_srq_destroy(srq), 0);
		pair_close(p);
	}
}

/* ---- Ends -------------------------------------------------------------------------------------------------------- */

enum end { TO_ERROR, TO_RESET, DESTROYED, LOST, END_COUNT };

static void end_it(struct pair *p, int of, enum end end)
{
	struct vb_qp_attr attr = { .state = end == TO_ERROR ? VB_QPS_ERR : VB_QPS_RESET };
	if (end == LOST) {
		vb_local_lost(&p->side[of].other, p->now);
	} else if (end == DESTROYED) {
		assert_int_equal(vb_qp_destroy(p->side[of].qp), 0);
		p->side[of].qp = NULL;
	} else {
		assert_int_equal(vb_qp_modify(p->side[of].qp, &attr, VB_QP_STATE, p->now), 0);
	}
	pair_check(p);
}

/* One of the many small things that happen between two sides. */
static void step(struct pair *p, unsigned n)
{
	int of = (int)(n & 1);
	switch (n / 2 % 4) {
	case 0:
		pair_send(p, of);
		break;
	case 1:
		pair_take_answers(p, of);
		break;
	case 2:
		pair_take_descriptors(p, of, 1);
		break;
	default:
		pair_pull(p, of);
		break;
	}
}

static void post_of_each_kind(struct pair *p)
{
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, LONG, PLACE);
	pair_post(p, 0, VB_WR_SEND, SOURCE, 8, 0);
	if (p->side[0].qp->type == VB_QP_RC) {
		pair_post(p, 0, VB_WR_RDMA_READ, PLACE, 100000, 0);
		pair_post(p, 0, VB_WR_ATOMIC_FETCH_AND_ADD, PLACE + 200000, 8, 500000);
	}
	pair_post(p, 0, VB_WR_SEND, SOURCE, LONG, 0);
	pair_post(p, 1, VB_WR_SEND, SOURCE, 1000, 0);
}

/* Ends one side at instant n, and gives how many of the other's requests completed: all, or the side was not
 * connected. */
static void try_end(enum vb_qp_type type, uint32_t lend_from, int of, enum end end, unsigned n)
{
	struct pair *p = pair_open(type, true, lend_from);
	unsigned sends[2] = { type == VB_QP_RC ? 5 : 3, 1 };
	struct vb_random fate;
	vb_random_seed(&fate, n);
	p->fate = &fate;
	p->descriptor_room = 2;
	for (int i = 0; i < 2; i++)
		for (int r = 0; r < 3; r++)
			pair_post_receive(p, i, 100, PLACE + 210000, LONG);
	post_of_each_kind(p);
	for (unsigned i = 0; i < n; i++)
		step(p, i);
	end_it(p, of, end);
	if (end == LOST) { /* what the dead side does no longer matters */
		p->is_local = false;
		p->side[!of].out.descriptor_tail = p->side[!of].out.descriptor_head;
	}
	pair_run(p, end == LOST ? 60 : 40);
	for (int i = 0; i < 2; i++) {
		struct vb_wc wc;
		unsigned completed = 0;
		while (vb_cq_poll(p->side[i].cq, &wc, 1) == 1)
			completed += wc.wr_id == 7;
		if (i != of || end == TO_ERROR)
			assert_true(completed == sends[i] || end == LOST);
		else if (end == LOST)
			assert_int_equal(completed, sends[i]);
		else
			assert_true(completed <= sends[i]);
	}
	pair_close(p);
}

static void end__at_any_instant_leaves_nothing_waiting(void **state)
{
	for (int type = 0; type < 2; type++)
		for (unsigned lends = 0; lends < 2; lends++)
			for (int of = 0; of < 2; of++)
				for (int end = 0; end < END_COUNT; end++)
					for (unsigned n = 0; n < 90; n += 1 + n / 40)
						try_end(type ? VB_QP_UC : VB_QP_RC, lends ? LENDS : 0, of,
							(enum end)end, n);
}

/* Unless something else is to be done as well. */
static void post__of_who_has_the_lane_is_for_one_local_peer(void **state)
{
	struct pair *p = open_filled(0);
	struct pair_side *side = &p->side[0];
	struct vb_sge sge = pair_sge(p, 0, SOURCE, 8);
	struct vb_send_wr wr = pair_wr(p, 0, VB_WR_RDMA_WRITE, &sge, PLACE);
	struct vb_event event;
	while (vb_lane_next_event(side->lane, &event))
		;
	assert_true(vb_lane_is_quiet(side->lane));
	vb_cq_request_notify(side->cq, false);
	for (int i = 0; i < 2; i++) {
		vb_sq_begin(side->qp);
		assert_int_equal(vb_sq_put(side->qp, &wr), 0);
		assert_ptr_equal(vb_sq_serve(side->qp, p->now), i ? NULL : &side->other);
		pair_settle(p);
		assert_int_equal(pair_completion(p, 0).status, VB_WC_SUCCESS);
		assert_false(vb_lane_is_quiet(side->lane)); /* the holder is to be told of that */
	}
	pair_close(p);
}

static void drain__waits_for_answers(void **state)
{
	struct pair *p = open_filled(0);
	struct vb_qp_attr attr = { .state = VB_QPS_SQD, .notify_drained = true };
	struct vb_event event;
	while (vb_lane_next_event(p->side[0].lane, &event))
		;
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, LONG, PLACE);
	p->descriptor_room = 1;
	pair_send(p, 0);
	assert_int_equal(vb_qp_modify(p->side[0].qp, &attr, VB_QP_STATE | VB_QP_EN_SQD_ASYNC_NOTIFY, p->now), 0);
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE);
	assert_false(vb_lane_next_event(p->side[0].lane, &event));
	pair_settle(p);
	assert_done(p, VB_WC_RDMA_WRITE);
	assert_true(vb_cq_is_empty(p->side[0].cq));
	assert_true(vb_lane_next_event(p->side[0].lane, &event));
	assert_int_equal(event.kind, VB_EVENT_SQ_DRAINED);
	attr.state = VB_QPS_RTS;
	assert_int_equal(vb_qp_modify(p->side[0].qp, &attr, VB_QP_STATE, p->now), 0);
	pair_settle(p);
	assert_done(p, VB_WC_RDMA_WRITE);
	pair_close(p);
}

static void write_quietly(struct pair *p, uint32_t length)
{
	struct vb_sge sge = pair_sge(p, 0, SOURCE, length);
	struct vb_send_wr wr = pair_wr(p, 0, VB_WR_RDMA_WRITE, &sge, PLACE);
	wr.flags = 0;
	assert_int_equal(pair_try_post(p, 0, &wr), 0);
	pair_settle(p);
}

/* A program hears of nothing that it did not signal, and waits for no part of a message but the last. */
static void answers__are_awaited_where_something_completes(void **state)
{
	struct pair *p = open_filled(0);
	write_quietly(p, 8);
	write_quietly(p, LONG);
	assert_int_equal(p->awaited, 0);
	assert_false(vb_requester_is_busy(p->side[0].qp));
	p->descriptor_room = 1;
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, LONG, PLACE);
	pair_settle(p);
	assert_int_equal(p->awaited, 1);
	assert_done(p, VB_WC_RDMA_WRITE);
	pair_post(p, 0, VB_WR_RDMA_READ, SOURCE, 8, PLACE);
	pair_settle(p);
	assert_int_equal(p->awaited, 2);
	assert_done(p, VB_WC_RDMA_READ);
	pair_close(p);
}

/* LOCAL_INV waits for all before it, and completes behind it. */
static void answers__are_awaited_once_there_are_local_operations(void **state)
{
	struct pair *p = pair_open(VB_QP_RC, true, 0);
	struct vb_mw *mw = bind_window(p, 0);
	write_quietly(p, 8);
	assert_int_equal(p->awaited, 1);
	assert_int_equal(vb_mw_destroy(mw), 0);
	pair_close(p);
}

static void refusal__is_awaited(void **state)
{
	struct pair *p = open_filled(0);
	struct vb_sge sge = pair_sge(p, 0, SOURCE, 8);
	struct vb_send_wr wr = pair_wr(p, 0, VB_WR_RDMA_WRITE, &sge, PLACE);
	wr.flags = 0;
	wr.rkey++;
	assert_int_equal(pair_try_post(p, 0, &wr), 0);
	pair_settle(p);
	assert_int_equal(p->awaited, 1);
	assert_int_equal(pair_completion(p, 0).status, VB_WC_REM_ACCESS_ERR);
	pair_close(p);
}

static void loss__fails_what_is_under_way_alone(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct pair *p = open_filled(0);
		struct vb_cause cause;
		if (i)
			pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE);
		pair_step_local(p, 0, PAIR_RING);
		vb_local_lost(&p->side[0].other, p->now);
		assert_int_equal(vb_qp_state(p->side[0].qp), i ? VB_QPS_ERR : VB_QPS_RTS);
		vb_qp_cause(p->side[0].qp, &cause);
		assert_int_equal(cause.kind, i ? VB_CAUSE_PEER_DIED : VB_CAUSE_NONE);
		if (i)
			assert_int_equal(pair_completion(p, 0).status, VB_WC_RETRY_EXC_ERR);
		pair_close(p);
	}
}

/* What UC lent is its program's again, while the peer, that has not lost us yet, is about to pull it. */
static void loss__takes_back_what_uc_lent(void **state)
{
	struct pair *p = pair_open(VB_QP_UC, true, LENDS);
	fill(p, 0, SOURCE, LENDS);
	pair_post_receive(p, 1, 5, PLACE, LENDS);
	pair_post(p, 0, VB_WR_SEND, SOURCE, LENDS, 0);
	pair_send(p, 0);
	vb_local_lost(&p->side[0].other, p->now);
	assert_done(p, VB_WC_SEND);
	pair_step_local(p, 1, PAIR_RING);
	assert_int_equal(p->pulls, 1);
	assert_true(vb_cq_is_empty(p->side[1].cq));
	pair_close(p);
}

/* An ack that comes with a request may end the QP, here by a completion that is lost: then the request is not executed,
 * and not acknowledged. */
static void end__by_an_ack_leaves_the_request_that_brings_it(void **state)
{
	struct pair *p = open_filled(0);
	assert_int_equal(vb_cq_resize(p->side[1].cq, 1), 0);
	pair_post(p, 1, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE);
	pair_settle(p); /* its CQ is full */
	pair_post(p, 1, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE);
	pair_send(p, 1);
	pair_take_descriptors(p, 0, PAIR_RING);
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE);
	pair_send(p, 0);
	pair_take_descriptors(p, 1, PAIR_RING);
	assert_int_equal(vb_qp_state(p->side[1].qp), VB_QPS_ERR);
	assert_int_equal(word_at(p, 1, PLACE), 0);
	pair_send(p, 1);
	pair_take_answers(p, 0);
	assert_true(vb_cq_is_empty(p->side[0].cq));
	pair_close(p);
}

/* SQD allows a new address, also while a message from the peer at the old one is pulled: that ends first. */
static void pull__from_where_the_peer_was_ends_first(void **state)
{
	struct pair *p = pair_open(VB_QP_UC, true, LENDS);
	struct pair_side *side = &p->side[1];
	struct vb_gid far = vb_gid_from_ipv4(10, 0, 0, 9);
	struct vb_qp_attr attr = { .state = VB_QPS_SQD, .av = { .sgid = side->gid, .dgid = far } };
	struct vb_local_heap none = { 0 };
	struct vb_answer answers[4];
	struct vb_local_room room = { .answers = answers, .answer_max = 4 };
	struct vb_local_peer another;
	fill(p, 0, SOURCE, LONG);
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, LONG, PLACE);
	pair_send(p, 0);
	struct vb_descriptor request = p->side[0].out.descriptors[0];
	pair_take_descriptors(p, 1, PAIR_RING);
	assert_ptr_equal(side->other.puller, side->qp);

	vb_local_peer_init(&another, side->lane, 1, LENDS);
	assert_int_equal(vb_lane_set_local_peer(side->lane, &far, 1, &another), 0);
	assert_int_equal(vb_qp_modify(side->qp, &attr, VB_QP_STATE, p->now), 0);
	assert_int_equal(vb_qp_modify(side->qp, &attr, VB_QP_AV, p->now), 0);
	assert_int_equal(vb_local_receive(&another, &request, 1, &none, &room, p->now), 1);
	assert_null(another.puller);
	assert_int_equal(room.answer_count, 1);
	assert_int_equal(answers[0].kind, VB_ANSWER_ABSENT);
	pair_check(p);
	assert_true(pair_pull(p, 1));
	assert_null(side->other.puller);
	assert_arrived(p, LONG);
	vb_local_lost(&another, p->now);
	assert_int_equal(vb_lane_set_local_peer(side->lane, &far, 1, NULL), 0);
	pair_close(p);
}

/* ---- Lives ------------------------------------------------------------------------------------------------------- */

static uint64_t count_removals(struct vb_epochs *epochs)
{
	uint64_t count = 0;
	for (uint32_t i = 0; i < VB_EPOCHS_KEYS; i++)
		count += atomic_load(&epochs->removals[i]);
	return count;
}

/* Whatever a key opened, whoever closes it has been counted when he hears that it is done. */
static void removals__are_counted(void **state)
{
	struct pair *p = pair_open(VB_QP_RC, true, 0);
	struct vb_pd *pd = p->side[0].pd;
	struct vb_epochs *epochs = &p->side[0].epochs;
	struct vb_mr_config config = { .memory = p->side[0].memory, .length = 4096, .access = VB_ACCESS_MW_BIND };
	uint32_t qpn = vb_qp_number(p->side[0].qp);
	struct vb_mr *mr;
	struct vb_mw *mw;
	assert_int_equal(vb_mr_register(pd, &config, &mr), 0);
	assert_int_equal(vb_mw_create(pd, 1, &mw), 0);
	assert_int_equal(vb_mw_bind(mw, mr, pd, qpn, 0, 8, VB_ACCESS_REMOTE_READ, vb_mw_next_key(mw)), 0);
	assert_int_equal(count_removals(epochs), 0);
	assert_int_equal(vb_mw_bind(mw, mr, pd, qpn, 0, 16, VB_ACCESS_REMOTE_READ, vb_mw_next_key(mw)), 0);
	assert_int_equal(count_removals(epochs), 1);
	assert_int_equal(vb_mw_destroy(mw), 0);
	assert_int_equal(count_removals(epochs), 2);
	assert_int_equal(vb_mw_create(pd, 2, &mw), 0);
	assert_int_equal(vb_mw_bind(mw, mr, pd, qpn, 0, 8, VB_ACCESS_REMOTE_READ, vb_mw_key(mw) + 1), 0);
	assert_int_equal(vb_mr_invalidate(mr), -EBUSY);
	assert_int_equal(count_removals(epochs), 2);
	assert_int_equal(vb_key_invalidate(pd, qpn, vb_mw_key(mw)), 0);
	assert_int_equal(count_removals(epochs), 3);
	assert_int_equal(vb_mw_bind(mw, mr, pd, qpn, 0, 8, VB_ACCESS_REMOTE_READ, vb_mw_key(mw) + 1), 0);
	assert_int_equal(vb_qp_destroy(p->side[0].qp), 0);
	p->side[0].qp = NULL;
	assert_int_equal(count_removals(epochs), 4);
	assert_int_equal(vb_mr_invalidate(mr), 0);
	assert_int_equal(count_removals(epochs), 5);
	assert_int_equal(vb_mr_revalidate(mr, NULL, &config), 0);
	assert_int_equal(count_removals(epochs), 5);
	assert_int_equal(vb_mr_invalidate(mr), 0);
	vb_mr_free(mr);
	assert_int_equal(vb_mw_destroy(mw), 0);
	assert_int_equal(count_removals(epochs), 6);
	pair_close(p);
}

/* ---- Others ------------------------------------------------------------------------------------------------------ */

/* Of 32 codes four say something. */
static void refusal__for_an_unknown_reason_makes_no_sense(void **state)
{
	for (unsigned code = 0; code < 256; code++) {
		struct pair *p = pair_open(VB_QP_RC, true, 0);
		struct vb_local_heap none = { 0 };
		bool is_known = (code & 31) >= 1 && (code & 31) <= 4;
		pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE);
		pair_send(p, 0);
		struct vb_answer answer = { .dest_qpn = vb_qp_number(p->side[0].qp),
			.src_qpn = vb_qp_number(p->side[1].qp),
			.psn = p->side[0].qp->requester.una_psn,
			.kind = VB_ANSWER_REFUSED,
			.code = (uint8_t)code };
		vb_local_answered(&p->side[0].other, &answer, 1, &none, p->now);
		struct vb_wc wc = pair_completion(p, 0);
		assert_int_equal(wc.status == VB_WC_BAD_RESP_ERR, !is_known);
		assert_int_equal(wc.vendor_err == VB_CAUSE_BAD_RESPONSE, !is_known);
		assert_int_not_equal(wc.status, VB_WC_SUCCESS);
		pair_close(p);
	}
}

/* The other end may be anybody's: whatever it writes harms its own connections alone. */
static void nonsense__harms_nobody_else(void **state)
{
	struct vb_random random;
	vb_random_seed(&random, 5);
	for (int round = 0; round < 300; round++) {
		struct pair *p = pair_open(round & 1 ? VB_QP_UC : VB_QP_RC, true, round & 2 ? LENDS : 0);
		for (int r = 0; r < 4; r++)
			pair_post_receive(p, 1, 1, PLACE, LONG);
		p->side[1].memory[PAIR_BYTES - 1] = 0x5a;
		post_of_each_kind(p);
		for (unsigned i = 0; i < 60; i++) {
			struct pair_way *way = &p->side[vb_random_below(&random, 2)].out;
			uint8_t *bytes = vb_random_below(&random, 2)
						 ? (uint8_t *)&way->descriptors[way->descriptor_head % PAIR_RING]
						 : (uint8_t *)&way->answers[way->answer_head % PAIR_RING];
			if (vb_random_below(&random, 4) == 0)
				bytes[vb_random_below(&random, sizeof(struct vb_answer))] =
					(uint8_t)vb_random_u64(&random);
			step(p, i);
		}
		pair_close(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send__of_any_length_arrives),
		cmocka_unit_test(write__of_any_length_arrives),
		cmocka_unit_test(atomics__say_what_was_there),
		cmocka_unit_test(send__with_invalidate_closes_a_window),
		cmocka_unit_test(refusal__of_a_key),
		cmocka_unit_test(refusal__of_a_range),
		cmocka_unit_test(refusal__of_a_right),
		cmocka_unit_test(refusal__of_a_crooked_atomic),
		cmocka_unit_test(refusal__of_reads_that_were_not_granted),
		cmocka_unit_test(refusal__of_a_message_that_is_too_long),
		cmocka_unit_test(refusal__of_a_receive_without_memory),
		cmocka_unit_test(failure__of_our_own_entry_comes_when_it_is_the_oldest),
		cmocka_unit_test(failure__of_what_is_lent_and_not_there),
		cmocka_unit_test(rnr__is_asked_again_in_order),
		cmocka_unit_test(rnr__ends_with_the_retries),
		cmocka_unit_test(absence__is_waited_for),
		cmocka_unit_test(absence__ends_with_the_retries),
		cmocka_unit_test(absence__follows_the_ack_to_what_came_before),
		cmocka_unit_test(farewell__repeats_only_an_ack_that_a_descriptor_carried),
		cmocka_unit_test(farewell__goes_as_an_answer_beside_what_is_still_sent),
		cmocka_unit_test(silence__of_a_living_peer_is_no_error),
		cmocka_unit_test(pull__that_is_refused_becomes_parts),
		cmocka_unit_test(reads__are_as_many_as_were_agreed_on),
		cmocka_unit_test(answer__comes_after_the_completion),
		cmocka_unit_test(way__changes_while_nothing_is_under_way),
		cmocka_unit_test(packets__answer_no_descriptor),
		cmocka_unit_test(xrc__goes_to_the_srq_that_is_named),
		cmocka_unit_test(tags__find_the_buffer_of_what_is_lent),
		cmocka_unit_test(end__at_any_instant_leaves_nothing_waiting),
		cmocka_unit_test(post__of_who_has_the_lane_is_for_one_local_peer),
		cmocka_unit_test(drain__waits_for_answers),
		cmocka_unit_test(answers__are_awaited_where_something_completes),
		cmocka_unit_test(answers__are_awaited_once_there_are_local_operations),
		cmocka_unit_test(refusal__is_awaited),
		cmocka_unit_test(loss__fails_what_is_under_way_alone),
		cmocka_unit_test(loss__takes_back_what_uc_lent),
		cmocka_unit_test(end__by_an_ack_leaves_the_request_that_brings_it),
		cmocka_unit_test(pull__from_where_the_peer_was_ends_first),
		cmocka_unit_test(removals__are_counted),
		cmocka_unit_test(refusal__for_an_unknown_reason_makes_no_sense),
		cmocka_unit_test(nonsense__harms_nobody_else),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
