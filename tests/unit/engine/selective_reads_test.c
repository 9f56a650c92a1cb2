/* The requester of READs where both ends recover selectively: which responses, and which requests, are missed by what
 * has come. Responses come in their turn, but what is repeated comes before those that wait for theirs. */
#include "selective.h"

/* Packets that leave while all time passes in which one counts as lost. */
static unsigned leave_soon(struct rig *rig)
{
	wait(rig, ROUND_TRIP / 4 + VB_US);
	return rig_transmit(rig);
}

/* Its response comes before those that were asked for long before it, and says nothing of them. */
static void repeat__says_nothing_of_what_waits_for_its_turn(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	measure_round_trip(rig, qp);
	post_read(rig, qp, 4); /* PSNs 1 to 4 */
	post_read(rig, qp, 4); /* 5 to 8 */
	wait(rig, ROUND_TRIP);
	receive_response(rig, qp, 1);
	receive_response(rig, qp, 3);
	wait(rig, ROUND_TRIP / 4 + VB_US);
	assert_leaves(rig, 1, (uint32_t[]){ 2 });
	wait(rig, ROUND_TRIP);
	receive_response(rig, qp, 2);
	assert_int_equal(leave_soon(rig), 0);
	for (uint32_t ahead = 4; ahead <= 8; ahead++)
		receive_response(rig, qp, ahead);
	assert_completes(rig, 2);
	assert_int_equal(rig_counter(rig, VB_LOST), 1);
	close_rig(rig, qp);
}

/* It is missed by what was asked for after it, which is repeated as well. */
static void repeat__that_is_lost_is_missed(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	measure_round_trip(rig, qp);
	post_read(rig, qp, 5); /* PSNs 1 to 5 */
	wait(rig, ROUND_TRIP);
	receive_response(rig, qp, 1);
	receive_response(rig, qp, 3);
	wait(rig, ROUND_TRIP / 4 + VB_US);
	assert_leaves(rig, 1, (uint32_t[]){ 2 });
	wait(rig, VB_US);
	receive_response(rig, qp, 5);
	wait(rig, ROUND_TRIP / 4 + VB_US);
	assert_leaves(rig, 1, (uint32_t[]){ 4 });
	wait(rig, ROUND_TRIP);
	receive_response(rig, qp, 4);
	wait(rig, ROUND_TRIP / 4 + VB_US);
	assert_leaves(rig, 1, (uint32_t[]){ 2 });
	receive_response(rig, qp, 2);
	assert_completes(rig, 1);
	close_rig(rig, qp);
}

/* The first request was lost. When it is answered the peer answers those that it held as well: whether it holds them
 * bitmaps say, and the one that did may be lost. */
static void request__is_not_missed_by_the_response_to_another(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	measure_round_trip(rig, qp);
	for (unsigned i = 0; i < 3; i++)
		post_read(rig, qp, 2); /* PSNs 1, 3 and 5 */
	wait(rig, ROUND_TRIP);
	receive_bitmap(rig, qp, 1, 1 << 3, 0);
	wait(rig, ROUND_TRIP / 4 + VB_US);
	assert_leaves(rig, 1, (uint32_t[]){ 1 });
	assert_int_equal(left(rig, 0)->dma_length, 2 * RIG_MTU);
	wait(rig, ROUND_TRIP);
	receive_response(rig, qp, 1);
	receive_response(rig, qp, 2);
	assert_int_equal(leave_soon(rig), 0);
	for (uint32_t ahead = 3; ahead <= 6; ahead++)
		receive_response(rig, qp, ahead);
	assert_completes(rig, 3);
	close_rig(rig, qp);
}

/* The same behind WRITEs that were lost. */
static void request__is_not_missed_by_what_acknowledges_another(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	measure_round_trip(rig, qp);
	post_writes(rig, qp, 2); /* PSNs 1 and 2 */
	post_read(rig, qp, 2);   /* 3 and 4 */
	post_read(rig, qp, 2);   /* 5 and 6 */
	wait(rig, ROUND_TRIP);
	receive_bitmap(rig, qp, 1, 1 << 3, 0);
	wait(rig, ROUND_TRIP / 4 + VB_US);
	assert_leaves(rig, 2, (uint32_t[]){ 1, 2 });
	wait(rig, ROUND_TRIP);
	receive_ack(rig, qp, 1);
	assert_int_equal(leave_soon(rig), 0);
	for (uint32_t ahead = 3; ahead <= 6; ahead++)
		receive_response(rig, qp, ahead);
	assert_completes(rig, 3);
	close_rig(rig, qp);
}

