/* Where the packets of a message go at a switch. */
#ifndef FABRIC_PATH_H
#define FABRIC_PATH_H

#include "fabric/state.h"

/* Of the ways at a switch those that packets of this source port may take: one, where a hash of ours decides. Count 0:
 * there is none. */
struct route_choice path_ways(const struct fabric_config *config, const struct routes *routes, uint32_t at_switch,
	uint32_t src, uint32_t dst, uint16_t port);

#endif
