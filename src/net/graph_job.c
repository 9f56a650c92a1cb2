/* See graph_job.h. Holds: what is of an operation is written by its rank's calls, but for `link` of a send that was
 * sent: this is the receiver's. */
#include "net/graph_job.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "net/collective_part.h"

/* A message's tag: of a send, the operation; of a collective, the receiver's operation and the sender's step. */
#define OF_COLLECTIVE (1ull << 63)

/* A rank's part in a collective. Messages may come before it begins. */
struct graph_part {
	struct collective_part part;
	uint32_t member;
	bool has_begun;
};

struct graph_stream {
	uint32_t *ready; /* a heap of operations that wait for the stream: the first is the next */
	uint32_t count, room;
	uint32_t busy_with, last; /* GRAPH_NONE; last: the one that left it */
};

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

static bool is_before(const struct graph_job *job, uint32_t a, uint32_t b)
{
	const int8_t one = operation_of(job, a)->priority, other = operation_of(job, b)->priority;
	return one != other ? one > other : a < b;
}

static void swap(uint32_t *a, uint32_t *b)
{
	const uint32_t was = *a;
	*a = *b;
	*b = was;
}

static bool push(const struct graph_job *job, struct graph_stream *stream, uint32_t number)
{
	if (stream->count == stream->room) {
		const uint32_t room = stream->room ? 2 * stream->room : 4;
		uint32_t *larger = realloc(stream->ready, room * sizeof(*larger));
		if (!larger)
			return false;
		stream->ready = larger;
		stream->room = room;
	}
	uint32_t at = stream->count++;
	stream->ready[at] = number;
	for (; at > 0 && is_before(job, stream->ready[at], stream->ready[(at - 1) / 2]); at = (at - 1) / 2)
		swap(&stream->ready[at], &stream->ready[(at - 1) / 2]);
	return true;
}

