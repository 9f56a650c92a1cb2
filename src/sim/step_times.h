/* The times of kernels that steps of training have in place of a part of the GPU's peak: from a table, which is read
 * for each plan, or from a trace, which may be large and is read once. */
#ifndef SIM_STEP_TIMES_H
#define SIM_STEP_TIMES_H

#include <stddef.h>
#include "steps/compute_trace.h"

struct simulation;

/* Reads the traces of all steps. -EINVAL and why, which begins with the key; -ENOMEM. */
int step_times_read_traces(struct simulation *simulation, char *why, size_t size);
/* Fills in the factors of a workload's plan, if it has times. -EINVAL and why, with the key below the workload's. */
int step_times_use(
	const struct simulation *simulation, uint32_t workload, struct step_plan *plan, char *why, size_t size);
/* Of a workload's trace: what belongs to no operation; NULL: nothing, or it has no trace. */
const struct compute_trace *step_times_unmatched(const struct simulation *simulation, uint32_t workload);
/* Operations of the plan that have no time, and go by mfu: "ffn-forward, output-backward". How many there are. */
unsigned step_times_by_mfu(const struct step_plan *plan, char *text, size_t size);

#endif
