/* Two ends that agree on packets larger than the path MTU. */
#include "roce/large.h"
#include "roce/batch.h"
#include "two.h"

enum { LARGE = 2500 };

static void let_link_carry(struct two *two, unsigned end, uint32_t large_mtu)
{
	vb_nic_set_mtu(two->end[end].rig->nic, RIG_MTU, large_mtu);
}

static struct two *open_large(uint32_t first, uint32_t second)
{
	struct two *two = open_two(1, 1);
	let_link_carry(two, 0, first);
	let_link_carry(two, 1, second);
	return two;
}

static uint32_t sends(const struct two *two, unsigned end)
{
	return two->end[end].qp->large_mtu;
}

static unsigned hellos(const struct two *two, unsigned end)
{
	return two->end[end].left[VB_HELLO];
}

static unsigned data_left(const struct two *two)
{
	unsigned left = 0;
	for (unsigned link = 0; link < COUNT_OF(two->end[0].data); link++)
		left += two->end[0].data[link] + two->end[1].data[link];
	return left;
}

/* The message is 4,096 bytes: four packets of the path MTU, or two that are large. */
static unsigned packets_of_a_message(struct two *two, enum vb_wr_opcode opcode)
{
	unsigned before = data_left(two);
	exchange(two, 0, opcode, 1);
	return data_left(two) - before;
}

static void large__is_used_once_a_packet_of_that_size_has_come_through(void **state)
{
	struct two *two = open_large(LARGE, 4096);
	exchange(two, 0, VB_WR_RDMA_WRITE, 1);
	assert_int_equal(two->end[0].longest, RIG_MTU);
	exchange(two, 0, VB_WR_RDMA_WRITE, 3); /* before one of them leaves the question, after it its answer comes */
	assert_int_equal(two->end[0].longest, LARGE + VB_LARGE_HEADERS); /* the question */
	assert_int_equal(sends(two, 0), LARGE);
	assert_int_equal(hellos(two, 0), 2 + 1); /* it has answered the other's question, too */
	assert_int_equal(
		rig_counter(two->end[0].rig, VB_TX_BYTES), 4 * MESSAGE); /* the question's length does not count */
	assert_int_equal(rig_counter(two->end[1].rig, VB_RX_BYTES), 4 * MESSAGE);
	exchange(two, 0, VB_WR_RDMA_WRITE, 20);
	assert_int_equal(packets_of_a_message(two, VB_WR_RDMA_WRITE), 2);
	assert_written(two, 0);
	assert_int_equal(packets_of_a_message(two, VB_WR_RDMA_READ), 2);
	assert_int_equal(hellos(two, 0), 2 + 1);
	assert_int_equal(sends(two, 1), LARGE); /* though the other end has sent nothing */
	assert_int_equal(hellos(two, 1), 2 + 1);
	exchange(two, 1, VB_WR_RDMA_WRITE, 20);
	assert_int_equal(sends(two, 1), LARGE);
	assert_written(two, 1);
	close_two(two);
}

static void assert_read(const struct two *two, unsigned by)
{
	assert_memory_equal(two->end[1 - by].rig->memory, two->end[by].rig->memory + RIG_BYTES / 2, RIG_BYTES / 2);
}

static void large__is_how_reads_are_answered_once_both_ways_carry_it(void **state)
{
	struct two *two = open_large(LARGE, 4096);
	exchange(two, 0, VB_WR_RDMA_READ, 20);
	assert_int_equal(two->end[1].longest, LARGE + VB_LARGE_HEADERS);
	assert_int_equal(packets_of_a_message(two, VB_WR_RDMA_READ), 2);
	assert_true(two->end[0].left[VB_READ_LARGE] > 0);
	unsigned firsts = two->end[1].left[VB_READ_RESPONSE_FIRST]; /* of before */
	assert_read(two, 0);
	unsigned psns = two->end[1].qp->responder.expected_psn;
	exchange(two, 0, VB_WR_RDMA_READ, 1);
	assert_int_equal((two->end[1].qp->responder.expected_psn - psns) & VB_PSN_MASK, 2);
	assert_int_equal(two->end[1].left[VB_READ_RESPONSE_FIRST], firsts);
	assert_int_equal(packets_of_a_message(two, VB_WR_RDMA_WRITE), 2);
	close_two(two);
}

