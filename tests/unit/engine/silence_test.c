/* A peer that answers nothing: when the holder is told, how often, and for how long a QP has waited. */
#include "local.h"
#include "rig.h"

enum { SECONDS = 5 }; /* after which every QP here has failed */

struct told {
	unsigned silences, deaths;
	bool is_before_death; /* the first silence was */
};

static void note_events(struct rig *rig, struct told *told)
{
	struct vb_event event;
	while (vb_lane_next_event(rig->lane, &event)) {
		if (event.kind == VB_EVENT_QP_SILENT && told->silences++ == 0)
			told->is_before_death = told->deaths == 0;
		told->deaths += event.kind == VB_EVENT_QP_DIED;
	}
}

static void pass(struct rig *rig, vb_time span, struct told *told)
{
	const vb_time end = vb_time_add(rig->now, span);
	while (vb_time_before(rig->now, end)) {
		rig->now = vb_time_add(rig->now, VB_MS);
		vb_lane_advance(rig->lane, rig->now);
		rig_transmit(rig);
		note_events(rig, told);
	}
}

static struct vb_qp *qp_with_timeout(struct rig *rig, uint8_t retries, uint8_t timeout)
{
	struct vb_qp *qp = rig_qp(rig, NULL);
	struct vb_qp_attr attr = { .state = VB_QPS_RTS,
		.sq_psn = RIG_SQ_PSN,
		.max_rd_atomic = 4,
		.timeout = timeout,
		.retry_cnt = retries,
		.rnr_retry = 7 };
	rig_modify(rig, qp, VB_QPS_INIT, VB_QP_PKEY_INDEX | VB_QP_PORT | VB_QP_ACCESS_FLAGS);
	rig_modify(rig, qp, VB_QPS_RTR,
		VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN | VB_QP_MAX_DEST_RD_ATOMIC |
			VB_QP_MIN_RNR_TIMER);
	assert_int_equal(vb_qp_modify(qp, &attr,
				 VB_QP_STATE | VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY | VB_QP_SQ_PSN |
					 VB_QP_MAX_QP_RD_ATOMIC,
				 rig->now),
		0);
	return qp;
}

static struct vb_qp *qp_with_retries(struct rig *rig, uint8_t retries)
{
	return qp_with_timeout(rig, retries, 14);
}

static struct rig *open_rig(bool tells_silence)
{
	return rig_open_lane(16, &(struct vb_lane_config){ .seed = 1, .slot = 1, .tells_silence = tells_silence });
}

static void post_write(struct rig *rig, struct vb_qp *qp)
{
	struct vb_sge sge = rig_sge(rig, 0, 8);
	rig_post(qp,
		&(struct vb_send_wr){ .opcode = VB_WR_RDMA_WRITE, .sges = &sge, .sge_count = 1, .remote_addr = 4096 });
	assert_int_equal(rig_transmit(rig), 1);
}

static void close_rig(struct rig *rig, struct vb_qp *qp)
{
	assert_int_equal(vb_qp_destroy(qp), 0);
	rig_close(rig);
}

static void silence__is_told_once_and_at_the_first_timeout(void **state)
{
	struct rig *rig = open_rig(true);
	struct vb_qp *qp = qp_with_retries(rig, 7);
	struct told told = { 0 };
	post_write(rig, qp);
	for (int i = 0; i < 1000 && rig_counter(rig, VB_TIMEOUTS) == 0; i++) {
		assert_int_equal(told.silences, 0);
		pass(rig, VB_MS, &told);
	}
	assert_int_equal(rig_counter(rig, VB_TIMEOUTS), 1);
	assert_int_equal(told.silences, 1);
	pass(rig, SECONDS * VB_S, &told);
	assert_int_equal(told.silences, 1);
	assert_int_equal(told.deaths, 1);
	close_rig(rig, qp);
}

/* Code 18: 1.07 s, when the peer's broker may have left. */
static void silence__is_told_once_and_within_a_second_of_a_long_timeout(void **state)
{
	struct rig *rig = open_rig(true);
	struct vb_qp *qp = qp_with_timeout(rig, 7, 18);
	struct told told = { 0 };
	post_write(rig, qp);
	pass(rig, VB_S / 4, &told);
	assert_int_equal(told.silences, 0);
	pass(rig, VB_S / 2, &told);
	assert_int_equal(told.silences, 1);
	assert_int_equal(rig_counter(rig, VB_TIMEOUTS), 0);
	pass(rig, 4 * SECONDS * VB_S, &told);
	assert_int_equal(told.silences, 1);
	assert_int_equal(told.deaths, 1);
	close_rig(rig, qp);
}

