/* The order in which packets leave: ready QPs take turns of a train each. Where a lane lets replies go first, all
 * urgent ones of all QPs leave before any data. The holder pulls; fairness and batching are decided nowhere else. Not
 * here: what leaves in a turn (roce/turn.c). */
#include "core/qp.h"
#include "base/invariant.h"
#include "engine/nic.h"
#include "local/local.h"
#include "roce/batch.h"
#include "roce/echo.h"
#include "roce/failover.h"
#include "roce/roce.h"
#include "roce/selective.h"

/* ---- Held -------------------------------------------------------------------------------------------------------- */

static bool hold(struct vb_lane *lane, struct vb_qp *qp)
{
	const uint8_t class = qp->attr.av.traffic_class >> 5;
	if (!(vb_roce_lane(lane)->classes_held & 1u << class) || qp->type == VB_QP_UD)
		return false;
	vb_list_add_tail(&vb_roce_lane(lane)->held[class], &qp->ready_link);
	assert(vb_list_linked(&qp->ready_link));
	return true;
}

void vb_lane_hold(struct vb_lane *lane, uint8_t classes, bool replies)
{
	for (uint8_t free = vb_roce_lane(lane)->classes_held & (uint8_t)~classes; free; free &= (uint8_t)(free - 1))
		vb_list_splice_tail(&lane->ready, &vb_roce_lane(lane)->held[__builtin_ctz(free)]);
	vb_roce_lane(lane)->classes_held = classes;
	vb_roce_lane(lane)->replies_held = replies;
}

/* ---- A batch ----------------------------------------------------------------------------------------------------- */

unsigned vb_lane_transmit(struct vb_lane *lane, struct vb_batch *batch, unsigned budget, vb_time now)
{
	if (budget > VB_BATCH_PACKETS)
		budget = VB_BATCH_PACKETS;
	batch->count = batch->iov_count = 0;
	lane->now = now;
	vb_lane_answer_doorbells(lane);
	if (vb_roce_lane(lane)->congestion_timers.count > 0)
		vb_congestion_advance(lane, now);
	vb_roce_emit_first(lane, batch, budget, now);
	if (vb_roce_lane(lane)->was_full)
		vb_roce_emit_replies(lane, batch, budget, now);
	while (vb_batch_has_room(batch, budget)) {
		struct vb_list *node = vb_list_pop(&lane->ready);
		if (!node)
			break;
		struct vb_qp *qp = vb_container_of(node, struct vb_qp, ready_link);
		if (vb_roce_lane(lane)->classes_held && hold(lane, qp))
			continue;
		if (vb_roce_take_turn(qp, batch, budget, now))
			vb_schedule_now(qp);
		vb_lane_reap(lane);
	}
	vb_roce_emit_replies(lane, batch, budget, now);
	vb_roce_lane(lane)->was_full = !vb_batch_has_room(batch, budget);
	vb_batch_hand_out(lane, batch);
	vb_lane_reap(lane);
	assert(vb_list_empty(&lane->failing));
	return batch->count;
}

/* ---- When -------------------------------------------------------------------------------------------------------- */

struct vb_deadline vb_lane_next_deadline(const struct vb_lane *lane)
{
	struct vb_deadline deadline = vb_deadline_earlier(
		vb_timers_next(&lane->timers), vb_timers_next(&vb_roce_lane(lane)->congestion_timers));
	deadline = vb_deadline_earlier(deadline, vb_roce_lane(lane)->away_due);
	if (!vb_list_empty(&vb_roce_lane(lane)->early))
		deadline = vb_deadline_earlier(deadline, (struct vb_deadline){ lane->now, true });
	if (!vb_list_empty(&lane->watched))
		deadline = vb_deadline_earlier(deadline, vb_local_next_deadline(lane));
	if (!vb_list_empty(&vb_roce_lane(lane)->acks) && !vb_roce_lane(lane)->replies_held) {
		const struct vb_qp *qp =
			&vb_container_of(vb_roce_lane(lane)->acks.next, struct vb_roce_qp, ack_link)->qp;
		deadline = vb_deadline_earlier(
			deadline, (struct vb_deadline){ vb_roce(qp)->responses.ack.deadline, true });
	}
	return deadline;
}

bool vb_lane_wants_transmit(const struct vb_lane *lane, vb_time now)
{
	if (!vb_list_empty(&lane->ready) || !vb_list_empty(&vb_roce_lane(lane)->raw_ready) ||
		vb_lane_has_doorbells(lane))
		return true;
	if (vb_deadline_due(vb_timers_next(&vb_roce_lane(lane)->congestion_timers), now))
		return true;
	if (vb_roce_lane(lane)->replies_held)
		return false;
	if (!vb_list_empty(&vb_roce_lane(lane)->replies) ||
		vb_roce_lane(lane)->echo_next != vb_roce_lane(lane)->echo_tail)
		return true;
	if (vb_list_empty(&vb_roce_lane(lane)->acks))
		return false;
	const struct vb_qp *qp = &vb_container_of(vb_roce_lane(lane)->acks.next, struct vb_roce_qp, ack_link)->qp;
	return vb_roce_lane(lane)->acks_forced || vb_time_is_due(vb_roce(qp)->responses.ack.deadline, now);
}

bool vb_qp_is_quiet(const struct vb_qp *qp)
{
	return vb_roce_is_quiet(qp);
}

bool vb_lane_is_quiet(const struct vb_lane *lane)
{
	return vb_list_empty(&lane->ready) && vb_list_empty(&vb_roce_lane(lane)->raw_ready) &&
	       vb_list_empty(&vb_roce_lane(lane)->acks) && vb_list_empty(&lane->notices) &&
	       vb_list_empty(&lane->wanted) && vb_list_empty(&vb_roce_lane(lane)->early) &&
	       vb_list_empty(&vb_roce_lane(lane)->away) && vb_roce_lane(lane)->congestion_timers.count == 0 &&
	       vb_roce_lane(lane)->echo_next == vb_roce_lane(lane)->echo_tail && !vb_lane_has_doorbells(lane);
}

void vb_lane_flush_acks(struct vb_lane *lane)
{
	vb_roce_lane(lane)->acks_forced = true;
}

static void on_timer(struct vb_qp *qp, vb_time now)
{
	vb_retry_on_timer(qp, now);
	vb_lane_reap(qp->lane);
}

void vb_lane_advance(struct vb_lane *lane, vb_time now)
{
	struct vb_timer *timer;
	lane->now = now;
	vb_lane_answer_doorbells(lane);
	while ((timer = vb_timers_expire(&lane->timers, now)))
		on_timer(vb_container_of(timer, struct vb_qp, timer), now);
	if (vb_roce_lane(lane)->congestion_timers.count > 0)
		vb_congestion_advance(lane, now);
	if (!vb_list_empty(&lane->watched))
		vb_local_advance(lane, now);
	if (vb_roce_lane(lane)->away_due.is_set)
		vb_failover_advance(lane, now);
	vb_early_advance(lane, now);
	vb_lane_reap(lane);
	assert(vb_list_empty(&lane->failing));
}
