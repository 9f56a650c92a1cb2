/* One plan's step by packets, as the only job of a prepared simulation's network. */
#ifndef SIM_STEP_JOB_H
#define SIM_STEP_JOB_H

#include "sim/step.h"

/* Not to be moved while it is open. */
struct step_job {
	struct simulation with; /* what is not of the job is borrowed */
	struct job *job;
};

/* -EINVAL and why, -ENOMEM; close it in every case. */
int step_job_open(const struct simulation *simulation, const struct step_plan *plan, struct step_job *job, char *why,
	size_t size);
void step_job_close(struct step_job *job);

/* Runs each step of a simulation whose steps have run beside each other, and fills in simulation->alone as alone_run
 * does (alone.h). -EINVAL and why, -ENOMEM. */
int step_job_run_alone(struct simulation *simulation, char *why, size_t size);

#endif
