/* The room net/: a network, and what is sent in it, as data. It is made from parameters or read from files; nothing
 * here runs it. A run (fabric/), an estimate or a warning (sim/) only read it.
 *
 *   network.h     endpoints, switches, and the links between them    profile.h   what switches and NICs are like
 *   topologies.h  networks of a kind, and networks from files        route.h     the shortest paths
 *   flows.h       what is sent, and in which order                   workloads.h flows of a kind, and flows from files
 *   sizes.h       distributions of sizes                             chance.h    numbers drawn by chance
 *   front_end.h   a network apart, for storage
 *
 * Contract: the room sees base/ alone. Its only system calls read the files that it is told to. Chance comes from a
 * seed that is passed in, and every machine computes the same. A function that refuses its input returns -EINVAL with
 * the reason as text, one that lacks memory -ENOMEM, and then what it was to fill in is as it was.
 *
 * Endpoints are numbered from 0, switches apart from 0. An endpoint is a NIC; its `machine` says which host it is in. A
 * link has one direction: network_connect makes two. A switch's ports are its outgoing links in the order in which they
 * were made. */
#ifndef NET_NETWORK_H
#define NET_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/time.h"
#include "net/profile.h"

#define NETWORK_NONE UINT32_MAX

/* Where a link begins or ends: an endpoint, or a switch with the top bit set. */
typedef uint32_t network_node;
#define NETWORK_SWITCH 0x80000000u

static inline bool network_is_switch(network_node node)
{
	return node & NETWORK_SWITCH;
}
static inline uint32_t network_index(network_node node)
{
	return node & ~NETWORK_SWITCH;
}
static inline network_node network_switch_node(uint32_t index)
{
	return index | NETWORK_SWITCH;
}

/* The faults that a link can have. */
struct network_fault {
	uint32_t loss_ppm, duplicate_ppm;
	uint32_t loss_every; /* every so-many-th packet is lost; 0: none */
	uint32_t mark_ppm;   /* marked as by a congested switch */
	uint32_t late_ppm;   /* packets that are late, by up to late_by */
	vb_time late_by;
	vb_time jitter; /* every packet is late by up to so much */
	double bit_error_rate;
	vb_time down_at, up_at; /* the first outage, from and until; up_at 0: for good; both 0: never */
	vb_time flap_period;    /* the outage repeats after so long; 0: it does not */
	/* A switch at either end learns after this time that the link is down, and later that it is up again; meanwhile
	 * it uses the link, then other paths while it has any. Packets that are sent on a link that is down, or already
	 * wait for it, are lost. */
	vb_time detection;
	vb_time convergence; /* switches further away learn so much later, and then choose no path that leads only over
				the link */
};

static inline bool network_fault_is_for_good(const struct network_fault *fault)
{
	return fault->down_at > 0 && fault->up_at == 0;
}

struct network_link {
	network_node from, to;
	uint64_t bits_per_second;
	vb_time delay;
	uint32_t reverse; /* the link in the other direction */
	uint32_t fault;   /* index into faults, NETWORK_NONE */
};

struct network_endpoint {
	uint32_t link; /* outgoing; its reverse is the incoming one */
	uint32_t machine;
	uint32_t nic; /* index into nics */
};

struct network_switch {
	uint32_t profile;                /* index into profiles */
	uint32_t tier;                   /* 0: has endpoints; for reports, and for dividing the network into shards */
	uint32_t pod;                    /* switches that belong together; NETWORK_NONE: of no pod */
	uint32_t first_port, port_count; /* ports[first_port ..], after network_finish */
};

struct network {
	struct network_endpoint *endpoints;
	struct network_switch *switches;
	struct network_link *links;
	uint32_t *ports; /* links, by switch */
	struct network_fault *faults;
	struct switch_profile *profiles;
	struct nic_profile *nics;
	uint32_t endpoint_count, switch_count, link_count, fault_count, profile_count, nic_count;
	uint32_t endpoint_room, switch_room, link_room, fault_room, profile_room, nic_room;
	/* Of a front end (front_end.h), which are the last of each; of its endpoints the last are storage nodes. 0:
	 * there is none. What is before them is the back end. */
	uint32_t front_endpoint_count, front_switch_count, storage_count;
	uint32_t nic_switch_count; /* the last switches of the back end, one for each of its endpoints in order: NICs'
				      ports (nic_ports.h) */
	bool is_split;      /* not all endpoints need to reach each other: rails without a spine, or a front end */
	bool is_whole_ns;   /* transmission times are rounded down to whole nanoseconds, for comparison with simulators
			       that do so */
	bool has_no_memory; /* an addition failed: network_finish says so */
};

/* Endpoints and switches of the back end, which all networks have; its switches with those of NICs. */
static inline uint32_t network_back_endpoints(const struct network *network)
{
	return network->endpoint_count - network->front_endpoint_count;
}

static inline uint32_t network_back_switches(const struct network *network)
{
	return network->switch_count - network->front_switch_count;
}

static inline bool network_is_of_front(const struct network *network, uint32_t link)
{
	const network_node from = network->links[link].from;
	return network_index(from) >=
	       (network_is_switch(from) ? network_back_switches(network) : network_back_endpoints(network));
}

/* Whether a switch is the ports of a NIC: of the endpoint of this number. */
static inline bool network_is_nic(const struct network *network, uint32_t at_switch, uint32_t *endpoint)
{
	const uint32_t first = network_back_switches(network) - network->nic_switch_count;
	*endpoint = at_switch - first;
	return at_switch >= first && at_switch < network_back_switches(network);
}

/* How many ports each NIC has. */
static inline uint32_t network_nic_ports(const struct network *network)
{
	return network->nic_switch_count ? network->switches[network_back_switches(network) - 1].port_count - 1 : 1;
}

/* Where an endpoint's link leads to, or the first of its ports. */
static inline network_node network_leaf_of(const struct network *network, uint32_t endpoint)
{
	const network_node to = network->links[network->endpoints[endpoint].link].to;
	uint32_t its;
	if (!network_is_switch(to) || !network_is_nic(network, network_index(to), &its))
		return to;
	return network->links[network->ports[network->switches[network_index(to)].first_port + 1]].to;
}

static inline const struct switch_profile *network_profile(const struct network *network, network_node node)
{
	return network_is_switch(node) ? &network->profiles[network->switches[network_index(node)].profile] : NULL;
}

/* How many numbers of pods are in use, from 0 on. */
uint32_t network_pods(const struct network *network);

/* Of a link; the PCIe of a NIC at either end bounds it. */
uint64_t network_rate(const struct network *network, uint32_t link);

/* Each adds one element and returns its index (connect: of link a -> b; b -> a is the next), or NETWORK_NONE without
 * memory, which callers need not check before network_finish. */
uint32_t network_add_profile(struct network *network, const struct switch_profile *profile);
uint32_t network_add_nic(struct network *network, const struct nic_profile *nic);
uint32_t network_add_endpoint(struct network *network, uint32_t machine, uint32_t nic);
uint32_t network_add_switch(struct network *network, uint32_t profile, uint32_t tier, uint32_t pod);
uint32_t network_connect(
	struct network *network, network_node a, network_node b, uint64_t bits_per_second, vb_time delay);
/* Sets it for both directions. -ENOMEM. */
int network_set_fault(struct network *network, uint32_t link, const struct network_fault *fault);

/* Sorts the ports and checks the network: -EINVAL and why (each endpoint has one link, to a switch or an endpoint; all
 * endpoints reach each other, unless it is split; no rate is 0); -ENOMEM. */
int network_finish(struct network *network, char *why, unsigned why_size);
void network_free(struct network *network);

#endif
