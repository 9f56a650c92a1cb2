/* Which of a scenario's workloads are steps of training, and what may run beside them. */
#ifndef SIM_STEP_WORKLOADS_H
#define SIM_STEP_WORKLOADS_H

#include "sim/simulation.h"

/* The workload that is the step of this number, below simulation->step_count. */
uint32_t step_workload(const struct simulation *simulation, uint32_t number);
/* Whether any is one, unless a file takes the place of all workloads. */
bool step_workloads_are_run(const struct scenario *scenario, const struct simulation_files *files);
/* Of a scenario that has steps: traffic with storage runs beside them, by packets. -EINVAL and why. */
int step_workloads_check(const struct scenario *scenario, char *why, size_t size);

#endif
