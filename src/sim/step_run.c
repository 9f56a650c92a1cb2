/* See step_run.h. */
#include "sim/step_run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "os/json.h"
#include "sim/report.h"
#include "sim/step_report.h"

static int check_options(const struct sim_options *options)
{
	const bool is_told_by_packets =
		options->csv || options->pcap || options->trace || options->explains_pfc || options->explains_job;

	if (is_told_by_packets) {
		fprintf(stderr, "verbena sim: a step by formula takes no --csv, --pcap, --trace or --explain\n");
		return SIM_EXIT_USAGE;
	}
	return SIM_EXIT_OK;
}

/* FNV-1a, of all that was told. */
static uint64_t mix(uint64_t hash, const struct step *step)
{
	const struct step_times *times = &step->times;
	uint64_t values[3 + 2 * STEP_DIMENSIONS] = { (uint64_t)times->step, (uint64_t)times->compute,
		(uint64_t)times->bubble };

	for (unsigned i = 0; i < STEP_DIMENSIONS; i++) {
		values[3 + i] = (uint64_t)times->exposed[i];
		values[3 + STEP_DIMENSIONS + i] = (uint64_t)times->bytes[i];
	}
	for (unsigned i = 0; i < sizeof(values) / sizeof(*values); i++)
		for (unsigned k = 0; k < 64; k += 8)
			hash = (hash ^ (values[i] >> k & 0xFF)) * 0x100000001b3u;
	return hash;
}

static void put_text(const struct step *step, uint32_t steps, bool is_dry)
{
	putchar('\n');
	step_report_plan(stdout, step);
	if (!is_dry)
		step_report_times(stdout, step, "by formula: without contention", steps);
}

static void put_head(const struct session *session, bool is_json)
{
	if (!is_json) {
		report_network(stdout, &session->simulation);
		printf("; %" PRIu32 " ranks\n", simulation_ranks(&session->simulation));
		return;
	}
	printf("{\"name\": ");
	vb_json_string(stdout, session->scenario->name);
	printf(", \"steps\": [");
}

static void put_end(const struct sim_options *options, uint64_t hash, vb_time longest)
{
	if (options->is_json)
		printf("], \"end\": \"done\", \"jct_ps\": %" PRId64 ", \"result_hash\": \"%016" PRIx64 "\"}\n",
			(int64_t)longest, hash);
	else if (!options->is_dry)
		printf("result %016" PRIx64 "\n", hash);
}

static int run_step(
	const struct session *session, const struct sim_options *options, uint32_t workload, struct step *step)
{
	char why[400] = "";
	int rc = step_open(&session->simulation, workload, step, why, sizeof(why));

	if (!rc)
		rc = step_find_network(&session->simulation, step);
	if (!rc && !options->is_dry)
		rc = step_check_memory(&session->simulation, step, why, sizeof(why));
	if (!rc && !options->is_dry)
		rc = step_run(step);
	return rc ? session_refuse(session, options->arguments[0], rc, why) : SIM_EXIT_OK;
}

static int run_steps(const struct session *session, const struct sim_options *options, struct step *steps)
{
	int status = SIM_EXIT_OK;

	for (uint32_t i = 0; !status && i < session->scenario->workload_count; i++)
		status = run_step(session, options, i, &steps[i]);
	return status;
}

static void put_steps(const struct session *session, const struct sim_options *options, const struct step *steps)
{
	uint64_t hash = 0xcbf29ce484222325u;
	vb_time longest = 0;

	put_head(session, options->is_json);
	for (uint32_t i = 0; i < session->scenario->workload_count; i++) {
		const uint32_t of_training = session->scenario->workloads[i].step.steps;
		if (options->is_json) {
			fputs(i ? ",\n  " : "\n  ", stdout);
			step_report_json(stdout, &steps[i], "formula", of_training);
		} else {
			put_text(&steps[i], of_training, options->is_dry);
		}
		hash = mix(hash, &steps[i]);
		longest = steps[i].times.step > longest ? steps[i].times.step : longest;
	}
	put_end(options, hash, longest);
}

/* Nothing is told before all have run. */
int step_run_all(const struct session *session, const struct sim_options *options)
{
	struct step *steps = calloc(session->scenario->workload_count, sizeof(*steps));
	int status = check_options(options);

	if (!status && !steps)
		status = session_refuse(session, options->arguments[0], -ENOMEM, "");
	if (!status)
		status = run_steps(session, options, steps);
	if (!status)
		put_steps(session, options, steps);
	for (uint32_t i = 0; steps && i < session->scenario->workload_count; i++)
		step_close(&steps[i]);
	free(steps);
	return status;
}

int step_tell_run(const struct simulation *simulation)
{
	struct step step;

	if (report_end(simulation) != FABRIC_DONE)
		return 0;
	int rc = step_take_times(simulation, &step);
	if (!rc) {
		putchar('\n');
		step_report_plan(stdout, &step);
		step_report_times(stdout, &step, "by packets", simulation->scenario->workloads[0].step.steps);
	}
	step_close(&step);
	return rc;
}