static void large__is_not_how_reads_are_answered_where_only_one_way_carries_it(void **state)
{
	struct two *two = open_large(LARGE, LARGE);
	two->carried_from[1] = RIG_MTU;
	exchange(two, 0, VB_WR_RDMA_READ, 20);
	assert_int_equal(packets_of_a_message(two, VB_WR_RDMA_READ), 4);
	assert_int_equal(packets_of_a_message(two, VB_WR_RDMA_WRITE), 2);
	assert_int_equal(two->end[0].left[VB_READ_LARGE], 0);
	for (unsigned i = 0; i < 40; i++) {
		run(two, 50 * VB_MS);
		exchange(two, 0, VB_WR_RDMA_READ, 1);
	}
	assert_in_range(hellos(two, 0), 1, 1 + 4 + hellos(two, 1)); /* its questions, and its answers to the other's */
	assert_in_range(hellos(two, 1), 1, 16);
	close_two(two);
}

/* The peer's question is lost, and asked again; ours has come through meanwhile. */
static void large__is_how_reads_are_answered_when_the_other_question_has_come(void **state)
{
	struct two *two = open_large(LARGE, LARGE);
	two->carried_from[1] = RIG_MTU;
	exchange(two, 0, VB_WR_RDMA_READ, 20);
	two->carried_from[1] = LARGE;
	run(two, 50 * VB_MS);
	exchange(two, 0, VB_WR_RDMA_READ, 4);
	assert_int_equal(packets_of_a_message(two, VB_WR_RDMA_READ), 2);
	assert_read(two, 0);
	close_two(two);
}

static void large__is_not_used_unless_both_ends_do_so(void **state)
{
	static const uint32_t without[][2] = { { 0, LARGE }, { LARGE, 0 }, { LARGE, RIG_MTU }, { RIG_MTU / 2, LARGE } };
	for (size_t i = 0; i < COUNT_OF(without); i++) {
		struct two *two = open_large(without[i][0], without[i][1]);
		exchange(two, 0, VB_WR_RDMA_WRITE, 20);
		assert_int_equal(two->end[0].longest, RIG_MTU);
		assert_int_equal(hellos(two, 0), 1);
		close_two(two);
	}
}

/* Such as an Ethernet of 4,200 bytes, and a program that takes 1,024 without a look. */
static void large__is_the_links_path_mtu_where_that_is_all_it_carries(void **state)
{
	struct two *two = open_two(1, 1);
	for (unsigned end = 0; end < 2; end++)
		vb_nic_set_mtu(two->end[end].rig->nic, 2 * RIG_MTU, 0);
	exchange(two, 0, VB_WR_RDMA_WRITE, 20);
	assert_int_equal(sends(two, 0), 2 * RIG_MTU);
	assert_int_equal(packets_of_a_message(two, VB_WR_RDMA_WRITE), 2);
	assert_written(two, 0);
	close_two(two);
}

static void large__is_offered_whatever_path_mtu_was_asked_for(void **state)
{
	struct two *two = open_large(LARGE, LARGE);
	assert_int_equal(vb_large_offer(two->end[0].qp), LARGE);
	vb_nic_set_mtu(two->end[0].rig->nic, 2 * RIG_MTU, LARGE);
	assert_int_equal(vb_large_offer(two->end[0].qp), LARGE);
	vb_nic_set_mtu(two->end[0].rig->nic, 2 * RIG_MTU, 0);
	assert_int_equal(vb_large_offer(two->end[0].qp), 2 * RIG_MTU);
	vb_nic_set_mtu(two->end[0].rig->nic, RIG_MTU, 0);
	assert_int_equal(vb_large_offer(two->end[0].qp), 0);
	let_link_carry(two, 0, LARGE);
	vb_roce_lane(two->end[0].rig->lane)->config.goes_by_large = false;
	assert_int_equal(vb_large_offer(two->end[0].qp), 0);
	close_two(two);
}

/* Else it could not go over to that one. */
static void large__is_no_more_than_every_link_carries(void **state)
{
	struct two *two = open_large(LARGE, LARGE);
	struct rig *rig = two->end[0].rig;
	struct vb_address all[] = { { address(0, 0), LARGE }, { address(0, 1), RIG_MTU + 100 } };
	vb_lane_set_addresses(rig->lane, all, 2);
	assert_int_equal(vb_large_offer(two->end[0].qp), RIG_MTU + 100);
	all[1].mtu = RIG_MTU;
	vb_lane_set_addresses(rig->lane, all, 2);
	assert_int_equal(vb_large_offer(two->end[0].qp), 0);
	all[1].mtu = RIG_MTU - 1; /* that one is of no use for it in any case */
	vb_lane_set_addresses(rig->lane, all, 2);
	assert_int_equal(vb_large_offer(two->end[0].qp), LARGE);
	close_two(two);
}

