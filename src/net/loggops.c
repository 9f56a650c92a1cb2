/* See loggops.h. The facts are those of spcl/LogGOPSim, src/LogGOPSim/LogGOPSim.cpp. */
#include "net/loggops.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "base/number_map.h"
#include "net/graph_mail.h"
#include "net/grow.h"
#include "net/why.h"

#define NO_QUEUE UINT32_MAX

/* An operation, or the message of a send, that asks for its processor and NIC. */
struct event {
	vb_time at;
	uint64_t order;     /* that of asking first: it keeps it when it asks again */
	uint32_t operation; /* GRAPH_NONE: the first of the queue asks */
	uint32_t queue;     /* that it waited in; NO_QUEUE: in none */
	bool is_message;
};

struct heap {
	struct event *events; /* the first is the next */
	uint32_t count, room;
};

/* Those that found what they want taken, and all want the same. Only the first asks again. */
struct queue {
	struct heap waiting; /* in order: `at` is 0 */
	vb_time asks_at;     /* an event with the first's order is in the calendar then */
};

struct state {
	vb_time ready; /* before it begins: when all that it waits for has happened. Of a message: when it arrived */
	uint32_t waits_left;
	bool has_ended;
};

struct play {
	const struct graph *graph;
	const struct loggops *parameters;
	struct loggops_result *result;
	struct heap calendar;
	uint64_t order;
	struct queue *queues;
	uint32_t queue_count, queue_room;
	struct number_map queue_of; /* by what they want: the queue's number, plus 1 */
	struct state *states;       /* by operation */
	uint32_t *link;             /* by operation: in freed, and then in the mail */
	struct graph_mail mail;
	/* By rank, then by number: from when on each is free. */
	vb_time *processors, *sending, *receiving;
	uint32_t processor_count, nic_count;
	/* Operations that an event let begin, in order. */
	uint32_t first_freed, last_freed;
	int error; /* the first */
};

/* ---- The calendar ------------------------------------------------------------------------------------------------ */

static bool is_before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static bool push(struct heap *heap, struct event event)
{
	if (!grow_by_one(&heap->events, &heap->room, heap->count, sizeof(*heap->events)))
		return false;
	uint32_t at = heap->count++;
	for (; at > 0 && is_before(&event, &heap->events[(at - 1) / 2]); at = (at - 1) / 2)
		heap->events[at] = heap->events[(at - 1) / 2];
	heap->events[at] = event;
	return true;
}

static struct event pop(struct heap *heap)
{
	assert(heap->count > 0);
	struct event *events = heap->events;
	const struct event first = events[0], last = events[--heap->count];
	uint32_t at = 0;
	for (uint32_t next; (next = 2 * at + 1) < heap->count; at = next) {
		if (next + 1 < heap->count && is_before(&events[next + 1], &events[next]))
			next++;
		if (!is_before(&events[next], &last))
			break;
		events[at] = events[next];
	}
	events[at] = last;
	return first;
}

static void add(struct play *play, struct event event)
{
	if (event.at > VB_HORIZON)
		play->error = play->error ? play->error : -ERANGE;
	else if (!play->error && !push(&play->calendar, event))
		play->error = -ENOMEM;
}

/* The first of the queue asks then. */
static void await_first(struct play *play, uint32_t number, vb_time at)
{
	struct queue *queue = &play->queues[number];
	if (queue->waiting.count == 0)
		return;
	queue->asks_at = at;
	add(play,
		(struct event){
			.at = at, .order = queue->waiting.events[0].order, .operation = GRAPH_NONE, .queue = number });
}

/* False: that was the queue's first, which has another time since, or is not the first any more. */
static bool resolve(struct play *play, struct event *event)
{
	if (event->operation != GRAPH_NONE)
		return true;
	struct queue *queue = &play->queues[event->queue];
	if (queue->waiting.count == 0 || queue->asks_at != event->at || queue->waiting.events[0].order != event->order)
		return false;
	const struct event first = pop(&queue->waiting);
	event->operation = first.operation;
	event->is_message = first.is_message;
	return true;
}

/* ---- Times ------------------------------------------------------------------------------------------------------- */

static vb_time later(vb_time a, vb_time b)
{
	return a > b ? a : b;
}

/* (size - 1) times so much, or more than a day. */
static vb_time of_bytes(const struct graph_operation *its, vb_time of_byte)
{
	const uint64_t bytes = its->bytes ? its->bytes - 1 : 0;
	if (of_byte > 0 && bytes > (uint64_t)VB_HORIZON / (uint64_t)of_byte)
		return VB_HORIZON + 1;
	return (vb_time)bytes * of_byte;
}

static uint8_t cpu_of(const struct graph_operation *its)
{
	return its->kind == GRAPH_COMPUTE ? its->stream : its->cpu;
}

