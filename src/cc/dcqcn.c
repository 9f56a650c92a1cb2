/* DCQCN (Zhu et al., SIGCOMM 2015), the sender's part (reaction point). When congestion is reported, the rate is cut by
 * half of alpha, an average of recent congestion. The rate then returns to its former value in a few steps and probes
 * for more.
 *
 * The paper cuts on each CNP, and CNPs are spaced in time. NICs check by a clock (decrease-time) whether a CNP arrived,
 * and alpha has a clock of its own. A CNP arrives as a packet or as a flag of an acknowledgement.
 *
 * Holds: least rate <= rate <= line's, and rate <= target <= line's. Only two clocks need a timer: increases while the
 * rate is below the line's, and cuts while one is due. Alpha's ticks are computed when alpha is read. */
#include "base/invariant.h"
#include "cc/cc.h"

enum parameter {
	ALPHA_TIME,
	GAIN,
	ALPHA_START,
	DECREASE_TIME,
	INCREASE_TIME,
	INCREASE_BYTES,
	FAST_ROUNDS,
	INCREASE,
	HYPER_INCREASE,
	HYPER_GROWS,
	LEAST_RATE,
	LINE_RATE,
	CLAMP_TARGET,
	VARIABLE_WINDOW,
	CUT_ON_LOSS,
	PARAMETERS,
};

#define RATE_MOST 10000000000000
#define A_TIME    VB_NS, 10 * VB_S
#define LINE_LIVE 10000000000 /* bits a second, if the link's rate is not known */

enum { ROUNDS_MOST = 255 };

static const struct vb_cc_parameter parameters[] = {
	[ALPHA_TIME] = { "alpha-time", VB_QUANTITY_TIME, 55 * VB_US, A_TIME,
		"alpha falls after so long without a CNP (paper: 55 us)" },
	[GAIN] = { "g", VB_QUANTITY_GAIN, VB_GAIN_ONE / 256, 1, VB_GAIN_ONE,
		"weight of the newest in alpha (paper: 1/256)" },
	[ALPHA_START] = { "alpha-start", VB_QUANTITY_GAIN, VB_GAIN_ONE, 0, VB_GAIN_ONE,
		"alpha at the first CNP (paper: 1)" },
	[DECREASE_TIME] = { "decrease-time", VB_QUANTITY_TIME, 0, 0, 10 * VB_S,
		"the rate is cut so often at most, by a clock; 0: on each CNP (paper; NVIDIA: 4 us)" },
	[INCREASE_TIME] = { "increase-time", VB_QUANTITY_TIME, 55 * VB_US, A_TIME,
		"between increases by the timer (paper: 55 us; NVIDIA: 300 us)" },
	[INCREASE_BYTES] = { "increase-bytes", VB_QUANTITY_BYTES, 10000000, 0, UINT32_MAX / 2,
		"between increases by what was sent (paper: 10 MB); 0: none" },
	[FAST_ROUNDS] = { "fast-rounds", VB_QUANTITY_COUNT, 5, 0, 200,
		"increases that only go back half of the way to the target, before that grows (paper: 5; NVIDIA: 1)" },
	[INCREASE] = { "rai", VB_QUANTITY_RATE, 0, 0, RATE_MOST,
		"additive increase of the target; 0: a thousandth of the line's rate (paper: 40 Mb/s, at 40 Gb/s)" },
	[HYPER_INCREASE] = { "rhai", VB_QUANTITY_RATE, 0, 0, RATE_MOST,
		"hyper increase, when both timer and bytes have gone on for longer; 0: five of rai (its authors' "
		"simulator)" },
	[HYPER_GROWS] = { "hyper-grows", VB_QUANTITY_COUNT, 1, 0, 1,
		"1: that times the rounds it has lasted (paper); 0: always alike" },
	[LEAST_RATE] = { "min-rate", VB_QUANTITY_RATE, 0, 0, RATE_MOST,
		"the rate does not fall below; 0: a thousandth of the line's (assumed; NVIDIA: 1 Mb/s)" },
	[LINE_RATE] = { "line-rate", VB_QUANTITY_RATE, 0, 0, RATE_MOST,
		"the rate at first and at most; 0: the link's, and 10 Gb/s where that is not known" },
	[CLAMP_TARGET] = { "clamp-target", VB_QUANTITY_COUNT, 1, 0, 1,
		"1: each cut makes the rate until then the target (paper); 0: only if the timer has come up since the "
		"last one (NVIDIA)" },
	[VARIABLE_WINDOW] = { "variable-window", VB_QUANTITY_COUNT, 0, 0, 1,
		"1: the window is the largest one in proportion to the rate, as HPCC's authors have it; 0: always the "
		"largest" },
	[CUT_ON_LOSS] = { "cut-on-loss", VB_QUANTITY_COUNT, 1, 0, 1,
		"1: a loss counts as a CNP (assumed: the paper's network loses nothing)" },
};
_Static_assert(
	sizeof(parameters) / sizeof(parameters[0]) == PARAMETERS && PARAMETERS <= VB_CC_PARAMETERS_MAX, "a row each");

