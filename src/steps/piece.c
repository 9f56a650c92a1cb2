/* See piece.h. */
#include "steps/piece.h"
#include "base/invariant.h"

/* At least one layer of each kind, and as many in each part of the pipeline. */
static uint32_t layers_of(const struct step_plan *plan)
{
	const uint32_t parts = plan_parts(plan), ends = plan->ends_count_as_layers ? 2 : 0;
	const uint32_t kinds = plan->model.experts ? plan->model.dense_layers + 1 : 1;
	const uint32_t layers = (kinds + ends + parts - 1) / parts * parts - ends;
	return layers < plan->model.layers ? layers : plan->model.layers;
}

struct step_plan piece_of(const struct step_plan *plan, double bytes_part)
{
	struct step_plan piece = *plan;
	const uint32_t micro_batches = plan_micro_batches(plan), most = plan->pp > 1 ? 2 * plan->pp : 1;
	assert(bytes_part > 0 && bytes_part <= 1);
	piece.model.layers = layers_of(plan);
	piece.batch = (micro_batches < most ? micro_batches : most) * plan->micro_batch * plan->dp;
	piece.bytes_part = bytes_part;
	return piece;
}
