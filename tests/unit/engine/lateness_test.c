/* How long the requester waits for what is missing, where both ends recover selectively, and what tells it sooner. */
#include "selective.h"

/* PSNs 1 to `packets` are under way, and the newest alone arrives. */
static struct vb_qp *miss_all_but_the_newest(struct rig *rig, uint32_t packets)
{
	struct vb_qp *qp = rig_connected(rig, NULL);
	measure_round_trip(rig, qp);
	post_writes(rig, qp, packets);
	wait(rig, ROUND_TRIP);
	receive_bitmap(rig, qp, 1, 1ull << packets, 0);
	return qp;
}

static void assert_lost_after(struct vb_lane_config lane, vb_time time)
{
	struct rig *rig = open_rig(lane);
	struct vb_qp *qp = miss_all_but_the_newest(rig, 4);
	wait(rig, time - VB_NS);
	assert_int_equal(rig_transmit(rig), 0);
	wait(rig, VB_NS);
	assert_leaves(rig, 3, (uint32_t[]){ 1, 2, 3 });
	close_rig(rig, qp);
}

/* Paths have queues of their own; and who drops something may tell. */
static void lateness__is_what_the_network_may_do_to_the_order(void **state)
{
	assert_lost_after((struct vb_lane_config){ 0 }, ROUND_TRIP / 4);
	assert_lost_after((struct vb_lane_config){ .drops_are_told = true }, ROUND_TRIP / 4);
	assert_lost_after((struct vb_lane_config){ .paths = 4 }, ROUND_TRIP);
	assert_lost_after((struct vb_lane_config){ .paths = VB_PATHS_ALL }, ROUND_TRIP);
	assert_lost_after(
		(struct vb_lane_config){ .paths = 4, .drops_are_told = true, .probe_after = VB_S }, 4 * ROUND_TRIP);
}

/* ---- Round trips that have become shorter ------------------------------------------------------------------------ */

enum { PACKETS = 45, SHORT = ROUND_TRIP / 4 };

static void allow_two(struct vb_qp *qp)
{
	vb_roce(qp)->congestion.cc.window_bytes = 2 * (RIG_MTU + VB_PACKET_OVERHEAD);
}

/* All that is sent again, two at a time, but the oldest arrives after a short round trip. Gives what was counted as
 * lost when all of them have. With those from one number to another the peer tells that something came twice. */
static uint64_t lost_on_a_shorter_way(uint32_t twice_from, uint32_t twice_to)
{
	struct rig *rig = open_rig((struct vb_lane_config){ .probe_after = VB_S });
	struct vb_qp *qp = miss_all_but_the_newest(rig, PACKETS);
	uint64_t held = 1ull << PACKETS;
	wait(rig, ROUND_TRIP / 4);
	allow_two(qp);
	assert_leaves(rig, 2, (uint32_t[]){ 1, 2 });
	for (uint32_t psn = 2; psn < PACKETS - 1; psn++) {
		bool is_twice = psn >= twice_from && psn < twice_to;
		wait(rig, SHORT);
		held |= 1ull << psn;
		receive_bitmap(rig, qp, 1, held, is_twice ? (psn << 24 | (RIG_SQ_PSN + 5000)) : 0);
		allow_two(qp);
		rig_transmit(rig);
	}
	uint64_t lost = rig_counter(rig, VB_LOST);
	assert_int_equal(vb_roce(qp)->selective->least_rtt, ROUND_TRIP);
	close_rig(rig, qp);
	return lost;
}

/* Else a packet that is lost once more would wait for a probe, and with a small window all others wait for it. */
static void seen__believes_in_shorter_round_trips_where_nothing_comes_twice(void **state)
{
	assert_true(lost_on_a_shorter_way(0, 0) > PACKETS - 1);
	assert_int_equal(lost_on_a_shorter_way(2, PACKETS), PACKETS - 1);
	assert_true(lost_on_a_shorter_way(2, 10) > PACKETS - 1); /* later on */
}

/* ---- What the peer tells ----------------------------------------------------------------------------------------- */

