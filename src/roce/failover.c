/* When a QP that fails over asks, moves and returns: failover.h.
 *
 *   silence   nothing that it has sent was answered for a while: all pairs are asked, the one in use too, in rounds
 *   move      a round has passed, another pair carries packets both ways, the one in use has said nothing: all that is
 *             unacknowledged is sent again there, and the peer is told to answer there
 *   return    meanwhile the connection's own pair is asked again and again; its first answer ends it
 *
 * Holds: a QP sends data only where the peer has said that it takes them. While it has moved, the address vector in its
 * attributes is that of the pair in use, so that packets look at nothing more than they ever did.
 * Not here: what is asked and answered (addresses.c), what is sent again (recovery.c). */
#include "roce/failover.h"
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "core/events.h"
#include "core/message.h"
#include "roce/rails.h"
#include "roce/requester.h"
#include "roce/roce.h"
#include "roce/selective.h"

#define SILENCE              (16 * VB_MS) /* a process that waits for its core is seldom silent for so long */
#define SILENCE_MOST         (30 * VB_MS)
#define ROUND                (4 * VB_MS) /* of a search, at first */
#define GRACE                (2 * VB_MS)
#define ROUND_MOST           (100 * VB_MS)
#define RETURN_AFTER         (100 * VB_MS)
#define RETURN_MOST          (400 * VB_MS)
#define SECOND_FIRST         (4 * VB_MS) /* between questions for a second rail, at first; at last RETURN_MOST */
#define RELAPSES_MOST        4
#define SECOND_RELAPSES_MOST 7
#define RELAPSE              (10 * VB_S) /* a return that did not hold for so long */
#define TRIES                8           /* announcements to a peer that says nothing of itself */

static struct vb_failover *failover_of(const struct vb_qp *qp)
{
	const struct vb_selective *s = vb_roce(qp)->selective;
	return s ? s->failover : NULL;
}

static uint8_t more_relapses(uint8_t relapses, uint8_t most)
{
	return relapses < most ? relapses + 1 : most;
}

/* Since the last move; the account may have begun anew meanwhile. */
static uint64_t acked_since(const struct vb_qp *qp)
{
	uint64_t acked = vb_roce(qp)->congestion.tally.acked, counted = failover_of(qp)->moves.counted;
	return acked >= counted ? acked - counted : acked;
}

/* ---- Beginning and end ------------------------------------------------------------------------------------------- */

void vb_failover_agree(struct vb_qp *qp, bool is_asker)
{
	struct vb_selective *s = vb_roce(qp)->selective;
	if (s->failover || !vb_roce_lane_of(qp)->config.fails_over)
		return;
	struct vb_failover *f = s->failover = vb_addresses_create(qp);
	if (!f)
		return; /* without memory: as with a peer that has none */
	f->is_agreed = true;
	f->heard_at = f->second_at = qp->lane->now;
	f->second = VB_PAIRS;
	f->second_wait = SECOND_FIRST;
	vb_list_init(&f->away_link);
	assert(f->our_count >= 1 && f->their_count == 1);
	f->round = ROUND;
	f->announce_at = f->round_at = vb_time_add(qp->lane->now, f->round);
	if (is_asker && f->our_count > 1)
		vb_addresses_announce(qp, false);
}

void vb_failover_end(struct vb_qp *qp)
{
	struct vb_selective *s = vb_roce(qp)->selective;
	if (!s || !s->failover)
		return;
	vb_rails_close(qp);
	qp->attr.av = s->failover->pairs[0].av;
	vb_list_remove(&s->failover->away_link);
	free(s->failover);
	s->failover = NULL;
	vb_roce(qp)->path_is_due = false;
}

void vb_failover_stop(struct vb_qp *qp)
{
	struct vb_failover *f = failover_of(qp);
	if (!f)
		return;
	vb_list_remove(&f->away_link);
	f->announces = false;
	f->asks_due = f->answers_due = 0;
	vb_roce(qp)->path_is_due = false;
}

