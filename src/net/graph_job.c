/* See graph_job.h. Holds: what is of an operation is written by its rank's calls, but for `link` of a send that was
 * sent: this is the receiver's. */
#include "net/graph_job.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "net/collective_part.h"
#include "net/graph_stream.h"
#include "net/rank_groups.h"

/* A message's tag: of a send, the operation; of a collective, the receiver's operation, and of its parts the number and
 * the sender's step. */
#define OF_COLLECTIVE (1ull << 63)
enum { PART_SHIFT = 22 };

/* A rank's share of a collective. Messages may come before it begins. */
struct graph_share {
	struct collective_part *parts; /* from its first message or its beginning until its end */
	uint32_t parts_left, member;   /* of parts, those that are not done */
	struct graph_chain chain;      /* that let the last part end */
	bool has_begun, has_ended;
};

/* Of a group: its members in the order in which a ring passes them (rank_groups.h), and where each is in it. */
struct graph_order {
	uint32_t *members, *places, gpus;
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

/* A collective, as its group has it: all of its parts together. */
static struct collective whole_of(const struct graph_job *job, uint32_t number)
{
	struct collective whole = graph_collective_of(job->graph, number);
	whole.gpus = job->orders[operation_of(job, number)->group].gpus;
	return whole;
}

/* A tag has room for so many steps and parts. */
static uint32_t parts_of(const struct graph_job *job, const struct collective *whole)
{
	const uint32_t parts = collective_parts(whole, &job->hosts);
	return whole->ranks < 1u << (PART_SHIFT - 1) && parts <= 1u << (32 - PART_SHIFT) ? parts : 1;
}

/* A part of an operation, at the operation's rank. */
struct piece {
	struct collective of;
	const struct collective_algorithm *algorithm;
	struct collective_part *part;
	uint32_t number, place; /* the operation, and where its rank is */
	bool is_one_of_many;
};

static struct graph_share *share_of(const struct graph_job *job, uint32_t number)
{
	return &job->shares[job->state_of[number]];
}

static uint32_t member_at(const struct graph_job *job, const struct piece *piece, uint32_t place)
{
	return job->orders[operation_of(job, piece->number)->group].members[collective_rank_at(&piece->of, place)];
}

/* Without what is kept of it, if the share is not open. */
static struct piece piece_of(const struct graph_job *job, uint32_t number, uint32_t part)
{
	const struct graph_share *share = share_of(job, number);
	const struct graph_order *order = &job->orders[operation_of(job, number)->group];
	const struct collective whole = whole_of(job, number);
	const uint32_t parts = parts_of(job, &whole);
	struct piece piece = { .of = whole,
		.part = share->parts ? &share->parts[part] : NULL,
		.number = number,
		.is_one_of_many = parts > 1 };
	if (parts > 1)
		piece.of = collective_part_of(&whole, &job->hosts, part);
	piece.algorithm = collective_find(&piece.of);
	piece.place = collective_place_of(&piece.of, order->places[share->member]);
	return piece;
}

static bool open_share(struct agenda *agenda, uint32_t number)
{
	struct graph_share *share = share_of(agenda->job, number);
	const struct collective whole = whole_of(agenda->job, number);
	if (share->parts || share->has_ended)
		return !share->has_ended;
	share->parts_left = parts_of(agenda->job, &whole);
	share->parts = calloc(share->parts_left, sizeof(*share->parts));
	if (!share->parts)
		agenda->sink->lack_memory(agenda->sink);
	return share->parts;
}

/* For one call. */
struct out {
	struct collective_out calls;
	struct agenda *agenda;
	const struct piece *piece;
	const struct graph_chain *chain;
};

static void send_piece(const struct collective_out *calls, const struct collective_sent *sent)
{
	const struct out *out = (const struct out *)calls;
	const struct piece *piece = out->piece;
	const struct graph *graph = out->agenda->job->graph;
	const struct graph_operation *its = operation_of(out->agenda->job, piece->number);
	const uint32_t member = member_at(out->agenda->job, piece, sent->to);
	const uint32_t dst = graph_rank_of(&graph->groups[its->group], member);
	const struct graph_carried carried = {
		.chain = *out->chain, .from = its->rank, .to = dst, .sent = out->agenda->at
	};
	out->agenda->sink->send(out->agenda->sink,
		&(struct message){ .src = its->rank,
			.dst = dst,
			.bytes = sent->bytes,
			.start = out->agenda->at,
			.tag = OF_COLLECTIVE | (uint64_t)graph_same_at(graph, piece->number, member) << 32 |
			       (uint64_t)piece->of.part << PART_SHIFT | sent->tag,
			.channel = collective_opens_each(piece->algorithm) ? 0 : 1 + piece->of.part + sent->opens,
			.part = (uint16_t)piece->of.part,
			.traffic_class = its->traffic_class,
			.is_piece = sent->is_piece,
			.tells_arrival = true,
			.carried = &carried });
}

static bool is_done(const struct piece *piece)
{
	return collective_part_is_done(&piece->of, piece->algorithm, piece->place, piece->part);
}

/* The chain is that of the message that ended the last part, which may be one of its own. */
static void end_collective(struct agenda *agenda, uint32_t number, const struct graph_chain *chain)
{
	struct graph_share *share = share_of(agenda->job, number);
	free(share->parts);
	share->parts = NULL;
	share->has_ended = true;
	share->chain = *chain;
	if (chain->origin != number)
		agenda->job->records[number].let_end = chain->origin;
	end(agenda, number);
}

/* Sends what the chain's end lets go of this part, which is not done, and ends the operation if that was all of all
 * parts. */
static void go_on(struct agenda *agenda, uint32_t number, uint32_t part, const struct graph_chain *chain)
{
	const struct piece piece = piece_of(agenda->job, number, part);
	const struct out out = { { send_piece }, agenda, &piece, chain };
	collective_part_go_on(&piece.of, piece.algorithm, piece.place, piece.part, &out.calls);
	if (is_done(&piece) && --share_of(agenda->job, number)->parts_left == 0)
		end_collective(agenda, number, chain);
}

static void begin_collective(struct agenda *agenda, uint32_t number)
{
	const struct graph_chain none = { .origin = number };
	const struct collective whole = whole_of(agenda->job, number);
	share_of(agenda->job, number)->has_begun = true;
	if (whole.ranks == 1)
		end_collective(agenda, number, &none);
	else if (open_share(agenda, number))
		for (uint32_t part = 0, parts = parts_of(agenda->job, &whole); part < parts; part++)
			go_on(agenda, number, part, &none);
}

/* What a collective's tag says. */
static uint32_t part_in(const struct piece *any, uint64_t tag)
{
	return any->is_one_of_many ? (uint32_t)tag >> PART_SHIFT : 0;
}

static uint32_t step_in(const struct piece *any, uint64_t tag)
{
	return any->is_one_of_many ? (uint32_t)tag & ((1u << PART_SHIFT) - 1) : (uint32_t)tag;
}

static void take_piece(struct agenda *agenda, uint32_t number, uint64_t tag, const struct graph_chain *chain)
{
	if (!open_share(agenda, number))
		return;
	const struct piece any = piece_of(agenda->job, number, 0);
	const struct piece piece = piece_of(agenda->job, number, part_in(&any, tag));
	collective_part_arrived(&piece.of, piece.algorithm, piece.part, step_in(&any, tag));
	if (share_of(agenda->job, number)->has_begun)
		go_on(agenda, number, part_in(&any, tag), chain);
}

/* A part that is done has nothing left to send: it heeds no end. */
static void end_piece(struct agenda *agenda, uint32_t number, uint64_t tag, const struct graph_chain *chain)
{
	if (share_of(agenda->job, number)->has_ended)
		return;
	const struct piece any = piece_of(agenda->job, number, 0);
	const struct piece piece = piece_of(agenda->job, number, part_in(&any, tag));
	if (!is_done(&piece) && collective_part_ended(piece.algorithm, piece.part, step_in(&any, tag)))
		go_on(agenda, number, part_in(&any, tag), chain);
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

static void ended(struct job *job, uint32_t rank, uint64_t tag, vb_time at, const struct flow_result *result,
	const void *carried, struct job_sink *sink)
{
	struct agenda agenda = open_agenda(job, rank, at, sink);
	(void)result; /* a message that failed has ended, too: what waits for its arrival never begins */
	if (tag & OF_COLLECTIVE) {
		const struct graph_chain chain = graph_chain_after(carried, tag, at);
		end_piece(&agenda, same_at_sender(&agenda, tag), tag, &chain);
	} else {
		end(&agenda, (uint32_t)tag);
	}
	settle(&agenda);
}

static void arrived(
	struct job *job, uint32_t rank, uint64_t tag, vb_time at, const void *carried, struct job_sink *sink)
{
	struct agenda agenda = open_agenda(job, rank, at, sink);
	if (tag & OF_COLLECTIVE) {
		const struct graph_chain chain = graph_chain_after(carried, tag, at);
		take_piece(&agenda, (uint32_t)(tag >> 32) & INT32_MAX, tag, &chain);
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

enum { MESSAGES_SEEN = 16 };

uint64_t graph_job_sends(const struct graph_job *job, uint32_t number)
{
	const struct graph_operation *its = operation_of(job, number);
	uint64_t sends = 0;
	if (its->kind != GRAPH_COLLECTIVE)
		return its->kind == GRAPH_SEND;
	const struct collective whole = whole_of(job, number);
	for (uint32_t part = 0, parts = parts_of(job, &whole); whole.ranks > 1 && part < parts; part++) {
		const struct piece piece = piece_of(job, number, part);
		sends += collective_sends(&piece.of, piece.algorithm, piece.place);
	}
	return sends;
}

/* Of a part's messages, those that leave the rank's host: so many of all as of a few, evenly spread. */
static double leaving(const struct graph_job *job, const struct piece *piece, uint32_t most_seen)
{
	const struct graph_operation *its = operation_of(job, piece->number);
	const uint32_t sends = collective_sends(&piece->of, piece->algorithm, piece->place);
	const uint32_t seen = sends < most_seen ? sends : most_seen;
	uint32_t count = 0;
	for (uint32_t i = 0; i < seen; i++) {
		const uint32_t message = (uint32_t)((uint64_t)i * sends / seen);
		const uint32_t place = collective_message(&piece->of, piece->algorithm, piece->place, message).to;
		const uint32_t to = graph_rank_of(&job->graph->groups[its->group], member_at(job, piece, place));
		count += hosts_host_of(&job->hosts, its->rank) != hosts_host_of(&job->hosts, to);
	}
	return seen ? (double)count * sends / seen : 0;
}

double graph_job_leaving(const struct graph_job *job, uint32_t number)
{
	const struct graph_operation *its = operation_of(job, number);
	double count = 0;
	if (its->kind != GRAPH_COLLECTIVE)
		return its->kind == GRAPH_SEND &&
		       hosts_host_of(&job->hosts, its->rank) != hosts_host_of(&job->hosts, its->peer);
	const struct collective whole = whole_of(job, number);
	const uint32_t parts = parts_of(job, &whole);
	for (uint32_t part = 0; whole.ranks > 1 && part < parts; part++) {
		const struct piece piece = piece_of(job, number, part);
		count += leaving(job, &piece, parts < MESSAGES_SEEN ? MESSAGES_SEEN / parts : 1);
	}
	return count;
}

static void open_operation(struct graph_job *job, uint32_t number, uint32_t *shares)
{
	const struct graph_operation *its = operation_of(job, number);
	job->waits_left[number] = its->waits;
	job->records[number] = (struct graph_record){ -1, -1, GRAPH_NONE, GRAPH_NONE };
	if (its->kind == GRAPH_COLLECTIVE) {
		job->state_of[number] = (*shares)++;
		share_of(job, number)->member = graph_member(&job->graph->groups[its->group], its->rank);
	}
	/* A run counts messages, and computations that take a time. */
	job->job.operations += graph_job_sends(job, number) + (its->kind == GRAPH_COMPUTE && its->time > 0);
}

static int open_order(struct graph_order *order, const struct graph_group *group, const struct hosts *hosts)
{
	order->members = malloc(((size_t)group->count + 1) * sizeof(*order->members));
	order->places = malloc(((size_t)group->count + 1) * sizeof(*order->places));
	if (!order->members || !order->places ||
		rank_groups_gather(hosts, group->ranks, group->count, order->members, &order->gpus))
		return -ENOMEM;
	for (uint32_t place = 0; place < group->count; place++)
		order->places[order->members[place]] = place;
	return 0;
}

static int open_orders(struct graph_job *job)
{
	int error = 0;
	for (uint32_t i = 0; !error && i < job->graph->group_count; i++)
		error = open_order(&job->orders[i], &job->graph->groups[i], &job->hosts);
	return error;
}

int graph_job_open(struct graph_job *job, const struct graph *graph, const struct hosts *hosts)
{
	const size_t streams = (size_t)graph->ranks * graph->streams;
	uint32_t collectives = 0, shares = 0;
	for (uint32_t i = 0; i < graph->count; i++)
		collectives += graph->operations[i].kind == GRAPH_COLLECTIVE;
	*job = (struct graph_job){ .job = { .kind = &kind, .ranks = graph->ranks },
		.graph = graph,
		.records = malloc(((size_t)graph->count + 1) * sizeof(*job->records)),
		.waits_left = malloc(((size_t)graph->count + 1) * sizeof(*job->waits_left)),
		.link = malloc(((size_t)graph->count + 1) * sizeof(*job->link)),
		.state_of = malloc(((size_t)graph->count + 1) * sizeof(*job->state_of)),
		.shares = calloc(collectives + 1, sizeof(*job->shares)),
		.orders = calloc(graph->group_count + 1, sizeof(*job->orders)),
		.hosts = *hosts,
		.streams = calloc(streams + 1, sizeof(*job->streams)) };
	if (!job->records || !job->waits_left || !job->link || !job->state_of || !job->shares || !job->orders ||
		!job->streams || open_orders(job) || graph_mail_open(&job->mail, graph, job->link)) {
		graph_job_close(job);
		return -ENOMEM;
	}
	for (size_t i = 0; i < streams; i++)
		job->streams[i].busy_with = job->streams[i].last = GRAPH_NONE;
	for (uint32_t i = 0; i < graph->count; i++)
		open_operation(job, i, &shares);
	assert(shares == collectives);
	job->share_count = shares;
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
	for (uint32_t i = 0; job->shares && i < job->share_count; i++)
		free(job->shares[i].parts);
	for (uint32_t i = 0; job->orders && i < graph->group_count; i++) {
		free(job->orders[i].members);
		free(job->orders[i].places);
	}
	free(job->shares);
	free(job->orders);
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
	return is_collective && job->records[number].end >= 0 ? &share_of(job, number)->chain : NULL;
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
