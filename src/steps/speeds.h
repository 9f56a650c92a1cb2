/* How fast the GPUs of a plan compute: some may be slow, or of another kind. */
#ifndef STEPS_SPEEDS_H
#define STEPS_SPEEDS_H

#include "base/time.h"
#include "net/text.h"
#include "steps/plan.h"

/* How many times as long this rank of the network computes as the plan says; of a stage, its slowest rank. */
double speeds_of_rank(const struct step_plan *plan, uint32_t rank);
double speeds_of_stage(const struct step_plan *plan, uint32_t stage);
/* Of all ranks at most so much. */
double speeds_most(const struct step_plan *plan);
vb_time speeds_slowed(vb_time time, double slowness);
/* Whether no replica has the slowest ranks of all stages: then a step whose stages compute as their slowest ranks do is
 * too long. */
bool speeds_are_spread(const struct step_plan *plan);

/* Takes the next part of a list as "0-7=X, 100=Y" and adds its range, whose factor the caller fills in. 1; 0: there is
 * no more; -EINVAL and why: it is none, or its ranks are not among so many, or are in the list before. */
int speeds_take(struct span *list, uint32_t ranks, struct plan_ranges *ranges, struct span *value, char *why,
	unsigned why_size);

#endif
