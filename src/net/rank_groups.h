/* Groups of ranks, each of which runs a collective. All have equally many ranks, and a rank is in one group at most.
 *
 * A group's places are in the order in which a ring passes them: the ranks of a host one after the other, hosts in the
 * order of their first rank in the group. So a ring leaves each host once, wherever ranks are placed. */
#ifndef NET_RANK_GROUPS_H
#define NET_RANK_GROUPS_H

#include "net/hosts.h"

#define RANK_GROUPS_NONE UINT32_MAX

struct rank_groups {
	uint32_t count, size; /* groups, and ranks of each */
	uint32_t gpus;        /* consecutive places that share a host, the same in all; 0: not equally many */
	uint32_t ranks;       /* one more than the highest rank that is in a group */
	uint32_t *rank_at;    /* by group * size + place */
	uint32_t *index_of;   /* by rank: group * size + place, or RANK_GROUPS_NONE */
};

/* One group of `size` consecutive ranks from `first` on. -ENOMEM. */
int rank_groups_open(struct rank_groups *groups, const struct hosts *hosts, uint32_t first, uint32_t size);
/* Of so many lists, one behind the other, in which no rank is there twice. -ENOMEM. */
int rank_groups_open_lists(
	struct rank_groups *groups, const struct hosts *hosts, const uint32_t *lists, uint32_t count, uint32_t size);
void rank_groups_close(struct rank_groups *groups);

/* The order for one list of ranks (NULL: 0 to count - 1): place p is ranks[order[p]]. *gpus as above. -ENOMEM. */
int rank_groups_gather(
	const struct hosts *hosts, const uint32_t *ranks, uint32_t count, uint32_t *order, uint32_t *gpus);

#endif
