/* See ways.h. */
#include "sim/ways.h"

#include <errno.h>
#include <stdlib.h>

int ways_open(struct ways *ways, const struct network *network)
{
	*ways = (struct ways){ .network = network,
		.routes = routes_make(network),
		.reached = calloc(network->switch_count + 1, sizeof(*ways->reached)),
		.stack = calloc(network->switch_count + 1, sizeof(*ways->stack)) };
	if (ways->routes && ways->reached && ways->stack)
		return 0;
	ways_close(ways);
	return -ENOMEM;
}

void ways_close(struct ways *ways)
{
	routes_free(ways->routes);
	free(ways->reached);
	free(ways->stack);
	*ways = (struct ways){ 0 };
}

bool ways_have_reached(const struct ways *ways, network_node node)
{
	return network_is_switch(node) && ways->reached[network_index(node)] == ways->number;
}

static void look_at(struct ways *ways, uint32_t link, bool (*look)(void *user, uint32_t link), void *user)
{
	const network_node to = ways->network->links[link].to;

	if (!look(user, link) || !network_is_switch(to) || ways_have_reached(ways, to))
		return;
	ways->reached[network_index(to)] = ways->number;
	ways->stack[ways->stack_count++] = network_index(to);
}

void ways_walk(struct ways *ways, uint32_t from, uint32_t to, bool (*look)(void *user, uint32_t link), void *user)
{
	ways->number++;
	look_at(ways, ways->network->endpoints[from].link, look, user);
	while (ways->stack_count > 0) {
		const struct route_choice choice = routes_towards(ways->routes, ways->stack[--ways->stack_count], to);
		for (uint32_t i = 0; i < choice.count; i++)
			look_at(ways, choice.links[i], look, user);
	}
}
