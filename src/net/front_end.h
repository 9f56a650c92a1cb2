/* A front end: a network apart from the one that GPUs talk by, for traffic with storage. Each host has NICs at it, and
 * so do storage nodes, which have no GPUs. It becomes a part of the network that it is added to, behind all that is
 * there, and no way leads from one to the other. */
#ifndef NET_FRONT_END_H
#define NET_FRONT_END_H

#include "net/topologies.h"

struct front_end {
	struct topology topology; /* its endpoints are filled in */
	uint32_t nics;            /* of a host */
	uint32_t storage;         /* nodes, with one NIC each; 0: there is no front end */
};

/* Adds it to a network that is finished, the back end of these hosts, and tells the hosts. 0; -EINVAL and why, and both
 * are as before; -ENOMEM, and the network can only be freed. */
int front_end_add(
	const struct front_end *front_end, struct network *network, struct hosts *hosts, char *why, unsigned why_size);

#endif
