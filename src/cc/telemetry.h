/* In-band telemetry: the switches' report on a packet's path. The simulator fills it in and passes it by
 * vb_cc_signal.telemetry; a live process has none. */
#ifndef VB_CC_TELEMETRY_H
#define VB_CC_TELEMETRY_H

#include <stdint.h>
#include "base/time.h"

#define VB_CC_HOPS 8 /* later hops are not reported */

/* A port, as the packet leaves it. */
struct vb_cc_hop {
	vb_time at;           /* by the switch's own clock */
	uint64_t tx_bytes;    /* sent by the port before this packet, in all */
	uint64_t rate;        /* of its link, bytes a second */
	uint64_t queue_bytes; /* left in the queue */
	uint32_t port;        /* unique on the path */
};

struct vb_cc_telemetry {
	uint32_t count;
	struct vb_cc_hop hops[VB_CC_HOPS]; /* in the order of the path */
};

/* NULL: none. Borrowed during the call to the algorithm. */
static inline const struct vb_cc_telemetry *vb_cc_telemetry_of(uint64_t word)
{
	return (const struct vb_cc_telemetry *)(uintptr_t)word;
}
static inline uint64_t vb_cc_telemetry_word(const struct vb_cc_telemetry *telemetry)
{
	return (uintptr_t)telemetry;
}

#endif
