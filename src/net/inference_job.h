/* Inference with prefill and decode on groups of ranks of their own, as a job.
 *
 * Requests are prefilled first come first served, one at a time in each group. When a prefill is over, each rank of its
 * group sends its part of the keys and values (KV) to the rank of the same place in a decode group, which are taken in
 * turn. Prefills wait for nothing that the network does, so their times are known before a run; decoding sends nothing,
 * so its times follow from when the KV came. There is no prefix cache, and memory is not bounded. */
#ifndef NET_INFERENCE_JOB_H
#define NET_INFERENCE_JOB_H

#include "net/inference_requests.h"
#include "net/job.h"

enum { INFERENCE_BATCH = 64 }; /* that a scenario has if it says nothing */

struct inference {
	uint32_t first; /* the first rank: prefill groups, then decode groups */
	uint32_t prefill, decode, tp;
	uint32_t batch;    /* requests that a group decodes at once, at most */
	uint64_t kv_bytes; /* of a token */
	/* Of a decode step, in ps: the weights of one request's tokens, of all at most, and a token's KV in context. */
	double one_ps, all_ps, kv_ps;
	vb_time start;
	uint8_t traffic_class;
};

struct inference_times {
	vb_time first, last; /* tokens; -1: never */
};

struct inference_job {
	struct job job;
	struct inference of;
	const struct inference_requests *requests; /* borrowed */
	uint32_t *order; /* of requests by prefill group, and in each by time; group_first has the bounds */
	uint32_t *group_first, *group_of; /* the latter by request: its prefill group */
	vb_time *ready;                   /* by request: when its prefill is over */
	vb_time *came;                    /* by request and rank of a decode group; -1: not yet */
};

/* 0; -EINVAL and why, which begins with a key; how many ranks there are is the caller's to check. */
int inference_check(
	const struct inference *of, const struct inference_requests *requests, char *why, unsigned why_size);
uint64_t inference_ranks(const struct inference *of);
/* It has passed its check. -ENOMEM: nothing is open. */
int inference_job_open(
	struct inference_job *job, const struct inference *of, const struct inference_requests *requests);
/* After a run: when the first and the last token of each request were there. -ENOMEM. */
int inference_job_times(const struct inference_job *job, struct inference_times *times);
void inference_job_close(struct inference_job *job);

#endif
