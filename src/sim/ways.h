/* All links by which packets of one endpoint may go to another. */
#ifndef SIM_WAYS_H
#define SIM_WAYS_H

#include <stdbool.h>
#include "net/network.h"
#include "net/route.h"

struct ways {
	const struct network *network; /* borrowed */
	struct routes *routes;
	uint32_t *reached; /* by switch: the last walk that came there, as paths meet again */
	uint32_t *stack;   /* switches that are still to be looked at */
	uint32_t number, stack_count;
};

int ways_open(struct ways *ways, const struct network *network); /* -ENOMEM */
void ways_close(struct ways *ways);
/* Calls `look` for each link; false: what is behind it is not looked at by this link. */
void ways_walk(struct ways *ways, uint32_t from, uint32_t to, bool (*look)(void *user, uint32_t link), void *user);
/* By the last walk: a switch. */
bool ways_have_reached(const struct ways *ways, network_node node);

#endif
