/* htsim's .cm: "Nodes", "Connections" and "Triggers" with their numbers, which must be right where they are given, then
 * lines such as
 *
 *     src->dst id N start PS size BYTES send_done_trigger T
 *     src->dst id N trigger T size BYTES
 *     trigger id T oneshot
 *
 * A flow with a trigger begins when the flow that fires the trigger ends at its sender. This reader accepts one firing
 * flow, of the same source; it refuses a trigger that several flows fire, or one of another source. "msg" makes a flow
 * a message of the connection with its id; each message is a flow here. Otherwise an id belongs to one flow, or to one
 * trigger. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "net/flow_text.h"
#include "net/grow.h"

/* A flow that fires a trigger, or waits for one. */
struct end {
	uint32_t trigger, flow, line;
};

/* The id of a flow or trigger. */
struct id {
	uint32_t id, line;
	uint32_t src, dst; /* of a flow */
	bool is_message;
};

struct ids {
	struct id *ids;
	uint32_t count, room;
};

enum count { NODES, CONNECTIONS, TRIGGERS, COUNTS };
static const char *const count_names[COUNTS] = {
	[NODES] = "Nodes", [CONNECTIONS] = "Connections", [TRIGGERS] = "Triggers"
};

struct ends {
	struct end *ends;
	uint32_t count, room;
};

struct reading {
	struct flow_list *list;
	struct text *text;
	uint32_t endpoints;
	uint32_t first; /* the list's first flow that is from this file */
	struct ends firing, waiting;
	struct ids flow_ids, trigger_ids;
	uint64_t counts[COUNTS];      /* as the file gives them */
	uint32_t count_lines[COUNTS]; /* 0: not given */
	uint32_t triggers;
};

static int add_id(struct ids *ids, const struct id *id)
{
	if (!grow_by_one(&ids->ids, &ids->room, ids->count, sizeof(*ids->ids)))
		return -ENOMEM;
	ids->ids[ids->count++] = *id;
	return 0;
}

static int add_end(struct ends *ends, const struct end *end)
{
	if (!grow_by_one(&ends->ends, &ends->room, ends->count, sizeof(*ends->ends)))
		return -ENOMEM;
	ends->ends[ends->count++] = *end;
	return 0;
}

/* ---- Lines ------------------------------------------------------------------------------------------------------- */

/* "12->3" */
static bool read_pair(struct span word, struct flow *flow)
{
	uint64_t src, dst;
	const char *arrow = memchr(word.at, '-', word.length);
	if (!arrow)
		return false;
	size_t before = (size_t)(arrow - word.at);
	if (before + 2 > word.length || arrow[1] != '>')
		return false;
	if (!span_number((struct span){ word.at, before }, UINT32_MAX, &src) ||
		!span_number((struct span){ arrow + 2, word.length - before - 2 }, UINT32_MAX, &dst))
		return false;
	flow->src = (uint32_t)src;
	flow->dst = (uint32_t)dst;
	return true;
}

enum key { ID, START, SIZE, TRIGGER, DONE_TRIGGER, KEYS };
static const struct {
	const char *name;
	uint64_t min, max;
} keys[KEYS] = {
	[ID] = { "id", 1, UINT32_MAX },
	[START] = { "start", 0, VB_HORIZON },
	[SIZE] = { "size", 1, FLOW_MOST_BYTES },
	[TRIGGER] = { "trigger", 1, UINT32_MAX },
	[DONE_TRIGGER] = { "send_done_trigger", 1, UINT32_MAX },
};

static int read_pairs(
	const struct text *text, struct span *line, uint64_t value[KEYS], bool has[KEYS], bool *is_message)
{
	struct span name, number;
	while (span_take(line, 0, &name)) {
		int key = 0;
		while (key < KEYS && !span_is(name, keys[key].name))
			key++;
		if (key == KEYS && span_is(name, "msg")) {
			*is_message = true;
			continue;
		}
		if (key == KEYS)
			return text_wrong(text, "%.*s of a flow is not supported", SPAN(name));
		if (has[key])
			return text_wrong(text, "%s twice", keys[key].name);
		if (!span_take(line, 0, &number) || !span_number(number, keys[key].max, &value[key]) ||
			value[key] < keys[key].min)
			return text_wrong(
				text, "%s needs a number from %u on", keys[key].name, (unsigned)keys[key].min);
		has[key] = true;
	}
	return 0;
}

