/* Groups of ranks, by name, for Chakra traces: those of a groups file of ASTRA-sim,
 *
 *   {"1": [0, 1, 2, 3], "2": [4, 5, 6, 7]}
 *
 * and those that PyTorch writes into a METADATA node of each rank's trace, as the values of its inputs:
 *
 *   ['[{"pg_name": "0", "ranks": []}, {"pg_name": "1", "ranks": [0, 1]}]']
 *
 * without ranks: all. A group's ranks are in ascending order, as ASTRA-sim takes them (CommunicatorGroup.cc). Ranks may
 * call different groups by one name if no rank is in two of them. */
#ifndef NET_CHAKRA_GROUPS_H
#define NET_CHAKRA_GROUPS_H

#include "net/graph.h"
#include "net/text.h"

struct chakra_group {
	char *name;
	uint32_t *ranks; /* NULL: all */
	uint32_t count;
	uint32_t from;   /* the rank whose trace has it; GRAPH_NONE: the groups file */
	uint32_t number; /* in the graph; GRAPH_NONE: it is not there yet */
};

struct chakra_groups {
	struct chakra_group *list;
	uint32_t count, room;
};

/* -EINVAL and why, -ENOMEM. */
int chakra_groups_read_file(struct chakra_groups *groups, const char *path, char *why, unsigned why_size);
/* From a METADATA node's values. *is_read: they were PyTorch's groups; other nodes have other values. -EINVAL and why:
 * another rank has a group of this name with other ranks, and with some of the same. -ENOMEM. */
int chakra_groups_read_values(
	struct chakra_groups *groups, struct span values, uint32_t rank, bool *is_read, char *why, unsigned why_size);
/* Of those with this name the one that has this rank, else any; NULL: none. */
struct chakra_group *chakra_groups_find(const struct chakra_groups *groups, struct span name, uint32_t rank);
void chakra_groups_free(struct chakra_groups *groups);

#endif
