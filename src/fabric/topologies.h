/* Networks by their parameters, and from files. Each function fills in an empty network and finishes it; -EINVAL and why.
 * All delays are of a link, one way. */
#ifndef FABRIC_TOPOLOGIES_H
#define FABRIC_TOPOLOGIES_H

#include "fabric/network.h"

struct topology {
	char kind[16];	     /* "switch", "dumbbell", "leaf-spine", "fat-tree", "rail", "torus", "line" */
	uint32_t endpoints;  /* NICs in all; 0: what the other numbers make */
	uint64_t host_bits_per_second, fabric_bits_per_second; /* fabric 0: as host */
	vb_time host_delay, fabric_delay;
	struct switch_profile profile;
	struct nic_profile nic;
	uint32_t radix;	     /* fat-tree: k */
	uint32_t tiers;	     /* fat-tree: 2 or 3 */
	uint32_t leaves, spines, uplinks; /* leaf-spine: uplinks of each leaf to each spine */
	double oversubscription; /* fat-tree, leaf-spine: 1: none */
	uint32_t nics_a_machine; /* rail: that many rails, each a leaf-spine or one switch of its own */
	uint32_t machines;
	uint32_t dimensions[3]; /* torus: one endpoint at each switch */
};

int topology_build(const struct topology *topology, struct network *network, char *why, unsigned why_size);

/* HPCC's ns-3 format as CSV (node_a,node_b,gbps,delay_ns; nodes that have one link and the lowest numbers are endpoints), its
 * original text format, and htsim's .topo. Errors name the line. What the file does not say is the template's. */
int topology_read(const char *path, const struct topology *like, struct network *network, char *why, unsigned why_size);

#endif
