/* Recovery of the requester: what to send again, and when. Go-back-N as specified (IBA vol. 1, 9.7.5 to 9.7.7), for
 * comparison go-back-0, and before the specified timer a tail probe, unless the lane has none: after max(4 srtt, 1 ms
 * or what the lane says) of silence the newest packet goes again with AckReq, then the oldest unacknowledged, which
 * always gets an answer; then the oldest at doubling intervals. Probes are duplicates, hence legal, and do not count
 * as retries. A peer that has lost nothing is given more time than 1 ms: what is silent there is a process that waits
 * for its core, and a probe is one more thing that it has to do.
 * Holds: una_psn <= next_psn <= max_psn; whatever lies in between is accounted in flight. */
#include "base/invariant.h"
#include "engine/congestion.h"
#include "engine/echo.h"
#include "engine/events.h"
#include "engine/flight.h"
#include "engine/lane.h"
#include "engine/message.h"
#include "engine/peers.h"
#include "engine/qp.h"
#include "engine/recovery.h"
#include "engine/requester.h"
#include "engine/scheduler.h"
#include "engine/send_queue.h"

#define PROBE_MAX       (8 * VB_MS)
#define PROBE_SHIFT_MAX 3
#define PATIENCE_MAX    (64 * VB_MS)
#define RTT_MAX         (1 * VB_S) /* what took longer says that somebody stood still */
/* a broker stays for a second after its last client, and can be asked until then */
#define WORRY         (300 * VB_MS)
#define LATER         (100 * VB_US)
#define GHOSTS_HEEDED 64 /* answers to something old that postpone the timers, between two of progress */

/* Table 45 of IBA vol. 1, 9.7.5.2.8, in units of 10 us. */
static const uint32_t rnr_timer_10us[32] = { 65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384,
	512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152 };

/* Below that no silence says anything. */
static vb_time least_silence(const struct vb_qp *qp)
{
	return qp->lane->config.probe_after;
}

static vb_time patience_with(const struct vb_qp *qp)
{
	return qp->peer ? qp->peer->patience : qp->lane->config.patience;
}

/* 4.096 us * 2^code, or what the lane says, or up to four times that, which is what a peer gets once that has lost
 * nothing; code 0 switches the timer off. 9.7.6.1.3. */
static struct vb_deadline ack_timeout_from(const struct vb_qp *qp, vb_time base)
{
	uint8_t code = qp->attr.timeout & 31;
	vb_time own = qp->lane->config.ack_timeout, timeout = own ? own : 4096 * VB_NS << code;
	bool is_patient = qp->requester.tries == 0 && patience_with(qp) > least_silence(qp);
	return (struct vb_deadline){ vb_time_add(base, is_patient ? 4 * timeout : timeout), code != 0 };
}

bool vb_requester_is_busy(const struct vb_qp *qp)
{
	return qp->requester.una_psn != qp->requester.max_psn;
}

/* Half the specified timer at most, or that would do what a probe is for, and use up a retry. */
static vb_time patience(const struct vb_qp *qp)
{
	vb_time of_peer = patience_with(qp);
	struct vb_deadline timeout = ack_timeout_from(qp, 0);
	if (timeout.is_set && of_peer > timeout.at / 2)
		of_peer = timeout.at / 2;
	return of_peer > least_silence(qp) ? of_peer : least_silence(qp);
}

static vb_time probe_interval(const struct vb_qp *qp)
{
	const struct vb_requester *rq = &qp->requester;
	vb_time least = patience(qp), base = 4 * rq->srtt > least ? 4 * rq->srtt : least;
	if (base > PROBE_MAX)
		return base;
	vb_time interval = base << rq->probe_backoff;
	return interval < PROBE_MAX ? interval : PROBE_MAX;
}

static struct vb_deadline probe_due(const struct vb_qp *qp)
{
	return (struct vb_deadline){ vb_time_add(qp->requester.quiet_since, probe_interval(qp)),
		!qp->lane->config.never_probes };
}

static void arm(struct vb_qp *qp)
{
	const struct vb_requester *rq = &qp->requester;
	struct vb_deadline next = { 0 };

	if (rq->is_rnr_waiting) {
		next = (struct vb_deadline){ rq->rnr_until, true };
	} else if (qp->is_reliable && vb_requester_is_busy(qp) && !qp->local.to) {
		next = vb_deadline_earlier(probe_due(qp), ack_timeout_from(qp, rq->progress_at));
	}
	if (next.is_set)
		vb_timer_set(&qp->lane->timers, &qp->timer, next.at);
	else
		vb_timer_cancel(&qp->timer);
}

