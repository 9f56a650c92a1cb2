/* The link between two ends dies, and comes back; their connection goes on over another. */
#include "two.h"

static unsigned path_packets(const struct end *end)
{
	return end->left[VB_PATH_ADDRESS] + end->left[VB_PATH_PROBE] + end->left[VB_PATH_ANSWER];
}

static struct vb_failover *failover(const struct end *end)
{
	return vb_roce(end->qp)->selective->failover;
}

/* ---- A link dies ------------------------------------------------------------------------------------------------- */

static void qp__goes_on_over_the_other_link_and_comes_back(void **state)
{
	struct two *two = open_two(2, 2);
	assert_true(exchange(two, 0, VB_WR_RDMA_WRITE, 100) < VB_MS);
	cut(two, 0);
	vb_time gap = exchange(two, 0, VB_WR_RDMA_WRITE, 1);
	assert_true(gap > 16 * VB_MS && gap < 40 * VB_MS);
	assert_true(exchange(two, 0, VB_WR_RDMA_WRITE, 2000) < VB_MS);
	assert_int_equal(counter(two, 0, VB_PATH_MOVES), 1);
	assert_int_equal(counter(two, 1, VB_PATH_FOLLOWS), 1);
	assert_int_equal(counter(two, 0, VB_TIMEOUTS), 0);
	assert_int_equal(two->end[0].qp->requester.retries_left, 7);
	struct vb_qp_account account;
	assert_true(vb_qp_account(two->end[0].qp, &account));
	assert_int_equal(account.moves.moved, 1);
	struct vb_gid other = address(0, 1), own = address(1, 0);
	assert_true(vb_gid_equal(&account.moves.from, &other));
	assert_true(account.moves.acked[1] > 1900 * MESSAGE);
	struct vb_qp_attr attr;
	struct vb_qp_config config;
	vb_qp_query(two->end[0].qp, &attr, &config);
	assert_true(vb_gid_equal(&attr.av.dgid, &own));
	mend(two, 0);
	exchange(two, 0, VB_WR_RDMA_WRITE, 3000); /* 150 ms */
	assert_int_equal(counter(two, 0, VB_PATH_RETURNS), 1);
	assert_int_equal(failover(&two->end[0])->in_use, 0);
	assert_int_equal(failover(&two->end[1])->in_use, 0);
	assert_int_equal(counter(two, 0, VB_QP_ERRORS), 0);
	assert_written(two, 0);
	close_two(two);
}

static void qp__reads_over_the_other_link(void **state)
{
	struct two *two = open_two(2, 2);
	exchange(two, 0, VB_WR_RDMA_READ, 8);
	cut(two, 0);
	assert_true(exchange(two, 0, VB_WR_RDMA_READ, 8) < 40 * VB_MS);
	assert_memory_equal(two->end[1].rig->memory, two->end[0].rig->memory + RIG_BYTES / 2, RIG_BYTES / 2);
	close_two(two);
}

/* The end that hears nothing sends all the same. */
static void qp__moves_when_one_direction_dies(void **state)
{
	for (unsigned deaf = 0; deaf < 2; deaf++) {
		struct two *two = open_two(2, 2);
		exchange(two, 0, VB_WR_RDMA_WRITE, 8);
		exchange(two, 1, VB_WR_RDMA_WRITE, 8);
		two->end[deaf].hears[0] = false;
		for (unsigned i = 0; i < 8; i++) {
			post(two, 0, VB_WR_RDMA_WRITE);
			post(two, 1, VB_WR_RDMA_WRITE);
			run(two, 40 * VB_MS);
		}
		for (unsigned i = 0; i < 2; i++) {
			assert_int_equal(two->end[i].done, 16);
			assert_int_equal(failover(&two->end[i])->in_use, VB_ADDRESSES + 1);
			assert_written(two, i);
		}
		close_two(two);
	}
}

