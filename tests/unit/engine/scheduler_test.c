/* What leaves where acks, NAKs and CNPs go before all data, or a wire stops some classes. */
#include "rig.h"

static struct rig *open_with_replies_first(void)
{
	return rig_open_lane(16, &(struct vb_lane_config){ .seed = 1, .slot = 1, .replies_first = true });
}

static void receive_write(struct rig *rig, struct vb_qp *qp, uint32_t psn, uint64_t holder)
{
	rig_receive(rig, qp,
		(struct vb_packet){ .opcode = VB_WRITE_ONLY,
			.psn = psn,
			.ackreq = true,
			.payload_length = 8,
			.payload = (const uint8_t *)"anything",
			.va = (uintptr_t)rig->memory,
			.rkey = vb_mr_key(rig->mr),
			.dma_length = 8,
			.holder = holder });
}

static unsigned transmit_one(struct rig *rig)
{
	unsigned count = vb_lane_transmit(rig->lane, &rig->batch, 1, rig->now);
	vb_lane_transmit_done(rig->lane, rig->batch.completions, count, rig->now);
	vb_lane_check(rig->lane);
	return count;
}

static void post(struct rig *rig, struct vb_qp *qp)
{
	struct vb_sge sge = rig_sge(rig, 0, 8);
	rig_post(qp, &(struct vb_send_wr){ .opcode = VB_WR_SEND, .sges = &sge, .sge_count = 1 });
}

static struct vb_qp *connected_in_class(struct rig *rig, uint8_t traffic_class)
{
	struct vb_qp *qp = rig_connected(rig, NULL);
	qp->attr.av.traffic_class = (uint8_t)(traffic_class << 5);
	return qp;
}

