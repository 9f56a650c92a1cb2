/* The path of a message, after the run. Where hashes decide, it is what they decided. */
#include "base/invariant.h"
#include "fabric/state.h"

/* Links that go down let hashes choose anew. */
static bool has_outages(const struct network *network)
{
	for (uint32_t i = 0; i < network->fault_count; i++)
		if (network_fault_is_for_good(&network->faults[i]) ||
			network->faults[i].up_at > network->faults[i].down_at)
			return true;
	return false;
}

static bool is_hashed(const struct network *network, uint32_t at_switch)
{
	const struct switch_profile *profile = &network->profiles[network->switches[at_switch].profile];
	return profile->routing == ROUTING_ECMP && profile->hash != HASH_NS3;
}

uint32_t fabric_path(const struct fabric_config *config, const struct routes *routes,
	const struct fabric_message *message, uint32_t links[FABRIC_PATH])
{
	const struct network *network = config->network;
	const uint32_t src = message->from, dst = message->to;
	uint32_t count = 0, link = network->endpoints[src].link;
	while (count < FABRIC_PATH) {
		links[count++] = link;
		if (!network_is_switch(network->links[link].to))
			return count;
		const uint32_t at = network_index(network->links[link].to);
		const struct route_choice choice = routes_towards(routes, at, dst);
		if (choice.count == 0 || (choice.count > 1 && (!is_hashed(network, at) || has_outages(network))))
			return 0;
		const uint64_t seed = fabric_switch_seed(config->seed, at);
		link = choice.links[choice.count > 1 ? ecmp_choice(seed, src, dst, message->port, choice.count) : 0];
	}
	return 0;
}
