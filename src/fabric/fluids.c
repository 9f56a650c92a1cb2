/* See fluids.h. Links know their fluids: those whose rates may change are found from links that have changed. */
#include "fabric/fluids.h"
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "net/grow.h"

#define NEVER ((vb_time)1 << 62)

enum {
	MOST_ROUNDS = 8, /* until acks and rates agree: each brings them nearer by the share of acks in what is sent */
	MOST_TRIES = 8,  /* to find few fluids whose rates change, before all that may are taken */
	ACK_STEPS = 512, /* acks that change by less than this part of a link do not matter to its fluids */
	EVEN = 1024,     /* rates and links that differ by less than this part are as good as equal */
};

typedef unsigned __int128 amount; /* byte-picoseconds per second */

struct fluid_link {
	struct fluid **fluids;
	uint32_t count, room;
	uint64_t acks;      /* bytes per second */
	uint64_t acks_used; /* of these, those that are taken off the capacity */
	uint64_t load;      /* of its fluids */
	bool is_dirty;      /* it is in the list */
	/* Of the round that has seen it. */
	uint32_t round;
	uint32_t found;   /* of its fluids, those whose rates are being found */
	uint64_t others;  /* load of the others */
	uint64_t fresh;   /* load with the rates that were found */
	uint64_t highest; /* of these rates */
	uint64_t tight;   /* of these, the lowest that this link holds down; UINT64_MAX: none */
};

struct due {
	vb_time at;
	struct fluid *fluid;
};

struct list {
	uint32_t *links;
	uint32_t count, room;
};

struct fluids {
	const uint64_t *capacities;
	uint64_t *left_by_acks; /* of these */
	uint64_t *left;         /* of these by fluids whose rates stay: for the solver */
	struct max_min *solver;
	struct fluid_link *links;
	uint32_t link_count;
	struct due *heap;
	uint32_t heap_count, heap_room;
	struct list dirty, turn; /* turn: those that were dirty, while rates are found */
	struct list reached;     /* links of fluids whose rates are being found */
	struct max_min_flow **found;
	uint32_t found_count, found_room;
	uint32_t round;
	uint64_t begun;
	bool lacks_memory;
};

struct fluids *fluids_open(const uint64_t *capacities, uint32_t links)
{
	struct fluids *fluids = calloc(1, sizeof(*fluids));
	if (!fluids)
		return NULL;
	fluids->capacities = capacities;
	fluids->link_count = links;
	fluids->links = calloc((size_t)links + 1, sizeof(*fluids->links));
	fluids->left_by_acks = malloc(((size_t)links + 1) * sizeof(*fluids->left_by_acks));
	fluids->left = calloc((size_t)links + 1, sizeof(*fluids->left));
	if (fluids->left_by_acks && fluids->left) {
		memcpy(fluids->left_by_acks, capacities, links * sizeof(*capacities));
		fluids->solver = max_min_open(fluids->left, links);
	}
	if (fluids->links && fluids->solver)
		return fluids;
	fluids_close(fluids);
	return NULL;
}

void fluids_close(struct fluids *fluids)
{
	if (!fluids)
		return;
	for (uint32_t i = 0; fluids->links && i < fluids->link_count; i++)
		free(fluids->links[i].fluids);
	max_min_close(fluids->solver);
	free(fluids->links);
	free(fluids->left_by_acks);
	free(fluids->left);
	free(fluids->heap);
	free(fluids->dirty.links);
	free(fluids->turn.links);
	free(fluids->reached.links);
	free(fluids->found);
	free(fluids);
}

/* ---- What is left of a fluid ------------------------------------------------------------------------------------- */

static amount left_of(const struct fluid *fluid)
{
	return (amount)fluid->left[1] << 64 | fluid->left[0];
}

static void set_left(struct fluid *fluid, amount left)
{
	fluid->left[0] = (uint64_t)left;
	fluid->left[1] = (uint64_t)(left >> 64);
}

static vb_time time_of(amount left, uint64_t rate)
{
	const amount takes = (left + rate - 1) / rate;
	return takes < (amount)NEVER ? (vb_time)takes : NEVER;
}

vb_time fluid_time(uint64_t bytes, uint64_t rate)
{
	return time_of((amount)bytes * (uint64_t)VB_S, rate);
}

static void advance(struct fluid *fluid, vb_time now)
{
	const amount gone = (amount)fluid->rate * (uint64_t)(now - fluid->at), left = left_of(fluid);
	assert(now >= fluid->at);
	set_left(fluid, gone < left ? left - gone : 0);
	fluid->at = now;
}

/* ---- Who has left first ------------------------------------------------------------------------------------------ */

static bool is_before(const struct due *one, const struct due *other)
{
	return one->at != other->at ? one->at < other->at : one->fluid->order < other->fluid->order;
}

