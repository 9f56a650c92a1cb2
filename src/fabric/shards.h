/* Divides a network into shards, one for each thread. */
#ifndef FABRIC_SHARDS_H
#define FABRIC_SHARDS_H

#include "fabric/state.h"

/* As many as were asked for, but no more than there are switches; 1 if captures need one order. */
uint32_t shards_count(const struct fabric_config *config);
/* Sets the shard of each switch and endpoint, and the fabric's window. */
void shards_cut(struct fabric *fabric);

#endif
