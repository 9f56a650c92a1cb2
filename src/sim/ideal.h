/* How long a flow would take alone on the network, with nothing that holds it back: until its last byte's
 * acknowledgement is there. What a flow took, by this, is its slowdown. */
#ifndef SIM_IDEAL_H
#define SIM_IDEAL_H

#include "sim/simulation.h"

/* Fills in simulation->ideals. -ENOMEM. */
int ideals_find(struct simulation *simulation);

#endif
