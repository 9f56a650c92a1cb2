/* Work requests, whatever carries them: how each starts, fails and is finished.
 * Holds: work requests start in order, and complete in that order; a local operation happens when all before it has
 * been sent (bind) or is finished (invalidate). Not here: what carries them (roce/, local/), when they are sent again
 * (retry.c). IBA vol. 1, 9.7.1 and 10.8. */
#include "core/requests.h"
#include <string.h>
#include "base/invariant.h"
#include "core/events.h"
#include "core/kept.h"
#include "core/lane.h"
#include "core/memory.h"
#include "core/message.h"
#include "core/peers.h"
#include "core/qp.h"
#include "core/send_queue.h"

void vb_requester_reset(struct vb_qp *qp, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	memset(rq, 0, sizeof(*rq));
	rq->cursor = head_index(qp);
	rq->una_psn = rq->next_psn = rq->max_psn = qp->attr.sq_psn & VB_PSN_MASK;
	rq->heard_at = now;
	vb_retry_reset(qp, now);
	assert(!vb_requester_is_busy(qp));
}

/* ---- Finishing --------------------------------------------------------------------------------------------------- */

uint32_t vb_after_local_operations(const struct vb_qp *qp, uint32_t index)
{
	uint32_t tail = atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
	for (; index != tail; index++) {
		const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, index);
		if (!wqe->is_started || wqe->psn_count != 0)
			break;
	}
	return index;
}

/* Local operations that are done complete as soon as they are the oldest. */
void vb_retire_local_operations(struct vb_qp *qp)
{
	uint32_t head = head_index(qp), index = vb_after_local_operations(qp, head);
	if (index != head)
		vb_sq_retire_to(qp, index);
}

void vb_requester_doom(struct vb_qp *qp, enum vb_wc_status status, enum vb_cause_kind cause, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	assert(status != VB_WC_SUCCESS);
	if (!rq->pending_error) {
		rq->pending_error = status;
		rq->pending_cause = cause;
	}
	if (rq->cursor == head_index(qp))
		vb_qp_fail(qp, rq->pending_cause, rq->pending_error, now);
	assert(rq->pending_error != VB_WC_SUCCESS);
}

static void check_drained(struct vb_qp *qp)
{
	if (vb_state(qp) != VB_QPS_SQD || !qp->attr.is_draining || vb_requester_is_busy(qp))
		return;
	if (!sq_is_empty(qp) && head_wqe(qp)->is_started)
		return; /* a message that was begun is finished first */
	qp->attr.is_draining = false;
	if (qp->attr.notify_drained)
		vb_raise(qp->lane, &qp->notice, VB_EVENT_SQ_DRAINED);
}

/* After una_psn moved: more may start, the failing one may be the oldest, the queue may be drained. */
void vb_requester_proceed(struct vb_qp *qp, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	enum vb_qp_state state = vb_state(qp);
	if (state != VB_QPS_RTS && state != VB_QPS_SQD)
		return;
	vb_retire_local_operations(qp);
	if (rq->pending_error && rq->cursor == head_index(qp)) {
		vb_qp_fail(qp, rq->pending_cause, rq->pending_error, now);
		return;
	}
	check_drained(qp);
	if (rq->cursor != atomic_load_explicit(&qp->sq.tail, memory_order_acquire))
		vb_schedule(qp);
}

void vb_requester_refused(struct vb_qp *qp, uint8_t nak, vb_time now)
{
	static const struct {
		enum vb_cause_kind cause;
		enum vb_wc_status status;
	} verdicts[] = {
		[VB_NAK_INVALID_REQUEST & 31] = { VB_CAUSE_NAK_INVALID_REQUEST, VB_WC_REM_INV_REQ_ERR },
		[VB_NAK_REMOTE_ACCESS & 31] = { VB_CAUSE_NAK_REMOTE_ACCESS, VB_WC_REM_ACCESS_ERR },
		[VB_NAK_REMOTE_OPERATION & 31] = { VB_CAUSE_NAK_REMOTE_OPERATION, VB_WC_REM_OP_ERR },
		[VB_NAK_INVALID_RD & 31] = { VB_CAUSE_NAK_INVALID_REQUEST, VB_WC_REM_INV_REQ_ERR },
	};
	uint8_t code = nak & VB_AETH_CODE_MASK;
	assert(qp->is_reliable);
	bool is_known = code < sizeof(verdicts) / sizeof(verdicts[0]) && verdicts[code].cause;
	if (is_known)
		vb_qp_fail(qp, verdicts[code].cause, verdicts[code].status, now);
	else
		vb_qp_fail(qp, VB_CAUSE_BAD_RESPONSE, VB_WC_BAD_RESP_ERR, now);
}

