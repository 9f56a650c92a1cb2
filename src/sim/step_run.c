/* See step_run.h. */
#include "sim/step_run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "os/json.h"
#include "sim/report.h"
#include "sim/step_network.h"
#include "sim/step_report.h"
#include "sim/step_workloads.h"
#include "sim/value.h"

static bool is_by_packets(const struct session *session)
{
	return session->scenario->mode == MODE_PACKETS;
}

static const char *mode_name(const struct session *session)
{
	static const char *const names[] = { "packets", "flows", "formula" };
	return names[session->scenario->mode];
}

/* ---- Running ----------------------------------------------------------------------------------------------------- */

static int open_one(const struct session *session, uint32_t workload, struct step *step, char *why, size_t size)
{
	int rc = step_open(&session->simulation, workload, step, why, size);

	if (!rc)
		rc = step_check_memory(&session->simulation, step, why, size);
	return rc ? rc : step_network_check(&session->simulation, why, size);
}

static int run_all_fast(
	const struct session *session, const struct sim_options *options, const char *file, struct step_runs *runs)
{
	char why[400] = "";
	int rc = 0;

	while (!rc && runs->count < session->simulation.step_count) {
		rc = open_one(session, runs->count, &runs->steps[runs->count], why, sizeof(why));
		runs->count++;
	}
	if (!rc)
		rc = steps_run(&session->simulation, runs->steps, runs->count, &runs->loads, !options->skips_alone, why,
			sizeof(why));
	return rc ? session_refuse(session, file, rc, why) : SIM_EXIT_OK;
}

static int run_by_packets(struct session *session, const struct sim_options *options, struct step_runs *runs)
{
	int status = session_run(session, options), rc = 0;

	if (status || report_end(&session->simulation) != FABRIC_DONE)
		return status;
	while (!rc && runs->count < session->simulation.step_count) {
		rc = step_take_times(&session->simulation, step_workload(&session->simulation, runs->count),
			&runs->steps[runs->count]);
		runs->count++;
	}
	return rc ? session_refuse(session, "the step", rc, "") : SIM_EXIT_OK;
}

int step_runs_make(struct session *session, const struct sim_options *options, const char *file, struct step_runs *runs)
{
	*runs = (struct step_runs){ .steps = calloc(session->scenario->workload_count, sizeof(*runs->steps)) };
	if (!runs->steps)
		return session_refuse(session, file, -ENOMEM, "");
	return is_by_packets(session) ? run_by_packets(session, options, runs)
				      : run_all_fast(session, options, file, runs);
}

void step_runs_close(struct step_runs *runs)
{
	for (uint32_t i = 0; i < runs->count; i++)
		step_close(&runs->steps[i]);
	step_loads_free(&runs->loads);
	free(runs->steps);
	free(runs->checks);
	*runs = (struct step_runs){ 0 };
}

/* ---- Checks ------------------------------------------------------------------------------------------------------ */

static int open_checks(const struct session *session, const struct sim_options *options, struct step_runs *runs)
{
	if (options->skips_check)
		return SIM_EXIT_OK;
	runs->checks = calloc(session->scenario->workload_count, sizeof(*runs->checks));
	return runs->checks ? SIM_EXIT_OK : session_refuse(session, "the check", -ENOMEM, "");
}

/* Of one step, unless none is wanted. */
static int run_check(
	struct session *session, const struct sim_options *options, struct step_runs *runs, uint32_t number)
{
	char why[400] = "";

	if (!runs->checks)
		return SIM_EXIT_OK;
	session_watch(session, options, "operation");
	progress_begin_check(&session->progress);
	int rc = step_check_run(&session->simulation, &runs->steps[number], &session->simulation.check_limit,
		&runs->checks[number], why, sizeof(why));
	progress_end(&session->progress);
	return rc ? session_refuse(session, "the check", rc, why) : SIM_EXIT_OK;
}

int step_runs_check(struct session *session, const struct sim_options *options, struct step_runs *runs)
{
	int status = open_checks(session, options, runs);

	for (uint32_t i = 0; !status && i < runs->count; i++)
		status = run_check(session, options, runs, i);
	return status;
}

/* ---- Telling ----------------------------------------------------------------------------------------------------- */

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

static uint64_t hash_of(const struct step_runs *runs)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (uint32_t i = 0; i < runs->count; i++)
		hash = mix(hash, &runs->steps[i]);
	return hash;
}

void step_runs_json(FILE *out, const struct session *session, const struct step_runs *runs)
{
	vb_time longest = 0;

	fprintf(out, "{\"name\": ");
	vb_json_string(out, session->scenario->name);
	fprintf(out, ", \"steps\": [");
	for (uint32_t i = 0; i < runs->count; i++) {
		fputs(i ? ",\n  " : "\n  ", out);
		step_report_json(out, &runs->steps[i], mode_name(session), session->scenario->workloads[i].step.steps,
			runs->checks ? &runs->checks[i] : NULL);
		longest = runs->steps[i].times.step > longest ? runs->steps[i].times.step : longest;
	}
	fprintf(out, "], \"end\": \"done\", \"jct_ps\": %" PRId64 ", \"result_hash\": \"%016" PRIx64 "\"}",
		(int64_t)longest, hash_of(runs));
}

static void put_head(const struct session *session)
{
	report_network(stdout, &session->simulation);
	printf("; %" PRIu32 " ranks\n", simulation_ranks(&session->simulation));
	report_notes(stdout, &session->simulation);
}

