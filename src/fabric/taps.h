/* Captures: what leaves on some links, told in order of time. A packet is put on a wire before its bits leave, on
 * ports that know when that will be; so what is seen waits here until nothing earlier can come. A run with taps has
 * one shard. */
#ifndef FABRIC_TAPS_H
#define FABRIC_TAPS_H

#include "fabric/state.h"

int taps_open(struct fabric *fabric);
void taps_close(struct fabric *fabric);
/* A packet or a pause frame of this shard, whose first bit leaves at `at`. */
void taps_see(struct shard *shard, uint32_t link, uint32_t packet, vb_time at);
/* All that have left by then are told. */
void taps_tell(struct fabric *fabric, vb_time until);

#endif
