/* The requester's recovery where both ends recover selectively: what is lost, and when it is sent again. A packet is
 * lost when one that was sent after it has arrived, and it has not within the round trip of that one and the lateness
 * that packets of this QP have shown (RACK, RFC 8985, section 6.2). So a packet that was sent again and is lost once
 * more is found as well. Packets behind which nothing was sent are found by the probes of recovery.c.
 * Holds: what has arrived or is lost takes nothing of the windows; it is asserted by recovery.c.
 * Not here: the account of packets (sent.c), which work request a PSN is of (wqe_of_psn.c), by which arrival one is
 * missed (seen.c), how late it may be (lateness.c), timeouts and probes (recovery.c), the responder's half (early.c).
 */
#include <errno.h>
#include <stdlib.h>
#include "roce/roce.h"
#include "base/invariant.h"
#include "roce/batch.h"
#include "roce/failover.h"
#include "roce/message.h"
#include "roce/requester.h"
#include "roce/selective.h"
#include "core/send_queue.h"

enum { OVERTAKES = 32 }; /* duplicates that a bitmap may be behind */

static struct vb_selective *selective_of(const struct vb_qp *qp)
{
	return vb_roce(qp)->selective;
}

int vb_selective_begin(struct vb_qp *qp, uint32_t peer_hold)
{
	struct vb_selective *s = selective_of(qp);
	if (!s) {
		s = vb_roce(qp)->selective = calloc(1, sizeof(*s));
		if (!s)
			return -ENOMEM;
		s->qp = qp;
		vb_list_init(&s->early_link);
		s->executed_psn = s->cut_psn = qp->requester.una_psn;
		s->told_overflow = s->own_overflow = vb_roce_lane_of(qp)->overflow;
	}
	if (!s->paths)
		s->paths = vb_multipath_create(qp);
	s->peer_hold = peer_hold;
	return 0;
}

void vb_selective_begin_requests(struct vb_qp *qp)
{
	struct vb_selective *s = selective_of(qp);
	if (!s)
		return;
	vb_selective_stop_requests(qp);
	s->executed_psn = s->cut_psn = qp->attr.sq_psn & VB_PSN_MASK;
	s->least_rtt = s->guessed_rtt = 0; /* of another peer */
}

void vb_selective_stop_requests(struct vb_qp *qp)
{
	struct vb_selective *s = selective_of(qp);
	if (!s)
		return;
	vb_hold_clear(&s->responses, vb_roce_hold_of(qp));
	vb_selective_forget_sent(qp);
}

void vb_selective_end(struct vb_qp *qp)
{
	struct vb_selective *s = selective_of(qp);
	if (!s)
		return;
	vb_list_remove(&s->early_link);
	vb_hold_clear(&s->requests, vb_roce_hold_of(qp));
	vb_hold_clear(&s->responses, vb_roce_hold_of(qp));
	vb_sent_forget(&s->sent);
	vb_failover_end(qp);
	free(s->paths);
	free(s);
	vb_roce(qp)->selective = NULL;
}

/* ---- Packets of messages ----------------------------------------------------------------------------------------- */

static struct window_cost cost_of(const struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t psn)
{
	uint32_t index = psn_index(wqe, psn);
	return cost_between(qp, wqe, index, index + 1);
}

/* Of the packet that asks for the response psn. */
static uint32_t request_psn(const struct vb_send_wqe *wqe, uint32_t psn)
{
	return is_read(wqe) ? vb_psn_add(wqe->first_psn, piece_begin(wqe, psn_index(wqe, psn))) : psn;
}

/* It is between what is unacknowledged and what was sent last. */
static bool is_under_way(const struct vb_qp *qp, uint32_t psn)
{
	return vb_psn_diff(psn, qp->requester.una_psn) >= 0 && vb_psn_diff(qp->requester.next_psn, psn) > 0;
}

/* ---- Keeping account --------------------------------------------------------------------------------------------- */