struct state {
	uint64_t target : 44;                       /* bytes a second */
	uint64_t time_rounds : 8, byte_rounds : 8;  /* increases since the last cut; ROUNDS_MOST: or more */
	uint64_t has_begun : 1;                     /* a CNP has arrived */
	uint64_t is_limited : 1;                    /* has not returned to the line's rate */
	uint64_t is_alpha_told : 1, is_cut_due : 1; /* of a CNP since the last tick */
	uint32_t alpha;                             /* of ALPHA_ONE */
	uint32_t sent;                              /* bytes since the last increase by them */
	vb_time alpha_at;                           /* the next tick of alpha's clock */
	/* the last cut, or first CNP: a tick of the clock of cuts, from which increases are timed, too */
	vb_time since;
};
_Static_assert(sizeof(struct state) <= sizeof((struct vb_cc){ 0 }.state), "it needs no memory of its own");

#define ALPHA_ONE (VB_GAIN_ONE / 2)

static uint64_t line_rate(const struct vb_cc *cc)
{
	uint64_t wanted = vb_cc_parameter(cc, LINE_RATE) / 8;
	if (wanted)
		return wanted;
	return cc->line_rate ? cc->line_rate : LINE_LIVE / 8;
}

static uint64_t rate_or(const struct vb_cc *cc, enum parameter which, uint64_t preset)
{
	uint64_t given = vb_cc_parameter(cc, which) / 8;
	return given ? given : preset ? preset : 1;
}

/* value * gain / VB_GAIN_ONE */
static uint64_t share_of(uint64_t value, uint64_t gain)
{
	return (uint64_t)((unsigned __int128)value * gain >> 32);
}

static uint64_t clamp(uint64_t value, uint64_t least, uint64_t most)
{
	return value < least ? least : value > most ? most : value;
}

/* Rate 0 means unpaced, so use the line rate. */
static uint64_t rate_of(const struct vb_cc *cc)
{
	return cc->rate ? cc->rate : cc->line_rate;
}

static void set_rate(struct vb_cc *cc, struct state *state, uint64_t rate, uint64_t target)
{
	uint64_t line = line_rate(cc), least = clamp(rate_or(cc, LEAST_RATE, line / 1000), 1, line);
	rate = clamp(rate, least, line);
	cc->rate = cc->line_rate && rate >= cc->line_rate ? 0 : rate;
	state->target = clamp(target, rate, line);
	uint64_t window = cc->max_window;
	if (vb_cc_parameter(cc, VARIABLE_WINDOW)) /* a packet may leave while less than the window is in flight */
		window = (uint64_t)((unsigned __int128)window * rate / line) + cc->min_window - 1;
	cc->window_bytes = (uint32_t)clamp(window, cc->min_window, cc->max_window);
}

static void init(struct vb_cc *cc, vb_time now)
{
	set_rate(cc, vb_cc_state(cc), line_rate(cc), line_rate(cc));
}

/* ---- Clocks ------------------------------------------------------------------------------------------------------ */

static vb_time next_increase(const struct vb_cc *cc, const struct state *state)
{
	return vb_time_add(state->since, (vb_time)(vb_cc_parameter(cc, INCREASE_TIME) * (state->time_rounds + 1u)));
}

