/* Which ranks of the network a step of training has, beside other steps. */
#ifndef SIM_STEP_PLACE_H
#define SIM_STEP_PLACE_H

#include "sim/simulation.h"

struct step_place {
	uint32_t first, room; /* ranks that it may have; room is above 0 */
};

/* Without `ranks` a step has the first that are free and suffice; by formula, where each runs by itself, the network's
 * first. -EINVAL and why, which begins with the key. */
int step_place_find(
	const struct simulation *simulation, uint32_t workload, struct step_place *place, char *why, size_t size);

#endif