static void large__that_no_path_carries_is_asked_for_four_times(void **state)
{
	struct two *two = open_large(LARGE, LARGE);
	two->carried = RIG_MTU;
	for (unsigned i = 0; i < 400; i++) {
		assert_true(exchange(two, 0, VB_WR_RDMA_WRITE, 1) < VB_MS);
		run(two, 5 * VB_MS);
	}
	assert_int_equal(sends(two, 0), 0);
	assert_int_equal(hellos(two, 0), 1 + 4);
	assert_written(two, 0);
	close_two(two);
}

/* The question is as long as the longest packet: a way that carries all but that one is not taken for one that does. */
static void large__is_not_used_where_the_longest_headers_are_too_long(void **state)
{
	struct two *two = open_large(LARGE, LARGE);
	for (two->carried = LARGE - 4; two->carried > LARGE - 32; two->carried -= 4) {
		exchange(two, 0, VB_WR_RDMA_WRITE, 2);
		assert_int_equal(sends(two, 0), 0);
	}
	assert_written(two, 0);
	close_two(two);
}

static void large__is_asked_for_again_when_the_question_was_lost(void **state)
{
	struct two *two = open_large(LARGE, LARGE);
	two->carried = RIG_MTU;
	exchange(two, 0, VB_WR_RDMA_WRITE, 4);
	assert_int_equal(hellos(two, 0), 2);
	two->carried = LARGE;
	run(two, 10 * VB_MS);
	exchange(two, 0, VB_WR_RDMA_WRITE, 4);
	assert_int_equal(sends(two, 0), LARGE);
	close_two(two);
}

static void large__is_used_as_long_as_the_link_carries_it(void **state)
{
	struct two *two = open_large(LARGE, LARGE);
	exchange(two, 0, VB_WR_RDMA_WRITE, 20);
	assert_int_equal(packets_of_a_message(two, VB_WR_RDMA_WRITE), 2);
	let_link_carry(two, 0, 0);
	assert_int_equal(packets_of_a_message(two, VB_WR_RDMA_WRITE), 4);
	let_link_carry(two, 0, LARGE);
	assert_int_equal(packets_of_a_message(two, VB_WR_RDMA_WRITE), 2);
	close_two(two);
}

static void large__packets_are_sent_again_as_they_were(void **state)
{
	struct two *two = open_large(LARGE, LARGE);
	exchange(two, 0, VB_WR_RDMA_WRITE, 20);
	memset(two->end[0].rig->memory, 7, RIG_BYTES / 2);
	cut(two, 0);
	for (unsigned i = 0; i < 8; i++)
		post(two, 0, VB_WR_RDMA_WRITE);
	run(two, VB_MS);
	mend(two, 0);
	run(two, 200 * VB_MS);
	assert_int_equal(two->end[0].done, 28);
	assert_true(counter(two, 0, VB_RETRANSMITTED) + counter(two, 0, VB_PROBES) > 0);
	assert_written(two, 0);
	close_two(two);
}

/* Requests and responses: each is lost once in a while, and asked for again as it was. */
static void large__responses_are_asked_for_again_as_they_were(void **state)
{
	struct two *two = open_large(LARGE, LARGE);
	exchange(two, 0, VB_WR_RDMA_READ, 20);
	memset(two->end[1].rig->memory, 9, RIG_BYTES / 2);
	unsigned before = two->end[0].left[VB_READ_REQUEST];
	for (unsigned i = 0; i < 40; i++) {
		two->end[i % 2].deaf_to_data = 1 + i % 3;
		for (unsigned k = 0; k < 8; k++)
			post(two, 0, i % 5 == k ? VB_WR_RDMA_WRITE : VB_WR_RDMA_READ);
		run(two, 20 * VB_MS);
	}
	run(two, 400 * VB_MS);
	assert_int_equal(two->end[0].done, two->end[0].posted);
	assert_true(counter(two, 0, VB_LOST) > 0);
	assert_int_equal(two->end[0].left[VB_READ_REQUEST], before);
	assert_read(two, 0);
	close_two(two);
}

