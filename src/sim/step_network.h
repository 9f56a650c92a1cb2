/* How the ranks of a step reach each other on a network: their closed forms. */
#ifndef SIM_STEP_NETWORK_H
#define SIM_STEP_NETWORK_H

#include <stddef.h>
#include "steps/timing.h"

struct simulation;

/* In a simulation that is prepared. Of each dimension the slowest group's way, and each boundary's own, of its slowest
 * place. Free network->boundaries in every case. -ENOMEM. */
int step_network_find(const struct simulation *simulation, const struct step_plan *plan, struct step_network *network);

/* -EINVAL and why: ranks do not reach each other. -ENOMEM. */
int step_network_check(const struct simulation *simulation, char *why, size_t size);

#endif