static void tell_trimmed(struct rig *rig, struct vb_qp *qp, uint32_t ahead)
{
	struct vb_packet bitmap = {
		.expected_psn = RIG_SQ_PSN + 1, .told = VB_TOLD_TRIMMED, .named = RIG_SQ_PSN + ahead
	};
	receive_bitmap_of(rig, qp, bitmap, 0);
}

/* The headers of a packet that was cut pass all queues, so the peer may tell of it in less than a round trip. */
static void trimmed__packet_leaves_again_as_often_as_it_is_told_of(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	measure_round_trip(rig, qp);
	post_writes(rig, qp, 3);
	for (unsigned i = 0; i < 4; i++) {
		wait(rig, ROUND_TRIP / 4);
		tell_trimmed(rig, qp, 2);
		assert_leaves(rig, 1, (uint32_t[]){ 2 });
		tell_trimmed(rig, qp, 2); /* told of twice */
		assert_int_equal(rig_transmit(rig), 0);
	}
	close_rig(rig, qp);
}

/* The clock was sooner: it is the first one that is told of. */
static void trimmed__packet_that_was_sent_again_in_time_leaves_once(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = miss_all_but_the_newest(rig, 2);
	wait(rig, ROUND_TRIP / 4);
	assert_leaves(rig, 1, (uint32_t[]){ 1 });
	wait(rig, ROUND_TRIP / 4);
	tell_trimmed(rig, qp, 1);
	assert_int_equal(rig_transmit(rig), 0);
	wait(rig, ROUND_TRIP / 2);
	tell_trimmed(rig, qp, 1); /* which of both is not known, and so of what arrives then */
	assert_leaves(rig, 1, (uint32_t[]){ 1 });
	assert_false(vb_psn_bit(vb_roce(qp)->selective->sent.told, vb_roce(qp)->selective->sent.mask, RIG_SQ_PSN + 1));
	close_rig(rig, qp);
}

/* The peer has the READ, and answers it: what is told of was an earlier one. */
static void trimmed__request_that_is_being_answered_is_not_lost(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	measure_round_trip(rig, qp);
	post_read(rig, qp, 3);
	wait(rig, ROUND_TRIP);
	receive_bitmap_ahead(rig, qp, 1, 4, 0);
	tell_trimmed(rig, qp, 1);
	assert_int_equal(rig_transmit(rig), 0);
	assert_int_equal(rig_counter(rig, VB_LOST), 0);
	close_rig(rig, qp);
}

/* A bitmap was overtaken by the next: what it says of single packets is not in that one. */
static void overtaken__bitmap_is_heeded(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	measure_round_trip(rig, qp);
	post_writes(rig, qp, 5); /* PSNs 1 to 5 */
	wait(rig, ROUND_TRIP);
	receive_ack(rig, qp, 2);
	tell_trimmed(rig, qp, 4); /* it expects 1 */
	assert_leaves(rig, 1, (uint32_t[]){ 4 });
	receive_bitmap(rig, qp, 1, 1 << 5, 0);
	assert_int_equal(packets_in_flight(qp), 2); /* 3 and 4 */
	assert_int_equal(rig_counter(rig, VB_DROP_STALE_ACK), 0);
	assert_int_equal(qp->requester.una_psn, RIG_SQ_PSN + 3);
	receive_bitmap(rig, qp, 3, 1 << 5, 2u << 24 | (RIG_SQ_PSN + 4));
	assert_int_equal(rig_counter(rig, VB_SENT_IN_VAIN), 1);
	receive_bitmap(rig, qp, 1, 1 << 5, 1u << 24 | (RIG_SQ_PSN + 1));
	assert_int_equal(vb_roce(qp)->selective->peer_duplicate, 2u << 24 | (RIG_SQ_PSN + 4));
	close_rig(rig, qp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lateness__is_what_the_network_may_do_to_the_order),
		cmocka_unit_test(seen__believes_in_shorter_round_trips_where_nothing_comes_twice),
		cmocka_unit_test(trimmed__packet_leaves_again_as_often_as_it_is_told_of),
		cmocka_unit_test(trimmed__packet_that_was_sent_again_in_time_leaves_once),
		cmocka_unit_test(trimmed__request_that_is_being_answered_is_not_lost),
		cmocka_unit_test(overtaken__bitmap_is_heeded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
