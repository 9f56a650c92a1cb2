/* The programs of the ranks of one plan, or of several, as a job of operations (net/graph.h): what runs a job from a
 * file runs steps. */
#ifndef STEPS_STEP_GRAPH_H
#define STEPS_STEP_GRAPH_H

#include "net/graph_job.h"
#include "net/job_file.h"
#include "steps/account.h"

/* An operation as a graph that runs: its waits with their followers, a record, and what graph_job.c has of each. */
#define STEP_OPERATION_BYTES 128

/* Operations of all ranks, and the memory that they take as a graph that runs. -ENOMEM. */
int step_graph_size(const struct step_plan *plan, uint64_t *operations, uint64_t *bytes);
/* Of plans that have no rank in common. Fills in the file, which is empty; where an operation comes from is its place
 * in its stage's program. -EINVAL and why (graph_finish), -ENOMEM. */
int step_graph_make(
	const struct step_plan *const *plans, uint32_t count, struct job_file *file, char *why, unsigned why_size);
/* After a run that has ended: this plan's step, and its parts. -ENOMEM. */
int step_graph_account(const struct step_plan *plan, const struct graph_job *job, struct step_times *times);

#endif
