/* Swift (Kumar et al., SIGCOMM 2020): a window that holds the round-trip time at a target. Below the target each window
 * of acknowledgements adds ai packets. Above it the window is cut in proportion to the excess, once a round trip. The
 * target is longer on longer paths, and for small windows, since the queue of many flows varies more. A window below
 * one packet sends a packet every round trip / window. Windows are kept in packets of cc->min_window bytes. Not here:
 * the paper's separate host delay, since no peer tells when its NIC took a packet.
 * Holds: min-window <= window <= the holder's largest. */
#include "base/invariant.h"
#include "cc/cc.h"

enum { BASE, HOP, HOPS, FS_RANGE, FS_MIN, FS_MAX, AI, BETA, MAX_MDF, MIN_WINDOW, RETRIES, ABOVE_LEAST };

#define ONE VB_GAIN_ONE /* packet */

struct state {
	uint64_t window; /* parts of ONE */
	uint32_t packet; /* bytes of ONE: cc->min_window */
	vb_time delay;   /* the newest measurement; 0: none */
	vb_time target;
	vb_time least; /* least round trip measured; 0: none */
	vb_time cut_at;
	bool was_cut;
	uint32_t losses;                   /* in a row, nothing acknowledged between */
	uint32_t inverse_min, inverse_max; /* of fs-min and fs-max, see inverse_root */
};

/* 2^16 / sqrt of a window in packets. */
static uint32_t inverse_root(uint64_t window)
{
	uint64_t square = UINT64_MAX / (window ? window : 1), root = 0;
	for (uint64_t bit = UINT64_C(1) << 31; bit; bit >>= 1)
		if ((root | bit) * (root | bit) <= square)
			root |= bit;
	return (uint32_t)root;
}

/* ---- The target -------------------------------------------------------------------------------------------------- */

/* fs-range at a window of fs-min and below, nothing at fs-max and above, by 1 / sqrt(window) between. */
static vb_time scaled_by_flows(const struct vb_cc *cc, const struct state *state)
{
	vb_time range = (vb_time)vb_cc_parameter(cc, FS_RANGE);
	uint32_t inverse;
	if (range == 0 || (inverse = inverse_root(state->window)) <= state->inverse_max)
		return 0;
	if (inverse >= state->inverse_min)
		return range;
	return (vb_time)((unsigned __int128)(uint64_t)range * (inverse - state->inverse_max) /
			 (state->inverse_min - state->inverse_max));
}

/* A target below the path's delay without queues cannot be met by any window. */
static vb_time least_target(const struct vb_cc *cc, const struct state *state)
{
	const uint64_t share = vb_cc_parameter(cc, ABOVE_LEAST);
	return share ? state->least + (vb_time)((unsigned __int128)(uint64_t)state->least * share / VB_GAIN_ONE) : 0;
}

static vb_time target(const struct vb_cc *cc, const struct state *state)
{
	const vb_time base =
		(vb_time)(vb_cc_parameter(cc, BASE) + vb_cc_parameter(cc, HOP) * vb_cc_parameter(cc, HOPS));
	const vb_time least = least_target(cc, state);
	return (base > least ? base : least) + scaled_by_flows(cc, state);
}

/* ---- The window -------------------------------------------------------------------------------------------------- */

static void set_window(struct vb_cc *cc, struct state *state, uint64_t window)
{
	uint64_t most = cc->max_window * ONE / cc->min_window, least = vb_cc_parameter(cc, MIN_WINDOW);
	if (window > most)
		window = most;
	if (window < least)
		window = least;
	state->window = window;
	cc->window_bytes = window < ONE ? cc->min_window : (uint32_t)((unsigned __int128)window * cc->min_window / ONE);
	cc->rate = 0;
	if (window >= ONE || state->delay == 0)
		return;
	cc->rate = (uint64_t)((unsigned __int128)cc->min_window * VB_S * window / ONE / (uint64_t)state->delay);
	if (cc->rate == 0)
		cc->rate = 1;
}

static void init(struct vb_cc *cc, vb_time now)
{
	struct state *state = vb_cc_state(cc);
	state->inverse_min = inverse_root(vb_cc_parameter(cc, FS_MIN));
	state->inverse_max = inverse_root(vb_cc_parameter(cc, FS_MAX) * ONE);
	state->packet = cc->min_window;
	set_window(cc, state, cc->window_bytes * ONE / cc->min_window);
}

/* The holder's packets are larger from now on: the window is as many bytes as before. */
static void heed_packet(struct vb_cc *cc, struct state *state)
{
	if (state->packet == cc->min_window)
		return;
	uint64_t window = (uint64_t)((unsigned __int128)state->window * state->packet / cc->min_window);
	state->packet = cc->min_window;
	set_window(cc, state, window);
}

/* Adds ai packets a window; below one packet, ai of what is acknowledged. An unused window tells nothing about the
 * network's capacity. */
static void grow(struct vb_cc *cc, struct state *state, const struct vb_cc_signal *signal)
{
	if (signal->flight < cc->window_bytes / 2)
		return;
	uint64_t acked = signal->acked * ONE / cc->min_window;
	uint64_t over = state->window > ONE ? state->window : ONE;
	uint64_t step = (uint64_t)((unsigned __int128)acked * vb_cc_parameter(cc, AI) / over);
	set_window(cc, state, state->window + step);
}

