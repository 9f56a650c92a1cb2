/* See front_end.h. */
#include "net/front_end.h"
#include <string.h>
#include "base/invariant.h"
#include "net/clos.h"
#include "net/why.h"

/* How much the numbers of the added network grow by. */
struct shift {
	uint32_t endpoints, switches, profiles, nics, pods;
};

static network_node moved(const struct shift *by, network_node node)
{
	return node + (network_is_switch(node) ? by->switches : by->endpoints);
}

/* Machines of the front end are the hosts, and behind them the storage nodes. */
static uint32_t machine_of(const struct hosts_front *front, uint32_t endpoint)
{
	const uint32_t of_hosts = front->hosts * front->nics;
	return endpoint < of_hosts ? endpoint / front->nics : front->hosts + (endpoint - of_hosts);
}

static void append(struct network *network, const struct network *added, const struct hosts_front *front)
{
	const struct shift by = { network->endpoint_count, network->switch_count, network->profile_count,
		network->nic_count, network_pods(network) };
	assert(added->fault_count == 0 && added->nic_switch_count == 0);
	for (uint32_t i = 0; i < added->profile_count; i++)
		network_add_profile(network, &added->profiles[i]);
	for (uint32_t i = 0; i < added->nic_count; i++)
		network_add_nic(network, &added->nics[i]);
	for (uint32_t i = 0; i < added->endpoint_count; i++)
		network_add_endpoint(network, machine_of(front, i), added->endpoints[i].nic + by.nics);
	for (uint32_t i = 0; i < added->switch_count; i++) {
		const struct network_switch *its = &added->switches[i];
		network_add_switch(network, its->profile + by.profiles, its->tier,
			its->pod == NETWORK_NONE ? NETWORK_NONE : its->pod + by.pods);
	}
	for (uint32_t i = 0; i < added->link_count; i += 2) {
		const struct network_link *its = &added->links[i];
		assert(its->reverse == i + 1);
		network_connect(network, moved(&by, its->from), moved(&by, its->to), its->bits_per_second, its->delay);
	}
	network->front_endpoint_count = added->endpoint_count;
	network->front_switch_count = added->switch_count;
	network->storage_count = front->storage;
	network->is_split = true;
}

static int check(const struct front_end *front_end, uint32_t hosts, char *why, unsigned why_size)
{
	const uint64_t endpoints = (uint64_t)hosts * front_end->nics + front_end->storage;
	if (front_end->nics == 0)
		return why_not(why, why_size, "nics: a host has no NIC of the front end: write 1 or more");
	if (endpoints > CLOS_MOST_NODES)
		return why_not(why, why_size,
			"storage: %u hosts with %u NICs and %u storage nodes are more than %d endpoints: write fewer",
			hosts, front_end->nics, front_end->storage, CLOS_MOST_NODES);
	const uint32_t leaves = front_end->topology.leaves;
	const bool has_leaves = strcmp(front_end->topology.kind, "leaf-spine") == 0;
	if (has_leaves && (leaves == 0 || endpoints % leaves))
		return why_not(why, why_size,
			"leaves: %u NICs of hosts and %u storage nodes cannot be shared out among %u leaves: write a "
			"number that divides %u",
			hosts * front_end->nics, front_end->storage, leaves, (uint32_t)endpoints);
	return 0;
}

int front_end_add(
	const struct front_end *front_end, struct network *network, struct hosts *hosts, char *why, unsigned why_size)
{
	struct topology topology = front_end->topology;
	struct network added = { 0 };
	const uint32_t count = hosts_count(hosts, network->endpoint_count);
	assert(network->front_endpoint_count == 0 && front_end->storage > 0);
	int error = check(front_end, count, why, why_size);
	if (error)
		return error;
	const struct hosts_front front = { .nics = front_end->nics,
		.storage = front_end->storage,
		.first = network->endpoint_count,
		.hosts = count,
		.ranks = hosts_ranks(hosts, network->endpoint_count) };
	topology.endpoints = count * front.nics + front.storage;
	error = topology_build(&topology, &added, why, why_size);
	if (error)
		return error;
	append(network, &added, &front);
	network_free(&added);
	error = network_finish(network, why, why_size);
	if (!error)
		hosts->front = front;
	return error;
}
