/* The plain window: slow start from 64 KiB, halved when the network says so, then 4 KiB more a window of acknowledged
 * bytes. Holds: min_window <= window_bytes <= max_window after every call, also when the holder has moved max_window.
 * The window grows only while it is used: a flight below half of it says nothing about what the network would carry. */
#include <string.h>
#include "base/invariant.h"
#include "cc/cc.h"

enum { FIRST_WINDOW = 65536, INCREASE = 4096 };

/* Names for the algorithm's words of struct vb_cc. */
enum {
	IS_PAST_SLOW_START, /* 0 until the first cut */
	GROWN_BY,           /* bytes acknowledged towards the next increase */
	UNTIL_NEXT_CUT,     /* bytes still to be acknowledged before a CNP counts again: one round */
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
	memset(cc->state, 0, sizeof(cc->state));
	cc->window_bytes = clamp(cc, FIRST_WINDOW);
	cc->rate = 0;
	cc->timer.is_set = false;
}

static void on_send(struct vb_cc *cc, uint32_t bytes, vb_time now) {}

static void grow(struct vb_cc *cc, uint32_t acked)
{
	if (!cc->state[IS_PAST_SLOW_START]) {
		cc->window_bytes = clamp(cc, (uint64_t)cc->window_bytes + acked);
		return;
	}
	cc->state[GROWN_BY] += acked;
	while (cc->window_bytes > 0 && cc->state[GROWN_BY] >= cc->window_bytes) {
		cc->state[GROWN_BY] -= cc->window_bytes;
		cc->window_bytes = clamp(cc, (uint64_t)cc->window_bytes + INCREASE);
	}
}

static void on_ack(struct vb_cc *cc, const struct vb_cc_ack *ack, vb_time now)
{
	cc->window_bytes = clamp(cc, cc->window_bytes);
	cc->state[UNTIL_NEXT_CUT] -= ack->bytes < cc->state[UNTIL_NEXT_CUT] ? ack->bytes : cc->state[UNTIL_NEXT_CUT];
	if (ack->flight >= cc->window_bytes / 2)
		grow(cc, ack->bytes);
	assert(cc->window_bytes >= cc->min_window && cc->window_bytes <= cc->max_window);
}

static void halve(struct vb_cc *cc)
{
	cc->state[IS_PAST_SLOW_START] = 1;
	cc->state[GROWN_BY] = 0;
	cc->state[UNTIL_NEXT_CUT] = cc->window_bytes;
	cc->window_bytes = clamp(cc, cc->window_bytes / 2);
}

/* A peer may send a CNP for every few packets; one round's are one congestion. */
static void on_cnp(struct vb_cc *cc, vb_time now)
{
	if (cc->state[UNTIL_NEXT_CUT] == 0)
		halve(cc);
}

static void on_loss(struct vb_cc *cc, vb_time now)
{
	halve(cc);
}

static void on_timer(struct vb_cc *cc, vb_time now)
{
	cc->timer.is_set = false;
}

const struct vb_cc_algorithm vb_cc_window = {
	.name = "window",
	.init = init,
	.on_send = on_send,
	.on_ack = on_ack,
	.on_cnp = on_cnp,
	.on_loss = on_loss,
	.on_timer = on_timer,
};
