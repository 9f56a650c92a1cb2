/* Several runs in one table: each file with each combination of the axes' values; the last axis changes fastest. */
#include "sim/compare.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/utf8.h"
#include "os/json.h"
#include "sim/job.h"
#include "sim/report.h"
#include "sim/session.h"
#include "sim/step_report.h"
#include "sim/step_run.h"
#include "sim/table_checks.h"

enum { MAX_AXES = 8, MAX_RUNS = 1000, MAX_NAME = 160, MAX_TOLD = 64 };

struct axis {
	char text[2000]; /* key, then values; each ends with a zero */
	const char *key, *values[100];
	unsigned count;
};

/* A step that was told. */
struct told_step {
	char run[MAX_NAME];
	uint32_t workload;
	vb_time time;
};

struct comparison {
	const struct sim_options *options;
	const char *files[MAX_RUNS];
	unsigned file_count, axis_count, run_count;
	struct axis axes[MAX_AXES];
	unsigned done;
	int worst;
	/* Each warning is printed once. */
	char told[MAX_TOLD][WARNING_BYTES];
	unsigned told_count;
	enum { HEADING_NONE, HEADING_FLOWS, HEADING_STEPS } heading; /* the last that was put */
	bool has_errors;                                             /* its rows have */
	struct table_checks checks;
	/* Of the run that was told last. */
	const char *notes[SIMULATION_LABELS];
	unsigned note_count;
	struct told_step steps[MAX_RUNS];
	unsigned step_count;
};

static int refuse(const char *argument, const char *what)
{
	fprintf(stderr, "verbena sim: --compare: %s: %s\n", argument, what);
	return SIM_EXIT_USAGE;
}

/* The value here, and `rest` behind it; commas in brackets are a list's. NULL: there are no more. */
static char *take_value(char **rest)
{
	char *value = *rest, *end = value;
	bool is_list = false;

	if (!value)
		return NULL;
	for (; *end && (is_list || *end != ','); end++)
		is_list = *end == '[' || (is_list && *end != ']');
	*rest = *end ? end + 1 : NULL;
	*end = 0;
	return value;
}

/* "key=a,b,c". */
static int read_axis(struct comparison *comparison, const char *argument)
{
	if (comparison->axis_count == MAX_AXES)
		return refuse(argument, "there are too many keys");
	struct axis *axis = &comparison->axes[comparison->axis_count++];
	if (strlen(argument) >= sizeof(axis->text))
		return refuse(argument, "this is too long");
	strcpy(axis->text, argument);
	char *rest = strchr(axis->text, '='), *value;
	*rest++ = 0;
	axis->key = axis->text;
	while ((value = take_value(&rest))) {
		if (axis->count == sizeof(axis->values) / sizeof(axis->values[0]))
			return refuse(argument, "there are too many values");
		axis->values[axis->count++] = value;
	}
	return 0;
}

static int read_arguments(struct comparison *comparison)
{
	const struct sim_options *options = comparison->options;
	unsigned runs = 1; /* of a file */
	int status = 0;

	for (unsigned i = 0; !status && i < options->argument_count; i++) {
		const char *argument = options->arguments[i];
		if (strchr(argument, '='))
			status = read_axis(comparison, argument);
		else if (comparison->file_count == MAX_RUNS)
			return refuse(argument, "there are too many files");
		else
			comparison->files[comparison->file_count++] = argument;
	}
	if (status)
		return status;
	if (!comparison->file_count)
		return refuse("which scenario", "give a FILE.yaml, and KEY=A,B,C for the values to compare");
	for (unsigned i = 0; i < comparison->axis_count && runs <= MAX_RUNS; i++)
		runs *= comparison->axes[i].count;
	comparison->run_count = runs * comparison->file_count;
	return comparison->run_count > MAX_RUNS ? refuse("all of these", "there are more than 1000 runs") : 0;
}

/* ---- One line ---------------------------------------------------------------------------------------------------- */

static const char *last_part(const char *text, char of)
{
	const char *at = strrchr(text, of);
	return at ? at + 1 : text;
}