static void put(struct fluids *fluids, uint32_t at, struct due due)
{
	fluids->heap[at] = due;
	due.fluid->place = at;
}

static void rise(struct fluids *fluids, uint32_t at, struct due due)
{
	for (uint32_t up; at > 0 && is_before(&due, &fluids->heap[up = (at - 1) / 2]); at = up)
		put(fluids, at, fluids->heap[up]);
	put(fluids, at, due);
}

static void sink(struct fluids *fluids, uint32_t at, struct due due)
{
	for (uint32_t child; (child = 2 * at + 1) < fluids->heap_count; at = child) {
		if (child + 1 < fluids->heap_count && is_before(&fluids->heap[child + 1], &fluids->heap[child]))
			child++;
		if (!is_before(&fluids->heap[child], &due))
			break;
		put(fluids, at, fluids->heap[child]);
	}
	put(fluids, at, due);
}

static void move(struct fluids *fluids, struct fluid *fluid, vb_time at)
{
	const struct due due = { at, fluid };
	if (is_before(&due, &fluids->heap[fluid->place]))
		rise(fluids, fluid->place, due);
	else
		sink(fluids, fluid->place, due);
}

static void take_out(struct fluids *fluids, uint32_t at)
{
	const struct due last = fluids->heap[--fluids->heap_count];
	if (at == fluids->heap_count)
		return;
	if (is_before(&last, &fluids->heap[at]))
		rise(fluids, at, last);
	else
		sink(fluids, at, last);
}

vb_time fluids_next(const struct fluids *fluids)
{
	return fluids->heap_count ? fluids->heap[0].at : -1;
}

/* ---- Links ------------------------------------------------------------------------------------------------------- */

static void append(struct fluids *fluids, struct list *list, uint32_t link)
{
	if (grow_by_one(&list->links, &list->room, list->count, sizeof(*list->links)))
		list->links[list->count++] = link;
	else
		fluids->lacks_memory = true;
}

static void mark_dirty(struct fluids *fluids, uint32_t number)
{
	struct fluid_link *link = &fluids->links[number];
	if (link->is_dirty || link->count == 0)
		return;
	link->is_dirty = true;
	append(fluids, &fluids->dirty, number);
}

bool fluids_lack_memory(const struct fluids *fluids)
{
	return fluids->lacks_memory;
}

bool fluids_have_changed(const struct fluids *fluids)
{
	return fluids->dirty.count > 0;
}

static uint64_t load_of(uint64_t rate, uint32_t weight)
{
	return (uint64_t)((amount)rate * weight / MAX_MIN_WHOLE);
}

static bool is_step(uint64_t one, uint64_t other, uint64_t capacity)
{
	return (one < other ? other - one : one - other) > capacity / ACK_STEPS;
}

/* So many bytes per second of acks come by the fluid's links back from now on. */
static void count_acks(struct fluids *fluids, struct fluid *fluid, uint64_t acks)
{
	for (uint32_t i = 0; i < fluid->back_count && acks != fluid->acks; i++) {
		const struct max_min_hop *hop = &fluid->back[i];
		struct fluid_link *link = &fluids->links[hop->link];
		link->acks += load_of(acks, hop->weight) - load_of(fluid->acks, hop->weight);
		if (link->count && is_step(link->acks, link->acks_used, fluids->capacities[hop->link]))
			mark_dirty(fluids, hop->link);
	}
	fluid->acks = acks;
}

void fluids_set_acks(struct fluids *fluids, struct fluid *fluid, bool sends_acks)
{
	fluid->sends_acks = sends_acks;
	count_acks(fluids, fluid, sends_acks ? load_of(fluid->rate, fluid->ack_share) : 0);
}

static void leave(struct fluids *fluids, const struct fluid *fluid, const struct max_min_hop *hop)
{
	struct fluid_link *link = &fluids->links[hop->link];
	uint32_t i = 0;
	link->load -= load_of(fluid->rate, hop->weight);
	while (link->fluids[i] != fluid)
		i++;
	assert(i < link->count);
	link->fluids[i] = link->fluids[--link->count];
}

static void join(struct fluids *fluids, struct fluid *fluid, uint32_t number)
{
	struct fluid_link *link = &fluids->links[number];
	if (grow_by_one(&link->fluids, &link->room, link->count, sizeof(struct fluid *)))
		link->fluids[link->count++] = fluid;
	else
		fluids->lacks_memory = true;
	mark_dirty(fluids, number);
}

