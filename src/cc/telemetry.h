/* What switches tell of the way that a packet took, for algorithms that go by it. A holder that has any fills it in
 * and names it by vb_cc_signal.telemetry; a live one has none. */
#ifndef VB_CC_TELEMETRY_H
#define VB_CC_TELEMETRY_H

#include <stdint.h>
#include "base/time.h"

#define VB_CC_HOPS 8 /* what is behind the eighth is not told of */

/* A port, as the packet leaves it. */
struct vb_cc_hop {
	vb_time at;           /* by the switch's own clock */
	uint64_t tx_bytes;    /* that left by it before, ever */
	uint64_t rate;        /* of its link, bytes a second */
	uint64_t queue_bytes; /* that stay behind */
	uint32_t port;        /* a name that no other on the way has */
};

struct vb_cc_telemetry {
	uint32_t count;
	struct vb_cc_hop hops[VB_CC_HOPS]; /* in the order of the way */
};

/* NULL: there is none. Borrowed while the algorithm is told. */
static inline const struct vb_cc_telemetry *vb_cc_telemetry_of(uint64_t word)
{
	return (const struct vb_cc_telemetry *)(uintptr_t)word;
}
static inline uint64_t vb_cc_telemetry_word(const struct vb_cc_telemetry *telemetry)
{
	return (uintptr_t)telemetry;
}

#endif
