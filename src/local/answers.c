/* Same host, the requester: turns answers into completions.
 * Holds: what is answered, is in the order of PSNs; answers that make no sense, or are to nothing that is under way,
 * change nothing. Not here: READs that are pulled (read.c), finishing a work request (core/requests.c), waiting
 * (core/retry.c). */
#include "base/invariant.h"
#include "core/lane.h"
#include "core/memory.h"
#include "core/message.h"
#include "local/parts.h"

#define LATER (100 * VB_US)

static void fail_as_senseless(struct vb_qp *qp, vb_time now)
{
	vb_qp_fail(qp, VB_CAUSE_BAD_RESPONSE, VB_WC_BAD_RESP_ERR, now);
}

/* The request that the next answer is to. Behind READs that are being pulled nothing completes yet. */
struct place {
	uint32_t psn, index;
};

static uint32_t heard_psn(const struct vb_qp *qp)
{
	return qp->local->lent_count ? qp->local->heard_psn : qp->requester.una_psn;
}

static struct place next_place(const struct vb_qp *qp)
{
	uint32_t index = qp->local->lent_count ? qp->local->heard_index : head_index(qp);
	return (struct place){ heard_psn(qp), vb_after_local_operations(qp, index) };
}

/* All before it is answered. */
static void move_to(struct vb_qp *qp, struct place place, vb_time now)
{
	if (qp->local->lent_count) {
		qp->local->heard_psn = place.psn;
		qp->local->heard_index = place.index;
	} else {
		qp->requester.una_psn = place.psn;
		vb_sq_retire_to(qp, place.index);
	}
	vb_local_renew(qp, now);
}

/* All that is under way before end is executed. False: among it is what has an answer of its own. */
static bool retire(struct vb_qp *qp, uint32_t end, vb_time now)
{
	struct place place = next_place(qp);
	bool is_right = true;
	assert(vb_psn_diff(end, heard_psn(qp)) >= 0);
	if (place.psn == end)
		return true;
	while (place.psn != end) {
		const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, place.index);
		if (is_read(wqe) || is_atomic(wqe)) {
			is_right = false;
			break;
		}
		uint32_t left = wqe->psn_count - psn_index(wqe, place.psn);
		uint32_t count = (uint32_t)vb_psn_diff(end, place.psn);
		place.psn = vb_psn_add(place.psn, left < count ? left : count);
		if (left > count)
			break;
		if (needs_response(wqe))
			qp->requester.rd_atomic_out--;
		place.index = vb_after_local_operations(qp, place.index + 1);
	}
	move_to(qp, place, now);
	return is_right;
}

/* A request with an answer of its own has got it. */
static void retire_answered(struct vb_qp *qp, struct place place, vb_time now)
{
	const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, place.index);
	bool is_last = psn_index(wqe, place.psn) + 1 == wqe->psn_count;
	assert(qp->requester.rd_atomic_out > 0);
	place.psn = vb_psn_add(place.psn, 1);
	if (is_last)
		place.index = vb_after_local_operations(qp, place.index + 1);
	qp->requester.rd_atomic_out--;
	move_to(qp, place, now);
}

/* Nobody takes the oldest request now. On the wire the peer would be silent, and be asked again by probes; here as
 * often, and a retry is used up in each ack timeout. */
static void on_absence(struct vb_qp *qp, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	assert(qp->local_peer);
	if (rq->is_rnr_waiting)
		return;
	if (vb_deadline_due(vb_retry_ack_timeout(qp, rq->progress_at), now)) {
		vb_count(qp->lane, VB_TIMEOUTS, 1);
		if (!vb_retry_use(qp, now))
			return;
		rq->progress_at = now;
	}
	struct vb_deadline next = { vb_time_add(now, qp->lane->least_silence << rq->backoff), true };
	vb_retry_wait_until(qp, vb_deadline_earlier(next, vb_retry_ack_timeout(qp, rq->progress_at)).at);
	if (rq->backoff < VB_BACKOFF_MAX)
		rq->backoff++;
}

