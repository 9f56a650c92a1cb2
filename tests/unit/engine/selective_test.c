/* The requester where both ends recover selectively: what it sends again, and when. */
#include <errno.h>
#include "selective.h"

static void requester__sends_again_what_is_missing_alone(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	measure_round_trip(rig, qp);
	post_writes(rig, qp, 8); /* PSNs 1 to 8 */
	assert_int_equal(packets_in_flight(qp), 8);
	wait(rig, ROUND_TRIP);
	receive_bitmap(rig, qp, 2, 1 << 3 | 1 << 5 | 1 << 6, 0); /* 2, 4, 7 and 8 are not there */
	assert_int_equal(packets_in_flight(qp), 4);
	assert_int_equal(rig_transmit(rig), 0);
	wait(rig, ROUND_TRIP / 4 - VB_NS);
	assert_int_equal(rig_transmit(rig), 0); /* they may be late */
	wait(rig, VB_NS);
	assert_int_equal(packets_in_flight(qp), 2);
	assert_leaves(rig, 2, (uint32_t[]){ 2, 4 });
	assert_int_equal(packets_in_flight(qp), 4);
	assert_int_equal(rig_counter(rig, VB_LOST), 2);
	receive_ack(rig, qp, 8);
	assert_completes(rig, 1);
	assert_int_equal(packets_in_flight(qp), 0);
	assert_false(vb_selective_keeps_account(qp));
	assert_int_equal(rig_counter(rig, VB_RETRANSMITTED), 2);
	assert_int_equal(rig_counter(rig, VB_TIMEOUTS), 0);
	close_rig(rig, qp);
}

/* What is sent behind it says that it is lost again. */
static void requester__sends_again_what_is_lost_once_more(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	measure_round_trip(rig, qp);
	post_writes(rig, qp, 4);
	wait(rig, ROUND_TRIP);
	receive_bitmap(rig, qp, 1, 1 << 3, 0);
	wait(rig, ROUND_TRIP / 4);
	assert_leaves(rig, 2, (uint32_t[]){ 1, 2 });
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t newest = 5 + i;
		wait(rig, VB_US);
		post_writes(rig, qp, 1);
		wait(rig, ROUND_TRIP);
		receive_bitmap(rig, qp, 1, (1u << newest << 1) - (1 << 2), 0); /* all but PSN 1 */
		assert_int_equal(rig_transmit(rig), 0);
		wait(rig, ROUND_TRIP);
		assert_leaves(rig, 1, (uint32_t[]){ 1 });
	}
	receive_ack(rig, qp, 7);
	assert_completes(rig, 4);
	assert_int_equal(rig_counter(rig, VB_RETRANSMITTED), 5);
	close_rig(rig, qp);
}

/* What was sent again arrives sooner than it can: it is the first one, which was only late. Else all that was sent
 * between the two would be missed far too soon. */
static void requester__takes_what_comes_too_soon_for_what_was_sent_first(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	measure_round_trip(rig, qp);
	post_writes(rig, qp, 3); /* PSNs 1 to 3 */
	wait(rig, ROUND_TRIP);
	receive_bitmap(rig, qp, 1, 1 << 2 | 1 << 3, 0);
	wait(rig, ROUND_TRIP / 8);
	post_writes(rig, qp, 1); /* PSN 4 */
	wait(rig, ROUND_TRIP / 8);
	assert_leaves(rig, 1, (uint32_t[]){ 1 });
	wait(rig, ROUND_TRIP / 8);
	receive_ack(rig, qp, 3);
	wait(rig, ROUND_TRIP / 2);
	assert_int_equal(rig_transmit(rig), 0);
	assert_int_equal(rig_counter(rig, VB_LOST), 1);
	assert_int_equal(packets_in_flight(qp), 1);
	close_rig(rig, qp);
}