static void qps__that_both_send_end_on_the_same_pair(void **state)
{
	struct two *two = open_two(2, 2);
	exchange(two, 0, VB_WR_RDMA_WRITE, 1);
	for (unsigned round = 0; round < 6; round++) {
		if (round % 2)
			mend(two, 0);
		else
			cut(two, 0);
		for (unsigned i = 0; i < 200; i++) {
			post(two, 0, VB_WR_RDMA_WRITE);
			post(two, 1, VB_WR_RDMA_WRITE);
			while (two->end[0].done < two->end[0].posted || two->end[1].done < two->end[1].posted)
				step(two);
			run(two, 4 * VB_MS);
		}
		assert_int_equal(failover(&two->end[0])->in_use, round % 2 ? 0 : VB_ADDRESSES + 1);
		assert_int_equal(failover(&two->end[1])->in_use, round % 2 ? 0 : VB_ADDRESSES + 1);
	}
	assert_written(two, 0);
	assert_written(two, 1);
	close_two(two);
}

/* The end that had moved goes home, its word of that is lost, and home dies again: the other end takes it along. */
static void qp__leads_a_peer_whose_word_was_lost(void **state)
{
	for (unsigned mover = 0; mover < 2; mover++) {
		struct two *two = open_two(2, 2);
		exchange(two, mover, VB_WR_RDMA_WRITE, 8);
		cut(two, 0);
		exchange(two, mover, VB_WR_RDMA_WRITE, 8);
		assert_int_equal(failover(&two->end[1 - mover])->in_use, VB_ADDRESSES + 1);
		mend(two, 0);
		while (failover(&two->end[mover])->in_use != 0)
			step(two);
		cut(two, 0);
		assert_true(exchange(two, 1 - mover, VB_WR_RDMA_WRITE, 8) < 100 * VB_MS);
		assert_int_equal(failover(&two->end[mover])->in_use, VB_ADDRESSES + 1);
		mend(two, 0);
		run(two, VB_S);
		assert_int_equal(failover(&two->end[0])->in_use, 0);
		assert_int_equal(failover(&two->end[1])->in_use, 0);
		assert_int_equal(counter(two, 0, VB_QP_ERRORS) + counter(two, 1, VB_QP_ERRORS), 0);
		close_two(two);
	}
}

/* Of the same addresses; the peer hears nothing of it. */
static void qp__that_is_given_its_addresses_again_stays_where_it_is(void **state)
{
	struct two *two = open_two(2, 2);
	exchange(two, 0, VB_WR_RDMA_WRITE, 8);
	cut(two, 0);
	exchange(two, 0, VB_WR_RDMA_WRITE, 8);
	struct vb_qp *qp = two->end[0].qp;
	struct vb_qp_attr attr = { .state = VB_QPS_SQD,
		.av = { .sgid = address(0, 0), .dgid = address(1, 0), .traffic_class = 32 } };
	assert_int_equal(vb_qp_modify(qp, &attr, VB_QP_STATE, two->now), 0);
	step(two);
	assert_int_equal(vb_qp_modify(qp, &attr, VB_QP_STATE | VB_QP_AV, two->now), 0);
	attr.state = VB_QPS_RTS;
	assert_int_equal(vb_qp_modify(qp, &attr, VB_QP_STATE, two->now), 0);
	struct vb_gid other = address(0, 1);
	assert_true(vb_gid_equal(&qp->attr.av.sgid, &other));
	assert_int_equal(qp->attr.av.traffic_class, 32);
	assert_true(exchange(two, 0, VB_WR_RDMA_WRITE, 8) < VB_MS);
	assert_true(exchange(two, 1, VB_WR_RDMA_WRITE, 8) < VB_MS);
	close_two(two);
}

