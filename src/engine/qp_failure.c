/* How a QP fails: the cause is noted, everything that waits completes in error, in order. IBA vol. 1, 10.3.1. */
#include "engine/congestion.h"
#include "engine/echo.h"
#include "engine/events.h"
#include "engine/execute.h"
#include "engine/flight.h"
#include "engine/handed_out.h"
#include "engine/kept.h"
#include "engine/lane.h"
#include "engine/message.h"
#include "engine/peers.h"
#include "engine/qp.h"
#include "engine/queues.h"
#include "engine/requester.h"
#include "engine/responder.h"
#include "engine/scheduler.h"
#include "engine/send_queue.h"
#include "engine/wr_kinds.h"

void vb_qp_flush_sends(struct vb_qp *qp)
{
	while (atomic_load_explicit(&qp->sq.head, memory_order_relaxed) !=
		atomic_load_explicit(&qp->sq.tail, memory_order_acquire))
		vb_sq_retire(qp, VB_WC_WR_FLUSH_ERR);
	qp->requester.cursor = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
}

static void flush_receives(struct vb_qp *qp)
{
	struct vb_wc wc = { .status = VB_WC_WR_FLUSH_ERR, .opcode = VB_WC_RECV };
	struct vb_target *target = &qp->target;
	if (target->srq) { /* only what the QP had taken; the rest stays for others */
		if (target->recv)
			vb_complete_recv(target, &wc, true);
		return;
	}
	/* What is posted from now on rings for a flush of its own. */
	vb_lock_take(&qp->rq.lock);
	vb_lock_release(&qp->rq.lock);
	for (uint32_t left = vb_recv_ring_count(&qp->rq); left > 0 && vb_recv_take(target); left--)
		vb_complete_recv(target, &wc, true);
}

/* Every request that waits completes with WR_FLUSH_ERR, in order. 10.3.1. */
void vb_qp_flush(struct vb_qp *qp)
{
	vb_qp_flush_sends(qp);
	flush_receives(qp);
}

static void stop_requester(struct vb_qp *qp)
{
	struct vb_requester *rq = &qp->requester;
	vb_timer_cancel(&qp->timer);
	vb_echo_give_up(qp);
	vb_flight_stop(qp);
	vb_local_stop(qp);
	vb_congestion_stop(qp);
	rq->una_psn = rq->next_psn = rq->max_psn;
	rq->is_rnr_waiting = false;
	rq->probe = VB_PROBE_NONE;
	vb_handed_out_disown(qp);
	vb_kept_abandon(qp);
	if (rq->echo)
		rq->echo->is_blocked = false;
	rq->rd_atomic_out = 0;
}

void vb_qp_enter_error(struct vb_qp *qp)
{
	vb_qp_set_state(qp, VB_QPS_ERR);
	qp->attr.is_draining = false;
	stop_requester(qp);
	vb_congestion_end(qp);
	vb_responder_drop_resources(qp);
	if (qp->responder.ack.is_wanted) { /* what was executed before is acknowledged all the same */
		vb_schedule_no_ack(qp);
		qp->responder.ack.is_urgent = true;
		vb_schedule_reply(qp);
	}
	qp->target.open = VB_NO_MESSAGE;
	vb_qp_flush(qp);
	if (qp->srq)
		vb_raise(qp->lane, &qp->notice, VB_EVENT_QP_LAST_WQE_REACHED);
}

static uint32_t stuck_bytes(const struct vb_qp *qp)
{
	uint32_t head = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
	if (head == atomic_load_explicit(&qp->sq.tail, memory_order_acquire))
		return 0;
	const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, head);
	if (wqe->opcode == VB_WR_RDMA_READ)
		return VB_BTH_LENGTH;
	uint32_t index = (qp->requester.una_psn - wqe->first_psn) & VB_PSN_MASK;
	uint64_t offset = (uint64_t)index * qp->mtu;
	uint64_t rest = wqe->length > offset ? wqe->length - offset : 0;
	return VB_BTH_LENGTH + (uint32_t)(rest < qp->mtu ? rest : qp->mtu);
}

static bool is_senders_fault(enum vb_cause_kind cause)
{
	return cause >= VB_CAUSE_LOCAL_SGE && cause <= VB_CAUSE_MW_BIND;
}

/* Causes up to MW_BIND fail the oldest send request; the others concern the receiving side. */
static bool is_requesters(enum vb_cause_kind cause)
{
	return cause <= VB_CAUSE_MW_BIND;
}

