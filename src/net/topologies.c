/* Networks from parameters: the table of kinds, and the kinds that are not trees. */
#include <string.h>
#include "net/clos.h"
#include "net/topologies_kinds.h"
#include "net/why.h"

/* Adds `switches` of one tier, each in its own pod and with equally many endpoints. */
static int add_switches(const struct topology *topology, uint32_t switches, uint32_t endpoints, struct network *network,
	char *why, unsigned why_size)
{
	if (switches == 0 || switches > CLOS_MOST_NODES || endpoints == 0 || endpoints > CLOS_MOST_NODES ||
		endpoints % switches)
		return why_not(
			why, why_size, "%u endpoints cannot be shared out among %u switches", endpoints, switches);
	uint32_t profile = network_add_profile(network, &topology->profile),
		 nic = network_add_nic(network, &topology->nic);
	for (uint32_t i = 0; i < switches; i++)
		network_add_switch(network, profile, 0, i);
	for (uint32_t i = 0; i < endpoints; i++)
		network_connect(network, network_add_endpoint(network, i, nic),
			network_switch_node(i / (endpoints / switches)), topology->host_bits_per_second,
			topology->host_delay);
	return 0;
}

static void join(const struct topology *topology, struct network *network, uint32_t a, uint32_t b)
{
	network_connect(network, network_switch_node(a), network_switch_node(b), topology_fabric_rate(topology),
		topology->fabric_delay);
}

static int build_switch(const struct topology *topology, struct network *network, char *why, unsigned why_size)
{
	int error = add_switches(topology, 1, topology->endpoints, network, why, why_size);
	return error ? error : network_finish(network, why, why_size);
}

static int build_dumbbell(const struct topology *topology, struct network *network, char *why, unsigned why_size)
{
	int error = add_switches(topology, 2, topology->endpoints, network, why, why_size);
	if (error)
		return error;
	if (topology->uplinks > CLOS_MOST_NODES)
		return why_not(why, why_size, "a dumbbell of more than %d links", CLOS_MOST_NODES);
	for (uint32_t i = 0; i < topology->uplinks || i == 0; i++)
		join(topology, network, 0, 1);
	return network_finish(network, why, why_size);
}

static int build_ring(const struct topology *topology, struct network *network, char *why, unsigned why_size)
{
	uint32_t switches = topology->leaves, endpoints = topology->endpoints ? topology->endpoints : switches;
	if (switches < 3)
		return why_not(why, why_size, "a ring has 3 switches or more, not %u", switches);
	int error = add_switches(topology, switches, endpoints, network, why, why_size);
	if (error)
		return error;
	for (uint32_t i = 0; i < switches; i++)
		join(topology, network, i, (i + 1) % switches);
	return network_finish(network, why, why_size);
}

/* Two points are neighbours both ways round with one link only. */
static bool has_link_ahead(uint32_t at, uint32_t length)
{
	return length > 2 || (length == 2 && at == 0);
}

static int build_torus(const struct topology *topology, struct network *network, char *why, unsigned why_size)
{
	uint32_t length[3];
	uint64_t points = 1;
	if (topology->dimensions[0] == 0)
		return why_not(why, why_size, "a torus has dimensions, one to three");
	for (int i = 0; i < 3; i++) {
		length[i] = topology->dimensions[i] ? topology->dimensions[i] : 1;
		points *= length[i] > CLOS_MOST_NODES ? CLOS_MOST_NODES + 1u : length[i];
		if (points > CLOS_MOST_NODES)
			return why_not(why, why_size, "a torus of more than %d switches", CLOS_MOST_NODES);
	}
	if (topology->endpoints && topology->endpoints != points)
		return why_not(why, why_size, "a torus of %u x %u x %u has %u endpoints, not %u", length[0], length[1],
			length[2], (unsigned)points, topology->endpoints);
	int error = add_switches(topology, (uint32_t)points, (uint32_t)points, network, why, why_size);
	if (error)
		return error;
	uint32_t outermost = length[2] > 1 ? length[0] * length[1] : length[1] > 1 ? length[0] : 1;
	for (uint32_t i = 0; i < points && !network->has_no_memory; i++) {
		network->switches[i].pod = i / outermost; /* a plane, a line or a point */
		uint32_t at[] = { i % length[0], i / length[0] % length[1], i / length[0] / length[1] };
		for (uint32_t dimension = 0, step = 1; dimension < 3; step *= length[dimension++])
			if (has_link_ahead(at[dimension], length[dimension]))
				join(topology, network, i,
					i - at[dimension] * step + (at[dimension] + 1) % length[dimension] * step);
	}
	return network_finish(network, why, why_size);
}

static const struct kind {
	const char *name;
	int (*build)(const struct topology *topology, struct network *network, char *why, unsigned why_size);
} kinds[] = {
	{ "switch", build_switch },
	{ "dumbbell", build_dumbbell },
	{ "leaf-spine", topology_leaf_spine },
	{ "fat-tree", topology_fat_tree },
	{ "rail", topology_rail },
	{ "torus", build_torus },
	{ "ring", build_ring },
};

int topology_build(const struct topology *topology, struct network *network, char *why, unsigned why_size)
{
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strncmp(topology->kind, kinds[i].name, sizeof(topology->kind)) == 0) {
			int error = kinds[i].build(topology, network, why, why_size);
			if (error)
				network_free(network);
			return error;
		}
	return why_not(why, why_size,
		"no topology is called %.*s: switch, dumbbell, leaf-spine, fat-tree, rail, torus or ring",
		(int)sizeof(topology->kind), topology->kind);
}
