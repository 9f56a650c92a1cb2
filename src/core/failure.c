/* How a QP fails: the cause is noted and the state changes at once; at the end of the turn everything that waits
 * completes in error, in order. So nothing that a file has in hand goes away under it. IBA vol. 1, 10.3.1. Holds: a
 * failing QP is in its lane's list until it is flushed; no engine call returns before that. */
#include "base/invariant.h"
#include "core/events.h"
#include "core/execute.h"
#include "core/handed_out.h"
#include "core/kept.h"
#include "core/lane.h"
#include "core/message.h"
#include "core/peers.h"
#include "core/qp.h"
#include "core/send_queue.h"
#include "wire/packet.h"

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
	/* A receive that is posted from now on rings for a flush of its own. */
	vb_lock_take(&qp->rq.lock);
	vb_lock_release(&qp->rq.lock);
	for (uint32_t left = vb_recv_ring_count(&qp->rq); left > 0 && vb_recv_take(target); left--)
		vb_complete_recv(target, &wc, true);
	assert(!target->recv);
}

/* Every request that waits completes with WR_FLUSH_ERR, in order. 10.3.1. */
void vb_qp_flush(struct vb_qp *qp)
{
	vb_qp_flush_sends(qp);
	flush_receives(qp);
}

static bool receives_datagrams(const struct vb_qp *qp, enum vb_qp_state state)
{
	return qp->type == VB_QP_UD && state >= VB_QPS_RTR && state != VB_QPS_ERR;
}

void vb_qp_set_state(struct vb_qp *qp, enum vb_qp_state state)
{
	assert((unsigned)state < VB_QPS_COUNT);
	qp->lane->datagram_receivers += (uint32_t)receives_datagrams(qp, state) - receives_datagrams(qp, vb_state(qp));
	atomic_store(&qp->state, state);
}

/* ---- What is stopped --------------------------------------------------------------------------------------------- */

static void stop_requests(struct vb_qp *qp)
{
	struct vb_requester *rq = &qp->requester;
	vb_timer_cancel(&qp->timer);
	qp->transport->stop(qp);
	rq->una_psn = rq->next_psn = rq->max_psn;
	rq->is_rnr_waiting = false;
	vb_handed_out_disown(qp);
	vb_kept_abandon(qp);
	rq->rd_atomic_out = 0;
	assert(!qp->timer.deadline.is_set);
}

void vb_qp_enter_error(struct vb_qp *qp)
{
	vb_qp_set_state(qp, VB_QPS_ERR);
	qp->attr.is_draining = false;
	stop_requests(qp);
	qp->transport->end(qp);
	qp->target.open = VB_NO_MESSAGE;
	vb_qp_flush(qp);
	if (qp->srq)
		vb_raise(qp->lane, &qp->notice, VB_EVENT_QP_LAST_WQE_REACHED);
	assert(head_index(qp) == qp->requester.cursor && !vb_requester_is_busy(qp));
}

/* ---- Why --------------------------------------------------------------------------------------------------------- */

static uint32_t stuck_bytes(const struct vb_qp *qp)
{
	uint32_t head = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
	if (head == atomic_load_explicit(&qp->sq.tail, memory_order_acquire))
		return 0;
	const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, head);
	if (wqe->opcode == VB_WR_RDMA_READ)
		return VB_BTH_LENGTH;
	uint32_t index = (qp->requester.una_psn - wqe->first_psn) & VB_PSN_MASK;
	uint32_t mtu = vb_mtu_of(qp, wqe);
	uint64_t offset = (uint64_t)index * mtu, rest = wqe->length > offset ? wqe->length - offset : 0;
	return VB_BTH_LENGTH + (uint32_t)(rest < mtu ? rest : mtu);
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

/* The access to the peer's memory that the oldest request asked for. */
static void note_refused_access(struct vb_qp *qp)
{
	const struct vb_send_wqe *wqe =
		vb_send_wqe_at(&qp->sq, atomic_load_explicit(&qp->sq.head, memory_order_relaxed));
	vb_qp_note_access(qp, (enum vb_message)vb_wr_kinds[wqe->opcode].message, wqe->remote_addr, wqe->rkey,
		wqe->opcode == VB_WR_FLUSH ? wqe->flush.length : wqe->length);
}

/* ---- Failing ----------------------------------------------------------------------------------------------------- */

void vb_qp_fail(struct vb_qp *qp, enum vb_cause_kind cause, enum vb_wc_status status, vb_time now)
{
	if (vb_state(qp) == VB_QPS_ERR || vb_state(qp) == VB_QPS_RESET)
		return;
	assert(cause != VB_CAUSE_NONE && status != VB_WC_SUCCESS);
	bool has_request = !sq_is_empty(qp);
	note_cause(qp, cause, status, now);
	if (cause == VB_CAUSE_NAK_REMOTE_ACCESS && has_request)
		note_refused_access(qp);
	vb_count(qp->lane, VB_QP_ERRORS, 1);
	vb_raise(qp->lane, &qp->notice, VB_EVENT_QP_DIED);
	/* 10.3.1.7: of an unreliable QP that is the sender's own fault only the send queue stops. */
	vb_qp_set_state(qp, !qp->is_reliable && is_senders_fault(cause) ? VB_QPS_SQE : VB_QPS_ERR);
	qp->fails_oldest = is_requesters(cause) && has_request;
	qp->failing_status = (uint8_t)status;
	if (!qp->is_failing)
		vb_list_add_tail(&qp->lane->failing, &qp->failing_link);
	qp->is_failing = true;
	assert(qp->is_failing && (vb_state(qp) == VB_QPS_ERR || vb_state(qp) == VB_QPS_SQE));
}

void vb_qp_fail_read(struct vb_qp *qp, uint32_t psn, enum vb_cause_kind cause, vb_time now)
{
	vb_raise(qp->lane, &qp->notice, VB_EVENT_QP_ACCESS_ERR);
	vb_qp_fail(qp, cause, VB_WC_REM_ACCESS_ERR, now);
	qp->cause.psn = psn;
}

static void retire_failed(struct vb_qp *qp)
{
	enum vb_wc_status status = (enum vb_wc_status)qp->failing_status;
	bool is_oldest = qp->fails_oldest;
	qp->failing_status = VB_WC_SUCCESS;
	qp->fails_oldest = false;
	if (is_oldest)
		vb_sq_retire(qp, status);
}

static void execute(struct vb_qp *qp)
{
	bool has_lost_completion = qp->failing_status == VB_WC_SUCCESS;
	if (has_lost_completion) {
		vb_qp_fail(qp, VB_CAUSE_CQ_OVERRUN, VB_WC_FATAL_ERR, qp->lane->now);
	} else if (vb_state(qp) == VB_QPS_SQE) {
		stop_requests(qp);
		retire_failed(qp);
		vb_qp_flush_sends(qp);
	} else {
		retire_failed(qp);
		vb_qp_enter_error(qp);
	}
}

void vb_lane_execute_failing(struct vb_lane *lane)
{
	struct vb_list *node;
	while ((node = vb_list_pop(&lane->failing))) {
		struct vb_qp *qp = vb_container_of(node, struct vb_qp, failing_link);
		assert(qp->is_failing && qp->lane == lane);
		qp->is_failing = false;
		execute(qp);
	}
	assert(vb_list_empty(&lane->failing));
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
		vb_lane_reap(lane);
	}
}

/* ---- Asked for --------------------------------------------------------------------------------------------------- */

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
