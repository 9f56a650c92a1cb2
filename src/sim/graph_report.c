/* See graph_report.h. */
#include "sim/graph_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include "os/json.h"
#include "sim/critical_path.h"
#include "sim/value.h"

enum { STEPS_TOLD = 12 };

static const char *const kinds[] = { [GRAPH_COMPUTE] = "compute",
	[GRAPH_SEND] = "send",
	[GRAPH_RECEIVE] = "receive",
	[GRAPH_COLLECTIVE] = "collective" };

static const struct graph *graph_of(const struct simulation *simulation)
{
	return &simulation->job_file.graph;
}

double graph_idle_share(const struct simulation *simulation)
{
	const struct graph *graph = graph_of(simulation);
	const double whole = (double)simulation->result.last_flow * graph->ranks;
	double computing = 0;

	for (uint32_t i = 0; i < graph->count; i++) {
		const struct graph_record *record = &simulation->graph_job.records[i];
		if (graph->operations[i].kind == GRAPH_COMPUTE && record->end >= 0)
			computing += (double)(record->end - record->begin);
	}
	return whole > 0 && computing < whole ? 1 - computing / whole : 0;
}

/* ---- Text -------------------------------------------------------------------------------------------------------- */

static vb_time length_of(const struct critical_step *step)
{
	return step->until - step->from;
}

static void put_step(FILE *out, const struct simulation *simulation, const struct critical_step *step)
{
	static const char *const causes[] = { [CRITICAL_NOTHING] = "from the beginning",
		[CRITICAL_OPERATION] = "after the one above",
		[CRITICAL_MESSAGE] = "until the message of the one above was there" };
	char text[200], from[32], took[32];

	fprintf(out, "  %10s  %10s  %s, %s\n", value_time_text(step->from, from, sizeof(from)),
		value_time_text(length_of(step), took, sizeof(took)),
		operation_text(&simulation->job_file, step->operation, text, sizeof(text)), causes[step->cause]);
}

static int by_length(const void *a, const void *b)
{
	const vb_time *x = a, *y = b;
	return (*x < *y) - (*x > *y);
}

/* The steps to tell are longer than this, and so many of those that are as long. */
struct told {
	vb_time longer;
	uint32_t equal;
};

static struct told to_tell(const struct critical_path *path, uint32_t most)
{
	vb_time *lengths = malloc((path->count + 1) * sizeof(*lengths));
	struct told told = { -1, 0 };

	for (uint32_t i = 0; lengths && i < path->count; i++)
		lengths[i] = length_of(&path->steps[i]);
	if (lengths && path->count > most) {
		qsort(lengths, path->count, sizeof(*lengths), by_length);
		told.longer = lengths[most - 1];
		for (uint32_t i = 0; i < most; i++)
			told.equal += lengths[i] == told.longer;
	}
	free(lengths);
	return told;
}

/* How long the job was in what: computations, messages, and each collective. */
static void put_parts(FILE *out, const struct simulation *simulation, const struct critical_path *path)
{
	const struct graph *graph = graph_of(simulation);
	char text[32];
	vb_time messages = path->network;

	fprintf(out, "computing %s", value_time_text(path->computing, text, sizeof(text)));
	for (uint32_t kind = 0; kind < graph->collective_count; kind++) {
		vb_time sum = 0;
		for (uint32_t i = 0; i < path->count; i++) {
			const struct graph_operation *its = &graph->operations[path->steps[i].operation];
			if (its->kind == GRAPH_COLLECTIVE && its->collective == kind)
				sum += length_of(&path->steps[i]);
		}
		messages -= sum;
		if (sum)
			fprintf(out, ", %s %s", graph->collectives[kind].kind,
				value_time_text(sum, text, sizeof(text)));
	}
	if (messages)
		fprintf(out, ", messages %s", value_time_text(messages, text, sizeof(text)));
}

