/* Operations: what jobs (net/job.h) let endpoints do. A message has a record from when it is asked for until nothing of
 * it is under way any more; a computation, until it is over.
 *
 * Holds: calls of a job for one rank come from this rank's shard. */
#ifndef FABRIC_OPERATIONS_H
#define FABRIC_OPERATIONS_H

#include "fabric/state.h"

int operations_open(struct fabric *fabric, struct flow_result *results); /* -ENOMEM */
void operations_close(struct fabric *fabric);
/* Tells jobs that the run begins. */
void operations_begin(struct fabric *fabric);
/* EVENT_FLOW: the rank's next operation may be due. */
void operations_on_start(struct shard *shard, uint32_t rank);

/* A message has ended, in its source's shard. Its result has the error already, if there is one. */
void operation_end(struct shard *shard, uint32_t flow);
/* All of a message's bytes have arrived, in its destination's shard. Called once at most, and not needed unless the
 * arrival is to be told. */
void operation_arrive(struct shard *shard, uint32_t flow);
/* A message will have arrived by the scale-up domain, at this time. */
void operation_deliver(struct shard *shard, uint32_t flow, vb_time at);
/* Nothing of a message that has ended is under way: its record may be used again. Called while no shard runs. */
void operation_forget(struct fabric *fabric, uint32_t flow);

#endif