static uint32_t pop(const struct graph_job *job, struct graph_stream *stream)
{
	const uint32_t number = stream->ready[0];
	assert(stream->count > 0);
	stream->ready[0] = stream->ready[--stream->count];
	for (uint32_t at = 0, next; (next = 2 * at + 1) < stream->count; at = next) {
		if (next + 1 < stream->count && is_before(job, stream->ready[next + 1], stream->ready[next]))
			next++;
		if (!is_before(job, stream->ready[next], stream->ready[at]))
			break;
		swap(&stream->ready[next], &stream->ready[at]);
	}
	return number;
}

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
	stream->busy_with = pop(agenda->job, stream);
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
	if (!push(agenda->job, stream, number)) {
		agenda->job->is_out_of_memory = true;
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
static uint32_t find_other(struct graph_job *job, uint32_t rank, uint32_t number)
{
	uint32_t other;
	if (graph_mail_find(&job->mail, rank, number, &other))
		job->is_out_of_memory = true;
	return other;
}

static void receive(struct agenda *agenda, uint32_t number)
{
	const uint32_t sent = find_other(agenda->job, agenda->rank, number);
	if (sent != GRAPH_NONE)
		end(agenda, number);
}

/* ---- Collectives ------------------------------------------------------------------------------------------------- */

static struct graph_part *part_of(const struct graph_job *job, uint32_t number)
{
	return &job->parts[job->state_of[number]];
}

/* For one call. */
struct out {
	struct collective_out calls;
	struct agenda *agenda;
	const struct collective_algorithm *algorithm;
	uint32_t number;
};

static void send_part(const struct collective_out *calls, const struct collective_sent *sent)
{
	const struct out *out = (const struct out *)calls;
	const struct graph *graph = out->agenda->job->graph;
	const struct graph_operation *its = operation_of(out->agenda->job, out->number);
	out->agenda->sink->send(out->agenda->sink,
		&(struct message){ .src = its->rank,
			.dst = graph_rank_of(&graph->groups[its->group], sent->to),
			.bytes = sent->bytes,
			.start = out->agenda->at,
			.tag = OF_COLLECTIVE | (uint64_t)graph_same_at(graph, out->number, sent->to) << 32 | sent->tag,
			.channel = collective_opens_each(out->algorithm) ? 0 : 1,
			.traffic_class = its->traffic_class,
			.tells_arrival = true });
}

/* Sends what may be sent, and ends if that was all. */
static void go_on(struct agenda *agenda, uint32_t number)
{
	struct graph_part *its = part_of(agenda->job, number);
	const struct collective of_it = graph_collective_of(agenda->job->graph, number);
	const struct collective_algorithm *algorithm = collective_find(&of_it);
	const struct out out = { { send_part }, agenda, algorithm, number };
	if (of_it.ranks > 1) {
		collective_part_go_on(&of_it, algorithm, its->member, &its->part, &out.calls);
		if (!collective_part_is_done(&of_it, algorithm, its->member, &its->part))
			return;
	}
	if (agenda->job->records[number].end == -1)
		end(agenda, number);
}

static void begin_collective(struct agenda *agenda, uint32_t number)
{
	const struct graph_operation *its = operation_of(agenda->job, number);
	struct graph_part *part = part_of(agenda->job, number);
	part->has_begun = true;
	part->member = graph_member(&agenda->job->graph->groups[its->group], its->rank);
	go_on(agenda, number);
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
		begin_collective(agenda, number);
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

/* The sender's own operation: the tag names the receiver's. */
static uint32_t same_at_sender(const struct agenda *agenda, uint64_t tag)
{
	const struct graph *graph = agenda->job->graph;
	const uint32_t other = (uint32_t)(tag >> 32) & INT32_MAX;
	return graph_same_at(graph, other, graph_member(&graph->groups[graph->operations[other].group], agenda->rank));
}

static void end_message(struct agenda *agenda, uint32_t number, uint32_t tag)
{
	const struct collective of_it = graph_collective_of(agenda->job->graph, number);
	if (collective_part_ended(collective_find(&of_it), &part_of(agenda->job, number)->part, tag))
		go_on(agenda, number);
}

static void ended(struct job *job, uint32_t rank, uint64_t tag, vb_time at, const struct flow_result *result,
	struct job_sink *sink)
{
	struct agenda agenda = open_agenda(job, rank, at, sink);
	(void)result; /* a message that failed has ended, too: what waits for its arrival never begins */
	if (tag & OF_COLLECTIVE)
		end_message(&agenda, same_at_sender(&agenda, tag), (uint32_t)tag);
	else
		end(&agenda, (uint32_t)tag);
	settle(&agenda);
}

static void arrived(struct job *job, uint32_t rank, uint64_t tag, vb_time at, struct job_sink *sink)
{
	struct agenda agenda = open_agenda(job, rank, at, sink);
	if (tag & OF_COLLECTIVE) {
		const uint32_t number = (uint32_t)(tag >> 32) & INT32_MAX, part_tag = (uint32_t)tag;
		struct graph_part *its = part_of(of(job), number);
		const struct collective of_it = graph_collective_of(of(job)->graph, number);
		collective_part_arrived(&of_it, collective_find(&of_it), &its->part, part_tag);
		if (its->has_begun)
			go_on(&agenda, number);
	} else {
		const uint32_t receive = find_other(of(job), rank, (uint32_t)tag);
		if (receive != GRAPH_NONE) {
			of(job)->records[receive].let_end = (uint32_t)tag;
			end(&agenda, receive);
		}
	}
	settle(&agenda);
}

static const struct job_kind kind = {
	.begin = begin, .ended = ended, .arrived = arrived, .computed = computed, .ends_by_arrival = true
};

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

/* What a run counts: messages, and computations that take a time. */
static uint64_t count_of(const struct graph_job *job, uint32_t number)
{
	const struct graph_operation *its = operation_of(job, number);
	switch ((enum graph_kind)its->kind) {
	case GRAPH_COMPUTE:
		return its->time > 0;
	case GRAPH_SEND:
		return 1;
	case GRAPH_RECEIVE:
		return 0;
	case GRAPH_COLLECTIVE:
		break;
	}
	const struct collective of_it = graph_collective_of(job->graph, number);
	const uint32_t member = graph_member(&job->graph->groups[its->group], its->rank);
	return of_it.ranks > 1 ? collective_sends(&of_it, collective_find(&of_it), member) : 0;
}

static void open_operation(struct graph_job *job, uint32_t number, uint32_t *parts)
{
	const struct graph_operation *its = operation_of(job, number);
	job->waits_left[number] = its->waits;
	job->records[number] = (struct graph_record){ -1, -1, GRAPH_NONE, GRAPH_NONE };
	job->job.operations += count_of(job, number);
	if (its->kind == GRAPH_COLLECTIVE)
		job->state_of[number] = (*parts)++;
}

int graph_job_open(struct graph_job *job, const struct graph *graph)
{
	const size_t streams = (size_t)graph->ranks * graph->streams;
	uint32_t collectives = 0, parts = 0;
	for (uint32_t i = 0; i < graph->count; i++)
		collectives += graph->operations[i].kind == GRAPH_COLLECTIVE;
	*job = (struct graph_job){ .job = { .kind = &kind, .ranks = graph->ranks },
		.graph = graph,
		.records = malloc(((size_t)graph->count + 1) * sizeof(*job->records)),
		.waits_left = malloc(((size_t)graph->count + 1) * sizeof(*job->waits_left)),
		.link = malloc(((size_t)graph->count + 1) * sizeof(*job->link)),
		.state_of = malloc(((size_t)graph->count + 1) * sizeof(*job->state_of)),
		.parts = calloc(collectives + 1, sizeof(*job->parts)),
		.streams = calloc(streams + 1, sizeof(*job->streams)) };
	if (!job->records || !job->waits_left || !job->link || !job->state_of || !job->parts || !job->streams ||
		graph_mail_open(&job->mail, graph, job->link)) {
		graph_job_close(job);
		return -ENOMEM;
	}
	for (size_t i = 0; i < streams; i++)
		job->streams[i].busy_with = job->streams[i].last = GRAPH_NONE;
	for (uint32_t i = 0; i < graph->count; i++)
		open_operation(job, i, &parts);
	assert(parts == collectives);
	return 0;
}

void graph_job_close(struct graph_job *job)
{
	const struct graph *graph = job->graph;
	for (size_t i = 0; job->streams && i < (size_t)graph->ranks * graph->streams; i++)
		free(job->streams[i].ready);
	graph_mail_close(&job->mail);
	free(job->records);
	free(job->waits_left);
	free(job->link);
	free(job->state_of);
	free(job->parts);
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