/* A connection that was reset is another one. */
static void large__ends_with_its_connection(void **state)
{
	struct two *two = open_large(LARGE, LARGE);
	exchange(two, 0, VB_WR_RDMA_WRITE, 20);
	assert_int_equal(sends(two, 0), LARGE);
	for (unsigned i = 0; i < 2; i++)
		rig_modify(two->end[i].rig, two->end[i].qp, VB_QPS_RESET, 0);
	let_link_carry(two, 1, 0);
	for (unsigned i = 0; i < 2; i++)
		connect_end(&two->end[i], i, vb_qp_number(two->end[1 - i].qp));
	assert_int_equal(sends(two, 0), 0);
	two->end[0].longest = 0;
	exchange(two, 0, VB_WR_RDMA_WRITE, 20);
	assert_int_equal(two->end[0].longest, RIG_MTU);
	close_two(two);
}

static void large__goes_over_to_another_link_with_its_connection(void **state)
{
	struct two *two = open_two(2, 2);
	let_link_carry(two, 0, LARGE);
	let_link_carry(two, 1, LARGE);
	exchange(two, 0, VB_WR_RDMA_WRITE, 20);
	assert_int_equal(sends(two, 0), LARGE);
	cut(two, 0);
	exchange(two, 0, VB_WR_RDMA_WRITE, 20);
	assert_int_equal(counter(two, 0, VB_PATH_MOVES), 1);
	unsigned asked = hellos(two, 0), left = two->end[0].data[1];
	exchange(two, 0, VB_WR_RDMA_WRITE, 1);
	assert_int_equal(two->end[0].data[1], left + 2);
	assert_int_equal(hellos(two, 0), asked); /* it has been asked there already */
	assert_written(two, 0);
	close_two(two);
}

/* The other link carries large packets one way alone. */
static void large__is_not_how_reads_are_answered_by_another_link_before_one_has_come_by_it(void **state)
{
	struct two *two = open_two(2, 2);
	let_link_carry(two, 0, LARGE);
	let_link_carry(two, 1, LARGE);
	exchange(two, 0, VB_WR_RDMA_READ, 20);
	assert_int_equal(packets_of_a_message(two, VB_WR_RDMA_READ), 2);
	cut(two, 0);
	two->carried_from[1] = RIG_MTU;
	memset(two->end[1].rig->memory, 5, RIG_BYTES / 2);
	exchange(two, 0, VB_WR_RDMA_WRITE, 1); /* it has moved when that is done */
	exchange(two, 0, VB_WR_RDMA_READ, 20);
	assert_int_equal(counter(two, 0, VB_PATH_MOVES), 1);
	assert_int_equal(packets_of_a_message(two, VB_WR_RDMA_READ), 4);
	assert_int_equal(packets_of_a_message(two, VB_WR_RDMA_WRITE), 2);
	assert_read(two, 0);
	close_two(two);
}

/* Its program gives it another address in SQD. */
static void large__is_asked_for_again_where_packets_go_another_way(void **state)
{
	struct two *two = open_large(LARGE, LARGE);
	exchange(two, 0, VB_WR_RDMA_WRITE, 20);
	assert_int_equal(packets_of_a_message(two, VB_WR_RDMA_WRITE), 2);
	vb_large_readdress(two->end[0].qp);
	unsigned before = hellos(two, 0);
	assert_int_equal(packets_of_a_message(two, VB_WR_RDMA_WRITE), 4);
	exchange(two, 0, VB_WR_RDMA_WRITE, 2);
	assert_int_equal(hellos(two, 0), before + 1);
	assert_int_equal(packets_of_a_message(two, VB_WR_RDMA_WRITE), 2);
	close_two(two);
}

/* The other end has proved all, and its packets go as they did. */
static void large__is_how_reads_are_answered_after_one_end_alone_goes_another_way(void **state)
{
	struct two *two = open_large(LARGE, LARGE);
	exchange(two, 0, VB_WR_RDMA_READ, 20);
	for (unsigned i = 0; i < 8; i++) {
		run(two, 50 * VB_MS);
		vb_large_readdress(two->end[0].qp);
		assert_int_equal(packets_of_a_message(two, VB_WR_RDMA_READ), 4);
		exchange(two, 0, VB_WR_RDMA_READ, 8);
		assert_int_equal(packets_of_a_message(two, VB_WR_RDMA_READ), 2);
	}
	assert_read(two, 0);
	close_two(two);
}

