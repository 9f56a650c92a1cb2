/* See groups.h. */
#include "steps/groups.h"
#include "base/invariant.h"

/* Of a stage. */
struct places {
	uint32_t first, stride, count;
};

uint32_t step_members(const struct step_plan *plan, enum step_dimension dimension)
{
	switch (dimension) {
	case STEP_TP:
		return plan->tp;
	case STEP_CP:
		return plan->cp;
	case STEP_EP:
		return plan->ep;
	case STEP_DP:
		return plan->dp * plan->cp;
	case STEP_EXPERTS_DP:
		return plan_expert_replicas(plan);
	case STEP_ENDS:
		return plan->pp > 1 ? 2 : 1;
	case STEP_ALL:
		return plan_ranks(plan);
	case STEP_PP:
	case STEP_DIMENSIONS:
		break;
	}
	return plan->pp;
}

static struct places places_of(const struct step_plan *plan, enum step_dimension dimension, uint32_t place)
{
	const uint32_t tp = plan->tp, replica = tp * plan->cp, count = step_members(plan, dimension);
	switch (dimension) {
	case STEP_TP:
		return (struct places){ place / tp * tp, 1, count };
	case STEP_CP:
		return (struct places){ place / replica * replica + place % tp, tp, count };
	case STEP_EP:
		return (struct places){ place / plan->ep * plan->ep, 1, count };
	case STEP_EXPERTS_DP:
		return (struct places){ place % plan->ep, plan->ep, count };
	default:
		assert(dimension == STEP_DP);
		return (struct places){ place % tp, tp, count };
	}
}

static uint32_t rank_of(
	const struct step_plan *plan, enum step_dimension dimension, uint32_t place, uint32_t stage, uint32_t i)
{
	if (dimension == STEP_ALL)
		return plan->first + i;
	if (dimension == STEP_ENDS)
		return plan_rank(plan, place, i ? plan->pp - 1 : 0);
	const struct places places = places_of(plan, dimension, place);
	return plan_rank(plan, places.first + i * places.stride, stage);
}

void step_group_ranks(
	const struct step_plan *plan, enum step_dimension dimension, uint32_t place, uint32_t stage, uint32_t *ranks)
{
	for (uint32_t i = 0; i < step_members(plan, dimension); i++)
		ranks[i] = rank_of(plan, dimension, place, stage, i);
}

uint32_t step_group_first(const struct step_plan *plan, enum step_dimension dimension, uint32_t place, uint32_t stage)
{
	return rank_of(plan, dimension, place, stage, 0);
}
