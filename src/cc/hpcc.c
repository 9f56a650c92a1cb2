/* HPCC (Li et al., SIGCOMM 2019). Each acknowledgement tells the load of the path's busiest port: the bytes it sends
 * and queues, as a share of its capacity over a round trip. The window is set so that the load becomes eta. It is
 * computed from a reference that is renewed once a round trip, so acknowledgements of one round trip are not counted
 * twice. Windows are kept as rates, W / T.
 * Holds: wai <= window / T <= the line's rate, except where min-rate raises the window. A switch's clock is compared
 * only with its own earlier values. */
#include "base/invariant.h"
#include "cc/cc.h"
#include "cc/telemetry.h"

enum { ETA, MAX_STAGE, WAI, RTT, MIN_RATE };

#define U_ONE  (1u << 20) /* a share of 1 */
#define U_MOST (U_ONE << 11)
#define SHARES 1000000u /* as parameters have them */

struct state {
	uint64_t most, step; /* bytes a second: the first and largest window, and the additive step */
	uint64_t reference;  /* W^c */
	uint64_t until;      /* bytes still to be acknowledged before the reference is renewed */
	uint32_t u;          /* smoothed over a round trip, parts of U_ONE */
	uint32_t stage;      /* additive renewals in a row */
	struct vb_cc_telemetry last;
};

static vb_time round_trip(const struct vb_cc *cc)
{
	return (vb_time)vb_cc_parameter(cc, RTT);
}

static uint64_t in_time(uint64_t rate, vb_time time)
{
	return (uint64_t)((unsigned __int128)rate * (uint64_t)time / VB_S);
}

/* A packet may leave while less than the window is in flight. */
static void set_window(struct vb_cc *cc, uint64_t rate)
{
	uint64_t window = in_time(rate, round_trip(cc)) + cc->min_window - 1;
	if (window > cc->max_window)
		window = cc->max_window;
	if (window < cc->min_window)
		window = cc->min_window;
	cc->window_bytes = (uint32_t)window;
	cc->rate = rate;
}

/* If the link's rate is not known, the window stays as the holder set it. */
static void init(struct vb_cc *cc, vb_time now)
{
	struct state *state = vb_cc_state(cc);
	uint64_t wai = vb_cc_parameter(cc, WAI);
	state->most = cc->line_rate ? cc->line_rate
				    : (uint64_t)((unsigned __int128)cc->window_bytes * VB_S / (uint64_t)round_trip(cc));
	if (state->most == 0)
		state->most = 1;
	state->step = wai ? wai / 8 : state->most / 2500;
	state->reference = state->most;
	state->u = U_ONE;
	set_window(cc, state->most);
}

/* ---- How busy the way is ----------------------------------------------------------------------------------------- */

/* The port's load: the bytes it sent since, and the smaller of both queue lengths, as shares of what it sends in a
 * round trip. */
static uint32_t share_of(const struct vb_cc_hop *hop, const struct vb_cc_hop *last, vb_time rtt)
{
	uint64_t sent = hop->tx_bytes - last->tx_bytes, since = (uint64_t)(hop->at - last->at);
	uint64_t queue = hop->queue_bytes < last->queue_bytes ? hop->queue_bytes : last->queue_bytes;
	unsigned __int128 in_flow = (unsigned __int128)sent * VB_S * U_ONE / ((unsigned __int128)since * hop->rate);
	unsigned __int128 waiting =
		(unsigned __int128)queue * VB_S * U_ONE / ((unsigned __int128)(uint64_t)rtt * hop->rate);
	return in_flow + waiting < U_MOST ? (uint32_t)(in_flow + waiting) : U_MOST;
}

static bool is_same_way(const struct vb_cc_telemetry *told, const struct vb_cc_telemetry *last)
{
	if (told->count != last->count)
		return false;
	for (uint32_t i = 0; i < told->count; i++)
		if (told->hops[i].port != last->hops[i].port)
			return false;
	return true;
}

/* False: this telemetry was seen before, or has been overtaken. */
static bool is_newer(const struct vb_cc_telemetry *told, const struct vb_cc_telemetry *last)
{
	for (uint32_t i = 0; i < told->count; i++)
		if (told->hops[i].at <= last->hops[i].at)
			return false;
	return true;
}

/* Averages the busiest port's load, weighed by the time since the last telemetry. */
static void measure(struct state *state, const struct vb_cc_telemetry *told, vb_time rtt)
{
	uint64_t most = 0, since = 0, t = (uint64_t)rtt;
	for (uint32_t i = 0; i < told->count; i++) {
		uint64_t share = share_of(&told->hops[i], &state->last.hops[i], rtt);
		if (i > 0 && share <= most)
			continue;
		most = share;
		since = (uint64_t)(told->hops[i].at - state->last.hops[i].at);
	}
	if (since > t)
		since = t;
	state->u =
		(uint32_t)(((unsigned __int128)state->u * (t - since) + (unsigned __int128)most * since + t / 2) / t);
	assert(state->u <= U_MOST);
}

