/* See step_times.h. */
#include "sim/step_times.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "net/why.h"
#include "sim/simulation.h"
#include "sim/why_about.h"
#include "steps/plan_check.h"

static const struct scenario_step *given_of(const struct simulation *simulation, uint32_t workload)
{
	return &simulation->scenario->workloads[workload].step;
}

static bool has_trace(const struct simulation *simulation, uint32_t workload)
{
	const char *path = given_of(simulation, workload)->compute_times;
	return scenario_has_step(simulation->scenario, workload) && *path && compute_trace_is(path);
}

static int read_trace(struct simulation *simulation, uint32_t workload, char *why, size_t size)
{
	int rc = compute_trace_read(
		given_of(simulation, workload)->compute_times, &simulation->traces[workload], why, (unsigned)size);
	return rc == -EINVAL ? why_about(why, size, "workload.%" PRIu32 ".compute-times", workload) : rc;
}

int step_times_read_traces(struct simulation *simulation, char *why, size_t size)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < simulation->scenario->workload_count; i++) {
		if (!has_trace(simulation, i))
			continue;
		if (!simulation->traces)
			simulation->traces = calloc(simulation->scenario->workload_count, sizeof(*simulation->traces));
		rc = simulation->traces ? read_trace(simulation, i, why, size) : -ENOMEM;
	}
	return rc;
}

static bool is_from_trace(const struct simulation *simulation, uint32_t workload)
{
	return simulation->traces && simulation->traces[workload].computations > 0;
}

/* With the list of all that is missing. */
static int refuse_missing(
	const struct step_plan *plan, const char *path, bool is_trace, const char *missing, char *why, size_t size)
{
	if (is_trace)
		return why_not(why, (unsigned)size,
			"compute-times: %.120s: its computations name no %s: give them such names (record_function), "
			"or say missing-times: mfu",
			path, missing);
	return why_not(why, (unsigned)size,
		"compute-times: %.120s: of shape %" PRIu32 "x%" PRIu32 "/%" PRIu32
		" it has no time of %s: add rows, or say missing-times: mfu",
		path, plan->micro_batch, plan->sequence / plan->cp, plan->tp, missing);
}

int step_times_use(
	const struct simulation *simulation, uint32_t workload, struct step_plan *plan, char *why, size_t size)
{
	const struct scenario_step *given = given_of(simulation, workload);
	const bool is_trace = is_from_trace(simulation, workload);
	struct compute_times times;
	char missing[300];

	if (!*given->compute_times)
		return 0;
	int rc = 0;
	if (is_trace)
		times = simulation->traces[workload].times;
	else
		rc = compute_times_read_file(plan, given->compute_times, &times, why, (unsigned)size);
	if (rc)
		return rc == -EINVAL ? why_about(why, size, "compute-times") : rc;
	const unsigned count = compute_times_missing(plan, &times, missing, sizeof(missing));
	if (count && given->missing_times == MISSING_REFUSED)
		return refuse_missing(plan, given->compute_times, is_trace, missing, why, size);
	compute_times_use(plan, &times);
	return plan_check(plan, why, (unsigned)size);
}

const struct compute_trace *step_times_unmatched(const struct simulation *simulation, uint32_t workload)
{
	if (!is_from_trace(simulation, workload) || !simulation->traces[workload].unmatched)
		return NULL;
	return &simulation->traces[workload];
}

unsigned step_times_by_mfu(const struct step_plan *plan, char *text, size_t size)
{
	struct compute_times times = { 0 };

	for (unsigned i = 0; i < 2 * STEP_WORKS; i++)
		times.of[i / 2][i % 2] = plan->factors[i / 2][i % 2] > 0;
	return compute_times_missing(plan, &times, text, (unsigned)size);
}
