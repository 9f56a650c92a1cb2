/* READs that go as descriptors: by the heap, and pulled; what is stale, refused or missed; and that nothing overtakes
 * them. */
#include "local.h"

static const uint32_t lengths[] = { 0, 1, 8, VB_LOCAL_INLINE, VB_LOCAL_INLINE + 1, 4096, 4097, VB_LOCAL_PART,
	VB_LOCAL_PART + 1, LONG };

static void read__of_any_length_brings_it(void **state)
{
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct pair *p = pair_open(VB_QP_RC, true, LENDS);
		fill(p, 1, 100, lengths[i]);
		pair_post(p, 0, VB_WR_RDMA_READ, PLACE, lengths[i], 100);
		pair_settle(p);
		assert_int_equal(p->pulls > 0, lengths[i] >= LENDS);
		assert_int_equal(p->descriptors, 1);
		assert_memory_equal(p->side[0].memory + PLACE, p->side[1].memory + 100, lengths[i]);
		assert_done(p, VB_WC_RDMA_READ);
		assert_nothing_more(p);
		pair_close(p);
	}
}

static void post_read(struct pair *p, uint32_t to, uint32_t length, uint32_t from)
{
	fill(p, 1, from, length);
	pair_post(p, 0, VB_WR_RDMA_READ, to, length, from);
}

/* The peer has answered what was posted, and nothing is pulled yet. */
static void let_be_answered(struct pair *p)
{
	pair_send(p, 0);
	pair_take_descriptors(p, 1, PAIR_RING);
	pair_send(p, 1);
	pair_take_answers(p, 0);
}

static void assert_read(struct pair *p, uint32_t to, uint32_t length, uint32_t from)
{
	assert_done(p, VB_WC_RDMA_READ);
	assert_memory_equal(p->side[0].memory + to, p->side[1].memory + from, length);
}

static void read__goes_to_several_places(void **state)
{
	struct pair *p = pair_open(VB_QP_RC, true, LENDS);
	struct vb_sge sges[3] = { pair_sge(p, 0, PLACE, 70000), pair_sge(p, 0, PLACE + 70001, 1),
		pair_sge(p, 0, PLACE + 80000, LONG - 70001) };
	struct vb_send_wr wr = pair_wr(p, 0, VB_WR_RDMA_READ, sges, 0);
	fill(p, 1, 0, LONG);
	wr.sge_count = 3;
	assert_int_equal(pair_try_post(p, 0, &wr), 0);
	pair_settle(p);
	assert_done(p, VB_WC_RDMA_READ);
	assert_int_equal(p->pulls, 1);
	assert_memory_equal(p->side[0].memory + PLACE, p->side[1].memory, 70000);
	assert_int_equal(p->side[0].memory[PLACE + 70001], p->side[1].memory[70000]);
	assert_memory_equal(p->side[0].memory + PLACE + 80000, p->side[1].memory + 70001, LONG - 70001);
	pair_close(p);
}

/* Each is bounded, and several QPs take turns. */
static void read__is_pulled_in_pieces(void **state)
{
	enum { BYTES = 3 << 20 };
	struct pair *p = pair_open(VB_QP_RC, true, LENDS);
	uint8_t *big[2];
	struct vb_mr *mr[2];
	for (int i = 0; i < 2; i++) {
		big[i] = calloc(1, BYTES);
		struct vb_mr_config config = {
			.memory = big[i], .length = BYTES, .access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_READ
		};
		assert_int_equal(vb_mr_register(p->side[i].pd, &config, &mr[i]), 0);
	}
	for (uint32_t i = 0; i < BYTES; i++)
		big[1][i] = (uint8_t)(i * 13 + i / 509);
	struct vb_sge sge = { 0, BYTES - 5, vb_mr_key(mr[0]) };
	struct vb_send_wr wr = pair_wr(p, 0, VB_WR_RDMA_READ, &sge, 0);
	wr.remote_addr = 5;
	wr.rkey = vb_mr_key(mr[1]);
	assert_int_equal(pair_try_post(p, 0, &wr), 0);
	let_be_answered(p);
	p->elsewhere = big[1];
	p->elsewhere_bytes = BYTES;
	for (int i = 0; i < 3; i++) {
		assert_nothing_more(p);
		assert_true(pair_pull(p, 0));
	}
	assert_false(pair_pull(p, 0));
	assert_done(p, VB_WC_RDMA_READ);
	assert_memory_equal(big[0], big[1] + 5, BYTES - 5);
	assert_int_equal(p->descriptors, 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(vb_mr_invalidate(mr[i]), 0);
		vb_mr_free(mr[i]);
		free(big[i]);
	}
	pair_close(p);
}

