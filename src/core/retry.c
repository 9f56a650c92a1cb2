/* When a request is sent again, as far as it is the same whatever carries requests: retries, and the wait that a peer
 * without a receive asks for. IBA vol. 1, 9.7.5 to 9.7.7.
 * Holds: una_psn <= next_psn <= max_psn.
 * Not here: lost packets (roce/recovery.c), local peers that are not there yet (local/answers.c). */
#include "base/invariant.h"
#include "core/lane.h"
#include "core/message.h"
#include "core/peers.h"
#include "core/qp.h"
#include "core/requests.h"

/* Table 45 of IBA vol. 1, 9.7.5.2.8, in units of 10 us. */
static const uint32_t rnr_timer_10us[32] = { 65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384,
	512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152 };

void vb_retry_reset(struct vb_qp *qp, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	vb_retry_renew(qp);
	rq->is_rnr_waiting = false;
	rq->backoff = 0;
	rq->progress_at = rq->quiet_since = now;
	vb_timer_cancel(&qp->timer);
	assert(!qp->timer.deadline.is_set);
}

void vb_retry_renew(struct vb_qp *qp)
{
	qp->requester.retries_left = qp->attr.retry_cnt;
	qp->requester.rnr_retries_left = qp->attr.rnr_retry;
	qp->requester.tries = 0;
	assert(qp->requester.tries == 0);
}

bool vb_retry_use(struct vb_qp *qp, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	rq->tries++;
	if (rq->retries_left == 0) {
		vb_qp_fail(qp, VB_CAUSE_RETRY_EXCEEDED, VB_WC_RETRY_EXC_ERR, now);
		return false;
	}
	rq->retries_left--;
	assert(rq->tries > 0);
	return true;
}

/* ---- How long to wait -------------------------------------------------------------------------------------------- */

vb_time vb_retry_patience_with(const struct vb_qp *qp)
{
	return qp->peer ? qp->peer->patience : qp->lane->patience;
}

/* 4.096 us * 2^code, or the lane's own time. A peer that has lost nothing gets four times that. Code 0 switches the
 * timer off. 9.7.6.1.3. */
struct vb_deadline vb_retry_ack_timeout(const struct vb_qp *qp, vb_time base)
{
	uint8_t code = qp->attr.timeout & 31;
	vb_time own = qp->lane->ack_timeout, timeout = own ? own : 4096 * VB_NS << code;
	bool is_patient = qp->requester.tries == 0 && vb_retry_patience_with(qp) > qp->lane->least_silence;
	assert(timeout > 0);
	return (struct vb_deadline){ vb_time_add(base, is_patient ? 4 * timeout : timeout), code != 0 };
}

/* Half the ack timeout at most: else a timeout would do what a question is for, and use up a retry. */
vb_time vb_retry_patience(const struct vb_qp *qp)
{
	vb_time of_peer = vb_retry_patience_with(qp);
	struct vb_deadline timeout = vb_retry_ack_timeout(qp, 0);
	if (timeout.is_set && of_peer > timeout.at / 2)
		of_peer = timeout.at / 2;
	return of_peer > qp->lane->least_silence ? of_peer : qp->lane->least_silence;
}

void vb_retry_arm(struct vb_qp *qp, struct vb_deadline other)
{
	const struct vb_requester *rq = &qp->requester;
	struct vb_deadline next = rq->is_rnr_waiting ? (struct vb_deadline){ rq->rnr_until, true } : other;
	if (next.is_set)
		vb_timer_set(&qp->lane->timers, &qp->timer, next.at);
	else
		vb_timer_cancel(&qp->timer);
}

/* ---- Going back -------------------------------------------------------------------------------------------------- */

void vb_retry_go_back(struct vb_qp *qp)
{
	struct vb_requester *rq = &qp->requester;
	assert(vb_psn_diff(rq->next_psn, rq->una_psn) >= 0);
	qp->way->go_back(qp);
	rq->next_psn = rq->una_psn;
	rq->cursor = head_index(qp);
	rq->rd_atomic_out = 0;
	rq->pending_error = VB_WC_SUCCESS; /* what is wrong is found again when the cursor gets there */
	vb_schedule(qp);
	assert(rq->rd_atomic_out == 0 && rq->next_psn == rq->una_psn);
}

void vb_retry_wait_until(struct vb_qp *qp, vb_time time)
{
	assert(!qp->requester.is_rnr_waiting);
	qp->requester.is_rnr_waiting = true;
	qp->requester.rnr_until = time;
	vb_retry_go_back(qp);
	vb_retry_arm(qp, (struct vb_deadline){ 0 });
	assert(qp->timer.deadline.is_set);
}

void vb_retry_on_rnr(struct vb_qp *qp, uint8_t timer_code, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	if (rq->is_rnr_waiting)
		return;
	rq->tries++;
	if (rq->rnr_retries_left == 0) {
		vb_qp_fail(qp, VB_CAUSE_RNR_RETRY_EXCEEDED, VB_WC_RNR_RETRY_EXC_ERR, now);
		return;
	}
	if (rq->rnr_retries_left != 7) /* 7: for ever. 9.7.5.2.8 */
		rq->rnr_retries_left--;
	vb_retry_wait_until(qp, vb_time_add(now, (vb_time)rnr_timer_10us[timer_code & 31] * 10 * VB_US));
	rq->progress_at = rq->rnr_until; /* the peer is there: its silence is counted from when we ask again */
}

void vb_retry_on_timer(struct vb_qp *qp, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	if (!rq->is_rnr_waiting) {
		qp->way->on_timer(qp, now);
		return;
	}
	if (vb_time_is_due(rq->rnr_until, now)) {
		rq->is_rnr_waiting = false;
		rq->quiet_since = now;
		vb_schedule(qp);
	}
	vb_retry_arm(qp, qp->way->deadline(qp));
}
