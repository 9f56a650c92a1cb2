/* See max_min.h. Progressive filling: flows of the tightest link get their share of it, and the others share what is
 * left. A link's share never falls as its flows get theirs, so links wait in a heap by shares that may be too low. */
#include "net/max_min.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "net/grow.h"

struct link_share {
	uint64_t free;   /* capacity that no flow has yet */
	uint64_t weight; /* of flows without a rate */
	uint32_t first;  /* of its flows, in `at_links` */
	uint32_t count;
	uint32_t round; /* of max_min_find, to which the rest belongs */
};

struct tight {
	uint64_t share;
	uint32_t link;
};

struct max_min {
	const uint64_t *capacities;
	struct link_share *links;
	uint32_t round;
	uint32_t *used; /* links that flows have */
	uint32_t used_count, used_room;
	uint32_t *at_links; /* flows, link by link */
	uint32_t at_room;
	struct tight *heap;
	uint32_t heap_count, heap_room;
};

struct max_min *max_min_open(const uint64_t *capacities, uint32_t links)
{
	struct max_min *solver = calloc(1, sizeof(*solver));
	if (!solver)
		return NULL;
	*solver = (struct max_min){ .capacities = capacities,
		.links = calloc((size_t)links + 1, sizeof(*solver->links)) };
	if (solver->links)
		return solver;
	free(solver);
	return NULL;
}

void max_min_close(struct max_min *solver)
{
	if (!solver)
		return;
	free(solver->links);
	free(solver->used);
	free(solver->at_links);
	free(solver->heap);
	free(solver);
}

/* ---- Links of these flows ---------------------------------------------------------------------------------------- */

static int use_link(struct max_min *solver, const struct max_min_hop *hop)
{
	struct link_share *link = &solver->links[hop->link];
	assert(hop->weight > 0);
	if (link->round != solver->round) {
		if (!grow_by_one(&solver->used, &solver->used_room, solver->used_count, sizeof(*solver->used)))
			return -ENOMEM;
		solver->used[solver->used_count++] = hop->link;
		*link = (struct link_share){ .free = solver->capacities[hop->link], .round = solver->round };
	}
	link->weight += hop->weight;
	link->count++;
	return 0;
}

static int make_room(struct max_min *solver, uint32_t hops)
{
	if (hops > solver->at_room) {
		uint32_t *larger = realloc(solver->at_links, 2 * (size_t)hops * sizeof(*larger));
		if (!larger)
			return -ENOMEM;
		solver->at_links = larger;
		solver->at_room = 2 * hops;
	}
	if (solver->used_count > solver->heap_room) {
		struct tight *larger = realloc(solver->heap, 2 * (size_t)solver->used_count * sizeof(*larger));
		if (!larger)
			return -ENOMEM;
		solver->heap = larger;
		solver->heap_room = 2 * solver->used_count;
	}
	return 0;
}

static int list_links(struct max_min *solver, struct max_min_flow *const *flows, uint32_t count)
{
	uint32_t hops = 0, first = 0;
	solver->used_count = 0;
	solver->round++;
	for (uint32_t i = 0; i < count; i++) {
		flows[i]->rate = 0;
		hops += flows[i]->hop_count;
		for (uint32_t k = 0; k < flows[i]->hop_count; k++)
			if (use_link(solver, &flows[i]->hops[k]))
				return -ENOMEM;
	}
	if (make_room(solver, hops))
		return -ENOMEM;
	for (uint32_t i = 0; i < solver->used_count; i++) {
		struct link_share *link = &solver->links[solver->used[i]];
		link->first = first;
		first += link->count;
		link->count = 0;
	}
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < flows[i]->hop_count; k++) {
			struct link_share *link = &solver->links[flows[i]->hops[k].link];
			solver->at_links[link->first + link->count++] = i;
		}
	return 0;
}

/* ---- The tightest link ------------------------------------------------------------------------------------------- */

/* Of each flow without a rate. */
static uint64_t share_of(const struct link_share *link)
{
	const uint64_t share = link->free * MAX_MIN_WHOLE / link->weight;
	return share ? share : 1;
}

static bool is_tighter(const struct tight *one, const struct tight *other)
{
	return one->share < other->share || (one->share == other->share && one->link < other->link);
}

static void sink_down(struct max_min *solver, uint32_t at)
{
	const struct tight moved = solver->heap[at];
	for (uint32_t child; (child = 2 * at + 1) < solver->heap_count; at = child) {
		if (child + 1 < solver->heap_count && is_tighter(&solver->heap[child + 1], &solver->heap[child]))
			child++;
		if (!is_tighter(&solver->heap[child], &moved))
			break;
		solver->heap[at] = solver->heap[child];
	}
	solver->heap[at] = moved;
}

static void heap_links(struct max_min *solver)
{
	solver->heap_count = solver->used_count;
	for (uint32_t i = 0; i < solver->used_count; i++)
		solver->heap[i] = (struct tight){ share_of(&solver->links[solver->used[i]]), solver->used[i] };
	for (uint32_t i = solver->heap_count / 2; i-- > 0;)
		sink_down(solver, i);
}

static void drop_first(struct max_min *solver)
{
	solver->heap[0] = solver->heap[--solver->heap_count];
	if (solver->heap_count)
		sink_down(solver, 0);
}

/* False: no flow is without a rate. */
static bool find_tightest(struct max_min *solver, struct tight *tightest)
{
	while (solver->heap_count) {
		const struct link_share *link = &solver->links[solver->heap[0].link];
		if (link->weight == 0) {
			drop_first(solver);
			continue;
		}
		const uint64_t share = share_of(link);
		*tightest = solver->heap[0];
		assert(share >= tightest->share);
		if (share == tightest->share)
			return true;
		solver->heap[0].share = share;
		sink_down(solver, 0);
	}
	return false;
}

/* ---- Rates ------------------------------------------------------------------------------------------------------- */

/* Rounded down, so that a link's share never falls. */
static uint64_t load_of(uint64_t rate, uint32_t weight)
{
	return (uint64_t)((unsigned __int128)rate * weight / MAX_MIN_WHOLE);
}

static void give(struct max_min *solver, struct max_min_flow *flow, struct tight tightest)
{
	const uint64_t rate = flow->rate = tightest.share;
	flow->tightest = tightest.link;
	for (uint32_t k = 0; k < flow->hop_count; k++) {
		struct link_share *link = &solver->links[flow->hops[k].link];
		const uint64_t load = load_of(rate, flow->hops[k].weight);
		link->free -= load < link->free ? load : link->free;
		link->weight -= flow->hops[k].weight;
	}
}

int max_min_find(struct max_min *solver, struct max_min_flow *const *flows, uint32_t count)
{
	struct tight tightest;
	if (list_links(solver, flows, count))
		return -ENOMEM;
	heap_links(solver);
	while (find_tightest(solver, &tightest)) {
		const struct link_share *link = &solver->links[tightest.link];
		for (uint32_t i = 0; i < link->count; i++) {
			struct max_min_flow *flow = flows[solver->at_links[link->first + i]];
			if (flow->rate == 0)
				give(solver, flow, tightest);
		}
	}
	return 0;
}