/* The same before any round trip is known. */
static void requester__takes_what_was_sent_again_for_the_first_until_it_knows_better(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	post_writes(rig, qp, 5); /* PSNs 0 to 4 */
	wait(rig, ROUND_TRIP);
	receive_bitmap(rig, qp, 0, 1 << 1 | 1 << 3, 0);
	assert_int_equal(rig_transmit(rig), 0);
	wait(rig, ROUND_TRIP / 4); /* it takes no longer than since the oldest left */
	assert_leaves(rig, 2, (uint32_t[]){ 0, 2 });
	do { /* until the oldest is a probe */
		assert_true(vb_time_since(VB_S, rig->now) < 100 * VB_MS);
		wait(rig, ROUND_TRIP);
	} while (rig_transmit(rig) == 0 || left(rig, 0)->psn != RIG_SQ_PSN);
	wait(rig, ROUND_TRIP / 8);
	receive_bitmap(rig, qp, 2, 1 << 3, 0);
	wait(rig, ROUND_TRIP / 8);
	assert_int_equal(rig_transmit(rig), 0);
	assert_int_equal(rig_counter(rig, VB_LOST), 2);
	assert_int_equal(packets_in_flight(qp), 2);
	close_rig(rig, qp);
}

/* One that is lost of them keeps nobody waiting for a probe. */
static void requester__asks_more_than_once_a_window(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	uint32_t asking = 0, left_in_all = 0;
	measure_round_trip(rig, qp);
	vb_roce(qp)->congestion.cc.window_bytes = 16 * (RIG_MTU + VB_PACKET_OVERHEAD);
	struct vb_sge sge = rig_sge(rig, 0, 40 * RIG_MTU);
	rig_post(qp, &(struct vb_send_wr){ .opcode = VB_WR_RDMA_WRITE, .sges = &sge, .sge_count = 1 });
	for (unsigned n; (n = rig_transmit(rig)) > 0; left_in_all += n)
		for (unsigned i = 0; i < n; i++)
			asking += left(rig, i)->ackreq;
	assert_int_equal(left_in_all, 16);
	assert_in_range(asking, 4, 5);
	close_rig(rig, qp);
}

/* All that was under way may have gone by a path that died: nothing comes back that would say so. */
static void requester__asks_a_silent_peer_by_other_ports(void **state)
{
	enum { PATHS = 4 };
	struct rig *rig = open_rig((struct vb_lane_config){ .paths = PATHS });
	struct vb_qp *qp = rig_connected(rig, NULL);
	measure_round_trip(rig, qp);
	post_writes(rig, qp, 1);
	uint16_t before = rig->batch.out[0].flow;
	unsigned sent = 0, alike = 0;
	while (vb_state(qp) == VB_QPS_RTS) {
		wait(rig, VB_MS / 4);
		if (rig_transmit(rig) == 0)
			continue;
		assert_int_equal(left(rig, 0)->psn, RIG_SQ_PSN + 1);
		alike = rig->batch.out[0].flow == before ? alike + 1 : 0;
		assert_true(alike < 2); /* a probe, and behind it a timeout or the reverse, may have the same */
		before = rig->batch.out[0].flow;
		sent++;
	}
	assert_true(sent > PATHS);
	struct vb_qp_account account;
	assert_true(vb_qp_account(qp, &account));
	assert_int_equal(account.paths.count, PATHS);
	assert_true(account.paths.left > 0);
	assert_int_equal(account.paths.least_rtt / VB_US, ROUND_TRIP / VB_US);
	assert_int_equal(account.least_rtt, ROUND_TRIP);
	assert_true(rig_counter(rig, VB_PROBES) > 0 && rig_counter(rig, VB_TIMEOUTS) > 1);
	close_rig(rig, qp);
}

/* On a long way most of a window is on its way. The shortest round trip, and the bytes that the peer holds, decide how
 * large it may be. */
