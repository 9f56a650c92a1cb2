/* See graph.h. */
#include "net/graph.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "net/flow_text.h"
#include "net/grow.h"
#include "net/why.h"

enum { NAME = 80, MOST_OPERATIONS = INT32_MAX };

/* ---- Adding ------------------------------------------------------------------------------------------------------ */

int graph_add(struct graph *graph, const struct graph_operation *operation)
{
	if (graph->count == MOST_OPERATIONS ||
		!grow_by_one(&graph->operations, &graph->room, graph->count, sizeof(*graph->operations)))
		return -ENOMEM;
	graph->operations[graph->count] = *operation;
	graph->operations[graph->count++].waits = 0;
	if (operation->stream != GRAPH_NO_STREAM && operation->stream >= graph->streams)
		graph->streams = operation->stream + 1u;
	return 0;
}

int graph_add_wait(struct graph *graph, uint32_t operation, uint32_t before, enum graph_event event)
{
	assert(operation < graph->count);
	if (!grow_by_one(&graph->waits, &graph->wait_room, graph->wait_count, sizeof(*graph->waits)))
		return -ENOMEM;
	graph->waits[graph->wait_count++] =
		(struct graph_wait){ .operation = operation, .before = before & INT32_MAX, .event = event };
	graph->operations[operation].waits++;
	return 0;
}

static void free_group(struct graph_group *group)
{
	free(group->ranks);
	free(group->first);
	number_map_free(&group->members);
}

static int list_ranks(struct graph_group *group, const uint32_t *ranks)
{
	group->ranks = malloc(((size_t)group->count + 1) * sizeof(*group->ranks));
	if (!group->ranks)
		return -ENOMEM;
	memcpy(group->ranks, ranks, group->count * sizeof(*ranks));
	for (uint32_t i = group->count; i-- > 0;) {
		uint32_t *member = number_map_make(&group->members, ranks[i]);
		if (!member)
			return -ENOMEM;
		*member = i;
	}
	return 0;
}

int graph_add_group(struct graph *graph, const uint32_t *ranks, uint32_t count)
{
	struct graph_group group = { .count = count };
	if (!grow_by_one(&graph->groups, &graph->group_room, graph->group_count, sizeof(*graph->groups)))
		return -ENOMEM;
	if (ranks && list_ranks(&group, ranks)) {
		free_group(&group);
		return -ENOMEM;
	}
	graph->groups[graph->group_count++] = group;
	return 0;
}

static bool is_same(const char *a, const char *b)
{
	return (!a || !b) ? a == b : strcmp(a, b) == 0;
}

int graph_find_collective(struct graph *graph, const char *kind, const char *algorithm, uint32_t *number)
{
	for (*number = 0; *number < graph->collective_count; ++*number)
		if (is_same(graph->collectives[*number].kind, kind) &&
			is_same(graph->collectives[*number].algorithm, algorithm))
			return 0;
	if (!grow_by_one(
		    &graph->collectives, &graph->collective_room, graph->collective_count, sizeof(*graph->collectives)))
		return -ENOMEM;
	graph->collectives[graph->collective_count++] =
		(struct graph_collective){ .kind = collective_kind_name(kind), .algorithm = algorithm };
	return 0;
}

void graph_free(struct graph *graph)
{
	for (uint32_t i = 0; i < graph->group_count; i++)
		free_group(&graph->groups[i]);
	free(graph->operations);
	free(graph->waits);
	free(graph->groups);
	free(graph->collectives);
	free(graph->first);
	free(graph->ordered);
	free(graph->followers_first);
	free(graph->followers);
	*graph = (struct graph){ 0 };
}

/* ---- Groups ------------------------------------------------------------------------------------------------------ */

uint32_t graph_rank_of(const struct graph_group *group, uint32_t member)
{
	assert(member < group->count);
	return group->ranks ? group->ranks[member] : member;
}

uint32_t graph_member(const struct graph_group *group, uint32_t rank)
{
	if (!group->ranks)
		return rank < group->count ? rank : GRAPH_NONE;
	const uint32_t *member = number_map_find(&group->members, rank);
	return member ? *member : GRAPH_NONE;
}

