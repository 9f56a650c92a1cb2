/* See loggops_run.h. */
#include "sim/loggops_run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "net/job_file.h"
#include "net/loggops.h"

enum { MOST_LINES = 16 }; /* as LogGOPSim prints ranks */

static int fail(const char *what, int error)
{
	fprintf(stderr, "verbena sim: %s\n", what);
	return error == -ENOMEM ? SIM_EXIT_BAD_NEWS : SIM_EXIT_USAGE;
}

static int read_parameters(const char *text, struct loggops *parameters)
{
	char why[200], what[240];

	if (!loggops_read((struct span){ text, strlen(text) }, parameters, why, sizeof(why)))
		return SIM_EXIT_OK;
	snprintf(what, sizeof(what), "--loggops: %s", why);
	return fail(what, -EINVAL);
}

static int read_job(const char *path, struct job_file *file)
{
	const struct job_file_options options = { .heeds_processors = true };
	char why[600] = "not enough memory";

	int error = job_file_read(file, path, &options, why, sizeof(why));
	if (error)
		return fail(why, error);
	for (unsigned i = 0; i < file->note_count; i++)
		fprintf(stderr, "verbena sim: %s: %s\n", path, file->notes[i]);
	for (uint32_t i = 0; i < file->graph.count; i++)
		if (file->graph.operations[i].kind == GRAPH_COLLECTIVE) {
			snprintf(why, sizeof(why), "%s: %s %u is a collective: --loggops plays sends and receives",
				path, file->where_is, file->where[i]);
			return fail(why, -EINVAL);
		}
	return SIM_EXIT_OK;
}

static void put_ns(const char *name, vb_time time)
{
	printf("%-10s %" PRId64, name, time / VB_NS);
	if (time % VB_NS)
		printf(".%03d", (int)(time % VB_NS));
	puts(" ns");
}

static void put_text(const struct job_file *file, const struct loggops_result *result)
{
	const uint32_t ranks = file->graph.ranks;
	uint32_t first = 0;
	char name[40];

	printf("%s: %" PRIu32 " ranks, %" PRIu32 " operations\n", file->format, ranks, file->graph.count);
	for (uint32_t i = 0; i < ranks && ranks <= MOST_LINES; i++) {
		snprintf(name, sizeof(name), "host %" PRIu32, i);
		put_ns(name, result->ends[i]);
	}
	for (uint32_t i = 1; i < ranks; i++)
		first = result->ends[i] < result->ends[first] ? i : first;
	if (ranks > MOST_LINES) {
		put_ns("min", result->ends[first]);
		printf("%-10s %" PRIu32 " to %" PRIu32 ", the first and the last to end\n", "hosts", first,
			result->last_rank);
	}
	put_ns("max", result->ends[result->last_rank]);
}

static void put_json(const struct job_file *file, const struct loggops_result *result)
{
	printf("{\"ranks\": %" PRIu32 ", \"operations\": %" PRIu32 ", \"jct_ps\": %" PRId64 ", \"ends_ps\": [",
		file->graph.ranks, file->graph.count, result->ends[result->last_rank]);
	for (uint32_t i = 0; i < file->graph.ranks; i++)
		printf("%s%" PRId64, i ? ", " : "", result->ends[i]);
	puts("]}");
}

static int tell_unfinished(const char *path, const struct job_file *file, const struct loggops_result *result)
{
	if (result->unreceived > 0)
		fprintf(stderr, "verbena sim: %s: %" PRIu32 " messages were never received\n", path,
			result->unreceived);
	if (result->unfinished == 0)
		return result->unreceived > 0 ? SIM_EXIT_NO_END : SIM_EXIT_OK;
	fprintf(stderr,
		"verbena sim: %s: %s %" PRIu32 " of rank %" PRIu32 " never ends, nor do %" PRIu32
		" others: they wait for messages that are never sent, or for each other\n",
		path, file->where_is, file->where[result->first_unfinished],
		file->graph.operations[result->first_unfinished].rank, result->unfinished - 1);
	return SIM_EXIT_NO_END;
}

static int play(const char *path, const struct job_file *file, const struct loggops *parameters, bool is_json)
{
	struct loggops_result result;
	int error = loggops_play(&file->graph, parameters, &result);

	if (error == -ERANGE)
		return fail("the job takes more than a day under these parameters: times of calc are in ns", error);
	if (error)
		return fail("not enough memory", error);
	if (is_json)
		put_json(file, &result);
	else
		put_text(file, &result);
	int status = tell_unfinished(path, file, &result);
	loggops_result_free(&result);
	return status;
}

int loggops_run(const struct sim_options *options)
{
	struct job_file file = { 0 };
	struct loggops parameters;
	int status = read_parameters(options->loggops, &parameters);

	if (!status)
		status = read_job(options->job, &file);
	if (!status)
		status = play(options->job, &file, &parameters, options->is_json);
	job_file_free(&file);
	return status;
}