/* The peer cannot pull. What is under way, none of which it has executed, goes again in parts. */
static void lend_no_more(struct vb_qp *qp)
{
	struct vb_requester *rq = &qp->requester;
	uint32_t tail = atomic_load_explicit(&qp->sq.tail, memory_order_acquire), psn = rq->una_psn;
	qp->local->never_lends = true;
	for (uint32_t i = head_index(qp); i != tail; i++) {
		struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, i);
		if (!wqe->is_started)
			break;
		if (i == head_index(qp) && psn_index(wqe, psn) < wqe->psn_count && psn != wqe->first_psn) {
			psn = vb_psn_add(wqe->first_psn, wqe->psn_count); /* parts of it are through: it was not lent */
			continue;
		}
		wqe->first_psn = psn;
		if (wqe->psn_count)
			vb_local_cut(qp, wqe);
		psn = vb_psn_add(psn, wqe->psn_count);
	}
	vb_retry_go_back(qp);
	rq->max_psn = rq->next_psn;
	assert(rq->max_psn == rq->una_psn);
}

/* Of the oldest request under way. */
static void conclude(struct vb_qp *qp, enum vb_answer_kind kind, uint8_t code, vb_time now)
{
	assert(qp->local->lent_count == 0);
	switch (kind) {
	case VB_ANSWER_NOT_READY:
		vb_count(qp->lane, VB_RNR_RECEIVED, 1);
		vb_retry_on_rnr(qp, code & VB_AETH_CODE_MASK, now);
		break;
	case VB_ANSWER_LATER:
		if (!qp->requester.is_rnr_waiting)
			vb_retry_wait_until(qp, vb_time_add(now, LATER));
		break;
	case VB_ANSWER_REFUSED:
		vb_requester_refused(qp, code, now);
		break;
	case VB_ANSWER_UNREADABLE:
		vb_qp_fail(qp, VB_CAUSE_LOCAL_FAULT, VB_WC_LOC_PROT_ERR, now);
		break;
	case VB_ANSWER_UNWANTED:
		lend_no_more(qp);
		break;
	case VB_ANSWER_ABSENT:
		on_absence(qp, now);
		break;
	case VB_ANSWER_MISPLACED:
		vb_qp_fail(qp, VB_CAUSE_LOCAL_SGE, VB_WC_LOC_PROT_ERR, now);
		break;
	default:
		fail_as_senseless(qp, now);
		break;
	}
}

/* Says something of the oldest request that is not answered: at once, if no READ is left before it. */
static void settle(struct vb_qp *qp, enum vb_answer_kind kind, uint8_t code, vb_time now)
{
	struct vb_local *local = qp->local;
	if (local->lent_count == 0) {
		conclude(qp, kind, code, now);
		return;
	}
	local->has_kept = true;
	local->kept_kind = (uint8_t)kind;
	local->kept_code = code;
	assert(local->has_kept);
}

void vb_local_go_on(struct vb_qp *qp, vb_time now)
{
	struct vb_local *local = qp->local;
	if (local->has_kept && local->lent_count == 0 && !vb_is_failing(qp)) {
		local->has_kept = false;
		conclude(qp, (enum vb_answer_kind)local->kept_kind, local->kept_code, now);
	}
	vb_requester_proceed(qp, now);
}

static void take_value(struct vb_qp *qp, const struct vb_answer *answer, vb_time now)
{
	struct place place = next_place(qp);
	const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, place.index);
	if (!is_atomic(wqe))
		fail_as_senseless(qp, now);
	else if (!vb_scatter(qp->pd, &qp->known_lkey, wqe->sges, wqe->sge_count, 0, answer->bytes,
			 sizeof(answer->value), true))
		settle(qp, VB_ANSWER_MISPLACED, 0, now);
	else
		retire_answered(qp, place, now);
}

static void take_read(struct vb_qp *qp, const struct vb_answer *answer, const struct vb_local_heap *heap, vb_time now)
{
	struct place place = next_place(qp);
	const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, place.index);
	uint32_t index = psn_index(wqe, place.psn), offset = index * VB_LOCAL_PART;
	if (!is_read(wqe) || answer->length != vb_local_part_length(wqe, offset) || !vb_answer_lies_in(answer, heap)) {
		fail_as_senseless(qp, now);
	} else if (!vb_scatter(qp->pd, &qp->known_lkey, wqe->sges, wqe->sge_count, offset,
			   vb_answer_bytes(answer, heap), answer->length, index + 1 == wqe->psn_count)) {
		settle(qp, VB_ANSWER_MISPLACED, 0, now);
	} else {
		vb_count(qp->lane, VB_RX_BYTES, answer->length);
		retire_answered(qp, place, now);
	}
}

