/* Which GPU each rank runs on (hosts.gpu_of). Every function fills in `gpu_of` for all ranks of the network, each GPU
 * once: 0; -EINVAL and why, -ENOMEM. A host of `gpus` GPUs stays together where ranks are dealt out; 0 and 1 are hosts
 * of one. */
#ifndef NET_PLACEMENT_H
#define NET_PLACEMENT_H

#include <stdint.h>
#include "net/dimensions.h"

/* Hosts are dealt out in turn to so many switches, each of which has equally many, one behind the other: consecutive
 * hosts are behind different switches. -EINVAL and why: they cannot be dealt out evenly. */
int placement_spread(uint32_t *gpu_of, uint32_t ranks, uint32_t gpus, uint32_t switches, char *why, unsigned why_size);

/* Along the dimensions in this order, which names all of them; ranks beyond them keep their number. */
int placement_by_order(uint32_t *gpu_of, uint32_t ranks, const struct dimensions *dimensions, const char *order,
	char *why, unsigned why_size);
/* By a list such as "8-15, 0, 2": the GPUs of ranks 0, 1, 2, ...; ranks beyond it have the GPUs that are left, in their
 * order. */
int placement_by_list(uint32_t *gpu_of, uint32_t ranks, const char *list, char *why, unsigned why_size);

#endif