static vb_time *processor_of(const struct play *play, uint32_t rank, uint8_t cpu)
{
	return &play->processors[(size_t)rank * play->processor_count + cpu];
}

static size_t nic_of(const struct play *play, uint32_t rank, uint8_t nic)
{
	return (size_t)rank * play->nic_count + nic;
}

/* The processor has something to do until then. */
static void occupy(struct play *play, uint32_t rank, uint8_t cpu, vb_time until)
{
	vb_time *free_from = processor_of(play, rank, cpu);
	assert(*free_from <= until);
	*free_from = until;
	play->result->ends[rank] = later(play->result->ends[rank], until);
}

/* From when on what the event is about has all that it takes. */
static vb_time free_from(const struct play *play, const struct event *event)
{
	const struct graph_operation *its = &play->graph->operations[event->operation];
	if (event->is_message)
		return later(
			*processor_of(play, its->peer, its->cpu), play->receiving[nic_of(play, its->peer, its->nic)]);
	const vb_time cpu = *processor_of(play, its->rank, cpu_of(its));
	return its->kind == GRAPH_SEND ? later(cpu, play->sending[nic_of(play, its->rank, its->nic)]) : cpu;
}

/* ---- Queues ------------------------------------------------------------------------------------------------------ */

/* What one of them wants, and nothing else does. */
static uint64_t wish_of(const struct graph_operation *its, bool is_message)
{
	const uint64_t rank = is_message ? its->peer : its->rank, nic = its->kind == GRAPH_SEND ? its->nic : 0,
		       way = is_message ? 2 : its->kind == GRAPH_SEND;
	return rank << 18 | way << 16 | nic << 8 | cpu_of(its);
}

/* NO_QUEUE: no memory. */
static uint32_t queue_for(struct play *play, const struct event *event)
{
	uint32_t *queue = number_map_make(
		&play->queue_of, wish_of(&play->graph->operations[event->operation], event->is_message));
	if (queue && *queue == 0) {
		if (!grow_by_one(&play->queues, &play->queue_room, play->queue_count, sizeof(*play->queues)))
			return NO_QUEUE;
		play->queues[play->queue_count] = (struct queue){ 0 };
		*queue = ++play->queue_count;
	}
	return queue ? *queue - 1 : NO_QUEUE;
}

/* What it wants is free from then on. */
static void wait_until(struct play *play, struct event event, vb_time from)
{
	if (event.queue == NO_QUEUE)
		event.queue = queue_for(play, &event);
	event.at = 0;
	if (event.queue == NO_QUEUE || !push(&play->queues[event.queue].waiting, event))
		play->error = -ENOMEM;
	else if (play->queues[event.queue].waiting.events[0].order == event.order)
		await_first(play, event.queue, from);
}

/* ---- What may begin ---------------------------------------------------------------------------------------------- */

static void release(struct play *play, uint32_t number)
{
	play->link[number] = GRAPH_NONE;
	if (play->first_freed == GRAPH_NONE)
		play->first_freed = number;
	else
		play->link[play->last_freed] = number;
	play->last_freed = number;
}

static void let_follow(struct play *play, uint32_t number, enum graph_event event, vb_time at)
{
	const struct graph *graph = play->graph;
	for (uint32_t i = graph->followers_first[number]; i < graph->followers_first[number + 1]; i++) {
		const uint32_t follower = graph->followers[i] >> 1;
		struct state *state = &play->states[follower];
		if ((graph->followers[i] & 1) != event)
			continue;
		assert(state->waits_left > 0);
		state->ready = later(state->ready, at);
		if (--state->waits_left == 0)
			release(play, follower);
	}
}

static void end(struct play *play, uint32_t number, vb_time at)
{
	assert(!play->states[number].has_ended);
	play->states[number].has_ended = true;
	play->result->unfinished--;
	let_follow(play, number, GRAPH_ENDED, at);
}

static void ask_one(struct play *play, uint32_t number)
{
	struct event event = { .order = play->order++, .operation = number, .queue = NO_QUEUE };
	event.at = later(play->states[number].ready, free_from(play, &event));
	add(play, event);
}

static void ask_of_rank(struct play *play, uint32_t rank)
{
	static const enum graph_kind kinds[] = { GRAPH_SEND, GRAPH_RECEIVE, GRAPH_COMPUTE };
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (uint32_t number = play->first_freed; number != GRAPH_NONE; number = play->link[number]) {
			const struct graph_operation *its = &play->graph->operations[number];
			if (its->rank == rank && its->kind == kinds[i])
				ask_one(play, number);
		}
}

