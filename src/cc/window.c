/* The plain window: slow start from the first window; halved on loss and CNP; then 4 KiB more for each window of
 * acknowledged bytes. Holds: min_window <= window_bytes <= max_window after every call, also after the holder changed
 * max_window. The window grows only while at least half of it is used; else it tells nothing about the network's
 * capacity. */
#include "base/invariant.h"
#include "cc/cc.h"

enum { INCREASE = 4096 };

struct state {
	uint32_t until_next_cut; /* bytes still to be acknowledged before a CNP counts again: one round */
	uint64_t grown_by;       /* bytes acknowledged towards the next increase */
	bool is_past_slow_start; /* from the first cut on */
};

static uint32_t clamp(const struct vb_cc *cc, uint64_t window)
{
	if (window > cc->max_window)
		window = cc->max_window;
	if (window < cc->min_window)
		window = cc->min_window;
	return (uint32_t)window;
}

static void init(struct vb_cc *cc, vb_time now)
{
	cc->window_bytes = clamp(cc, cc->window_bytes);
}

static void grow(struct vb_cc *cc, struct state *state, uint32_t acked)
{
	if (!state->is_past_slow_start) {
		cc->window_bytes = clamp(cc, (uint64_t)cc->window_bytes + acked);
		return;
	}
	state->grown_by += acked;
	while (cc->window_bytes > 0 && state->grown_by >= cc->window_bytes) {
		state->grown_by -= cc->window_bytes;
		cc->window_bytes = clamp(cc, (uint64_t)cc->window_bytes + INCREASE);
	}
}

static void take_ack(struct vb_cc *cc, struct state *state, const struct vb_cc_signal *signal)
{
	cc->window_bytes = clamp(cc, cc->window_bytes);
	state->until_next_cut -= signal->acked < state->until_next_cut ? signal->acked : state->until_next_cut;
	if (signal->flight >= cc->window_bytes / 2)
		grow(cc, state, signal->acked);
	assert(cc->window_bytes >= cc->min_window && cc->window_bytes <= cc->max_window);
}

static void halve(struct vb_cc *cc, struct state *state)
{
	state->is_past_slow_start = true;
	state->grown_by = 0;
	state->until_next_cut = cc->window_bytes;
	cc->window_bytes = clamp(cc, cc->window_bytes / 2);
}

static void on_signal(struct vb_cc *cc, const struct vb_cc_signal *signal)
{
	struct state *state = vb_cc_state(cc);
	if (signal->event == VB_CC_ACKED)
		take_ack(cc, state, signal);
	else if (signal->event == VB_CC_LOST || state->until_next_cut == 0)
		halve(cc, state); /* CNPs of one round trip are one congestion event, though a peer may send many */
}

const struct vb_cc_algorithm vb_cc_window = {
	.name = "window",
	.help = "slow start, halved on loss and on CNP, then grown by 4 KiB a window",
	.goes_by = VB_CC_BY_LOSSES | VB_CC_BY_MARKS,
	.state_bytes = sizeof(struct state),
	.init = init,
	.on_signal = on_signal,
};
