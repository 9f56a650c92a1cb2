/* Times of a GPU's kernels that a user measured, in place of work over a part of the GPU's peak. They come from a
 * table, or from a trace (compute_trace.h).
 *
 * A table is a CSV of operation, shape and microseconds, as "ffn-forward,1x8192/8,1234.5". An operation is one of a
 * layer, or the output's, and a pass. A backward pass is the gradients of inputs and weights, without what is computed
 * again. A shape is that of a micro-batch: its sequences, the tokens of a sequence that a rank and its tensor-parallel
 * fellows have, and how many these are. */
#ifndef STEPS_COMPUTE_TIMES_H
#define STEPS_COMPUTE_TIMES_H

#include "net/text.h"
#include "steps/plan.h"

/* By operation, forward and backward: picoseconds; 0: there is none. */
struct compute_times {
	uint64_t of[STEP_WORKS][2];
};

#define COMPUTE_TIME_LEAST 1000u             /* picoseconds of an operation */
#define COMPUTE_TIME_MOST  1000000000000000u /* likewise: a quarter of an hour */

/* The rows of this plan's shape, which passed plan_check. The text is of bytes that are not trusted. -EINVAL and why:
 * NAME:LINE:COLUMN and what is wrong there. */
int compute_times_read(const struct step_plan *plan, struct text *text, struct compute_times *times);
/* Likewise, of a file. -EINVAL and why, -ENOMEM. */
int compute_times_read_file(
	const struct step_plan *plan, const char *path, struct compute_times *times, char *why, unsigned why_size);

/* Whether the model has this operation. */
bool compute_times_has(const struct step_plan *plan, unsigned work);
/* Those that the plan needs and that have no time, as "ffn-forward, output-backward". How many there are. */
unsigned compute_times_missing(
	const struct step_plan *plan, const struct compute_times *times, char *text, unsigned size);
/* Fills in the plan's factors; what has no time goes on by mfu. */
void compute_times_use(struct step_plan *plan, const struct compute_times *times);

#endif