struct collective graph_collective_of(const struct graph *graph, uint32_t operation)
{
	const struct graph_operation *its = &graph->operations[operation];
	assert(its->kind == GRAPH_COLLECTIVE);
	return (struct collective){ .kind = graph->collectives[its->collective].kind,
		.algorithm = graph->collectives[its->collective].algorithm,
		.ranks = graph->groups[its->group].count,
		.bytes = its->bytes ? its->bytes : 1,
		.traffic_class = its->traffic_class };
}

uint32_t graph_same_at(const struct graph *graph, uint32_t operation, uint32_t member)
{
	const struct graph_operation *its = &graph->operations[operation];
	const struct graph_group *group = &graph->groups[its->group];
	assert(group->first[member] + its->instance < group->first[member + 1]);
	return graph->ordered[group->first[member] + its->instance];
}

/* ---- Checks ------------------------------------------------------------------------------------------------------ */

struct checking {
	struct graph *graph;
	const struct graph_names *names;
	char *why;
	unsigned why_size;
};

#define WRONG(checking, ...) why_not((checking)->why, (checking)->why_size, __VA_ARGS__)

static const char *name_of(const struct checking *checking, uint32_t operation, char text[NAME])
{
	if (checking->names && checking->names->name)
		checking->names->name(checking->names->user, operation, text, NAME);
	else
		snprintf(text, NAME, "operation %" PRIu32, operation);
	return text;
}

static int no_memory(const struct checking *checking)
{
	WRONG(checking, "there is not enough memory");
	return -ENOMEM;
}

static int check_collective(const struct checking *checking, uint32_t number)
{
	const struct graph *graph = checking->graph;
	const struct graph_operation *its = &graph->operations[number];
	char name[NAME], why[200];
	if (its->group >= graph->group_count || its->collective >= graph->collective_count)
		return WRONG(checking, "%s: there is no such group", name_of(checking, number, name));
	const struct graph_group *group = &graph->groups[its->group];
	if (graph_member(group, its->rank) == GRAPH_NONE)
		return WRONG(checking, "%s: rank %" PRIu32 " is not in the group whose collective it is",
			name_of(checking, number, name), its->rank);
	const struct collective collective = graph_collective_of(graph, number);
	if (group->count > 1 && collective_check(&collective, why, sizeof(why)))
		return WRONG(checking, "%s: %s", name_of(checking, number, name), why);
	return 0;
}

static int check_operation(const struct checking *checking, uint32_t number)
{
	const struct graph *graph = checking->graph;
	const struct graph_operation *its = &graph->operations[number];
	char name[NAME];
	if (its->rank >= graph->ranks || (number > 0 && its->rank < its[-1].rank))
		return WRONG(checking, "%s: rank %" PRIu32 " is not one of %" PRIu32 ", or comes too late",
			name_of(checking, number, name), its->rank, graph->ranks);
	switch ((enum graph_kind)its->kind) {
	case GRAPH_COMPUTE:
		if (its->time < 0 || its->time > VB_HORIZON)
			return WRONG(checking, "%s: a time below 0 or above a day", name_of(checking, number, name));
		return 0;
	case GRAPH_SEND:
	case GRAPH_RECEIVE:
		if (its->bytes > FLOW_MOST_BYTES)
			return WRONG(checking, "%s: more than 16 TiB", name_of(checking, number, name));
		if (its->peer == GRAPH_ANY && its->kind == GRAPH_RECEIVE)
			return 0;
		if (its->peer >= graph->ranks)
			return WRONG(checking, "%s: there is no rank %" PRIu32 ": there are %" PRIu32,
				name_of(checking, number, name), its->peer, graph->ranks);
		if (its->peer == its->rank)
			return WRONG(checking, "%s: rank %" PRIu32 " sends to itself, or receives from itself",
				name_of(checking, number, name), its->rank);
		return 0;
	case GRAPH_COLLECTIVE:
		return check_collective(checking, number);
	}
	return WRONG(checking, "%s is of no kind", name_of(checking, number, name));
}

