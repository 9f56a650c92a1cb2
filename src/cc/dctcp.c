/* DCTCP (Alizadeh et al., SIGCOMM 2010; RFC 8257), as it is used for RDMA. Alpha is the average share of marked bytes
 * in a round trip. In a round trip with marks the window is cut once by alpha / 2; in others it grows by a step. A
 * round trip ends when an acknowledgement covers something that was sent after the last one ended. Windows are kept as
 * rates, W / T. If the link's rate is known, the first and largest window is what the link sends in T, and packets are
 * paced at W / T. Else the flow begins with slow start, as TCP does, without pacing.
 *
 * A mark in an acknowledgement counts for all bytes that it acknowledges. A CNP does not say how many packets were
 * marked, so all bytes of that round trip count. With CNPs alone the window is nearly halved each time, as with ECN
 * before DCTCP. A flow whose round trip is shorter than T is limited by the pace W / T and not by its window. It then
 * has less in flight than its window, and still counts as using all of it.
 * Holds: a packet in T <= window / T <= most. */
#include "base/invariant.h"
#include "cc/cc.h"

enum { G, STEP, RTT, MIN_RATE };

#define ALPHA_ONE (1u << 31)
#define RTT_MOST  (268u * (uint64_t)VB_MS) /* the most that fits into the state */

struct state {
	uint64_t speed;         /* the window, in bytes a second */
	uint32_t alpha;         /* parts of ALPHA_ONE */
	uint32_t until;         /* bytes still to be acknowledged before the round trip is over */
	uint32_t cut_until;     /* and before another mark is heeded */
	uint32_t acked, marked; /* bytes, of this round trip */
	uint32_t has_begun : 1, is_slow_start : 1, is_cut : 1, has_cnp : 1;
	uint32_t rtt_ns : 28; /* the newest measurement, at most T; 0: none */
};

_Static_assert(sizeof(struct state) <= sizeof(((struct vb_cc *)0)->state), "of each QP");

static uint64_t round_trip(const struct vb_cc *cc)
{
	return vb_cc_parameter(cc, RTT);
}

static uint64_t speed_of(const struct vb_cc *cc, uint64_t window)
{
	return (uint64_t)((unsigned __int128)window * VB_S / round_trip(cc));
}

static uint64_t most(const struct vb_cc *cc)
{
	return cc->line_rate ? cc->line_rate : speed_of(cc, cc->max_window);
}

/* A packet may leave while less than the window is in flight. */
static void set_speed(struct vb_cc *cc, struct state *state, uint64_t speed)
{
	uint64_t least = speed_of(cc, cc->min_window), asked = vb_cc_parameter(cc, MIN_RATE) / 8;
	if (speed < asked)
		speed = asked;
	if (speed < least)
		speed = least;
	if (speed > most(cc))
		speed = most(cc);
	uint64_t window = (uint64_t)((unsigned __int128)speed * round_trip(cc) / VB_S) + cc->min_window - 1;
	if (window > cc->max_window)
		window = cc->max_window;
	if (window < cc->min_window)
		window = cc->min_window;
	state->speed = speed;
	cc->window_bytes = (uint32_t)window;
	cc->rate = cc->line_rate ? speed : 0;
}

static void init(struct vb_cc *cc, vb_time now)
{
	struct state *state = vb_cc_state(cc);
	state->alpha = ALPHA_ONE;
	state->is_slow_start = cc->line_rate == 0;
	set_speed(cc, state, cc->line_rate ? cc->line_rate : speed_of(cc, cc->window_bytes));
}

/* alpha = (1 - g) * alpha + g * the share that was marked. */
static void average(const struct vb_cc *cc, struct state *state)
{
	uint64_t g = vb_cc_parameter(cc, G), marked = state->has_cnp ? state->acked : state->marked;
	uint64_t gain = marked * g / state->acked * (ALPHA_ONE >> 16) / (VB_GAIN_ONE >> 16);
	state->alpha = (uint32_t)(state->alpha - (state->alpha * g >> 32) + gain);
	if (state->alpha > ALPHA_ONE)
		state->alpha = ALPHA_ONE;
}

/* Counts acknowledged bytes. True: the round trip is over. The very first acknowledgement begins the first one. */
static bool is_round_over(const struct vb_cc *cc, struct state *state, const struct vb_cc_signal *signal)
{
	state->acked += signal->acked;
	state->marked += signal->is_marked ? signal->acked : 0;
	if (signal->acked <= state->until) {
		state->until -= signal->acked;
		return false;
	}
	state->until = signal->flight > signal->acked ? signal->flight - signal->acked : 0;
	if (state->has_begun)
		average(cc, state);
	state->has_begun = true;
	state->acked = state->marked = 0;
	state->has_cnp = false;
	return true;
}