/* Lets all that was released ask for what it takes. It is of one rank, or two. */
static void ask(struct play *play)
{
	uint32_t low = UINT32_MAX, high = 0;
	for (uint32_t number = play->first_freed; number != GRAPH_NONE; number = play->link[number]) {
		const uint32_t rank = play->graph->operations[number].rank;
		low = rank < low ? rank : low;
		high = rank > high ? rank : high;
	}
	if (play->first_freed == GRAPH_NONE)
		return;
	ask_of_rank(play, low);
	if (high != low)
		ask_of_rank(play, high);
	play->first_freed = GRAPH_NONE;
}

/* ---- Events ------------------------------------------------------------------------------------------------------ */

static void compute(struct play *play, uint32_t number, vb_time at)
{
	const struct graph_operation *its = &play->graph->operations[number];
	occupy(play, its->rank, its->stream, at + its->time);
	let_follow(play, number, GRAPH_BEGUN, at);
	end(play, number, at + its->time);
}

static void send(struct play *play, uint32_t number, vb_time at)
{
	const struct graph_operation *its = &play->graph->operations[number];
	const struct loggops *is = play->parameters;
	occupy(play, its->rank, its->cpu, at + is->o + of_bytes(its, is->O));
	play->sending[nic_of(play, its->rank, its->nic)] = at + is->g + of_bytes(its, is->G);
	add(play, (struct event){ at + is->o + is->L, play->order++, number, NO_QUEUE, true });
	let_follow(play, number, GRAPH_BEGUN, at);
	if (its->bytes <= is->S)
		end(play, number, at + is->o);
}

/* At this time a message and its receive are both there. A sender that waited for that had no time to itself. */
static void pair_up(struct play *play, uint32_t sent, uint32_t received, vb_time at)
{
	const struct graph_operation *its = &play->graph->operations[sent];
	play->result->unreceived--;
	end(play, received, later(at, play->states[sent].ready));
	if (its->bytes > play->parameters->S) {
		vb_time *sending = &play->sending[nic_of(play, its->rank, its->nic)];
		*sending = later(at, *sending);
		occupy(play, its->rank, its->cpu, later(at, *processor_of(play, its->rank, its->cpu)));
		end(play, sent, at);
	}
}

static uint32_t find_other(struct play *play, uint32_t rank, uint32_t number)
{
	uint32_t other;
	if (graph_mail_find(&play->mail, rank, number, &other))
		play->error = -ENOMEM;
	return other;
}

static void receive(struct play *play, uint32_t number, vb_time at)
{
	const uint32_t sent = find_other(play, play->graph->operations[number].rank, number);
	let_follow(play, number, GRAPH_BEGUN, at);
	if (sent != GRAPH_NONE)
		pair_up(play, sent, number, at);
}

static void take_message(struct play *play, uint32_t number, vb_time at)
{
	const struct graph_operation *its = &play->graph->operations[number];
	const struct loggops *is = play->parameters;
	const vb_time until = at + is->o + of_bytes(its, later(is->O, is->G));
	occupy(play, its->peer, its->cpu, until);
	play->receiving[nic_of(play, its->peer, its->nic)] = at + is->g + of_bytes(its, is->G);
	play->states[number].ready = until;
	play->result->unreceived++;
	const uint32_t received = find_other(play, its->peer, number);
	if (received != GRAPH_NONE)
		pair_up(play, number, received, at);
}

static void carry_out(struct play *play, const struct event *event)
{
	const enum graph_kind kind = play->graph->operations[event->operation].kind;
	if (event->is_message)
		take_message(play, event->operation, event->at);
	else if (kind == GRAPH_SEND)
		send(play, event->operation, event->at);
	else if (kind == GRAPH_RECEIVE)
		receive(play, event->operation, event->at);
	else
		compute(play, event->operation, event->at);
}

static void happen(struct play *play, struct event event)
{
	if (!resolve(play, &event))
		return;
	const bool is_receive = !event.is_message && play->graph->operations[event.operation].kind == GRAPH_RECEIVE;
	const vb_time from = free_from(play, &event);
	if (from > event.at && !is_receive) {
		wait_until(play, event, from);
		return;
	}
	carry_out(play, &event);
	if (event.queue != NO_QUEUE)
		await_first(play, event.queue, later(event.at, free_from(play, &event)));
	ask(play);
}

/* ---- A play ------------------------------------------------------------------------------------------------------ */

