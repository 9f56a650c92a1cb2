/* A congestion control for tests: a rate, and a timer that comes periodically. What it was told is counted. A moody one
 * halves its rate when it is told of congestion, and takes a little more at each tick of its timer. */
#ifndef VB_TESTS_PACED_H
#define VB_TESTS_PACED_H

#include "cc/cc.h"

struct paced {
	uint64_t rate;  /* bytes a second */
	vb_time period; /* 0: no timer */
	bool is_moody;
};

struct paced_state {
	uint64_t sent, acked, packets, ticks, cnps, losses, marked, telemetry;
	uint32_t flight; /* of the newest */
	vb_time rtt;
};

static inline void paced_init(struct vb_cc *cc, vb_time now)
{
	const struct paced *paced = cc->parameters;
	cc->rate = paced->rate;
	cc->timer = (struct vb_deadline){ vb_time_add(now, paced->period), paced->period != 0 };
}

static inline void paced_on_send(struct vb_cc *cc, uint32_t bytes, vb_time now)
{
	struct paced_state *state = vb_cc_state(cc);
	state->sent += bytes;
	state->packets++;
}

static inline void paced_on_signal(struct vb_cc *cc, const struct vb_cc_signal *signal)
{
	const struct paced *paced = cc->parameters;
	struct paced_state *state = vb_cc_state(cc);
	state->acked += signal->acked;
	state->cnps += signal->event == VB_CC_CNP;
	state->losses += signal->event == VB_CC_LOST;
	state->marked += signal->is_marked;
	state->telemetry += signal->telemetry;
	state->flight = signal->flight;
	if (signal->rtt)
		state->rtt = signal->rtt;
	if (paced->is_moody && signal->event != VB_CC_ACKED && cc->rate > paced->rate / 8)
		cc->rate /= 2;
}

static inline void paced_on_timer(struct vb_cc *cc, vb_time now)
{
	const struct paced *paced = cc->parameters;
	struct paced_state *state = vb_cc_state(cc);
	state->ticks++;
	cc->timer = (struct vb_deadline){ vb_time_add(now, paced->period), true };
	if (paced->is_moody && cc->rate < 2 * paced->rate)
		cc->rate += cc->rate / 4 + 1;
}

static const struct vb_cc_algorithm paced_algorithm = {
	.name = "paced",
	.state_bytes = sizeof(struct paced_state),
	.init = paced_init,
	.on_signal = paced_on_signal,
	.on_send = paced_on_send,
	.on_timer = paced_on_timer,
};

#endif
