/* The time that a flow would take alone on the network, with nothing to hold it back: until the acknowledgement of its
 * last byte has arrived. A flow's time divided by this is its slowdown. */
#ifndef SIM_IDEAL_H
#define SIM_IDEAL_H

#include "net/route.h"
#include "sim/simulation.h"

/* Fills in simulation->ideals. -ENOMEM. */
int ideals_find(struct simulation *simulation);

/* The payload that a link carries in a second by full packets, in bytes. An endpoint's link has all ports of its NIC.
 */
double ideal_payload_rate(const struct simulation *simulation, uint32_t link);

/* Until the last bit of a message is there; 0: there is no way. */
vb_time ideal_message(
	const struct simulation *simulation, const struct routes *routes, uint32_t src, uint32_t dst, uint64_t bytes);

#endif
