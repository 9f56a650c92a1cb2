/* See step_keys.h. */
#include "sim/step_keys.h"

#include <stdio.h>
#include "sim/step.h"

/* As the scenario gives the plan, and as it was completed. */
typedef bool idle_test(const struct step_plan *given, const struct step_plan *plan);

static bool is_one_replica(const struct step_plan *given, const struct step_plan *plan)
{
	(void)given;
	return plan->dp * plan->cp == 1;
}

static bool has_no_parts(const struct step_plan *given, const struct step_plan *plan)
{
	return given->chunks > 1 && plan->chunks == 1;
}

static bool has_no_buckets(const struct step_plan *given, const struct step_plan *plan)
{
	(void)given;
	return !plan->overlaps_gradients || plan->zero == 3;
}

static bool sends_gradients_anyway(const struct step_plan *given, const struct step_plan *plan)
{
	return given->overlaps_gradients && plan->zero == 3;
}

static bool gathers_no_parameters(const struct step_plan *given, const struct step_plan *plan)
{
	return given->overlaps_parameters && plan->zero != 1 && plan->zero != 2;
}

static bool exchanges_no_tokens(const struct step_plan *given, const struct step_plan *plan)
{
	(void)given;
	return plan->ep == 1;
}

static bool has_whole_sequences(const struct step_plan *given, const struct step_plan *plan)
{
	(void)given;
	return plan->cp == 1;
}

static bool has_whole_matrices(const struct step_plan *given, const struct step_plan *plan)
{
	(void)given;
	return plan->tp == 1;
}

static bool is_one_stage(const struct step_plan *given, const struct step_plan *plan)
{
	(void)given;
	return plan->pp == 1;
}

static bool has_one_order(const struct step_plan *given, const struct step_plan *plan)
{
	(void)given;
	return plan->pp == 1 || plan->dp == 1;
}

static bool is_one_part(const struct step_plan *given, const struct step_plan *plan)
{
	return given->ends_count_as_layers && plan_parts(plan) == 1;
}

static bool is_latent(const struct step_plan *given, const struct step_plan *plan)
{
	(void)given;
	return plan->model.latent.query_rank > 0;
}

static bool has_a_table(const struct step_plan *given, const struct step_plan *plan)
{
	(void)given;
	char missing[300];
	return plan->factors[WORK_OUTPUT][0] > 0 && step_times_by_mfu(plan, missing, sizeof(missing)) == 0;
}

static bool has_no_times(const struct step_plan *given, const struct step_plan *plan)
{
	double sum = 0;
	(void)given;
	for (unsigned i = 0; i < 2 * STEP_WORKS; i++)
		sum += plan->factors[i / 2][i % 2];
	return sum == 0;
}

/* `of` is the key that would have to change. */
static const struct {
	const char *path, *of;
	idle_test *is_idle;
	const char *why;
} keys[] = {
	{ "workload.*.vpp", "workload.*.schedule", has_no_parts,
		"stages have several parts only with schedule interleaved and pp above 1" },
	{ "workload.*.schedule", "workload.*.pp", is_one_stage, "pp is 1, and one stage has one order" },
	{ "workload.*.order", "workload.*.pp", has_one_order, "with pp 1 or dp 1 both orders are the same" },
	{ "workload.*.ends-count-as-layers", "workload.*.pp", is_one_part, "pp is 1, and one part has all layers" },
	{ "workload.*.bucket", "workload.*.overlap-gradients", has_no_buckets,
		"gradients leave in buckets only with overlap-gradients yes and zero below 3" },
	{ "workload.*.overlap-gradients", "workload.*.zero", sends_gradients_anyway,
		"with zero 3 gradients leave beside the backward passes anyway" },
	{ "workload.*.overlap-parameters", "workload.*.zero", gathers_no_parameters,
		"only with zero 1 or 2 parameters come before the step's forward passes" },
	{ "workload.*.overlap-gradients", "workload.*.dp", is_one_replica,
		"dp and cp are 1, and one replica sends none" },
	{ "workload.*.overlap-parameters", "workload.*.dp", is_one_replica,
		"dp and cp are 1, and one replica has all" },
	{ "workload.*.zero", "workload.*.dp", is_one_replica, "dp and cp are 1, and one replica has all" },
	{ "workload.*.dispatcher", "workload.*.ep", exchanges_no_tokens,
		"ep is 1, and no token leaves its rank for an expert" },
	{ "workload.*.context", "workload.*.cp", has_whole_sequences, "cp is 1, and each rank has whole sequences" },
	{ "workload.*.sp", "workload.*.tp", has_whole_matrices, "tp is 1, and each rank has whole matrices" },
	{ "workload.*.kv-heads", "workload.*.model", is_latent, "the model's attention has one compressed key" },
	{ "workload.*.mfu", "workload.*.compute-times", has_a_table, "compute-times has them all" },
	{ "workload.*.missing-times", "workload.*.compute-times", has_no_times,
		"without compute-times all goes by mfu" },
	{ "workload.*.head-dim", "workload.*.model", is_latent, "the model's attention has widths of its own" },
};

static bool is_idle_in_all(const struct simulation *simulation, idle_test *is_idle)
{
	struct step step;
	char why[400];

	for (uint32_t i = 0; i < simulation->scenario->workload_count; i++)
		if (scenario_has_step(simulation->scenario, i) &&
			(step_open(simulation, i, &step, why, sizeof(why)) ||
				!is_idle(&simulation->scenario->workloads[i].step.plan, &step.plan)))
			return false;
	return true;
}

const char *step_keys_idle(const struct simulation *simulation, size_t *place, const char **why)
{
	const struct scenario *scenario = simulation->scenario;

	while (simulation->step_count && *place < sizeof(keys) / sizeof(*keys)) {
		const size_t i = (*place)++;
		if (!scenario_is_given(scenario, keys[i].path) || scenario_is_varied(scenario, keys[i].path) ||
			scenario_is_varied(scenario, keys[i].of) || !is_idle_in_all(simulation, keys[i].is_idle))
			continue;
		*why = keys[i].why;
		return keys[i].path;
	}
	return NULL;
}
