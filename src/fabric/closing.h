/* Messages that have ended: once none of a message's packets is under way, its own connection is closed and its memory
 * is used again.
 *
 * Packets are of two generations, and only packets of the newer one leave. When the last of the older has arrived or is
 * lost, the next generation begins. Of a flow that had ended before the newer generation began, nothing is under way
 * then, however the network delays, duplicates or loses packets. This is checked while no shard runs, so it happens at
 * the same time with any number of threads. Answers to these packets may still be under way: close_flow says so, and is
 * called again at the next generation. */
#ifndef FABRIC_CLOSING_H
#define FABRIC_CLOSING_H

#include "fabric/state.h"

void closing_add(struct shard *shard, uint32_t flow); /* a flow has ended, in its source's shard */
void closing_advance(struct fabric *fabric);          /* called while no shard runs */

#endif
