/* Runs the steps of training of a scenario, and tells them. */
#ifndef SIM_STEP_RUN_H
#define SIM_STEP_RUN_H

#include "sim/session.h"

/* An exit status. A dry run tells the plans alone. */
int step_run_all(const struct session *session, const struct sim_options *options);

#endif