static int check_groups(const struct checking *checking)
{
	const struct graph *graph = checking->graph;
	for (uint32_t i = 0; i < graph->group_count; i++) {
		const struct graph_group *group = &graph->groups[i];
		for (uint32_t k = 0; k < group->count; k++) {
			const uint32_t rank = graph_rank_of(group, k);
			if (rank >= graph->ranks || graph_member(group, rank) != k)
				return WRONG(checking,
					"group %" PRIu32 ": rank %" PRIu32 " is there twice, or not one of %" PRIu32, i,
					rank, graph->ranks);
		}
	}
	return 0;
}

/* ---- Waits ------------------------------------------------------------------------------------------------------- */

static int sort_followers(const struct checking *checking)
{
	struct graph *graph = checking->graph;
	char name[NAME], other[NAME];
	uint32_t *first = graph->followers_first = calloc((size_t)graph->count + 2, sizeof(*first));
	graph->followers = malloc(((size_t)graph->wait_count + 1) * sizeof(*graph->followers));
	if (!first || !graph->followers)
		return no_memory(checking);
	for (uint32_t i = 0; i < graph->wait_count; i++) {
		const struct graph_wait wait = graph->waits[i];
		if (wait.before >= graph->count ||
			graph->operations[wait.before].rank != graph->operations[wait.operation].rank)
			return WRONG(checking, "%s waits for %s, which is not of its rank",
				name_of(checking, wait.operation, name),
				wait.before < graph->count ? name_of(checking, wait.before, other) : "none");
		first[wait.before + 2]++;
	}
	for (uint32_t i = 2; i <= graph->count; i++)
		first[i] += first[i - 1];
	for (uint32_t i = 0; i < graph->wait_count; i++) {
		const struct graph_wait wait = graph->waits[i];
		graph->followers[first[wait.before + 1]++] = wait.operation << 1 | wait.event;
	}
	free(graph->waits); /* the followers say all that they said */
	graph->waits = NULL;
	return 0;
}

/* From an operation that never begins, one that it waits for and that never begins, and so on, until one comes again.
 */
static int tell_cycle(const struct checking *checking, const uint32_t *left, uint32_t from)
{
	const struct graph *graph = checking->graph;
	uint32_t *seen = calloc(graph->count + 1, sizeof(*seen)), at = from, steps = 0;
	char ring[400] = "", name[NAME];
	size_t length = 0;
	if (!seen)
		return no_memory(checking);
	/* Followers that are stuck lead round: of a stuck operation at least one that it waits for is stuck. */
	uint32_t *before = malloc((graph->count + 1) * sizeof(*before));
	if (!before) {
		free(seen);
		return no_memory(checking);
	}
	for (uint32_t i = 0; i < graph->count; i++)
		for (uint32_t k = graph->followers_first[i]; left[i] && k < graph->followers_first[i + 1]; k++)
			before[graph->followers[k] >> 1] = i;
	while (!seen[at]) {
		seen[at] = ++steps;
		at = before[at];
	}
	const uint32_t begin = at;
	do {
		length += (size_t)snprintf(
			ring + length, sizeof(ring) - length, "%s waits for ", name_of(checking, at, name));
		at = before[at];
	} while (at != begin && length < sizeof(ring) - 2 * NAME);
	free(seen);
	free(before);
	return WRONG(checking, "a cycle: %s%s", ring, at == begin ? name_of(checking, begin, name) : "...");
}

static int check_cycles(const struct checking *checking)
{
	const struct graph *graph = checking->graph;
	uint32_t *left = malloc(((size_t)graph->count + 1) * sizeof(*left));
	uint32_t *ready = malloc(((size_t)graph->count + 1) * sizeof(*ready)), count = 0;
	int error = left && ready ? 0 : no_memory(checking);
	for (uint32_t i = 0; !error && i < graph->count; i++) {
		left[i] = graph->operations[i].waits;
		if (left[i] == 0)
			ready[count++] = i;
	}
	while (count > 0) {
		const uint32_t done = ready[--count];
		for (uint32_t k = graph->followers_first[done]; k < graph->followers_first[done + 1]; k++)
			if (--left[graph->followers[k] >> 1] == 0)
				ready[count++] = graph->followers[k] >> 1;
	}
	for (uint32_t i = 0; !error && i < graph->count; i++)
		if (left[i])
			error = tell_cycle(checking, left, i);
	free(left);
	free(ready);
	return error;
}