static void qp__that_finds_no_way_fails_as_ever(void **state)
{
	struct two *two = open_two(2, 2);
	exchange(two, 0, VB_WR_RDMA_WRITE, 8);
	cut(two, 0);
	cut(two, 1);
	post(two, 0, VB_WR_RDMA_WRITE);
	struct vb_wc wc;
	int n = 0;
	for (unsigned i = 0; i < 20000 && n == 0; i++) {
		two->now = two->end[0].rig->now = vb_time_add(two->now, STEP);
		vb_lane_advance(two->end[0].rig->lane, two->now);
		rig_transmit(two->end[0].rig);
		n = vb_cq_poll(two->end[0].rig->cq, &wc, 1);
	}
	assert_int_equal(n, 1);
	assert_int_equal(wc.status, VB_WC_RETRY_EXC_ERR);
	assert_true(counter(two, 0, VB_PATH_PROBES) < 100);
	close_two(two);
}

/* A peer that does not run answers on the pair in use, when it runs again, and nothing moves. */
static void qp__stays_where_a_slow_peer_answers(void **state)
{
	struct two *two = open_two(2, 2);
	exchange(two, 0, VB_WR_RDMA_WRITE, 8);
	for (unsigned i = 0; i < 10; i++) {
		post(two, 0, VB_WR_RDMA_WRITE);
		bool heard[] = { true, true };
		memcpy(two->end[0].hears, (bool[]){ false, false }, sizeof(heard));
		run(two, 25 * VB_MS);
		memcpy(two->end[0].hears, heard, sizeof(heard));
		run(two, 100 * VB_MS);
		assert_int_equal(two->end[0].done, two->end[0].posted);
	}
	assert_int_equal(failover(&two->end[0])->in_use, 0);
	close_two(two);
}

/* ---- Who says what ----------------------------------------------------------------------------------------------- */

static void ends__with_one_address_each_say_nothing_of_paths(void **state)
{
	const unsigned without[][2] = { { 1, 1 }, { 0, 2 }, { 2, 0 }, { 0, 0 } };
	for (unsigned i = 0; i < COUNT_OF(without); i++) {
		struct two *two = open_two(without[i][0], without[i][1]);
		exchange(two, 0, VB_WR_RDMA_WRITE, 8);
		exchange(two, 1, VB_WR_RDMA_WRITE, 2000);
		assert_non_null(vb_roce(two->end[0].qp)->selective);
		assert_int_equal(path_packets(&two->end[0]) + path_packets(&two->end[1]), 0);
		close_two(two);
	}
}

static void ends__that_carry_packets_ask_nothing(void **state)
{
	struct two *two = open_two(2, 2);
	exchange(two, 0, VB_WR_RDMA_WRITE, 2000);
	exchange(two, 1, VB_WR_RDMA_WRITE, 2000);
	assert_int_equal(two->end[0].left[VB_PATH_ADDRESS], 1);
	assert_int_equal(two->end[1].left[VB_PATH_ADDRESS], 1);
	assert_int_equal(two->end[0].left[VB_PATH_PROBE] + two->end[1].left[VB_PATH_PROBE], 0);
	close_two(two);
}

/* ---- Strangers --------------------------------------------------------------------------------------------------- */

static void receive_from(struct two *two, unsigned at, struct vb_gid src, struct vb_packet packet)
{
	struct end *end = &two->end[at];
	struct vb_path path = { .src = src, .dst = address(at, 1) };
	packet.pkey = VB_PKEY_DEFAULT;
	packet.dest_qpn = vb_qp_number(end->qp);
	vb_lane_receive(end->rig->lane, &path, &packet, 1, end->rig->now);
	vb_lane_check(end->rig->lane);
}

static void address__that_is_not_proved_is_not_heard(void **state)
{
	struct two *two = open_two(2, 2);
	uint8_t payload[64] = { 0xAA };
	exchange(two, 0, VB_WR_RDMA_WRITE, 8);
	struct vb_packet write = { .opcode = VB_WRITE_ONLY,
		.psn = two->end[1].qp->responder.expected_psn,
		.va = (uintptr_t)two->end[1].rig->memory,
		.rkey = vb_mr_key(two->end[1].rig->mr),
		.dma_length = sizeof(payload),
		.payload = payload,
		.payload_length = sizeof(payload) };
	uint8_t before = two->end[1].rig->memory[0];
	receive_from(two, 1, address(0, 1), write);
	receive_from(two, 1, vb_gid_from_ipv4(10, 9, 9, 9), write);
	assert_int_equal(counter(two, 1, VB_DROP_ADDRESS), 2);
	assert_int_equal(two->end[1].rig->memory[0], before);
	assert_int_equal(two->end[1].qp->responder.expected_psn, write.psn);
	close_two(two);
}