/* The differing part of a run: the file's name if there are several, and the values. */
static void name_run(
	const struct comparison *comparison, const char *file, const struct sim_setting *settings, char *name)
{
	size_t used = 0;

	*name = 0;
	if (comparison->file_count > 1 || !comparison->axis_count)
		used = (size_t)snprintf(
			name, MAX_NAME, "%.*s", vb_utf8_fitting(last_part(file, '/'), 60), last_part(file, '/'));
	for (unsigned i = 0; i < comparison->axis_count && used + 1 < MAX_NAME; i++)
		used += (size_t)snprintf(name + used, MAX_NAME - used, "%s%s=%s", used ? " " : "",
			last_part(settings[i].key, '.'), settings[i].value);
}

/* Below rows that are held against packets, those by packets have an error, too: none. */
static void put_heading(struct comparison *comparison, bool is_of_steps, bool has_errors)
{
	const int wanted = is_of_steps ? HEADING_STEPS : HEADING_FLOWS;

	if ((int)comparison->heading == wanted && comparison->has_errors >= has_errors)
		return;
	comparison->heading = is_of_steps ? HEADING_STEPS : HEADING_FLOWS;
	comparison->has_errors = has_errors;
	if (is_of_steps)
		step_report_heading(stdout, has_errors);
	else
		printf("%-34s %-9s %10s %10s %10s %10s %7s %7s %8s %8s %8s %8s%s\n", "", "end", "jct", "fct p50", "p95",
			"p99", "slow50", "slow99", "drops", "pauses", "marks", "hops/s", has_errors ? "    error" : "");
}

/* Under the first of several runs that have the same. */
static void put_notes(struct comparison *comparison, const struct session *session)
{
	const struct simulation *simulation = &session->simulation;
	bool is_same = comparison->note_count == simulation->label_count;

	for (unsigned i = 0; i < simulation->label_count; i++) {
		is_same &= i < comparison->note_count && comparison->notes[i] == simulation->labels[i];
		comparison->notes[i] = simulation->labels[i];
	}
	comparison->note_count = simulation->label_count;
	for (unsigned i = 0; !is_same && i < simulation->label_count; i++)
		printf("  NOTE: %s\n", simulation->labels[i]);
	fflush(stdout);
}

/* Ends the line, and says why there was no check, or what it met. */
static void put_error(const struct comparison *comparison, const struct simulation *simulation)
{
	const struct flow_check *check = &simulation->check;
	char error[32];

	if (comparison->has_errors)
		printf(" %8s", simulation->is_checked
				       ? table_error_text(check->is_made, check->error, error, sizeof(error))
				       : "0");
	puts(simulation->result.lossless_drops ? "  LOSSLESS DROPS" : "");
	if (!simulation->is_checked)
		return;
	if (check->is_made)
		report_unseen(stdout, check->drops, check->resent, check->pauses);
	else
		printf("  error not known: %s\n", report_why_unchecked(simulation));
}

static void put_line(struct comparison *comparison, const char *name, const struct session *session)
{
	const struct fabric_result *result = &session->simulation.result;
	const struct summary_flows *all = &session->summary.all;
	char jct[32], p50[32], p95[32], p99[32], rate[32];

	put_heading(comparison, false, session->simulation.is_checked);
	printf("%-34s %-9s %10s %10s %10s %10s %7.2f %7.2f %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %8s", name,
		report_end_name(report_end(&session->simulation)),
		result->flows_done ? value_time_text(result->last_flow, jct, sizeof(jct)) : "-",
		all->count ? value_time_text(all->p50, p50, sizeof(p50)) : "-",
		all->count ? value_time_text(all->p95, p95, sizeof(p95)) : "-",
		all->count ? value_time_text(all->p99, p99, sizeof(p99)) : "-", all->slow50, all->slow99, result->drops,
		result->pauses, result->marked_packets,
		value_count_text(report_hops_per_cpu_s(result), rate, sizeof(rate)));
	put_error(comparison, &session->simulation);
	if (result->flows_failed)
		printf("  %" PRIu64 " of %" PRIu64 " %ss that ended FAILED\n", result->flows_failed, result->flows_done,
			report_unit(&session->simulation));
	put_notes(comparison, session);
}

static void put_settings(
	const struct comparison *comparison, const char *name, const char *file, const struct sim_setting *settings)
{
	printf("%s{\"run\": ", comparison->done ? ",\n  " : "  ");
	vb_json_string(stdout, name);
	printf(", \"file\": ");
	vb_json_string(stdout, file);
	printf(", \"set\": {");
	for (unsigned i = 0; i < comparison->axis_count; i++) {
		fputs(i ? ", " : "", stdout);
		vb_json_string(stdout, settings[i].key);
		fputs(": ", stdout);
		vb_json_string(stdout, settings[i].value);
	}
	printf("}, \"result\": ");
}

