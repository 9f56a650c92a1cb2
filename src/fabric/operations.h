/* Operations: when each flow begins, and what its end or its arrival lets begin (net/flows.h).
 *
 * Holds: all that a flow waits for is heard of at its source, so what waits and what it waits for meet in one shard,
 * whatever the number of shards. Two threads never write one flow's waits_left. */
#ifndef FABRIC_OPERATIONS_H
#define FABRIC_OPERATIONS_H

#include "fabric/state.h"

int operations_open(struct fabric *fabric); /* -ENOMEM */
/* Flows that wait for none are queued at their sources. */
void operations_begin(struct fabric *fabric);
/* EVENT_FLOW: the endpoint's next flow may be due. */
void operations_on_start(struct shard *shard, uint32_t endpoint);

/* A flow is done, in its source's shard. Its result says already whether it failed. */
void operation_end(struct shard *shard, uint32_t flow);
/* All of a flow's bytes are at its destination, in that one's shard. Once a flow at most; where none waits for the
 * arrival an endpoint need not tell. */
void operation_arrive(struct shard *shard, uint32_t flow);
bool operation_is_awaited(const struct fabric *fabric, uint32_t flow); /* some flow waits for the arrival */

#endif