/* The same addresses, and another traffic class or so: it stays where it is. */
static void keep_pairs(struct vb_failover *f, struct vb_av *av)
{
	for (unsigned i = 0; i < VB_PAIRS; i++) {
		struct vb_av was = f->pairs[i].av;
		f->pairs[i].av = *av;
		f->pairs[i].av.sgid = was.sgid;
		f->pairs[i].av.dgid = was.dgid;
	}
	*av = f->pairs[f->in_use].av;
}

void vb_failover_readdress(struct vb_qp *qp)
{
	struct vb_failover *f = failover_of(qp);
	struct vb_av now = qp->attr.av;
	if (f && vb_gid_equal(&now.sgid, &f->pairs[0].av.sgid) && vb_gid_equal(&now.dgid, &f->pairs[0].av.dgid)) {
		keep_pairs(f, &qp->attr.av);
		return;
	}
	vb_failover_end(qp);
	qp->attr.av = now;
}

struct vb_av vb_failover_own_av(const struct vb_qp *qp)
{
	const struct vb_failover *f = failover_of(qp);
	return f ? f->pairs[0].av : qp->attr.av;
}

struct vb_moves vb_failover_moves(const struct vb_qp *qp)
{
	const struct vb_failover *f = failover_of(qp);
	struct vb_moves moves = f ? f->moves : (struct vb_moves){ 0 };
	if (f)
		moves.acked[f->in_use != 0] += acked_since(qp);
	moves.is_away = f && f->in_use != 0;
	moves.is_with_peer = f && f->has_followed;
	moves.has_second = f && f->second != VB_PAIRS;
	vb_rails_account(qp, &moves);
	moves.from = qp->attr.av.sgid;
	moves.to = qp->attr.av.dgid;
	return moves;
}

bool vb_failover_takes(const struct vb_qp *qp, const struct vb_path *path)
{
	const struct vb_failover *f = failover_of(qp);
	unsigned pair = f ? vb_addresses_pair(f, path) : VB_PAIRS;
	return pair != VB_PAIRS && f->pairs[pair].is_proved;
}

/* ---- The second rail --------------------------------------------------------------------------------------------- */

/* How much of it is another adapter and link than the connection's own: both ends', for that is a link of its own; the
 * peer's, whose address says by which adapter a host sends; ours alone. */
enum { OTHER_LINK = 3 };

static unsigned otherness(unsigned pair)
{
	return 2 * (pair % VB_ADDRESSES != 0) + (pair / VB_ADDRESSES != 0);
}

static bool exists(const struct vb_failover *f, unsigned pair)
{
	return pair / VB_ADDRESSES < f->our_count && pair % VB_ADDRESSES < f->their_count;
}

static bool lacks_second(const struct vb_qp *qp)
{
	const struct vb_failover *f = failover_of(qp);
	return f->second == VB_PAIRS && f->in_use == 0 && f->is_agreed && !f->is_searching && f->knows_peer &&
	       f->our_count > 1 && f->their_count > 1 && vb_rails_are_of_use(qp);
}

bool vb_failover_wants(const struct vb_qp *qp, unsigned pair)
{
	const struct vb_failover *f = failover_of(qp);
	bool is_barred = f->second_is_barred && !vb_time_is_due(f->second_at, qp->lane->now);
	return otherness(pair) == OTHER_LINK && !is_barred && lacks_second(qp);
}

const struct vb_av *vb_failover_second(const struct vb_qp *qp)
{
	const struct vb_failover *f = failover_of(qp);
	assert(f->second < VB_PAIRS && f->second != f->in_use && f->pairs[f->second].is_ready);
	return &f->pairs[f->second].av;
}

static void close_second(struct vb_qp *qp)
{
	vb_rails_close(qp);
	failover_of(qp)->second = VB_PAIRS;
}