static void replies__pass_data_of_a_class_that_is_held(void **state)
{
	struct rig *rig = open_with_replies_first();
	struct vb_qp *qp = connected_in_class(rig, 3);
	rig_transmit(rig);
	vb_lane_hold(rig->lane, 1 << 3, false);
	post(rig, qp);
	assert_int_equal(transmit_one(rig), 0);
	for (uint32_t i = 0; i < 3; i++) {
		receive_write(rig, qp, RIG_RQ_PSN + i, i + 1);
		assert_true(vb_lane_wants_transmit(rig->lane, rig->now));
		assert_int_equal(transmit_one(rig), 1);
		assert_int_equal(rig->batch.out[0].packet.opcode, VB_RC | VB_ACKNOWLEDGE);
		assert_int_equal(rig->batch.out[0].packet.psn, RIG_RQ_PSN + i);
		assert_int_equal(rig->batch.out[0].packet.holder, i + 1);
		assert_int_equal(transmit_one(rig), 0);
	}
	vb_lane_hold(rig->lane, 0, false);
	assert_int_equal(rig_transmit(rig), 1);
	assert_int_equal(rig->batch.out[0].packet.opcode, VB_RC | VB_SEND_ONLY);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

static void replies__that_are_not_fetched_are_one(void **state)
{
	struct rig *rig = open_with_replies_first();
	struct vb_qp *qp = rig_connected(rig, NULL);
	rig_transmit(rig);
	for (uint32_t i = 0; i < 3; i++)
		receive_write(rig, qp, RIG_RQ_PSN + i, i + 1);
	assert_int_equal(rig_transmit(rig), 1);
	assert_int_equal(rig->batch.out[0].packet.psn, RIG_RQ_PSN + 2);
	assert_int_equal(rig->batch.out[0].packet.holder, 3);
	assert_false(vb_lane_wants_transmit(rig->lane, rig->now));
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

static void replies__of_a_qp_that_goes_are_forgotten(void **state)
{
	struct rig *rig = open_with_replies_first();
	struct vb_qp *qp = rig_connected(rig, NULL), *other = rig_connected(rig, NULL);
	receive_write(rig, qp, RIG_RQ_PSN, 1);
	receive_write(rig, other, RIG_RQ_PSN, 2);
	rig_modify(rig, other, VB_QPS_RESET, 0);
	assert_int_equal(vb_qp_destroy(qp), 0);
	assert_int_equal(rig_transmit(rig), 0);
	rig_connect(rig, other);
	receive_write(rig, other, RIG_RQ_PSN, 3);
	assert_int_equal(rig_transmit(rig), 1);
	assert_int_equal(vb_qp_destroy(other), 0);
	rig_close(rig);
}

static void class_that_is_held__leaves_the_others_going(void **state)
{
	struct rig *rig = open_with_replies_first();
	struct vb_qp *held = connected_in_class(rig, 3), *other = connected_in_class(rig, 0);
	rig_transmit(rig);
	vb_lane_hold(rig->lane, 1 << 3, false);
	for (unsigned i = 0; i < 3; i++) {
		post(rig, held);
		post(rig, other);
		assert_int_equal(rig_transmit(rig), 1);
		assert_ptr_equal(rig->batch.out[0].qp, other);
		assert_false(vb_lane_wants_transmit(rig->lane, rig->now));
	}
	vb_lane_hold(rig->lane, 1 << 0, false); /* the other way round */
	post(rig, other);
	assert_true(vb_lane_wants_transmit(rig->lane, rig->now));
	assert_int_equal(rig_transmit(rig), 3);
	assert_ptr_equal(rig->batch.out[0].qp, held);
	vb_lane_hold(rig->lane, 0, false);
	assert_int_equal(rig_transmit(rig), 1);
	assert_int_equal(vb_qp_destroy(held), 0);
	assert_int_equal(vb_qp_destroy(other), 0);
	rig_close(rig);
}

static void replies_that_are_held__let_data_pass_and_become_one(void **state)
{
	struct rig *rig = open_with_replies_first();
	struct vb_qp *qp = rig_connected(rig, NULL);
	rig_transmit(rig);
	vb_lane_hold(rig->lane, 0, true);
	for (uint32_t i = 0; i < 3; i++) {
		receive_write(rig, qp, RIG_RQ_PSN + i, i + 1);
		assert_false(vb_lane_wants_transmit(rig->lane, rig->now));
		post(rig, qp);
		assert_int_equal(rig_transmit(rig), 1);
		assert_int_equal(rig->batch.out[0].packet.opcode, VB_RC | VB_SEND_ONLY);
	}
	vb_lane_hold(rig->lane, 0, false);
	assert_true(vb_lane_wants_transmit(rig->lane, rig->now));
	assert_int_equal(rig_transmit(rig), 1);
	assert_int_equal(rig->batch.out[0].packet.opcode, VB_RC | VB_ACKNOWLEDGE);
	assert_int_equal(rig->batch.out[0].packet.psn, RIG_RQ_PSN + 2);
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

static void qp_that_goes__is_held_no_longer(void **state)
{
	struct rig *rig = open_with_replies_first();
	struct vb_qp *held = connected_in_class(rig, 3), *reset = connected_in_class(rig, 3);
	rig_transmit(rig);
	vb_lane_hold(rig->lane, 1 << 3, false);
	post(rig, held);
	post(rig, reset);
	assert_int_equal(rig_transmit(rig), 0);
	assert_int_equal(vb_qp_destroy(held), 0);
	rig_modify(rig, reset, VB_QPS_RESET, 0);
	vb_lane_hold(rig->lane, 0, false);
	assert_int_equal(rig_transmit(rig), 0);
	assert_int_equal(vb_qp_destroy(reset), 0);
	rig_close(rig);
}

/* ---- Who asks to be acknowledged --------------------------------------------------------------------------------- */

enum { SPARED = 8192, QUEUED = 8 };

/* Which of so many SENDs of a packet, queued at once, ask: bits. */
static unsigned asked_with(uint32_t window, uint64_t rate, uint32_t turn_bytes)
{
	const struct vb_lane_config lane = { .seed = 1,
		.slot = 1,
		.unknown_peer_allowance = VB_UNLIMITED,
		.turn_bytes = turn_bytes,
		.acks = { .spared_bytes = SPARED } };
	struct rig *rig = rig_open_lane(16, &lane);
	struct vb_qp *qp = rig_connected(rig, NULL);
	unsigned asked = 0, left = 0;
	vb_roce(qp)->congestion.cc.window_bytes = window;
	vb_roce(qp)->congestion.cc.rate = rate;
	vb_sq_begin(qp);
	for (unsigned i = 0; i < QUEUED; i++) {
		struct vb_sge sge = rig_sge(rig, 0, RIG_MTU);
		assert_int_equal(
			vb_sq_put(qp, &(struct vb_send_wr){ .opcode = VB_WR_SEND, .sges = &sge, .sge_count = 1 }), 0);
	}
	vb_sq_end(qp, true);
	for (unsigned n; (n = rig_transmit(rig)) > 0; rig->now = vb_time_add(rig->now, VB_MS))
		for (unsigned i = 0; i < n; i++, left++)
			asked |= (unsigned)rig->batch.out[i].packet.ackreq << left;
	assert_int_equal(left, QUEUED);
	vb_roce(qp)->congestion.cc.rate = 0;
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
	return asked;
}

/* 1,280 bytes a packet, as windows count it: the seventh is the first with which 8,192 have left. The last one asks
 * for all. */
static void messages__that_are_followed_ask_now_and_then(void **state)
{
	assert_int_equal(asked_with(1 << 20, 0, 0), 1 << 6 | 1 << 7);
	assert_int_equal(asked_with(1 << 20, 0, 2048), 1 << 6 | 1 << 7); /* nor do turns, which others may follow */
	assert_int_equal(asked_with(4 * SPARED, 0, 0), 1 << 6 | 1 << 7);
}

/* The ack would open a window too late; or what follows comes late. */
static void messages__ask_where_windows_are_small_or_rates_hold_them_back(void **state)
{
	assert_int_equal(asked_with(4 * SPARED - 1, 0, 0), 0xff);
	assert_int_equal(asked_with(1 << 20, 1000000000, 0), 0xff);
}

/* Nor is it in anybody's way: one that was just connected takes no turn. */
static void qp__is_quiet_while_it_has_nothing_to_say(void **state)
{
	struct rig *rig = open_with_replies_first();
	struct vb_qp *qp = rig_connected(rig, NULL);
	assert_true(vb_qp_is_quiet(qp));
	assert_false(vb_lane_wants_transmit(rig->lane, rig->now));
	receive_write(rig, qp, RIG_RQ_PSN, 0);
	assert_false(vb_qp_is_quiet(qp));
	assert_int_equal(transmit_one(rig), 1);
	assert_true(vb_qp_is_quiet(qp));
	post(rig, qp);
	assert_false(vb_qp_is_quiet(qp));
	assert_int_equal(transmit_one(rig), 1);
	assert_int_equal(transmit_one(rig), 0);
	assert_true(vb_qp_is_quiet(qp));
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

static void qp_that_goes__leaves_its_timer(void **state)
{
	struct vb_timer heir;
	struct rig *rig = open_with_replies_first();
	struct vb_qp *qp = rig_connected(rig, NULL);
	post(rig, qp);
	assert_int_equal(transmit_one(rig), 1);
	const struct vb_deadline before = vb_lane_next_deadline(rig->lane);
	assert_true(before.is_set); /* it waits for an ack */
	vb_qp_leave_timer(qp, &heir);
	assert_int_equal(vb_qp_destroy(qp), 0);
	assert_int_equal(vb_lane_next_deadline(rig->lane).at, before.at);
	vb_lane_advance(rig->lane, before.at);
	assert_false(vb_lane_next_deadline(rig->lane).is_set);
	rig_close(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replies__pass_data_of_a_class_that_is_held),
		cmocka_unit_test(replies__that_are_not_fetched_are_one),
		cmocka_unit_test(replies__of_a_qp_that_goes_are_forgotten),
		cmocka_unit_test(class_that_is_held__leaves_the_others_going),
		cmocka_unit_test(replies_that_are_held__let_data_pass_and_become_one),
		cmocka_unit_test(qp_that_goes__is_held_no_longer),
		cmocka_unit_test(qp__is_quiet_while_it_has_nothing_to_say),
		cmocka_unit_test(qp_that_goes__leaves_its_timer),
		cmocka_unit_test(messages__that_are_followed_ask_now_and_then),
		cmocka_unit_test(messages__ask_where_windows_are_small_or_rates_hold_them_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
