/* A job under LogGOPS (net/loggops.h), which needs no network: when each of its ranks ends. */
#ifndef SIM_LOGGOPS_RUN_H
#define SIM_LOGGOPS_RUN_H

#include "sim/sim.h"

/* The exit status: SIM_EXIT_NO_END where operations wait for messages that nobody sends. */
int loggops_run(const struct sim_options *options);

#endif
