/* The kinds of topology that are trees, for the table in topologies.c. */
#ifndef NET_TOPOLOGIES_KINDS_H
#define NET_TOPOLOGIES_KINDS_H

#include "net/topologies.h"

static inline uint64_t topology_fabric_rate(const struct topology *topology)
{
	return topology->fabric_bits_per_second ? topology->fabric_bits_per_second : topology->host_bits_per_second;
}

/* See topology_build; on an error part of the network may be left behind. */
int topology_fat_tree(const struct topology *topology, struct network *network, char *why, unsigned why_size);
int topology_leaf_spine(const struct topology *topology, struct network *network, char *why, unsigned why_size);
int topology_rail(const struct topology *topology, struct network *network, char *why, unsigned why_size);

#endif
