/* See step_workloads.h. */
#include "sim/step_workloads.h"

#include <inttypes.h>
#include <string.h>
#include "base/invariant.h"
#include "net/why.h"

uint32_t step_workload(const struct simulation *simulation, uint32_t number)
{
	uint32_t workload = 0;

	assert(number < simulation->step_count);
	for (;; workload++) {
		assert(workload < simulation->scenario->workload_count);
		if (scenario_has_step(simulation->scenario, workload) && number-- == 0)
			return workload;
	}
}

bool step_workloads_are_run(const struct scenario *scenario, const struct simulation_files *files)
{
	bool has_step = false;

	for (uint32_t i = 0; i < scenario->workload_count; i++)
		has_step |= scenario_has_step(scenario, i);
	return has_step && !(files && (files->job || files->flows));
}

static int check_beside(const struct scenario *scenario, uint32_t workload, char *why, size_t size)
{
	const struct scenario_workload *its = &scenario->workloads[workload];
	const bool is_storage = !*its->file && (strcmp(its->workload.kind, "checkpoint") == 0 ||
						       strcmp(its->workload.kind, "input") == 0);

	if (!is_storage)
		return why_not(why, (unsigned)size,
			"workload.%" PRIu32
			": nothing else runs beside steps of training but checkpoint and input: leave it "
			"out, or the steps",
			workload);
	if (scenario->mode != MODE_PACKETS)
		return why_not(why, (unsigned)size,
			"workload.%" PRIu32
			": beside steps of training it runs by packets alone: run.mode: packets, or leave "
			"it out",
			workload);
	return 0;
}

/* By flows each change of a link has loads of its own; by formula no link is known. */
static int check_faults(const struct scenario *scenario, char *why, size_t size)
{
	if (scenario->mode == MODE_FORMULA && scenario->fault_count)
		return why_not(why, (unsigned)size,
			"network.faults: a formula knows no link: run.mode: flows, or run.mode: packets");
	for (uint32_t i = 0; scenario->mode == MODE_FLOWS && i < scenario->fault_count; i++)
		if (scenario->faults[i].fault.flap_period)
			return why_not(why, (unsigned)size,
				"network.faults.%" PRIu32 ".flap: in a step by flows a link goes down once: leave it "
				"out, or run.mode: packets",
				i);
	return 0;
}

int step_workloads_check(const struct scenario *scenario, char *why, size_t size)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < scenario->workload_count; i++)
		if (!scenario_has_step(scenario, i))
			rc = check_beside(scenario, i, why, size);
	return rc ? rc : check_faults(scenario, why, size);
}
