/* htsim's .cm: "Nodes", "Connections", "Triggers" and "Failures" with their numbers, which must be right where they are
 * given, then lines such as
 *
 *     src->dst id N start PS size BYTES send_done_trigger T
 *     src->dst id N trigger T size BYTES recv_done_trigger U prio P
 *     trigger id T oneshot|multishot|barrier count N
 *
 * A flow with a trigger begins when it fires: a oneshot when its one flow has ended, at the sender or at the receiver;
 * a barrier when all of its N flows have. Each firing of a multishot begins one of the flows that wait for it, in the
 * file's order (sim/trigger.cpp, sim/datacenter/connection_matrix.cpp of uet-htsim and csg-htsim).
 *
 * There a trigger is heard of everywhere at once. Here a flow's source hears of it: the sender of the flow that fires,
 * which learns by an acknowledgement, or its receiver, which has the message. Others never hear of it, and are refused.
 *
 * "msg" makes a flow a message of the connection with its id; each message is a flow here. Otherwise an id belongs to
 * one flow, or to one trigger. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "net/flow_text.h"
#include "net/grow.h"

#define MOST_WAITS (1ull << 26)

/* A flow that fires a trigger, or waits for one. */
struct end {
	uint32_t trigger, flow, line;
	bool is_receipt; /* it fires where it is received */
};

enum shots { ONESHOT, MULTISHOT, BARRIER };

/* The id of a flow or trigger. */
struct id {
	uint32_t id, line;
	union {
		struct {
			uint32_t src, dst;
			bool is_message;
		};
		struct {
			uint32_t count; /* of a barrier: how many firings there are */
			enum shots shots;
		};
	};
};

struct ids {
	struct id *ids;
	uint32_t count, room;
};

