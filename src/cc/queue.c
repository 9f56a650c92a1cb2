/* A window that goes by the queue: by how much a round trip takes longer than the shortest one. It grows as the plain
 * window does. It stops growing at a round trip that is too long, and is cut when several in a row are: a single one
 * may be a process that woke up late. A loss counts where round trips say that there is a queue, where none was
 * measured, or where much is lost. All others are a bad link's, and the window is right as it is.
 *
 * How long the way is, a flow knows only if it has once been there without a queue. So it gives way now and then, which
 * is to have a window of one packet for a moment, on a long way a small one. Flows that share a queue and have the same
 * cause do so at the same time, and all see the empty way. A flow for which the queue stays, time after time, is beside
 * somebody who does not mind queues, as TCP: it then goes by losses alone, until the queue is short again.
 *
 * Marks and CNPs cut the window as DCTCP does (Alizadeh et al., SIGCOMM 2010). On long ways packets leave evenly.
 * Times are kept as nanoseconds, so that the state is two cache lines.
 * Holds: the answer is between the holder's smallest and largest window. */
#include "base/invariant.h"
#include "cc/cc.h"

enum { LONGEST, SHARE, AGAIN, EVENLY, SHORTEST };

enum {
	INCREASE = 4096,     /* bytes a round, as the plain window */
	QUIET_TO_DOUBLE = 4, /* rounds without a queue, until the increase is twice as large */
	DOUBLINGS_MAX = 12,
	GROWTH_MOST = 64,      /* and a 64th of the window at most */
	VERY_QUIET = 16,       /* rounds, after which */
	GROWTH_QUIET = 8,      /* it is an 8th */
	GROWTH_LONG = 16,      /* on long ways a 16th, after QUIET_TO_DOUBLE */
	WAY_SHARE = 16,        /* of the window: what is kept on a long way to send again what was lost */
	PACED_LEAST = 1 << 19, /* bytes of a window */
	LEAST_PACKETS = 2,     /* no cut goes below that */
	FEW = 4,               /* packets that each flow may have in the queue, whatever it is for the others */
	MANY = 12,             /* packets: of smaller windows the queue may be, if there are as many of them */
	LONG_ENOUGH = 8,       /* too long round trips in a row that cut; one by far counts for up to four */
	FAR = 4,               /* times what is allowed */
	BY_FAR = 3,            /* times what is allowed to all is more than flows like these leave */
	IN_VAIN = 4,           /* cuts, or times to give way, after which the queue is somebody else's */
	WAYS_MOST = 6,         /* half round trips, after which it gives way no more, whatever was measured */
	SELDOM = 64,           /* round trips between two times to give way, where the window is cut */
	GROUP = 4,             /* the shortest of the newest four to eight round trips is the queue that stands */
	GROUP_LONG = 1,        /* on long ways of the newest two */
	UNMEASURED = 3,        /* losses in a row without a round trip between */
	ALPHA_ONE = 1 << 16,
};

/* Presets of parameters. */
#define OF_SHORTEST    (VB_GAIN_ONE / 4)
#define AGAIN_AFTER    (5 * VB_S)
#define EVENLY_FROM    VB_MS
#define SHORTEST_QUEUE (500 * VB_US)

#define WAY_LEAST 10000000 /* ns, for flows that give way at the same time to meet */
#define LONG_WAY  10000000 /* ns of the shortest round trip: more than what processes that wake up late vary */

