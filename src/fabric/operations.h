/* Operations: when each flow begins, and what its end lets begin. */
#ifndef FABRIC_OPERATIONS_H
#define FABRIC_OPERATIONS_H

#include "fabric/state.h"

void operations_begin(struct fabric *fabric); /* those that wait for nothing are queued at their sources */
void operations_on_start(struct shard *shard, uint32_t endpoint); /* EVENT_FLOW */
/* In its source's shard. Its result says already whether it failed. */
void operation_end(struct shard *shard, uint32_t flow);

#endif