/* False: there is no memory, and all is sent again from the oldest on, as after a NAK. */
static bool keep(struct vb_qp *qp, vb_time at, vb_time now)
{
	struct vb_selective *s = selective_of(qp);
	const struct vb_requester *rq = &qp->requester;
	if (vb_sent_is_kept(&s->sent))
		return true;
	uint32_t psns = (uint32_t)vb_psn_diff(rq->next_psn, rq->una_psn);
	if (!vb_sent_keep(&s->sent, rq->una_psn, psns ? psns : 1, at)) {
		vb_recovery_on_gap(qp, now);
		return false;
	}
	vb_roce(qp)->recovery.is_timing = false;
	s->seen = (struct vb_seen){ 0 };
	vb_rails_begin_account(qp);
	return true;
}

/* Something has arrived of what is under way, or is missing. A packet that is sent again in the same instant counts as
 * sent later. Until a round trip is measured it is taken to be as long as nothing was acknowledged at first, for
 * packets may be late from the first on. */
static bool keep_from_now(struct vb_qp *qp, vb_time now)
{
	struct vb_selective *s = selective_of(qp);
	if (s->guessed_rtt == 0)
		s->guessed_rtt = vb_time_since(qp->requester.progress_at, now);
	return keep(qp, vb_time_add(now, -1), now);
}

void vb_selective_forget_sent(struct vb_qp *qp)
{
	struct vb_selective *s = selective_of(qp);
	if (!s)
		return;
	vb_sent_forget(&s->sent);
	s->due = (struct vb_deadline){ 0 };
	s->shorter_rtt = s->believed_rtt = 0;
}

/* What is sent again at psn asks for responses of a request that was executed: they come out of turn. */
static void note_repeat(struct vb_qp *qp, uint32_t psn, uint32_t span)
{
	struct vb_selective *s = selective_of(qp);
	const struct vb_send_wqe *wqe = vb_wqe_of_psn(qp, psn);
	if (needs_response(wqe) && vb_psn_diff(s->executed_psn, request_psn(wqe, psn)) > 0)
		vb_sent_repeat(&s->sent, psn, span);
}

void vb_selective_on_sent(struct vb_qp *qp, uint32_t psn, uint32_t span, bool is_again, vb_time now)
{
	struct vb_selective *s = selective_of(qp);
	if (!s || !vb_sent_is_kept(&s->sent))
		return;
	if (!vb_sent_add(&s->sent, qp->requester.una_psn, psn, span, is_again, now))
		vb_recovery_on_gap(qp, now);
	else if (is_again)
		note_repeat(qp, psn, span);
	vb_rails_note_sent(qp, psn, span, is_again);
}

void vb_selective_before_probe(struct vb_qp *qp)
{
	if (selective_of(qp) && vb_requester_is_busy(qp))
		keep(qp, qp->requester.quiet_since, qp->lane->now);
}

uint32_t vb_selective_newest_missing(const struct vb_qp *qp)
{
	const struct vb_selective *s = selective_of(qp);
	const struct vb_requester *rq = &qp->requester;
	uint32_t psn = vb_psn_add(rq->next_psn, VB_PSN_MASK);
	assert(rq->next_psn != rq->una_psn);
	while (vb_selective_keeps_account(qp) && psn != rq->una_psn && vb_sent_is_settled(&s->sent, psn))
		psn = vb_psn_add(psn, VB_PSN_MASK);
	return psn;
}

/* ---- What has arrived -------------------------------------------------------------------------------------------- */

/* Its part of the windows is free. Gives the bytes of its message, of which congestion control is told. */
static uint32_t arrive(struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t psn, vb_time now)
{
	struct vb_selective *s = selective_of(qp);
	uint32_t index = psn_index(wqe, psn);
	struct window_cost cost = cost_of(qp, wqe, psn);
	vb_lateness_note_arrival(qp, psn, now);
	vb_rails_note_arrival(qp, psn);
	if (!vb_psn_bit(s->sent.lost, s->sent.mask, psn))
		vb_flight_remove(qp, cost.out, cost.in);
	vb_sent_arrive(&s->sent, psn);
	return bytes_between(qp, wqe, index, index + 1);
}