static void put_object(const struct comparison *comparison, const char *name, const char *file,
	const struct sim_setting *settings, const struct session *session)
{
	put_settings(comparison, name, file, settings);
	report_json(stdout, &session->simulation, &session->summary, NULL, "  ", false);
	printf("}");
}

/* ---- Steps of training ------------------------------------------------------------------------------------------- */

/* An earlier run whose step took as long, but for a two-thousandth; NULL. */
static const char *same_step(const struct comparison *comparison, const struct step *step)
{
	for (unsigned i = comparison->step_count; i-- > 0;) {
		const struct told_step *told = &comparison->steps[i];
		const vb_time differs = told->time - step->times.step;
		if (told->workload == step->workload && llabs(differs) <= step->times.step / 2000)
			return told->run;
	}
	return NULL;
}

static void remember_steps(struct comparison *comparison, const char *name, const struct step_runs *runs)
{
	for (uint32_t i = 0; i < runs->count && comparison->step_count < MAX_RUNS; i++) {
		struct told_step *told = &comparison->steps[comparison->step_count++];
		snprintf(told->run, sizeof(told->run), "%s", name);
		told->workload = i;
		told->time = runs->steps[i].times.step;
	}
}

static void put_steps(
	struct comparison *comparison, const char *name, const struct session *session, const struct step_runs *runs)
{
	const bool is_by_formula = session->scenario->mode == MODE_FORMULA;
	char why[200];

	put_heading(comparison, true, runs->checks != NULL);
	for (uint32_t i = 0; i < runs->count; i++) {
		const char *same = same_step(comparison, &runs->steps[i]);
		step_report_line(stdout, i ? "" : name, &runs->steps[i], runs->checks ? &runs->checks[i] : NULL,
			comparison->has_errors);
		if (same)
			printf("  as %s: %s\n", same,
				step_report_why_same(&runs->steps[i], is_by_formula, why, sizeof(why)));
	}
	if (!runs->count)
		printf("%-34s %s\n", name, report_end_name(report_end(&session->simulation)));
	put_notes(comparison, session);
}

/* Of each step, in the order of workloads. */
static void put_same_steps(
	const struct comparison *comparison, const struct session *session, const struct step_runs *runs)
{
	const bool is_by_formula = session->scenario->mode == MODE_FORMULA;
	char why[200];

	printf(", \"same_steps\": [");
	for (uint32_t i = 0; i < runs->count; i++) {
		const char *same = same_step(comparison, &runs->steps[i]);
		printf("%s", i ? ", " : "");
		if (!same) {
			printf("null");
			continue;
		}
		printf("{\"as\": ");
		vb_json_string(stdout, same);
		printf(", \"because\": ");
		vb_json_string(stdout, step_report_why_same(&runs->steps[i], is_by_formula, why, sizeof(why)));
		printf("}");
	}
	printf("]");
}

static void put_step_object(const struct comparison *comparison, const char *name, const char *file,
	const struct sim_setting *settings, const struct session *session, const struct step_runs *runs)
{
	put_settings(comparison, name, file, settings);
	if (session->scenario->mode != MODE_PACKETS)
		step_runs_json(stdout, session, runs);
	else
		report_json(stdout, &session->simulation, &session->summary, NULL, "  ", false);
	put_same_steps(comparison, session, runs);
	printf("}");
}

/* Each step has an equal part of what its row may take. */
static int check_steps(struct comparison *comparison, struct session *session, struct step_runs *runs)
{
	if (session->scenario->mode == MODE_PACKETS)
		return SIM_EXIT_OK;
	session->simulation.check_limit.packet_hops /= runs->count;
	int status = step_runs_check(session, comparison->options, runs);
	for (uint32_t i = 0; runs->checks && i < runs->count; i++)
		if (runs->checks[i].is_made)
			table_checks_add(&comparison->checks, runs->checks[i].bytes_part, runs->checks[i].packet_hops);
	return status;
}

static int run_steps_and_put(struct comparison *comparison, const char *name, const char *file,
	const struct sim_setting *settings, struct session *session)
{
	struct step_runs runs;
	int status = step_runs_make(session, comparison->options, file, &runs);

	if (!status)
		status = check_steps(comparison, session, &runs);
	if (!status) {
		if (comparison->options->is_json)
			put_step_object(comparison, name, file, settings, session, &runs);
		else
			put_steps(comparison, name, session, &runs);
		remember_steps(comparison, name, &runs);
		comparison->done++;
		status = session->scenario->mode != MODE_PACKETS ? SIM_EXIT_OK : session_status(session);
	}
	step_runs_close(&runs);
	return status;
}

