/* See detours.h. */
#include "fabric/detours.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"

int detours_open(struct detours *detours, const struct network *network, const struct routes *routes, bool may_go_down)
{
	*detours = (struct detours){ 0 };
	if (!may_go_down)
		return 0;
	*detours = (struct detours){ .network = network,
		.routes = routes,
		.dead_ends = calloc(network->switch_count + 1, sizeof(*detours->dead_ends)) };
	return detours->dead_ends ? 0 : -ENOMEM;
}

void detours_close(struct detours *detours)
{
	free(detours->dead_ends);
	*detours = (struct detours){ 0 };
}

/* A switch without a way is examined once in a search: there are many more ways than switches. */
static bool leads(struct detours *detours, uint32_t link, uint32_t dst, vb_time now, bool is_far)
{
	if (link_is_known_down(detours->network, link, now, is_far))
		return false;
	const network_node to = detours->network->links[link].to;
	if (!network_is_switch(to))
		return true;
	const uint32_t next = network_index(to);
	if (detours->dead_ends[next] == detours->searches)
		return false;
	const struct route_choice choice = routes_towards(detours->routes, next, dst);
	for (uint32_t i = 0; i < choice.count; i++)
		if (leads(detours, choice.links[i], dst, now, true))
			return true;
	detours->dead_ends[next] = detours->searches;
	return false;
}

bool detours_lead(struct detours *detours, uint32_t link, uint32_t dst, vb_time now)
{
	return leads(detours, link, dst, now, false);
}

uint32_t detours_first_up(
	struct detours *detours, struct route_choice choice, uint32_t first, uint32_t dst, vb_time now)
{
	uint32_t up = choice.links[first];
	assert(first < choice.count);
	for (uint32_t i = choice.count; i-- > 0;) {
		const uint32_t link = choice.links[(first + i) % choice.count];
		if (!link_is_known_down(detours->network, link, now, false))
			up = link;
	}
	for (uint32_t i = 0; i < choice.count; i++) {
		const uint32_t link = choice.links[(first + i) % choice.count];
		if (detours_lead(detours, link, dst, now))
			return link;
	}
	return up;
}
