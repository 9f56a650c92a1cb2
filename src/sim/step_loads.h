/* The load of a step's communication on the links of its network (steps/loads.h): the messages of each collective, and
 * the ways that their packets would take. */
#ifndef SIM_STEP_LOADS_H
#define SIM_STEP_LOADS_H

#include "sim/simulation.h"
#include "steps/loads.h"

/* Of steps that run at once, in a simulation that is prepared: the classes of each plan are behind those of the plan
 * before. Where links go down there are loads for each time between two changes, of which there must be an end.
 * -ENOMEM; free the loads in every case. */
int step_loads_make(const struct simulation *simulation, const struct step_plan *const *plans, uint32_t count,
	struct step_loads *loads);

#endif
