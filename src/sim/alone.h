/* Several jobs on one network: how long each would take without the others. */
#ifndef SIM_ALONE_H
#define SIM_ALONE_H

#include "sim/simulation.h"

/* Whether it is worth a run: at least two workloads are collectives. */
bool alone_is_wanted(const struct simulation *simulation);
/* Runs each of these workloads by itself and fills in simulation->alone: -1 of one that did not end, here or beside the
 * others. After a run that was stopped no other begins. -EINVAL and why, -ENOMEM. */
int alone_run(struct simulation *simulation, char *why, size_t size);
/* When the workload's job had ended, from its start; -1: it has none, or has not ended. */
vb_time alone_job_time(const struct simulation *simulation, uint32_t workload);

#endif
