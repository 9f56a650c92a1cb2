/* Which rail a path goes by: rails.h.
 * Holds: every path is counted with its rail, and none goes by the second while there is none.
 * Not here: how the second pair is found and proved (failover.c, addresses.c). */
#include "roce/rails.h"
#include "base/invariant.h"
#include "roce/failover.h"
#include "roce/multipath.h"
#include "roce/roce.h"
#include "roce/selective.h"

enum {
	REQUESTS_LOST = 8,   /* since one has arrived: the rail may be dead, */
	RESPONSES_LOST = 24, /* or of which it is not known; and three of four, */
	SPAN = 64,           /* of which those before so many count half */
	RTTS = 4,            /* of each rail, to know which takes longer */
	LOOK_EVERY = 1024,   /* packets, at which is longer */
	BARRED = 16384,      /* packets, until a rail that was left is tried again; twice as many each time, */
	BARS_MOST = 8,       /* so often at most */
};

#define LONGER_BY (1 * VB_MS) /* than twice the other: such a round trip is longer by far */
/* A round trip, within these. */
#define SLACK_LEAST (1 * VB_MS)
#define SLACK_MOST  (20 * VB_MS)
/* It is dead if no request has arrived for two round trips, within these. */
#define DEAD_LEAST (4 * VB_MS)
#define DEAD_MOST  (20 * VB_MS)

bool vb_rails_are_of_use(const struct vb_qp *qp)
{
	const struct vb_multipath *paths = vb_multipath_of(qp);
	return paths && paths->count > 1 && paths->count != VB_PATHS_ALL;
}

static void put(struct vb_multipath *paths, unsigned path, unsigned rail)
{
	struct vb_rail *from = &paths->rails.rail[paths->path[path].rail], *to = &paths->rails.rail[rail];
	assert(path < paths->count && from->paths > 0);
	from->paths--;
	to->paths++;
	paths->path[path].rail = (uint8_t)rail;
}

static void put_all(struct vb_multipath *paths, unsigned rail)
{
	for (unsigned i = 0; i < paths->count; i++)
		put(paths, i, rail);
	assert(paths->rails.rail[rail].paths == paths->count);
}

void vb_rails_note_sent(struct vb_qp *qp, uint32_t psn, uint32_t span, bool is_again)
{
	const struct vb_multipath *paths = vb_multipath_of(qp);
	struct vb_sent *sent = &vb_roce(qp)->selective->sent;
	if (!paths || paths->rails.sent == 0 || !vb_sent_is_kept(sent))
		return;
	for (uint32_t i = 0; i < span; i++) {
		uint32_t at = vb_psn_add(psn, i);
		if (is_again ? paths->rails.newest : paths->path[vb_multipath_path(paths, at)].rail)
			vb_psn_set(sent->second, sent->mask, at);
		else
			vb_psn_clear(sent->second, sent->mask, at);
	}
}

void vb_rails_begin_account(struct vb_qp *qp)
{
	const struct vb_requester *rq = &qp->requester;
	struct vb_multipath *paths = vb_multipath_of(qp);
	if (!paths)
		return;
	paths->rails.seen = (struct vb_seen){ 0 };
	vb_rails_note_sent(qp, rq->una_psn, (uint32_t)vb_psn_diff(rq->next_psn, rq->una_psn), false);
}

static bool went_by_second(const struct vb_qp *qp, uint32_t psn)
{
	const struct vb_sent *sent = &vb_roce(qp)->selective->sent;
	assert(vb_sent_is_kept(sent));
	return vb_psn_bit(sent->second, sent->mask, psn);
}

struct vb_seen *vb_rails_seen(const struct vb_qp *qp, uint32_t psn, bool is_other)
{
	struct vb_selective *s = vb_roce(qp)->selective;
	return went_by_second(qp, psn) != is_other && s->paths ? &s->paths->rails.seen : &s->seen;
}

static vb_time within(vb_time span, vb_time least, vb_time most)
{
	return span < least ? least : span < most ? span : most;
}

vb_time vb_rails_slack(const struct vb_qp *qp)
{
	return within(vb_roce(qp)->recovery.srtt, SLACK_LEAST, SLACK_MOST);
}