/* ---- Starting ---------------------------------------------------------------------------------------------------- */

/* BIND_MW and LOCAL_INV happen here and now, when everything before them has been sent (bind) or finished (invalidate).
 */
static bool run_local_operation(struct vb_qp *qp, struct vb_send_wqe *wqe, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	if (wqe->opcode == VB_WR_LOCAL_INV) {
		if (rq->cursor != head_index(qp))
			return false;
		if (vb_key_invalidate(qp->pd, qp->qpn, wqe->imm_or_inv)) {
			vb_requester_doom(qp, VB_WC_LOC_QP_OP_ERR, VB_CAUSE_LOCAL_OPERATION, now);
			return false;
		}
	} else if (vb_mw_bind(wqe->bind.mw, wqe->bind.mr, qp->pd, qp->qpn, wqe->bind.addr, wqe->bind.length,
			   wqe->bind.access, wqe->bind.rkey)) {
		vb_requester_doom(qp, VB_WC_MW_BIND_ERR, VB_CAUSE_MW_BIND, now);
		return false;
	}
	wqe->is_started = true;
	wqe->first_psn = rq->max_psn;
	wqe->psn_count = 0;
	rq->cursor++;
	vb_retire_local_operations(qp);
	return true;
}

/* A message that consumes a receive goes beyond the peer's credits only as the single thing outstanding: a probe. */
static bool credits_allow(const struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t ssn)
{
	const struct vb_requester *rq = &qp->requester;
	if (!rq->has_credits || !takes_a_receive(wqe) || vb_psn_diff(ssn, rq->credit_limit) <= 0)
		return true;
	return !vb_requester_is_busy(qp);
}

static bool may_start(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	const struct vb_requester *rq = &qp->requester;
	if (vb_state(qp) != VB_QPS_RTS)
		return false;
	if ((wqe->flags & VB_SEND_FENCE) && rq->rd_atomic_out > 0)
		return false;
	return credits_allow(qp, wqe, vb_psn_add(rq->ssn, 1));
}

static bool start(struct vb_qp *qp, struct vb_send_wqe *wqe, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	if (!may_start(qp, wqe))
		return false;
	if (is_local(wqe)) {
		rq->has_local_operations = true;
		return run_local_operation(qp, wqe, now);
	}
	if (rq->ssn == 0 && vb_peer_must_be_met(qp))
		return false;
	if (needs_response(wqe) && qp->attr.max_rd_atomic == 0) { /* could never be sent */
		vb_requester_doom(qp, VB_WC_LOC_QP_OP_ERR, VB_CAUSE_LOCAL_OPERATION, now);
		return false;
	}
	rq->is_answer = (rq->is_asked && !rq->took_receive) || (rq->is_answer && vb_requester_is_busy(qp));
	rq->is_asked = false;
	wqe->first_psn = rq->max_psn;
	if (!qp->is_reliable)
		wqe->at_port = 0;
	wqe->is_started = true;
	wqe->started_at = now;
	wqe->ssn = vb_psn_add(rq->ssn, 1);
	if (!is_read(wqe))
		rq->ssn = wqe->ssn;
	qp->way->cut(qp, wqe);
	assert(wqe->psn_count > 0);
	return true;
}

bool vb_requester_may_send(const struct vb_qp *qp)
{
	enum vb_qp_state state = vb_state(qp);
	return (state == VB_QPS_RTS || state == VB_QPS_SQD) && !qp->requester.is_rnr_waiting;
}

struct vb_send_wqe *vb_requester_next(struct vb_qp *qp, vb_time now)
{
	struct vb_requester *rq = &qp->requester;

	if (!vb_requester_may_send(qp) || rq->pending_error)
		return NULL;
	while (rq->cursor != atomic_load_explicit(&qp->sq.tail, memory_order_acquire)) {
		struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, rq->cursor);
		if (!wqe->is_started) {
			if (!start(qp, wqe, now))
				return NULL;
			continue;
		}
		if (psn_index(wqe, rq->next_psn) < wqe->psn_count)
			return wqe;
		rq->cursor++; /* all of it has been sent */
	}
	return NULL;
}

/* ---- Without acknowledgements ------------------------------------------------------------------------------------ */

