/* Several scenarios, or one scenario with several values of some keys, in one table. */
#ifndef SIM_COMPARE_H
#define SIM_COMPARE_H

#include "sim/sim.h"

/* The exit status: the worst of all runs. */
int compare_run(const struct sim_options *options);

#endif