/* A cut is due at the next tick. */
static vb_time next_cut(const struct vb_cc *cc, const struct state *state, vb_time now)
{
	vb_time period = (vb_time)vb_cc_parameter(cc, DECREASE_TIME);
	return vb_time_add(state->since, (vb_time_since(state->since, now) / period + 1) * period);
}

/* cut_at: valid if a cut is due. */
static void set_timer(struct vb_cc *cc, const struct state *state, vb_time cut_at)
{
	cc->timer = (struct vb_deadline){ next_increase(cc, state), state->is_limited };
	if (state->is_cut_due)
		cc->timer = vb_deadline_earlier(cc->timer, (struct vb_deadline){ cut_at, true });
}

/* gain^times */
static uint64_t power(uint64_t gain, uint64_t times)
{
	uint64_t made = VB_GAIN_ONE;
	for (; times; times >>= 1, gain = share_of(gain, gain))
		if (times & 1)
			made = share_of(made, gain);
	return made;
}

/* Applies all of alpha's ticks until now. At the first it rises if a CNP came before; at the others it falls. */
static void advance_alpha(const struct vb_cc *cc, struct state *state, vb_time now)
{
	uint64_t gain = vb_cc_parameter(cc, GAIN), period = vb_cc_parameter(cc, ALPHA_TIME);
	if (!vb_time_is_due(state->alpha_at, now))
		return;
	uint64_t ticks = (uint64_t)vb_time_since(state->alpha_at, now) / period + 1;
	uint64_t alpha = share_of(state->alpha, power(VB_GAIN_ONE - gain, ticks));
	if (state->is_alpha_told)
		alpha += share_of(gain / 2, power(VB_GAIN_ONE - gain, ticks - 1));
	assert(alpha <= ALPHA_ONE);
	state->alpha = (uint32_t)alpha;
	state->is_alpha_told = false;
	state->alpha_at = vb_time_add(state->alpha_at, (vb_time)(ticks * period));
}

/* ---- Cuts -------------------------------------------------------------------------------------------------------- */

static void cut(struct vb_cc *cc, struct state *state, vb_time now)
{
	uint64_t rate = rate_of(cc);
	bool is_clamped = vb_cc_parameter(cc, CLAMP_TARGET) || state->time_rounds > 0;
	set_rate(cc, state, rate - share_of(rate, state->alpha), is_clamped ? rate : state->target);
	state->is_limited = rate_of(cc) < line_rate(cc);
	state->is_cut_due = false;
	state->sent = 0;
	state->time_rounds = state->byte_rounds = 0;
	state->since = now;
}

static void begin(struct vb_cc *cc, struct state *state, vb_time now)
{
	state->has_begun = true;
	state->alpha = (uint32_t)(vb_cc_parameter(cc, ALPHA_START) / 2);
	state->alpha_at = vb_time_add(now, (vb_time)vb_cc_parameter(cc, ALPHA_TIME));
	state->since = now;
}

/* The paper's rule: each CNP is a cut and restarts alpha's clock. */
static void cut_at_once(struct vb_cc *cc, struct state *state, vb_time now)
{
	uint64_t gain = vb_cc_parameter(cc, GAIN);
	cut(cc, state, now);
	state->alpha = (uint32_t)(share_of(state->alpha, VB_GAIN_ONE - gain) + gain / 2);
	state->alpha_at = vb_time_add(now, (vb_time)vb_cc_parameter(cc, ALPHA_TIME));
	set_timer(cc, state, 0);
}

/* The NICs' rule: the cut comes at the next tick. */
static void cut_by_clock(struct vb_cc *cc, struct state *state, bool is_first, vb_time now)
{
	state->is_alpha_told = !is_first;
	if (state->is_cut_due)
		return;
	state->is_cut_due = true;
	set_timer(cc, state, next_cut(cc, state, now));
}

static void take_cnp(struct vb_cc *cc, struct state *state, vb_time now)
{
	bool is_first = !state->has_begun;
	if (is_first)
		begin(cc, state, now);
	advance_alpha(cc, state, now);
	if (vb_cc_parameter(cc, DECREASE_TIME))
		cut_by_clock(cc, state, is_first, now);
	else
		cut_at_once(cc, state, now);
}

