/* How a network is cut into shards, one for each thread. */
#ifndef FABRIC_SHARDS_H
#define FABRIC_SHARDS_H

#include "fabric/state.h"

/* As many as were asked for, and the network has places with endpoints; 1 where captures want one order. */
uint32_t shards_count(const struct fabric_config *config);
/* Gives each switch and endpoint its shard, and the fabric its window. */
void shards_cut(struct fabric *fabric);

#endif