/* A key like its own was closed: it is asked for by the heap, and the next is lent again. */
static void read__that_is_stale_is_asked_for_again(void **state)
{
	struct pair *p = pair_open(VB_QP_RC, true, LENDS);
	uint32_t place = vb_epochs_place(vb_mr_key(p->side[1].mr));
	post_read(p, PLACE, LONG, 0);
	let_be_answered(p);
	atomic_fetch_add(&p->side[1].epochs.removals[place], 1);
	assert_true(pair_pull(p, 0));
	assert_nothing_more(p);
	pair_settle(p);
	assert_read(p, PLACE, LONG, 0);
	assert_int_equal(p->descriptors, 1 + 4);
	post_read(p, PLACE, 10000, LONG);
	pair_settle(p);
	assert_read(p, PLACE, 10000, LONG);
	assert_int_equal(p->pulls, 2);
	pair_close(p);
}

static void assert_read_is_refused(struct pair *p, enum vb_wc_status status, enum vb_cause_kind peers)
{
	struct vb_cause seen;
	pair_settle(p);
	assert_int_equal(pair_completion(p, 0).status, status);
	assert_nothing_more(p);
	assert_int_equal(vb_qp_state(p->side[1].qp), VB_QPS_ERR);
	vb_qp_cause(p->side[1].qp, &seen);
	assert_int_equal(seen.kind, peers);
	assert_int_equal(p->side[0].memory[PLACE], 0);
}

static void read__of_a_key_that_is_closed_is_refused(void **state)
{
	struct pair *p = pair_open(VB_QP_RC, true, LENDS);
	post_read(p, PLACE, LONG, 0);
	let_be_answered(p);
	assert_int_equal(vb_mr_invalidate(p->side[1].mr), 0);
	assert_read_is_refused(p, VB_WC_REM_ACCESS_ERR, VB_CAUSE_REMOTE_BAD_RKEY);
	pair_close(p);
}

static void read__of_what_is_not_there_is_refused(void **state)
{
	struct pair *p = pair_open(VB_QP_RC, true, LENDS);
	p->outcome = VB_PULL_FAULT;
	post_read(p, PLACE, LONG, 0);
	assert_read_is_refused(p, VB_WC_REM_OP_ERR, VB_CAUSE_LOCAL_FAULT);
	pair_close(p);
}

/* Those under way too, and for good. */
static void read__that_may_not_be_pulled_comes_by_the_heap(void **state)
{
	struct pair *p = pair_open(VB_QP_RC, true, LENDS);
	p->outcome = VB_PULL_REFUSED;
	for (uint32_t i = 0; i < 4; i++)
		post_read(p, PLACE + i * 100000, 100000, i * 100000);
	pair_settle(p);
	for (uint32_t i = 0; i < 4; i++)
		assert_read(p, PLACE + i * 100000, 100000, i * 100000);
	assert_int_equal(p->pulls, 1);
	assert_int_equal(p->descriptors, 4 + 4 * 2);
	post_read(p, PLACE, LONG, 0);
	pair_settle(p);
	assert_read(p, PLACE, LONG, 0);
	assert_int_equal(p->pulls, 1);
	assert_int_equal(p->descriptors, 4 + 4 * 2 + 4);
	pair_close(p);
}

static bool is_there(const void *at, uint64_t length, bool for_writing)
{
	return true;
}

