/* Finds tiers and pods by breadth-first searches. */
#include <errno.h>
#include <stdlib.h>
#include "net/topology_pods.h"

/* The switch that a port leads to, or NETWORK_NONE. */
static uint32_t neighbour(const struct network *network, uint32_t at, uint32_t port)
{
	network_node to = network->links[network->ports[network->switches[at].first_port + port]].to;
	return network_is_switch(to) ? network_index(to) : NETWORK_NONE;
}

/* Returns the highest tier. */
static uint32_t find_tiers(struct network *network, uint32_t *queue)
{
	uint32_t first = 0, last = 0, highest = 0;
	for (uint32_t i = 0; i < network->switch_count; i++)
		network->switches[i].tier = NETWORK_NONE;
	for (uint32_t i = 0; i < network->endpoint_count; i++) {
		network_node to = network->links[network->endpoints[i].link].to;
		if (network_is_switch(to) && network->switches[network_index(to)].tier != 0) {
			network->switches[network_index(to)].tier = 0;
			queue[last++] = network_index(to);
		}
	}
	while (first < last) {
		uint32_t at = queue[first++];
		highest = network->switches[at].tier;
		for (uint32_t port = 0; port < network->switches[at].port_count; port++) {
			uint32_t to = neighbour(network, at, port);
			if (to == NETWORK_NONE || network->switches[to].tier != NETWORK_NONE)
				continue;
			network->switches[to].tier = highest + 1;
			queue[last++] = to;
		}
	}
	return highest;
}

/* Gives the pod's number to all switches that can be reached from `start` without the highest tier. */
static void spread(struct network *network, uint32_t start, uint32_t pod, uint32_t highest, uint32_t *queue)
{
	uint32_t first = 0, last = 0;
	network->switches[start].pod = pod;
	queue[last++] = start;
	while (first < last) {
		uint32_t at = queue[first++];
		for (uint32_t port = 0; port < network->switches[at].port_count; port++) {
			uint32_t to = neighbour(network, at, port);
			if (to == NETWORK_NONE || network->switches[to].tier >= highest ||
				network->switches[to].pod != NETWORK_NONE)
				continue;
			network->switches[to].pod = pod;
			queue[last++] = to;
		}
	}
}

int topology_find_pods(struct network *network)
{
	uint32_t *queue = calloc(network->switch_count + 1, sizeof(*queue)), pods = 0;
	if (!queue)
		return -ENOMEM;
	uint32_t highest = find_tiers(network, queue);
	for (uint32_t i = 0; i < network->switch_count; i++)
		network->switches[i].pod = NETWORK_NONE;
	for (uint32_t i = 0; i < network->switch_count; i++)
		if (network->switches[i].tier < highest && network->switches[i].pod == NETWORK_NONE)
			spread(network, i, pods++, highest, queue);
	if (pods < 2) {
		pods = 0;
		for (uint32_t i = 0; i < network->switch_count; i++)
			network->switches[i].pod = network->switches[i].tier == 0 ? pods++ : NETWORK_NONE;
	}
	free(queue);
	return 0;
}