static void cut(struct vb_cc *cc, struct state *state, uint32_t alpha, uint32_t under_way)
{
	if (state->is_cut)
		return;
	state->is_cut = true;
	state->is_slow_start = false;
	state->cut_until = under_way;
	set_speed(cc, state, state->speed - (uint64_t)((unsigned __int128)state->speed * alpha / ALPHA_ONE / 2));
}

/* Bytes in flight of a flow that sends all it may: the window, or less if its own round trip at its rate is less. */
static uint64_t allowed(const struct vb_cc *cc, const struct state *state)
{
	const uint64_t in_rtt =
		(uint64_t)((unsigned __int128)cc->rate * (uint64_t)state->rtt_ns * (uint64_t)VB_NS / VB_S);
	return in_rtt && in_rtt < cc->window_bytes ? in_rtt : cc->window_bytes;
}

/* A window that is less than half used tells nothing about the network's capacity. */
static void grow(struct vb_cc *cc, struct state *state, const struct vb_cc_signal *signal, bool is_over)
{
	uint64_t step = vb_cc_parameter(cc, STEP) / 8;
	if (signal->flight < allowed(cc, state) / 2)
		return;
	if (state->is_slow_start)
		set_speed(cc, state, state->speed + speed_of(cc, signal->acked));
	else if (is_over)
		set_speed(cc, state, state->speed + (step ? step : speed_of(cc, cc->min_window)));
}

static void note_round_trip(const struct vb_cc *cc, struct state *state, vb_time rtt)
{
	const uint64_t bounded = (uint64_t)rtt < round_trip(cc) ? (uint64_t)rtt : round_trip(cc);
	if (rtt > 0)
		state->rtt_ns = bounded < RTT_MOST ? (uint32_t)(bounded / VB_NS) : RTT_MOST / VB_NS;
}

static void take_ack(struct vb_cc *cc, struct state *state, const struct vb_cc_signal *signal)
{
	note_round_trip(cc, state, signal->rtt);
	bool is_over = is_round_over(cc, state, signal);
	if (signal->acked > state->cut_until)
		state->is_cut = false;
	state->cut_until -= signal->acked < state->cut_until ? signal->acked : state->cut_until;
	if (signal->is_marked)
		cut(cc, state, state->alpha, signal->flight > signal->acked ? signal->flight - signal->acked : 0);
	if (!state->is_cut)
		grow(cc, state, signal, is_over);
}

static void on_signal(struct vb_cc *cc, const struct vb_cc_signal *signal)
{
	struct state *state = vb_cc_state(cc);
	switch (signal->event) {
	case VB_CC_ACKED:
		if (signal->acked)
			take_ack(cc, state, signal);
		break;
	case VB_CC_CNP:
		state->has_cnp = true;
		cut(cc, state, state->alpha, signal->flight);
		break;
	case VB_CC_LOST:
		cut(cc, state, ALPHA_ONE, signal->flight);
		break;
	}
	assert(state->alpha <= ALPHA_ONE);
}

/* clang-format off */
static const struct vb_cc_parameter parameters[] = {
	[G] = { "g", VB_QUANTITY_GAIN, VB_GAIN_ONE / 16, 1, VB_GAIN_ONE,
		"what a round trip weighs in the average of marks; 1/16: RFC 8257, 4.2" },
	[STEP] = { "ai", VB_QUANTITY_RATE, 0, 0, 1000000000000,
		"what is added to the window in a round trip without marks, as a rate; 0: a packet, RFC 8257. HPCC's "
		"authors have "
		"615 Mb/s in their simulations" },
	[RTT] = { "rtt", VB_QUANTITY_TIME, 13 * VB_US, 100 * VB_NS, VB_MS,
		"T, the round trip of the longest way when nobody waits; path: of each flow's own; 13us: Li et al., "
		"SIGCOMM 2019, 5.1, for their network",
		.may_be_path = true },
	[MIN_RATE] = { "min-rate", VB_QUANTITY_RATE, 0, 0, 1000000000000,
		"below which nobody is slowed down; 0: a packet in T" },
};
/* clang-format on */

static uint64_t supposes(const uint64_t *values)
{
	return values[RTT];
}

const struct vb_cc_algorithm vb_cc_dctcp = {
	.name = "dctcp",
	.help = "a window by the share of packets that are marked (RFC 8257); of who sends CNPs alone that share is "
		"not known",
	.goes_by = VB_CC_BY_LOSSES | VB_CC_BY_MARKS | VB_CC_BY_SHARES,
	.state_bytes = sizeof(struct state),
	.init = init,
	.on_signal = on_signal,
	.parameters = parameters,
	.parameter_count = sizeof(parameters) / sizeof(parameters[0]),
	.supposes = supposes,
};