static void on_signal(struct vb_cc *cc, const struct vb_cc_signal *signal)
{
	bool is_cnp = signal->event == VB_CC_CNP || (signal->event == VB_CC_ACKED && signal->is_marked) ||
		      (signal->event == VB_CC_LOST && vb_cc_parameter(cc, CUT_ON_LOSS));
	if (is_cnp)
		take_cnp(cc, vb_cc_state(cc), signal->now);
}

/* ---- Increases --------------------------------------------------------------------------------------------------- */

static uint64_t target_after(const struct vb_cc *cc, const struct state *state)
{
	uint32_t a = state->time_rounds, b = vb_cc_parameter(cc, INCREASE_BYTES) ? state->byte_rounds : a;
	uint32_t most = a > b ? a : b, least = a < b ? a : b, fast = (uint32_t)vb_cc_parameter(cc, FAST_ROUNDS);
	uint64_t step = rate_or(cc, INCREASE, line_rate(cc) / 1000);

	if (most < fast)
		return state->target;
	if (least <= fast)
		return state->target + step;
	return state->target +
	       rate_or(cc, HYPER_INCREASE, 5 * step) * (vb_cc_parameter(cc, HYPER_GROWS) ? least - fast : 1);
}

static void raise(struct vb_cc *cc, struct state *state)
{
	uint64_t line = line_rate(cc), target = clamp(target_after(cc, state), 0, line);
	set_rate(cc, state, (rate_of(cc) + target + 1) / 2, target);
	state->is_limited = rate_of(cc) < line;
}

static void on_send(struct vb_cc *cc, uint32_t bytes, vb_time now)
{
	struct state *state = vb_cc_state(cc);
	if (!state->is_limited)
		return;
	uint64_t every = vb_cc_parameter(cc, INCREASE_BYTES);
	state->sent += bytes;
	if (every == 0 || state->sent < every)
		return;
	state->sent = 0;
	raise(cc, state);
	if (state->byte_rounds < ROUNDS_MOST)
		state->byte_rounds++;
}

/* A late timer makes up for no missed increases. */
static void increase_by_time(struct vb_cc *cc, struct state *state, vb_time now)
{
	vb_time period = (vb_time)vb_cc_parameter(cc, INCREASE_TIME);
	raise(cc, state);
	if (state->time_rounds < ROUNDS_MOST)
		state->time_rounds++;
	else
		state->since = vb_time_add(state->since, period);
	if (vb_time_is_due(next_increase(cc, state), now))
		state->since = vb_time_add(now, -period * state->time_rounds);
}

/* True if a tick of the cut clock has passed since the timer was due. The timer is due at the first tick or before. */
static bool cut_is_due(const struct vb_cc *cc, const struct state *state, vb_time now)
{
	vb_time period = (vb_time)vb_cc_parameter(cc, DECREASE_TIME);
	return state->is_cut_due && vb_time_since(state->since, now) % period <= vb_time_since(cc->timer.at, now);
}

static void on_timer(struct vb_cc *cc, vb_time now)
{
	struct state *state = vb_cc_state(cc);
	bool is_cut_due = cut_is_due(cc, state, now);
	if (state->is_limited && vb_time_is_due(next_increase(cc, state), now))
		increase_by_time(cc, state, now);
	if (is_cut_due) {
		advance_alpha(cc, state, now);
		cut(cc, state, now);
	}
	set_timer(cc, state, state->is_cut_due ? next_cut(cc, state, now) : 0);
	assert(rate_of(cc) <= state->target);
}

const struct vb_cc_algorithm vb_cc_dcqcn = {
	.name = "dcqcn",
	.help = "a rate, cut when marks are told of (Zhu et al., SIGCOMM 2015)",
	.goes_by = VB_CC_BY_MARKS,
	.state_bytes = sizeof(struct state),
	.init = init,
	.on_signal = on_signal,
	.on_send = on_send,
	.on_timer = on_timer,
	.parameters = parameters,
	.parameter_count = PARAMETERS,
};