void fluids_go_on(struct fluids *fluids, struct fluid *fluid, vb_time now)
{
	assert(fluid->share.hop_count > 0);
	if (!grow_by_one(&fluids->heap, &fluids->heap_room, fluids->heap_count, sizeof(*fluids->heap))) {
		fluids->lacks_memory = true;
		return;
	}
	for (uint32_t i = 0; i < fluid->share.hop_count; i++)
		join(fluids, fluid, fluid->share.hops[i].link);
	fluid->rate = fluid->acks = 0;
	fluid->at = now;
	fluid->order = fluids->begun++;
	rise(fluids, fluids->heap_count++, (struct due){ NEVER, fluid });
}

void fluids_add(struct fluids *fluids, struct fluid *fluid, uint64_t bytes, vb_time now)
{
	assert(bytes > 0);
	set_left(fluid, (amount)bytes * (uint64_t)VB_S);
	fluids_go_on(fluids, fluid, now);
}

static void take(struct fluids *fluids, struct fluid *fluid)
{
	take_out(fluids, fluid->place);
	for (uint32_t i = 0; i < fluid->share.hop_count; i++) {
		leave(fluids, fluid, &fluid->share.hops[i]);
		mark_dirty(fluids, fluid->share.hops[i].link);
	}
}

struct fluid *fluids_take(struct fluids *fluids, vb_time now)
{
	if (fluids->heap_count == 0 || fluids->heap[0].at > now || fluids->lacks_memory)
		return NULL;
	struct fluid *fluid = fluids->heap[0].fluid;
	take(fluids, fluid);
	return fluid;
}

vb_time fluids_stop(struct fluids *fluids, struct fluid *fluid, uint64_t rate, vb_time now)
{
	if (fluids->lacks_memory)
		return 0;
	advance(fluid, now);
	fluids_set_acks(fluids, fluid, false);
	take(fluids, fluid);
	return time_of(left_of(fluid), rate);
}

/* ---- Rates ------------------------------------------------------------------------------------------------------- */

static bool is_more(uint64_t one, uint64_t other)
{
	return one > other + other / EVEN + 1;
}

static void reach_hop(struct fluids *fluids, const struct max_min_hop *hop, uint64_t rate)
{
	struct fluid_link *link = &fluids->links[hop->link];
	if (link->round != fluids->round) {
		link->round = fluids->round;
		link->found = 0;
		link->others = link->load;
		append(fluids, &fluids->reached, hop->link);
	}
	link->others -= load_of(rate, hop->weight);
	link->found++;
}

/* Its rate is to be found. */
static void reach(struct fluids *fluids, struct fluid *fluid)
{
	if (fluid->round == fluids->round)
		return;
	fluid->round = fluids->round;
	if (!grow_by_one(&fluids->found, &fluids->found_room, fluids->found_count, sizeof(struct max_min_flow *))) {
		fluids->lacks_memory = true;
		return;
	}
	fluids->found[fluids->found_count++] = &fluid->share;
	for (uint32_t i = 0; i < fluid->share.hop_count; i++)
		reach_hop(fluids, &fluid->share.hops[i], fluid->rate);
}

static void apply(struct fluids *fluids, struct fluid *fluid, vb_time now)
{
	if (fluid->share.rate == fluid->rate)
		return; /* its end stays */
	advance(fluid, now);
	for (uint32_t i = 0; i < fluid->share.hop_count; i++) {
		const struct max_min_hop *hop = &fluid->share.hops[i];
		fluids->links[hop->link].load +=
			load_of(fluid->share.rate, hop->weight) - load_of(fluid->rate, hop->weight);
	}
	fluid->rate = fluid->share.rate;
	move(fluids, fluid, now + time_of(left_of(fluid), fluid->rate));
	if (fluid->sends_acks)
		count_acks(fluids, fluid, load_of(fluid->rate, fluid->ack_share));
}

static bool is_alone(const struct fluids *fluids, const struct fluid *fluid)
{
	for (uint32_t i = 0; i < fluid->share.hop_count; i++)
		if (fluids->links[fluid->share.hops[i].link].count > 1)
			return false;
	return true;
}

/* As max_min_find finds it. */
static void find_alone(const struct fluids *fluids, struct max_min_flow *flow)
{
	flow->rate = UINT64_MAX;
	for (uint32_t i = 0; i < flow->hop_count; i++) {
		const uint32_t link = flow->hops[i].link;
		const uint64_t its = fluids->left_by_acks[link] * MAX_MIN_WHOLE / flow->hops[i].weight;
		flow->tightest = its < flow->rate ? link : flow->tightest;
		flow->rate = its < flow->rate ? its : flow->rate;
	}
	flow->rate += flow->rate == 0;
}

