/* See gpu_idle.h. */
#include "sim/gpu_idle.h"

#include <errno.h>
#include <stdlib.h>

struct interval {
	vb_time from, until;
};

static bool is_on_gpu(const struct graph *graph, const struct graph_operation *its)
{
	const bool is_beside = its->stream < 64 && graph->beside_gpu >> its->stream & 1;
	return its->kind == GRAPH_COMPUTE && !is_beside;
}

static int by_begin(const void *a, const void *b)
{
	const struct interval *one = a, *other = b;
	return (one->from > other->from) - (one->from < other->from);
}

/* Streams compute at the same time: what two do counts once. */
static vb_time time_in(struct interval *intervals, uint32_t count)
{
	vb_time sum = 0, seen = 0;

	qsort(intervals, count, sizeof(*intervals), by_begin);
	for (uint32_t i = 0; i < count; i++) {
		const vb_time from = intervals[i].from > seen ? intervals[i].from : seen;
		if (intervals[i].until <= from)
			continue;
		sum += intervals[i].until - from;
		seen = intervals[i].until;
	}
	return sum;
}

/* What is under way when the run is cut counts until then. */
static vb_time computing_time(const struct graph_job *job, uint32_t rank, vb_time end, struct interval *intervals)
{
	const struct graph *graph = job->graph;
	uint32_t count = 0;

	for (uint32_t i = graph->first[rank]; i < graph->first[rank + 1]; i++) {
		const struct graph_record *record = &job->records[i];
		if (!is_on_gpu(graph, &graph->operations[i]) || record->begin < 0)
			continue;
		const vb_time until = record->end >= 0 && record->end < end ? record->end : end;
		intervals[count++] = (struct interval){ record->begin, until };
	}
	return time_in(intervals, count);
}

vb_time job_time(const struct simulation *simulation)
{
	const struct fabric_result *result = &simulation->result;
	return result->end == FABRIC_DONE ? result->job_ends[simulation->config.job_count - 1] : result->ended_at;
}

int gpu_idle_share(const struct simulation *simulation, double *share)
{
	const struct graph *graph = &simulation->job_file.graph;
	const vb_time end = job_time(simulation);
	double computing = 0;
	struct interval *intervals = malloc(((size_t)graph->count + 1) * sizeof(*intervals));

	if (!intervals)
		return -ENOMEM;
	for (uint32_t rank = 0; rank < graph->ranks; rank++)
		computing += (double)computing_time(&simulation->graph_job, rank, end, intervals);
	free(intervals);
	*share = end > 0 ? 1 - computing / ((double)end * graph->ranks) : 0;
	return 0;
}