static struct vb_mr *register_kind(struct pair_side *side, const struct vb_memory_kind *kind)
{
	struct vb_mr_config config = { .memory = side->memory,
		.iova = 1 << 20,
		.length = PAIR_BYTES,
		.kind = kind,
		.access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_READ };
	struct vb_mr *mr;
	assert_int_equal(vb_mr_register(side->pd, &config, &mr), 0);
	return mr;
}

/* Either end's memory may be no ordinary one. */
static void read__of_other_memory_comes_by_the_heap(void **state)
{
	static const struct vb_memory_kind kind = { .access = UINT32_MAX,
		.is_present = is_there,
		.load = vb_memory_load,
		.store = vb_memory_store,
		.fetch_add = vb_memory_fetch_add,
		.compare_swap = vb_memory_compare_swap };
	static const uint32_t sizes[] = { LENDS, LONG };
	for (int i = 0; i < 4; i++) {
		struct pair *p = pair_open(VB_QP_RC, true, LENDS);
		struct vb_mr *mr = register_kind(&p->side[i & 1], &kind);
		uint32_t length = sizes[i / 2];
		struct vb_sge sge = pair_sge(p, 0, PLACE, length);
		struct vb_send_wr wr = pair_wr(p, 0, VB_WR_RDMA_READ, &sge, 0);
		fill(p, 1, 0, length);
		*(i & 1 ? &wr.rkey : &sge.lkey) = vb_mr_key(mr);
		for (int again = 0; again < 2; again++) {
			assert_int_equal(pair_try_post(p, 0, &wr), 0);
			pair_settle(p);
			assert_read(p, PLACE, length, 0);
		}
		assert_int_equal(p->pulls, 0);
		assert_int_equal(vb_mr_invalidate(mr), 0);
		vb_mr_free(mr);
		pair_close(p);
	}
}

static void read__is_lent_only_where_the_holder_lends(void **state)
{
	struct pair *p = pair_open(VB_QP_RC, true, 0);
	vb_local_peer_set_pulling(&p->side[0].other, LENDS);
	post_read(p, PLACE, 10000, 0);
	post_read(p, PLACE + 10000, LONG, 10000);
	pair_settle(p);
	assert_read(p, PLACE, 10000, 0);
	assert_read(p, PLACE + 10000, LONG, 10000);
	assert_int_equal(p->pulls, 0);
	pair_close(p);
}

/* Answers to what is behind it are read on, and bring what they bring; nothing completes before its time. */
static void read__is_not_overtaken_by_what_is_behind_it(void **state)
{
	struct pair *p = open_filled(LENDS);
	pair_post_receive(p, 1, 5, PLACE + 300000, 8);
	p->side[1].memory[PLACE + 400000] = 9;
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE + 400008);
	post_read(p, PLACE, LONG, 0);
	pair_post(p, 0, VB_WR_ATOMIC_FETCH_AND_ADD, PLACE + 300000, 8, PLACE + 400000);
	pair_post(p, 0, VB_WR_SEND, SOURCE, 8, 0);
	post_read(p, PLACE + 200000, 100000, 200000);
	pair_post(p, 0, VB_WR_RDMA_READ, PLACE + 300008, 8, PLACE + 400000);
	pair_post(p, 0, VB_WR_RDMA_WRITE, SOURCE, 8, PLACE + 400008);
	let_be_answered(p);
	pair_send(p, 1); /* what was executed last is said after that */
	let_be_answered(p);
	let_be_answered(p);
	let_be_answered(p);
	assert_done(p, VB_WC_RDMA_WRITE);
	assert_true(vb_cq_is_empty(p->side[0].cq));
	assert_int_equal(word_at(p, 0, PLACE + 300000), 9);
	assert_int_equal(p->side[0].out.descriptor_tail, p->side[0].out.descriptor_head);
	assert_true(pair_pull(p, 0));
	assert_read(p, PLACE, LONG, 0);
	assert_done(p, VB_WC_FETCH_ADD);
	assert_done(p, VB_WC_SEND);
	assert_read(p, PLACE + 200000, 100000, 200000); /* which was pulled with the other */
	assert_int_equal(p->pulls, 1);
	pair_settle(p);
	assert_done(p, VB_WC_RDMA_READ);
	assert_done(p, VB_WC_RDMA_WRITE);
	pair_close(p);
}

