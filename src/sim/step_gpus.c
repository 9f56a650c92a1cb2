/* See step_gpus.h. */
#include "sim/step_gpus.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "net/why.h"
#include "sim/value.h"
#include "sim/why_about.h"
#include "steps/plan_check.h"
#include "steps/speeds.h"

#define LEAST_SLOW 0.001
#define MOST_SLOW  1000

static const struct gpu *kind_named(struct span name)
{
	char text[32];

	snprintf(text, sizeof(text), "%.*s", SPAN(name));
	return gpu_find(text);
}

/* The first that a mix names; what is wrong with the mix is found when its ranks are known. */
static const struct gpu *first_of_mix(const char *mix)
{
	struct span list = { mix, strlen(mix) }, value;
	struct plan_ranges ranges = { 0 };
	char why[100];

	return speeds_take(&list, UINT32_MAX, &ranges, &value, why, sizeof(why)) > 0 ? kind_named(value) : NULL;
}

int step_gpus_find(const struct simulation *simulation, const struct scenario_step *given, struct step *step, char *why,
	size_t size)
{
	step->gpu = *given->gpu ? gpu_find(given->gpu) : simulation->scenario->gpu;
	if (!step->gpu && !*given->gpu)
		step->gpu = first_of_mix(given->gpus);
	step->plan.tflops = step->gpu ? step->gpu->tflops : 0;
	if (step->gpu)
		return 0;
	return *given->gpu
		       ? why_not(why, (unsigned)size, "gpu: there is no %s; verbena sim --gpus lists them", given->gpu)
		       : why_not(why, (unsigned)size, "gpu: which GPU computes? Name it here or as hosts.gpu");
}

/* ---- Lists of ranks ---------------------------------------------------------------------------------------------- */

static int read_slow(const char *text, struct step_plan *plan, char *why, size_t size)
{
	struct span list = { text, strlen(text) }, value;
	char factor[32];
	int rc;

	while ((rc = speeds_take(&list, plan_ranks(plan), &plan->slow, &value, why, (unsigned)size)) > 0) {
		double *of = &plan->slow.list[plan->slow.count - 1].factor;
		snprintf(factor, sizeof(factor), "%.*s", SPAN(value));
		if (!value_real(factor, of) || !(*of >= LEAST_SLOW && *of <= MOST_SLOW))
			return why_not(why, (unsigned)size, "%s: a factor is %g to %d", factor, LEAST_SLOW, MOST_SLOW);
	}
	return rc;
}

static int read_mix(const char *text, struct step *step, char *why, size_t size)
{
	struct plan_ranges *kinds = &step->plan.kinds;
	struct span list = { text, strlen(text) }, value;
	int rc;

	while ((rc = speeds_take(&list, plan_ranks(&step->plan), kinds, &value, why, (unsigned)size)) > 0) {
		const struct gpu *gpu = kind_named(value);
		if (!gpu)
			return why_not(
				why, (unsigned)size, "there is no %.*s; verbena sim --gpus lists them", SPAN(value));
		step->kinds[kinds->count - 1] = gpu;
		kinds->list[kinds->count - 1].factor = step->plan.tflops / gpu->tflops;
	}
	return rc;
}

static uint32_t ranks_in(const struct plan_range *range)
{
	return range->last - range->first + 1;
}

/* Ranks that the mix does not name. */
static uint32_t others(const struct step *step)
{
	uint32_t count = plan_ranks(&step->plan);

	for (uint32_t i = 0; i < step->plan.kinds.count; i++)
		count -= ranks_in(&step->plan.kinds.list[i]);
	return count;
}

int step_gpus_spread(const struct scenario_step *given, struct step *step, char *why, size_t size)
{
	int rc = read_slow(given->slow, &step->plan, why, size);

	if (rc == -EINVAL)
		return why_about(why, size, "slow");
	if (!rc)
		rc = read_mix(given->gpus, step, why, size);
	if (rc == -EINVAL)
		return why_about(why, size, "gpus");
	step->slow = *given->slow ? given->slow : NULL;
	return rc ? rc : plan_check(&step->plan, why, (unsigned)size);
}

/* ---- Kinds ------------------------------------------------------------------------------------------------------- */

static const struct gpu *kind_at(const struct step *step, uint32_t place)
{
	return place ? step->kinds[place - 1] : step->gpu;
}

static uint32_t ranks_of(const struct step *step, const struct gpu *kind)
{
	uint32_t count = step->gpu == kind ? others(step) : 0;

	for (uint32_t i = 0; i < step->plan.kinds.count; i++)
		count += step->kinds[i] == kind ? ranks_in(&step->plan.kinds.list[i]) : 0;
	return count;
}

static bool is_first(const struct step *step, uint32_t place)
{
	for (uint32_t i = 0; i < place; i++)
		if (kind_at(step, i) == kind_at(step, place))
			return false;
	return true;
}

const struct gpu *step_gpus_next(const struct step *step, uint32_t *place, uint32_t *ranks)
{
	while (*place <= step->plan.kinds.count) {
		const uint32_t at = (*place)++;
		const struct gpu *kind = kind_at(step, at);
		*ranks = ranks_of(step, kind);
		if (*ranks && is_first(step, at))
			return kind;
	}
	return NULL;
}

const struct gpu *step_gpus_smallest(const struct step *step)
{
	const struct gpu *smallest = NULL, *kind;
	uint32_t place = 0, ranks;

	while ((kind = step_gpus_next(step, &place, &ranks)))
		smallest = !smallest || kind->memory_gb < smallest->memory_gb ? kind : smallest;
	return smallest;
}

double step_gpus_tflops(const struct step *step)
{
	const struct gpu *kind;
	uint32_t place = 0, ranks;
	double sum = 0;

	while ((kind = step_gpus_next(step, &place, &ranks)))
		sum += (double)ranks * kind->tflops;
	return sum / plan_ranks(&step->plan);
}
