/* Networks by their parameters, and from files. Each function fills in an empty network and finishes it; -EINVAL and
 * why, -ENOMEM, and the network is empty still. All delays are of a link, one way.
 *
 *   "switch"      all endpoints on one
 *   "dumbbell"    half of them on each of two, `uplinks` links between
 *   "leaf-spine"  the same number on each leaf, `uplinks` links from each leaf to each spine
 *   "fat-tree"    of switches with `radix` ports: radix^2/2 endpoints with 2 tiers, radix^3/4 with 3
 *   "rail"        machines with a NIC on each rail: endpoint machine * nics_a_machine + rail. A rail is `leaves`
 *                 switches, machines side by side; all are joined by `spines`, or by nothing: then machines reach
 *                 each other on the same rail alone
 *   "torus"       a switch with one endpoint at each point of 1 to 3 dimensions, joined to its neighbours both ways
 *                 round
 *   "ring"        `leaves` switches in a ring, endpoints on each
 *
 * Endpoints are numbered along the switches, and so are machines, one each but for "rail". */
#ifndef NET_TOPOLOGIES_H
#define NET_TOPOLOGIES_H

#include "net/network.h"

struct topology {
	char kind[16];
	uint32_t endpoints;                                    /* NICs in all; 0: what the other numbers make */
	uint64_t host_bits_per_second, fabric_bits_per_second; /* fabric 0: as host */
	vb_time host_delay, fabric_delay;
	struct switch_profile profile;
	struct nic_profile nic;
	uint32_t radix;                    /* fat-tree; 0: what the endpoints need */
	uint32_t tiers;                    /* fat-tree: 2 or 3; 0: 3 */
	uint32_t leaves, spines, uplinks;  /* spines 0, leaf-spine: as many as oversubscription says; uplinks 0: 1 */
	double oversubscription;           /* fat-tree, leaf-spine: of the leaves; 0: 1, where nothing else says */
	uint32_t nics_a_machine, machines; /* rail */
	uint32_t dimensions[3];            /* torus; 0: none */
};

int topology_build(const struct topology *topology, struct network *network, char *why, unsigned why_size);

/* From a file: HPCC's ns-3 format as CSV (node_a,node_b,gbps,delay_ns; the nodes before the first with more links than
 * one are endpoints) or as its original text, or htsim's .topo. Errors name the line. What the file does not say is the
 * template's: profiles, and of them what a .topo has of its own. */
int topology_read(const char *path, const struct topology *like, struct network *network, char *why, unsigned why_size);

#endif