/* A refusal, or that there is no receive, says nothing of the READs before it. */
static void read__is_not_overtaken_by_a_refusal(void **state)
{
	for (int i = 0; i < 3; i++) {
		struct pair *p = open_filled(LENDS);
		struct vb_sge sge = pair_sge(p, 0, SOURCE, 8);
		struct vb_send_wr wr = pair_wr(p, 0, i ? VB_WR_RDMA_WRITE : VB_WR_SEND, &sge, PLACE);
		wr.rkey ^= i == 1 ? 0x100 : 0;
		if (i == 2)
			wr.opcode = VB_WR_ATOMIC_FETCH_AND_ADD;
		sge.lkey ^= i == 2 ? 0x100 : 0;
		post_read(p, PLACE, LONG, 0);
		assert_int_equal(pair_try_post(p, 0, &wr), 0);
		let_be_answered(p);
		let_be_answered(p);
		assert_nothing_more(p);
		assert_true(pair_pull(p, 0));
		assert_read(p, PLACE, LONG, 0);
		if (i) {
			assert_int_equal(
				pair_completion(p, 0).status, i == 1 ? VB_WC_REM_ACCESS_ERR : VB_WC_LOC_PROT_ERR);
		} else {
			pair_post_receive(p, 1, 5, PLACE, 8);
			pair_run(p, 2);
			assert_int_equal(pair_completion(p, 1).wr_id, 5);
			assert_done(p, VB_WC_SEND);
		}
		assert_nothing_more(p);
		pair_close(p);
	}
}

/* Nor does our program see what the peer answered before its READ's completion; the peer's own READ goes on. */
static void read__is_not_overtaken_by_what_the_peer_says(void **state)
{
	struct pair *p = open_filled(LENDS);
	pair_post_receive(p, 0, 5, PLACE + 300000, 8);
	post_read(p, PLACE, LONG, 0);
	let_be_answered(p);
	pair_post(p, 1, VB_WR_RDMA_READ, PLACE, 8, SOURCE);
	pair_post(p, 1, VB_WR_SEND, SOURCE, 8, 0);
	pair_send(p, 1);
	assert_true(pair_take_descriptors(p, 0, PAIR_RING));
	assert_false(pair_take_descriptors(p, 0, PAIR_RING));
	assert_true(vb_cq_is_empty(p->side[0].cq));
	post_read(p, PLACE + 300008, 340000, 0); /* is not waited for; it is too long to be pulled with the other */
	let_be_answered(p);
	assert_false(pair_take_descriptors(p, 0, PAIR_RING));
	assert_true(pair_pull(p, 0));
	assert_true(pair_take_descriptors(p, 0, PAIR_RING));
	assert_read(p, PLACE, LONG, 0);
	assert_int_equal(pair_completion(p, 0).wr_id, 5);
	pair_settle(p);
	assert_read(p, PLACE + 300008, 340000, 0);
	pair_close(p);
}

/* Nor while it is asked for again; but then the peer is told to come back. */
static void read__by_the_heap_is_not_overtaken(void **state)
{
	struct pair *p = open_filled(LENDS);
	pair_post_receive(p, 0, 5, PLACE + 300000, 8);
	post_read(p, PLACE, LONG, 0);
	let_be_answered(p);
	p->outcome = VB_PULL_STALE;
	assert_true(pair_pull(p, 0));
	for (int i = 0; i < 2; i++)
		pair_post(p, 1, VB_WR_SEND, SOURCE, 8, 0);
	pair_send(p, 1);
	assert_true(pair_take_descriptors(p, 0, PAIR_RING));
	pair_post_receive(p, 0, 6, PLACE + 300000, 8);
	pair_settle(p);
	assert_read(p, PLACE, LONG, 0);
	assert_nothing_more(p);
	pair_run(p, 1);
	for (uint64_t id = 5; id < 7; id++) {
		assert_int_equal(pair_completion(p, 0).wr_id, id);
		assert_int_equal(pair_completion(p, 1).status, VB_WC_SUCCESS);
	}
	assert_nothing_more(p);
	pair_close(p);
}

