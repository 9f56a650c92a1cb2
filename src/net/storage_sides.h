/* The two sides of traffic with storage: ranks of a job, and storage nodes, which are none of its ranks. Nodes are
 * numbered as ranks of the run, too. With a front end they are its storage nodes, without one endpoints of the network.
 */
#ifndef NET_STORAGE_SIDES_H
#define NET_STORAGE_SIDES_H

#include "net/hosts.h"

#define STORAGE_NONE UINT32_MAX

struct storage_sides {
	uint32_t rank_count, node_count, all; /* all: ranks of the run */
	uint32_t *ranks, *nodes;              /* each a rank of the run */
	uint32_t *number_of, *node_of;        /* by rank of the run: its place in either list; STORAGE_NONE: in none */
};

/* Nodes are first_node to last_node of the front end's, or else of the endpoints. Ranks are `count` from `first` on
 * that are on no host of these; 0: all of them. 0; -EINVAL and why, which begins with a key; -ENOMEM. */
int storage_sides_open(struct storage_sides *sides, const struct hosts *hosts, uint32_t endpoints, uint32_t first_node,
	uint32_t last_node, uint32_t first, uint32_t count, char *why, unsigned why_size);
void storage_sides_close(struct storage_sides *sides);

/* The first bytes % count of so many have one more. */
static inline uint64_t storage_share(uint64_t bytes, uint32_t count, uint32_t number)
{
	return bytes / count + (number < bytes % count);
}

#endif
