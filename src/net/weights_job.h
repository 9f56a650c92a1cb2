/* Weights that go from trainers to replicas of a model, and rollouts that come back, as a job.
 *
 * Ranks are the trainers, then the replicas one after the other, each of `shards` ranks. The weights are cut into as
 * many equal parts as there are trainers or shards, whichever are more: a part leaves one trainer, and is for one rank
 * of each replica. It goes piece by piece from the trainer to the first replica, and from there along a chain or a
 * binary tree of the replicas: a rank passes a piece on when it has it. When a rank has all that is for it, it sends
 * its share of a replica's rollouts to a trainer. */
#ifndef NET_WEIGHTS_JOB_H
#define NET_WEIGHTS_JOB_H

#include "net/job.h"

enum weights_shape { WEIGHTS_CHAIN, WEIGHTS_TREE };

struct weights {
	uint32_t first; /* the rank of the first trainer */
	uint32_t trainers, replicas, shards;
	uint64_t bytes;   /* of all weights */
	uint64_t piece;   /* bytes */
	uint64_t rollout; /* bytes that a replica sends back; 0: nothing */
	enum weights_shape shape;
	vb_time start;
	uint8_t traffic_class;
};

struct weights_node; /* a rank's place in a part's way */

struct weights_job {
	struct job job;
	struct weights of;
	uint32_t parts;             /* of the weights */
	struct weights_node *nodes; /* by part, then the trainer and the replicas */
	uint64_t *left;             /* by replicas' ranks: pieces that are still to come */
	vb_time *has_all, *is_back; /* by replicas' ranks, and by trainers; -1: not yet, or of rollouts none */
};

/* 0; -EINVAL and why, which begins with the name of the member; how many ranks there are is the caller's to check. */
int weights_check(const struct weights *of, char *why, unsigned why_size);
uint32_t weights_ranks(const struct weights *of);
uint64_t weights_messages(const struct weights *of);

/* It has passed its check. -ENOMEM: nothing is open. */
int weights_job_open(struct weights_job *job, const struct weights *of);
/* After the start: when the last rank had its weights, and when the last rollout was back; -1: never. */
vb_time weights_job_spread(const struct weights_job *job);
vb_time weights_job_back(const struct weights_job *job);
void weights_job_close(struct weights_job *job);

#endif
