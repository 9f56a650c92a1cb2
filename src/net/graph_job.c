/* See graph_job.h. Holds: what is of an operation is written by its rank's calls, but for `link` of a send that was
 * sent: this is the receiver's. */
#include "net/graph_job.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "net/graph_stream.h"

/* For one call: operations that may begin now, in order. */
struct agenda {
	struct graph_job *job;
	struct job_sink *sink;
	uint32_t first, last, rank;
	vb_time at;
};

static struct graph_job *of(struct job *job)
{
	return (struct graph_job *)job;
}

static const struct graph_operation *operation_of(const struct graph_job *job, uint32_t number)
{
	return &job->graph->operations[number];
}

/* ---- Streams ----------------------------------------------------------------------------------------------------- */

static struct graph_stream *stream_of(const struct graph_job *job, uint32_t number)
{
	const struct graph_operation *its = operation_of(job, number);
	return its->stream == GRAPH_NO_STREAM ? NULL
					      : &job->streams[(size_t)its->rank * job->graph->streams + its->stream];
}

/* ---- What may begin ---------------------------------------------------------------------------------------------- */

static void plan(struct agenda *agenda, uint32_t number)
{
	agenda->job->link[number] = GRAPH_NONE;
	if (agenda->first == GRAPH_NONE)
		agenda->first = number;
	else
		agenda->job->link[agenda->last] = number;
	agenda->last = number;
}

static void plan_next_of(struct agenda *agenda, struct graph_stream *stream)
{
	if (stream->busy_with != GRAPH_NONE || stream->count == 0)
		return;
	stream->busy_with = graph_stream_pop(agenda->job->graph, stream);
	if (stream->last != GRAPH_NONE)
		agenda->job->records[stream->busy_with].let_begin = stream->last;
	plan(agenda, stream->busy_with);
}

/* All that it waits for has happened. */
static void make_ready(struct agenda *agenda, uint32_t number)
{
	struct graph_stream *stream = stream_of(agenda->job, number);
	if (!stream) {
		plan(agenda, number);
		return;
	}
	if (!graph_stream_push(agenda->job->graph, stream, number)) {
		agenda->sink->lack_memory(agenda->sink);
		return;
	}
	if (stream->busy_with == GRAPH_NONE)
		stream->last = GRAPH_NONE; /* it was free: what it waits for is not the stream */
	plan_next_of(agenda, stream);
}

static void let_follow(struct agenda *agenda, uint32_t number, enum graph_event event)
{
	struct graph_job *job = agenda->job;
	const struct graph *graph = job->graph;
	for (uint32_t i = graph->followers_first[number]; i < graph->followers_first[number + 1]; i++) {
		const uint32_t next = graph->followers[i] >> 1;
		if ((graph->followers[i] & 1) != event)
			continue;
		assert(job->waits_left[next] > 0);
		job->records[next].let_begin = number;
		if (--job->waits_left[next] == 0)
			make_ready(agenda, next);
	}
}

static void end(struct agenda *agenda, uint32_t number)
{
	struct graph_stream *stream = stream_of(agenda->job, number);
	assert(agenda->job->records[number].end == -1);
	agenda->job->records[number].end = agenda->at;
	let_follow(agenda, number, GRAPH_ENDED);
	if (!stream)
		return;
	stream->busy_with = GRAPH_NONE;
	stream->last = number;
	plan_next_of(agenda, stream);
}

/* ---- Sends and receives ------------------------------------------------------------------------------------------ */

static void send(struct agenda *agenda, uint32_t number)
{
	const struct graph_operation *its = operation_of(agenda->job, number);
	agenda->sink->send(agenda->sink, &(struct message){ .src = its->rank,
						 .dst = its->peer,
						 .bytes = its->bytes ? its->bytes : 1,
						 .start = agenda->at,
						 .tag = number,
						 .channel = 1,
						 .traffic_class = its->traffic_class,
						 .tells_arrival = true });
}

