/* See step_job.h. */
#include "sim/step_job.h"
#include "sim/step_workloads.h"

#include <errno.h>
#include <stdlib.h>

int step_job_open(
	const struct simulation *simulation, const struct step_plan *plan, struct step_job *job, char *why, size_t size)
{
	static const struct flow_list no_flows;

	*job = (struct step_job){ .with = *simulation };
	job->with.job_file = (struct job_file){ 0 };
	job->with.has_graph = false;
	int rc = step_graph_make(&plan, 1, &job->with.job_file, why, (unsigned)size);
	if (!rc)
		rc = graph_job_open(&job->with.graph_job, &job->with.job_file.graph, &simulation->hosts,
			&simulation->scenario->job_nccl);
	if (rc)
		return rc;
	job->with.has_graph = true;
	job->job = &job->with.graph_job.job;
	job->with.config.flows = &no_flows;
	job->with.config.jobs = &job->job;
	job->with.config.job_count = 1;
	job->with.config.captured_count = 0;
	job->with.config.by_flows = false;
	return 0;
}

void step_job_close(struct step_job *job)
{
	if (job->with.has_graph)
		graph_job_close(&job->with.graph_job);
	job->with.has_graph = false;
	job_file_free(&job->with.job_file);
}

/* ---- Alone ------------------------------------------------------------------------------------------------------- */

static int run_one(struct simulation *simulation, const struct step *step, char *why, size_t size)
{
	struct fabric_result result = { 0 };
	struct step_times times;
	struct step_job job = { 0 };
	int rc = step_job_open(simulation, &step->plan, &job, why, size);

	job.with.config.tells_messages = false;
	simulation->runs_alone++;
	if (!rc)
		rc = fabric_run(&job.with.config, &result, why, (unsigned)size);
	if (!rc && result.end == FABRIC_DONE && !result.flows_failed) {
		rc = step_graph_account(&step->plan, &job.with.graph_job, &times);
		simulation->alone[step->workload] = rc ? -1 : times.step;
	} else if (!rc && simulation->alone_end == FABRIC_DONE) {
		simulation->alone_end = result.end;
	}
	fabric_result_free(&result);
	step_job_close(&job);
	return rc;
}

int step_job_run_alone(struct simulation *simulation, char *why, size_t size)
{
	struct step step;
	int rc = 0;

	simulation->alone = calloc(simulation->scenario->workload_count + 1, sizeof(*simulation->alone));
	if (!simulation->alone)
		return -ENOMEM;
	for (uint32_t i = 0; !rc && i < simulation->step_count; i++) {
		const uint32_t workload = step_workload(simulation, i);
		simulation->alone[workload] = -1;
		if (simulation->result.end != FABRIC_DONE || simulation->alone_end == FABRIC_STOPPED)
			continue;
		rc = step_open(simulation, workload, &step, why, size);
		if (!rc)
			rc = run_one(simulation, &step, why, size);
	}
	return rc;
}