void vb_failover_lose_second(struct vb_qp *qp, vb_time now)
{
	struct vb_failover *f = failover_of(qp);
	f->second_relapses = vb_time_since(f->second_since, now) < RELAPSE
				     ? more_relapses(f->second_relapses, SECOND_RELAPSES_MOST)
				     : 0;
	f->pairs[f->second].is_ready = false;
	close_second(qp);
	f->second_wait = SECOND_FIRST;
	f->second_is_barred = true;
	f->second_at = vb_time_add(now, RETURN_AFTER << f->second_relapses);
	f->moves.seconds_lost++;
	f->moves.is_of_second = true;
	vb_raise(qp->lane, &qp->notice, VB_EVENT_QP_MOVED);
}

static void use_as_second(struct vb_qp *qp, unsigned pair)
{
	struct vb_failover *f = failover_of(qp);
	f->second = (uint8_t)pair;
	f->second_since = qp->lane->now;
	f->second_wait = SECOND_FIRST;
	f->moves.second_from = f->pairs[pair].av.sgid;
	f->moves.second_to = f->pairs[pair].av.dgid;
	vb_rails_open(qp);
	f->moves.is_of_second = true;
	vb_raise(qp->lane, &qp->notice, VB_EVENT_QP_MOVED);
}

static void ask_for_second(struct vb_qp *qp, vb_time now)
{
	struct vb_failover *f = failover_of(qp);
	f->number = vb_psn_add(f->number, 1);
	for (unsigned pair = 0; pair < VB_PAIRS; pair++)
		if (exists(f, pair) && otherness(pair) == OTHER_LINK)
			vb_addresses_ask(qp, pair, now);
	f->second_is_barred = false;
	f->second_at = vb_time_add(now, f->second_wait);
	f->second_wait = 2 * f->second_wait < RETURN_MOST ? 2 * f->second_wait : RETURN_MOST;
}

/* One that was proved before a move still is. */
void vb_failover_seek_second(struct vb_qp *qp, vb_time now)
{
	struct vb_failover *f = failover_of(qp);
	for (unsigned pair = 0; pair < VB_PAIRS && lacks_second(qp); pair++)
		if (otherness(pair) == OTHER_LINK && f->pairs[pair].is_ready)
			use_as_second(qp, pair);
	if (lacks_second(qp))
		ask_for_second(qp, now);
}

void vb_failover_seek_second_in_time(struct vb_qp *qp, vb_time now)
{
	if (lacks_second(qp) && vb_time_is_due(failover_of(qp)->second_at, now))
		vb_failover_seek_second(qp, now);
}

/* ---- Moving ------------------------------------------------------------------------------------------------------ */

static bool has_sent(const struct vb_qp *qp)
{
	const struct vb_requester *rq = &qp->requester;
	bool sends = vb_state(qp) == VB_QPS_RTS || vb_state(qp) == VB_QPS_SQD;
	return sends && qp->way == qp->transport && !rq->is_rnr_waiting && rq->next_psn != rq->una_psn;
}

/* Losses of the old pair say nothing of the new one: no retry is used up, and no window shrinks. */
static void send_again(struct vb_qp *qp, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	if (!has_sent(qp))
		return;
	vb_roce(qp)->recovery.is_recovering = vb_roce(qp)->recovery.was_probed = false;
	vb_retry_renew(qp);
	rq->backoff = 0;
	rq->progress_at = rq->quiet_since = now;
	vb_retry_go_back(qp);
}

static void go_over(struct vb_qp *qp, unsigned pair, vb_time now)
{
	struct vb_failover *f = failover_of(qp);
	assert(pair < VB_PAIRS && pair != f->in_use && f->pairs[pair].is_proved);
	f->moves.acked[f->in_use != 0] += acked_since(qp);
	f->moves.counted = vb_roce(qp)->congestion.tally.acked;
	f->in_use = (uint8_t)pair;
	close_second(qp);
	f->moves.is_of_second = false;
	f->hears_beside = false;
	vb_failover_hear(f, now);
	qp->attr.av = f->pairs[pair].av;
	vb_large_readdress(qp);
	vb_list_remove(&f->away_link);
	vb_raise(qp->lane, &qp->notice, VB_EVENT_QP_MOVED);
}