static void question__without_the_secret_is_not_answered(void **state)
{
	struct two *two = open_two(2, 2);
	exchange(two, 0, VB_WR_RDMA_WRITE, 8);
	uint64_t secret = failover(&two->end[1])->secret;
	for (uint8_t opcode = VB_PATH_PROBE; opcode <= VB_PATH_ADDRESS; opcode++) {
		receive_from(two, 1, address(0, 1), (struct vb_packet){ .opcode = opcode, .secret = secret + 1 });
		receive_from(two, 1, vb_gid_from_ipv4(10, 9, 9, 9),
			(struct vb_packet){ .opcode = opcode, .secret = secret });
	}
	/* an answer that was not asked for proves nothing */
	receive_from(two, 1, address(0, 1), (struct vb_packet){ .opcode = VB_PATH_ANSWER, .secret = secret });
	assert_int_equal(counter(two, 1, VB_DROP_PROBE), 7);
	assert_int_equal(rig_transmit(two->end[1].rig), 0);
	assert_false(failover(&two->end[1])->pairs[VB_ADDRESSES + 1].is_proved);
	close_two(two);
}

/* With the secret, but from where nobody answers: one answer, one question, and nothing more in the same millisecond.
 */
static void question__is_answered_once_and_proves_nothing(void **state)
{
	struct two *two = open_two(2, 2);
	exchange(two, 0, VB_WR_RDMA_WRITE, 8);
	struct vb_packet question = {
		.opcode = VB_PATH_PROBE, .secret = failover(&two->end[1])->secret, .path_flags = VB_PATH_IS_USED
	};
	question.path_number = 1;
	for (unsigned i = 0; i < 10; i++)
		receive_from(two, 1, address(0, 1), question);
	assert_int_equal(rig_transmit(two->end[1].rig), 2);
	const struct vb_outgoing *out = two->end[1].rig->batch.out;
	assert_int_equal(out[0].packet.opcode, VB_PATH_ANSWER);
	assert_int_equal(out[1].packet.opcode, VB_PATH_PROBE);
	assert_int_equal(vb_packet_wire_length(&out[0].packet), vb_packet_wire_length(&question));
	assert_int_equal(out[0].packet.secret, failover(&two->end[0])->secret);
	receive_from(two, 1, address(0, 1), question);
	assert_int_equal(rig_transmit(two->end[1].rig), 1);
	assert_int_equal(failover(&two->end[1])->in_use, 0);
	assert_false(failover(&two->end[1])->pairs[VB_ADDRESSES + 1].is_proved);
	close_two(two);
}

static void secret__of_the_peer_is_the_first_that_it_says(void **state)
{
	struct two *two = open_two(2, 2);
	exchange(two, 0, VB_WR_RDMA_WRITE, 8);
	uint64_t told = failover(&two->end[1])->peer_secret;
	struct vb_path path = { .src = address(0, 0), .dst = address(1, 0) };
	struct vb_packet forged = { .opcode = VB_PATH_ADDRESS,
		.pkey = VB_PKEY_DEFAULT,
		.dest_qpn = vb_qp_number(two->end[1].qp),
		.secret = told + 1,
		.path_number = 1,
		.address = vb_gid_from_ipv4(10, 9, 9, 9) };
	vb_lane_receive(two->end[1].rig->lane, &path, &forged, 1, two->now);
	assert_int_equal(failover(&two->end[1])->peer_secret, told);
	assert_int_equal(failover(&two->end[1])->their_count, 2);
	assert_int_equal(counter(two, 1, VB_DROP_PROBE), 1);
	assert_true(failover(&two->end[0])->secret != failover(&two->end[1])->secret);
	close_two(two);
}

