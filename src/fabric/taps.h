/* Captures: what leaves on some links, in order of time.
 *
 * Where a departure is known in advance, a packet is put on the wire before its bits leave. So packets that are seen
 * wait here until nothing earlier can come. A run with captures has one shard. */
#ifndef FABRIC_TAPS_H
#define FABRIC_TAPS_H

#include "fabric/state.h"

int taps_open(struct fabric *fabric);
void taps_close(struct fabric *fabric);
/* A packet or pause frame of this shard, whose first bit leaves at `at`. */
void taps_see(struct shard *shard, uint32_t link, uint32_t packet, vb_time at);
/* Reports everything that has left by then. */
void taps_tell(struct fabric *fabric, vb_time until);

#endif