static void window__may_be_as_large_as_the_way_is_long(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ .cc = { .algorithm = &vb_cc_queue } });
	struct vb_qp *qp = rig_connected(rig, NULL);
	const struct vb_cc *cc = &vb_roce(qp)->congestion.cc;
	static const vb_time round_trips[] = { 100 * VB_MS, 200 * VB_MS, 9 * VB_MS, VB_MS };
	static const uint64_t windows[] = { VB_HOLD_BYTES, VB_HOLD_BYTES, 2 * VB_MAX_WINDOW, VB_MAX_WINDOW };
	assert_int_equal(cc->max_window, VB_MAX_WINDOW);
	for (unsigned i = 0; i < COUNT_OF(round_trips); i++) {
		post_writes(rig, qp, 1);
		rig->now += round_trips[i];
		receive_ack(rig, qp, i);
		assert_completes(rig, 1);
		for (unsigned acks = 0; acks < 4000; acks++) /* it has often seen the way before it wants more */
			vb_congestion_tell(qp,
				&(struct vb_cc_signal){
					.event = VB_CC_ACKED, .acked = 65536, .flight = UINT32_MAX, .now = rig->now });
		assert_int_equal(cc->max_window, windows[i]);
		assert_true(cc->window_bytes <= cc->max_window);
	}
	close_rig(rig, qp);
}

/* The kernel finds no memory for the second one, and the peer holds what came behind it. */
static void requester__hears_of_what_is_behind_a_request_that_fails(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	struct vb_sge sge = rig_sge(rig, 0, 8);
	for (unsigned i = 0; i < 4; i++)
		rig_post(qp, &(struct vb_send_wr){ .wr_id = i,
				     .opcode = VB_WR_RDMA_WRITE,
				     .flags = VB_SEND_SIGNALED,
				     .sges = &sge,
				     .sge_count = 1 });
	assert_int_equal(vb_lane_transmit(rig->lane, &rig->batch, VB_BATCH_PACKETS, rig->now), 4);
	rig->batch.completions[1].error = EFAULT;
	vb_lane_transmit_done(rig->lane, rig->batch.completions, 4, rig->now);
	receive_bitmap(rig, qp, 1, 1 << 2 | 1 << 3, 0);
	struct vb_wc wc[4];
	assert_int_equal(vb_cq_poll(rig->cq, wc, 4), 4);
	assert_int_equal(wc[0].status, VB_WC_SUCCESS);
	assert_int_equal(wc[1].status, VB_WC_LOC_PROT_ERR);
	assert_int_equal(wc[2].status, VB_WC_WR_FLUSH_ERR);
	close_rig(rig, qp);
}

static void requester__sends_nothing_again_that_is_only_late(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	measure_round_trip(rig, qp);
	post_writes(rig, qp, 4);
	wait(rig, ROUND_TRIP);
	receive_bitmap(rig, qp, 1, 1 << 2 | 1 << 3, 0);
	wait(rig, ROUND_TRIP / 8);
	receive_ack(rig, qp, 3);
	wait(rig, ROUND_TRIP);
	assert_int_equal(rig_transmit(rig), 0);
	assert_int_equal(rig_counter(rig, VB_LOST), 0);
	assert_int_equal(packets_in_flight(qp), 1);
	close_rig(rig, qp);
}

/* The first copy of what was sent again comes after all: next time it is waited for so long. */
static void requester__learns_from_duplicates_how_late_packets_are(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	measure_round_trip(rig, qp);
	post_writes(rig, qp, 4);
	wait(rig, ROUND_TRIP);
	receive_bitmap(rig, qp, 1, 1 << 2, 0);
	wait(rig, ROUND_TRIP / 4);
	assert_leaves(rig, 1, (uint32_t[]){ 1 });
	wait(rig, VB_US);
	receive_ack(rig, qp, 4);
	assert_completes(rig, 1);
	assert_int_equal(vb_roce(qp)->selective->lateness, 0);
	post_writes(rig, qp, 4); /* PSNs 5 to 8 */
	receive_bitmap(rig, qp, 5, 0, 1u << 24 | (RIG_SQ_PSN + 1));
	assert_int_equal(rig_counter(rig, VB_SENT_IN_VAIN), 1);
	vb_time lateness = vb_roce(qp)->selective->lateness;
	assert_true(lateness >= VB_US && lateness <= ROUND_TRIP);
	wait(rig, ROUND_TRIP);
	receive_bitmap(rig, qp, 5, 1 << 6, 1u << 24 | (RIG_SQ_PSN + 1));
	assert_int_equal(rig_counter(rig, VB_SENT_IN_VAIN), 1); /* told again, it says nothing new */
	wait(rig, vb_roce(qp)->recovery.srtt / 4 + lateness - VB_NS);
	assert_int_equal(rig_transmit(rig), 0);
	wait(rig, VB_NS);
	assert_leaves(rig, 1, (uint32_t[]){ 5 });
	close_rig(rig, qp);
}