/* Each step before its check, which takes longer. */
static int put_text(struct session *session, const struct sim_options *options, struct step_runs *runs)
{
	const char *how = session->scenario->mode == MODE_FLOWS ? "by flows: links are shared max-min fairly"
								: "by formula: without contention";
	int status = open_checks(session, options, runs);

	if (status)
		return status;
	put_head(session);
	for (uint32_t i = 0; !status && i < runs->count; i++) {
		putchar('\n');
		step_report_plan(stdout, &runs->steps[i]);
		step_report_times(stdout, &runs->steps[i], how, session->scenario->workloads[i].step.steps);
		fflush(stdout);
		status = run_check(session, options, runs, i);
		if (!status && runs->checks)
			step_report_check(stdout, &runs->checks[i]);
	}
	if (!status)
		printf("result %016" PRIx64 "\n", hash_of(runs));
	return status;
}

static int put_json(struct session *session, const struct sim_options *options, struct step_runs *runs)
{
	int status = step_runs_check(session, options, runs);

	if (status)
		return status;
	step_runs_json(stdout, session, runs);
	putchar('\n');
	return SIM_EXIT_OK;
}

/* ---- A dry run --------------------------------------------------------------------------------------------------- */

static int add_cost(const struct session *session, uint32_t workload, struct step_cost *sum, char *why, size_t size)
{
	struct step_cost cost;
	struct step step;
	int rc = open_one(session, workload, &step, why, size);

	if (!rc)
		rc = step_cost_by_formula(&session->simulation, &step, &cost);
	if (rc)
		return rc;
	sum->operations += cost.operations;
	sum->cpu_s += cost.cpu_s;
	sum->bytes = cost.bytes > sum->bytes ? cost.bytes : sum->bytes; /* one runs after the other */
	return 0;
}

static int cost_by_formula(const struct session *session, char *text, size_t size)
{
	struct step_cost sum = { 0 };
	char operations[32], bytes[32];
	int rc = 0;

	for (uint32_t i = 0; !rc && i < session->scenario->workload_count; i++)
		rc = add_cost(session, i, &sum, text, size);
	if (!rc)
		snprintf(text, size, "by %s: about %s operations: %.2g s of CPU time, %s of memory", mode_name(session),
			value_count_text(sum.operations, operations, sizeof(operations)), sum.cpu_s,
			value_bytes_text((uint64_t)sum.bytes, bytes, sizeof(bytes)));
	return rc;
}

static int cost_by_packets(struct session *session, char *text, size_t size)
{
	char why[400];
	int rc = simulation_plan_step(&session->simulation, why, sizeof(why));

	if (rc)
		snprintf(text, size, "%s", why);
	else
		snprintf(text, size, "by packets: %s", estimate_text(&session->simulation.estimate, why, sizeof(why)));
	return rc;
}

/* A step that would be refused has no cost, but a plan. */
int step_tell_cost(struct session *session, const char *file)
{
	char text[500];
	int rc = is_by_packets(session) ? cost_by_packets(session, text, sizeof(text))
					: cost_by_formula(session, text, sizeof(text));

	if (rc && rc != -EINVAL)
		return session_refuse(session, file, rc, "");
	printf("%s%s\n", rc ? "it would not run: " : "", text);
	return SIM_EXIT_OK;
}

static int tell_plans(struct session *session, const char *file)
{
	struct step step;
	char why[400] = "";
	int rc = 0;

	for (uint32_t i = 0; !rc && i < session->simulation.step_count; i++)
		rc = step_open(&session->simulation, step_workload(&session->simulation, i), &step, why, sizeof(why));
	if (rc)
		return session_refuse(session, file, rc, why);
	put_head(session);
	for (uint32_t i = 0; i < session->simulation.step_count; i++) {
		step_open(&session->simulation, step_workload(&session->simulation, i), &step, why, sizeof(why));
		putchar('\n');
		step_report_plan(stdout, &step);
	}
	printf("\ncost    ");
	return step_tell_cost(session, file);
}

/* ---- One scenario ------------------------------------------------------------------------------------------------ */

static int check_options(const struct sim_options *options)
{
	const bool is_told_by_packets =
		options->csv || options->pcap || options->trace || options->explains_pfc || options->explains_job;

	if (is_told_by_packets) {
		fprintf(stderr, "verbena sim: a step without packets takes no --csv, --pcap, --trace or --explain\n");
		return SIM_EXIT_USAGE;
	}
	return SIM_EXIT_OK;
}

/* Nothing is told before all have run. */
static int run_and_tell(struct session *session, const struct sim_options *options)
{
	struct step_runs runs;
	int status = step_runs_make(session, options, options->arguments[0], &runs);

	if (!status)
		status = options->is_json ? put_json(session, options, &runs) : put_text(session, options, &runs);
	if (!status && progress_is_interrupted())
		status = SIM_EXIT_NO_END;
	step_runs_close(&runs);
	return status;
}

int step_run_all(struct session *session, const struct sim_options *options)
{
	int status = check_options(options);

	if (status)
		return status;
	return options->is_dry ? tell_plans(session, options->arguments[0]) : run_and_tell(session, options);
}

int step_tell_run(const struct simulation *simulation)
{
	struct step step;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < simulation->step_count && report_end(simulation) == FABRIC_DONE; i++) {
		const uint32_t workload = step_workload(simulation, i);
		rc = step_take_times(simulation, workload, &step);
		if (!rc) {
			putchar('\n');
			step_report_plan(stdout, &step);
			step_report_times(
				stdout, &step, "by packets", simulation->scenario->workloads[workload].step.steps);
		}
		step_close(&step);
	}
	return rc;
}
