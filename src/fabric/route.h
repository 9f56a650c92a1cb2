/* Where a packet may go next: for each switch and each place that has endpoints, the ports on shortest paths.
 * Holds: a port that is named leads one step nearer. */
#ifndef FABRIC_ROUTE_H
#define FABRIC_ROUTE_H

#include <stdint.h>
#include "fabric/network.h"

struct route_choice {
	const uint32_t *links;
	uint32_t count;
};

struct routes;

/* Shortest paths by links crossed. NULL: no memory. Ports that lead to the same place are choices of one another. */
struct routes *routes_make(const struct network *network);
void routes_free(struct routes *routes);

/* From a switch towards an endpoint. O(1), two dependent loads at most; count is 1 at the last switch. */
struct route_choice routes_towards(const struct routes *routes, uint32_t at_switch, uint32_t endpoint);

#endif
