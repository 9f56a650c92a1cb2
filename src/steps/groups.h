/* Which ranks an operation of a step is with. */
#ifndef STEPS_GROUPS_H
#define STEPS_GROUPS_H

#include "steps/plan.h"

enum step_dimension {
	STEP_TP,
	STEP_CP,
	STEP_EP,
	STEP_PP,         /* the rank of the same place in another stage */
	STEP_DP,         /* all that have the same shared parameters: dp x cp */
	STEP_EXPERTS_DP, /* all that have the same experts */
	STEP_ENDS,       /* the ranks of the same place in the first and the last stage */
	STEP_ALL,
	STEP_DIMENSIONS,
};

/* How many ranks a collective of this dimension has. */
uint32_t step_members(const struct step_plan *plan, enum step_dimension dimension);
/* Of the rank at this place of a stage: the members of its group, itself among them, in their order. `ranks` has room
 * for all. */
void step_group_ranks(
	const struct step_plan *plan, enum step_dimension dimension, uint32_t place, uint32_t stage, uint32_t *ranks);
/* Their first. */
uint32_t step_group_first(const struct step_plan *plan, enum step_dimension dimension, uint32_t place, uint32_t stage);

#endif