void vb_selective_note_rtt(struct vb_qp *qp, vb_time rtt)
{
	struct vb_selective *s = selective_of(qp);
	if (!s || (s->least_rtt > 0 && rtt >= s->least_rtt))
		return;
	s->least_rtt = rtt;
	vb_congestion_note_shorter_way(qp);
}

/* A round trip is measured by what was sent once, since account is kept. */
static void measure(struct vb_qp *qp, uint32_t psn, vb_time now)
{
	struct vb_selective *s = selective_of(qp);
	vb_time sent_at = vb_sent_at(&s->sent, psn);
	if (vb_psn_bit(s->sent.again, s->sent.mask, psn) || !vb_time_before(s->sent.since, sent_at))
		return;
	s->rtt = vb_time_since(sent_at, now);
	s->rtt_psn = psn;
}

vb_time vb_selective_rtt(struct vb_qp *qp, vb_time now)
{
	struct vb_selective *s = selective_of(qp);
	if (!s || s->rtt == 0 || vb_time_since(s->rtt_at, now) < vb_roce(qp)->recovery.srtt)
		return 0;
	vb_time rtt = s->rtt;
	s->rtt = 0;
	s->rtt_at = now;
	vb_recovery_measure(qp, s->rtt_psn, rtt);
	return rtt;
}

struct vb_settled vb_selective_settled(
	const struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t from, uint32_t to)
{
	const struct vb_selective *s = selective_of(qp);
	struct vb_settled settled = { 0 };
	if (!s || !vb_sent_is_kept(&s->sent))
		return settled;
	for (uint32_t i = from; i < to; i++) {
		uint32_t psn = vb_psn_add(wqe->first_psn, i);
		if (!vb_sent_is_settled(&s->sent, psn))
			continue;
		struct window_cost cost = cost_of(qp, wqe, psn);
		settled.out += cost.out;
		settled.in += cost.in;
		if (vb_psn_bit(s->sent.arrived, s->sent.mask, psn))
			settled.told += bytes_between(qp, wqe, i, i + 1);
	}
	return settled;
}

void vb_selective_note_executed(struct vb_qp *qp, uint32_t end_psn)
{
	struct vb_selective *s = selective_of(qp);
	if (s && vb_psn_diff(end_psn, s->executed_psn) > 0)
		s->executed_psn = end_psn;
}

void vb_selective_pass(struct vb_qp *qp, uint32_t from, uint32_t to, bool is_answered, vb_time now)
{
	struct vb_selective *s = selective_of(qp);
	vb_selective_note_executed(qp, to);
	vb_hold_pass(&s->responses, from, to, vb_roce_hold_of(qp));
	vb_multipath_renew(qp, to);
	if (!vb_sent_is_kept(&s->sent))
		return;
	for (uint32_t psn = from; psn != to; psn = vb_psn_add(psn, 1)) {
		if (vb_psn_bit(s->sent.arrived, s->sent.mask, psn))
			continue;
		vb_lateness_note_arrival(qp, psn, now);
		vb_rails_note_arrival(qp, psn);
		measure(qp, psn, now);
		vb_seen_response(qp, psn, now);
		if (!is_answered)
			vb_seen_request(qp, psn, now);
	}
	vb_sent_pass(&s->sent, from, to);
	if (vb_psn_diff(qp->requester.una_psn, s->sent.known_psn) >= 0)
		vb_selective_forget_sent(qp);
}

/* ---- What is lost ------------------------------------------------------------------------------------------------ */

/* The peer has the request, and answers it or has answered it. */
static bool is_taken(const struct vb_qp *qp, uint32_t request)
{
	const struct vb_selective *s = selective_of(qp);
	return vb_psn_diff(s->executed_psn, request) > 0 || !is_under_way(qp, request) ||
	       vb_psn_bit(s->sent.taken, s->sent.mask, request);
}