/* The peer is told by a question that says so, until it is answered. */
static void tell(struct vb_qp *qp, vb_time now)
{
	struct vb_failover *f = failover_of(qp);
	f->has_followed = f->is_agreed = false;
	assert(f->pairs[f->in_use].is_proved);
	f->first_number = f->number = vb_psn_add(f->number, 1);
	f->round_at = vb_time_add(now, f->round);
	vb_addresses_ask(qp, f->in_use, now);
}

static void ask_home_at(struct vb_roce_lane *lane, struct vb_failover *f, vb_time now)
{
	f->home_at = vb_time_add(now, f->home_wait);
	if (f->home_wait < RETURN_MOST)
		f->home_wait *= 2;
	lane->away_due = vb_deadline_earlier(lane->away_due, (struct vb_deadline){ f->home_at, true });
}

/* A QP that has followed comes back with its peer. */
static void stay_away(struct vb_qp *qp, vb_time now)
{
	struct vb_failover *f = failover_of(qp);
	assert(f->in_use != 0);
	f->qp = qp;
	f->home_wait = RETURN_AFTER << f->relapses;
	vb_list_add_tail(&vb_roce_lane_of(qp)->away, &f->away_link);
	ask_home_at(vb_roce_lane_of(qp), f, now);
}

static void move(struct vb_qp *qp, unsigned pair, vb_time now)
{
	struct vb_failover *f = failover_of(qp);
	bool is_relapse = f->in_use == 0 && f->moves.returned && vb_time_since(f->returned_at, now) < RELAPSE;
	if (f->in_use == 0)
		f->relapses = is_relapse ? more_relapses(f->relapses, RELAPSES_MOST) : 0;
	f->moves.moved++;
	vb_count(qp->lane, VB_PATH_MOVES, 1);
	go_over(qp, pair, now);
	tell(qp, now);
	stay_away(qp, now);
	send_again(qp, now);
}

/* Packets that are under way on the further pair still arrive. */
static void go_home(struct vb_qp *qp, vb_time now)
{
	struct vb_failover *f = failover_of(qp);
	bool was_searching = f->is_searching;
	f->moves.returned++;
	f->returned_at = now;
	vb_count(qp->lane, VB_PATH_RETURNS, 1);
	go_over(qp, 0, now);
	tell(qp, now);
	if (was_searching)
		send_again(qp, now);
}

/* Of two that move at once one gives way. */
static bool goes_first(const struct vb_qp *qp)
{
	const struct vb_failover *f = failover_of(qp);
	int order = memcmp(f->ours[0].raw, f->theirs[0].raw, sizeof(f->ours[0].raw));
	return order ? order < 0 : qp->qpn < qp->attr.dest_qpn;
}

void vb_failover_follow(struct vb_qp *qp, unsigned pair, uint32_t number, vb_time now)
{
	struct vb_failover *f = failover_of(qp);
	bool insists = !f->is_agreed && has_sent(qp) && goes_first(qp); /* else nothing of ours says where we are */
	if (vb_psn_diff(number, f->followed_number) <= 0 || insists)
		return;
	assert(f->pairs[pair].is_proved);
	f->followed_number = number;
	if (pair == f->in_use)
		return;
	f->moves.followed++;
	vb_count(qp->lane, VB_PATH_FOLLOWS, 1);
	go_over(qp, pair, now);
	f->has_followed = f->is_agreed = true;
	if (pair != 0)
		send_again(qp, now);
	else
		vb_failover_seek_second(qp, now); /* who sends READ responses alone has no timer for it */
}

/* ---- Searching --------------------------------------------------------------------------------------------------- */

/* A few round trips, at most 30 ms; where the program has set the ack timeout lower, half of that. */
static vb_time silence_of(const struct vb_qp *qp)
{
	vb_time srtt = vb_roce(qp)->recovery.srtt, silence = 4 * srtt > SILENCE ? 4 * srtt : SILENCE;
	struct vb_deadline timeout = vb_retry_ack_timeout(qp, 0);
	if (silence > SILENCE_MOST)
		silence = SILENCE_MOST;
	if (timeout.is_set && silence > timeout.at / 2)
		silence = timeout.at / 2;
	return silence > qp->lane->least_silence ? silence : qp->lane->least_silence;
}

