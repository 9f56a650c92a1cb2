/* NSCC, the sender's congestion control of the Ultra Ethernet Transport (specification 1.0, 3.6.13), also of MRC: a
 * window by the delay in queues and by marks.
 *
 *   not marked, delay below the target   the window grows in proportion to what is missing; where the delay is next to
 *                                        nothing for a window, it grows by a part of what each acknowledgement brings
 *   not marked, delay at the target      others drain the queue, it grows by a fair step
 *   marked, delay below the target       another path may help, the window stays
 *   marked, delay at the target          it is cut by what the average delay is beyond the target, once a round trip
 *
 * Growth is collected and applied each eight packets or round trip. A loss takes a packet off. Once in a round trip and
 * a target, a loss or a very long delay sets the window to what has arrived in that time (quick adapt), if that is
 * little; then marks of what was in flight say nothing new.
 *
 * The delay is the round trip's excess over that without queues: the given one or, if shorter, the shortest measured.
 * Steps are scaled by the path's bytes in flight over those of the reference, 100 Gb/s and 12 us.
 *
 * Where nothing is marked the window shrinks by losses alone.
 * Holds: a packet <= window <= max-window, unless the holder's largest is less. */
#include "base/invariant.h"
#include "cc/cc.h"

enum {
	RTT,
	LINE_RATE,
	TARGET,
	MAX_WINDOW,
	RAISE,
	FAIR,
	FAST,
	FAST_BELOW,
	ETA,
	GAMMA,
	MAX_MD,
	AVERAGE,
	QA_GATE,
	QA_DELAY
};

#define REFERENCE_RTT   (12 * VB_US)
#define REFERENCE_BYTES 150000u     /* of 100 Gb/s in that time */
#define LINE_LIVE       10000000000 /* bits a second, if the link's rate is not known */
#define ADJUST_PACKETS  8u
#define SHARES          1000000u /* as parameters have them */

struct state {
	vb_time base;    /* the round trip without queues */
	vb_time delay;   /* the newest measurement's, in queues; below 0: nothing is measured yet */
	vb_time average; /* of the delay */
	uint64_t grown;  /* that is to be added, times the window */
	uint64_t fresh;  /* bytes acknowledged since growth was applied */
	uint64_t idle;   /* bytes acknowledged in a row, with next to no delay */
	uint64_t arrived, ignored, to_ignore; /* of quick adapt, bytes */
	vb_time adjusted_at, cut_at, adapts_at;
	bool has_begun, was_cut, is_fast, has_lost; /* has_lost: since the last quick adapt */
};

/* value * gain / VB_GAIN_ONE */
static uint64_t times(uint64_t value, uint64_t gain)
{
	return (uint64_t)((unsigned __int128)value * gain / VB_GAIN_ONE);
}

static uint64_t share_of(uint64_t value, uint64_t share)
{
	return (uint64_t)((unsigned __int128)value * share / SHARES);
}

