/* A collective at several sizes, as nccl-tests prints it, with its closed form beside each row. */
#ifndef SIM_COLLECTIVE_TABLE_H
#define SIM_COLLECTIVE_TABLE_H

#include "sim/sim.h"

/* Rows are printed as their runs end. The exit status of the worst row. */
int collective_table_run(const struct sim_options *options);

#endif
