/* Times of a GPU's kernels that a user measured, in place of work over a part of the GPU's peak.
 *
 * A table is a CSV of operation, shape and microseconds, as "ffn-forward,1x8192/8,1234.5". An operation is one of a
 * layer, or the output's, and a pass. A backward pass is the gradients of inputs and weights, without what is computed
 * again. A shape is that of a micro-batch: its sequences, the tokens of a sequence that a rank and its tensor-parallel
 * fellows have, and how many these are. */
#ifndef STEPS_COMPUTE_TIMES_H
#define STEPS_COMPUTE_TIMES_H

#include "net/text.h"
#include "steps/plan.h"

/* Of a plan that passed plan_check: fills in its factors, by the rows of its shape. The text is of bytes that are not
 * trusted. -EINVAL and why: NAME:LINE:COLUMN and what is wrong there, or NAME and what is missing. */
int compute_times_read(struct step_plan *plan, struct text *text);
/* Likewise, of a file. -EINVAL and why, -ENOMEM. */
int compute_times_read_file(struct step_plan *plan, const char *path, char *why, unsigned why_size);

#endif
