/* How the ranks of a step reach each other on a network, for its closed forms. */
#ifndef SIM_STEP_NETWORK_H
#define SIM_STEP_NETWORK_H

#include "steps/timing.h"

struct simulation;

/* In a simulation that is prepared. Of each dimension the slowest group's way, and each boundary's own, of its slowest
 * place. Free network->boundaries in every case. -ENOMEM. */
int step_network_find(const struct simulation *simulation, const struct step_plan *plan, struct step_network *network);

#endif