vb_time vb_rails_slack_of_responses(const struct vb_qp *qp)
{
	const struct vb_failover *f = vb_roce(qp)->selective->failover;
	return f && f->hears_beside ? vb_rails_slack(qp) : 0;
}

/* ---- Which are used ---------------------------------------------------------------------------------------------- */

static bool has_both(const struct vb_rails *rails)
{
	return rails->rail[0].paths > 0 && rails->rail[1].paths > 0;
}

static void leave(struct vb_multipath *paths, unsigned rail)
{
	struct vb_rails *rails = &paths->rails;
	struct vb_rail *left = &rails->rail[rail];
	left->barred_until = rails->sent + ((uint64_t)BARRED << left->bars);
	if (left->bars < BARS_MOST)
		left->bars++;
	put_all(paths, 1 - rail);
	assert(!has_both(rails));
}

static void forget_rtts(struct vb_rails *rails)
{
	for (unsigned i = 0; i < 2; i++) {
		rails->rail[i].rtts = 0;
		rails->rail[i].rtt_sum = 0;
	}
}

/* 0: too few were measured. */
static vb_time mean_rtt(const struct vb_rail *rail)
{
	return rail->rtts < RTTS ? 0 : rail->rtt_sum / rail->rtts;
}

/* 2: neither by far. A rail that is slower than its half of all has a queue. */
static unsigned longer_of(struct vb_rails *rails)
{
	const vb_time a = mean_rtt(&rails->rail[0]), b = mean_rtt(&rails->rail[1]);
	if (a == 0 || b == 0)
		return 2;
	assert(a > 0 && b > 0);
	forget_rtts(rails);
	if (a > 2 * b + LONGER_BY)
		return 0;
	return b > 2 * a + LONGER_BY ? 1 : 2;
}

static void clear_losses(struct vb_rails *rails)
{
	for (unsigned i = 0; i < 2; i++)
		rails->rail[i].lost = rails->rail[i].responses_sent = rails->rail[i].responses_lost = 0;
}

static void use_both(struct vb_multipath *paths)
{
	struct vb_rails *rails = &paths->rails;
	for (unsigned i = 0; i < paths->count; i++)
		put(paths, i, i % 2);
	clear_losses(rails);
	forget_rtts(rails);
	rails->both_since = rails->sent;
	assert(has_both(rails));
}

static void look(struct vb_multipath *paths)
{
	struct vb_rails *rails = &paths->rails;
	const unsigned left = rails->rail[0].paths == 0 ? 0 : 1;
	assert(rails->is_open && rails->rail[0].paths + rails->rail[1].paths == paths->count);
	if (!has_both(rails)) {
		if (rails->sent >= rails->rail[left].barred_until)
			use_both(paths);
		return;
	}
	const unsigned longer = longer_of(rails);
	if (longer != 2)
		leave(paths, longer);
	else if (rails->sent - rails->both_since >= BARRED)
		rails->rail[0].bars = rails->rail[1].bars = 0;
}

void vb_rails_open(struct vb_qp *qp)
{
	struct vb_multipath *paths = vb_multipath_of(qp);
	assert(vb_rails_are_of_use(qp) && !paths->rails.is_open);
	paths->rails.is_open = true;
	use_both(paths);
}

void vb_rails_respond(struct vb_qp *qp)
{
	const struct vb_selective *s = vb_roce(qp)->selective;
	if (s && s->paths && s->failover && !s->paths->rails.is_open)
		vb_failover_seek_second_in_time(qp, qp->lane->now);
}

void vb_rails_close(struct vb_qp *qp)
{
	struct vb_multipath *paths = vb_multipath_of(qp);
	if (!paths || !paths->rails.is_open)
		return;
	paths->rails.is_open = false;
	paths->rails.newest = 0;
	put_all(paths, 0);
}

/* ---- Packets ----------------------------------------------------------------------------------------------------- */

static bool has_data(const struct vb_packet *packet)
{
	const struct vb_opcode *row = vb_packet_row(packet);
	return !row->is_response || row->message == VB_MESSAGE_READ_RESPONSE;
}

