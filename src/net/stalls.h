/* When a message goes on that a link holds up which is down: as its sender would send it again.
 *
 * What leaves while the way is down is lost. The receiver of an engine finds the gap if the sender still sends when the
 * way is up again, and says so; otherwise the sender sends again after its probe or its timeout, which begins when it
 * last heard of anything; an ideal endpoint's, when it last sent. After all retries the message fails. */
#ifndef NET_STALLS_H
#define NET_STALLS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/time.h"

/* How a sender sends again. */
struct resending {
	vb_time timeout, probe; /* probe 0: there is none */
	uint64_t window;        /* bytes; 0: no bound */
	uint32_t retries;
	bool finds_gaps; /* an engine; else an ideal endpoint */
};

struct stall {
	vb_time since; /* nothing was heard */
	vb_time left;  /* how long what is left of the message takes to be sent, at this rate */
	uint64_t rate; /* bytes per second */
	bool is_deaf;  /* what the receiver said of the gap was lost */
	vb_time again; /* when it goes on; -1: the way is not up yet */
};

/* Of one whose way is up again, at this time: without the round trip of what finds the gap. behind: bytes that follow
 * it on its connection. */
vb_time stall_again(const struct resending *resending, const struct stall *stall, uint64_t behind, vb_time up);
/* When the message fails, if its way is not up before. */
vb_time stall_end(const struct resending *resending, const struct stall *stall);

#endif