struct state {
	vb_time least_at;                     /* when a round trip was last about as short as `least` */
	vb_time gave_way_at;                  /* when it began to do so last */
	vb_time round_at;                     /* when the newest round trip was told */
	uint32_t least;                       /* ns, the shortest round trip; 0: none was measured */
	uint32_t mean, varies;                /* ns, round trips and how much they vary */
	uint32_t newest;                      /* ns */
	int32_t up;                           /* ns, by how much it is longer than the one before */
	uint32_t group, last_group;           /* ns, the shortest of each */
	uint32_t most;                        /* ns, the longest queue since gave_way_at */
	uint32_t way_span;                    /* ns, to give way for so long at least */
	uint32_t window, before_cuts;         /* bytes; the latter before those in vain */
	uint32_t grown_by;                    /* bytes acknowledged towards the next increase */
	uint32_t round_acked, round_flight;   /* bytes acknowledged since round_at, and under way then */
	uint32_t round_lost;                  /* packets, where they are counted */
	uint32_t until_next_cut;              /* bytes still to be acknowledged before a mark counts again */
	uint32_t alpha, mark_acked, mark_had; /* the share of marks, and the bytes that this window's is of */
	uint8_t group_has, too_long, quiet;   /* round trips, the latter two in a row */
	uint8_t cuts_in_vain, ways_in_vain;
	uint8_t gives_way;  /* round trips that are still to come; 0: it does not */
	uint8_t unmeasured; /* losses since a round trip was measured */
	bool is_past_slow_start;
	bool is_settling; /* the next round trip is of a packet that left before the cut */
	bool is_beside_others;
	bool has_lost;      /* in this round */
	bool has_overflown; /* the same: a receive buffer was full, and the window is cut for it */
	bool has_doubted;   /* a loss was once without a queue */
	bool is_least_old;  /* it gives way to know the shortest round trip anew */
};

_Static_assert(sizeof(struct state) <= 128, "two cache lines");

/* ---- Numbers ----------------------------------------------------------------------------------------------------- */

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t as_ns(vb_time time)
{
	const uint64_t ns = (uint64_t)time / VB_NS;
	return ns > INT32_MAX ? INT32_MAX : (uint32_t)ns;
}

static uint32_t parameter_ns(const struct vb_cc *cc, unsigned index)
{
	return as_ns((vb_time)vb_cc_parameter(cc, index));
}

/* a b / c, of which c is not 0. */
static uint32_t scaled(uint32_t a, uint32_t b, uint32_t c)
{
	const uint64_t result = (uint64_t)a * b / c;
	return result > UINT32_MAX ? UINT32_MAX : (uint32_t)result;
}

static uint32_t sum(uint32_t a, uint32_t b)
{
	return a + b < a ? UINT32_MAX : a + b;
}

static uint32_t clamp(const struct vb_cc *cc, uint64_t window)
{
	if (window > cc->max_window)
		window = cc->max_window;
	return window < cc->min_window ? cc->min_window : (uint32_t)window;
}

static uint32_t packets(const struct vb_cc *cc, unsigned count)
{
	return clamp(cc, (uint64_t)count * cc->min_window);
}

/* ---- The answer -------------------------------------------------------------------------------------------------- */

/* Of a window and a quarter in a round trip; of two in slow start, which doubles it. An acknowledgement may be asked
 * for each 64 KiB only: with small windows the pace alone would make it late, and that would look like a queue. */
static uint64_t rate(const struct vb_cc *cc, const struct state *state)
{
	if (state->least < parameter_ns(cc, EVENLY) || cc->window_bytes < PACED_LEAST || state->mean == 0)
		return 0;
	const uint64_t quarters = state->is_past_slow_start ? 5 : 8;
	return cc->window_bytes * quarters / 4 * (VB_S / VB_NS) / state->mean + 1;
}

static bool is_long_way(const struct state *state)
{
	return state->least >= LONG_WAY;
}

static void answer(struct vb_cc *cc, struct state *state)
{
	state->window = clamp(cc, state->window);
	const uint32_t of_way = clamp(cc, is_long_way(state) ? state->window / WAY_SHARE : cc->min_window);
	cc->window_bytes = state->gives_way ? of_way : state->window;
	cc->rate = rate(cc, state);
	assert(cc->window_bytes >= cc->min_window && cc->window_bytes <= cc->max_window);
}

static void init(struct vb_cc *cc, vb_time now)
{
	struct state *state = vb_cc_state(cc);
	state->window = cc->window_bytes;
	state->alpha = ALPHA_ONE;
	state->round_at = now;
	state->gave_way_at = vb_time_add(now, -VB_S);
	answer(cc, state);
}