/* Both ask again, behind what they could hold back for ever. */
static void read__by_the_heap_of_both_ends_goes_on(void **state)
{
	struct pair *p = pair_open(VB_QP_RC, true, LENDS);
	for (int i = 0; i < 2; i++) {
		pair_post_receive(p, i, 5, PLACE + 300000, 8);
		fill(p, i, 0, LONG);
		pair_post(p, i, VB_WR_RDMA_READ, PLACE, LONG, 0);
		pair_post(p, i, VB_WR_SEND, SOURCE, 8, 0);
	}
	p->outcome = VB_PULL_REFUSED;
	pair_run(p, 2);
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 3; k++)
			assert_int_equal(pair_completion(p, i).status, VB_WC_SUCCESS);
	}
	assert_nothing_more(p);
	pair_close(p);
}

/* Its buffers are the program's at once. */
static void read__that_is_given_up_is_pulled_no_more(void **state)
{
	for (int i = 0; i < 3; i++) {
		struct pair *p = pair_open(VB_QP_RC, true, LENDS);
		struct vb_qp_attr attr = { .state = i ? VB_QPS_RESET : VB_QPS_ERR };
		post_read(p, PLACE, LONG, 0);
		post_read(p, PLACE, LONG, 0);
		let_be_answered(p);
		if (i == 2) {
			assert_int_equal(vb_qp_destroy(p->side[0].qp), 0);
			p->side[0].qp = NULL;
		} else {
			assert_int_equal(vb_qp_modify(p->side[0].qp, &attr, VB_QP_STATE, p->now), 0);
		}
		assert_false(pair_pull(p, 0));
		assert_int_equal(p->side[0].memory[PLACE], 0);
		pair_run(p, 4);
		pair_close(p);
	}
}

/* Asked again, it names its SRQ, and be it in the middle of a message to another one. */
static void read__of_an_xrc_srqs_domain_is_asked_for_again(void **state)
{
	struct pair *p = pair_open_lanes(true, LENDS);
	struct pair_side *peer = &p->side[1];
	struct vb_pd *domain;
	struct vb_xrcd *xrcd;
	struct vb_mr *mr;
	struct vb_srq *srqs[2];
	assert_int_equal(vb_pd_create(peer->nic, &domain), 0);
	assert_int_equal(vb_xrcd_create(peer->nic, &xrcd), 0);
	for (int i = 0; i < 2; i++) {
		struct vb_srq_config config = { .max_wr = 4, .max_sge = 1, .xrcd = xrcd, .cq = peer->cq };
		assert_int_equal(vb_srq_create(i ? peer->pd : domain, &config, &srqs[i]), 0);
	}
	struct vb_qp_config recv = { .type = VB_QP_XRC_RECV, .xrcd = xrcd };
	struct vb_qp_config send = { .type = VB_QP_XRC_SEND,
		.pd = p->side[0].pd,
		.send_cq = p->side[0].cq,
		.max_send_wr = 4,
		.max_send_sge = 1 };
	struct vb_mr_config config = { .memory = peer->memory, .length = PAIR_BYTES, .access = VB_ACCESS_LOCAL_WRITE };
	assert_int_equal(vb_qp_create(p->side[0].lane, &send, &p->side[0].qp), 0);
	assert_int_equal(vb_qp_create(peer->lane, &recv, &peer->qp), 0);
	assert_int_equal(vb_mr_register(domain, &config, &mr), 0);
	pair_connect(p);
	fill(p, 1, 0, LONG);
	p->side[0].other.lend_from = 0;
	struct vb_sge to = pair_sge(p, 0, PLACE, LONG), from = pair_sge(p, 0, SOURCE, LONG);
	struct vb_sge place = { PLACE, LONG, vb_mr_key(mr) };
	struct vb_send_wr wrs[2] = { pair_wr(p, 0, VB_WR_RDMA_READ, &to, 0), pair_wr(p, 0, VB_WR_SEND, &from, 0) };
	wrs[0].remote_srqn = vb_srq_number(srqs[1]);
	wrs[1].remote_srqn = vb_srq_number(srqs[0]);
	assert_int_equal(vb_srq_post(srqs[0], &(struct vb_recv_wr){ .wr_id = 9, .sges = &place, .sge_count = 1 }), 0);
	p->descriptor_room = 2;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pair_try_post(p, 0, &wrs[i]), 0);
	let_be_answered(p);
	p->outcome = VB_PULL_STALE;
	assert_true(pair_pull(p, 0));
	assert_int_equal(peer->qp->target.open, VB_MESSAGE_SEND);
	pair_settle(p);
	assert_read(p, PLACE, LONG, 0);
	assert_done(p, VB_WC_SEND);
	assert_int_equal(pair_completion(p, 1).wr_id, 9);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(vb_qp_destroy(p->side[i].qp), 0);
		p->side[i].qp = NULL;
	}
	struct vb_event event;
	while (vb_lane_next_event(peer->lane, &event))
		;
	for (int i = 0; i < 2; i++)
		assert_int_equal(vb_srq_destroy(srqs[i]), 0);
	assert_int_equal(vb_mr_invalidate(mr), 0);
	vb_mr_free(mr);
	assert_int_equal(vb_xrcd_destroy(xrcd), 0);
	assert_int_equal(vb_pd_destroy(domain), 0);
	pair_close(p);
}