/* Whichever is lost: the first one says how many there are, and each that comes too. */
static void address__that_is_lost_is_told_again(void **state)
{
	for (unsigned lost = 1; lost <= 2; lost++) {
		struct two *two = open_two(2, 3);
		two->slowness = 4; /* so that timers come while something is under way */
		two->end[0].deaf_to = lost;
		exchange(two, 0, VB_WR_RDMA_WRITE, 4);
		assert_int_equal(failover(&two->end[0])->their_count, lost == 1 ? 2 : 1);
		exchange(two, 0, VB_WR_RDMA_WRITE, 1000);
		assert_int_equal(failover(&two->end[0])->their_count, 3);
		unsigned told = two->end[1].left[VB_PATH_ADDRESS];
		assert_true(told <= 8);
		exchange(two, 0, VB_WR_RDMA_WRITE, 1000);
		assert_int_equal(two->end[1].left[VB_PATH_ADDRESS], told);
		close_two(two);
	}
}

/* ---- Two rails --------------------------------------------------------------------------------------------------- */

enum { PATHS = 8 };

/* The share of end's packets of data that left by the second link, of those since the last call: percent. */
static unsigned by_second(struct end *end)
{
	unsigned all = end->data[0] + end->data[1], share = all ? 100 * end->data[1] / all : 0;
	end->data[0] = end->data[1] = 0;
	return share;
}

/* Two that have agreed, and proved the second pair. */
static struct two *open_rails(enum vb_wr_opcode opcode)
{
	struct two *two = open_paths(2, 2, PATHS);
	two->slowness = 4; /* so that timers come while something is under way */
	exchange(two, 0, opcode, 200);
	for (unsigned i = 0; i < 2; i++)
		by_second(&two->end[i]);
	return two;
}

/* For what the first asks of the second, from now on. */
static void assert_uses_both(struct two *two, unsigned sender, enum vb_wr_opcode opcode)
{
	by_second(&two->end[sender]);
	exchange(two, 0, opcode, 1000);
	unsigned share = by_second(&two->end[sender]);
	assert_true(share >= 40 && share <= 60);
}

static void qp__with_many_paths_uses_both_links(void **state)
{
	static const enum vb_wr_opcode opcodes[] = { VB_WR_RDMA_WRITE, VB_WR_RDMA_READ };
	for (unsigned i = 0; i < 2; i++) {
		struct two *two = open_rails(opcodes[i]);
		assert_uses_both(two, i, opcodes[i]);
		assert_int_equal(counter(two, 0, VB_RETRANSMITTED) + counter(two, 1, VB_RETRANSMITTED), 0);
		close_two(two);
	}
	struct two *two = open_two(2, 2); /* with one path it has one rail */
	exchange(two, 0, VB_WR_RDMA_WRITE, 1000);
	assert_int_equal(by_second(&two->end[0]), 0);
	close_two(two);
}

/* Nothing of it is heard elsewhere: acknowledgements go by the first. */
static void rail__that_dies_is_left_and_used_again(void **state)
{
	struct two *two = open_rails(VB_WR_RDMA_WRITE);
	cut(two, 1);
	assert_true(exchange(two, 0, VB_WR_RDMA_WRITE, 200) < 40 * VB_MS);
	by_second(&two->end[0]);
	exchange(two, 0, VB_WR_RDMA_WRITE, 200);
	assert_int_equal(by_second(&two->end[0]), 0);
	assert_int_equal(counter(two, 0, VB_PATH_MOVES), 0);
	mend(two, 1);
	exchange(two, 0, VB_WR_RDMA_WRITE, 10000); /* half a second */
	assert_uses_both(two, 0, VB_WR_RDMA_WRITE);
	assert_written(two, 0);
	close_two(two);
}

