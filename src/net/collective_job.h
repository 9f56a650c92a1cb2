/* A collective as a job: rank r of it is rank first + r of the run, and a message's tag is the step in which it is
 * sent. Messages between two ranks share a connection, except where a rank sends to all others at once. */
#ifndef NET_COLLECTIVE_JOB_H
#define NET_COLLECTIVE_JOB_H

#include "net/collective_part.h"
#include "net/job.h"

struct collective_job {
	struct job job;
	struct collective of; /* its strings are borrowed */
	const struct collective_algorithm *algorithm;
	struct collective_part *parts; /* by its own rank */
};

/* The collective has passed its check. -ENOMEM: nothing is open. */
int collective_job_open(struct collective_job *job, const struct collective *of);
void collective_job_close(struct collective_job *job);

#endif
