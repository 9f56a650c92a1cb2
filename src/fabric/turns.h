/* The flows of an endpoint take turns. Lists are linked by a number in any record that each flow has.
 * Holds: a flow is in one of the lists, or in none. */
#ifndef FABRIC_TURNS_H
#define FABRIC_TURNS_H

#include <stddef.h>
#include "base/invariant.h"
#include "fabric/pool.h"
#include "net/flows.h"
#include "net/profile.h"

struct turn_list {
	uint32_t first, last; /* first: FLOW_NONE if it is empty */
};

struct turns {
	struct turn_list ready, held[FABRIC_CLASSES];
	uint8_t classes_held; /* flows of these classes are not taken */
};

/* Where in a flow's record its link and its traffic class are. */
struct turn_links {
	const struct pool *flows;
	uint32_t next, traffic_class;
};

static inline uint32_t *turn_next(struct turn_links links, uint32_t flow)
{
	return (uint32_t *)((char *)pool_at(links.flows, flow) + links.next);
}

static inline uint8_t turn_class(struct turn_links links, uint32_t flow)
{
	return *((const uint8_t *)pool_at(links.flows, flow) + links.traffic_class) & (FABRIC_CLASSES - 1);
}

static inline void turn_append(struct turn_links links, struct turn_list *list, struct turn_list more)
{
	assert(more.first != FLOW_NONE);
	if (list->first == FLOW_NONE)
		list->first = more.first;
	else
		*turn_next(links, list->last) = more.first;
	list->last = more.last;
}

static inline void turn_append_flow(struct turn_links links, struct turn_list *list, uint32_t flow)
{
	*turn_next(links, flow) = FLOW_NONE;
	turn_append(links, list, (struct turn_list){ flow, flow });
}

static inline void turns_init(struct turns *turns)
{
	*turns = (struct turns){ .ready.first = FLOW_NONE };
	for (unsigned class = 0; class < FABRIC_CLASSES; class ++)
		turns->held[class].first = FLOW_NONE;
}

static inline void turns_hold(struct turn_links links, struct turns *turns, uint8_t classes)
{
	for (uint8_t class = 0; class < FABRIC_CLASSES; class ++) {
		if (classes & 1u << class || turns->held[class].first == FLOW_NONE)
			continue;
		turn_append(links, &turns->ready, turns->held[class]);
		turns->held[class].first = FLOW_NONE;
	}
	turns->classes_held = classes;
}

/* Takes the first flow whose class is not held; FLOW_NONE. */
static inline uint32_t turns_take(struct turn_links links, struct turns *turns)
{
	for (uint32_t flow; (flow = turns->ready.first) != FLOW_NONE;) {
		const uint8_t class = turn_class(links, flow);
		turns->ready.first = *turn_next(links, flow);
		if (!(turns->classes_held & 1u << class))
			return flow;
		turn_append_flow(links, &turns->held[class], flow);
	}
	return FLOW_NONE;
}

#endif