/* What the window has room for leaves, while the oldest is missing. */
static void requester__goes_on_while_something_is_missing(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	uint32_t next = 1, window = 0;
	measure_round_trip(rig, qp);
	struct vb_sge sge = rig_sge(rig, 0, 40 * RIG_MTU);
	for (int i = 0; i < 4; i++)
		rig_post(qp, &(struct vb_send_wr){ .opcode = VB_WR_RDMA_WRITE, .sges = &sge, .sge_count = 1 });
	for (unsigned n; (n = rig_transmit(rig)) > 0;)
		next += n;
	window = packets_in_flight(qp);
	assert_in_range(window, 8, 100);
	wait(rig, ROUND_TRIP);
	receive_bitmap(rig, qp, 1, 31 << 2, 0);
	assert_int_equal(packets_in_flight(qp), window - 5);
	assert_int_equal(rig_transmit(rig), 5);
	assert_int_equal(left(rig, 0)->psn, RIG_SQ_PSN + next);
	assert_int_equal(packets_in_flight(qp), window);
	receive_ack(rig, qp, 6);
	assert_int_equal(packets_in_flight(qp), window - 1);
	close_rig(rig, qp);
}

static void requester__holds_responses_and_asks_for_those_that_are_missing(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	measure_round_trip(rig, qp);
	post_read(rig, qp, 6); /* PSNs 1 to 6 */
	uint32_t in = vb_roce(qp)->flight.in;
	assert_int_equal(in, 6 * (RIG_MTU + VB_PACKET_OVERHEAD));
	wait(rig, ROUND_TRIP);
	receive_response(rig, qp, 1);
	receive_response(rig, qp, 4);
	receive_response(rig, qp, 4);
	assert_true(held_bytes(rig) > 0);
	assert_int_equal(vb_roce(qp)->flight.in, in / 6 * 4);
	wait(rig, ROUND_TRIP / 4 + VB_US);
	assert_int_equal(vb_roce(qp)->flight.in, in / 6 * 2);
	assert_int_equal(rig_transmit(rig), 1);
	assert_int_equal(left(rig, 0)->opcode, VB_READ_REQUEST);
	assert_int_equal(left(rig, 0)->psn, RIG_SQ_PSN + 2);
	assert_int_equal(left(rig, 0)->dma_length, 2 * RIG_MTU);
	assert_int_equal(vb_roce(qp)->flight.in, in / 6 * 4);
	for (uint32_t ahead = 6; ahead > 1; ahead--)
		receive_response(rig, qp, ahead);
	assert_completes(rig, 1);
	for (uint32_t ahead = 1; ahead < 7; ahead++)
		assert_int_equal(rig->memory[(ahead - 1) * RIG_MTU + 5], ahead + 1);
	assert_int_equal(vb_roce(qp)->flight.in, 0);
	assert_int_equal(held_bytes(rig), 0);
	assert_int_equal(rig_transmit(rig), 0);
	close_rig(rig, qp);
}

/* What lies behind a READ, and was acknowledged long since, completes when that does. */
static void requester__completes_what_waited_for_a_response(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	measure_round_trip(rig, qp);
	post_read(rig, qp, 2); /* PSNs 1 and 2 */
	post_writes(rig, qp, 2);
	wait(rig, ROUND_TRIP);
	receive_ack(rig, qp, 4);
	receive_response(rig, qp, 2);
	assert_completes(rig, 0);
	receive_response(rig, qp, 1);
	assert_completes(rig, 2);
	assert_false(vb_requester_is_busy(qp));
	close_rig(rig, qp);
}