/* ---- What comes of it -------------------------------------------------------------------------------------------- */

static uint64_t bounded(const struct vb_cc *cc, const struct state *state, uint64_t rate)
{
	uint64_t least = vb_cc_parameter(cc, MIN_RATE) / 8;
	if (rate < least)
		rate = least;
	if (rate > state->most)
		rate = state->most;
	return rate ? rate : 1;
}

/* From the reference: W = W^c / (U / eta) + W_AI; or, for a few round trips below eta, W^c + W_AI. */
static uint64_t next_of(const struct vb_cc *cc, const struct state *state, bool adds_only)
{
	if (adds_only)
		return bounded(cc, state, state->reference + state->step);
	if (state->u == 0)
		return state->most;
	unsigned __int128 scaled =
		(unsigned __int128)state->reference * vb_cc_parameter(cc, ETA) * U_ONE / ((uint64_t)state->u * SHARES);
	return bounded(cc, state, scaled < state->most ? (uint64_t)scaled + state->step : state->most);
}

static void react(struct vb_cc *cc, struct state *state, bool renews)
{
	bool is_busy = (uint64_t)state->u * SHARES >= vb_cc_parameter(cc, ETA) * U_ONE;
	bool adds_only = !is_busy && state->stage < vb_cc_parameter(cc, MAX_STAGE);
	uint64_t rate = next_of(cc, state, adds_only);
	if (renews) {
		state->reference = rate;
		state->stage = adds_only ? state->stage + 1 : 0;
	}
	set_window(cc, rate);
}

/* The first acknowledgement of something that was sent after the last renewal renews the reference. */
static bool is_round_over(struct state *state, const struct vb_cc_signal *signal)
{
	if (signal->acked <= state->until) {
		state->until -= signal->acked;
		return false;
	}
	state->until = signal->flight > signal->acked ? signal->flight - signal->acked : 0;
	return true;
}

static void on_signal(struct vb_cc *cc, const struct vb_cc_signal *signal)
{
	struct state *state = vb_cc_state(cc);
	const struct vb_cc_telemetry *told = vb_cc_telemetry_of(signal->telemetry);
	if (signal->event != VB_CC_ACKED || signal->acked == 0)
		return;
	bool renews = is_round_over(state, signal);
	if (!told || told->count == 0)
		return;
	if (!is_same_way(told, &state->last)) {
		state->last = *told;
		return;
	}
	if (!is_newer(told, &state->last))
		return;
	measure(state, told, round_trip(cc));
	state->last = *told;
	react(cc, state, renews);
}

/* clang-format off */
static const struct vb_cc_parameter parameters[] = {
	[ETA] = { "eta", VB_QUANTITY_SHARE, 950000, 100000, 1000000,
		"how busy the busiest port shall be; 95%: Li et al., SIGCOMM 2019, 5.1" },
	[MAX_STAGE] = { "max-stage", VB_QUANTITY_COUNT, 0, 0, 1000,
		"round trips below eta in which the window only grows by wai, before it is set; the authors' "
		"simulations have 0, "
		"their text 5" },
	[WAI] = { "wai", VB_QUANTITY_RATE, 0, 0, 1000000000000,
		"what is added to the window each time, as a rate; 0: 1/2500 of the line's, 40 Mb/s of 100 Gb/s, as "
		"in the authors' "
		"simulations" },
	[RTT] = { "rtt", VB_QUANTITY_TIME, 13 * VB_US, 100 * VB_NS, VB_MS,
		"T, the round trip of the longest way when nobody waits; path: of each flow's own; 13us: Li et al., "
		"5.1, for their network",
		.may_be_path = true },
	[MIN_RATE] = { "min-rate", VB_QUANTITY_RATE, 0, 0, 1000000000000,
		"below which nobody is slowed down; 0: none. The authors' simulations have 1 Gb/s" },
};
/* clang-format on */

static uint64_t supposes(const uint64_t *values)
{
	return values[RTT];
}

const struct vb_cc_algorithm vb_cc_hpcc = {
	.name = "hpcc",
	.help = "a window by what switches tell of their ports (Li et al., SIGCOMM 2019); simulated networks alone "
		"have such",
	.goes_by = VB_CC_BY_TELEMETRY,
	.state_bytes = sizeof(struct state),
	.init = init,
	.on_signal = on_signal,
	.parameters = parameters,
	.parameter_count = sizeof(parameters) / sizeof(parameters[0]),
	.supposes = supposes,
};
