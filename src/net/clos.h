/* Trees of two or three tiers: fat-trees, leaf-spines, and the networks that htsim's files describe. With two tiers
 * each leaf has `bundle` links to each spine. With three tiers this holds within each pod, and the `p`th spine of every
 * pod has as many links to cores p, p + spines, p + 2 spines, ...: each core reaches each pod. */
#ifndef NET_CLOS_H
#define NET_CLOS_H

#include "net/topologies.h"

/* A tier of switches, and the links down from it. */
struct clos_tier {
	struct switch_profile profile;
	uint64_t bits_per_second;
	vb_time delay;
	uint32_t bundle; /* parallel links; of tier 0: 1 */
};

struct clos {
	uint32_t tiers;            /* 2 or 3 */
	uint32_t pods;             /* 1 where there are two tiers */
	uint32_t leaves, spines;   /* of each pod */
	uint32_t cores_of_a_spine; /* where there are three tiers */
	uint32_t endpoints;        /* of each leaf */
	struct nic_profile nic;
	const struct topology *like; /* whose NICs have several ports (nic_ports.h); NULL: one each */
	struct clos_tier tier[3];
};

/* See topology_build. */
int clos_build(const struct clos *clos, struct network *network, char *why, unsigned why_size);

/* The largest network: so many endpoints, switches and links each way. */
enum { CLOS_MOST_NODES = 1 << 20, CLOS_MOST_LINKS = 1 << 23 };

#endif
