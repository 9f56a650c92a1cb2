/* Which GPU each rank runs on (hosts.gpu_of). Every function fills in `gpu_of` for all ranks of the network, each GPU
 * once. A host of `gpus` GPUs stays together where ranks are dealt out; 0 and 1 are hosts of one. */
#ifndef NET_PLACEMENT_H
#define NET_PLACEMENT_H

#include <stdint.h>

/* Hosts are dealt out in turn to so many switches, each of which has equally many, one behind the other: consecutive
 * hosts are behind different switches. -EINVAL and why: they cannot be dealt out evenly. */
int placement_spread(uint32_t *gpu_of, uint32_t ranks, uint32_t gpus, uint32_t switches, char *why, unsigned why_size);

#endif