enum count { NODES, CONNECTIONS, TRIGGERS, FAILURES, COUNTS };
static const char *const count_names[COUNTS] = {
	[NODES] = "Nodes", [CONNECTIONS] = "Connections", [TRIGGERS] = "Triggers", [FAILURES] = "Failures"
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
	uint64_t waits;               /* that were added */
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

enum key { ID, START, SIZE, TRIGGER, SEND_TRIGGER, RECEIVE_TRIGGER, PRIORITY, KEYS };
static const struct {
	const char *name;
	uint64_t min, max;
} keys[KEYS] = {
	[ID] = { "id", 1, UINT32_MAX },
	[START] = { "start", 0, VB_HORIZON },
	[SIZE] = { "size", 1, FLOW_MOST_BYTES },
	[TRIGGER] = { "trigger", 1, UINT32_MAX },
	[SEND_TRIGGER] = { "send_done_trigger", 1, UINT32_MAX },
	[RECEIVE_TRIGGER] = { "recv_done_trigger", 1, UINT32_MAX },
	[PRIORITY] = { "prio", 0, INT32_MAX },
};

/* "msg" may have a number of its own. */
static int take_message(const struct text *text, struct span *line)
{
	struct span ahead = *line, word;
	uint64_t number;
	if (!span_take(&ahead, 0, &word) || !span_number(word, UINT32_MAX, &number))
		return 0;
	if (number == 0)
		return text_wrong(text, "msg needs a number from 1 on, or none");
	*line = ahead;
	return 0;
}

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
			if (take_message(text, line))
				return -EINVAL;
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

static int add_ends(struct reading *reading, const uint64_t value[KEYS], const bool has[KEYS])
{
	struct end end = { .flow = reading->list->count - 1, .line = reading->text->line };
	int error = 0;
	if (has[TRIGGER]) {
		end.trigger = (uint32_t)value[TRIGGER];
		error = add_end(&reading->waiting, &end);
	}
	if (!error && has[SEND_TRIGGER]) {
		end.trigger = (uint32_t)value[SEND_TRIGGER];
		error = add_end(&reading->firing, &end);
	}
	if (!error && has[RECEIVE_TRIGGER]) {
		end.trigger = (uint32_t)value[RECEIVE_TRIGGER];
		end.is_receipt = true;
		error = add_end(&reading->firing, &end);
	}
	return error;
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
	if (has[PRIORITY]) /* htsim's receivers pull some flows before others, and only NDP's do (main_ndp.cpp) */
		flow_list_note(reading->list, "prio is ignored: NDP's order of pulls is not modelled");
	flow.bytes = value[SIZE];
	flow.start = (vb_time)value[START];
	error = flow_list_add_read(reading->list, text, &flow, reading->endpoints);
	struct id id = { .id = (uint32_t)value[ID],
		.line = text->line,
		.src = flow.src,
		.dst = flow.dst,
		.is_message = is_message };
	if (!error && has[ID])
		error = add_id(&reading->flow_ids, &id);
	return error ? error : add_ends(reading, value, has);
}

static bool find_shots(struct span word, enum shots *shots)
{
	static const char *const names[] = { [ONESHOT] = "oneshot", [MULTISHOT] = "multishot", [BARRIER] = "barrier" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (span_is(word, names[i])) {
			*shots = (enum shots)i;
			return true;
		}
	return false;
}

static int read_trigger(struct reading *reading, struct span *line)
{
	const struct text *text = reading->text;
	struct span word;
	uint64_t id = 0, count = 0;
	struct id its = { .line = text->line };
	bool has_shots = false, has_count = false;
	while (span_take(line, 0, &word)) {
		bool is_id = span_is(word, "id"), is_count = span_is(word, "count");
		if (is_id || is_count) {
			if (!span_take(line, 0, &word) || !span_number(word, UINT32_MAX, is_id ? &id : &count))
				return text_wrong(text, "a trigger's id or count is not a number");
			has_count |= is_count;
		} else if (!has_shots && find_shots(word, &its.shots))
			has_shots = true;
		else
			return text_wrong(text, "%.*s of a trigger is not known", SPAN(word));
	}
	if (id == 0 || !has_shots)
		return text_wrong(text, "a trigger needs an id from 1 on, and oneshot, multishot or barrier");
	if ((its.shots == BARRIER) != has_count || (has_count && count == 0))
		return text_wrong(text, "a barrier needs a count from 1 on, and other triggers have none");
	its.id = (uint32_t)id;
	its.count = (uint32_t)count;
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

static int read_other(struct reading *reading, struct span word, struct span *line)
{
	if (span_is(word, "trigger"))
		return read_trigger(reading, line);
	if (span_is(word, "failure"))
		return text_wrong(reading->text, "a failed link is no flow: the network has it, in network.faults");
	return read_flow(reading, word, line);
}

static int read_lines(struct reading *reading)
{
	struct span line, word;
	while (text_next(reading->text, '#', &line)) {
		bool is_count;
		span_take(&line, 0, &word);
		int error = read_count(reading, word, &line, &is_count);
		if (!error && !is_count)
			error = read_other(reading, word, &line);
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
	const bool are_flows = ids == &reading->flow_ids;
	if (ids->count)
		qsort(ids->ids, ids->count, sizeof(*ids->ids), compare_ids);
	for (uint32_t i = 1; i < ids->count; i++) {
		const struct id *one = &ids->ids[i - 1], *next = one + 1;
		if (one->id != next->id)
			continue;
		if (are_flows && one->is_message && next->is_message && one->src == next->src && one->dst == next->dst)
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
		error = check_count(reading, TRIGGERS, reading->trigger_ids.count);
	if (!error)
		error = check_count(reading, FAILURES, 0); /* a line of one is refused */
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

/* How many ends this trigger has among all, which are sorted, and the first of them; NULL: there is none. */
static uint32_t find_ends(const struct ends *ends, uint32_t trigger, const struct end **first)
{
	uint32_t low = 0, high = ends->count, count = 0;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (ends->ends[middle].trigger < trigger)
			low = middle + 1;
		else
			high = middle;
	}
	while (low + count < ends->count && ends->ends[low + count].trigger == trigger)
		count++;
	*first = count ? &ends->ends[low] : NULL;
	return count;
}

static const struct id *find_trigger(const struct reading *reading, uint32_t trigger)
{
	const struct ids *ids = &reading->trigger_ids;
	uint32_t low = 0, high = ids->count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (ids->ids[middle].id < trigger)
			low = middle + 1;
		else
			high = middle;
	}
	return low < ids->count && ids->ids[low].id == trigger ? &ids->ids[low] : NULL;
}

/* It fires as often as htsim lets it, and begins all that wait for it. */
static int check_firings(struct reading *reading, const struct id *trigger, uint32_t firings, uint32_t waiting)
{
	const struct text *text = reading->text;
	if (firings == 0)
		return text_wrong(text, "nothing fires trigger %u", trigger->id);
	if (trigger->shots == ONESHOT && firings > 1)
		return text_wrong(text, "%u flows fire trigger %u, which is a oneshot", firings, trigger->id);
	if (trigger->shots == BARRIER && firings != trigger->count)
		return text_wrong(text, "%u flows fire trigger %u, which is a barrier of %u", firings, trigger->id,
			trigger->count);
	if (trigger->shots == MULTISHOT && firings < waiting)
		return text_wrong(text, "%u flows fire trigger %u, a multishot, and %u wait for it: one each", firings,
			trigger->id, waiting);
	reading->waits += (uint64_t)firings * waiting;
	if (reading->waits > MOST_WAITS)
		return text_wrong(
			text, "%u flows fire trigger %u and %u wait for it: too many", firings, trigger->id, waiting);
	return 0;
}

/* An event reaches a flow's source by the message, or by its acknowledgement. */
static int wait_for(struct reading *reading, const struct end *waiting, const struct end *firing)
{
	const struct flow *flow = &reading->list->flows[waiting->flow], *before = &reading->list->flows[firing->flow];
	const bool is_arrival = before->dst == flow->src;
	if (!is_arrival && before->src != flow->src)
		return text_wrong(reading->text,
			"trigger %u of flow %u->%u lets a flow of endpoint %u begin: news of it would have to cross "
			"the "
			"network (htsim's does so in no time)",
			waiting->trigger, before->src, before->dst, flow->src);
	if (is_arrival && !firing->is_receipt)
		flow_list_note(reading->list, "a flow of the receiver that waits for send_done_trigger begins when the "
					      "message is there, before its sender knows");
	if (!is_arrival && firing->is_receipt)
		flow_list_note(reading->list, "a flow of the sender that waits for recv_done_trigger begins when the "
					      "acknowledgement is there");
	return flow_list_add_wait(reading->list, waiting->flow, firing->flow, is_arrival ? FLOW_ARRIVED : FLOW_ENDED);
}

/* shot: which of those that wait for a multishot it is. It fires that often before the flow begins, so never by the
 * flow itself. */
static int join_one(struct reading *reading, const struct id *trigger, const struct end *waiting,
	const struct end *firing, uint32_t firings, uint32_t shot)
{
	const bool is_multishot = trigger->shots == MULTISHOT;
	uint32_t waits = 0;
	for (uint32_t i = 0; i < firings; i++) {
		if (is_multishot && firing[i].flow == waiting->flow)
			continue;
		int error = wait_for(reading, waiting, &firing[i]);
		if (error)
			return error;
		waits++;
	}
	if (!is_multishot)
		return 0;
	if (waits <= shot || waits - 1 - shot > UINT16_MAX)
		return text_wrong(reading->text, "trigger %u fires %u times before this flow, which is number %u",
			trigger->id, waits, shot + 1);
	reading->list->flows[waiting->flow].spare = (uint16_t)(waits - 1 - shot);
	return 0;
}

/* `waiting` begins those of one trigger, of `count`. */
static int join_trigger(struct reading *reading, const struct end *waiting, uint32_t count)
{
	const struct id *trigger = find_trigger(reading, waiting->trigger);
	const struct end *firing;
	const uint32_t firings = find_ends(&reading->firing, waiting->trigger, &firing);
	reading->text->line = waiting->line;
	if (!trigger)
		return text_wrong(reading->text, "no line says what trigger %u is", waiting->trigger);
	int error = check_firings(reading, trigger, firings, count);
	for (uint32_t i = 0; !error && i < count; i++) {
		reading->text->line = waiting[i].line;
		error = join_one(reading, trigger, &waiting[i], firing, firings, i);
	}
	return error;
}

/* qsort(NULL, 0) is not defined. */
static void sort_ends(struct ends *ends)
{
	if (ends->count)
		qsort(ends->ends, ends->count, sizeof(*ends->ends), compare);
}

static int join(struct reading *reading)
{
	const struct ends *waiting = &reading->waiting;
	int error = 0;
	sort_ends(&reading->firing);
	sort_ends(&reading->waiting);
	for (uint32_t i = 0; !error && i < reading->firing.count; i++)
		if (!find_trigger(reading, reading->firing.ends[i].trigger)) {
			reading->text->line = reading->firing.ends[i].line;
			return text_wrong(
				reading->text, "no line says what trigger %u is", reading->firing.ends[i].trigger);
		}
	for (uint32_t i = 0, count; !error && i < waiting->count; i += count) {
		count = 1;
		while (i + count < waiting->count && waiting->ends[i + count].trigger == waiting->ends[i].trigger)
			count++;
		error = join_trigger(reading, &waiting->ends[i], count);
	}
	return error;
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