bool vb_selective_must_be_whole(const struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t index)
{
	const struct vb_selective *s = selective_of(qp);
	uint32_t request = request_psn(wqe, vb_psn_add(wqe->first_psn, index));
	return s && is_read(wqe) && is_under_way(qp, request) && vb_psn_diff(s->executed_psn, request) <= 0;
}

/* A request that is lost is one packet, however many responses it asks for. */
static bool is_a_packet(const struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t psn)
{
	return !needs_response(wqe) || request_psn(wqe, psn) == psn || is_taken(qp, request_psn(wqe, psn));
}

/* By which rail a response came, the peer alone knows. */
static bool is_lost_request(const struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t psn)
{
	uint32_t request = needs_response(wqe) ? request_psn(wqe, psn) : psn;
	return psn == request && !(needs_response(wqe) && is_taken(qp, request));
}

/* is_told: who has dropped it says so; else the clock does, or a probe's answer. */
static void lose(struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t psn, bool is_told)
{
	struct window_cost cost = cost_of(qp, wqe, psn);
	vb_sent_lose(&selective_of(qp)->sent, psn, is_told);
	vb_multipath_leave(qp, psn);
	if (is_lost_request(qp, wqe, psn))
		vb_rails_note_loss(qp, psn, false);
	vb_flight_remove(qp, cost.out, cost.in);
	vb_count(qp->lane, VB_LOST, 1);
}

/* It is not lost: the peer has it, and answers. */
static void find(struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t psn)
{
	struct vb_sent *sent = &selective_of(qp)->sent;
	struct window_cost cost = cost_of(qp, wqe, psn);
	if (!vb_psn_bit(sent->lost, sent->mask, psn))
		return;
	vb_sent_find(sent, psn);
	vb_flight_add(qp, cost.out, cost.in);
}

enum fate { FATE_LOST, FATE_OPEN, FATE_NEWER };

/* Of a packet that has not arrived: a response is missed by what came after it from the peer, a request by what came
 * to the peer, and with it all its responses, for it is sent again as it was. FATE_NEWER: neither it, nor any behind
 * it, was sent before something that has arrived. */
static enum fate fate_of(const struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t psn, vb_time now)
{
	struct vb_selective *s = selective_of(qp);
	uint32_t request = needs_response(wqe) ? request_psn(wqe, psn) : psn;
	bool is_response = needs_response(wqe) && is_taken(qp, request);
	if (!is_response)
		psn = request;
	vb_time slack;
	const struct vb_arrival *newest = vb_seen_behind(qp, psn, needs_response(wqe), is_response, &slack);
	if (!newest) {
		bool is_open = vb_psn_bit(s->sent.again, s->sent.mask, psn) || vb_seen_any_after(qp, psn);
		return is_open ? FATE_OPEN : FATE_NEWER;
	}
	vb_time lost_at = vb_time_add(vb_sent_at(&s->sent, psn), newest->took + vb_lateness_window(qp) + slack);
	if (vb_time_is_due(lost_at, now))
		return FATE_LOST;
	s->due = vb_deadline_earlier(s->due, (struct vb_deadline){ lost_at, true });
	return FATE_OPEN;
}

/* A receive buffer was full: the peer's, or of responses our own. */
static bool take_overflow(struct vb_qp *qp)
{
	struct vb_selective *s = selective_of(qp);
	bool has_overflown = s->has_overflown || s->own_overflow != vb_roce_lane_of(qp)->overflow;
	s->has_overflown = false;
	s->own_overflow = vb_roce_lane_of(qp)->overflow;
	return has_overflown;
}

/* One of a round trip, for all that is lost of it; each, to an algorithm that counts. */
static void tell_loss(struct vb_qp *qp, uint32_t newest_lost, uint32_t packets, vb_time now)
{
	struct vb_selective *s = selective_of(qp);
	const struct vb_cc_algorithm *algorithm = vb_roce(qp)->congestion.cc.algorithm;
	bool counts = algorithm && (algorithm->goes_by & VB_CC_BY_EACH_LOSS);
	vb_recovery_note_loss(qp);
	if (!counts && vb_psn_diff(newest_lost, s->cut_psn) < 0)
		return;
	s->cut_psn = qp->requester.next_psn;
	vb_recovery_tell_loss(qp, packets, take_overflow(qp), now);
}