static vb_time silent_since(const struct vb_qp *qp)
{
	const struct vb_failover *f = failover_of(qp);
	vb_time now = qp->lane->now, progress_at = qp->requester.progress_at;
	bool is_progress_later = vb_time_since(progress_at, now) < vb_time_since(f->heard_at, now);
	return is_progress_later ? progress_at : f->heard_at;
}

/* The best pair that carries packets both ways, by an answer to this search; VB_PAIRS: none. */
static unsigned pair_that_answers(const struct vb_failover *f)
{
	unsigned best = VB_PAIRS;
	for (unsigned pair = 0; pair < VB_PAIRS; pair++)
		if (pair != f->in_use && f->pairs[pair].is_ready &&
			vb_psn_diff(f->pairs[pair].answered, f->first_number) >= 0 &&
			(best == VB_PAIRS || otherness(pair) > otherness(best)))
			best = pair;
	return best;
}

/* All that was under way when the peer was last heard would have been answered by now, and so would the question. */
static bool may_move(const struct vb_qp *qp, vb_time now)
{
	const struct vb_failover *f = failover_of(qp);
	vb_time srtt = vb_roce(qp)->recovery.srtt;
	return f->is_searching && vb_time_is_due(f->grace_end, now) &&
	       vb_time_since(f->silent_at, now) >= srtt + srtt / 4;
}

void vb_failover_note_answer(struct vb_qp *qp, unsigned pair, uint32_t number, vb_time now)
{
	struct vb_failover *f = failover_of(qp);
	assert(pair < VB_PAIRS && f->pairs[pair].is_proved);
	if (pair == f->in_use) {
		vb_failover_hear(f, now);
		if (!f->is_agreed && vb_psn_diff(number, f->first_number) >= 0) {
			f->is_agreed = true;
			vb_failover_seek_second(qp, now);
		}
	} else if (pair == 0 && vb_psn_diff(number, f->first_number) >= 0) {
		go_home(qp, now);
	} else if (vb_failover_wants(qp, pair)) {
		use_as_second(qp, pair);
	} else if (otherness(pair) == OTHER_LINK && may_move(qp, now) && pair_that_answers(f) == pair) {
		move(qp, pair, now);
	}
}

/* The pair in use first: where the peer was only slow, it answers there first. */
static void ask_all(struct vb_qp *qp, vb_time now)
{
	struct vb_failover *f = failover_of(qp);
	f->number = vb_psn_add(f->number, 1);
	for (unsigned pair = 0; pair < VB_PAIRS; pair++)
		if (exists(f, pair))
			vb_addresses_ask(qp, pair, now);
	f->round_at = vb_time_add(now, f->round);
	f->round = 2 * f->round < ROUND_MOST ? 2 * f->round : ROUND_MOST;
}

/* The peer may have gone home, and the question that said so may be lost: it hears now that this pair is in use. */
static void lead(struct vb_qp *qp, vb_time now)
{
	struct vb_failover *f = failover_of(qp);
	assert(f->in_use != 0 && !vb_list_linked(&f->away_link));
	f->has_followed = f->is_agreed = false;
	stay_away(qp, now);
}

static void begin_search(struct vb_qp *qp, vb_time now)
{
	struct vb_failover *f = failover_of(qp);
	if (f->has_followed && f->in_use != 0)
		lead(qp, now);
	vb_time round = silence_of(qp) / 2 < ROUND ? silence_of(qp) / 2 : ROUND;
	f->is_searching = true;
	f->silent_at = silent_since(qp);
	f->grace_end = vb_time_add(now, round < GRACE ? round : GRACE);
	f->round = round;
	ask_all(qp, now);
	f->first_number = f->number;
}

static void go_on_searching(struct vb_qp *qp, vb_time now)
{
	struct vb_failover *f = failover_of(qp);
	unsigned pair = pair_that_answers(f);
	assert(f->is_searching);
	if (!vb_time_is_due(f->round_at, now))
		return;
	if (pair == VB_PAIRS || !may_move(qp, now))
		ask_all(qp, now);
	else
		move(qp, pair, now);
}