static void silence__is_told_before_the_only_timeout(void **state)
{
	struct rig *rig = open_rig(true);
	struct vb_qp *qp = qp_with_retries(rig, 0);
	struct told told = { 0 };
	post_write(rig, qp);
	pass(rig, SECONDS * VB_S, &told);
	assert_int_equal(told.silences, 1);
	assert_int_equal(told.deaths, 1);
	assert_true(told.is_before_death);
	close_rig(rig, qp);
}

static void silence__that_an_answer_ended_is_told_again(void **state)
{
	struct rig *rig = open_rig(true);
	struct vb_qp *qp = qp_with_retries(rig, 7);
	struct told told = { 0 };
	for (unsigned i = 0; i < 2; i++) {
		post_write(rig, qp);
		pass(rig, VB_S / 2, &told);
		assert_int_equal(told.silences, i + 1);
		rig_receive(rig, qp,
			(struct vb_packet){ .opcode = VB_ACKNOWLEDGE,
				.psn = RIG_SQ_PSN + i,
				.syndrome = VB_AETH_ACK | VB_AETH_NO_CREDITS });
	}
	assert_int_equal(told.deaths, 0);
	close_rig(rig, qp);
}

static void silence__is_not_told_unless_the_lane_is_to(void **state)
{
	struct rig *rig = open_rig(false);
	struct vb_qp *qp = qp_with_retries(rig, 7);
	struct told told = { 0 };
	post_write(rig, qp);
	pass(rig, SECONDS * VB_S, &told);
	assert_int_equal(told.silences, 0);
	assert_int_equal(told.deaths, 1);
	close_rig(rig, qp);
}

/* ---- For how long ------------------------------------------------------------------------------------------------ */

static struct pair *open_with_receiver_in_rtr(void)
{
	struct pair *p = pair_open_lanes(true, 0);
	for (int i = 0; i < 2; i++)
		p->side[i].qp = pair_qp(&p->side[i], VB_QP_RC, NULL);
	pair_to_rtr(p, 0);
	pair_to_rtr(p, 1);
	pair_to_rts(p, 0);
	return p;
}

static void silence__is_seen_by_who_only_receives(void **state)
{
	struct pair *p = open_with_receiver_in_rtr();
	const struct vb_qp *receiver = p->side[1].qp;
	pair_post_receive(p, 1, 1, PLACE, LONG);
	pair_post_receive(p, 1, 2, PLACE, LONG);
	assert_int_equal(vb_qp_silent_for(receiver, p->now), -1); /* it has heard nothing ever */
	pair_post(p, 0, VB_WR_SEND, SOURCE, 8, 0);
	pair_settle(p);
	assert_int_equal(vb_qp_silent_for(receiver, vb_time_add(p->now, 3 * VB_S)), 3 * VB_S);
	pair_post(p, 0, VB_WR_SEND, SOURCE, 8, 0);
	pair_settle(p);
	assert_int_equal(vb_qp_silent_for(receiver, p->now), -1); /* it waits for nothing */
	pair_close(p);
}

/* However long it had said nothing before. */
static void silence__counts_from_the_end_of_a_local_peer(void **state)
{
	struct pair *p = pair_open(VB_QP_RC, true, 0);
	const struct vb_qp *waiter = p->side[0].qp;
	pair_post_receive(p, 0, 1, PLACE, LONG);
	pair_post_receive(p, 1, 1, PLACE, LONG);
	pair_post(p, 0, VB_WR_SEND, SOURCE, 8, 0);
	pair_settle(p);
	p->now = vb_time_add(p->now, 60 * VB_S);
	vb_local_lost(&p->side[0].other, p->now);
	assert_int_equal(vb_state(waiter), VB_QPS_RTS);
	assert_int_equal(vb_qp_silent_for(waiter, vb_time_add(p->now, 3 * VB_S)), 3 * VB_S);
	pair_close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silence__is_told_once_and_at_the_first_timeout),
		cmocka_unit_test(silence__is_told_once_and_within_a_second_of_a_long_timeout),
		cmocka_unit_test(silence__is_told_before_the_only_timeout),
		cmocka_unit_test(silence__that_an_answer_ended_is_told_again),
		cmocka_unit_test(silence__is_not_told_unless_the_lane_is_to),
		cmocka_unit_test(silence__is_seen_by_who_only_receives),
		cmocka_unit_test(silence__counts_from_the_end_of_a_local_peer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