static void requester__believes_nothing_that_cannot_be(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	measure_round_trip(rig, qp);
	post_writes(rig, qp, 4); /* PSNs 1 to 4 */
	wait(rig, ROUND_TRIP);
	receive_bitmap(rig, qp, 1, UINT64_MAX << 5 | 1, 0); /* of what was not sent, or acknowledged */
	receive_bitmap(rig, qp, VB_PSN_MASK - VB_HOLD_PSNS, 2, 0);
	receive_bitmap(rig, qp, 6, UINT64_MAX, 0);
	receive_bitmap(rig, qp, VB_PSN_MASK / 2, UINT64_MAX, 0);
	for (uint32_t i = 1; i < 300; i++)
		receive_bitmap(rig, qp, 1, 0, i << 24 | (i & 7));
	assert_false(vb_selective_keeps_account(qp));
	assert_int_equal(packets_in_flight(qp), 4);
	assert_int_equal(rig_transmit(rig), 0);
	receive_response(rig, qp, 60);
	assert_int_equal(held_bytes(rig), 0);
	receive_ack(rig, qp, 4);
	assert_completes(rig, 1);
	receive_bitmap(rig, qp, 5, UINT64_MAX, 0);
	assert_int_equal(rig_transmit(rig), 0);
	close_rig(rig, qp);
}

/* Packets behind which nothing comes are found missing by a probe. */
static void requester__finds_a_lost_tail_by_a_probe(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	measure_round_trip(rig, qp);
	post_writes(rig, qp, 6);
	wait(rig, ROUND_TRIP);
	receive_ack(rig, qp, 2);
	wait(rig, 2 * VB_MS);
	assert_leaves(rig, 1, (uint32_t[]){ 6 });
	assert_int_equal(rig_counter(rig, VB_PROBES), 1);
	wait(rig, ROUND_TRIP);
	receive_bitmap(rig, qp, 3, 1 << 6, 0);
	wait(rig, ROUND_TRIP);
	assert_leaves(rig, 3, (uint32_t[]){ 3, 4, 5 });
	receive_ack(rig, qp, 6);
	assert_completes(rig, 1);
	assert_int_equal(rig_counter(rig, VB_TIMEOUTS), 0);
	close_rig(rig, qp);
}

/* However it goes back, by itself or because of the peer: all begins anew. */
static void requester__that_goes_back_begins_anew(void **state)
{
	for (int is_rnr = 0; is_rnr < 2; is_rnr++) {
		struct rig *rig = open_rig((struct vb_lane_config){ .never_probes = true });
		struct vb_qp *qp = rig_connected(rig, NULL);
		measure_round_trip(rig, qp);
		post_writes(rig, qp, 6);
		wait(rig, ROUND_TRIP);
		receive_bitmap(rig, qp, 1, 1 << 3 | 1 << 5, 0);
		wait(rig, ROUND_TRIP / 4);
		assert_true(vb_selective_has_lost(qp));
		if (is_rnr)
			rig_receive(rig, qp,
				(struct vb_packet){
					.opcode = VB_ACKNOWLEDGE, .psn = RIG_SQ_PSN + 2, .syndrome = VB_AETH_RNR | 1 });
		else
			wait(rig, 400 * VB_MS);
		assert_int_equal(packets_in_flight(qp), 0);
		assert_false(vb_selective_keeps_account(qp));
		if (is_rnr)
			assert_int_equal(rig_transmit(rig), 0);
		receive_bitmap(rig, qp, 2, 1 << 3 | 1 << 5, 0); /* stale */
		assert_int_equal(packets_in_flight(qp), 0);
		wait(rig, VB_MS);
		assert_int_equal(rig_transmit(rig), 5);
		assert_int_equal(packets_in_flight(qp), 5);
		receive_ack(rig, qp, 6);
		assert_completes(rig, 1);
		close_rig(rig, qp);
	}
}

static void requester__gives_all_back_when_its_qp_goes(void **state)
{
	static const enum vb_qp_state states[] = { VB_QPS_ERR, VB_QPS_RESET };
	for (unsigned i = 0; i < COUNT_OF(states); i++) {
		struct rig *rig = open_rig((struct vb_lane_config){ 0 });
		struct vb_qp *qp = rig_connected(rig, NULL);
		post_read(rig, qp, 4);
		receive_response(rig, qp, 2);
		assert_true(held_bytes(rig) > 0);
		rig_modify(rig, qp, states[i], 0);
		assert_int_equal(held_bytes(rig), 0);
		assert_false(vb_selective_keeps_account(qp));
		rig_transmit(rig);
		close_rig(rig, qp);
	}
}

