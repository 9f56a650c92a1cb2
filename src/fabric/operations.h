/* Operations: when each flow begins, and which flows its end or its arrival lets begin (net/flows.h).
 *
 * Holds: a flow's source hears of all that the flow waits for, so these meet in one shard, whatever the number of
 * shards: no two threads write one flow's waits_left. */
#ifndef FABRIC_OPERATIONS_H
#define FABRIC_OPERATIONS_H

#include "fabric/state.h"

int operations_open(struct fabric *fabric); /* -ENOMEM */
/* Queues flows without waits at their sources. */
void operations_begin(struct fabric *fabric);
/* EVENT_FLOW: the endpoint's next flow may be due. */
void operations_on_start(struct shard *shard, uint32_t endpoint);

/* A flow has ended, in its source's shard. Its result has the error already, if there is one. */
void operation_end(struct shard *shard, uint32_t flow);
/* All of a flow's bytes have arrived, in its destination's shard. Called once at most, and not needed unless the
 * arrival is awaited. */
void operation_arrive(struct shard *shard, uint32_t flow);
bool operation_is_awaited(const struct fabric *fabric, uint32_t flow); /* the arrival is to be heard of */

#endif