/* ---- Round trips ------------------------------------------------------------------------------------------------- */

/* How long the newest packet has waited. */
static uint32_t waited(const struct state *state)
{
	return state->newest - state->least;
}

/* The queue that stands. */
static uint32_t standing(const struct state *state)
{
	return smaller(state->last_group ? state->last_group : state->group, state->group) - state->least;
}

/* Less than that is none that could be seen: a 32nd of the round trip, and what round trips vary. */
static uint32_t visible(const struct state *state)
{
	return larger(state->least / 32, 2 * state->varies);
}

static uint32_t allowed_to_all(const struct vb_cc *cc, const struct state *state)
{
	const uint32_t share = (uint32_t)((uint64_t)state->least * (vb_cc_parameter(cc, SHARE) >> 16) >> 16);
	return larger(larger(parameter_ns(cc, LONGEST), share), 4 * state->varies);
}

/* A few packets of each are allowed in addition. So of two flows that take the way for differently long the one with
 * the smaller window is allowed more. */
static uint32_t allowed(const struct vb_cc *cc, const struct state *state)
{
	const uint32_t few = scaled(FEW * smaller(cc->min_window, UINT32_MAX / FEW), state->mean, state->window);
	return sum(few, allowed_to_all(cc, state));
}

/* A queue that grows or shrinks is no variation: what counts is what goes up and down again. */
static void note_variation(const struct vb_cc *cc, struct state *state, uint32_t rtt)
{
	const int32_t up = state->newest ? (int32_t)(rtt - state->newest) : 0, before = state->up;
	uint32_t off = 0;
	if ((up > 0 && before < 0) || (up < 0 && before > 0))
		off = smaller((uint32_t)(up < 0 ? -up : up), (uint32_t)(before < 0 ? -before : before));
	off = smaller(off, parameter_ns(cc, LONGEST)); /* so that no queue allows itself */
	state->up = up;
	state->varies = state->varies - state->varies / 8 + off / 8;
}

static void note_group(struct state *state, uint32_t rtt)
{
	if (state->group_has >= (is_long_way(state) ? GROUP_LONG : GROUP)) {
		state->last_group = state->group;
		state->group_has = 0;
	}
	state->group = state->group_has++ ? smaller(state->group, rtt) : rtt;
}

static void note_rtt(const struct vb_cc *cc, struct state *state, uint32_t rtt, vb_time now)
{
	state->unmeasured = 0;
	if (state->least == 0 || rtt < state->least)
		state->least = rtt;
	if (state->mean == 0)
		state->mean = rtt;
	if (rtt - state->least <= allowed(cc, state) / 4)
		state->least_at = now;
	if (state->gives_way)
		return;
	note_variation(cc, state, rtt);
	note_group(state, rtt);
	state->mean = state->mean - state->mean / 8 + rtt / 8;
	state->newest = rtt;
}

/* ---- Giving way -------------------------------------------------------------------------------------------------- */

static void give_way(struct state *state, uint32_t span, vb_time now)
{
	state->gives_way = 2; /* the first is of a packet that left before */
	state->gave_way_at = now;
	state->way_span = span;
	state->most = standing(state);
}

static uint32_t long_span(const struct state *state)
{
	return larger(WAY_LEAST, 2 * state->mean);
}

/* A queue that is hardly too long says nothing of others, since not all of us had cause to give way. */
static bool is_clearly_too_long(const struct vb_cc *cc, const struct state *state, uint32_t queue)
{
	return queue / 5 * 4 > allowed(cc, state) || queue / BY_FAR > allowed_to_all(cc, state);
}

/* Has the queue become much shorter by that? */
static void judge_way(const struct vb_cc *cc, struct state *state, uint32_t queue)
{
	if (queue <= larger(parameter_ns(cc, LONGEST), state->most) / 2)
		state->ways_in_vain = 0;
	else if (state->ways_in_vain < IN_VAIN && is_clearly_too_long(cc, state, state->most))
		state->ways_in_vain++;
	state->is_beside_others = state->ways_in_vain == IN_VAIN;
}