/* What asks again finds the QP there in error, or gone. */
static void read__of_a_qp_that_is_gone_fails(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct pair *p = open_filled(LENDS);
		struct vb_qp_attr attr = { .state = VB_QPS_RESET };
		struct vb_sge sge = pair_sge(p, 0, SOURCE, 8);
		struct vb_send_wr wr = pair_wr(p, 0, VB_WR_RDMA_WRITE, &sge, PLACE);
		wr.rkey ^= 0x100;
		post_read(p, PLACE, LONG, 0);
		if (i)
			assert_int_equal(pair_try_post(p, 0, &wr), 0);
		let_be_answered(p);
		let_be_answered(p);
		if (!i)
			assert_int_equal(vb_qp_modify(p->side[1].qp, &attr, VB_QP_STATE, p->now), 0);
		p->outcome = VB_PULL_STALE;
		pair_run(p, 1);
		assert_int_equal(pair_completion(p, 0).status, i ? VB_WC_REM_ACCESS_ERR : VB_WC_RETRY_EXC_ERR);
		pair_close(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read__of_any_length_brings_it),
		cmocka_unit_test(read__goes_to_several_places),
		cmocka_unit_test(read__is_pulled_in_pieces),
		cmocka_unit_test(read__that_is_stale_is_asked_for_again),
		cmocka_unit_test(read__of_a_key_that_is_closed_is_refused),
		cmocka_unit_test(read__of_what_is_not_there_is_refused),
		cmocka_unit_test(read__that_may_not_be_pulled_comes_by_the_heap),
		cmocka_unit_test(read__of_other_memory_comes_by_the_heap),
		cmocka_unit_test(read__is_lent_only_where_the_holder_lends),
		cmocka_unit_test(read__is_not_overtaken_by_what_is_behind_it),
		cmocka_unit_test(read__is_not_overtaken_by_a_refusal),
		cmocka_unit_test(read__is_not_overtaken_by_what_the_peer_says),
		cmocka_unit_test(read__by_the_heap_is_not_overtaken),
		cmocka_unit_test(read__by_the_heap_of_both_ends_goes_on),
		cmocka_unit_test(read__that_is_given_up_is_pulled_no_more),
		cmocka_unit_test(read__of_an_xrc_srqs_domain_is_asked_for_again),
		cmocka_unit_test(read__of_a_qp_that_is_gone_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