void vb_recovery_reset(struct vb_qp *qp, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	rq->retries_left = qp->attr.retry_cnt;
	rq->rnr_retries_left = qp->attr.rnr_retry;
	rq->is_recovering = rq->is_rnr_waiting = rq->is_timing = false;
	rq->probe = rq->probed = VB_PROBE_NONE;
	rq->was_probed = false;
	rq->probe_backoff = 0;
	rq->tries = 0;
	rq->progress_at = rq->quiet_since = now;
	rq->srtt = 0;
	vb_timer_cancel(&qp->timer);
}

/* The first packet is timed: also where it is lost, and another is timed when it is acknowledged. */
static void note_begun(struct vb_tally *tally, vb_time now)
{
	if (tally->has_begun)
		return;
	tally->has_begun = true;
	tally->since = now;
}

void vb_recovery_on_sent(struct vb_qp *qp, uint32_t psn, bool is_new, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	rq->quiet_since = now;
	if (!is_new) {
		vb_count(qp->lane, VB_RETRANSMITTED, 1);
		qp->congestion.tally.sent_again++;
	}
	if (is_new && !rq->is_timing) {
		note_begun(&qp->congestion.tally, now);
		rq->is_timing = true;
		rq->rtt_psn = psn;
		rq->rtt_sent_at = now;
	}
	if (!qp->timer.deadline.is_set) {
		rq->progress_at = now; /* the queue just became busy */
		arm(qp);
	} /* else it comes up early and is put back */
}

/* Go-back-0: what was acknowledged of the oldest message counts no more. */
static void forget_progress(struct vb_qp *qp)
{
	const struct vb_send_wqe *oldest = head_wqe(qp);
	if (vb_requester_is_busy(qp) && oldest->psn_count)
		qp->requester.una_psn = oldest->first_psn;
}

void vb_recovery_go_back(struct vb_qp *qp)
{
	struct vb_requester *rq = &qp->requester;
	vb_flight_clear(qp);
	if (qp->lane->config.restarts_messages)
		forget_progress(qp);
	rq->next_psn = rq->una_psn;
	rq->cursor = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
	rq->rd_atomic_out = 0;
	rq->is_timing = false;                  /* Karn: what is sent twice is not timed */
	rq->probe = rq->probed = VB_PROBE_NONE; /* nor do answers from now on say anything of a probe */
	rq->is_probe_in_doubt = false;
	rq->doomed = VB_WC_SUCCESS; /* what is wrong is found again when the cursor gets there */
	vb_schedule(qp);
}

/* True when a retry is left; it is used up. */
static bool use_retry(struct vb_qp *qp, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	rq->tries++;
	if (rq->retries_left == 0) {
		vb_qp_fail(qp, VB_CAUSE_RETRY_EXCEEDED, VB_WC_RETRY_EXC_ERR, now);
		return false;
	}
	rq->retries_left--;
	return true;
}

/* The holder may find out why, and has until the last retry for that: where there is none, until the first timeout. */
static void tell_silence(struct vb_qp *qp)
{
	if (qp->lane->config.tells_silence)
		vb_raise(qp->lane, &qp->notice, VB_EVENT_QP_SILENT);
}

/* Where the ack timeout is long, the holder hears of it by the first probe after WORRY. */
static bool was_worried(const struct vb_qp *qp)
{
	const struct vb_requester *rq = &qp->requester;
	return qp->attr.retry_cnt > 0 && vb_time_since(rq->progress_at, rq->quiet_since) >= WORRY;
}

static void note_quiet(struct vb_qp *qp, vb_time now)
{
	const bool was = was_worried(qp);
	qp->requester.quiet_since = now;
	if (qp->requester.tries == 0 && !was && was_worried(qp))
		tell_silence(qp);
}

static void tell_loss(struct vb_qp *qp, vb_time now)
{
	vb_congestion_tell(qp,
		&(struct vb_cc_signal){ .event = VB_CC_LOST, .flight = qp->flight.out + qp->flight.in, .now = now });
}

static void measure_rtt(struct vb_requester *rq, uint32_t psn, vb_time now, vb_time *rtt)
{
	*rtt = 0;
	if (!rq->is_timing || vb_psn_diff(psn, rq->rtt_psn) < 0)
		return;
	rq->is_timing = false;
	*rtt = vb_time_since(rq->rtt_sent_at, now);
	if (*rtt > RTT_MAX)
		*rtt = RTT_MAX;
	rq->srtt = rq->srtt ? rq->srtt + (*rtt - rq->srtt) / 8 : *rtt;
}

/* Packets do get lost on the way to this peer: from now on silence most likely means that. */
static void note_loss(struct vb_qp *qp)
{
	if (qp->peer)
		qp->peer->patience = least_silence(qp);
}