static int open_play(struct play *play)
{
	const struct graph *graph = play->graph;
	for (uint32_t i = 0; i < graph->count; i++) {
		const struct graph_operation *its = &graph->operations[i];
		assert(its->kind != GRAPH_COLLECTIVE);
		if (cpu_of(its) >= play->processor_count)
			play->processor_count = cpu_of(its) + 1u;
		if (its->kind != GRAPH_COMPUTE && its->nic >= play->nic_count)
			play->nic_count = its->nic + 1u;
	}
	const size_t processors = (size_t)graph->ranks * play->processor_count + 1;
	const size_t nics = (size_t)graph->ranks * play->nic_count + 1;
	play->states = calloc((size_t)graph->count + 1, sizeof(*play->states));
	play->link = malloc(((size_t)graph->count + 1) * sizeof(*play->link));
	play->processors = calloc(processors, sizeof(*play->processors));
	play->sending = calloc(nics, sizeof(*play->sending));
	play->receiving = calloc(nics, sizeof(*play->receiving));
	play->result->ends = calloc((size_t)graph->ranks + 1, sizeof(*play->result->ends));
	if (!play->states || !play->link || !play->processors || !play->sending || !play->receiving ||
		!play->result->ends)
		return -ENOMEM;
	return graph_mail_open(&play->mail, graph, play->link);
}

static void close_play(struct play *play)
{
	graph_mail_close(&play->mail);
	for (uint32_t i = 0; i < play->queue_count; i++)
		free(play->queues[i].waiting.events);
	free(play->queues);
	number_map_free(&play->queue_of);
	free(play->calendar.events);
	free(play->states);
	free(play->link);
	free(play->processors);
	free(play->sending);
	free(play->receiving);
}

static void begin(struct play *play)
{
	const struct graph *graph = play->graph;
	for (uint32_t rank = 0; rank < graph->ranks; rank++) {
		for (uint32_t i = graph->first[rank]; i < graph->first[rank + 1]; i++) {
			play->states[i].waits_left = graph->operations[i].waits;
			if (graph->operations[i].waits == 0)
				release(play, i);
		}
		ask(play);
	}
}

static void sum_up(const struct play *play)
{
	struct loggops_result *result = play->result;
	for (uint32_t i = play->graph->count; i-- > 0;)
		if (!play->states[i].has_ended)
			result->first_unfinished = i;
	for (uint32_t rank = 1; rank < play->graph->ranks; rank++)
		if (result->ends[rank] > result->ends[result->last_rank])
			result->last_rank = rank;
}

int loggops_play(const struct graph *graph, const struct loggops *parameters, struct loggops_result *result)
{
	struct play play = { .graph = graph, .parameters = parameters, .result = result, .first_freed = GRAPH_NONE };
	*result = (struct loggops_result){ .unfinished = graph->count, .first_unfinished = GRAPH_NONE };
	play.error = open_play(&play);
	if (!play.error)
		begin(&play);
	while (!play.error && play.calendar.count > 0)
		happen(&play, pop(&play.calendar));
	if (!play.error)
		sum_up(&play);
	close_play(&play);
	if (play.error)
		loggops_result_free(result);
	return play.error;
}

void loggops_result_free(struct loggops_result *result)
{
	free(result->ends);
	*result = (struct loggops_result){ 0 };
}

/* ---- Parameters -------------------------------------------------------------------------------------------------- */

/* The number behind "L=". */
static int read_value(struct span word, struct loggops *parameters, char *why, unsigned why_size)
{
	const struct span value = { word.at + 2, word.length - 2 };
	const struct {
		char letter;
		vb_time *time;
	} times[] = { { 'L', &parameters->L }, { 'o', &parameters->o }, { 'g', &parameters->g },
		{ 'G', &parameters->G }, { 'O', &parameters->O } };
	uint64_t ps;
	if (*word.at == 'S')
		return span_number(value, UINT64_MAX, &parameters->S)
			       ? 0
			       : why_not(why, why_size, "S is a number of bytes, not '%.*s'", SPAN(value));
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		if (times[i].letter == *word.at) {
			if (!span_decimal(value, VB_NS, VB_S, &ps))
				return why_not(why, why_size, "%c is a time in ns, at most a second, not '%.*s'",
					*word.at, SPAN(value));
			*times[i].time = (vb_time)ps;
			return 0;
		}
	return why_not(why, why_size, "there is no %c: the parameters are L, o, g, G, O and S", *word.at);
}

int loggops_read(struct span text, struct loggops *parameters, char *why, unsigned why_size)
{
	struct span word;
	int error = 0;
	*parameters = (struct loggops){
		.L = 2500 * VB_NS, .o = 1500 * VB_NS, .g = 1000 * VB_NS, .G = 6 * VB_NS, .O = 0, .S = 65535
	};
	while (!error && span_take(&text, ',', &word)) {
		if (word.length < 3 || word.at[1] != '=')
			return why_not(
				why, why_size, "L=NS,o=NS,g=NS,G=NS,O=NS,S=BYTES is expected, not '%.*s'", SPAN(word));
		error = read_value(word, parameters, why, why_size);
	}
	return error;
}