/* ---- Pairs ------------------------------------------------------------------------------------------------------- */

struct end {
	uint32_t src, dst, tag, operation;
	uint8_t is_receive;
};

static int by_pair(const void *a, const void *b)
{
	const struct end *x = a, *y = b;
	if (x->src != y->src)
		return x->src < y->src ? -1 : 1;
	if (x->dst != y->dst)
		return x->dst < y->dst ? -1 : 1;
	if (x->tag != y->tag)
		return x->tag < y->tag ? -1 : 1;
	if (x->is_receive != y->is_receive)
		return x->is_receive < y->is_receive ? -1 : 1;
	return x->operation < y->operation ? -1 : x->operation > y->operation;
}

static bool takes_any(const struct graph_operation *its)
{
	return its->kind == GRAPH_RECEIVE && (its->peer == GRAPH_ANY || its->tag == GRAPH_ANY);
}

/* ends[from] to ends[to - 1] are of one pair and tag, sends first. */
static int check_pair(const struct checking *checking, const struct end *ends, uint32_t from, uint32_t to)
{
	uint32_t sends = 0;
	char name[NAME];
	while (from + sends < to && !ends[from + sends].is_receive)
		sends++;
	const uint32_t receives = to - from - sends;
	if (sends == receives)
		return 0;
	const struct end *first = sends > receives ? &ends[from + receives] : &ends[from + 2 * sends];
	return WRONG(checking,
		"%s never pairs up: rank %" PRIu32 " sends %" PRIu32 " messages with tag %" PRIu32 " to rank %" PRIu32
		", which receives %" PRIu32,
		name_of(checking, first->operation, name), first->src, sends, first->tag, first->dst, receives);
}

/* Ranks that receive from anyone, or any tag, are not checked: what is left over there is told by the run. */
static int check_pairs(const struct checking *checking)
{
	const struct graph *graph = checking->graph;
	struct end *ends = malloc(((size_t)graph->count + 1) * sizeof(*ends));
	uint8_t *is_any = calloc(graph->ranks + 1, 1);
	uint32_t count = 0;
	int error = ends && is_any ? 0 : no_memory(checking);
	for (uint32_t i = 0; !error && i < graph->count; i++)
		is_any[graph->operations[i].rank] |= takes_any(&graph->operations[i]);
	for (uint32_t i = 0; !error && i < graph->count; i++) {
		const struct graph_operation *its = &graph->operations[i];
		if (its->kind == GRAPH_SEND && !is_any[its->peer])
			ends[count++] = (struct end){ its->rank, its->peer, its->tag, i, false };
		if (its->kind == GRAPH_RECEIVE && !is_any[its->rank])
			ends[count++] = (struct end){ its->peer, its->rank, its->tag, i, true };
	}
	if (!error)
		qsort(ends, count, sizeof(*ends), by_pair);
	for (uint32_t from = 0, to; !error && from < count; from = to) {
		for (to = from + 1; to < count && ends[to].src == ends[from].src && ends[to].dst == ends[from].dst &&
				    ends[to].tag == ends[from].tag;
			to++)
			;
		error = check_pair(checking, ends, from, to);
	}
	free(ends);
	free(is_any);
	return error;
}

/* ---- Collectives ------------------------------------------------------------------------------------------------- */

/* first[m + 2] counts member m's; after the sums, first[m + 1] is where its next one goes. */
static int count_collectives(const struct checking *checking)
{
	struct graph *graph = checking->graph;
	uint32_t next = 0;
	for (uint32_t i = 0; i < graph->group_count; i++) {
		struct graph_group *group = &graph->groups[i];
		group->first = calloc((size_t)group->count + 2, sizeof(*group->first));
		if (!group->first)
			return no_memory(checking);
	}
	for (uint32_t i = 0; i < graph->count; i++) {
		const struct graph_operation *its = &graph->operations[i];
		if (its->kind == GRAPH_COLLECTIVE)
			graph->groups[its->group].first[graph_member(&graph->groups[its->group], its->rank) + 2]++;
	}
	for (uint32_t i = 0; i < graph->group_count; i++) {
		struct graph_group *group = &graph->groups[i];
		group->first[0] = group->first[1] = next;
		for (uint32_t m = 2; m <= group->count + 1; m++)
			group->first[m] += group->first[m - 1];
		next = group->first[group->count + 1];
	}
	return 0;
}

