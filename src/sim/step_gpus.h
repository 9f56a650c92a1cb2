/* The GPUs of a step of training: of one kind or of several, and some of them slow. */
#ifndef SIM_STEP_GPUS_H
#define SIM_STEP_GPUS_H

#include "sim/step.h"

/* The kind of which the ranks are that are not named: the workload's, the scenario's, or the first of its mix. -EINVAL
 * and why, which begins with the key. */
int step_gpus_find(const struct simulation *simulation, const struct scenario_step *given, struct step *step, char *why,
	size_t size);
/* Of a plan that is complete: which ranks are of which kind, and slow. -EINVAL and why, likewise. */
int step_gpus_spread(const struct scenario_step *given, struct step *step, char *why, size_t size);

/* The next kind that the step has from *place on, and of how many ranks; NULL: there are no more. Begin with 0. */
const struct gpu *step_gpus_next(const struct step *step, uint32_t *place, uint32_t *ranks);
/* Of these the one with the least memory, and the mean of their peaks. */
const struct gpu *step_gpus_smallest(const struct step *step);
double step_gpus_tflops(const struct step *step);

#endif