/* A responder that has yet to prove its own way cuts what it sends small, but answers in large packets. */
static void large__answers_of_a_turn_are_no_more_than_a_turn_takes(void **state)
{
	struct two *two = open_large(LARGE, LARGE);
	struct rig *rig = two->end[1].rig;
	struct vb_qp *qp = two->end[1].qp;
	struct vb_sge sge = rig_sge(two->end[0].rig, RIG_BYTES / 2, RIG_BYTES / 2);
	uint32_t bytes = 0;
	exchange(two, 0, VB_WR_RDMA_READ, 20);
	vb_roce(qp)->selective->large.is_proved = false;
	qp->large_mtu = 0;
	vb_roce_lane(rig->lane)->config.turn_bytes = 4 * LARGE;
	rig_post(two->end[0].qp, &(struct vb_send_wr){ .opcode = VB_WR_RDMA_READ,
					 .sges = &sge,
					 .sge_count = 1,
					 .remote_addr = (uintptr_t)rig->memory,
					 .rkey = vb_mr_key(rig->mr) });
	turn(two, &two->end[0], &two->end[1]);
	rig->batch.count = rig->batch.iov_count = 0;
	vb_list_remove(&qp->ready_link);
	assert_true(vb_roce_take_turn(qp, &rig->batch, VB_BATCH_PACKETS, rig->now));
	for (unsigned i = 0; i < rig->batch.count; i++)
		bytes += rig->batch.out[i].packet.payload_length;
	assert_in_range(bytes, 3 * LARGE, 4 * LARGE + LARGE);
	vb_batch_hand_out(rig->lane, &rig->batch);
	vb_lane_transmit_done(rig->lane, rig->batch.completions, rig->batch.count, rig->now);
	vb_schedule_now(qp);
	close_two(two);
}

static void large__fits_into_every_window(void **state)
{
	struct two *two = open_large(LARGE, LARGE);
	struct vb_cc *cc = &vb_roce(two->end[0].qp)->congestion.cc;
	exchange(two, 0, VB_WR_RDMA_WRITE, 1);
	cc->window_bytes = cc->min_window;
	assert_true(cc->window_bytes < LARGE);
	exchange(two, 0, VB_WR_RDMA_WRITE, 3);
	assert_int_equal(sends(two, 0), LARGE);
	assert_true(cc->min_window > LARGE && cc->window_bytes > LARGE);
	close_two(two);
}

/* ---- The receiver ------------------------------------------------------------------------------------------------ */

static void receive_send_of(struct two *two, uint8_t opcode, uint32_t ahead, uint32_t length)
{
	static uint8_t payload[VB_LARGE_MTU];
	struct end *end = &two->end[1];
	rig_receive(end->rig, end->qp,
		(struct vb_packet){ .opcode = opcode,
			.psn = (end->qp->responder.expected_psn + ahead) & VB_PSN_MASK,
			.payload = payload,
			.payload_length = length });
}

static void post_receive_of(struct two *two, uint32_t length)
{
	struct end *end = &two->end[1];
	struct vb_sge sge = rig_sge(end->rig, 0, length);
	assert_int_equal(vb_rq_post(end->qp, &(struct vb_recv_wr){ .sges = &sge, .sge_count = 1 }), 0);
}

static void receiver__refuses_large_packets_that_were_not_shown_to_come_through(void **state)
{
	struct two *two = open_large(LARGE, LARGE);
	exchange(two, 0, VB_WR_RDMA_WRITE, 1);
	post_receive_of(two, 2 * LARGE);
	receive_send_of(two, VB_SEND_FIRST, 0, LARGE);
	assert_int_equal(vb_state(two->end[1].qp), VB_QPS_ERR);
	close_two(two);
}

static void receiver__drops_a_read_by_large_packets_that_were_not_shown_to_come_through(void **state)
{
	struct two *two = open_large(LARGE, LARGE);
	struct end *end = &two->end[1];
	exchange(two, 0, VB_WR_RDMA_WRITE, 1);
	for (uint32_t ahead = 0; ahead < 3; ahead += 2)
		rig_receive(end->rig, end->qp,
			(struct vb_packet){ .opcode = VB_READ_LARGE,
				.psn = (end->qp->responder.expected_psn + ahead) & VB_PSN_MASK,
				.va = (uintptr_t)end->rig->memory,
				.rkey = vb_mr_key(end->rig->mr),
				.dma_length = 3 * LARGE });
	assert_int_equal(counter(two, 1, VB_DROP_TRANSPORT), 2);
	assert_int_equal(vb_state(end->qp), VB_QPS_RTS);
	exchange(two, 0, VB_WR_RDMA_WRITE, 8);
	assert_written(two, 0);
	close_two(two);
}

