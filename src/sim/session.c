/* From a scenario file to a result. */
#include "sim/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "sim/report.h"
#include "sim/traffic.h"
#include "sim/value.h"
#include "sim/variants.h"

#define LONG_S 60.0 /* runs that take longer are announced with their time */

/* FILE:LINE:COLUMN: the error; settings of the command line have no line. */
static int refuse(const char *file, const struct document_error *error)
{
	if (error->at.line)
		fprintf(stderr, "%s:%u:%u: %s\n", file, error->at.line, error->at.column, error->text);
	else
		fprintf(stderr, "verbena sim: %s: %s\n", file, error->text);
	return SIM_EXIT_USAGE;
}

static int fail(const char *file, int error, const char *why)
{
	fprintf(stderr, "verbena sim: %s: %s\n", file, error == -EINVAL ? why : strerror(-error));
	return error == -EINVAL ? SIM_EXIT_USAGE : SIM_EXIT_BAD_NEWS;
}

static const struct document_entry *first_below(const struct document *document, const char *path)
{
	const size_t length = strlen(path);

	for (unsigned i = 0; i < document->count; i++)
		if (strncmp(document->entries[i].path, path, length) == 0 && document->entries[i].path[length] == '.')
			return &document->entries[i];
	return NULL;
}

/* The place of a key, or of what is below it; false: it is not in the file. */
static bool find_key(const struct session *session, const char *path, struct document_mark *mark)
{
	const struct document_entry *entry = scenario_entry(&session->document, session->scenario->variant, path);

	if (entry) {
		*mark = entry->value_at;
		return true;
	}
	entry = first_below(&session->document, path);
	if (entry)
		*mark = entry->key_at;
	return entry;
}

/* Of the key that why begins with, or else of what it is a part of; "KEY: PART: ..." is about KEY.PART, if that is
 * there. Line 0: not in the file. */
static struct document_mark find_mark(const struct session *session, const char *why)
{
	struct document_mark mark = { 0 };
	size_t length = strcspn(why, ":");
	char path[200];

	snprintf(path, sizeof(path), "%.*s", (int)length, why);
	while (!find_key(session, path, &mark)) {
		char *end = strrchr(path, '.');
		if (!end)
			return mark;
		*end = 0;
	}
	do {
		why += length + strspn(why + length, ": ");
		length = strcspn(why, ":");
		const size_t used = strlen(path);
		snprintf(path + used, sizeof(path) - used, ".%.*s", (int)length, why);
	} while (*why && find_key(session, path, &mark));
	return mark;
}

/* FILE:LINE:COLUMN if a key of the file is to blame. */
int session_refuse(const struct session *session, const char *file, int error, const char *why)
{
	struct document_error said = { .at = find_mark(session, why) };

	if (error != -EINVAL || !said.at.line)
		return fail(file, error, why);
	snprintf(said.text, sizeof(said.text), "%s", why);
	return refuse(file, &said);
}

/* All settings except the congestion control, of which the last counts. */
static int apply(struct document *document, const struct sim_setting *settings, unsigned count, const char **cc,
	struct document_error *error)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < count; i++)
		if (strcmp(settings[i].key, "transport.cc") == 0)
			*cc = settings[i].value;
		else
			rc = scenario_set(document, settings[i].key, settings[i].value, error);
	return rc;
}

/* A variant's name chooses the variant, any other name an algorithm. */
static int apply_cc(struct document *document, const char *cc, struct document_error *error)
{
	return cc ? document_set(document, variant_exists(document, cc) ? "variant" : "transport.cc", cc, error) : 0;
}

