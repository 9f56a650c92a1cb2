/* Recovery of the requester: what to send again, and when. Go-back-N as specified (IBA vol. 1, 9.7.5 to 9.7.7), for
 * comparison go-back-0, and before the specified timer a tail probe, unless the lane has none: after max(4 srtt, 1 ms
 * or what the lane says) of silence the newest packet goes again with AckReq, then the oldest unacknowledged, which
 * always gets an answer; then the oldest at doubling intervals. Probes are duplicates, hence legal, and do not count
 * as retries. A peer that has lost nothing is given more time than 1 ms: what is silent there is a process that waits
 * for its core, and a probe is one more thing that it has to do.
 * Holds: una_psn <= next_psn <= max_psn; whatever lies in between is accounted in flight. */
#include "roce/roce.h"
#include "base/invariant.h"
#include "roce/echo.h"
#include "roce/failover.h"
#include "core/events.h"
#include "roce/message.h"
#include "roce/peers.h"
#include "roce/requester.h"
#include "roce/selective.h"
#include "core/send_queue.h"

#define SOONER       4 /* times, of selective peers: 250 us instead of 1 ms, up to 1 ms */
#define PROBE_MAX    (8 * VB_MS)
#define PATIENCE_MAX (64 * VB_MS)
#define RTT_MAX      (1 * VB_S) /* what took longer says that somebody stood still */
/* a broker stays for a second after its last client, and can be asked until then */
#define WORRY             (300 * VB_MS)
#define STALE_ACKS_HEEDED 64 /* answers to something old that postpone the timers, between two of progress */

/* A peer that recovers selectively and has lost something is asked sooner: the question costs it nothing but itself. */
static vb_time silence_for(const struct vb_qp *qp, vb_time patience)
{
	bool is_sooner =
		vb_roce(qp)->selective && vb_roce(qp)->recovery.srtt && patience <= SOONER * qp->lane->least_silence;
	return is_sooner ? patience / SOONER : patience;
}

static vb_time least_silence(const struct vb_qp *qp)
{
	return silence_for(qp, vb_retry_patience(qp));
}

static vb_time probe_interval(const struct vb_qp *qp)
{
	struct vb_recovery *re = &vb_roce(qp)->recovery;
	const struct vb_requester *rq = &qp->requester;
	vb_time least = least_silence(qp), base = 4 * re->srtt > least ? 4 * re->srtt : least;
	if (base > PROBE_MAX)
		return base;
	vb_time interval = base << rq->backoff;
	return interval < PROBE_MAX ? interval : PROBE_MAX;
}

static struct vb_deadline probe_due(const struct vb_qp *qp)
{
	return (struct vb_deadline){ vb_time_add(qp->requester.quiet_since, probe_interval(qp)),
		!vb_roce_lane_of(qp)->config.never_probes };
}

struct vb_deadline vb_recovery_deadline(const struct vb_qp *qp)
{
	if (!vb_requester_is_busy(qp))
		return (struct vb_deadline){ 0 };
	struct vb_deadline due =
		vb_deadline_earlier(probe_due(qp), vb_retry_ack_timeout(qp, qp->requester.progress_at));
	const struct vb_selective *selective = vb_roce(qp)->selective;
	if (selective && selective->failover)
		due = vb_deadline_earlier(due, vb_failover_deadline(qp));
	return selective ? vb_deadline_earlier(due, selective->due) : due;
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
	struct vb_recovery *re = &vb_roce(qp)->recovery;
	struct vb_requester *rq = &qp->requester;
	rq->quiet_since = now;
	if (!is_new) {
		vb_count(qp->lane, VB_RETRANSMITTED, 1);
		vb_roce(qp)->congestion.tally.sent_again++;
	}
	if (is_new && !re->is_timing && !vb_selective_keeps_account(qp)) {
		note_begun(&vb_roce(qp)->congestion.tally, now);
		re->is_timing = true;
		re->rtt_psn = psn;
		re->rtt_sent_at = now;
	}
	if (!qp->timer.deadline.is_set) {
		rq->progress_at = now; /* the queue just became busy */
		vb_retry_arm(qp, vb_recovery_deadline(qp));
	} /* else it comes up early and is put back */
}