/* A program has unmapped its memory before the peer had all of it. The requester cannot send the rest again. */
static bool is_present(const void *at, uint64_t length, bool for_writing)
{
	assert_true(at && length > 0 && !for_writing);
	return false;
}

static void requester__fails_what_is_unmapped_when_it_is_to_go_again(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ .is_present = is_present });
	struct vb_qp *qp = rig_connected(rig, NULL);
	struct vb_wc wc;
	measure_round_trip(rig, qp);
	post_writes(rig, qp, 3); /* PSNs 1 to 3 */
	wait(rig, ROUND_TRIP);
	receive_bitmap(rig, qp, 1, 1 << 2 | 1 << 3, 0);
	wait(rig, ROUND_TRIP);
	assert_int_equal(rig_transmit(rig), 0);
	assert_int_equal(vb_cq_poll(rig->cq, &wc, 1), 1);
	assert_int_equal(wc.status, VB_WC_LOC_PROT_ERR);
	close_rig(rig, qp);
}

/* The memory of what is to be sent again is gone: that is found when it is its turn, and fails the request. */
static void requester__fails_what_it_cannot_send_again(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	struct vb_mr *other;
	struct vb_mr_config mr = { .memory = rig->memory,
		.iova = (uintptr_t)rig->memory,
		.length = RIG_BYTES,
		.access = VB_ACCESS_LOCAL_WRITE };
	assert_int_equal(vb_mr_register(rig->pd, &mr, &other), 0);
	struct vb_sge sge = rig_sge(rig, 0, 4 * RIG_MTU);
	sge.lkey = vb_mr_key(other);
	rig_post(qp, &(struct vb_send_wr){ .opcode = VB_WR_RDMA_WRITE, .sges = &sge, .sge_count = 1 });
	assert_int_equal(rig_transmit(rig), 4);
	receive_bitmap(rig, qp, 0, 1 << 2, 0);
	assert_int_equal(vb_mr_invalidate(other), 0);
	vb_mr_free(other);
	wait(rig, VB_MS);
	rig_transmit(rig);
	rig_transmit(rig);
	struct vb_wc wc;
	assert_int_equal(vb_cq_poll(rig->cq, &wc, 1), 1);
	assert_int_equal(wc.status, VB_WC_LOC_PROT_ERR);
	close_rig(rig, qp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requester__sends_again_what_is_missing_alone),
		cmocka_unit_test(requester__sends_again_what_is_lost_once_more),
		cmocka_unit_test(requester__takes_what_comes_too_soon_for_what_was_sent_first),
		cmocka_unit_test(requester__takes_what_was_sent_again_for_the_first_until_it_knows_better),
		cmocka_unit_test(requester__asks_more_than_once_a_window),
		cmocka_unit_test(requester__asks_a_silent_peer_by_other_ports),
		cmocka_unit_test(requester__hears_of_what_is_behind_a_request_that_fails),
		cmocka_unit_test(window__may_be_as_large_as_the_way_is_long),
		cmocka_unit_test(requester__sends_nothing_again_that_is_only_late),
		cmocka_unit_test(requester__learns_from_duplicates_how_late_packets_are),
		cmocka_unit_test(requester__goes_on_while_something_is_missing),
		cmocka_unit_test(requester__holds_responses_and_asks_for_those_that_are_missing),
		cmocka_unit_test(requester__completes_what_waited_for_a_response),
		cmocka_unit_test(requester__believes_nothing_that_cannot_be),
		cmocka_unit_test(requester__finds_a_lost_tail_by_a_probe),
		cmocka_unit_test(requester__that_goes_back_begins_anew),
		cmocka_unit_test(requester__gives_all_back_when_its_qp_goes),
		cmocka_unit_test(requester__fails_what_it_cannot_send_again),
		cmocka_unit_test(requester__fails_what_is_unmapped_when_it_is_to_go_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
