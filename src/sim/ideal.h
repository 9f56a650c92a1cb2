/* The time that a flow would take alone on the network, with nothing to hold it back: until the acknowledgement of its
 * last byte has arrived. A flow's time divided by this is its slowdown. */
#ifndef SIM_IDEAL_H
#define SIM_IDEAL_H

#include "sim/simulation.h"

/* Fills in simulation->ideals. -ENOMEM. */
int ideals_find(struct simulation *simulation);

#endif