void vb_requester_start_datagram(struct vb_qp *qp, struct vb_send_wqe *wqe)
{
	struct vb_requester *rq = &qp->requester;
	assert(qp->type == VB_QP_UD && !wqe->sender);
	wqe->is_started = true;
	wqe->first_psn = rq->next_psn;
	wqe->psn_count = wqe->at_port = 1;
	rq->una_psn = rq->next_psn = rq->max_psn = vb_psn_add(rq->next_psn, 1);
	rq->cursor++;
	assert(wqe->at_port == 1);
}

/* The WQE whose packets include psn; psn lies between una_psn and max_psn. Datagrams may wait at the oldest for
 * long. */
struct vb_send_wqe *vb_requester_wqe_of(const struct vb_qp *qp, uint32_t psn)
{
	uint32_t tail = atomic_load_explicit(&qp->sq.tail, memory_order_acquire), first = head_index(qp);
	if (qp->type == VB_QP_UD && first != tail && psn_index(head_wqe(qp), psn) < tail - first)
		first += psn_index(head_wqe(qp), psn);
	for (uint32_t i = first; i != tail; i++) {
		struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, i);
		if (!wqe->is_started)
			return NULL;
		if (wqe->psn_count && psn_index(wqe, psn) < wqe->psn_count)
			return wqe;
	}
	return NULL;
}

void vb_requester_wqe_left(struct vb_qp *qp, struct vb_send_wqe *wqe, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	assert(wqe->at_port > 0 && !qp->is_reliable);
	if (--wqe->at_port > 0 || wqe != head_wqe(qp))
		return;
	while (head_index(qp) != rq->cursor && head_wqe(qp)->at_port == 0) {
		vb_sq_retire(qp, VB_WC_SUCCESS);
		vb_retire_local_operations(qp);
	}
	if (vb_kept_any(qp))
		vb_kept_free_done(qp);
	vb_requester_proceed(qp, now);
}

/* Packets may come back in any order; messages complete in theirs. */
void vb_requester_left(struct vb_qp *qp, uint32_t psn, vb_time now)
{
	struct vb_send_wqe *wqe = vb_requester_wqe_of(qp, psn);
	if (wqe)
		vb_requester_wqe_left(qp, wqe, now);
}

void vb_requester_fault(struct vb_qp *qp, uint32_t psn, enum vb_cause_kind cause, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	if (vb_state(qp) == VB_QPS_ERR || vb_state(qp) == VB_QPS_SQE || rq->pending_error)
		return;
	/* Answered all the same, an earlier copy got through; or gone back from, and found again when it is its
	 * turn. */
	if (qp->is_reliable && (vb_psn_diff(psn, rq->una_psn) < 0 || vb_psn_diff(psn, rq->next_psn) >= 0))
		return;
	uint32_t index = head_index(qp);
	while (index != rq->cursor &&
		psn_index(vb_send_wqe_at(&qp->sq, index), psn) >= vb_send_wqe_at(&qp->sq, index)->psn_count)
		index++;
	rq->cursor = index;
	vb_requester_doom(qp, VB_WC_LOC_PROT_ERR, cause, now);
}

/* Of a connected QP. */
void vb_requester_check(const struct vb_qp *qp)
{
	const struct vb_requester *rq = &qp->requester;
	uint32_t tail = atomic_load_explicit(&qp->sq.tail, memory_order_relaxed), expected_psn = 0;
	bool is_first = true, is_started = true;
	for (uint32_t i = head_index(qp); i != tail; i++) {
		const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, i);
		bool is_sent = (int32_t)(i - rq->cursor) < 0;
		assert(is_started || !wqe->is_started);
		assert(wqe->is_started || !is_sent);
		is_started = wqe->is_started;
		if (!is_started)
			continue;
		assert(is_first || wqe->first_psn == expected_psn);
		expected_psn = vb_psn_add(wqe->first_psn, wqe->psn_count);
		is_first = false;
	}
	const struct vb_send_wqe *oldest = head_wqe(qp);
	if (qp->is_reliable && !sq_is_empty(qp) && oldest->is_started)
		assert(psn_index(oldest, rq->una_psn) < oldest->psn_count);
	/* A failing one may have been sent, and others after it: its memory was missed when the packet was to leave. */
	const struct vb_send_wqe *next = vb_send_wqe_at(&qp->sq, rq->cursor);
	if (qp->is_reliable && rq->cursor != tail && next->is_started && !rq->pending_error)
		assert(psn_index(next, rq->next_psn) <= next->psn_count);
}
