/* Which rank is where, and which ranks run a workload together. */
#ifndef SIM_RANKS_H
#define SIM_RANKS_H

#include "sim/simulation.h"

/* Completes the hosts from the network, which has no front end yet. -EINVAL and why. */
int ranks_set_hosts(struct simulation *simulation, char *why, size_t size);
/* Then the dimensions and the placement. -EINVAL and why, -ENOMEM. */
int ranks_place(struct simulation *simulation, char *why, size_t size);
/* Fills in the groups of a workload that is a collective, of so many ranks unless it names dimensions. -EINVAL and why,
 * -ENOMEM. */
int ranks_group(struct simulation *simulation, uint32_t workload, uint32_t count, char *why, size_t size);

#endif