static int read_flow(struct reading *reading, struct span pair, struct span *line)
{
	const struct text *text = reading->text;
	struct flow flow = { 0 };
	uint64_t value[KEYS] = { 0 };
	bool has[KEYS] = { false }, is_message = false;
	if (!read_pair(pair, &flow))
		return text_wrong(text, "%.*s is no flow: expected src->dst", SPAN(pair));
	int error = read_pairs(text, line, value, has, &is_message);
	if (error)
		return error;
	if (!has[SIZE] || has[START] == has[TRIGGER])
		return text_wrong(text, "a flow needs a size, and either a start or a trigger");
	flow.bytes = value[SIZE];
	flow.start = (vb_time)value[START];
	error = flow_list_add_read(reading->list, text, &flow, reading->endpoints);
	struct id id = { (uint32_t)value[ID], text->line, flow.src, flow.dst, is_message };
	if (!error && has[ID])
		error = add_id(&reading->flow_ids, &id);
	struct end end = { .flow = reading->list->count - 1, .line = text->line };
	if (!error && has[TRIGGER]) {
		end.trigger = (uint32_t)value[TRIGGER];
		error = add_end(&reading->waiting, &end);
	}
	if (!error && has[DONE_TRIGGER]) {
		end.trigger = (uint32_t)value[DONE_TRIGGER];
		error = add_end(&reading->firing, &end);
	}
	return error;
}

/* With one firing flow, oneshot, multishot and a barrier of one mean the same. */
static int read_trigger(struct reading *reading, struct span *line)
{
	const struct text *text = reading->text;
	struct span word;
	uint64_t id = 0, count = 1;
	bool has_kind = false;
	while (span_take(line, 0, &word)) {
		bool is_id = span_is(word, "id"), is_count = span_is(word, "count");
		if (is_id || is_count) {
			if (!span_take(line, 0, &word) || !span_number(word, UINT32_MAX, is_id ? &id : &count))
				return text_wrong(text, "a trigger's id or count is not a number");
		} else if (!has_kind &&
			   (span_is(word, "oneshot") || span_is(word, "multishot") || span_is(word, "barrier")))
			has_kind = true;
		else
			return text_wrong(text, "%.*s of a trigger is not known", SPAN(word));
	}
	if (id == 0 || !has_kind)
		return text_wrong(text, "a trigger needs an id from 1 on, and oneshot, multishot or barrier");
	if (count > 1)
		return text_wrong(text, "a barrier of %u: a flow can wait for one other alone", (unsigned)count);
	struct id its = { .id = (uint32_t)id, .line = text->line };
	reading->triggers++;
	return add_id(&reading->trigger_ids, &its);
}

/* Whether the line gives the count of something, and which. */
static int read_count(struct reading *reading, struct span name, struct span *line, bool *is_one)
{
	struct span word;
	int count = 0;
	while (count < COUNTS && !span_is(name, count_names[count]))
		count++;
	*is_one = count < COUNTS;
	if (!*is_one)
		return 0;
	if (!span_take(line, 0, &word) || !span_number(word, UINT32_MAX, &reading->counts[count]) || line->length)
		return text_wrong(reading->text, "expected a name and a number");
	if (reading->count_lines[count])
		return text_wrong(reading->text, "%s twice", count_names[count]);
	reading->count_lines[count] = reading->text->line;
	if (count == NODES && reading->counts[NODES] > reading->endpoints)
		return text_wrong(reading->text, "%u nodes, yet the network has %u endpoints",
			(unsigned)reading->counts[NODES], reading->endpoints);
	return 0;
}

static int read_lines(struct reading *reading)
{
	struct span line, word;
	while (text_next(reading->text, '#', &line)) {
		bool is_count;
		span_take(&line, 0, &word);
		int error = read_count(reading, word, &line, &is_count);
		if (!error && !is_count)
			error = span_is(word, "trigger") ? read_trigger(reading, &line)
							 : read_flow(reading, word, &line);
		if (error)
			return error;
	}
	return 0;
}

/* ---- Counts and ids ---------------------------------------------------------------------------------------------- */

static int check_count(struct reading *reading, enum count count, uint32_t is)
{
	if (!reading->count_lines[count] || reading->counts[count] == is)
		return 0;
	reading->text->line = reading->count_lines[count];
	return text_wrong(
		reading->text, "%s %u, yet there are %u", count_names[count], (unsigned)reading->counts[count], is);
}

