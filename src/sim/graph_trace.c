/* See graph_trace.h. */
#include "sim/graph_trace.h"

#include <inttypes.h>
#include "os/json.h"
#include "sim/critical_path.h"
#include "sim/link_name.h"

static const struct graph *graph_of(const struct simulation *simulation)
{
	return &simulation->job_file.graph;
}

/* ---- Operations -------------------------------------------------------------------------------------------------- */

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
		fprintf(out, ", \"cat\": \"%s\", \"ph\": \"%s\", ", operation_kind(its),
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

static void put_name(FILE *out, const char *what, uint32_t process, uint32_t track, const char *name)
{
	fprintf(out,
		",\n{\"name\": \"%s\", \"ph\": \"M\", \"pid\": %" PRIu32 ", \"tid\": %" PRIu32
		", \"args\": {\"name\": \"%s\"}}",
		what, process, track, name);
}

static void put_names(FILE *out, const struct simulation *simulation, uint32_t rank)
{
	const uint32_t streams = graph_of(simulation)->streams + 1, host = hosts_host_of(&simulation->hosts, rank);
	char name[64];

	snprintf(name, sizeof(name), "host %" PRIu32, host);
	if (rank == 0 || hosts_host_of(&simulation->hosts, rank - 1) != host)
		put_name(out, "process_name", host, rank * streams, name);
	for (uint32_t i = 0; i + 1 < streams; i++) {
		snprintf(name, sizeof(name), "rank %" PRIu32 " stream %" PRIu32, rank, i);
		put_name(out, "thread_name", host, rank * streams + i, name);
	}
	snprintf(name, sizeof(name), "rank %" PRIu32 " messages", rank);
	put_name(out, "thread_name", host, rank * streams + streams - 1, name);
}

/* ---- Links ------------------------------------------------------------------------------------------------------- */

struct counter {
	const char *name, *unit;
	double (*value)(const struct simulation *simulation, uint32_t link, const struct fabric_sample *sample);
};

static double queued(const struct simulation *simulation, uint32_t link, const struct fabric_sample *sample)
{
	(void)link;
	return sample->queued_area / (double)simulation->result.sample_width;
}

/* A packet counts where it began to leave. */
static double load(const struct simulation *simulation, uint32_t link, const struct fabric_sample *sample)
{
	const double bits = (double)network_rate(&simulation->network, link) *
			    ((double)simulation->result.sample_width / (double)VB_S);
	const double percent = 100 * 8 * (double)sample->bytes / bits;
	return percent < 100 ? percent : 100;
}

static const struct counter counters[] = { { "queue", "bytes", queued }, { "utilisation", "percent", load } };

/* Where it changes, and its end. */
static void put_counter(
	FILE *out, const struct simulation *simulation, uint32_t link, const struct counter *counter, uint32_t process)
{
	const struct fabric_result *result = &simulation->result;
	char text[64];
	double last = -1;

	link_text(&simulation->network, link, text, sizeof(text));
	for (uint32_t i = 0; i <= FABRIC_SAMPLES; i++) {
		const bool is_past = i == FABRIC_SAMPLES || i * result->sample_width > result->ended_at;
		const double value = is_past ? 0 : counter->value(simulation, link, &result->samples[link][i]);
		if (value != last) {
			fprintf(out, ",\n{\"name\": \"%s: %s\", \"ph\": \"C\", ", text, counter->name);
			put_us(out, "ts", i * result->sample_width);
			fprintf(out, ", \"pid\": %" PRIu32 ", \"args\": {\"%s\": %.6g}}", process, counter->unit,
				value);
		}
		last = value;
	}
}

static void put_links(
	FILE *out, const struct simulation *simulation, const struct summary_links *links, uint32_t process)
{
	struct fabric_sample *const *samples = simulation->result.samples;

	for (uint32_t i = 0; samples && i < links->count; i++) {
		const uint32_t link = links->link[i];
		for (size_t k = 0; samples[link] && k < sizeof(counters) / sizeof(counters[0]); k++)
			put_counter(out, simulation, link, &counters[k], process);
	}
}

void graph_trace_put(FILE *out, const struct simulation *simulation, const struct summary *summary)
{
	const struct graph *graph = graph_of(simulation);
	const uint32_t hosts = graph->ranks ? hosts_host_of(&simulation->hosts, graph->ranks - 1) + 1 : 0;

	fprintf(out,
		"{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n{\"name\": \"process_name\", \"ph\": \"M\", "
		"\"pid\": %" PRIu32 ", \"args\": {\"name\": \"busiest links\"}}",
		hosts);
	for (uint32_t rank = 0; rank < graph->ranks; rank++)
		put_names(out, simulation, rank);
	for (uint32_t i = 0; i < graph->count; i++)
		if (simulation->graph_job.records[i].end >= 0)
			put_span(out, simulation, i, hosts_host_of(&simulation->hosts, graph->operations[i].rank));
	put_links(out, simulation, &summary->links, hosts);
	put_links(out, simulation, &summary->front_links, hosts);
	fputs("\n]}\n", out);
}
