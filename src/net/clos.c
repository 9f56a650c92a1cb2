/* Builds trees. Switches are numbered by tier and within a tier by pod, endpoints by leaf. The links of each tier
 * follow those of the tier below, so a switch's ports lead down first, then up. */
#include "net/clos.h"
#include "net/nic_ports.h"
#include "net/why.h"

static int check_size(const struct clos *clos, char *why, unsigned why_size)
{
	const uint32_t parts[] = { clos->pods, clos->leaves, clos->spines, clos->endpoints, clos->tier[1].bundle };
	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i] == 0 || parts[i] > CLOS_MOST_NODES)
			return why_not(why, why_size,
				"a tree needs pods, leaves, spines, endpoints and links, at most %d of each",
				CLOS_MOST_NODES);
	if (clos->tiers == 3 && (clos->cores_of_a_spine == 0 || clos->cores_of_a_spine > CLOS_MOST_NODES ||
					clos->tier[2].bundle == 0 || clos->tier[2].bundle > CLOS_MOST_NODES))
		return why_not(why, why_size, "a tree of three tiers needs cores, at most %d", CLOS_MOST_NODES);
	double leaves = (double)clos->pods * clos->leaves, spines = (double)clos->pods * clos->spines;
	double cores = clos->tiers == 3 ? (double)clos->spines * clos->cores_of_a_spine : 0;
	double endpoints = leaves * clos->endpoints;
	double links = endpoints + leaves * clos->spines * clos->tier[1].bundle;
	if (clos->tiers == 3)
		links += spines * clos->cores_of_a_spine * clos->tier[2].bundle;
	if (endpoints > CLOS_MOST_NODES || leaves + spines + cores > CLOS_MOST_NODES || links > CLOS_MOST_LINKS)
		return why_not(why, why_size, "%.0f endpoints, %.0f switches and %.0f links; at most %d, %d and %d",
			endpoints, leaves + spines + cores, links, CLOS_MOST_NODES, CLOS_MOST_NODES, CLOS_MOST_LINKS);
	return 0;
}

static void connect(struct network *network, const struct clos_tier *tier, network_node below, uint32_t above)
{
	for (uint32_t i = 0; i < tier->bundle; i++)
		network_connect(network, below, network_switch_node(above), tier->bits_per_second, tier->delay);
}

static void add_switches(
	struct network *network, const struct clos *clos, uint32_t tier, uint32_t pods, uint32_t count, bool is_podless)
{
	uint32_t profile = network_add_profile(network, &clos->tier[tier].profile);
	for (uint32_t pod = 0; pod < pods; pod++)
		for (uint32_t i = 0; i < count; i++)
			network_add_switch(network, profile, tier, is_podless ? NETWORK_NONE : pod);
}

static void connect_pods(struct network *network, const struct clos *clos)
{
	uint32_t leaves = clos->pods * clos->leaves;
	for (uint32_t leaf = 0; leaf < leaves; leaf++)
		for (uint32_t i = 0; i < clos->spines; i++)
			connect(network, &clos->tier[1], network_switch_node(leaf),
				leaves + leaf / clos->leaves * clos->spines + i);
}

static void connect_cores(struct network *network, const struct clos *clos)
{
	uint32_t leaves = clos->pods * clos->leaves, spines = clos->pods * clos->spines;
	for (uint32_t spine = 0; spine < spines; spine++)
		for (uint32_t i = 0; i < clos->cores_of_a_spine; i++)
			connect(network, &clos->tier[2], network_switch_node(leaves + spine),
				leaves + spines + spine % clos->spines + i * clos->spines);
}

int clos_build(const struct clos *clos, struct network *network, char *why, unsigned why_size)
{
	int error = check_size(clos, why, why_size);
	if (error)
		return error;
	const bool has_cores = clos->tiers == 3;
	const uint32_t leaves = clos->pods * clos->leaves;
	const uint32_t others = clos->pods * clos->spines + (has_cores ? clos->spines * clos->cores_of_a_spine : 0);
	const struct topology plain = { .host_bits_per_second = clos->tier[0].bits_per_second,
		.host_delay = clos->tier[0].delay,
		.nic = clos->nic };
	struct nic_ports nics;
	error = nic_ports_begin(&nics, clos->like ? clos->like : &plain, network, leaves + others,
		leaves * clos->endpoints, why, why_size);
	if (error)
		return error;
	/* Two tiers have only one pod: each leaf, with its endpoints, is the part that stays together. */
	add_switches(network, clos, 0, has_cores ? clos->pods : leaves, has_cores ? clos->leaves : 1, false);
	add_switches(network, clos, 1, clos->pods, clos->spines, !has_cores);
	if (has_cores)
		add_switches(network, clos, 2, 1, clos->spines * clos->cores_of_a_spine, true);
	for (uint32_t i = 0; i < leaves * clos->endpoints; i++)
		nic_ports_add(&nics, network, i, i / (clos->endpoints * nics.ports) * nics.ports);
	nic_ports_end(&nics, network);
	connect_pods(network, clos);
	if (has_cores)
		connect_cores(network, clos);
	return network_finish(network, why, why_size);
}