void vb_selective_judge_soon(struct vb_qp *qp)
{
	if (selective_of(qp))
		selective_of(qp)->is_to_judge = true;
}

void vb_selective_judge(struct vb_qp *qp, vb_time now)
{
	struct vb_selective *s = selective_of(qp);
	if (!s)
		return;
	s->is_to_judge = false;
	if (!vb_sent_is_kept(&s->sent))
		return;
	const uint32_t end = qp->requester.next_psn;
	const struct vb_send_wqe *wqe = NULL;
	uint32_t lost_before = s->sent.lost_count, newest_lost = 0, packets = 0;
	s->due = (struct vb_deadline){ 0 };
	for (uint32_t psn = vb_sent_next_open(&s->sent, qp->requester.una_psn, end); psn != end;
		psn = vb_sent_next_open(&s->sent, vb_psn_add(psn, 1), end)) {
		if (!wqe || psn_index(wqe, psn) >= wqe->psn_count)
			wqe = vb_wqe_of_psn(qp, psn);
		enum fate fate = fate_of(qp, wqe, psn, now);
		if (fate == FATE_NEWER)
			break;
		if (fate == FATE_LOST) {
			packets += is_a_packet(qp, wqe, psn);
			lose(qp, wqe, psn, false);
			newest_lost = psn;
		}
	}
	if (s->sent.lost_count > lost_before)
		tell_loss(qp, newest_lost, packets, now);
	if (s->sent.lost_count > 0)
		vb_schedule(qp);
	vb_retry_arm(qp, vb_recovery_deadline(qp));
}

/* ---- What the peer says ------------------------------------------------------------------------------------------ */

void vb_selective_await(struct vb_qp *qp, uint32_t psn, vb_time now)
{
	vb_selective_note_executed(qp, vb_psn_add(psn, 1));
	if (!is_under_way(qp, psn) || !keep_from_now(qp, now))
		return;
	vb_seen_request(qp, psn, now);
	vb_seen_response(qp, psn, now);
	vb_selective_judge_soon(qp);
}

static void progress(struct vb_qp *qp, const struct vb_packet *packet, uint32_t acked, vb_time now)
{
	struct vb_cc_signal signal = { .event = VB_CC_ACKED,
		.acked = acked,
		.is_marked = packet->becn,
		.flight = vb_roce(qp)->flight.out + vb_roce(qp)->flight.in,
		.telemetry = packet->holder,
		.now = now };
	vb_recovery_on_progress(qp, vb_psn_add(qp->requester.una_psn, VB_PSN_MASK), &signal, true, now);
}

/* The responses of READs have their turn in the order of PSNs, as all else. */
void vb_selective_hold(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	struct vb_selective *s = selective_of(qp);
	struct vb_send_wqe *wqe = is_under_way(qp, packet->psn) ? vb_wqe_of_psn(qp, packet->psn) : NULL;
	if (!wqe || !needs_response(wqe)) {
		vb_count(qp->lane, VB_DROP_STALE_ACK, 1);
		return;
	}
	vb_selective_note_executed(qp, vb_psn_add(wqe->first_psn, response_end(wqe, psn_index(wqe, packet->psn))));
	if (!keep_from_now(qp, now))
		return;
	uint32_t acked = 0;
	switch (vb_hold_put(&s->responses, qp->requester.una_psn, packet, 1, vb_roce_hold_of(qp))) {
	case VB_HOLD_TAKEN:
		vb_count(qp->lane, VB_HELD, 1);
		measure(qp, packet->psn, now);
		acked = arrive(qp, wqe, packet->psn, now);
		break;
	case VB_HOLD_HAD:
		vb_count(qp->lane, VB_DUPLICATES, 1);
		vb_lateness_note_duplicate(qp, packet->psn);
		break;
	case VB_HOLD_FULL:
		vb_count(qp->lane, VB_DROP_OUT_OF_ORDER, 1);
		break;
	}
	vb_seen_response(qp, packet->psn, now);
	if (acked)
		progress(qp, packet, acked, now);
	vb_selective_judge_soon(qp);
}

