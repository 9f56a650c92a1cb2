/* See schedule.h. */
#include "steps/schedule.h"
#include "base/invariant.h"

uint32_t schedule_count(const struct step_plan *plan)
{
	const uint32_t passes = plan->schedule == SCHEDULE_ZERO_BUBBLE ? 3 : 2;
	return passes * plan->chunks * plan_micro_batches(plan);
}

/* The k-th forward or backward pass of a stage: p micro-batches of a chunk, then of the next. */
static struct step_action pass_of(const struct step_plan *plan, uint32_t stage, enum step_pass pass, uint32_t k)
{
	const uint32_t round = plan->pp * plan->chunks;
	uint32_t chunk = k % round / plan->pp;
	if (plan->chunks == 1)
		return (struct step_action){ pass, k, stage };
	if (pass == PASS_BACKWARD)
		chunk = plan->chunks - 1 - chunk;
	return (struct step_action){ (uint8_t)pass, k / round * plan->pp + k % plan->pp, chunk * plan->pp + stage };
}

static uint32_t warm_up(const struct step_plan *plan, uint32_t stage)
{
	const uint32_t all = plan->chunks * plan_micro_batches(plan), later = plan->pp - stage - 1;
	const uint32_t wanted = plan->chunks == 1 ? later : 2 * later + (plan->chunks - 1) * plan->pp;
	return wanted < all ? wanted : all;
}

void schedule_fill(const struct step_plan *plan, uint32_t stage, struct step_action *actions)
{
	const uint32_t all = plan->chunks * plan_micro_batches(plan), first = warm_up(plan, stage);
	const bool splits = plan->schedule == SCHEDULE_ZERO_BUBBLE;
	uint32_t count = 0, forward = 0, weights = 0;
	while (forward < first)
		actions[count++] = pass_of(plan, stage, PASS_FORWARD, forward++);
	for (uint32_t backward = 0; backward < all; backward++) {
		if (forward < all)
			actions[count++] = pass_of(plan, stage, PASS_FORWARD, forward++);
		actions[count++] = pass_of(plan, stage, PASS_BACKWARD, backward);
		if (splits && backward >= stage)
			actions[count++] = pass_of(plan, stage, PASS_WEIGHTS, weights++);
	}
	while (splits && weights < all)
		actions[count++] = pass_of(plan, stage, PASS_WEIGHTS, weights++);
	assert(count == schedule_count(plan));
}
