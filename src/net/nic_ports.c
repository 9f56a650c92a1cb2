/* See nic_ports.h. */
#include "net/nic_ports.h"
#include <stdio.h>
#include "base/invariant.h"
#include "net/why.h"

/* Each NIC is a place of its own to routes. */
enum { MOST_NICS = 1 << 14 };

struct switch_profile nic_ports_profile(const struct topology *like)
{
	struct switch_profile its = like->profile;
	snprintf(its.name, sizeof(its.name), "ports of a NIC");
	its.buffer_bytes = its.port_bytes = its.reserved_bytes = 0;
	its.is_cut_through = true;
	its.latency = its.watchdog = 0;
	its.routing = ROUTING_ECMP;
	its.hash = HASH_OWN;
	for (uint32_t class = 0; class < FABRIC_CLASSES; class ++) {
		its.classes[class].mark_min = its.classes[class].mark_max = 0;
		its.classes[class].alpha = 0;
		its.classes[class].limit_bytes = 0;
	}
	return its;
}

int nic_ports_begin(struct nic_ports *nics, const struct topology *like, struct network *network, uint32_t switches,
	uint32_t endpoints, char *why, unsigned why_size)
{
	*nics = (struct nic_ports){ .like = like,
		.ports = like->nic_ports ? like->nic_ports : 1,
		.nic = network_add_nic(network, &like->nic),
		.first = switches };
	if (nics->ports == 1)
		return 0;
	if (nics->ports > NIC_PORTS_MOST || endpoints > MOST_NICS)
		return why_not(why, why_size, "%u NICs with %u ports each: at most %d with %d", endpoints, nics->ports,
			MOST_NICS, NIC_PORTS_MOST);
	const struct switch_profile profile = nic_ports_profile(like);
	nics->profile = network_add_profile(network, &profile);
	return 0;
}

void nic_ports_add(const struct nic_ports *nics, struct network *network, uint32_t machine, uint32_t leaf)
{
	const struct topology *like = nics->like;
	const uint32_t endpoint = network_add_endpoint(network, machine, nics->nic);
	const vb_time inside = like->host_delay / 2;
	if (nics->ports == 1) {
		network_connect(
			network, endpoint, network_switch_node(leaf), like->host_bits_per_second, like->host_delay);
		return;
	}
	network_connect(network, endpoint, network_switch_node(nics->first + endpoint),
		like->host_bits_per_second * nics->ports, inside);
	for (uint32_t port = 0; port < nics->ports; port++)
		network_connect(network, network_switch_node(nics->first + endpoint), network_switch_node(leaf + port),
			like->host_bits_per_second, like->host_delay - inside);
}

void nic_ports_end(const struct nic_ports *nics, struct network *network)
{
	assert(network->has_no_memory || network->switch_count == nics->first);
	for (uint32_t i = 0; nics->ports > 1 && i < network->endpoint_count; i++) {
		const uint32_t endpoint_link = 2 * i * (1 + nics->ports); /* each adds as many links, both ways */
		const network_node leaf = network->has_no_memory ? 0 : network->links[endpoint_link + 2].to;
		const uint32_t pod = network->has_no_memory ? 0 : network->switches[network_index(leaf)].pod;
		network_add_switch(network, nics->profile, 0, pod);
		network->nic_switch_count++;
	}
}
