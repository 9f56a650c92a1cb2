/* Runs the steps of training of a scenario, and tells them. */
#ifndef SIM_STEP_RUN_H
#define SIM_STEP_RUN_H

#include "sim/session.h"

/* By formula, or nothing but the plans of a dry run. An exit status. */
int step_run_all(const struct session *session, const struct sim_options *options);
/* After a run by packets: what the step went to, behind what is told of every run. -ENOMEM. */
int step_tell_run(const struct simulation *simulation);

#endif