/* ---- Time -------------------------------------------------------------------------------------------------------- */

/* The peer answers an announcement with all its addresses: one that was lost is told again. */
static bool may_announce(const struct vb_failover *f)
{
	bool lacks_any = f->knows_peer ? f->their_count < f->their_total : f->our_count > 1;
	return lacks_any && f->tries < TRIES;
}

static void announce_again(struct vb_qp *qp, vb_time now)
{
	struct vb_failover *f = failover_of(qp);
	f->tries++;
	f->announce_at = vb_time_add(now, ROUND << f->tries);
	vb_addresses_announce(qp, false);
}

static bool has_choice(const struct vb_failover *f)
{
	return f->knows_peer && (f->our_count > 1 || f->their_count > 1);
}

struct vb_deadline vb_failover_deadline(const struct vb_qp *qp)
{
	const struct vb_failover *f = failover_of(qp);
	struct vb_deadline due = { f->announce_at, may_announce(f) };
	if (!has_choice(f))
		return due;
	vb_time next = f->is_searching ? f->round_at : vb_time_add(silent_since(qp), silence_of(qp));
	due = vb_deadline_earlier(due, (struct vb_deadline){ next, true });
	if (!f->is_agreed)
		due = vb_deadline_earlier(due, (struct vb_deadline){ f->round_at, true });
	if (lacks_second(qp))
		due = vb_deadline_earlier(due, (struct vb_deadline){ f->second_at, true });
	return due;
}

void vb_failover_advance(struct vb_lane *lane, vb_time now)
{
	struct vb_roce_lane *roce = vb_roce_lane(lane);
	if (!vb_deadline_due(roce->away_due, now))
		return;
	roce->away_due = (struct vb_deadline){ 0 };
	vb_list_for_each (node, &roce->away) {
		struct vb_failover *f = vb_container_of(node, struct vb_failover, away_link);
		assert(f->in_use != 0);
		if (vb_time_is_due(f->home_at, now)) {
			f->number = vb_psn_add(f->number, 1);
			vb_addresses_ask(f->qp, 0, now);
			ask_home_at(roce, f, now);
		}
		roce->away_due = vb_deadline_earlier(roce->away_due, (struct vb_deadline){ f->home_at, true });
	}
}

void vb_failover_on_timer(struct vb_qp *qp, vb_time now)
{
	struct vb_failover *f = failover_of(qp);
	if (may_announce(f) && vb_time_is_due(f->announce_at, now))
		announce_again(qp, now);
	if (!has_choice(f))
		return;
	if (f->is_searching)
		go_on_searching(qp, now);
	else if (has_sent(qp) && vb_time_since(silent_since(qp), now) >= silence_of(qp))
		begin_search(qp, now);
	else if (!f->is_agreed && vb_time_is_due(f->round_at, now)) {
		f->round_at = vb_time_add(now, f->round);
		vb_addresses_ask(qp, f->in_use, now);
	} else
		vb_failover_seek_second_in_time(qp, now);
}

void vb_failover_check(const struct vb_qp *qp)
{
	const struct vb_failover *f = failover_of(qp);
	if (!f)
		return;
	assert(f->our_count >= 1 && f->our_count <= VB_ADDRESSES);
	assert(f->their_count >= 1 && f->their_count <= VB_ADDRESSES);
	assert(exists(f, f->in_use) && f->pairs[f->in_use].is_proved);
	assert(vb_gid_equal(&qp->attr.av.sgid, &f->pairs[f->in_use].av.sgid));
	assert(vb_gid_equal(&qp->attr.av.dgid, &f->pairs[f->in_use].av.dgid));
	assert(f->second == VB_PAIRS || (f->in_use == 0 && otherness(f->second) == OTHER_LINK));
	assert(vb_roce(qp)->path_is_due == (f->announces || f->answers_due || f->asks_due));
}
