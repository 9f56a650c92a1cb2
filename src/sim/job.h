/* What a collective moved in its time. */
#ifndef SIM_JOB_H
#define SIM_JOB_H

#include "sim/simulation.h"

/* Of a run whose one workload is a collective that moves bytes. As nccl-tests has it, GB are 10^9 bytes: algbw is S
 * over the time, busbw what each rank's link carried if it carried no byte twice. */
struct job_bandwidth {
	const char *kind, *algorithm;
	uint32_t ranks, groups; /* of each group */
	uint64_t bytes;
	vb_time time;
	double algbw, busbw; /* GB/s */
};

/* False: there is no such collective, or it has not ended. */
bool job_bandwidth(const struct simulation *simulation, struct job_bandwidth *bandwidth);

#endif
