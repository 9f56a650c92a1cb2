/* The time that a flow would take alone on the network. */
#include "sim/ideal.h"

#include <errno.h>
#include <stdlib.h>
#include "net/unloaded.h"

static struct framing framing_of(const struct simulation *simulation)
{
	const struct fabric_config *config = &simulation->config;
	return (struct framing){ config->mtu, config->data_overhead, config->ack_overhead };
}

double ideal_payload_rate(const struct simulation *simulation, uint32_t link)
{
	const struct fabric_config *config = &simulation->config;
	const double overhead = config->data_overhead ? config->data_overhead : FRAMING_ROCE_OVERHEAD;

	return (double)simulation->network.links[link].bits_per_second / 8 * config->mtu / (config->mtu + overhead);
}

vb_time ideal_message(
	const struct simulation *simulation, const struct routes *routes, uint32_t src, uint32_t dst, uint64_t bytes)
{
	const struct network *network = &simulation->network;
	const struct framing framing = framing_of(simulation);
	struct way way;

	if (!unloaded_way(network, routes, src, dst, &way))
		return 0;
	return network->nics[network->endpoints[src].nic].host_latency +
	       unloaded_message_time(network, &way, &framing, bytes);
}

static vb_time ideal_of(const struct simulation *simulation, const struct routes *routes, const struct flow *flow)
{
	const struct network *network = &simulation->network;
	const struct framing framing = framing_of(simulation);
	struct way way, back;

	if (!unloaded_way(network, routes, flow->src, flow->dst, &way) ||
		!unloaded_way(network, routes, flow->dst, flow->src, &back))
		return 0;
	return 2 * network->nics[network->endpoints[flow->src].nic].host_latency +
	       unloaded_message_time(network, &way, &framing, flow->bytes) +
	       unloaded_ack_time(network, &back, &framing);
}

int ideals_find(struct simulation *simulation)
{
	uint32_t count = simulation->flows.count;
	struct routes *routes = routes_make(&simulation->network);

	simulation->ideals = calloc(count ? count : 1, sizeof(*simulation->ideals));
	if (!routes || !simulation->ideals) {
		routes_free(routes);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++)
		simulation->ideals[i] = ideal_of(simulation, routes, &simulation->flows.flows[i]);
	routes_free(routes);
	return 0;
}