void vb_rails_take(const struct vb_qp *qp, struct vb_multipath *paths, unsigned path, struct vb_outgoing *out)
{
	struct vb_rails *rails = &paths->rails;
	if (!rails->is_open || !has_data(&out->packet))
		return;
	const unsigned chosen = paths->path[path].rail;
	assert(path < paths->count);
	struct vb_rail *rail = &rails->rail[chosen];
	if (vb_packet_row(&out->packet)->is_response && ++rail->responses_sent == 2 * SPAN) {
		rail->responses_sent /= 2;
		rail->responses_lost /= 2;
	}
	rails->newest = (uint8_t)chosen;
	if (chosen == 1) {
		out->av = vb_failover_second(qp);
		rails->by_second++;
	}
	if (++rails->sent % LOOK_EVERY == 0)
		look(paths);
}

static vb_time two_round_trips(const struct vb_qp *qp)
{
	return within(2 * vb_roce(qp)->recovery.srtt, DEAD_LEAST, DEAD_MOST);
}

/* A queue that is full loses many too, but not all of them for so long. */
static bool loses_requests(const struct vb_qp *qp, struct vb_rail *rail, vb_time now)
{
	if (rail->lost++ == 0)
		rail->lost_since = now;
	return rail->lost >= REQUESTS_LOST && vb_time_since(rail->lost_since, now) >= two_round_trips(qp);
}

static bool loses_responses(struct vb_rail *rail)
{
	assert(rail->responses_sent <= 2 * SPAN);
	rail->responses_lost++;
	return rail->responses_lost >= RESPONSES_LOST && rail->responses_lost >= rail->responses_sent / 4 * 3;
}

void vb_rails_undo(const struct vb_qp *qp, struct vb_multipath *paths, const struct vb_outgoing *out)
{
	struct vb_rails *rails = &paths->rails;
	const unsigned taken = out->av == &qp->attr.av ? 0 : 1;
	struct vb_rail *rail = &rails->rail[taken];
	if (!rails->is_open || !has_data(&out->packet))
		return;
	if (vb_packet_row(&out->packet)->is_response)
		rail->responses_sent -= rail->responses_sent > 0;
	assert(rails->sent > 0 && rails->by_second >= taken);
	rails->sent--;
	rails->by_second -= taken;
}

void vb_rails_note_loss(struct vb_qp *qp, uint32_t psn, bool is_response)
{
	struct vb_multipath *paths = vb_multipath_of(qp);
	const vb_time now = qp->lane->now;
	if (!paths || !paths->rails.is_open)
		return;
	struct vb_rails *rails = &paths->rails;
	rails->deaf.is_set &= !vb_deadline_due(rails->deaf, now);
	if (rails->deaf.is_set)
		return;
	const unsigned chosen = is_response ? paths->path[vb_multipath_path(paths, psn)].rail : went_by_second(qp, psn);
	struct vb_rail *rail = &rails->rail[chosen];
	if (is_response ? !loses_responses(rail) : !loses_requests(qp, rail, now))
		return;
	rails->deaf = (struct vb_deadline){ vb_time_add(now, 2 * two_round_trips(qp)), true };
	clear_losses(rails);
	if (chosen == 1)
		vb_failover_lose_second(qp, now);
	else
		leave(paths, 0);
}

void vb_rails_note_arrival(struct vb_qp *qp, uint32_t psn)
{
	struct vb_multipath *paths = vb_multipath_of(qp);
	if (paths)
		paths->rails.rail[went_by_second(qp, psn)].lost = 0;
}

void vb_rails_note_rtt(struct vb_multipath *paths, unsigned path, vb_time rtt)
{
	struct vb_rail *rail = &paths->rails.rail[paths->path[path].rail];
	assert(rtt >= 0);
	rail->rtts++;
	rail->rtt_sum += rtt;
}

void vb_rails_account(const struct vb_qp *qp, struct vb_moves *moves)
{
	const struct vb_multipath *paths = vb_multipath_of(qp);
	if (!paths)
		return;
	moves->sent = paths->rails.sent;
	moves->by_second = paths->rails.by_second;
	assert(moves->by_second <= moves->sent);
}

void vb_rails_check(const struct vb_multipath *paths)
{
	unsigned count[2] = { 0 };
	if (paths->count == VB_PATHS_ALL)
		return;
	for (unsigned i = 0; i < paths->count; i++)
		count[paths->path[i].rail]++;
	assert(count[0] == paths->rails.rail[0].paths && count[1] == paths->rails.rail[1].paths);
	assert(paths->rails.is_open || count[1] == 0);
	(void)count;
}