static void put_summary(FILE *out, const struct simulation *simulation)
{
	char text[200], last[32];
	uint32_t count;
	const uint32_t first = graph_job_unfinished(&simulation->graph_job, &count);

	fprintf(out, "job (%s): %" PRIu32 " ranks, %" PRIu32 " operations, %s at %s; GPUs idle %.1f%%\n",
		simulation->job_file.format, graph_of(simulation)->ranks, graph_of(simulation)->count,
		first == GRAPH_NONE ? "done" : "not done: the last that ended",
		value_time_text(simulation->result.last_flow, last, sizeof(last)), 100 * graph_idle_share(simulation));
	if (first != GRAPH_NONE)
		fprintf(out, "%" PRIu32 " operation%s never ended, the first: %s\n", count, count == 1 ? "" : "s",
			operation_text(&simulation->job_file, first, text, sizeof(text)));
}

int graph_report_text(FILE *out, const struct simulation *simulation, bool all)
{
	struct critical_path path;
	int rc = critical_path_find(&path, &simulation->graph_job);

	if (rc)
		return rc;
	struct told told = to_tell(&path, all ? UINT32_MAX : STEPS_TOLD);
	put_summary(out, simulation);
	fprintf(out, "\ncritical path: %" PRIu32 " operation%s, ", path.count, path.count == 1 ? "" : "s");
	put_parts(out, simulation, &path);
	fputs(told.longer < 0 ? "\n" : "; those that took longest (--explain job has all)\n", out);
	for (uint32_t i = 0; i < path.count; i++) {
		const vb_time length = length_of(&path.steps[i]);
		const bool is_equal = length == told.longer && told.equal > 0;
		told.equal -= is_equal;
		if (length > told.longer || is_equal)
			put_step(out, simulation, &path.steps[i]);
	}
	critical_path_free(&path);
	return 0;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

int graph_report_json(FILE *out, const struct simulation *simulation, const char *indent)
{
	static const char *const causes[] = {
		[CRITICAL_NOTHING] = "nothing", [CRITICAL_OPERATION] = "operation", [CRITICAL_MESSAGE] = "message"
	};
	const struct graph *graph = graph_of(simulation);
	struct critical_path path;
	uint32_t unfinished;
	int rc = critical_path_find(&path, &simulation->graph_job);

	if (rc)
		return rc;
	graph_job_unfinished(&simulation->graph_job, &unfinished);
	fprintf(out, ",\n%s  \"job\": {\"format\": ", indent);
	vb_json_string(out, simulation->job_file.format);
	fprintf(out,
		", \"ranks\": %" PRIu32 ", \"operations\": %" PRIu32 ", \"unfinished\": %" PRIu32
		", \"gpu_idle_share\": %.6f,\n%s    \"notes\": [",
		graph->ranks, graph->count, unfinished, graph_idle_share(simulation), indent);
	for (unsigned i = 0; i < simulation->job_file.note_count; i++) {
		fputs(i ? ", " : "", out);
		vb_json_string(out, simulation->job_file.notes[i]);
	}
	fprintf(out, "],\n%s    \"critical_path\": [", indent);
	for (uint32_t i = 0; i < path.count; i++) {
		const struct critical_step *step = &path.steps[i];
		const struct graph_operation *its = &graph->operations[step->operation];
		fprintf(out,
			"%s\n%s      {\"rank\": %" PRIu32 ", \"kind\": \"%s\", \"%s\": %" PRIu32
			", \"from_ps\": %" PRId64 ", \"until_ps\": %" PRId64 ", \"waited_for\": \"%s\"}",
			i ? "," : "", indent, its->rank, kinds[its->kind], simulation->job_file.where_is,
			simulation->job_file.where[step->operation], step->from, step->until, causes[step->cause]);
	}
	fprintf(out, "]}");
	critical_path_free(&path);
	return 0;
}

/* ---- A line an operation ----------------------------------------------------------------------------------------- */

void graph_report_csv(FILE *out, const struct simulation *simulation)
{
	const struct graph *graph = graph_of(simulation);

	fprintf(out, "rank,%s,kind,stream,bytes,peer,begin_ps,end_ps\n", simulation->job_file.where_is);
	for (uint32_t i = 0; i < graph->count; i++) {
		const struct graph_operation *its = &graph->operations[i];
		const struct graph_record *record = &simulation->graph_job.records[i];
		const bool has_peer = its->kind == GRAPH_SEND || its->kind == GRAPH_RECEIVE;
		fprintf(out, "%" PRIu32 ",%" PRIu32 ",%s,", its->rank, simulation->job_file.where[i], kinds[its->kind]);
		if (its->stream != GRAPH_NO_STREAM)
			fprintf(out, "%u", its->stream);
		fprintf(out, ",%" PRIu64 ",", its->kind == GRAPH_COMPUTE ? 0 : its->bytes);
		if (has_peer && its->peer != GRAPH_ANY)
			fprintf(out, "%" PRIu32, its->peer);
		fprintf(out, ",%" PRId64 ",%" PRId64 "\n", record->begin, record->end);
	}
}

/* ---- A trace ----------------------------------------------------------------------------------------------------- */

/* A track for each rank and stream; operations without a stream, which overlap, are arrows of their own kind. */
static uint32_t track_of(const struct simulation *simulation, const struct graph_operation *its)
{
	const uint32_t streams = graph_of(simulation)->streams + 1;
	return its->rank * streams + (its->stream == GRAPH_NO_STREAM ? streams - 1 : its->stream);
}

/* Microseconds with all six digits of a picosecond. */
static void put_us(FILE *out, const char *name, vb_time ps)
{
	fprintf(out, "\"%s\": %" PRId64 ".%06" PRId64, name, ps / VB_US, ps % VB_US);
}

static void put_span(FILE *out, const struct simulation *simulation, uint32_t number, uint32_t host)
{
	const struct graph_operation *its = &graph_of(simulation)->operations[number];
	const struct graph_record *record = &simulation->graph_job.records[number];
	const bool overlaps = its->stream == GRAPH_NO_STREAM;
	char text[200];

	operation_text(&simulation->job_file, number, text, sizeof(text));
	for (int end = 0; end <= overlaps; end++) {
		fputs(",\n{\"name\": ", out);
		vb_json_string(out, text);
		fprintf(out, ", \"cat\": \"%s\", \"ph\": \"%s\", ", kinds[its->kind],
			!overlaps ? "X"
			: end     ? "e"
				  : "b");
		put_us(out, "ts", end ? record->end : record->begin);
		if (!overlaps) {
			fputs(", ", out);
			put_us(out, "dur", record->end - record->begin);
		} else {
			fprintf(out, ", \"id\": %" PRIu32, number);
		}
		fprintf(out, ", \"pid\": %" PRIu32 ", \"tid\": %" PRIu32 "}", host, track_of(simulation, its));
	}
}

static void put_names(FILE *out, const struct simulation *simulation, uint32_t rank, uint32_t host)
{
	const uint32_t streams = graph_of(simulation)->streams + 1;

	fprintf(out,
		"%s\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": %" PRIu32
		", \"args\": {\"name\": \"host %" PRIu32 "\"}}",
		rank ? "," : "", host, host);
	for (uint32_t i = 0; i < streams; i++)
		fprintf(out,
			",\n{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": %" PRIu32 ", \"tid\": %" PRIu32
			", \"args\": {\"name\": \"rank %" PRIu32 " %s %" PRIu32 "\"}}",
			host, rank * streams + i, rank, i + 1 < streams ? "stream" : "messages", i);
}

void graph_report_trace(FILE *out, const struct simulation *simulation)
{
	const struct graph *graph = graph_of(simulation);

	fputs("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [", out);
	for (uint32_t rank = 0; rank < graph->ranks; rank++)
		put_names(out, simulation, rank, hosts_host_of(&simulation->hosts, rank));
	for (uint32_t i = 0; i < graph->count; i++)
		if (simulation->graph_job.records[i].end >= 0)
			put_span(out, simulation, i, hosts_host_of(&simulation->hosts, graph->operations[i].rank));
	fputs("\n]}\n", out);
}
