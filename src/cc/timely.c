/* TIMELY (Mittal et al., SIGCOMM 2015): a rate that follows the gradient of the round-trip time. Below T_low it grows
 * by a step, and above T_high it shrinks, whatever the gradient. In between it grows while the round trip falls, by
 * several steps after some falls in a row, and shrinks in proportion to a rise. One measurement a round trip counts. It
 * has no fixed point, so unequal shares may persist. The patched variant (Zhu et al., CoNEXT 2016) also uses the
 * distance from T_low between the bounds. Flows then converge to equal shares with a queue of q' + N * delta * q' /
 * (beta * C), where q' is what C sends in T_low.
 * Holds: min-rate <= rate <= the link's, if that is known. */
#include "base/invariant.h"
#include "cc/cc.h"

enum { T_LOW, T_HIGH, ALPHA, BETA, DELTA, HAI, HAI_AFTER, HAI_BELOW, MIN_RTT, MIN_RATE, PATCHED };

#define FINER 20 /* bits: the average is finer than picoseconds, since its sign counts even if it is small */

struct state {
	vb_time last;       /* 0: none */
	int64_t difference; /* average difference of successive measurements */
	uint32_t growths;   /* in a row */
};

_Static_assert(sizeof(struct state) <= sizeof(((struct vb_cc *)0)->state), "of each QP");

static uint64_t most(const struct vb_cc *cc)
{
	uint64_t window = (uint64_t)((unsigned __int128)cc->max_window * VB_S / vb_cc_parameter(cc, MIN_RTT));
	return cc->line_rate ? cc->line_rate : window;
}

static void set_rate(struct vb_cc *cc, uint64_t rate)
{
	uint64_t least = vb_cc_parameter(cc, MIN_RATE) / 8;
	if (rate < least)
		rate = least;
	if (rate > most(cc))
		rate = most(cc);
	cc->rate = rate ? rate : 1;
}

/* If the link's rate is not known, start as a window that is acknowledged in the least round trip. */
static void init(struct vb_cc *cc, vb_time now)
{
	uint64_t rate = (uint64_t)((unsigned __int128)cc->window_bytes * VB_S / vb_cc_parameter(cc, MIN_RTT));
	set_rate(cc, cc->line_rate ? cc->line_rate : rate);
	cc->window_bytes = cc->max_window;
}

/* ---- Growing and shrinking --------------------------------------------------------------------------------------- */

static void grow(struct vb_cc *cc, struct state *state, bool counts)
{
	uint64_t step = vb_cc_parameter(cc, DELTA) / 8;
	bool is_hyper = counts && state->growths >= vb_cc_parameter(cc, HAI_AFTER);
	set_rate(cc, cc->rate + (is_hyper ? step * vb_cc_parameter(cc, HAI) : step));
	if (counts && state->growths < UINT32_MAX)
		state->growths++;
}

/* By a share, parts of VB_GAIN_ONE. */
static uint64_t less(uint64_t rate, unsigned __int128 share)
{
	if (share > VB_GAIN_ONE)
		share = VB_GAIN_ONE;
	return (uint64_t)(rate * (VB_GAIN_ONE - share) / VB_GAIN_ONE);
}

/* Multiplies the rate by 1 - beta * (1 - T_high / rtt). */
static void shrink_to_bound(struct vb_cc *cc, vb_time rtt)
{
	unsigned __int128 beyond = (unsigned __int128)(uint64_t)rtt - vb_cc_parameter(cc, T_HIGH);
	set_rate(cc, less(cc->rate, beyond * vb_cc_parameter(cc, BETA) / (uint64_t)rtt));
}

static void follow_gradient(struct vb_cc *cc, struct state *state)
{
	if (state->difference <= 0) {
		grow(cc, state, true);
		return;
	}
	unsigned __int128 share = (unsigned __int128)(uint64_t)state->difference * vb_cc_parameter(cc, BETA);
	state->growths = 0;
	set_rate(cc, less(cc->rate, share / vb_cc_parameter(cc, MIN_RTT) >> FINER));
}

/* Zhu et al., algorithm 2: delta * (1 - w) + rate * (1 - beta * w * error), where w goes from 0 to 1 as the gradient
 * goes from -1/4 to 1/4, and error is (rtt - T_low) / T_low. */
static void follow_both(struct vb_cc *cc, const struct state *state, vb_time rtt)
{
	__int128 gradient =
		(__int128)state->difference * (int64_t)(VB_GAIN_ONE >> FINER) / (int64_t)vb_cc_parameter(cc, MIN_RTT);
	__int128 weight = 2 * gradient + (int64_t)(VB_GAIN_ONE / 2);
	uint64_t low = vb_cc_parameter(cc, T_LOW);
	if (weight < 0)
		weight = 0;
	if (weight > (__int128)VB_GAIN_ONE)
		weight = VB_GAIN_ONE;
	unsigned __int128 share =
		(unsigned __int128)weight * vb_cc_parameter(cc, BETA) / VB_GAIN_ONE * ((uint64_t)rtt - low) / low;
	uint64_t added = less(vb_cc_parameter(cc, DELTA) / 8, (unsigned __int128)weight);
	set_rate(cc, less(cc->rate, share) + added);
}

