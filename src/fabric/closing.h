/* Flows that have ended: their connections are closed, and the memory is used again, once nothing is under way that is
 * theirs.
 *
 * Packets are of two generations, and only those of the newer leave. When the last of the older has arrived or was
 * lost the next generation begins: then of a flow that had ended before the newer one began nothing is under way,
 * however the network delays, doubles or loses packets. It is looked for that while no shard runs, so the time of it is
 * the same for all numbers of threads. Answers to these packets may be under way still: close_flow says so, and is
 * asked again at the next generation. */
#ifndef FABRIC_CLOSING_H
#define FABRIC_CLOSING_H

#include "fabric/state.h"

void closing_add(struct shard *shard, uint32_t flow); /* it has ended, in its source's shard */
void closing_advance(struct fabric *fabric);          /* no shard runs */

#endif
