/* Adds to a network, and checks that the result is one.
 * Holds, after network_finish: each endpoint's link leads from it, and it has no other; a switch's ports are its
 * outgoing links in the order of their numbers; a link's reverse leads back, at the same rate and delay. */
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "net/grow.h"
#include "net/network.h"
#include "net/why.h"

/* The next element of one of the network's arrays, or NULL; after a lack of memory network_finish fails. */
#define ADD(network, array, count, room)                                                                               \
	(grow_by_one(&(network)->array, &(network)->room, (network)->count, sizeof(*(network)->array))                 \
			? &(network)->array[(network)->count++]                                                        \
			: ((network)->has_no_memory = true, NULL))

static uint64_t bounded(const struct network *network, network_node node, uint64_t rate)
{
	if (network_is_switch(node))
		return rate;
	uint64_t bound = network->nics[network->endpoints[network_index(node)].nic].pcie_bits_per_second;
	return bound && bound < rate ? bound : rate;
}

uint64_t network_rate(const struct network *network, uint32_t link)
{
	const struct network_link *is = &network->links[link];
	return bounded(network, is->from, bounded(network, is->to, is->bits_per_second));
}

uint32_t network_add_profile(struct network *network, const struct switch_profile *profile)
{
	struct switch_profile *added = ADD(network, profiles, profile_count, profile_room);
	if (!added)
		return NETWORK_NONE;
	*added = *profile;
	return network->profile_count - 1;
}

uint32_t network_add_nic(struct network *network, const struct nic_profile *nic)
{
	struct nic_profile *added = ADD(network, nics, nic_count, nic_room);
	if (!added)
		return NETWORK_NONE;
	*added = *nic;
	return network->nic_count - 1;
}

uint32_t network_add_endpoint(struct network *network, uint32_t machine, uint32_t nic)
{
	struct network_endpoint *added = ADD(network, endpoints, endpoint_count, endpoint_room);
	if (!added)
		return NETWORK_NONE;
	*added = (struct network_endpoint){ .link = NETWORK_NONE, .machine = machine, .nic = nic };
	return network->endpoint_count - 1;
}

uint32_t network_add_switch(struct network *network, uint32_t profile, uint32_t tier, uint32_t pod)
{
	struct network_switch *added = ADD(network, switches, switch_count, switch_room);
	if (!added)
		return NETWORK_NONE;
	*added = (struct network_switch){ .profile = profile, .tier = tier, .pod = pod };
	return network->switch_count - 1;
}

static uint32_t add_link(struct network *network, const struct network_link *link)
{
	struct network_link *added = ADD(network, links, link_count, link_room);
	if (!added)
		return NETWORK_NONE;
	*added = *link;
	return network->link_count - 1;
}

uint32_t network_connect(
	struct network *network, network_node a, network_node b, uint64_t bits_per_second, vb_time delay)
{
	if (network->has_no_memory)
		return NETWORK_NONE;
	uint32_t there = network->link_count, back = there + 1;
	if (add_link(network, &(struct network_link){ .from = a,
				      .to = b,
				      .bits_per_second = bits_per_second,
				      .delay = delay,
				      .reverse = back,
				      .fault = NETWORK_NONE }) == NETWORK_NONE)
		return NETWORK_NONE;
	if (add_link(network, &(struct network_link){ .from = b,
				      .to = a,
				      .bits_per_second = bits_per_second,
				      .delay = delay,
				      .reverse = there,
				      .fault = NETWORK_NONE }) == NETWORK_NONE)
		return NETWORK_NONE;
	return there;
}

int network_set_fault(struct network *network, uint32_t link, const struct network_fault *fault)
{
	assert(link < network->link_count);
	struct network_fault *added = ADD(network, faults, fault_count, fault_room);
	if (!added)
		return -ENOMEM;
	*added = *fault;
	network->links[link].fault = network->links[network->links[link].reverse].fault = network->fault_count - 1;
	return 0;
}

uint32_t network_pods(const struct network *network)
{
	uint32_t pods = 0;
	for (uint32_t i = 0; i < network->switch_count; i++)
		if (network->switches[i].pod != NETWORK_NONE && network->switches[i].pod >= pods)
			pods = network->switches[i].pod + 1;
	return pods;
}

static bool exists(const struct network *network, network_node node)
{
	return network_index(node) < (network_is_switch(node) ? network->switch_count : network->endpoint_count);
}

/* For error messages. */
static const char *kind_of(network_node node)
{
	return network_is_switch(node) ? "switch" : "endpoint";
}

static int check_link(const struct network *network, const struct network_link *link, char *why, unsigned why_size)
{
	const network_node ends[] = { link->from, link->to };
	for (int i = 0; i < 2; i++)
		if (!exists(network, ends[i]))
			return why_not(why, why_size, "a link to %s %u, which does not exist", kind_of(ends[i]),
				network_index(ends[i]));
	if (link->from == link->to)
		return why_not(
			why, why_size, "a link from %s %u to itself", kind_of(link->from), network_index(link->from));
	if (link->bits_per_second == 0)
		return why_not(why, why_size, "the link between %s %u and %s %u has no rate", kind_of(link->from),
			network_index(link->from), kind_of(link->to), network_index(link->to));
	if (link->delay < 0)
		return why_not(why, why_size, "the link between %s %u and %s %u has a delay below 0",
			kind_of(link->from), network_index(link->from), kind_of(link->to), network_index(link->to));
	return 0;
}

