/* Fat-trees, leaf-spines and rails, expressed as tiers. */
#include <math.h>
#include "net/clos.h"
#include "net/nic_ports.h"
#include "net/topologies_kinds.h"
#include "net/why.h"

static struct clos clos_of(const struct topology *topology)
{
	struct clos clos = { .tiers = 2, .pods = 1, .nic = topology->nic };
	for (int tier = 0; tier < 3; tier++)
		clos.tier[tier] = (struct clos_tier){ .profile = topology->profile,
			.bundle = 1,
			.bits_per_second = tier ? topology_fabric_rate(topology) : topology->host_bits_per_second,
			.delay = tier ? topology->fabric_delay : topology->host_delay };
	return clos;
}

static uint32_t ports_of(const struct topology *topology)
{
	return topology->nic_ports ? topology->nic_ports : 1;
}

/* value as an integer; 0 if it is not one, or too large. */
static uint32_t whole(double value)
{
	double near = (double)(uint32_t)(value < CLOS_MOST_NODES ? value + 0.5 : 0);
	return fabs(value - near) < 1e-6 ? (uint32_t)near : 0;
}

/* ---- Fat-trees --------------------------------------------------------------------------------------------------- */

static uint64_t endpoints_of(uint64_t radix, uint32_t tiers)
{
	return tiers == 2 ? radix * radix / 2 : radix * radix * radix / 4;
}

int topology_fat_tree(const struct topology *topology, struct network *network, char *why, unsigned why_size)
{
	uint32_t tiers = topology->tiers ? topology->tiers : 3, radix = topology->radix;
	double oversubscription = topology->oversubscription ? topology->oversubscription : 1;
	if (tiers != 2 && tiers != 3)
		return why_not(why, why_size, "a fat-tree has 2 or 3 tiers, not %u", tiers);
	if (topology->endpoints > CLOS_MOST_NODES || radix > CLOS_MOST_NODES)
		return why_not(why, why_size, "a fat-tree of more than %d endpoints", CLOS_MOST_NODES);
	if (radix == 0)
		while (endpoints_of(radix, tiers) < topology->endpoints)
			radix += 2;
	if (radix < 2 || radix % 2)
		return why_not(why, why_size, "a fat-tree's radix is even and not 0, not %u", radix);
	if (topology->endpoints && topology->endpoints != endpoints_of(radix, tiers))
		return why_not(why, why_size, "a fat-tree of radix %u with %u tiers has %llu endpoints, not %u", radix,
			tiers, (unsigned long long)endpoints_of(radix, tiers), topology->endpoints);
	uint32_t half = radix / 2, spines = oversubscription >= 1 ? whole(half / oversubscription) : 0;
	if (spines == 0)
		return why_not(why, why_size, "the %u uplinks of a leaf cannot be oversubscribed %g times", half,
			oversubscription);
	struct clos clos = clos_of(topology);
	clos.tiers = tiers;
	clos.pods = tiers == 3 ? radix : 1;
	clos.leaves = tiers == 3 ? half : radix;
	clos.spines = spines;
	clos.cores_of_a_spine = half;
	clos.endpoints = half;
	return clos_build(&clos, network, why, why_size);
}

/* ---- Leaves and spines ------------------------------------------------------------------------------------------- */