/* Nothing was lost, the peer is slow. */
static void note_probe_in_vain(struct vb_qp *qp, vb_time before)
{
	vb_time twice = 2 * before < PATIENCE_MAX ? 2 * before : PATIENCE_MAX;
	if (qp->peer)
		qp->peer->patience = twice > qp->lane->config.patience ? twice : qp->lane->config.patience;
}

/* A peer that answers at once was there all the time, so what the probe repeats was lost; unless there comes a second
 * answer. One that answers later had both before it, and may well answer both with one ack. */
static void note_probe_answered(struct vb_qp *qp, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	vb_time soon = 2 * rq->srtt > least_silence(qp) / 2 ? 2 * rq->srtt : least_silence(qp) / 2;
	vb_time before = patience_with(qp);
	rq->is_probe_in_doubt = vb_time_since(rq->quiet_since, now) < soon;
	rq->doubt_end = rq->next_psn;
	rq->patience_before = before;
	if (rq->is_probe_in_doubt)
		note_loss(qp);
	else
		note_probe_in_vain(qp, before);
}

static void note_acked(struct vb_tally *tally, uint32_t bytes, vb_time now)
{
	if (tally->acked == 0)
		tally->has_begun = bytes > 0; /* what has none may be long before the rest */
	tally->acked += bytes;
	tally->acked_at = now;
}

void vb_recovery_on_progress(
	struct vb_qp *qp, uint32_t psn, struct vb_cc_signal *acked, bool may_answer_probe, vb_time now)
{
	struct vb_requester *rq = &qp->requester;

	note_acked(&qp->congestion.tally, acked->acked, now);
	measure_rtt(rq, psn, now, &acked->rtt);
	vb_congestion_tell(qp, acked);
	/* The oldest was asked for by itself and just that was answered: what was sent after it has been lost. */
	bool rest_is_lost = rq->probed == VB_PROBE_OLDEST && psn == rq->probed_psn && may_answer_probe &&
			    rq->next_psn != rq->una_psn;
	if (rq->probed)
		note_probe_answered(qp, now);
	else if (rq->is_probe_in_doubt && vb_psn_diff(psn, rq->doubt_end) >= 0)
		rq->is_probe_in_doubt = false;
	rq->retries_left = qp->attr.retry_cnt;
	rq->rnr_retries_left = qp->attr.rnr_retry;
	rq->is_recovering = false;
	rq->probe = rq->probed = VB_PROBE_NONE;
	rq->was_probed = false;
	rq->ghosts = 0;
	/* Kept until a round trip is measured, as Karn's algorithm asks, or the peer is seen to be quick: an answer
	 * that soon after the last packet left is one to it. */
	if (acked->rtt || vb_time_since(rq->quiet_since, now) < least_silence(qp))
		rq->probe_backoff = 0;
	rq->tries = 0;
	rq->progress_at = rq->quiet_since = now;
	if (rest_is_lost) {
		tell_loss(qp, now);
		vb_recovery_go_back(qp);
	}
	/* A deadline that moves later costs nothing: the timer comes up early and is put back. */
	if (!vb_requester_is_busy(qp) || !qp->timer.deadline.is_set)
		arm(qp);
}

void vb_recovery_on_ghost(struct vb_qp *qp, vb_time now)
{
	if (qp->requester.is_probe_in_doubt)
		note_probe_in_vain(qp, qp->requester.patience_before);
	qp->requester.is_probe_in_doubt = false;
	if (!vb_requester_is_busy(qp) || qp->requester.is_rnr_waiting || qp->requester.ghosts >= GHOSTS_HEEDED)
		return;
	qp->requester.ghosts++;
	qp->requester.progress_at = qp->requester.quiet_since = now;
}

void vb_recovery_on_gap(struct vb_qp *qp, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	if (rq->is_recovering)
		return;
	if (!use_retry(qp, now))
		return;
	rq->is_recovering = true;
	note_loss(qp);
	tell_loss(qp, now);
	vb_recovery_go_back(qp);
	arm(qp);
}

/* Nothing is sent before. */
static void wait_until(struct vb_qp *qp, vb_time time)
{
	qp->requester.is_rnr_waiting = true;
	qp->requester.rnr_until = time;
	vb_recovery_go_back(qp);
	arm(qp);
}

void vb_recovery_on_rnr(struct vb_qp *qp, uint8_t timer_code, vb_time now)
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
	wait_until(qp, vb_time_add(now, (vb_time)rnr_timer_10us[timer_code & 31] * 10 * VB_US));
	rq->progress_at = rq->rnr_until; /* the peer is there: its silence is counted from when we ask again */
}