static int check_endpoints(struct network *network, char *why, unsigned why_size)
{
	for (uint32_t i = 0; i < network->endpoint_count; i++)
		network->endpoints[i].link = NETWORK_NONE;
	for (uint32_t i = 0; i < network->link_count; i++) {
		network_node from = network->links[i].from;
		if (network_is_switch(from))
			continue;
		if (network->endpoints[from].link != NETWORK_NONE)
			return why_not(why, why_size, "endpoint %u has more than one link", from);
		network->endpoints[from].link = i;
	}
	for (uint32_t i = 0; i < network->endpoint_count; i++) {
		if (network->endpoints[i].link == NETWORK_NONE)
			return why_not(why, why_size, "endpoint %u has no link", i);
		if (network->endpoints[i].nic >= network->nic_count)
			return why_not(why, why_size, "endpoint %u has no NIC's profile", i);
	}
	for (uint32_t i = 0; i < network->switch_count; i++)
		if (network->switches[i].profile >= network->profile_count)
			return why_not(why, why_size, "switch %u has no profile", i);
	return network->endpoint_count ? 0 : why_not(why, why_size, "a network without endpoints");
}

/* Sorts by counting. It takes the links in order, so the ports of a switch are in order. */
static int sort_ports(struct network *network)
{
	free(network->ports);
	network->ports = calloc(network->link_count, sizeof(*network->ports));
	if (!network->ports)
		return -ENOMEM;
	for (uint32_t i = 0; i < network->switch_count; i++)
		network->switches[i].port_count = 0;
	for (uint32_t i = 0; i < network->link_count; i++)
		if (network_is_switch(network->links[i].from))
			network->switches[network_index(network->links[i].from)].port_count++;
	uint32_t next = 0;
	for (uint32_t i = 0; i < network->switch_count; i++) {
		network->switches[i].first_port = next;
		next += network->switches[i].port_count;
		network->switches[i].port_count = 0;
	}
	for (uint32_t i = 0; i < network->link_count; i++)
		if (network_is_switch(network->links[i].from)) {
			struct network_switch *at = &network->switches[network_index(network->links[i].from)];
			network->ports[at->first_port + at->port_count++] = i;
		}
	return 0;
}

/* Marks all nodes that can be reached from endpoint 0: endpoints first, then switches. queue: room for that many. */
static void reach(const struct network *network, bool *reached, network_node *queue)
{
	uint32_t first = 0, last = 0;
	reached[0] = true;
	queue[last++] = 0;
	while (first < last) {
		network_node at = queue[first++];
		uint32_t count = 1;
		const uint32_t *links = &network->endpoints[at & ~NETWORK_SWITCH].link;
		if (network_is_switch(at)) {
			count = network->switches[network_index(at)].port_count;
			links = &network->ports[network->switches[network_index(at)].first_port];
		}
		for (uint32_t i = 0; i < count; i++) {
			network_node to = network->links[links[i]].to;
			bool *there =
				&reached[network_index(to) + (network_is_switch(to) ? network->endpoint_count : 0)];
			if (!*there)
				queue[last++] = to;
			*there = true;
		}
	}
}

static int check_reach(const struct network *network, char *why, unsigned why_size)
{
	uint32_t nodes = network->endpoint_count + network->switch_count;
	bool *reached = calloc(nodes, sizeof(*reached));
	network_node *queue = calloc(nodes, sizeof(*queue));
	int error = reached && queue ? 0 : -ENOMEM;
	if (!error)
		reach(network, reached, queue);
	for (uint32_t i = 0; i < nodes && !error; i++) {
		bool is_switch = i >= network->endpoint_count;
		if (!reached[i])
			error = why_not(why, why_size, "%s %u cannot be reached from endpoint 0",
				is_switch ? "switch" : "endpoint", is_switch ? i - network->endpoint_count : i);
	}
	free(reached);
	free(queue);
	return error;
}

int network_finish(struct network *network, char *why, unsigned why_size)
{
	if (network->has_no_memory)
		return -ENOMEM;
	int error = 0;
	for (uint32_t i = 0; i < network->link_count && !error; i++)
		error = check_link(network, &network->links[i], why, why_size);
	if (!error)
		error = check_endpoints(network, why, why_size);
	if (!error)
		error = sort_ports(network);
	if (!error && !network->is_split)
		error = check_reach(network, why, why_size);
	return error;
}

void network_free(struct network *network)
{
	free(network->endpoints);
	free(network->switches);
	free(network->links);
	free(network->ports);
	free(network->faults);
	free(network->profiles);
	free(network->nics);
	*network = (struct network){ 0 };
}