/* The first is the one that acknowledgements go by: the QP moves, has one rail meanwhile, and two when it is back. */
static void qp__moves_from_the_first_rail_and_has_two_again(void **state)
{
	struct two *two = open_rails(VB_WR_RDMA_WRITE);
	cut(two, 0);
	assert_true(exchange(two, 0, VB_WR_RDMA_WRITE, 200) < 40 * VB_MS);
	assert_int_equal(counter(two, 0, VB_PATH_MOVES), 1);
	by_second(&two->end[0]);
	exchange(two, 0, VB_WR_RDMA_WRITE, 200);
	assert_int_equal(by_second(&two->end[0]), 100);
	mend(two, 0);
	exchange(two, 0, VB_WR_RDMA_WRITE, 10000);
	assert_int_equal(counter(two, 0, VB_PATH_RETURNS), 1);
	assert_uses_both(two, 0, VB_WR_RDMA_WRITE);
	assert_written(two, 0);
	close_two(two);
}

/* The peer's packets still come by the first, and what goes out is lost there: all of it goes by the second. */
static void rail__that_carries_nothing_outwards_is_left(void **state)
{
	struct two *two = open_rails(VB_WR_RDMA_WRITE);
	two->end[1].hears[0] = false;
	assert_true(exchange(two, 0, VB_WR_RDMA_WRITE, 200) < 40 * VB_MS);
	by_second(&two->end[0]);
	exchange(two, 0, VB_WR_RDMA_WRITE, 200);
	assert_true(by_second(&two->end[0]) >= 98);
	assert_int_equal(counter(two, 0, VB_QP_ERRORS), 0);
	assert_written(two, 0);
	close_two(two);
}

static void reads__go_on_when_either_rail_dies(void **state)
{
	for (unsigned link = 0; link < 2; link++) {
		struct two *two = open_rails(VB_WR_RDMA_READ);
		cut(two, link);
		assert_true(exchange(two, 0, VB_WR_RDMA_READ, 32) < 40 * VB_MS);
		by_second(&two->end[1]);
		exchange(two, 0, VB_WR_RDMA_READ, 200);
		unsigned share = by_second(&two->end[1]);
		assert_true(link == 0 ? share >= 98 : share <= 2);
		mend(two, link);
		exchange(two, 0, VB_WR_RDMA_READ, 10000);
		assert_uses_both(two, 1, VB_WR_RDMA_READ);
		close_two(two);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qp__goes_on_over_the_other_link_and_comes_back),
		cmocka_unit_test(qp__reads_over_the_other_link),
		cmocka_unit_test(qp__moves_when_one_direction_dies),
		cmocka_unit_test(qps__that_both_send_end_on_the_same_pair),
		cmocka_unit_test(qp__leads_a_peer_whose_word_was_lost),
		cmocka_unit_test(qp__that_is_given_its_addresses_again_stays_where_it_is),
		cmocka_unit_test(qp__that_finds_no_way_fails_as_ever),
		cmocka_unit_test(qp__stays_where_a_slow_peer_answers),
		cmocka_unit_test(ends__with_one_address_each_say_nothing_of_paths),
		cmocka_unit_test(ends__that_carry_packets_ask_nothing),
		cmocka_unit_test(address__that_is_not_proved_is_not_heard),
		cmocka_unit_test(question__without_the_secret_is_not_answered),
		cmocka_unit_test(question__is_answered_once_and_proves_nothing),
		cmocka_unit_test(secret__of_the_peer_is_the_first_that_it_says),
		cmocka_unit_test(address__that_is_lost_is_told_again),
		cmocka_unit_test(qp__with_many_paths_uses_both_links),
		cmocka_unit_test(rail__that_dies_is_left_and_used_again),
		cmocka_unit_test(qp__moves_from_the_first_rail_and_has_two_again),
		cmocka_unit_test(rail__that_carries_nothing_outwards_is_left),
		cmocka_unit_test(reads__go_on_when_either_rail_dies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
