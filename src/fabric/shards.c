/* See shards.h. Pods stay together if there are any, otherwise the endpoints of a switch do. The others are dealt out.
 * A host with GPUs stays together, with its first NIC, and so do its NICs of a front end. */
#include "base/invariant.h"
#include "fabric/shards.h"

#define MOST_SHARDS 64

uint32_t shards_count(const struct fabric_config *config)
{
	uint32_t most = config->network->switch_count, wanted = config->threads ? config->threads : 1;
	if (config->captured_count || config->by_flows)
		return 1;
	for (uint32_t i = 0; wanted > 1 && i < config->network->link_count; i++)
		if (config->network->links[i].delay == 0)
			return 1; /* there would be no window */
	wanted = wanted < MOST_SHARDS ? wanted : MOST_SHARDS;
	return wanted < most ? wanted : most ? most : 1;
}

static uint16_t share(uint32_t index, uint32_t count, uint32_t shards)
{
	assert(index < count);
	return (uint16_t)((uint64_t)index * shards / count);
}

static void keep_hosts_together(struct fabric *fabric)
{
	const struct hosts *hosts = &fabric->config->hosts;
	const struct hosts_front *front = &hosts->front;
	const uint32_t nics = hosts->gpus ? hosts->nics : 1, of_front = front->storage ? front->hosts * front->nics : 0;
	assert(nics > 0 && (of_front == 0 || front->first == network_back_endpoints(fabric->network)));
	for (uint32_t i = 0; i < network_back_endpoints(fabric->network); i++)
		fabric->endpoints[i].shard = fabric->endpoints[i / nics * nics].shard;
	for (uint32_t i = 0; i < of_front; i++)
		fabric->endpoints[front->first + i].shard = fabric->endpoints[i / front->nics * nics].shard;
}

void shards_cut(struct fabric *fabric)
{
	const struct network *network = fabric->network;
	const uint32_t pods = network_pods(network), shards = fabric->shard_count;
	uint32_t tier_count[256] = { 0 }, tier_seen[256] = { 0 };
	for (uint32_t i = 0; i < network->switch_count; i++)
		tier_count[network->switches[i].tier & 0xFF]++;
	for (uint32_t i = 0; i < network->switch_count; i++) {
		const struct network_switch *its = &network->switches[i];
		uint32_t tier = its->tier & 0xFF;
		fabric->switches[i].shard = its->pod != NETWORK_NONE ? share(its->pod, pods, shards)
								     : share(tier_seen[tier], tier_count[tier], shards);
		tier_seen[tier]++;
	}
	for (uint32_t i = 0; i < network->endpoint_count; i++) {
		network_node to = network->links[network->endpoints[i].link].to;
		fabric->endpoints[i].shard = network_is_switch(to) ? fabric->switches[network_index(to)].shard : 0;
	}
	keep_hosts_together(fabric);
	fabric->window = 0;
	for (uint32_t i = 0; shards > 1 && i < network->link_count;
		i++) /* all links count, so that the window is the same for every number of shards */
		if (!fabric->window || network->links[i].delay < fabric->window)
			fabric->window = network->links[i].delay;
}
