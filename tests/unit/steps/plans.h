/* Plans that tests begin with. */
#ifndef TESTS_STEPS_PLANS_H
#define TESTS_STEPS_PLANS_H

#include "steps/plan.h"

static inline struct step_plan plan_of(const char *model, uint32_t tp, uint32_t pp, uint32_t dp, uint32_t batch)
{
	return (struct step_plan){ .model = *model_find(model),
		.tp = tp,
		.cp = 1,
		.pp = pp,
		.dp = dp,
		.ep = 1,
		.chunks = 1,
		.micro_batch = 1,
		.batch = batch,
		.sequence = model_find(model)->sequence,
		.is_sequence_parallel = tp > 1,
		.zero = 1,
		.gradient_bytes = 4,
		.recompute = RECOMPUTE_SELECTIVE,
		.tflops = 989,
		.mfu = 0.6 };
}

#endif
