/* Networks from parameters, and from files. Each function fills in an empty network and finishes it; -EINVAL and why,
 * -ENOMEM, and the network is still empty. All delays are those of one link, one way.
 *
 *   "switch"      all endpoints on one switch
 *   "dumbbell"    half of them on each of two switches, with `uplinks` links between
 *   "leaf-spine"  equally many on each leaf, `uplinks` links from each leaf to each spine
 *   "fat-tree"    of switches with `radix` ports: radix^2/2 endpoints with 2 tiers, radix^3/4 with 3
 *   "rail"        machines with a NIC on each rail: endpoint machine * nics_a_machine + rail. A rail has `leaves`
 *                 switches, with consecutive machines on each; `spines` join all rails; without spines machines reach
 *                 each other on the same rail only
 *   "torus"       a switch with one endpoint at each point of 1 to 3 dimensions, linked to its neighbours both ways
 * round "ring"        `leaves` switches in a ring, with endpoints on each
 *
 * With `nic_ports`, so many consecutive leaves share the endpoints of all, each of which has a port at each leaf.
 *
 * Endpoints are numbered along the switches. So are machines, with one endpoint each except for "rail". */
#ifndef NET_TOPOLOGIES_H
#define NET_TOPOLOGIES_H

#include "net/hosts.h"
#include "net/network.h"

struct topology {
	char kind[16];
	uint32_t endpoints;                                    /* NICs in total; 0: as the other numbers say */
	uint64_t host_bits_per_second, fabric_bits_per_second; /* fabric 0: the same as host */
	vb_time host_delay, fabric_delay;
	struct switch_profile profile;
	struct nic_profile nic;
	uint32_t nic_ports;               /* of each NIC, at leaf-spine and rail; 0: 1 (nic_ports.h) */
	uint32_t radix;                   /* fat-tree; 0: what the endpoints need */
	uint32_t tiers;                   /* fat-tree: 2 or 3; 0: 3 */
	uint32_t leaves, spines, uplinks; /* spines 0, leaf-spine: as many as oversubscription says; uplinks 0: 1 */
	double oversubscription; /* fat-tree, leaf-spine: of the leaves; 0: 1, unless other numbers determine it */
	uint32_t nics_a_machine, machines; /* rail */
	uint32_t dimensions[3];            /* torus; 0: none */
};

int topology_build(const struct topology *topology, struct network *network, char *why, unsigned why_size);

/* From a file: HPCC's ns-3 format as CSV (node_a,node_b,gbps,delay_ns; endpoints are the nodes before the first with
 * more than one link) or as its original text, htsim's .topo, or SimAI's. Errors name the line. `like` gives what the
 * file does not say: profiles, parts of which a .topo overrides. SimAI's files say what hosts are like, too; of others
 * `hosts` is 0. */
int topology_read(const char *path, const struct topology *like, struct network *network, struct hosts *hosts,
	char *why, unsigned why_size);

#endif
