/* NICs with several ports, each at a leaf of its own (dual ToR). Such a NIC is an endpoint and a switch of its own
 * behind it: the endpoint's link has the rate of all ports together, and the switch hashes flows over them, and takes
 * another port where one is known to be down. It forwards a packet when its header is there, and its queues have no
 * bound, as what waits there waits in the host. The link's delay is half before it and half behind it. */
#ifndef NET_NIC_PORTS_H
#define NET_NIC_PORTS_H

#include "net/topologies.h"

/* All endpoints of a network that is being built. */
struct nic_ports {
	const struct topology *like;
	uint32_t ports;   /* 1: no switches */
	uint32_t nic;     /* index into network->nics */
	uint32_t profile; /* of the NICs' switches */
	uint32_t first;   /* the number of their first */
};

/* Once before all endpoints, of a network that has so many switches beside. -EINVAL and why: more than a run takes. */
int nic_ports_begin(struct nic_ports *nics, const struct topology *like, struct network *network, uint32_t switches,
	uint32_t endpoints, char *why, unsigned why_size);
/* Adds the next endpoint, whose ports are at this leaf and those that follow. */
void nic_ports_add(const struct nic_ports *nics, struct network *network, uint32_t machine, uint32_t leaf);
/* Adds the NICs' switches, behind all others. */
void nic_ports_end(const struct nic_ports *nics, struct network *network);

/* What these switches are like. */
struct switch_profile nic_ports_profile(const struct topology *like);

enum { NIC_PORTS_MOST = 8 };

#endif