static void react(struct vb_cc *cc, struct state *state, vb_time rtt)
{
	if ((uint64_t)rtt < vb_cc_parameter(cc, T_LOW)) {
		grow(cc, state, vb_cc_parameter(cc, HAI_BELOW));
	} else if ((uint64_t)rtt > vb_cc_parameter(cc, T_HIGH)) {
		state->growths = 0;
		shrink_to_bound(cc, rtt);
	} else if (vb_cc_parameter(cc, PATCHED)) {
		follow_both(cc, state, rtt);
	} else {
		follow_gradient(cc, state);
	}
}

/* average = (1 - alpha) * average + alpha * new. */
static void average(const struct vb_cc *cc, struct state *state, vb_time rtt)
{
	__int128 newest = (__int128)(rtt - state->last) * (1 << FINER);
	__int128 change = (newest - state->difference) * (int64_t)vb_cc_parameter(cc, ALPHA) / (int64_t)VB_GAIN_ONE;
	state->difference += (int64_t)change;
}

static void on_signal(struct vb_cc *cc, const struct vb_cc_signal *signal)
{
	struct state *state = vb_cc_state(cc);
	if (signal->event != VB_CC_ACKED || signal->rtt <= 0)
		return;
	if (state->last) {
		average(cc, state, signal->rtt);
		react(cc, state, signal->rtt);
	}
	state->last = signal->rtt;
	assert(cc->rate >= 1);
}

/* clang-format off */
static const struct vb_cc_parameter parameters[] = {
	[T_LOW] = { "t-low", VB_QUANTITY_TIME, 50 * VB_US, VB_NS, VB_S,
		"a round trip below which the rate grows; 50us: Mittal et al., SIGCOMM 2015, 5" },
	[T_HIGH] = { "t-high", VB_QUANTITY_TIME, 500 * VB_US, VB_NS, VB_S,
		"and above which it shrinks; 500us: Mittal et al., 5" },
	[ALPHA] = { "alpha", VB_QUANTITY_GAIN, VB_GAIN_ONE / 8 * 7, 1, VB_GAIN_ONE,
		"what the newest change weighs in their average; 0.875: Mittal et al., 5, and HPCC's authors in "
		"their simulations" },
	[BETA] = { "beta", VB_QUANTITY_GAIN, (VB_GAIN_ONE * 8 + 5) / 10, 1, VB_GAIN_ONE,
		"how much of the gradient, or of what is beyond t-high, is taken off; 0.8: Mittal et al., 5. "
		"Patched: 0.008" },
	[DELTA] = { "rai", VB_QUANTITY_RATE, 10000000, 8, 1000000000000,
		"delta, the step that the rate grows by; 10 Mb/s: Mittal et al., 5. HPCC's authors have 100 Mb/s" },
	[HAI] = { "hai", VB_QUANTITY_COUNT, 5, 1, 1000,
		"steps at a time when it has grown for long; 5: Mittal et al., 4.3" },
	[HAI_AFTER] = { "hai-after", VB_QUANTITY_COUNT, 5, 0, 1000000,
		"growths in a row after which that is so; 5: Mittal et al., 4.3" },
	[HAI_BELOW] = { "hai-below", VB_QUANTITY_COUNT, 0, 0, 1,
		"1: growths below t-low count there, and are several steps too, as in the simulations of HPCC's "
		"authors; 0: as published" },
	[MIN_RTT] = { "min-rtt", VB_QUANTITY_TIME, 20 * VB_US, VB_NS, VB_S,
		"what a change is compared with; 20us: Mittal et al., 5, and HPCC's authors in their simulations" },
	[MIN_RATE] = { "min-rate", VB_QUANTITY_RATE, 10000000, 8, 1000000000000,
		"below which nobody is slowed down; 10 Mb/s: one step, assumed. HPCC's authors have 1 Gb/s" },
	[PATCHED] = { "patched", VB_QUANTITY_COUNT, 0, 0, 1,
		"1: between the bounds heed how far from t-low, too (Zhu et al., CoNEXT 2016); beta is 0.008 then" },
};
/* clang-format on */

const struct vb_cc_algorithm vb_cc_timely = {
	.name = "timely",
	.help = "a rate by how the round-trip time changes (Mittal et al., SIGCOMM 2015)",
	.goes_by = VB_CC_BY_DELAY,
	.state_bytes = sizeof(struct state),
	.init = init,
	.on_signal = on_signal,
	.parameters = parameters,
	.parameter_count = sizeof(parameters) / sizeof(parameters[0]),
};
