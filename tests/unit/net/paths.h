/* Looks at a network as its packets will see it. */
#ifndef VB_TESTS_UNIT_NET_PATHS_H
#define VB_TESTS_UNIT_NET_PATHS_H

#include "net/route.h"
#include "../unit.h"

struct paths {
	uint32_t links; /* that each crosses */
	uint64_t count;
};

static inline struct paths paths_from(
	const struct network *network, const struct routes *routes, uint32_t at, uint32_t to)
{
	struct paths paths = { 0 };
	struct route_choice choice = routes_towards(routes, at, to);
	for (uint32_t i = 0; i < choice.count; i++) {
		network_node next = network->links[choice.links[i]].to;
		struct paths beyond = { .count = 1 };
		if (network_is_switch(next))
			beyond = paths_from(network, routes, network_index(next), to);
		else
			assert_int_equal(next, to);
		assert_true(i == 0 || paths.links == beyond.links + 1);
		paths.links = beyond.links + 1;
		paths.count += beyond.count;
	}
	return paths;
}

static inline struct paths paths_between(
	const struct network *network, const struct routes *routes, uint32_t a, uint32_t b)
{
	struct paths paths =
		paths_from(network, routes, network_index(network->links[network->endpoints[a].link].to), b);
	paths.links++;
	return paths;
}

#endif