/* A way that has become longer is learned in steps, since others may not have given way. */
static void renew_least(struct state *state, uint32_t rtt, vb_time now)
{
	state->least += (rtt - state->least) / 4;
	state->least_at = now;
}

static void go_on_giving_way(const struct vb_cc *cc, struct state *state, uint32_t rtt, vb_time now)
{
	if (state->gives_way > 1) {
		state->gives_way--;
		return;
	}
	if (as_ns(vb_time_since(state->gave_way_at, now)) < state->way_span)
		return;
	state->gives_way = 0;
	judge_way(cc, state, rtt - state->least);
	if (state->is_least_old)
		renew_least(state, rtt, now);
	state->is_least_old = false;
	state->group = rtt;
	state->group_has = 1;
	state->last_group = state->most = state->too_long = 0;
	state->is_settling = true;
}

/* Nothing is timed while what was lost is sent again: then it was in vain. */
static void give_up_giving_way(struct state *state, vb_time now)
{
	const uint32_t most = sum(state->way_span, larger(state->mean, state->newest) / 2 * WAYS_MOST);
	if (state->gives_way && as_ns(vb_time_since(state->gave_way_at, now)) > most)
		state->gives_way = 0;
}

/* On long ways not as often, since it takes round trips. */
static bool is_long_ago(const struct vb_cc *cc, const struct state *state, vb_time at, vb_time now)
{
	const vb_time again = (vb_time)vb_cc_parameter(cc, AGAIN), of_way = 100 * (vb_time)state->least * VB_NS;
	return vb_time_since(at, now) > (again > of_way ? again : of_way);
}

static bool may_give_way(const struct state *state, unsigned rounds, vb_time now)
{
	return vb_time_since(state->gave_way_at, now) > rounds * (vb_time)state->mean * VB_NS;
}

/* ---- Cuts -------------------------------------------------------------------------------------------------------- */

static void cut_to(struct vb_cc *cc, struct state *state, uint32_t window)
{
	state->is_past_slow_start = true;
	state->is_settling = true;
	state->grown_by = state->quiet = state->too_long = 0;
	state->window = smaller(state->window, larger(window, packets(cc, LEAST_PACKETS)));
	state->until_next_cut = state->window;
}

/* To what would wait for so long. */
static uint32_t window_of(const struct state *state, uint32_t queue)
{
	return scaled(state->window, sum(state->least, queue), larger(sum(state->least, standing(state)), 1));
}

static void go_by_losses(struct vb_cc *cc, struct state *state)
{
	state->is_beside_others = true;
	state->ways_in_vain = IN_VAIN;
	state->cuts_in_vain = 0;
	state->most = 0;
	state->window = clamp(cc, state->before_cuts);
}

static void cut_for_queue(struct vb_cc *cc, struct state *state, vb_time now)
{
	state->too_long = 0;
	if (state->window <= packets(cc, LEAST_PACKETS))
		return;
	if (state->cuts_in_vain == 0)
		state->before_cuts = state->window;
	state->cuts_in_vain += state->cuts_in_vain <= IN_VAIN;
	if (state->cuts_in_vain > IN_VAIN && state->window > packets(cc, MANY)) {
		go_by_losses(cc, state);
		return;
	}
	cut_to(cc, state, larger(window_of(state, allowed(cc, state) / 2), state->window / 2));
	if (may_give_way(state, SELDOM, now))
		give_way(state, 0, now);
}

/* The flow that fills the queue has given way, or several of ours try whether another fills it: then all of ours do. */
static void heed_others(struct state *state, vb_time now)
{
	state->most = larger(state->most, waited(state));
	if (waited(state) < state->most / 4 * 3 || may_give_way(state, SELDOM, now))
		give_way(state, WAY_LEAST, now);
}

static void take_short(const struct vb_cc *cc, struct state *state)
{
	state->too_long = state->cuts_in_vain = 0;
	state->is_settling = false;
	state->is_beside_others = state->is_beside_others && waited(state) > parameter_ns(cc, LONGEST) / 2;
}