static int read_scenario(struct session *session, const char *file, const struct sim_options *options,
	const struct sim_setting *settings, unsigned count)
{
	struct document *document = &session->document;
	struct document_error error = { 0 };
	const char *slash = strrchr(file, '/');
	char directory[PATH_MAX];
	const char *cc = NULL;
	int rc = scenario_read_file(document, file, &error);

	snprintf(directory, sizeof(directory), "%.*s", slash ? (int)(slash - file) + !(slash - file) : 0, file);
	if (!rc)
		rc = apply(document, options->settings, options->setting_count, &cc, &error);
	if (!rc)
		rc = apply(document, settings, count, &cc, &error);
	if (!rc)
		rc = apply_cc(document, cc, &error);
	if (!rc)
		rc = scenario_fill(session->scenario, document, directory, &error);
	if (rc == -EINVAL && *error.text)
		return refuse(file, &error);
	return rc ? fail(file, rc, "it cannot be read") : SIM_EXIT_OK;
}

/* As if the scenario had no key of a workload but NCCL's settings. */
static void forget_workloads(struct scenario *scenario)
{
	for (size_t i = 0; scenario_keys[i].path; i++)
		if (strncmp(scenario_keys[i].path, "workload.", 9) == 0 &&
			strncmp(scenario_keys[i].path, "workload.*.nccl.", 16) != 0)
			scenario->given[i / 64] &= ~((uint64_t)1 << i % 64);
}

/* The table's collective has NCCL's settings of the scenario's workloads. */
static int check_settings(const struct scenario *scenario)
{
	const struct scenario_workload *all = scenario->workloads;

	for (uint32_t i = 1; i < scenario->workload_count; i++)
		if (!nccl_settings_equal(&all[0].workload.nccl, &all[i].workload.nccl)) {
			fprintf(stderr,
				"verbena sim: --collective has the nccl keys of the scenario, and workload.%" PRIu32
				" has others than workload.0: write the same, or leave out all but one workload\n",
				i);
			return SIM_EXIT_USAGE;
		}
	return SIM_EXIT_OK;
}

static void put_collective(struct scenario *scenario, const struct sim_collective *collective)
{
	struct workload *workload = &scenario->workloads[0].workload;
	const struct nccl_settings nccl = workload->nccl;

	forget_workloads(scenario);
	scenario->workload_count = 1;
	scenario->workloads[0] = (struct scenario_workload){ .workload = { .bytes = collective->bytes, .nccl = nccl } };
	snprintf(workload->kind, sizeof(workload->kind), "%s", collective->kind);
	snprintf(workload->algorithm, sizeof(workload->algorithm), "%s",
		collective->algorithm ? collective->algorithm : "");
}

static bool read_part(const char *text, double *part)
{
	return value_real(text, part) && *part > 0 && *part <= 1;
}

static int check_options(struct session *session, const struct sim_options *options)
{
	const char *wrong = options->pcap ? "--pcap" : options->explains_pfc ? "--explain pfc" : NULL;

	const bool is_table = options->is_comparison || options->collective.kind;

	session->simulation.check_limit.packet_hops = CHECK_HOPS;
	if (options->exact_check && !read_part(options->exact_check, &session->simulation.check_limit.bytes_part)) {
		fprintf(stderr, "verbena sim: --exact-check takes a part of the bytes, as 10%%\n");
		return SIM_EXIT_USAGE;
	}
	if (options->exact_check && (options->skips_check || (!is_table && session->scenario->mode == MODE_PACKETS))) {
		fprintf(stderr, "verbena sim: --exact-check is of runs by flows and by formula, and their checks\n");
		return SIM_EXIT_USAGE;
	}
	if (session->scenario->mode != MODE_FLOWS || !wrong)
		return SIM_EXIT_OK;
	fprintf(stderr, "verbena sim: %s is of packets, and in run.mode flows there are none: run.mode: packets\n",
		wrong);
	return SIM_EXIT_USAGE;
}

int session_open(struct session *session, const char *file, const struct sim_options *options,
	const struct sim_setting *settings, unsigned count)
{
	char why[400] = "";

	*session = (struct session){ .scenario = calloc(1, sizeof(*session->scenario)) };
	if (!session->scenario)
		return fail(file, -ENOMEM, "");
	int status = read_scenario(session, file, options, settings, count);
	if (status)
		return status;
	if (options->collective.kind) {
		status = check_settings(session->scenario);
		if (status)
			return status;
		put_collective(session->scenario, &options->collective);
	}
	const struct simulation_files files = { options->flows, options->job, options->groups, options->is_dry };
	int rc = simulation_prepare(&session->simulation, session->scenario, &files, why, sizeof(why));
	for (unsigned i = 0; i < session->simulation.job_file.note_count; i++)
		fprintf(stderr, "verbena sim: note: %s: %s\n", options->job, session->simulation.job_file.notes[i]);
	return rc ? session_refuse(session, file, rc, why) : check_options(session, options);
}