const struct vb_held *vb_selective_next_response(const struct vb_qp *qp)
{
	const struct vb_selective *s = selective_of(qp);
	return s ? vb_hold_at(&s->responses, qp->requester.una_psn) : NULL;
}

/* The peer holds that packet, or with it executes it soon. True: that is news. */
static bool take_bit(struct vb_qp *qp, uint32_t psn, uint32_t *acked, vb_time now)
{
	struct vb_selective *s = selective_of(qp);
	const struct vb_send_wqe *wqe = vb_wqe_of_psn(qp, psn);
	bool is_answered = needs_response(wqe) && vb_psn_diff(s->executed_psn, request_psn(wqe, psn)) > 0;
	if (is_answered || vb_psn_bit(s->sent.taken, s->sent.mask, psn))
		return false;
	vb_seen_held(qp, psn, now);
	if (needs_response(wqe)) {
		vb_lateness_note_arrival(qp, psn, now);
		find(qp, wqe, psn); /* the bits of its responses follow */
		vb_psn_set(s->sent.taken, s->sent.mask, psn);
		return true;
	}
	measure(qp, psn, now);
	*acked += arrive(qp, wqe, psn, now);
	return true;
}

/* True: that is news. READs before that are being answered, or have been. */
static bool take_executed(struct vb_qp *qp, uint32_t end, uint32_t *acked, vb_time now)
{
	const struct vb_selective *s = selective_of(qp);
	bool is_behind = vb_psn_diff(s->executed_psn, qp->requester.una_psn) < 0, is_news = false;
	uint32_t psn = is_behind ? qp->requester.una_psn : s->executed_psn;
	for (; vb_psn_diff(end, psn) > 0 && is_under_way(qp, psn) && keep_from_now(qp, now); psn = vb_psn_add(psn, 1))
		is_news |= take_bit(qp, psn, acked, now);
	vb_selective_note_executed(qp, psn);
	return is_news;
}

/* A packet that was cut is told of once, and passes queues. So of what was sent again this may be the first one if the
 * clock had been sooner, and else only if it comes sooner than anything could. */
static bool may_tell_of_the_first(const struct vb_qp *qp, uint32_t psn, vb_time now)
{
	const struct vb_sent *sent = &selective_of(qp)->sent;
	bool is_told = vb_psn_bit(sent->told, sent->mask, psn);
	vb_time least = is_told ? selective_of(qp)->least_rtt / 4 : vb_roce(qp)->recovery.srtt / 2;
	return vb_psn_bit(sent->again, sent->mask, psn) && vb_time_since(vb_sent_at(sent, psn), now) < least;
}

/* From psn on, what is missing of the request that it is of, or of that READ piece's responses: how many. newest: the
 * last that there are of these. */
static uint32_t lose_all(struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t psn, bool is_told, uint32_t *newest)
{
	const struct vb_sent *sent = &selective_of(qp)->sent;
	uint32_t end = vb_psn_add(wqe->first_psn, response_end(wqe, psn_index(wqe, psn))), before = sent->lost_count;
	for (; psn != end && is_under_way(qp, psn); psn = vb_psn_add(psn, 1))
		if (!vb_sent_is_settled(sent, psn))
			lose(qp, wqe, psn, is_told);
	*newest = vb_psn_add(end, VB_PSN_MASK);
	return sent->lost_count - before;
}

/* Trimmed: lost, and nothing else needs to have come after it. Unless that one is older than what was sent again, or
 * the peer has another one. */