static void take_long(struct vb_cc *cc, struct state *state, vb_time now)
{
	const uint32_t times = waited(state) / larger(allowed(cc, state), 1);
	if (state->is_settling) {
		state->is_settling = false;
	} else if (state->is_beside_others) {
		heed_others(state, now);
	} else {
		state->too_long += (uint8_t)smaller(times, FAR);
		if (state->too_long >= LONG_ENOUGH)
			cut_for_queue(cc, state, now);
	}
}

/* A small window is allowed its packets in the queue of others, however long that is: nothing would be noticed. */
static bool may_be_beside_others(const struct vb_cc *cc, const struct state *state, vb_time now)
{
	return !state->is_beside_others && standing(state) / BY_FAR > allowed_to_all(cc, state) &&
	       may_give_way(state, SELDOM / 4, now);
}

/* On a long way a doubled window is all lost before the second round trip that is too long. Not right after it gave
 * way, when all that waited leaves at once. */
static bool ends_slow_start(const struct state *state)
{
	return is_long_way(state) && !state->is_settling && waited(state) > 2 * visible(state);
}

static void heed_queue(struct vb_cc *cc, struct state *state, vb_time now)
{
	const bool is_quiet = standing(state) <= visible(state);
	state->is_past_slow_start |= ends_slow_start(state);
	state->quiet = is_quiet ? state->quiet + (state->quiet < UINT8_MAX) : 0;
	if (waited(state) <= allowed(cc, state))
		take_short(cc, state);
	else
		take_long(cc, state, now);
	if (may_be_beside_others(cc, state, now))
		give_way(state, WAY_LEAST, now);
}

/* ---- Losses ------------------------------------------------------------------------------------------------------ */

/* Not what processes that wake up late make of none. */
static bool is_lost_to_queue(const struct vb_cc *cc, const struct state *state)
{
	return standing(state) > larger(visible(state), parameter_ns(cc, SHORTEST));
}

/* To what has a quarter of the queue, so not below what the way holds, but by no more than CUBIC's cut. */
static void cut_for_loss(struct vb_cc *cc, struct state *state)
{
	cut_to(cc, state, larger(window_of(state, standing(state) / 4), scaled(state->window, 7, 10)));
}

/* Or the queue was always full. Of many that begin at once all have that doubt at once. */
static void doubt(const struct vb_cc *cc, struct state *state, vb_time now)
{
	if (state->gives_way || (state->has_doubted && !is_long_ago(cc, state, state->gave_way_at, now)))
		return;
	state->has_doubted = true;
	give_way(state, long_span(state), now);
}

/* A receive buffer was full, of all that send to it, and its queue may have stood there from the first. On a long way
 * most is under way, not in that queue, and the cut shows only after a round trip. */
static void cut_for_overflow(struct vb_cc *cc, struct state *state)
{
	const bool is_of_last_cut = is_long_way(state) && state->is_settling;
	if (!state->has_overflown && !is_of_last_cut)
		cut_to(cc, state, is_long_way(state) ? scaled(state->window, 7, 8) : state->window / 2);
	state->has_overflown = true;
	state->gives_way = 0;
}

/* count: of packets, 0 where they are not counted, which is told once a recovery. */
static void take_loss(struct vb_cc *cc, struct state *state, uint32_t count, vb_time now)
{
	const bool is_heeded = count > 0 && state->has_lost;
	state->round_lost = sum(state->round_lost, count);
	state->has_lost = true;
	if (is_heeded)
		return;
	state->unmeasured += state->unmeasured < UNMEASURED;
	if (state->least == 0)
		state->window = larger(state->window / 2, packets(cc, LEAST_PACKETS)); /* and slow start goes on */
	else if (state->unmeasured == UNMEASURED)
		cut_to(cc, state, state->window / 2);
	else if (is_lost_to_queue(cc, state))
		cut_for_loss(cc, state);
	else
		doubt(cc, state, now);
}

