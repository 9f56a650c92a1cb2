/* The load of a step's communication on the links of its network (steps/loads.h): the messages of each collective, and
 * the ways that their packets would take. */
#ifndef SIM_STEP_LOADS_H
#define SIM_STEP_LOADS_H

#include "sim/simulation.h"
#include "steps/loads.h"

/* In a simulation that is prepared. -ENOMEM; free the loads in every case. */
int step_loads_make(const struct simulation *simulation, const struct step_plan *plan, struct step_loads *loads);

#endif