static void receiver__knows_the_size_of_a_message_by_its_first(void **state)
{
	static const struct {
		uint32_t first, middle, last;
		bool is_right;
	} cases[] = { { LARGE, LARGE, 1, true }, { LARGE, LARGE, LARGE, true }, { RIG_MTU, RIG_MTU, RIG_MTU, true },
		{ LARGE, RIG_MTU, 1, false }, { RIG_MTU, LARGE, 1, false }, { RIG_MTU, RIG_MTU, RIG_MTU + 1, false },
		{ LARGE, LARGE, LARGE + 1, false }, { LARGE - 1, LARGE - 1, 1, false }, { LARGE, LARGE, 0, false } };
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct two *two = open_large(LARGE, LARGE);
		exchange(two, 0, VB_WR_RDMA_WRITE, 20);
		post_receive_of(two, 3 * LARGE);
		receive_send_of(two, VB_SEND_FIRST, 0, cases[i].first);
		receive_send_of(two, VB_SEND_MIDDLE, 0, cases[i].middle);
		receive_send_of(two, VB_SEND_LAST, 0, cases[i].last);
		assert_int_equal(vb_state(two->end[1].qp), cases[i].is_right ? VB_QPS_RTS : VB_QPS_ERR);
		close_two(two);
	}
}

static void receiver__takes_any_length_of_an_only_up_to_the_large_one(void **state)
{
	static const uint32_t lengths[] = { 0, 1, RIG_MTU, RIG_MTU + 1, LARGE, LARGE + 1 };
	struct two *two = open_large(LARGE, LARGE);
	exchange(two, 0, VB_WR_RDMA_WRITE, 20);
	for (size_t i = 0; i < COUNT_OF(lengths); i++) {
		post_receive_of(two, 2 * LARGE);
		receive_send_of(two, VB_SEND_ONLY, 0, lengths[i]);
		assert_int_equal(vb_state(two->end[1].qp), lengths[i] <= LARGE ? VB_QPS_RTS : VB_QPS_ERR);
	}
	close_two(two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(large__is_used_once_a_packet_of_that_size_has_come_through),
		cmocka_unit_test(large__is_how_reads_are_answered_once_both_ways_carry_it),
		cmocka_unit_test(large__is_not_how_reads_are_answered_where_only_one_way_carries_it),
		cmocka_unit_test(large__is_how_reads_are_answered_when_the_other_question_has_come),
		cmocka_unit_test(large__is_not_used_unless_both_ends_do_so),
		cmocka_unit_test(large__is_the_links_path_mtu_where_that_is_all_it_carries),
		cmocka_unit_test(large__is_offered_whatever_path_mtu_was_asked_for),
		cmocka_unit_test(large__is_no_more_than_every_link_carries),
		cmocka_unit_test(large__that_no_path_carries_is_asked_for_four_times),
		cmocka_unit_test(large__is_not_used_where_the_longest_headers_are_too_long),
		cmocka_unit_test(large__is_asked_for_again_when_the_question_was_lost),
		cmocka_unit_test(large__is_used_as_long_as_the_link_carries_it),
		cmocka_unit_test(large__packets_are_sent_again_as_they_were),
		cmocka_unit_test(large__responses_are_asked_for_again_as_they_were),
		cmocka_unit_test(large__ends_with_its_connection),
		cmocka_unit_test(large__goes_over_to_another_link_with_its_connection),
		cmocka_unit_test(large__is_not_how_reads_are_answered_by_another_link_before_one_has_come_by_it),
		cmocka_unit_test(large__is_asked_for_again_where_packets_go_another_way),
		cmocka_unit_test(large__is_how_reads_are_answered_after_one_end_alone_goes_another_way),
		cmocka_unit_test(large__answers_of_a_turn_are_no_more_than_a_turn_takes),
		cmocka_unit_test(large__fits_into_every_window),
		cmocka_unit_test(receiver__refuses_large_packets_that_were_not_shown_to_come_through),
		cmocka_unit_test(receiver__drops_a_read_by_large_packets_that_were_not_shown_to_come_through),
		cmocka_unit_test(receiver__knows_the_size_of_a_message_by_its_first),
		cmocka_unit_test(receiver__takes_any_length_of_an_only_up_to_the_large_one),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