/* Of what was under way when the round began. */
static uint32_t arrived(const struct state *state, uint32_t rtt, vb_time now)
{
	return scaled(state->round_acked, rtt, larger(as_ns(vb_time_since(state->round_at, now)), 1));
}

/* Left of that, where losses are counted, and where they are not. */
static uint32_t left_of_round(const struct vb_cc *cc, const struct state *state, uint32_t rtt, vb_time now)
{
	const uint32_t lost = scaled(cc->min_window, state->round_lost, 1);
	if (state->round_lost == 0)
		return arrived(state, rtt, now);
	return scaled(state->round_flight, state->round_acked, larger(sum(state->round_acked, lost), 1));
}

/* Where a queue is too short to be seen, or was there from the first, much is lost: a fifth, and more than a few. */
static void heed_much_lost(struct vb_cc *cc, struct state *state, uint32_t rtt, vb_time now)
{
	if (!state->has_lost || state->is_settling)
		return;
	const uint32_t left = left_of_round(cc, state, rtt, now);
	if (sum(left, packets(cc, FEW)) < state->round_flight / 5 * 4)
		cut_to(cc, state, left);
}

static void take_round(struct vb_cc *cc, struct state *state, const struct vb_cc_signal *signal)
{
	const uint32_t rtt = larger(as_ns(signal->rtt), 1);
	note_rtt(cc, state, rtt, signal->now);
	if (state->gives_way) {
		go_on_giving_way(cc, state, rtt, signal->now);
	} else if (is_long_ago(cc, state, state->least_at, signal->now)) {
		state->is_least_old = true;
		give_way(state, long_span(state), signal->now);
	} else {
		heed_much_lost(cc, state, rtt, signal->now);
		heed_queue(cc, state, signal->now);
	}
	state->round_at = signal->now;
	state->round_acked = state->round_lost = 0;
	state->round_flight = signal->flight;
	state->has_lost = state->has_overflown = false;
}

/* ---- Marks ------------------------------------------------------------------------------------------------------- */

static void cut_for_mark(struct vb_cc *cc, struct state *state)
{
	if (state->until_next_cut == 0)
		cut_to(cc, state, state->window - scaled(state->window, state->alpha, 2 * ALPHA_ONE));
}

/* Once a window the share of marks is averaged, with a weight of 1/16, as DCTCP. */
static void note_marks(struct state *state, uint32_t acked, bool is_marked)
{
	state->mark_acked = sum(state->mark_acked, acked);
	state->mark_had = sum(state->mark_had, is_marked ? acked : 0);
	if (state->mark_acked < state->window)
		return;
	const uint32_t marked = smaller(state->mark_had, state->mark_acked);
	state->alpha = state->alpha - state->alpha / 16 + scaled(ALPHA_ONE, marked, larger(state->mark_acked, 1)) / 16;
	state->mark_acked = state->mark_had = 0;
}

static void take_cnp(struct vb_cc *cc, struct state *state)
{
	state->mark_had = UINT32_MAX; /* it does not say how many, so it is all of the window */
	cut_for_mark(cc, state);
}

/* ---- Growth ------------------------------------------------------------------------------------------------------ */

/* A round is long. While there is a queue all grow alike, by as much in the same time as on a way of LONG_WAY. */
static uint32_t increase_on_long_way(const struct state *state)
{
	const uint32_t most = larger(INCREASE, state->window / GROWTH_LONG);
	if (state->quiet == 0)
		return smaller(INCREASE * (state->least / LONG_WAY), most);
	return state->quiet < QUIET_TO_DOUBLE ? larger(INCREASE, state->window / GROWTH_MOST) : most;
}

static uint32_t increase(const struct state *state)
{
	if (is_long_way(state))
		return increase_on_long_way(state);
	const uint32_t doublings = smaller(state->quiet / QUIET_TO_DOUBLE, DOUBLINGS_MAX);
	const uint32_t most = state->window / (state->quiet < VERY_QUIET ? GROWTH_MOST : GROWTH_QUIET);
	return smaller((uint32_t)INCREASE << doublings, larger(INCREASE, most));
}

