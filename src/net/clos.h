/* Trees of two or three tiers: what fat-trees and leaf-spines are, and what htsim's files describe.
 *
 * With two tiers each leaf has `bundle` links to each spine. With three that is so within each pod, and the `p`th spine
 * of every pod has as many to cores p, p + spines, p + 2 spines, ...: each core sees each pod. */
#ifndef NET_CLOS_H
#define NET_CLOS_H

#include "net/network.h"

/* A tier of switches, and the links down from it. */
struct clos_tier {
	struct switch_profile profile;
	uint64_t bits_per_second;
	vb_time delay;
	uint32_t bundle; /* links side by side; of tier 0: 1 */
};

struct clos {
	uint32_t tiers;            /* 2 or 3 */
	uint32_t pods;             /* 1 with two tiers */
	uint32_t leaves, spines;   /* of each pod */
	uint32_t cores_of_a_spine; /* with three tiers */
	uint32_t endpoints;        /* of each leaf */
	struct nic_profile nic;
	struct clos_tier tier[3];
};

/* As topology_build. */
int clos_build(const struct clos *clos, struct network *network, char *why, unsigned why_size);

/* No network is larger: so many endpoints, switches and links each way. */
enum { CLOS_MOST_NODES = 1 << 20, CLOS_MOST_LINKS = 1 << 23 };

#endif