/* The other of its pair if it is there; else it waits for that. */
static uint32_t find_other(const struct agenda *agenda, uint32_t number)
{
	uint32_t other;
	if (graph_mail_find(&agenda->job->mail, agenda->rank, number, &other))
		agenda->sink->lack_memory(agenda->sink);
	return other;
}

static void receive(struct agenda *agenda, uint32_t number)
{
	const uint32_t sent = find_other(agenda, number);
	if (sent != GRAPH_NONE)
		end(agenda, number);
}

/* ---- Collectives ------------------------------------------------------------------------------------------------- */

/* If one is done: perhaps a message of its own was the last that it waited for. */
static void end_collective(struct agenda *agenda, uint32_t number)
{
	if (number == GRAPH_NONE)
		return;
	const struct graph_chain *chain = graph_shares_chain(&agenda->job->shares, number);
	if (chain->origin != number)
		agenda->job->records[number].let_end = chain->origin;
	end(agenda, number);
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

static void begin_one(struct agenda *agenda, uint32_t number)
{
	const struct graph_operation *its = operation_of(agenda->job, number);
	assert(agenda->job->records[number].begin == -1);
	agenda->job->records[number].begin = agenda->at;
	let_follow(agenda, number, GRAPH_BEGUN);
	switch ((enum graph_kind)its->kind) {
	case GRAPH_COMPUTE:
		if (its->time > 0)
			agenda->sink->compute(agenda->sink, agenda->at + its->time, number);
		else
			end(agenda, number);
		break;
	case GRAPH_SEND:
		send(agenda, number);
		break;
	case GRAPH_RECEIVE:
		receive(agenda, number);
		break;
	case GRAPH_COLLECTIVE:
		end_collective(agenda, graph_shares_begin(&agenda->job->shares, number, agenda->at, agenda->sink));
		break;
	}
}

static void settle(struct agenda *agenda)
{
	for (uint32_t number; (number = agenda->first) != GRAPH_NONE;) {
		agenda->first = agenda->job->link[number];
		begin_one(agenda, number);
	}
}

static struct agenda open_agenda(struct job *job, uint32_t rank, vb_time at, struct job_sink *sink)
{
	return (struct agenda){ .job = of(job), .sink = sink, .first = GRAPH_NONE, .rank = rank, .at = at };
}

static void begin(struct job *job, uint32_t rank, struct job_sink *sink)
{
	struct agenda agenda = open_agenda(job, rank, 0, sink);
	const struct graph *graph = of(job)->graph;
	for (uint32_t i = graph->first[rank]; i < graph->first[rank + 1]; i++)
		if (graph->operations[i].waits == 0)
			make_ready(&agenda, i);
	settle(&agenda);
}

static void computed(struct job *job, uint32_t rank, uint64_t tag, vb_time at, struct job_sink *sink)
{
	struct agenda agenda = open_agenda(job, rank, at, sink);
	end(&agenda, (uint32_t)tag);
	settle(&agenda);
}

static void ended(struct job *job, uint32_t rank, uint64_t tag, vb_time at, const struct flow_result *result,
	const void *carried, struct job_sink *sink)
{
	struct agenda agenda = open_agenda(job, rank, at, sink);
	(void)result; /* a message that failed has ended, too: what waits for its arrival never begins */
	if (graph_shares_have(tag))
		end_collective(&agenda, graph_shares_ended(&of(job)->shares, rank, tag, at, carried, sink));
	else
		end(&agenda, (uint32_t)tag);
	settle(&agenda);
}

static void arrived(
	struct job *job, uint32_t rank, uint64_t tag, vb_time at, const void *carried, struct job_sink *sink)
{
	struct agenda agenda = open_agenda(job, rank, at, sink);
	if (graph_shares_have(tag)) {
		end_collective(&agenda, graph_shares_arrived(&of(job)->shares, tag, at, carried, sink));
	} else {
		const uint32_t receive = find_other(&agenda, (uint32_t)tag);
		if (receive != GRAPH_NONE) {
			of(job)->records[receive].let_end = (uint32_t)tag;
			end(&agenda, receive);
		}
	}
	settle(&agenda);
}

static const struct job_kind kind = { .begin = begin,
	.ended = ended,
	.arrived = arrived,
	.computed = computed,
	.ends_by_arrival = true,
	.carried_bytes = sizeof(struct graph_carried) };

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

uint64_t graph_job_sends(const struct graph_job *job, uint32_t number)
{
	const uint8_t its = operation_of(job, number)->kind;
	return its == GRAPH_COLLECTIVE ? graph_shares_sends(&job->shares, number) : its == GRAPH_SEND;
}

double graph_job_leaving(const struct graph_job *job, uint32_t number)
{
	const struct graph_operation *its = operation_of(job, number);
	if (its->kind == GRAPH_COLLECTIVE)
		return graph_shares_leaving(&job->shares, number);
	return its->kind == GRAPH_SEND &&
	       hosts_host_of(&job->shares.hosts, its->rank) != hosts_host_of(&job->shares.hosts, its->peer);
}

static void open_operation(struct graph_job *job, uint32_t number)
{
	const struct graph_operation *its = operation_of(job, number);
	job->waits_left[number] = its->waits;
	job->records[number] = (struct graph_record){ -1, -1, GRAPH_NONE, GRAPH_NONE };
	/* A run counts messages, and computations that take a time. */
	job->job.operations += graph_job_sends(job, number) + (its->kind == GRAPH_COMPUTE && its->time > 0);
}

int graph_job_open(
	struct graph_job *job, const struct graph *graph, const struct hosts *hosts, const struct nccl_settings *nccl)
{
	const size_t streams = (size_t)graph->ranks * graph->streams;
	*job = (struct graph_job){ .job = { .kind = &kind, .ranks = graph->ranks },
		.graph = graph,
		.records = malloc(((size_t)graph->count + 1) * sizeof(*job->records)),
		.waits_left = malloc(((size_t)graph->count + 1) * sizeof(*job->waits_left)),
		.link = malloc(((size_t)graph->count + 1) * sizeof(*job->link)),
		.streams = calloc(streams + 1, sizeof(*job->streams)) };
	if (!job->records || !job->waits_left || !job->link || !job->streams ||
		graph_shares_open(&job->shares, graph, hosts, nccl) || graph_mail_open(&job->mail, graph, job->link)) {
		graph_job_close(job);
		return -ENOMEM;
	}
	for (size_t i = 0; i < streams; i++)
		job->streams[i].busy_with = job->streams[i].last = GRAPH_NONE;
	for (uint32_t i = 0; i < graph->count; i++)
		open_operation(job, i);
	return 0;
}

void graph_job_close(struct graph_job *job)
{
	const struct graph *graph = job->graph;
	for (size_t i = 0; job->streams && i < (size_t)graph->ranks * graph->streams; i++)
		free(job->streams[i].ready);
	graph_mail_close(&job->mail);
	graph_shares_close(&job->shares);
	free(job->records);
	free(job->waits_left);
	free(job->link);
	free(job->streams);
	*job = (struct graph_job){ 0 };
}

uint32_t graph_job_unfinished(const struct graph_job *job, uint32_t *count)
{
	uint32_t first = GRAPH_NONE;
	*count = 0;
	for (uint32_t i = job->graph->count; i-- > 0;)
		if (job->records[i].end == -1) {
			first = i;
			++*count;
		}
	return first;
}

const struct graph_chain *graph_job_chain(const struct graph_job *job, uint32_t number)
{
	const bool is_collective = operation_of(job, number)->kind == GRAPH_COLLECTIVE;
	return is_collective && job->records[number].end >= 0 ? graph_shares_chain(&job->shares, number) : NULL;
}

uint32_t graph_job_last(const struct graph_job *job)
{
	uint32_t last = GRAPH_NONE;
	vb_time at = -1;
	for (uint32_t i = 0; i < job->graph->count; i++)
		if (job->records[i].end > at && job->graph->operations[i].kind != GRAPH_SEND) {
			at = job->records[i].end;
			last = i;
		}
	return last;
}