/* Go-back-0: what was acknowledged of the oldest message counts no more. */
static void forget_progress(struct vb_qp *qp)
{
	const struct vb_send_wqe *oldest = head_wqe(qp);
	if (vb_requester_is_busy(qp) && oldest->psn_count)
		qp->requester.una_psn = oldest->first_psn;
}

void vb_roce_go_back(struct vb_qp *qp)
{
	struct vb_recovery *re = &vb_roce(qp)->recovery;
	vb_selective_forget_sent(qp);
	vb_flight_clear(qp);
	if (qp->transport->restarts_messages)
		forget_progress(qp);
	re->is_timing = false;                  /* Karn: what is sent twice is not timed */
	re->probe = re->probed = VB_PROBE_NONE; /* nor do answers from now on say anything of a probe */
	re->is_probe_in_doubt = false;
	assert(vb_roce(qp)->flight.out == 0 && vb_roce(qp)->flight.in == 0);
}

/* The holder may find out why, and has until the last retry for that: where there is none, until the first timeout. */
static void tell_silence(struct vb_qp *qp)
{
	if (vb_roce_lane_of(qp)->config.tells_silence)
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

void vb_recovery_tell_loss(struct vb_qp *qp, uint32_t packets, bool is_overflow, vb_time now)
{
	vb_congestion_tell(qp, &(struct vb_cc_signal){ .event = VB_CC_LOST,
				       .lost = packets,
				       .is_overflow = is_overflow,
				       .flight = vb_roce(qp)->flight.out + vb_roce(qp)->flight.in,
				       .now = now });
}

void vb_recovery_measure(struct vb_qp *qp, uint32_t psn, vb_time rtt)
{
	struct vb_tally *tally = &vb_roce(qp)->congestion.tally;
	struct vb_recovery *re = &vb_roce(qp)->recovery;
	re->srtt = re->srtt ? re->srtt + (rtt - re->srtt) / 8 : rtt;
	if (tally->least_rtt == 0 || rtt < tally->least_rtt)
		tally->least_rtt = rtt;
	vb_selective_note_rtt(qp, rtt);
	vb_multipath_note_rtt(qp, psn, rtt);
	assert(re->srtt >= 0);
}

static void measure_rtt(struct vb_qp *qp, uint32_t psn, vb_time now, vb_time *rtt)
{
	struct vb_recovery *re = &vb_roce(qp)->recovery;
	*rtt = 0;
	if (!re->is_timing || vb_psn_diff(psn, re->rtt_psn) < 0)
		return;
	re->is_timing = false;
	*rtt = vb_time_since(re->rtt_sent_at, now);
	if (*rtt > RTT_MAX)
		*rtt = RTT_MAX;
	vb_recovery_measure(qp, re->rtt_psn, *rtt);
}

/* Packets do get lost on the way to this peer: from now on silence most likely means that. */
void vb_recovery_note_loss(struct vb_qp *qp)
{
	if (qp->peer)
		qp->peer->patience = qp->lane->least_silence;
}

/* So that the next probe leaves after twice as long: see silence_for(). */
static vb_time patience_for(const struct vb_qp *qp, vb_time took)
{
	vb_time least = qp->lane->least_silence, divided = 2 * SOONER * took;
	if (!vb_roce(qp)->selective)
		return 2 * took > 2 * least ? 2 * took : 2 * least;
	if (divided <= SOONER * least)
		return divided > 2 * least ? divided : 2 * least;
	return 2 * took > SOONER * least ? 2 * took : SOONER * least + VB_US;
}

/* Nothing was lost, the peer is slow: its answer took so long. Where packets do get lost, it is given twice that and no
 * more, for the next silence may be a loss. */
static void note_probe_in_vain(struct vb_qp *qp, vb_time before, vb_time took)
{
	vb_time least = qp->lane->patience, patience = 2 * before > least ? 2 * before : least;
	if (!qp->peer)
		return;
	if (before < qp->lane->patience)
		patience = patience_for(qp, took);
	qp->peer->patience = patience < PATIENCE_MAX ? patience : PATIENCE_MAX;
}

/* A peer that answers at once was there all the time, so what the probe repeats was lost; unless there comes a second
 * answer. One that answers later had both before it, and may well answer both with one ack. */
static void note_probe_answered(struct vb_qp *qp, vb_time now)
{
	struct vb_recovery *re = &vb_roce(qp)->recovery;
	struct vb_requester *rq = &qp->requester;
	vb_time soon = 2 * re->srtt > qp->lane->least_silence / 2 ? 2 * re->srtt : qp->lane->least_silence / 2;
	vb_time before = vb_retry_patience_with(qp);
	re->is_probe_in_doubt = vb_time_since(rq->quiet_since, now) < soon;
	re->doubt_end = rq->next_psn;
	re->patience_before = before;
	if (re->is_probe_in_doubt)
		vb_recovery_note_loss(qp);
	else
		note_probe_in_vain(qp, before, vb_time_since(rq->progress_at, now));
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
	struct vb_recovery *re = &vb_roce(qp)->recovery;
	struct vb_requester *rq = &qp->requester;

	note_acked(&vb_roce(qp)->congestion.tally, acked->acked, now);
	measure_rtt(qp, psn, now, &acked->rtt);
	if (acked->rtt == 0)
		acked->rtt = vb_selective_rtt(qp, now);
	vb_congestion_tell(qp, acked);
	/* The oldest was asked for by itself and just that was answered: what was sent after it has been lost. Where
	 * packets are missed singly, other responses have their turn after that one, so it takes another silence. */
	bool is_lone = re->probed == VB_PROBE_OLDEST && psn == re->probed_psn && may_answer_probe;
	bool is_again_lone = is_lone && re->had_lone_answer;
	bool rest_is_lost = is_lone && rq->next_psn != rq->una_psn;
	re->had_lone_answer = is_lone;
	if (re->probed)
		note_probe_answered(qp, now);
	else if (re->is_probe_in_doubt && vb_psn_diff(psn, re->doubt_end) >= 0)
		re->is_probe_in_doubt = false;
	rq->retries_left = qp->attr.retry_cnt;
	rq->rnr_retries_left = qp->attr.rnr_retry;
	re->is_recovering = false;
	re->probe = re->probed = VB_PROBE_NONE;
	re->was_probed = false;
	re->stale_acks = 0;
	/* Kept until a round trip is measured, as Karn's algorithm asks, or the peer is seen to be quick: an answer
	 * that soon after the last packet left is one to it. */
	if (acked->rtt || vb_time_since(rq->quiet_since, now) < qp->lane->least_silence)
		rq->backoff = 0;
	rq->tries = 0;
	rq->progress_at = rq->quiet_since = now;
	if (rest_is_lost && vb_roce(qp)->selective) {
		if (is_again_lone)
			vb_selective_lose_responses(qp, now);
	} else if (rest_is_lost) {
		vb_recovery_tell_loss(qp, 0, false, now);
		vb_retry_go_back(qp);
	}
	/* A deadline that moves later costs nothing: the timer comes up early and is put back. */
	if (!vb_requester_is_busy(qp) || !qp->timer.deadline.is_set)
		vb_retry_arm(qp, vb_recovery_deadline(qp));
}

void vb_recovery_on_stale_ack(struct vb_qp *qp, vb_time now)
{
	vb_time before = vb_roce(qp)->recovery.patience_before;
	if (vb_roce(qp)->recovery.is_probe_in_doubt)
		note_probe_in_vain(qp, before, silence_for(qp, before));
	vb_roce(qp)->recovery.is_probe_in_doubt = false;
	if (!vb_requester_is_busy(qp) || qp->requester.is_rnr_waiting ||
		vb_roce(qp)->recovery.stale_acks >= STALE_ACKS_HEEDED)
		return;
	vb_roce(qp)->recovery.stale_acks++;
	qp->requester.progress_at = qp->requester.quiet_since = now;
}

void vb_recovery_on_gap(struct vb_qp *qp, vb_time now)
{
	struct vb_recovery *re = &vb_roce(qp)->recovery;
	assert(qp->is_reliable && !qp->local_peer);
	vb_hello_want(qp);
	if (re->is_recovering)
		return;
	if (!vb_retry_use(qp, now))
		return;
	re->is_recovering = true;
	vb_recovery_note_loss(qp);
	vb_recovery_tell_loss(qp, 0, false, now);
	vb_retry_go_back(qp);
	vb_retry_arm(qp, vb_recovery_deadline(qp));
}

static void send_probe(struct vb_qp *qp)
{
	struct vb_recovery *re = &vb_roce(qp)->recovery;
	struct vb_requester *rq = &qp->requester;
	vb_hello_want(qp);
	if (re->was_probed)
		vb_flight_fall_silent(qp);
	re->probe = re->was_probed ? VB_PROBE_OLDEST : VB_PROBE_NEWEST;
	re->was_probed = true;
	if (rq->backoff < VB_BACKOFF_MAX && ++rq->backoff == VB_BACKOFF_MAX && qp->attr.retry_cnt == 0)
		tell_silence(qp);
	vb_schedule(qp);
	assert(re->probe != VB_PROBE_NONE);
}

static void on_ack_timeout(struct vb_qp *qp, vb_time now)
{
	struct vb_recovery *re = &vb_roce(qp)->recovery;
	struct vb_requester *rq = &qp->requester;
	vb_count(qp->lane, VB_TIMEOUTS, 1);
	if (!vb_retry_use(qp, now))
		return;
	if (rq->tries == 1 && !was_worried(qp))
		tell_silence(qp);
	rq->progress_at = rq->quiet_since = now;
	re->is_recovering = false;
	re->was_probed = false;
	vb_recovery_tell_loss(qp, 0, false, now);
	vb_multipath_leave(qp, rq->una_psn);
	vb_retry_go_back(qp);
}

void vb_recovery_on_timer(struct vb_qp *qp, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	const struct vb_selective *selective = vb_roce(qp)->selective;
	assert(qp->is_reliable && !qp->local_peer);
	if (selective && selective->failover)
		vb_failover_on_timer(qp, now);
	if (vb_requester_is_busy(qp) && rq->next_psn == rq->una_psn) {
		/* gone back, and waiting for a window: nothing to be answered */
		rq->progress_at = rq->quiet_since = now;
	} else if (vb_requester_is_busy(qp)) {
		if (vb_deadline_due(vb_retry_ack_timeout(qp, rq->progress_at), now)) {
			on_ack_timeout(qp, now);
		} else if (vb_deadline_due(probe_due(qp), now)) {
			note_quiet(qp, now);
			send_probe(qp);
		}
	}
	if (selective && vb_deadline_due(selective->due, now))
		vb_selective_judge(qp, now);
	if (!vb_is_failing(qp))
		vb_retry_arm(qp, vb_recovery_deadline(qp));
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
		struct vb_settled settled = vb_selective_settled(qp, wqe, from, end);
		out += cost.out - settled.out;
		in += cost.in - settled.in;
		for (uint32_t at = from; needs_response(wqe) && at < end; at += span_at(wqe, at))
			responses++;
		psn = vb_psn_add(wqe->first_psn, end);
	}
	assert(vb_roce(qp)->flight.out == out && vb_roce(qp)->flight.in == in);
	assert(rq->rd_atomic_out == responses);
}