static void take_lent(struct vb_qp *qp, const struct vb_answer *answer, vb_time now)
{
	struct place place = next_place(qp);
	const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, place.index);
	if (is_read(wqe) && wqe->psn_count == 1 && wqe->length > 0)
		vb_local_lent(qp, place.index, answer);
	else
		fail_as_senseless(qp, now);
}

/* Everything before it is answered. */
static void take(struct vb_qp *qp, const struct vb_answer *answer, const struct vb_local_heap *heap, vb_time now)
{
	switch ((enum vb_answer_kind)answer->kind) {
	case VB_ANSWER_VALUE:
		take_value(qp, answer, now);
		break;
	case VB_ANSWER_READ:
		take_read(qp, answer, heap, now);
		break;
	case VB_ANSWER_LENT:
	case VB_ANSWER_IN_PARTS:
		take_lent(qp, answer, now);
		break;
	default:
		settle(qp, (enum vb_answer_kind)answer->kind, answer->code, now);
		break;
	}
}

static bool is_under_way(const struct vb_qp *qp, uint32_t psn)
{
	return vb_psn_diff(psn, heard_psn(qp)) >= 0 && vb_psn_diff(psn, qp->requester.next_psn) < 0 &&
	       !qp->local->has_kept;
}

static bool is_sending(const struct vb_qp *qp)
{
	return vb_state(qp) == VB_QPS_RTS || vb_state(qp) == VB_QPS_SQD;
}

void vb_local_acked(struct vb_qp *qp, uint32_t psn, vb_time now)
{
	assert(qp->local_peer);
	if (!is_sending(qp) || !is_under_way(qp, psn)) {
		vb_count(qp->lane, VB_DROP_STALE_ACK, 1);
		return;
	}
	if (!retire(qp, vb_psn_add(psn, 1), now))
		fail_as_senseless(qp, now);
	vb_requester_proceed(qp, now);
}

/* UC hears only that its descriptors were taken. A message that could not be pulled is lost, and the next is not
 * lent. */
static enum vb_answer_kind kind_for(struct vb_qp *qp, const struct vb_answer *answer)
{
	enum vb_answer_kind kind = (enum vb_answer_kind)answer->kind;
	if (qp->is_reliable || kind == VB_ANSWER_UNREADABLE)
		return kind;
	if (kind == VB_ANSWER_UNWANTED)
		qp->local->never_lends = true;
	return VB_ANSWER_DONE;
}

static void take_answer(
	struct vb_local_peer *peer, const struct vb_answer *answer, const struct vb_local_heap *heap, vb_time now)
{
	struct vb_qp *qp = vb_lane_find_qp(peer->lane, answer->dest_qpn);
	if (!qp || qp->local_peer != peer || qp->attr.dest_qpn != answer->src_qpn) {
		vb_count(peer->lane, VB_DROP_STALE_ACK, 1);
		return;
	}
	enum vb_answer_kind kind = kind_for(qp, answer);
	qp->requester.heard_at = now;
	qp->requester.was_heard = true;
	if (kind == VB_ANSWER_DONE) {
		vb_local_acked(qp, answer->psn, now);
		return;
	}
	if (vb_local_asks_again(qp, answer->psn)) {
		vb_local_answered_again(qp, answer, heap, now);
		vb_local_go_on(qp, now);
		return;
	}
	/* One behind one that was refused is not taken either, which says nothing new. */
	bool is_behind = kind == VB_ANSWER_ABSENT && answer->psn != heard_psn(qp);
	if (!is_sending(qp) || !is_under_way(qp, answer->psn) || is_behind) {
		vb_count(peer->lane, VB_DROP_STALE_ACK, 1);
		return;
	}
	if (retire(qp, answer->psn, now))
		take(qp, answer, heap, now);
	else
		fail_as_senseless(qp, now);
	vb_requester_proceed(qp, now);
}

void vb_local_answered(struct vb_local_peer *peer, const struct vb_answer *answers, unsigned n,
	const struct vb_local_heap *heap, vb_time now)
{
	peer->lane->now = now;
	for (unsigned i = 0; i < n; i++) {
		take_answer(peer, &answers[i], heap, now);
		vb_lane_reap(peer->lane);
	}
}