int topology_leaf_spine(const struct topology *topology, struct network *network, char *why, unsigned why_size)
{
	struct clos clos = clos_of(topology);
	if (topology->leaves == 0 || topology->endpoints == 0 || topology->endpoints % topology->leaves)
		return why_not(why, why_size, "%u endpoints cannot be shared out among %u leaves", topology->endpoints,
			topology->leaves);
	clos.leaves = topology->leaves;
	clos.endpoints = topology->endpoints / topology->leaves;
	if (clos.leaves % ports_of(topology))
		return why_not(why, why_size, "%u leaves are no whole number of %u, one for each port of a NIC",
			clos.leaves, ports_of(topology));
	clos.like = topology;
	clos.spines = topology->spines;
	clos.tier[1].bundle = topology->uplinks ? topology->uplinks : 1;
	double a_spine = (double)clos.tier[1].bits_per_second * clos.tier[1].bundle;
	double down = (double)clos.tier[0].bits_per_second * clos.endpoints * ports_of(topology);
	double wanted = topology->oversubscription ? topology->oversubscription : 1;
	if (clos.spines == 0)
		clos.spines = wanted > 0 && a_spine > 0 ? whole(down / (a_spine * wanted)) : 0;
	if (clos.spines == 0)
		return why_not(why, why_size,
			"no whole number of spines makes leaves of %u endpoints oversubscribed %g times",
			clos.endpoints, wanted);
	double is = down / (a_spine * clos.spines);
	if (topology->oversubscription && fabs(is - wanted) > 1e-6 * wanted)
		return why_not(why, why_size, "%u spines make leaves of %u endpoints oversubscribed %g times, not %g",
			clos.spines, clos.endpoints, is, wanted);
	return clos_build(&clos, network, why, why_size);
}

/* ---- Rails ------------------------------------------------------------------------------------------------------- */

static int check_rails(const struct topology *topology, uint32_t leaves, char *why, unsigned why_size)
{
	uint32_t rails = topology->nics_a_machine, machines = topology->machines;
	if (topology->oversubscription)
		return why_not(why, why_size,
			"oversubscription is not used of rails: leaves, spines and uplinks say what joins them");
	const uint32_t ports = ports_of(topology);
	if (leaves % ports)
		return why_not(why, why_size, "%u leaves a rail are no whole number of %u, one for each port of a NIC",
			leaves, ports);
	if (rails == 0 || machines == 0 || machines % (leaves / ports))
		return why_not(why, why_size, "%u machines with %u NICs cannot be shared out among %u leaves a rail",
			machines, rails, leaves);
	if ((uint64_t)rails * machines > CLOS_MOST_NODES || topology->spines > CLOS_MOST_NODES ||
		(uint64_t)rails * leaves * topology->spines >
			CLOS_MOST_LINKS / (topology->uplinks ? topology->uplinks : 1))
		return why_not(
			why, why_size, "rails of more than %d NICs or %d links", CLOS_MOST_NODES, CLOS_MOST_LINKS);
	if (topology->endpoints && topology->endpoints != rails * machines)
		return why_not(why, why_size, "%u machines with %u NICs have %u endpoints, not %u", machines, rails,
			rails * machines, topology->endpoints);
	if (leaves > ports && topology->spines == 0)
		return why_not(why, why_size, "%u leaves a rail need spines", leaves);
	return 0;
}

int topology_rail(const struct topology *topology, struct network *network, char *why, unsigned why_size)
{
	const uint32_t ports = ports_of(topology);
	uint32_t leaves = topology->leaves ? topology->leaves : ports, rails = topology->nics_a_machine;
	uint32_t uplinks = topology->uplinks ? topology->uplinks : 1;
	int error = check_rails(topology, leaves, why, why_size);
	if (error)
		return error;
	struct nic_ports nics;
	error = nic_ports_begin(
		&nics, topology, network, rails * leaves + topology->spines, rails * topology->machines, why, why_size);
	if (error)
		return error;
	const uint32_t profile = network_add_profile(network, &topology->profile);
	for (uint32_t i = 0; i < rails * leaves; i++)
		network_add_switch(network, profile, 0, i / leaves);
	for (uint32_t i = 0; i < topology->spines; i++)
		network_add_switch(network, profile, 1, NETWORK_NONE);
	for (uint32_t i = 0; i < topology->machines * rails; i++) {
		const uint32_t machine = i / rails, group = machine / (topology->machines / (leaves / ports));
		nic_ports_add(&nics, network, machine, i % rails * leaves + group * ports);
	}
	nic_ports_end(&nics, network);
	for (uint32_t leaf = 0; leaf < rails * leaves; leaf++)
		for (uint32_t i = 0; i < topology->spines * uplinks; i++)
			network_connect(network, network_switch_node(leaf),
				network_switch_node(rails * leaves + i / uplinks), topology_fabric_rate(topology),
				topology->fabric_delay);
	network->is_split = topology->spines == 0;
	return network_finish(network, why, why_size);
}