static void note_cause(struct vb_qp *qp, enum vb_cause_kind kind, enum vb_wc_status status, vb_time now)
{
	const struct vb_requester *rq = &qp->requester;
	uint32_t head = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
	bool has_wqe = head != atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
	const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, head);
	qp->cause = (struct vb_cause){
		.kind = kind,
		.status = status,
		.psn = is_requesters(kind) ? rq->una_psn : qp->responder.expected_psn,
		.tries = rq->tries,
		.stuck_for = has_wqe && wqe->is_started ? vb_time_since(wqe->started_at, now) : 0,
		.was_heard = rq->was_heard,
		.silent_for = vb_time_since(rq->heard_at, now),
		.largest_acked = rq->largest_acked,
		.stuck_wire_bytes = stuck_bytes(qp),
	};
}

void vb_qp_note_access(struct vb_qp *qp, enum vb_message message, uint64_t addr, uint32_t rkey, uint32_t length)
{
	qp->cause.access.what = vb_access_text(message);
	qp->cause.access.addr = addr;
	qp->cause.access.rkey = rkey;
	qp->cause.access.length = length;
}

/* What the oldest request wanted of the peer's memory. */
static void note_refused_access(struct vb_qp *qp)
{
	const struct vb_send_wqe *wqe =
		vb_send_wqe_at(&qp->sq, atomic_load_explicit(&qp->sq.head, memory_order_relaxed));
	vb_qp_note_access(qp, (enum vb_message)vb_wr_kinds[wqe->opcode].message, wqe->remote_addr, wqe->rkey,
		wqe->opcode == VB_WR_FLUSH ? wqe->flush.length : wqe->length);
}

void vb_qp_fail(struct vb_qp *qp, enum vb_cause_kind cause, enum vb_wc_status status, vb_time now)
{
	if (vb_state(qp) == VB_QPS_ERR || vb_state(qp) == VB_QPS_RESET)
		return;
	bool has_request = atomic_load_explicit(&qp->sq.head, memory_order_relaxed) !=
			   atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
	note_cause(qp, cause, status, now);
	if (cause == VB_CAUSE_NAK_REMOTE_ACCESS && has_request)
		note_refused_access(qp);
	vb_count(qp->lane, VB_QP_ERRORS, 1);
	vb_raise(qp->lane, &qp->notice, VB_EVENT_QP_DIED);
	if (!qp->is_reliable && is_senders_fault(cause)) { /* 10.3.1.7: only the send queue stops */
		vb_qp_set_state(qp, VB_QPS_SQE);
		stop_requester(qp);
		if (has_request)
			vb_sq_retire(qp, status);
		vb_qp_flush_sends(qp);
		return;
	}
	vb_qp_set_state(qp, VB_QPS_ERR);
	if (is_requesters(cause) && has_request)
		vb_sq_retire(qp, status);
	vb_qp_enter_error(qp);
}

void vb_qp_condemn(struct vb_qp *qp)
{
	if (vb_state(qp) == VB_QPS_ERR || vb_is_condemned(qp))
		return;
	vb_raise(qp->lane, &qp->notice, VB_EVENT_QP_FATAL);
	vb_list_add_tail(&qp->lane->condemned, &qp->condemned_link);
}

void vb_lane_execute_condemned(struct vb_lane *lane)
{
	struct vb_list *node;
	while ((node = vb_list_pop(&lane->condemned))) {
		struct vb_qp *qp = vb_container_of(node, struct vb_qp, condemned_link);
		vb_qp_fail(qp, VB_CAUSE_CQ_OVERRUN, VB_WC_FATAL_ERR, lane->now);
	}
}

void vb_lane_fail_qps(struct vb_lane *lane, enum vb_cause_kind cause, vb_time now)
{
	struct vb_qp *qp;
	for (uint32_t place = 0; (qp = vb_lane_next_qp(lane, &place));) {
		enum vb_qp_state state = vb_state(qp);
		if (state == VB_QPS_RESET || state == VB_QPS_INIT || state == VB_QPS_ERR)
			continue;
		vb_raise(lane, &qp->notice, VB_EVENT_QP_FATAL);
		vb_qp_fail(qp, cause, VB_WC_FATAL_ERR, now);
	}
}

bool vb_qp_peer_is_verbena(const struct vb_qp *qp)
{
	return qp->peer && qp->peer->facts.is_verbena;
}

vb_time vb_qp_silent_for(const struct vb_qp *qp, vb_time now)
{
	const enum vb_qp_state state = vb_state(qp); /* a QP that only receives may stay in RTR */
	const bool is_connected =
		(state == VB_QPS_RTR || state == VB_QPS_RTS) && qp->is_reliable && qp->requester.was_heard;
	if (!is_connected || (sq_is_empty(qp) && !qp->srq && vb_recv_ring_count(&qp->rq) == 0))
		return -1;
	return vb_time_since(qp->requester.heard_at, now);
}

void vb_qp_cause(const struct vb_qp *qp, struct vb_cause *cause)
{
	*cause = qp->cause;
}