/* Those before it are being answered, however many they are. */
static void request__that_was_executed_is_not_missed(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	measure_round_trip(rig, qp);
	for (unsigned i = 0; i < 4; i++)
		post_read(rig, qp, 2); /* PSNs 1, 3, 5 and 7 */
	wait(rig, ROUND_TRIP);
	receive_bitmap_ahead(rig, qp, 1, 5, 1 << 7);
	wait(rig, ROUND_TRIP / 4 + VB_US);
	assert_leaves(rig, 1, (uint32_t[]){ 5 });
	for (uint32_t ahead = 1; ahead <= 8; ahead++)
		receive_response(rig, qp, ahead);
	assert_completes(rig, 4);
	close_rig(rig, qp);
}

/* Nothing is believed of what was never sent. */
static void request__that_never_left_was_not_executed(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	measure_round_trip(rig, qp);
	post_read(rig, qp, 2); /* PSNs 1 and 2 */
	receive_bitmap_ahead(rig, qp, 1, UINT16_MAX, 0);
	assert_int_equal(vb_roce(qp)->selective->executed_psn, RIG_SQ_PSN + 3);
	post_read(rig, qp, 2);
	for (uint32_t ahead = 1; ahead <= 4; ahead++)
		receive_response(rig, qp, ahead);
	assert_completes(rig, 2);
	close_rig(rig, qp);
}

/* While one is missing twice as many as granted may be outstanding, and no more. */
static void reads__go_on_behind_one_that_is_missing(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	const uint32_t granted = 2, posted = VB_GRANTED_BEHIND * granted + 2;
	struct vb_sge sge = rig_sge(rig, 0, RIG_MTU);
	qp->attr.max_rd_atomic = granted;
	measure_round_trip(rig, qp);
	for (uint32_t i = 0; i < posted; i++)
		rig_post(qp,
			&(struct vb_send_wr){
				.opcode = VB_WR_RDMA_READ, .flags = VB_SEND_SIGNALED, .sges = &sge, .sge_count = 1 });
	assert_int_equal(rig_transmit(rig), granted);
	wait(rig, ROUND_TRIP);
	for (uint32_t i = 2; i <= granted; i++)
		receive_response(rig, qp, i);
	assert_int_equal(rig_transmit(rig), (VB_GRANTED_BEHIND - 1) * granted);
	receive_response(rig, qp, 1);
	assert_int_equal(rig_transmit(rig), 0); /* nothing is missing any more */
	for (uint32_t i = granted + 1; i <= VB_GRANTED_BEHIND * granted; i++)
		receive_response(rig, qp, i);
	assert_int_equal(rig_transmit(rig), 2);
	for (uint32_t i = VB_GRANTED_BEHIND * granted + 1; i <= posted; i++)
		receive_response(rig, qp, i);
	assert_completes(rig, (int)posted);
	close_rig(rig, qp);
}

static unsigned leave_after_silence(struct rig *rig)
{
	unsigned left = 0;
	for (unsigned i = 0; i < 200 && left == 0; i++) {
		wait(rig, VB_MS);
		left = rig_transmit(rig);
	}
	return left;
}

/* Nothing behind them says so; a probe asks for one, and for all the silences that would take nobody has the time. */
static void responses__that_are_all_lost_are_asked_for_together(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	measure_round_trip(rig, qp);
	post_read(rig, qp, 8); /* PSNs 1 to 8 */
	wait(rig, ROUND_TRIP);
	receive_response(rig, qp, 1);
	for (uint32_t ahead = 2; ahead <= 3; ahead++) {
		assert_int_equal(leave_after_silence(rig), 1);
		assert_int_equal(left(rig, 0)->psn, RIG_SQ_PSN + ahead);
		assert_int_equal(left(rig, 0)->dma_length, RIG_MTU);
		wait(rig, ROUND_TRIP);
		receive_response(rig, qp, ahead);
	}
	assert_int_equal(rig_transmit(rig), 1);
	assert_int_equal(left(rig, 0)->psn, RIG_SQ_PSN + 4);
	assert_int_equal(left(rig, 0)->dma_length, 5 * RIG_MTU);
	for (uint32_t ahead = 4; ahead <= 8; ahead++)
		receive_response(rig, qp, ahead);
	assert_completes(rig, 1);
	close_rig(rig, qp);
}