/* Once a round trip. */
static void cut(struct vb_cc *cc, struct state *state, uint64_t share, vb_time now)
{
	uint64_t largest = vb_cc_parameter(cc, MAX_MDF);
	if (state->was_cut && vb_time_since(state->cut_at, now) < state->delay)
		return;
	if (share > largest)
		share = largest;
	state->was_cut = true;
	state->cut_at = now;
	set_window(cc, state, (uint64_t)((unsigned __int128)state->window * (ONE - share) / ONE));
}

static void take_ack(struct vb_cc *cc, struct state *state, const struct vb_cc_signal *signal)
{
	state->losses = 0;
	if (signal->rtt > 0) {
		state->delay = signal->rtt;
		state->least = state->least && state->least < signal->rtt ? state->least : signal->rtt;
		state->target = target(cc, state);
	}
	if (state->delay > 0 && state->delay <= state->target) {
		grow(cc, state, signal);
	} else if (signal->rtt > 0) {
		uint64_t beyond = (uint64_t)(state->delay - state->target);
		cut(cc, state,
			(uint64_t)((unsigned __int128)beyond * vb_cc_parameter(cc, BETA) / (uint64_t)state->delay),
			signal->now);
	}
}

static void take_loss(struct vb_cc *cc, struct state *state, vb_time now)
{
	if (++state->losses >= vb_cc_parameter(cc, RETRIES))
		set_window(cc, state, 0);
	else
		cut(cc, state, ONE, now);
}

static void on_signal(struct vb_cc *cc, const struct vb_cc_signal *signal)
{
	struct state *state = vb_cc_state(cc);
	heed_packet(cc, state);
	if (signal->event == VB_CC_ACKED)
		take_ack(cc, state, signal);
	else if (signal->event == VB_CC_LOST)
		take_loss(cc, state, signal->now);
	assert(cc->window_bytes >= cc->min_window && cc->window_bytes <= cc->max_window);
}

/* clang-format off */
static const struct vb_cc_parameter parameters[] = {
	[BASE] = { "base-target", VB_QUANTITY_TIME, 25 * VB_US, VB_NS, VB_S,
		"the round trip to be held on the shortest way by a large window; 25us: assumed; htsim has 20us. "
		"Live 1ms: "
		"of processes that wake up for what comes, assumed. path: what each flow's own way takes when nobody "
		"waits", .live = VB_MS,
		.may_be_path = true },
	[HOP] = { "per-hop", VB_QUANTITY_TIME, VB_US, 0, VB_MS,
		"what each switch on the way adds to it; 1us: assumed" },
	[HOPS] = { "hops", VB_QUANTITY_COUNT, 0, 0, 255,
		"switches on the way; 0: base-target has them in it. Three tiers: 5" },
	[FS_RANGE] = { "fs-range", VB_QUANTITY_TIME, 125 * VB_US, 0, VB_S,
		"what the smallest windows have in addition; 125us: five base-targets, as htsim has it; 0: none has. "
		"Live 5ms", .live = 5 * VB_MS },
	[FS_MIN] = { "fs-min", VB_QUANTITY_GAIN, (VB_GAIN_ONE + 5) / 10, VB_GAIN_ONE / 1000, VB_GAIN_ONE,
		"windows of so many packets, and below, have all of it; 0.1: Kumar et al., 3.5" },
	[FS_MAX] = { "fs-max", VB_QUANTITY_COUNT, 100, 2, 1000000,
		"of so many, and above, have none of it; 100: Kumar et al., 3.5" },
	[AI] = { "ai", VB_QUANTITY_GAIN, VB_GAIN_ONE, 1, VB_GAIN_ONE,
		"packets that a window grows by in a round trip; 1: as htsim has it, a guess there too" },
	[BETA] = { "beta", VB_QUANTITY_GAIN, (VB_GAIN_ONE * 8 + 5) / 10, 1, VB_GAIN_ONE,
		"how much is taken off of what is beyond the target; 0.8: as htsim has it, a guess there too" },
	[MAX_MDF] = { "max-mdf", VB_QUANTITY_GAIN, VB_GAIN_ONE / 2, 1, VB_GAIN_ONE - 1,
		"the most that is taken off at once; 0.5: as htsim has it, a guess there too" },
	[MIN_WINDOW] = { "min-window", VB_QUANTITY_GAIN, VB_GAIN_ONE / 1000, 1, VB_GAIN_ONE,
		"packets, the smallest window; 0.001: assumed" },
	[RETRIES] = { "retries", VB_QUANTITY_COUNT, 5, 1, 1000,
		"losses without an answer between, after which the window is the smallest; 5: as htsim has it" },
	[ABOVE_LEAST] = { "above-least", VB_QUANTITY_GAIN, 0, 0, VB_GAIN_ONE,
		"the target is not below the shortest round trip that was measured and this share of it; 0: it is "
		"what the others say, "
		"as published. Live 1/4, assumed, for nobody knows how long the way is", .live = VB_GAIN_ONE / 4 },
};
/* clang-format on */

static uint64_t supposes(const uint64_t *values)
{
	return values[ABOVE_LEAST] ? 0 : values[BASE] + values[HOP] * values[HOPS];
}

const struct vb_cc_algorithm vb_cc_swift = {
	.name = "swift",
	.help = "a window that holds the round-trip time at a target (Kumar et al., SIGCOMM 2020)",
	.goes_by = VB_CC_BY_DELAY | VB_CC_BY_LOSSES,
	.state_bytes = sizeof(struct state),
	.init = init,
	.on_signal = on_signal,
	.parameters = parameters,
	.parameter_count = sizeof(parameters) / sizeof(parameters[0]),
	.supposes = supposes,
};
