/* By which arrival a packet is missed that has not arrived: one of what was sent after it, where packets keep their
 * order. Requests do, and a response to what was sent later misses none of them: whether the peer holds those that it
 * has not answered, bitmaps say. Responses come in the order of PSNs, whenever their requests were sent; but one that
 * is repeated is sent at once, and says nothing of those that wait for their turn.
 * Holds: what a newer arrival replaces was sent before it. Not here: how long a packet may be late (lateness.c). */
#include "roce/roce.h"
#include "base/invariant.h"
#include "roce/rails.h"
#include "roce/selective.h"

static struct vb_selective *selective_of(const struct vb_qp *qp)
{
	return vb_roce(qp)->selective;
}

static bool has_bit(const struct vb_qp *qp, const uint64_t *bits, uint32_t psn)
{
	return vb_psn_bit(bits, selective_of(qp)->sent.mask, psn);
}

static vb_time sent_at(const struct vb_qp *qp, uint32_t psn)
{
	return vb_sent_at(&selective_of(qp)->sent, psn);
}

static bool is_repeat(const struct vb_qp *qp, uint32_t psn)
{
	return has_bit(qp, selective_of(qp)->sent.repeat, psn);
}

/* It was sent after that of psn. */
static bool is_after(const struct vb_arrival *arrival, const struct vb_qp *qp, uint32_t psn)
{
	if (!arrival->is_set)
		return false;
	int64_t later = vb_time_diff(arrival->sent_at, sent_at(qp, psn));
	return later > 0 || (later == 0 && vb_psn_diff(arrival->psn, psn) > 0);
}

/* It is the first one that has arrived, and the second is still on its way, or may be: no round trip is known yet. RFC
 * 8985, section 6.2, step 2. */
static bool may_be_of_the_first(const struct vb_qp *qp, uint32_t psn, vb_time took)
{
	const struct vb_selective *s = selective_of(qp);
	bool is_believed = s->believed_rtt > 0 && s->believed_rtt < s->least_rtt;
	const vb_time least = is_believed ? s->believed_rtt : s->least_rtt;
	return has_bit(qp, s->sent.again, psn) && !has_bit(qp, s->sent.told, psn) && (least == 0 || took < least);
}

/* Nothing has come twice since a shorter round trip was seen, for as long as the peer needs to tell: if a second one
 * was on its way then, it was lost. */
static bool is_shorter_to_be_believed(const struct vb_qp *qp, vb_time now)
{
	const struct vb_selective *s = selective_of(qp);
	const vb_time patience = vb_roce(qp)->recovery.srtt + vb_lateness_window(qp);
	return s->shorter_rtt > 0 && vb_time_since(s->shorter_at, now) > patience;
}

/* As above. But where all round trips that were measured are of full queues, and what is under way now was all sent
 * again, it is never otherwise, and a packet that is lost once more is never missed. So shorter ones are believed in
 * after a while, as long as account is kept and nothing comes twice. */
static bool is_of_the_first(struct vb_qp *qp, uint32_t psn, vb_time took, vb_time now)
{
	struct vb_selective *s = selective_of(qp);
	if (!may_be_of_the_first(qp, psn, took))
		return false;
	if (vb_roce(qp)->recovery.srtt == 0)
		return true;
	if (is_shorter_to_be_believed(qp, now)) {
		s->believed_rtt = s->shorter_rtt;
		s->shorter_rtt = 0;
	}
	if (s->shorter_rtt == 0) {
		s->shorter_rtt = took;
		s->shorter_at = now;
	}
	return may_be_of_the_first(qp, psn, took);
}

static struct vb_arrival arrival_of(const struct vb_qp *qp, uint32_t psn, vb_time now)
{
	vb_time at = sent_at(qp, psn);
	return (struct vb_arrival){ true, psn, at, vb_time_since(at, now) };
}

static void see(struct vb_qp *qp, struct vb_arrival *newest, uint32_t psn, vb_time now)
{
	struct vb_arrival arrival = arrival_of(qp, psn, now);
	if (newest->is_set && (is_after(newest, qp, psn) || newest->psn == psn))
		return;
	assert(!newest->is_set || !vb_time_before(arrival.sent_at, newest->sent_at));
	if (!is_of_the_first(qp, psn, arrival.took, now))
		*newest = arrival;
}

void vb_seen_request(struct vb_qp *qp, uint32_t psn, vb_time now)
{
	see(qp, &vb_rails_seen(qp, psn, false)->request, psn, now);
}

void vb_seen_held(struct vb_qp *qp, uint32_t psn, vb_time now)
{
	struct vb_seen *seen = vb_rails_seen(qp, psn, false);
	see(qp, &seen->request, psn, now);
	see(qp, &seen->held, psn, now);
}

void vb_seen_response(struct vb_qp *qp, uint32_t psn, vb_time now)
{
	struct vb_arrival *furthest = &selective_of(qp)->seen.in_turn, arrival = arrival_of(qp, psn, now);
	see(qp, &selective_of(qp)->seen.response, psn, now);
	bool is_behind = furthest->is_set && vb_psn_diff(furthest->psn, psn) >= 0;
	if (is_behind || is_repeat(qp, psn) || is_of_the_first(qp, psn, arrival.took, now))
		return;
	bool is_newer = !furthest->is_set || !vb_time_before(arrival.sent_at, furthest->sent_at);
	if (is_newer)
		*furthest = arrival;
	furthest->psn = psn;
	assert(furthest->is_set);
}

/* One whose request was sent again waits for what was sent after that. */
static const struct vb_arrival *further_in_turn(const struct vb_qp *qp, uint32_t psn)
{
	const struct vb_arrival *furthest = &selective_of(qp)->seen.in_turn;
	bool is_behind = furthest->is_set && vb_psn_diff(furthest->psn, psn) > 0;
	return is_behind && !vb_time_before(furthest->sent_at, sent_at(qp, psn)) ? furthest : NULL;
}

/* By what rail responses come, the peer alone knows. */
static const struct vb_arrival *response_behind(const struct vb_qp *qp, uint32_t psn)
{
	const struct vb_arrival *newest = &selective_of(qp)->seen.response;
	if (!is_repeat(qp, psn))
		return further_in_turn(qp, psn);
	return is_after(newest, qp, psn) ? newest : NULL;
}

static const struct vb_arrival *request_behind(const struct vb_qp *qp, uint32_t psn, bool is_answered, bool is_other)
{
	const struct vb_seen *seen = vb_rails_seen(qp, psn, is_other);
	const struct vb_arrival *newest = is_answered ? &seen->held : &seen->request;
	return is_after(newest, qp, psn) ? newest : NULL;
}

const struct vb_arrival *vb_seen_behind(
	const struct vb_qp *qp, uint32_t psn, bool is_answered, bool is_response, vb_time *slack)
{
	assert(is_answered || !is_response);
	*slack = 0;
	if (is_response) {
		*slack = vb_rails_slack_of_responses(qp);
		return response_behind(qp, psn);
	}
	const struct vb_arrival *newest = request_behind(qp, psn, is_answered, false);
	if (newest)
		return newest;
	*slack = vb_rails_slack(qp);
	return request_behind(qp, psn, is_answered, true);
}

bool vb_seen_any_after(const struct vb_qp *qp, uint32_t psn)
{
	const struct vb_seen *own = vb_rails_seen(qp, psn, false), *other = vb_rails_seen(qp, psn, true);
	return is_after(&own->request, qp, psn) || is_after(&other->request, qp, psn) ||
	       is_after(&selective_of(qp)->seen.response, qp, psn);
}