static void receive_trimmed_response(struct rig *rig, struct vb_qp *qp, uint32_t ahead)
{
	struct vb_path path = { .src = qp->attr.av.dgid, .dst = qp->attr.av.sgid };
	struct vb_packet packet = { .opcode = VB_READ_RESPONSE_MIDDLE,
		.pkey = VB_PKEY_DEFAULT,
		.dest_qpn = vb_qp_number(qp),
		.psn = vb_psn_add(RIG_SQ_PSN, ahead),
		.payload_length = RIG_MTU };
	vb_lane_receive_trimmed(rig->lane, &path, &packet, rig->now);
	vb_lane_check(rig->lane);
}

/* It is asked for at once, and once; one that is here already, or that nobody has asked for, is not. */
static void response__that_was_trimmed_is_asked_for_at_once(void **state)
{
	struct rig *rig = open_rig((struct vb_lane_config){ 0 });
	struct vb_qp *qp = rig_connected(rig, NULL);
	measure_round_trip(rig, qp);
	post_read(rig, qp, 4); /* PSNs 1 to 4 */
	wait(rig, ROUND_TRIP);
	receive_response(rig, qp, 1);
	receive_trimmed_response(rig, qp, 2);
	assert_leaves(rig, 1, (uint32_t[]){ 2 });
	receive_trimmed_response(rig, qp, 1);
	receive_trimmed_response(rig, qp, 5);
	assert_int_equal(leave_soon(rig), 0);
	receive_response(rig, qp, 3);
	receive_trimmed_response(rig, qp, 3);
	receive_trimmed_response(rig, qp, 4);
	assert_leaves(rig, 1, (uint32_t[]){ 4 });
	wait(rig, ROUND_TRIP);
	receive_response(rig, qp, 2);
	receive_response(rig, qp, 4);
	assert_completes(rig, 1);
	assert_int_equal(rig_counter(rig, VB_LOST), 2);
	close_rig(rig, qp);
}

/* Congestion control hears that a receive buffer was full: of requests the peer's, of responses our own. */
static void losses__of_a_full_receive_buffer_cut_the_window(void **state)
{
	for (int is_own = 0; is_own < 2; is_own++) {
		struct rig *rig = open_rig((struct vb_lane_config){ .cc.algorithm = &vb_cc_queue });
		struct vb_qp *qp = rig_connected(rig, NULL);
		measure_round_trip(rig, qp);
		uint32_t before = vb_roce(qp)->congestion.cc.window_bytes;
		if (is_own) {
			post_read(rig, qp, 3); /* PSNs 1 to 3 */
			vb_lane_note_overflow(rig->lane, 1);
			wait(rig, ROUND_TRIP);
			receive_response(rig, qp, 3);
		} else {
			post_writes(rig, qp, 3);
			wait(rig, ROUND_TRIP);
			receive_bitmap_of(rig, qp,
				(struct vb_packet){ .expected_psn = RIG_SQ_PSN + 1, .told = VB_TOLD_OVERFLOW }, 1 << 3);
		}
		wait(rig, ROUND_TRIP / 4 + VB_US);
		assert_true(rig_counter(rig, VB_LOST) > 0);
		assert_in_range(vb_roce(qp)->congestion.cc.window_bytes, before / 2, before * 6 / 10);
		close_rig(rig, qp);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(repeat__says_nothing_of_what_waits_for_its_turn),
		cmocka_unit_test(repeat__that_is_lost_is_missed),
		cmocka_unit_test(request__is_not_missed_by_the_response_to_another),
		cmocka_unit_test(request__is_not_missed_by_what_acknowledges_another),
		cmocka_unit_test(request__that_was_executed_is_not_missed),
		cmocka_unit_test(request__that_never_left_was_not_executed),
		cmocka_unit_test(reads__go_on_behind_one_that_is_missing),
		cmocka_unit_test(responses__that_are_all_lost_are_asked_for_together),
		cmocka_unit_test(response__that_was_trimmed_is_asked_for_at_once),
		cmocka_unit_test(losses__of_a_full_receive_buffer_cut_the_window),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