static void lose_trimmed(struct vb_qp *qp, uint32_t psn, vb_time now)
{
	struct vb_selective *s = selective_of(qp);
	if (!is_under_way(qp, psn) || !keep_from_now(qp, now))
		return;
	if (vb_psn_bit(s->sent.arrived, s->sent.mask, psn))
		vb_lateness_note_duplicate(qp, psn);
	const struct vb_send_wqe *wqe = vb_wqe_of_psn(qp, psn);
	if (vb_sent_is_settled(&s->sent, psn) || may_tell_of_the_first(qp, psn, now) ||
		(needs_response(wqe) && is_taken(qp, request_psn(wqe, psn))))
		return;
	uint32_t newest;
	uint32_t lost = lose_all(qp, wqe, psn, true, &newest);
	tell_loss(qp, newest, lost > 0, now);
}

void vb_selective_lose_response(struct vb_qp *qp, uint32_t psn, vb_time now)
{
	struct vb_selective *s = selective_of(qp);
	assert(s);
	if (!is_under_way(qp, psn) || !keep_from_now(qp, now) || vb_sent_is_settled(&s->sent, psn))
		return;
	const struct vb_send_wqe *wqe = vb_wqe_of_psn(qp, psn);
	if (!is_read(wqe) || may_tell_of_the_first(qp, psn, now))
		return;
	vb_selective_note_executed(qp, vb_psn_add(request_psn(wqe, psn), 1));
	lose(qp, wqe, psn, true);
	tell_loss(qp, psn, 1, now);
	vb_schedule(qp);
}

void vb_selective_lose_responses(struct vb_qp *qp, vb_time now)
{
	struct vb_selective *s = selective_of(qp);
	uint32_t psn = qp->requester.una_psn;
	const struct vb_send_wqe *wqe = is_under_way(qp, psn) ? vb_wqe_of_psn(qp, psn) : NULL;
	if (!wqe || !is_read(wqe) || vb_psn_diff(s->executed_psn, request_psn(wqe, psn)) <= 0 ||
		!keep_from_now(qp, now))
		return;
	uint32_t newest;
	uint32_t lost = lose_all(qp, wqe, psn, false, &newest);
	if (lost == 0)
		return;
	tell_loss(qp, newest, lost, now);
	vb_schedule(qp);
}

/* Before the bits, of which the packet that it names is none. */
static void heed_trimmed(struct vb_qp *qp, const struct vb_packet *bitmap, vb_time now)
{
	selective_of(qp)->has_overflown |= bitmap->told & VB_TOLD_OVERFLOW;
	if (bitmap->told & VB_TOLD_TRIMMED)
		lose_trimmed(qp, bitmap->named & VB_PSN_MASK, now);
}

/* Behind the bits: the first one may have come with the second. A bitmap that was overtaken tells of an older one, with
 * a count of duplicates that is a little less. */
static void heed_duplicate(struct vb_qp *qp, const struct vb_packet *bitmap)
{
	struct vb_selective *s = selective_of(qp);
	int8_t more = (int8_t)((bitmap->named >> 24) - (s->peer_duplicate >> 24));
	bool is_older = more < 0 && more > -OVERTAKES;
	if (bitmap->told & VB_TOLD_TRIMMED || is_older || bitmap->named == s->peer_duplicate)
		return;
	vb_lateness_note_duplicate(qp, bitmap->named & VB_PSN_MASK);
	s->peer_duplicate = bitmap->named;
}

void vb_selective_receive_bitmap(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	struct vb_selective *s = selective_of(qp);
	uint32_t acked = 0;
	heed_trimmed(qp, packet, now);
	bool is_news = take_executed(qp, vb_psn_add(packet->expected_psn, packet->executed_ahead), &acked, now);
	for (uint32_t i = 0; i < VB_BITMAP_PSNS; i++) {
		uint32_t psn = vb_psn_add(packet->psn, i);
		if (!(packet->bits[i / 64] >> i % 64 & 1) || !is_under_way(qp, psn))
			continue;
		if (!keep_from_now(qp, now))
			return;
		is_news |= take_bit(qp, psn, &acked, now);
	}
	heed_duplicate(qp, packet);
	if (is_news)
		progress(qp, packet, acked, now);
	vb_selective_judge_soon(qp);
	assert(s->sent.lost_count == 0 || vb_sent_is_kept(&s->sent));
}