static void grow(struct vb_cc *cc, struct state *state, uint32_t acked)
{
	if (waited(state) > allowed(cc, state) && !state->is_beside_others)
		return;
	if (!state->is_past_slow_start) {
		state->window = clamp(cc, (uint64_t)state->window + acked);
		return;
	}
	const uint32_t all = sum(state->grown_by, acked), rounds = all / state->window;
	state->grown_by = all % state->window;
	state->window = clamp(cc, state->window + (uint64_t)rounds * increase(state));
}

static void take_ack(struct vb_cc *cc, struct state *state, const struct vb_cc_signal *signal)
{
	state->round_acked = sum(state->round_acked, signal->acked);
	state->until_next_cut -= smaller(signal->acked, state->until_next_cut);
	if (signal->rtt > 0)
		take_round(cc, state, signal);
	give_up_giving_way(state, signal->now);
	note_marks(state, signal->acked, signal->is_marked);
	if (signal->is_marked)
		cut_for_mark(cc, state);
	else if (!state->gives_way && signal->flight >= cc->window_bytes / 2)
		grow(cc, state, signal->acked);
}

static void on_signal(struct vb_cc *cc, const struct vb_cc_signal *signal)
{
	struct state *state = vb_cc_state(cc);
	if (signal->event == VB_CC_ACKED)
		take_ack(cc, state, signal);
	else if (signal->event == VB_CC_LOST && signal->is_overflow)
		cut_for_overflow(cc, state);
	else if (signal->event == VB_CC_LOST)
		take_loss(cc, state, signal->lost, signal->now);
	else
		take_cnp(cc, state);
	answer(cc, state);
}

/* clang-format off */
static const struct vb_cc_parameter parameters[] = {
	[LONGEST] = { "longest", VB_QUANTITY_TIME, 5 * VB_MS, VB_US, VB_S,
		"how much longer than the shortest a round trip may be; 5ms: as CoDel's target (RFC 8289), and "
		"more than processes that wake up vary" },
	[SHARE] = { "share", VB_QUANTITY_GAIN, OF_SHORTEST, VB_GAIN_ONE / 1024, VB_GAIN_ONE,
		"or this share of the shortest, if that is longer; 1/4: assumed" },
	[AGAIN] = { "again", VB_QUANTITY_TIME, AGAIN_AFTER, 10 * VB_MS, 3600 * VB_S,
		"after so long without one about as short it gives way to measure that anew; 5s: as BBR's second "
		"version, and not more often than each 100 round trips" },
	[EVENLY] = { "evenly", VB_QUANTITY_TIME, EVENLY_FROM, VB_NS, 3600 * VB_S,
		"packets leave evenly where the shortest round trip is as long; 1ms: assumed" },
	[SHORTEST] = { "shortest", VB_QUANTITY_TIME, SHORTEST_QUEUE, VB_NS, VB_S,
		"a loss counts where the queue is longer; 500us: late wake-ups alone seem to make as long a one" },
};

const uint64_t vb_cc_queue_of_hosts[VB_CC_PARAMETERS_MAX] = {
	[LONGEST] = VB_S, [SHARE] = OF_SHORTEST, [AGAIN] = AGAIN_AFTER, [EVENLY] = EVENLY_FROM,
	[SHORTEST] = SHORTEST_QUEUE,
};
/* clang-format on */

const struct vb_cc_algorithm vb_cc_queue = {
	.name = "queue",
	.help = "a window that goes by the queue that round trips show, and by losses only where there is one",
	.goes_by = VB_CC_BY_DELAY | VB_CC_BY_LOSSES | VB_CC_BY_EACH_LOSS | VB_CC_BY_MARKS,
	.state_bytes = sizeof(struct state),
	.init = init,
	.on_signal = on_signal,
	.parameters = parameters,
	.parameter_count = sizeof(parameters) / sizeof(parameters[0]),
};
