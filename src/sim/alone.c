/* See alone.h. */
#include "sim/alone.h"

#include <errno.h>
#include <stdlib.h>

bool alone_is_wanted(const struct simulation *simulation)
{
	for (uint32_t i = 1; i < simulation->collective_count + simulation->service_count; i++)
		if (i >= simulation->collective_count || simulation->workload_of[i] != simulation->workload_of[0])
			return simulation->collective_count > 0;
	return false;
}

vb_time alone_job_time(const struct simulation *simulation, uint32_t workload)
{
	vb_time last = -1;

	for (uint32_t i = 0; i < simulation->collective_count; i++) {
		const vb_time its = simulation->result.job_ends[i] - simulation->collectives[i].of.start;
		if (simulation->workload_of[i] == workload && its > last)
			last = its;
	}
	return simulation->result.end == FABRIC_DONE ? last : -1;
}

/* The workload's rings, begun anew. */
static int run_one(struct simulation *simulation, uint32_t workload, struct collective_job *rings, struct job **jobs,
	char *why, size_t size)
{
	struct fabric_config config = simulation->config;
	struct fabric_result result = { 0 };
	static const struct flow_list no_flows;
	uint32_t count = 0;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < simulation->collective_count; i++) {
		if (simulation->workload_of[i] != workload)
			continue;
		rc = collective_job_open(
			&rings[count], &simulation->collectives[i].of, simulation->collectives[i].groups);
		if (!rc) {
			jobs[count] = &rings[count].job;
			count++;
		}
	}
	config.flows = &no_flows;
	config.jobs = jobs;
	config.job_count = count;
	config.captured_count = 0;
	config.tells_messages = false;
	simulation->runs_alone++;
	if (!rc)
		rc = fabric_run(&config, &result, why, (unsigned)size);
	if (!rc && result.end == FABRIC_DONE)
		simulation->alone[workload] = result.last_flow - rings[0].of.start;
	else if (!rc && simulation->alone_end == FABRIC_DONE)
		simulation->alone_end = result.end;
	fabric_result_free(&result);
	for (uint32_t i = 0; i < count; i++)
		collective_job_close(&rings[i]);
	return rc;
}

int alone_run(struct simulation *simulation, char *why, size_t size)
{
	const uint32_t workloads = simulation->scenario->workload_count;
	struct collective_job *rings = calloc(simulation->collective_count + 1, sizeof(*rings));
	struct job **jobs = calloc(simulation->collective_count + 1, sizeof(struct job *));
	int rc;

	simulation->alone = calloc(workloads + 1, sizeof(*simulation->alone));
	rc = rings && jobs && simulation->alone ? 0 : -ENOMEM;
	for (uint32_t i = 0; !rc && i < workloads; i++) {
		simulation->alone[i] = -1;
		if (alone_job_time(simulation, i) >= 0 && simulation->alone_end != FABRIC_STOPPED)
			rc = run_one(simulation, i, rings, jobs, why, size);
	}
	free(rings);
	free(jobs);
	return rc;
}
