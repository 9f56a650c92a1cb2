/* The path of a message. Where hashes decide, it is what they decide in a run. */
#include "fabric/path.h"
#include "net/outages.h"

static bool is_hashed(const struct network *network, uint32_t at_switch)
{
	const struct switch_profile *profile = &network->profiles[network->switches[at_switch].profile];
	return profile->routing == ROUTING_ECMP && profile->hash != HASH_NS3;
}

struct route_choice path_ways(const struct fabric_config *config, const struct routes *routes, uint32_t at_switch,
	uint32_t src, uint32_t dst, uint16_t port)
{
	struct route_choice choice = routes_towards(routes, at_switch, dst);
	if (choice.count > 1 && is_hashed(config->network, at_switch)) {
		const uint64_t seed = fabric_switch_seed(config->seed, at_switch);
		choice.links += ecmp_choice(seed, src, dst, port, choice.count);
		choice.count = 1;
	}
	return choice;
}

uint32_t fabric_path(const struct fabric_config *config, const struct routes *routes,
	const struct fabric_message *message, uint32_t links[FABRIC_PATH])
{
	const struct network *network = config->network;
	const bool may_change = network_has_outages(network); /* hashes choose anew then */
	uint32_t count = 0, link = network->endpoints[message->from].link;
	while (count < FABRIC_PATH) {
		links[count++] = link;
		if (!network_is_switch(network->links[link].to))
			return count;
		const uint32_t at = network_index(network->links[link].to);
		const struct route_choice ways =
			path_ways(config, routes, at, message->from, message->to, message->port);
		if (ways.count != 1 || (may_change && routes_towards(routes, at, message->to).count > 1))
			return 0;
		link = ways.links[0];
	}
	return 0;
}
