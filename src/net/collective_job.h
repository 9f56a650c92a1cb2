/* A collective, or a part of one, as a job: each of the groups runs it. A message's tag is the step in which it is
 * sent, or the edge, and above that its QP if it is a part of a request. Messages between two ranks share a connection,
 * except where a rank sends to all others at once. */
#ifndef NET_COLLECTIVE_JOB_H
#define NET_COLLECTIVE_JOB_H

#include "net/collective_part.h"
#include "net/job.h"
#include "net/rank_groups.h"

struct collective_job {
	struct job job;
	struct collective of; /* its strings are borrowed */
	const struct collective_algorithm *algorithm;
	const struct rank_groups *groups; /* borrowed; of.ranks is their size */
	struct collective_part *parts;    /* by groups->index_of */
};

/* The collective has passed its check. -ENOMEM: nothing is open. */
int collective_job_open(struct collective_job *job, const struct collective *of, const struct rank_groups *groups);
/* How many messages this rank sends, and each of them: `to` is a rank of the run. The rank is in a group. */
uint32_t collective_job_sends(const struct collective_job *job, uint32_t rank);
struct collective_step collective_job_message(const struct collective_job *job, uint32_t rank, uint32_t number);
void collective_job_close(struct collective_job *job);

#endif