/* ---- All --------------------------------------------------------------------------------------------------------- */

static bool is_told(const struct comparison *comparison, const char *text)
{
	for (unsigned i = 0; i < comparison->told_count; i++)
		if (strcmp(comparison->told[i], text) == 0)
			return true;
	return false;
}

static void put_warnings(struct comparison *comparison, const char *name, const struct warnings *warnings)
{
	for (unsigned i = 0; i < warnings->count && comparison->told_count < MAX_TOLD; i++) {
		if (is_told(comparison, warnings->texts[i]))
			continue;
		strcpy(comparison->told[comparison->told_count++], warnings->texts[i]);
		fprintf(stderr, "verbena sim: %s: warning: %s\n", name, warnings->texts[i]);
	}
}

static int put_plan(const char *name, const char *file, struct session *session)
{
	char text[300];

	printf("%-34s ", name);
	if (session->simulation.step_count)
		return step_tell_cost(session, file);
	printf("%s\n", estimate_text(&session->simulation.estimate, text, sizeof(text)));
	return SIM_EXIT_OK;
}

static int run_and_put(struct comparison *comparison, const char *name, const char *file,
	const struct sim_setting *settings, struct session *session)
{
	if (session->simulation.step_count)
		return run_steps_and_put(comparison, name, file, settings, session);
	const int status = session_run(session, comparison->options);
	const struct flow_check *check = &session->simulation.check;

	if (status)
		return status;
	if (check->is_made)
		table_checks_add(&comparison->checks, check->bytes_part, check->packet_hops);
	if (comparison->options->is_json)
		put_object(comparison, name, file, settings, session);
	else
		put_line(comparison, name, session);
	comparison->done++;
	return session_status(session);
}

static void run(struct comparison *comparison, const char *file, const struct sim_setting *settings)
{
	struct session session;
	char name[MAX_NAME];
	int status = session_open(&session, file, comparison->options, settings, comparison->axis_count);

	session.row = comparison->run_count - (unsigned)comparison->checks.rows + 1;
	session.rows = comparison->run_count;
	session.simulation.check_limit.packet_hops = table_checks_next(&comparison->checks);
	name_run(comparison, file, settings, name);
	if (!status) {
		put_warnings(comparison, name, &session.simulation.warnings);
		if (comparison->options->is_dry)
			status = put_plan(name, file, &session);
		else
			status = run_and_put(comparison, name, file, settings, &session);
	}
	comparison->worst = status > comparison->worst ? status : comparison->worst;
	session_close(&session);
}

/* Sets the values of the axes for the run of this number. */
static void choose(const struct comparison *comparison, unsigned number, struct sim_setting *settings)
{
	for (unsigned i = comparison->axis_count; i-- > 0;) {
		const struct axis *axis = &comparison->axes[i];
		settings[i] = (struct sim_setting){ axis->key, axis->values[number % axis->count] };
		number /= axis->count;
	}
}

static void run_all(struct comparison *comparison)
{
	struct sim_setting settings[MAX_AXES];
	unsigned runs = 1;

	for (unsigned i = 0; i < comparison->axis_count; i++)
		runs *= comparison->axes[i].count;
	for (unsigned file = 0; file < comparison->file_count; file++)
		for (unsigned number = 0; number < runs && !progress_is_interrupted(); number++) {
			choose(comparison, number, settings);
			run(comparison, comparison->files[file], settings);
		}
}

int compare_run(const struct sim_options *options)
{
	struct comparison *comparison = calloc(1, sizeof(*comparison));

	if (!comparison)
		return refuse("the table", "there is no memory");
	comparison->options = options;
	int status = read_arguments(comparison);
	if (!status) {
		table_checks_begin(&comparison->checks, comparison->run_count);
		if (options->is_json)
			printf("[\n");
		run_all(comparison);
		if (options->is_json)
			printf("\n]\n");
		else
			table_checks_tell(&comparison->checks, stdout, "");
		status = progress_is_interrupted() ? SIM_EXIT_NO_END : comparison->worst;
	}
	free(comparison);
	return status;
}