/* On the wire it would be silent, and be asked again by probes; a retry is what lasts as long as the ack timeout. */
void vb_recovery_on_absence(struct vb_qp *qp, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	if (rq->is_rnr_waiting)
		return;
	if (vb_deadline_due(ack_timeout_from(qp, rq->progress_at), now)) {
		vb_count(qp->lane, VB_TIMEOUTS, 1);
		if (!use_retry(qp, now))
			return;
		rq->progress_at = now;
	}
	struct vb_deadline next = { vb_time_add(now, least_silence(qp) << rq->probe_backoff), true };
	wait_until(qp, vb_deadline_earlier(next, ack_timeout_from(qp, rq->progress_at)).at);
	if (rq->probe_backoff < PROBE_SHIFT_MAX)
		rq->probe_backoff++;
}

void vb_recovery_on_later(struct vb_qp *qp, vb_time now)
{
	if (!qp->requester.is_rnr_waiting)
		wait_until(qp, vb_time_add(now, LATER));
}

void vb_recovery_renew(struct vb_qp *qp, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	rq->retries_left = qp->attr.retry_cnt;
	rq->rnr_retries_left = qp->attr.rnr_retry;
	rq->tries = 0;
	rq->probe_backoff = 0;
	rq->progress_at = rq->quiet_since = now;
}

static void send_probe(struct vb_qp *qp)
{
	struct vb_requester *rq = &qp->requester;
	if (rq->was_probed)
		vb_flight_fall_silent(qp);
	rq->probe = rq->was_probed ? VB_PROBE_OLDEST : VB_PROBE_NEWEST;
	rq->was_probed = true;
	if (rq->probe_backoff < PROBE_SHIFT_MAX && ++rq->probe_backoff == PROBE_SHIFT_MAX && qp->attr.retry_cnt == 0)
		tell_silence(qp);
	vb_schedule(qp);
}

void vb_recovery_on_timer(struct vb_qp *qp, vb_time now)
{
	struct vb_requester *rq = &qp->requester;

	if (!qp->is_reliable) {
		vb_echo_on_timer(qp, now);
		return;
	}
	if (rq->is_rnr_waiting) {
		if (!vb_time_is_due(rq->rnr_until, now)) {
			arm(qp);
			return;
		}
		rq->is_rnr_waiting = false;
		rq->quiet_since = now;
		vb_schedule(qp);
	} else if (qp->local.to) {
		return;
	} else if (vb_requester_is_busy(qp) && rq->next_psn == rq->una_psn) {
		rq->progress_at = rq->quiet_since =
			now; /* gone back, and waiting for a window: nothing to be answered */
	} else if (vb_requester_is_busy(qp)) {
		if (vb_deadline_due(ack_timeout_from(qp, rq->progress_at), now)) {
			vb_count(qp->lane, VB_TIMEOUTS, 1);
			if (!use_retry(qp, now))
				return;
			if (rq->tries == 1 && !was_worried(qp))
				tell_silence(qp);
			rq->progress_at = rq->quiet_since = now;
			rq->is_recovering = false;
			rq->was_probed = false;
			tell_loss(qp, now);
			vb_recovery_go_back(qp);
		} else if (vb_deadline_due(probe_due(qp), now)) {
			note_quiet(qp, now);
			send_probe(qp);
		}
	}
	arm(qp);
}

/* Of a reliable QP: what lies between una_psn and next_psn, counted anew. */
void vb_recovery_check(const struct vb_qp *qp)
{
	const struct vb_requester *rq = &qp->requester;
	uint32_t out = 0, in = 0, responses = 0;
	assert(vb_psn_diff(rq->next_psn, rq->una_psn) >= 0 && vb_psn_diff(rq->max_psn, rq->next_psn) >= 0);
	uint32_t psn = rq->una_psn;
	for (uint32_t i = head_index(qp); psn != rq->next_psn; i++) {
		assert(i != atomic_load_explicit(&qp->sq.tail, memory_order_relaxed));
		const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, i);
		assert(wqe->is_started);
		if (wqe->psn_count == 0)
			continue;
		uint32_t from = psn_index(wqe, psn), end = from + (uint32_t)vb_psn_diff(rq->next_psn, psn);
		end = end < wqe->psn_count ? end : wqe->psn_count;
		struct window_cost cost = cost_between(qp, wqe, from, end);
		out += cost.out;
		in += cost.in;
		for (uint32_t at = from; needs_response(wqe) && at < end; at += span_at(wqe, at))
			responses++;
		psn = vb_psn_add(wqe->first_psn, end);
	}
	assert(qp->flight.out == out && qp->flight.in == in);
	assert(rq->rd_atomic_out == responses);
}
