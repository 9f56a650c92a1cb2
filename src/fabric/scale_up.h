/* Scale-up domains: transfers between GPUs of one host, which are not cut into packets. Each GPU has a port of the
 * domain's rate each way, and the transfers share the ports max-min fairly: no transfer could have more but from one
 * that has less. Rates change when a transfer begins or ends, so a transfer costs two events. Such an event is O(n) for
 * n transfers under way in the host: where all ports are shared, each of their rates changes. Pieces that go by one
 * connection (struct message) go one after the other.
 *
 * Rates are whole bytes per second, rounded down, and what is left of a transfer is counted in byte-picoseconds per
 * second, so that every machine computes the same. */
#ifndef FABRIC_SCALE_UP_H
#define FABRIC_SCALE_UP_H

#include "fabric/state.h"

int scale_up_open(struct fabric *fabric); /* -ENOMEM */
void scale_up_close(struct fabric *fabric);
/* A message between ranks of one host begins now. It has arrived scale_up_time after its last byte has left. */
void scale_up_send(struct shard *shard, uint32_t flow);
void scale_up_on_event(struct shard *shard, uint32_t host); /* EVENT_SCALE_UP */

#endif