void session_warn(const struct session *session)
{
	for (unsigned i = 0; i < session->simulation.warnings.count; i++)
		fprintf(stderr, "verbena sim: warning: %s\n", session->simulation.warnings.texts[i]);
}

static bool on_progress(void *user, const struct fabric_progress *now)
{
	struct session *session = user;

	if (session->simulation.runs_alone != session->progress.runs_alone)
		progress_begin_alone(&session->progress, session->simulation.runs_alone);
	if (session->simulation.is_checking && !session->progress.is_of_check)
		progress_begin_check(&session->progress);
	return progress_tell(&session->progress, now);
}

static void on_packet(void *user, const struct fabric_capture *seen)
{
	struct session *session = user;
	capture_packet(session->capture, seen);
}

void session_watch(struct session *session, const struct sim_options *options, const char *unit)
{
	session->progress = (struct progress){ .every_s = options->progress_s,
		.is_terminal = options->is_terminal,
		.unit = unit,
		.row = session->row,
		.rows = session->rows,
		.limit = session->scenario->limit };
	session->simulation.config.on_progress = on_progress;
	session->simulation.config.user = session;
	progress_start(&session->progress);
}

int session_run(struct session *session, const struct sim_options *options)
{
	struct fabric_config *config = &session->simulation.config;
	char why[400] = "", said[300];

	session_watch(session, options, report_unit(&session->simulation));
	session->progress.packets = (uint64_t)traffic_of(&session->simulation).packets;
	config->tells_messages = options->csv != NULL || options->explains_job;
	/* Of flows it is not known what they waited for. */
	session->simulation.explains_job = options->explains_job && !config->by_flows;
	/* A table of runs has no column for it. */
	session->simulation.tries_alone = !options->skips_alone && (!options->is_comparison || options->is_json);
	/* A step of training has its own check. */
	session->simulation.is_checked = config->by_flows && !options->skips_check;
	config->on_packet = session->capture ? on_packet : NULL;
	config->captured_count = session->capture ? config->captured_count : 0;
	config->tells_series = (options->trace != NULL || options->explains_job) && !config->by_flows;
	config->tells_pauses = options->explains_pfc || options->explains_job;
	if (session->simulation.estimate.cpu_s > LONG_S)
		fprintf(stderr, "verbena sim: %s\n", estimate_text(&session->simulation.estimate, said, sizeof(said)));
	int rc = simulation_run(&session->simulation, why, sizeof(why));
	progress_end(&session->progress);
	if (!rc)
		rc = summary_make(&session->summary, &session->simulation);
	if (!rc && options->explains_pfc)
		rc = explanation_make(&session->explanation, &session->simulation);
	return rc ? fail("the run", rc, why) : SIM_EXIT_OK;
}

int session_status(const struct session *session)
{
	const struct simulation *simulation = &session->simulation;
	const struct fabric_result *result = &simulation->result;

	if (report_end(simulation) != FABRIC_DONE || simulation->alone_end != FABRIC_DONE)
		return SIM_EXIT_NO_END;
	if (simulation->is_checked && !simulation->check.is_made && progress_is_interrupted())
		return SIM_EXIT_NO_END;
	if (result->lossless_drops)
		return SIM_EXIT_LOSSLESS_DROPS;
	return result->flows_failed ? SIM_EXIT_BAD_NEWS : SIM_EXIT_OK;
}

void session_close(struct session *session)
{
	explanation_free(&session->explanation);
	simulation_free(&session->simulation);
	free(session->scenario);
	document_free(&session->document);
}