/* Nodes are numbered from 0. No flow may name a node beyond the count. */
static int check_nodes(struct reading *reading)
{
	const struct flow_list *list = reading->list;
	if (!reading->count_lines[NODES])
		return 0;
	for (uint32_t i = reading->first; i < list->count; i++) {
		uint32_t most = list->flows[i].src > list->flows[i].dst ? list->flows[i].src : list->flows[i].dst;
		if (most < reading->counts[NODES])
			continue;
		reading->text->line = reading->count_lines[NODES];
		return text_wrong(reading->text, "Nodes %u, yet a flow names node %u, counted from 0",
			(unsigned)reading->counts[NODES], most);
	}
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	const struct id *x = a, *y = b;
	return x->id != y->id ? (x->id > y->id) - (x->id < y->id) : (x->line > y->line) - (x->line < y->line);
}

/* Two flows with one id must be messages of one connection. Two triggers may not share an id. */
static int check_ids(struct reading *reading, struct ids *ids, const char *what)
{
	if (ids->count)
		qsort(ids->ids, ids->count, sizeof(*ids->ids), compare_ids);
	for (uint32_t i = 1; i < ids->count; i++) {
		const struct id *one = &ids->ids[i - 1], *next = one + 1;
		if (one->id != next->id)
			continue;
		if (one->is_message && next->is_message && one->src == next->src && one->dst == next->dst)
			continue;
		reading->text->line = next->line;
		return text_wrong(reading->text, "id %u is that of the %s in line %u, too", next->id, what, one->line);
	}
	return 0;
}

static int check_claims(struct reading *reading)
{
	int error = check_nodes(reading);
	if (!error)
		error = check_count(reading, CONNECTIONS, reading->list->count - reading->first);
	if (!error)
		error = check_count(reading, TRIGGERS, reading->triggers);
	if (!error)
		error = check_ids(reading, &reading->flow_ids, "flow");
	return error ? error : check_ids(reading, &reading->trigger_ids, "trigger");
}

/* ---- Triggers ---------------------------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	const struct end *x = a, *y = b;
	return x->trigger != y->trigger ? (x->trigger > y->trigger) - (x->trigger < y->trigger)
					: (x->flow > y->flow) - (x->flow < y->flow);
}

/* How many flows fire the trigger, and the place of the first of them in the list. */
static uint32_t find_firing(const struct ends *firing, uint32_t trigger, uint32_t *first)
{
	uint32_t low = 0, high = firing->count, count = 0;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (firing->ends[middle].trigger < trigger)
			low = middle + 1;
		else
			high = middle;
	}
	*first = low;
	while (low + count < firing->count && firing->ends[low + count].trigger == trigger)
		count++;
	return count;
}

static int join(struct reading *reading)
{
	struct text *text = reading->text;
	const struct flow *flows = reading->list->flows;
	if (reading->firing.count)
		qsort(reading->firing.ends, reading->firing.count, sizeof(*reading->firing.ends), compare);
	for (uint32_t i = 0; i < reading->waiting.count; i++) {
		const struct end *waiting = &reading->waiting.ends[i];
		uint32_t first, count = find_firing(&reading->firing, waiting->trigger, &first);
		text->line = waiting->line;
		if (count == 0)
			return text_wrong(text, "nothing fires trigger %u", waiting->trigger);
		if (count > 1)
			return text_wrong(text, "%u flows fire trigger %u: a flow can wait for one other alone", count,
				waiting->trigger);
		uint32_t firing = reading->firing.ends[first].flow;
		if (flows[firing].src != flows[waiting->flow].src)
			return text_wrong(text,
				"trigger %u is fired by endpoint %u: a flow can wait for one of its own source alone",
				waiting->trigger, flows[firing].src);
		if (flow_list_add_wait(reading->list, waiting->flow, firing, FLOW_ENDED))
			return -ENOMEM;
	}
	return 0;
}

/* Refuses flows that never begin, naming the line of the first. */
static int check_beginnings(struct reading *reading)
{
	uint32_t stuck;
	int error = flow_list_find_stuck(reading->list, &stuck);
	for (uint32_t i = 0; i < reading->waiting.count && !error && stuck != FLOW_NONE; i++)
		if (reading->waiting.ends[i].flow == stuck) {
			reading->text->line = reading->waiting.ends[i].line;
			error = text_wrong(reading->text, "flows that wait for each other");
		}
	return error;
}

int flow_list_read_htsim(struct flow_list *list, struct text *text, uint32_t endpoints)
{
	struct reading reading = { .list = list, .text = text, .endpoints = endpoints, .first = list->count };
	int error = read_lines(&reading);
	if (!error)
		error = check_claims(&reading);
	if (!error)
		error = join(&reading);
	if (!error)
		error = check_beginnings(&reading);
	free(reading.firing.ends);
	free(reading.waiting.ends);
	free(reading.flow_ids.ids);
	free(reading.trigger_ids.ids);
	return error;
}