/* Every member has the same collectives as the first, in the same order. */
static int compare_members(const struct checking *checking, uint32_t number)
{
	const struct graph *graph = checking->graph;
	const struct graph_group *group = &graph->groups[number];
	char name[NAME], other[NAME];
	for (uint32_t m = 1; m < group->count; m++) {
		const uint32_t count = group->first[1] - group->first[0], its = group->first[m + 1] - group->first[m];
		for (uint32_t i = 0; i < count && i < its; i++) {
			const uint32_t a = graph->ordered[group->first[0] + i], b = graph->ordered[group->first[m] + i];
			const struct graph_operation *one = &graph->operations[a], *two = &graph->operations[b];
			if (one->collective != two->collective || one->bytes != two->bytes)
				return WRONG(checking,
					"collective %" PRIu32 " of group %" PRIu32 " is %s of %" PRIu64
					" bytes at rank %" PRIu32 " (%s), and %s of %" PRIu64 " bytes at rank %" PRIu32
					" (%s)",
					i, number, graph->collectives[one->collective].kind, one->bytes, one->rank,
					name_of(checking, a, name), graph->collectives[two->collective].kind,
					two->bytes, two->rank, name_of(checking, b, other));
		}
		if (count != its)
			return WRONG(checking,
				"group %" PRIu32 ": rank %" PRIu32 " has %" PRIu32 " collectives, and rank %" PRIu32
				" has %" PRIu32,
				number, graph_rank_of(group, 0), count, graph_rank_of(group, m), its);
	}
	return 0;
}

/* Operations come by rank, so each member's stay in order. */
static void order_operations(struct graph *graph)
{
	for (uint32_t i = 0; i < graph->count; i++) {
		const struct graph_operation *its = &graph->operations[i];
		if (its->kind == GRAPH_COLLECTIVE) {
			struct graph_group *group = &graph->groups[its->group];
			graph->ordered[group->first[graph_member(group, its->rank) + 1]++] = i;
		}
	}
	for (uint32_t i = 0; i < graph->group_count; i++) {
		const uint32_t *first = graph->groups[i].first;
		for (uint32_t m = 0; m < graph->groups[i].count; m++)
			for (uint32_t k = first[m]; k < first[m + 1]; k++)
				graph->operations[graph->ordered[k]].instance = k - first[m];
	}
}

static int order_collectives(const struct checking *checking)
{
	struct graph *graph = checking->graph;
	uint32_t count = 0;
	for (uint32_t i = 0; i < graph->count; i++)
		count += graph->operations[i].kind == GRAPH_COLLECTIVE;
	graph->ordered = malloc(((size_t)count + 1) * sizeof(*graph->ordered));
	int error = graph->ordered ? count_collectives(checking) : no_memory(checking);
	if (error)
		return error;
	order_operations(graph);
	for (uint32_t i = 0; !error && i < graph->group_count; i++)
		error = compare_members(checking, i);
	return error;
}

static int find_ranks(const struct checking *checking)
{
	struct graph *graph = checking->graph;
	graph->first = calloc((size_t)graph->ranks + 2, sizeof(*graph->first));
	if (!graph->first)
		return no_memory(checking);
	for (uint32_t i = 0; i < graph->count; i++)
		graph->first[graph->operations[i].rank + 1]++;
	for (uint32_t i = 1; i <= graph->ranks; i++)
		graph->first[i] += graph->first[i - 1];
	return 0;
}

int graph_finish(struct graph *graph, const struct graph_names *names, char *why, unsigned why_size)
{
	const struct checking checking = { graph, names, why, why_size };
	int error = check_groups(&checking);
	for (uint32_t i = 0; !error && i < graph->count; i++)
		error = check_operation(&checking, i);
	if (!error)
		error = find_ranks(&checking);
	if (!error)
		error = sort_followers(&checking);
	if (!error)
		error = check_cycles(&checking);
	if (!error)
		error = check_pairs(&checking);
	return error ? error : order_collectives(&checking);
}