static uint64_t least(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

/* ---- The path ---------------------------------------------------------------------------------------------------- */

static uint64_t line_rate(const struct vb_cc *cc)
{
	const uint64_t given = vb_cc_parameter(cc, LINE_RATE) / 8;
	if (given)
		return given;
	return cc->line_rate ? cc->line_rate : LINE_LIVE / 8;
}

static uint64_t in_time(const struct vb_cc *cc, vb_time time)
{
	return (uint64_t)((unsigned __int128)line_rate(cc) * (uint64_t)time / VB_S);
}

/* By this the network's steps are scaled: its whole path, not the one that this flow measures. */
static uint64_t path_bytes(const struct vb_cc *cc)
{
	return in_time(cc, (vb_time)vb_cc_parameter(cc, RTT));
}

static vb_time target(const struct vb_cc *cc)
{
	return (vb_time)share_of(vb_cc_parameter(cc, RTT), vb_cc_parameter(cc, TARGET));
}

static uint64_t largest(const struct vb_cc *cc, const struct state *state)
{
	const uint64_t most = share_of(in_time(cc, state->base), vb_cc_parameter(cc, MAX_WINDOW));
	return most > cc->min_window ? least(most, cc->max_window) : cc->min_window;
}

/* A packet, scaled. */
static uint64_t step(const struct vb_cc *cc)
{
	return (uint64_t)((unsigned __int128)cc->min_window * path_bytes(cc) / REFERENCE_BYTES);
}

/* ---- The window -------------------------------------------------------------------------------------------------- */

static void set_window(struct vb_cc *cc, const struct state *state, uint64_t window)
{
	const uint64_t most = largest(cc, state);
	cc->window_bytes = (uint32_t)(window < cc->min_window ? cc->min_window : least(window, most));
}

static void init(struct vb_cc *cc, vb_time now)
{
	struct state *state = vb_cc_state(cc);
	state->base = (vb_time)vb_cc_parameter(cc, RTT);
	state->delay = -1;
	state->adjusted_at = now;
	set_window(cc, state, largest(cc, state));
}

/* True: no queue is seen, and has not been for a whole window. */
static bool grow_fast(struct vb_cc *cc, struct state *state, uint32_t acked)
{
	if ((uint64_t)state->delay >= vb_cc_parameter(cc, FAST_BELOW)) {
		state->idle = 0;
		return state->is_fast = false;
	}
	state->idle += acked;
	state->is_fast |= state->idle > cc->window_bytes;
	if (state->is_fast) {
		const uint64_t scaled = (uint64_t)((unsigned __int128)acked * path_bytes(cc) / REFERENCE_BYTES);
		set_window(cc, state, cc->window_bytes + times(scaled, vb_cc_parameter(cc, FAST)));
	}
	return state->is_fast;
}

static void grow(struct vb_cc *cc, struct state *state, uint32_t acked)
{
	unsigned __int128 by = (unsigned __int128)step(cc) * vb_cc_parameter(cc, FAIR);
	if (state->delay < target(cc)) {
		if (grow_fast(cc, state, acked))
			return;
		by = (unsigned __int128)step(cc) * vb_cc_parameter(cc, RAISE) * (uint64_t)(target(cc) - state->delay) /
		     REFERENCE_RTT;
	}
	const unsigned __int128 more = by * acked + state->grown;
	state->grown = more < UINT64_MAX ? (uint64_t)more : UINT64_MAX;
}

static void cut(struct vb_cc *cc, struct state *state, vb_time now)
{
	const vb_time beyond = state->average - target(cc);
	state->is_fast = false;
	state->idle = 0;
	if (beyond <= 0 || (state->was_cut && vb_time_since(state->cut_at, now) <= state->base))
		return;
	const uint64_t share =
		(uint64_t)((unsigned __int128)vb_cc_parameter(cc, GAMMA) * (uint64_t)beyond / (uint64_t)state->average);
	state->was_cut = true;
	state->cut_at = now;
	set_window(cc, state, cc->window_bytes - times(cc->window_bytes, least(share, vb_cc_parameter(cc, MAX_MD))));
}

static void forget_growth(struct state *state)
{
	state->grown = state->fresh = 0;
}

static void apply_growth(struct vb_cc *cc, struct state *state, vb_time now)
{
	const bool is_period = vb_time_since(state->adjusted_at, now) >= (vb_time)vb_cc_parameter(cc, RTT);
	if (state->fresh <= ADJUST_PACKETS * cc->min_window && !is_period)
		return;
	const uint64_t window = cc->window_bytes + state->grown / cc->window_bytes;
	set_window(cc, state, window + (is_period ? times(step(cc), vb_cc_parameter(cc, ETA)) : 0));
	if (is_period)
		state->adjusted_at = now;
	forget_growth(state);
}

/* Whether this decides alone. Even where it does not, a new span of time begins. */
static bool adapt(struct vb_cc *cc, struct state *state, bool says_little, uint32_t flight, vb_time now)
{
	if (says_little && state->ignored < state->to_ignore) {
		forget_growth(state);
		return true;
	}
	if (state->has_begun && !vb_time_is_due(state->adapts_at, now))
		return false;
	const bool is_late = state->delay > target(cc) * (vb_time)vb_cc_parameter(cc, QA_DELAY);
	const bool is_little = state->arrived < largest(cc, state) >> vb_cc_parameter(cc, QA_GATE);
	const bool adapts = state->has_begun && (state->has_lost || is_late) && is_little;
	if (adapts) {
		set_window(cc, state, least(state->arrived, cc->window_bytes));
		state->to_ignore = flight;
		state->ignored = 0;
		state->has_lost = false;
		forget_growth(state);
	}
	state->has_begun = true;
	state->arrived = 0;
	state->adapts_at = vb_time_add(now, state->base + target(cc));
	return adapts;
}

/* ---- What is told ------------------------------------------------------------------------------------------------ */

static void average(const struct vb_cc *cc, struct state *state, vb_time delay)
{
	const __int128 gain = (__int128)vb_cc_parameter(cc, AVERAGE);
	state->average += (vb_time)((delay - state->average) * gain / (__int128)VB_GAIN_ONE);
}

static void measure(const struct vb_cc *cc, struct state *state, vb_time rtt, bool is_marked)
{
	if (rtt > 0 && rtt < state->base)
		state->base = rtt;
	if (rtt > 0)
		state->delay = rtt - state->base;
	if (state->delay >= 0) /* what drains unmarked is on its way down */
		average(cc, state, !is_marked && state->delay > target(cc) ? state->base / 4 : state->delay);
}

static void take_ack(struct vb_cc *cc, struct state *state, const struct vb_cc_signal *signal)
{
	const uint32_t left = signal->flight > signal->acked ? signal->flight - signal->acked : 0;
	state->arrived += signal->acked;
	state->fresh += signal->acked;
	state->ignored += signal->acked;
	measure(cc, state, signal->rtt, signal->is_marked);
	set_window(cc, state, cc->window_bytes); /* a shorter way holds less */
	if (state->delay < 0 || adapt(cc, state, signal->is_marked, left, signal->now))
		return;
	if (!signal->is_marked)
		grow(cc, state, signal->acked);
	else if (state->delay >= target(cc))
		cut(cc, state, signal->now);
	apply_growth(cc, state, signal->now);
}

static void take_loss(struct vb_cc *cc, struct state *state, const struct vb_cc_signal *signal)
{
	uint32_t lost = (signal->lost ? signal->lost : 1) * cc->min_window;
	state->ignored += lost;
	state->has_lost = true;
	average(cc, state, (vb_time)vb_cc_parameter(cc, RTT)); /* a queue was full */
	if (!adapt(cc, state, true, signal->flight, signal->now))
		set_window(cc, state, cc->window_bytes > lost ? cc->window_bytes - lost : 0);
}

static void on_signal(struct vb_cc *cc, const struct vb_cc_signal *signal)
{
	struct state *state = vb_cc_state(cc);
	switch (signal->event) {
	case VB_CC_ACKED:
		take_ack(cc, state, signal);
		break;
	case VB_CC_CNP: /* a mark, of who knows which packet */
		if (state->delay >= target(cc) && state->ignored >= state->to_ignore)
			cut(cc, state, signal->now);
		break;
	case VB_CC_LOST:
		take_loss(cc, state, signal);
		break;
	}
	assert(cc->window_bytes >= cc->min_window && cc->window_bytes <= largest(cc, state));
}

/* clang-format off */
static const struct vb_cc_parameter parameters[] = {
	[RTT] = { "rtt", VB_QUANTITY_TIME, 13 * VB_US, 100 * VB_NS, VB_S,
		"the round trip of the longest way when nobody waits; a shorter one that was measured replaces it; "
		"path: of each flow's own; 13us: that of hpcc and dctcp. Live 1ms: assumed",
		.live = VB_MS, .may_be_path = true },
	[LINE_RATE] = { "line-rate", VB_QUANTITY_RATE, 0, 0, 10000000000000,
		"of the link, for the bytes that a path holds; 0: the link's, and 10 Gb/s where that is not known" },
	[TARGET] = { "target", VB_QUANTITY_SHARE, 750000, 1000, 100000000,
		"the delay in queues that is aimed at, of rtt; 75%: UET, where switches trim; 100% where they do not" },
	[MAX_WINDOW] = { "max-window", VB_QUANTITY_SHARE, 1500000, 1000, 100000000,
		"the first and largest window, of what the path holds; 150%: UET" },
	[RAISE] = { "raise", VB_QUANTITY_COUNT, 4, 0, 1000,
		"packets a round trip and 12us below the target, scaled; 4: UET (alpha)" },
	[FAIR] = { "fair", VB_QUANTITY_COUNT, 5, 0, 1000,
		"packets a round trip at or above the target, where nothing is marked, scaled; 5: UET (fi)" },
	[FAST] = { "fast", VB_QUANTITY_GAIN, VB_GAIN_ONE / 4, 0, VB_GAIN_ONE,
		"of what was acknowledged while no queue is seen, scaled; 0.25: UET (fi_scale)" },
	[FAST_BELOW] = { "fast-below", VB_QUANTITY_TIME, VB_US, 0, VB_S,
		"a delay below which no queue is seen; 1us: as htsim has it. Live 50us: assumed", .live = 50 * VB_US },
	[ETA] = { "eta", VB_QUANTITY_GAIN, (VB_GAIN_ONE * 15 + 50) / 100, 0, VB_GAIN_ONE,
		"packets a round trip in any case, scaled; 0.15: UET" },
	[GAMMA] = { "gamma", VB_QUANTITY_GAIN, (VB_GAIN_ONE * 8 + 5) / 10, 1, VB_GAIN_ONE,
		"how much is taken off of what is beyond the target; 0.8: UET" },
	[MAX_MD] = { "max-md", VB_QUANTITY_GAIN, VB_GAIN_ONE / 2, 1, VB_GAIN_ONE - 1,
		"the most that is taken off at once; 0.5: as htsim has it" },
	[AVERAGE] = { "average", VB_QUANTITY_GAIN, (VB_GAIN_ONE * 125 + 5000) / 10000, 1, VB_GAIN_ONE,
		"what an acknowledgement weighs in the average delay; 0.0125: as htsim has it" },
	[QA_GATE] = { "qa-gate", VB_QUANTITY_COUNT, 3, 0, 30,
		"quick adapt sets the window to what arrived if that is below the largest / 2^this; 3: UET" },
	[QA_DELAY] = { "qa-delay", VB_QUANTITY_COUNT, 4, 0, 1000,
		"and if something was lost, or the delay is above so many targets; 4: UET (qa_threshold)" },
};
/* clang-format on */

static uint64_t supposes(const uint64_t *values)
{
	return values[RTT];
}

const struct vb_cc_algorithm vb_cc_nscc = {
	.name = "nscc",
	.help = "a window by marks and the delay in queues (Ultra Ethernet 1.0); without marks only losses shrink it",
	.goes_by = VB_CC_BY_DELAY | VB_CC_BY_MARKS | VB_CC_BY_LOSSES | VB_CC_BY_EACH_LOSS,
	.state_bytes = sizeof(struct state),
	.init = init,
	.on_signal = on_signal,
	.parameters = parameters,
	.parameter_count = sizeof(parameters) / sizeof(parameters[0]),
	.supposes = supposes,
};