/* Of a link that has changed: what begins, what this link holds down, and all where it is full beyond its capacity. */
static void reach_changed(struct fluids *fluids, uint32_t number, vb_time now)
{
	const struct fluid_link *link = &fluids->links[number];
	const bool is_too_full = is_more(link->load, fluids->left_by_acks[number]);
	for (uint32_t i = 0; i < link->count; i++) {
		struct fluid *fluid = link->fluids[i];
		if (fluid->rate && fluid->share.tightest != number && !is_too_full)
			continue;
		if (!is_alone(fluids, fluid)) {
			reach(fluids, fluid);
		} else {
			find_alone(fluids, &fluid->share);
			apply(fluids, fluid, now);
		}
	}
}

static void solve(struct fluids *fluids)
{
	for (uint32_t i = 0; i < fluids->reached.count; i++) {
		const uint32_t number = fluids->reached.links[i];
		const struct fluid_link *link = &fluids->links[number];
		const uint64_t all = fluids->left_by_acks[number];
		fluids->left[number] = link->others < all ? all - link->others : 1;
	}
	if (fluids->lacks_memory || max_min_find(fluids->solver, fluids->found, fluids->found_count))
		fluids->lacks_memory = true;
}

static void sum_up(struct fluids *fluids)
{
	for (uint32_t i = 0; i < fluids->reached.count; i++) {
		struct fluid_link *link = &fluids->links[fluids->reached.links[i]];
		link->fresh = link->others;
		link->highest = 0;
		link->tight = UINT64_MAX;
	}
	for (uint32_t i = 0; i < fluids->found_count; i++) {
		const struct max_min_flow *flow = fluids->found[i];
		for (uint32_t k = 0; k < flow->hop_count; k++) {
			struct fluid_link *link = &fluids->links[flow->hops[k].link];
			link->fresh += load_of(flow->rate, flow->hops[k].weight);
			link->highest = flow->rate > link->highest ? flow->rate : link->highest;
		}
		struct fluid_link *tightest = &fluids->links[flow->tightest];
		tightest->tight = flow->rate < tightest->tight ? flow->rate : tightest->tight;
	}
}

/* Whether one whose rate was to stay has more than this link leaves to others, or could have more itself. */
static bool must_change(const struct fluids *fluids, uint32_t number, const struct fluid *fluid)
{
	const struct fluid_link *link = &fluids->links[number];
	if (link->tight != UINT64_MAX && is_more(fluid->rate, link->tight))
		return true;
	return fluid->share.tightest == number &&
	       (is_more(fluids->left_by_acks[number], link->fresh + 4ull * link->count) ||
		       is_more(link->highest, fluid->rate));
}

/* False: no others must change. */
static bool reach_others(struct fluids *fluids, bool is_last)
{
	const uint32_t before = fluids->found_count;
	for (uint32_t i = 0; i < fluids->reached.count; i++) {
		const uint32_t number = fluids->reached.links[i];
		const struct fluid_link *link = &fluids->links[number];
		for (uint32_t k = 0; k < link->count && link->found < link->count; k++) {
			struct fluid *fluid = link->fluids[k];
			if (fluid->round != fluids->round && (is_last || must_change(fluids, number, fluid)))
				reach(fluids, fluid);
		}
	}
	return fluids->found_count > before;
}

/* Few rates change in most cases: others stay as long as each fluid has a link that is full, where none has more. */
static void find_reached(struct fluids *fluids, vb_time now)
{
	bool is_more_to_do = fluids->found_count > 0;
	for (unsigned tries = 0; is_more_to_do && !fluids->lacks_memory; tries++) {
		solve(fluids);
		sum_up(fluids);
		is_more_to_do = tries < MOST_TRIES && reach_others(fluids, tries + 1 == MOST_TRIES);
	}
	for (uint32_t i = 0; i < fluids->found_count && !fluids->lacks_memory; i++)
		apply(fluids, (struct fluid *)fluids->found[i], now);
}

static void take_turn(struct fluids *fluids)
{
	const struct list before = fluids->turn;
	fluids->turn = fluids->dirty;
	fluids->dirty = before;
	fluids->dirty.count = fluids->reached.count = fluids->found_count = 0;
	fluids->round++;
	for (uint32_t i = 0; i < fluids->turn.count; i++) {
		const uint32_t number = fluids->turn.links[i];
		struct fluid_link *link = &fluids->links[number];
		const uint64_t most = fluids->capacities[number] / 4 * 3;
		link->is_dirty = false;
		link->acks_used = link->acks;
		fluids->left_by_acks[number] = fluids->capacities[number] - (link->acks < most ? link->acks : most);
	}
}

void fluids_find_rates(struct fluids *fluids, vb_time now)
{
	for (unsigned round = 0; round < MOST_ROUNDS && fluids->dirty.count; round++) {
		take_turn(fluids);
		for (uint32_t i = 0; i < fluids->turn.count; i++)
			reach_changed(fluids, fluids->turn.links[i], now);
		find_reached(fluids, now);
	}
	take_turn(fluids);
}
