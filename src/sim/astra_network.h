/* ASTRA-sim's network.yml as a network. The first dimension joins the GPUs of a host, so it is their scale-up domain.
 * The second, if there is one, is a Switch: each GPU has a NIC on a rail, whose one switch joins the hosts. Of one
 * dimension the network is a switch that carries nothing. */
#ifndef SIM_ASTRA_NETWORK_H
#define SIM_ASTRA_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include "net/topologies.h"

bool astra_network_is(const char *path); /* by its end, .yml or .yaml */

/* See topology_read. `note` becomes what of the file is not modelled; NULL: nothing. */
int astra_network_read(const char *path, const struct topology *like, struct network *network, struct hosts *hosts,
	const char **note, char *why, size_t size);

#endif
