/* The share of a job's time in which a GPU computes nothing, over all of its ranks. The job's time is from 0 to the end
 * of its last operation, or to where the run was cut. */
#ifndef SIM_GPU_IDLE_H
#define SIM_GPU_IDLE_H

#include "sim/simulation.h"

vb_time job_time(const struct simulation *simulation);
int gpu_idle_share(const struct simulation *simulation, double *share); /* 0 to 1; -ENOMEM */

#endif
