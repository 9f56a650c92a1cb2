/* The scenario's front end (hosts.front-end, net/front_end.h), as a part of the run's network. */
#ifndef SIM_FRONT_END_H
#define SIM_FRONT_END_H

#include "sim/simulation.h"

/* Once the back end and the hosts are known; where the scenario has no front end, nothing happens. -EINVAL and why,
 * -ENOMEM. */
int simulation_add_front_end(struct simulation *simulation, char *why, size_t size);

#endif