/* ---- Sending again ----------------------------------------------------------------------------------------------- */

bool vb_selective_keeps_account(const struct vb_qp *qp)
{
	const struct vb_selective *s = selective_of(qp);
	return s && vb_sent_is_kept(&s->sent);
}

bool vb_selective_has_lost(const struct vb_qp *qp)
{
	const struct vb_selective *s = selective_of(qp);
	return s && s->sent.lost_count > 0;
}

bool vb_selective_is_full(const struct vb_qp *qp, uint32_t span)
{
	const struct vb_selective *s = selective_of(qp);
	const struct vb_requester *rq = &qp->requester;
	if (!s || !vb_sent_is_kept(&s->sent) || rq->next_psn == rq->una_psn)
		return false;
	uint64_t psns = (uint64_t)vb_psn_diff(rq->next_psn, rq->una_psn) + span;
	return psns > VB_HOLD_PSNS ||
	       psns * (vb_hold_room(vb_largest_payload(qp)) + sizeof(struct vb_held) + VB_HOLD_PSN_BYTES) >
		       s->peer_hold;
}

/* Of a READ, all that is lost behind it in the same piece is asked for at once. */
static uint32_t span_of_lost(const struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t psn)
{
	const struct vb_sent *sent = &selective_of(qp)->sent;
	uint32_t index = psn_index(wqe, psn), end = is_read(wqe) ? piece_end(wqe, index) : index + 1, span = 1;
	while (index + span < end && vb_psn_bit(sent->lost, sent->mask, vb_psn_add(psn, span)) &&
		is_under_way(qp, vb_psn_add(psn, span)))
		span++;
	return span;
}

bool vb_selective_emit(struct vb_qp *qp, struct vb_batch *batch, bool is_probe, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	struct vb_selective *s = selective_of(qp);
	uint32_t psn = vb_sent_next_lost(&s->sent, rq->una_psn, rq->next_psn);
	assert(psn != rq->next_psn);
	struct vb_send_wqe *wqe = vb_wqe_of_psn(qp, psn);
	uint32_t span = span_of_lost(qp, wqe, psn), index = psn_index(wqe, psn);
	struct window_cost cost = cost_between(qp, wqe, index, index + span);
	if (!is_probe && !vb_flight_allows(qp, cost.out, cost.in))
		return false;
	if (!vb_requester_build(qp, batch, wqe, index, index + span)) {
		vb_batch_undo(batch);
		vb_retry_go_back(qp); /* what is wrong is found again when it is that one's turn */
		return false;
	}
	batch->out[batch->count - 1].packet.ackreq = true;
	batch->out[batch->count - 1].again = VB_SENT_LOST;
	vb_lateness_note_resent(qp, psn, now);
	vb_multipath_go_by_another(qp, &batch->out[batch->count - 1], psn);
	vb_flight_add(qp, cost.out, cost.in);
	vb_sent_add(&s->sent, rq->una_psn, psn, span, true, now); /* within what there is */
	vb_rails_note_sent(qp, psn, span, true);
	note_repeat(qp, psn, span);
	if (needs_response(wqe))
		vb_psn_clear(s->sent.taken, s->sent.mask, psn);
	vb_recovery_on_sent(qp, vb_psn_add(psn, span - 1), false, now);
	return true;
}

void vb_selective_check(const struct vb_qp *qp)
{
	const struct vb_selective *s = selective_of(qp);
	if (!s)
		return;
	vb_hold_check(&s->requests, qp->responder.expected_psn);
	vb_hold_check(&s->responses, qp->requester.una_psn);
	assert(s->sent.lost_count == 0 || vb_sent_is_kept(&s->sent));
	assert(!s->due.is_set || vb_sent_is_kept(&s->sent));
}
