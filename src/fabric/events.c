/* See events.h. */
#include "fabric/events.h"

#include <errno.h>
#include "base/invariant.h"
#include "net/grow.h"

enum { DAYS = 1 << 14, NO_NODE = -1 };

static inline bool is_before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->key < b->key;
}

int events_init(struct events *events, int day_shift)
{
	*events = (struct events){ .day_shift = day_shift, .free_node = (uint32_t)NO_NODE, .ahead = (uint32_t)NO_NODE };
	events->days = malloc(DAYS * sizeof(*events->days));
	events->is_used = calloc(DAYS / 64, sizeof(*events->is_used));
	if (!events->days || !events->is_used) {
		events_deinit(events);
		return -ENOMEM;
	}
	memset(events->days, 0xFF, DAYS * sizeof(*events->days));
	return 0;
}

void events_deinit(struct events *events)
{
	free(events->days);
	free(events->is_used);
	free(events->today);
	free(events->nodes);
	free(events->beyond);
	*events = (struct events){ 0 };
}

/* ---- Today ------------------------------------------------------------------------------------------------------- */

/* Most events go near the end, as they are soon. */
static void add_today(struct events *events, const struct event *event)
{
	if (!grow_by_one(&events->today, &events->today_room, events->today_count, sizeof(*event))) {
		events->is_out_of_memory = true;
		return;
	}
	struct event *today = events->today;
	uint32_t at = events->today_count++;
	for (; at > 0 && is_before(&today[at - 1], event); at--)
		today[at] = today[at - 1];
	today[at] = *event;
}

/* A Shell sort with Ciura's gaps: a day has few events, but all flows may begin at one moment. */
static void sort_today(struct events *events)
{
	static const uint32_t gaps[] = { 1750, 701, 301, 132, 57, 23, 10, 4, 1 };
	struct event *today = events->today;
	for (unsigned i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++)
		for (uint32_t gap = gaps[i], k = gap; k < events->today_count; k++) {
			struct event event = today[k];
			uint32_t at = k;
			for (; at >= gap && is_before(&today[at - gap], &event); at -= gap)
				today[at] = today[at - gap];
			today[at] = event;
		}
}

/* ---- Beyond the year --------------------------------------------------------------------------------------------- */

static void add_beyond(struct events *events, const struct event *event)
{
	if (!grow_by_one(&events->beyond, &events->beyond_room, events->beyond_count, sizeof(*event))) {
		events->is_out_of_memory = true;
		return;
	}
	struct event *heap = events->beyond;
	uint32_t at = events->beyond_count++;
	for (uint32_t up; at > 0 && is_before(event, &heap[up = (at - 1) / 4]); at = up)
		heap[at] = heap[up];
	heap[at] = *event;
}

static struct event take_beyond(struct events *events)
{
	struct event *heap = events->beyond, first = heap[0], last = heap[--events->beyond_count];
	assert(events->beyond_count < events->beyond_room);
	uint32_t at = 0, count = events->beyond_count;
	for (uint32_t child; (child = at * 4 + 1) < count;) {
		uint32_t best = child, end = child + 4 < count ? child + 4 : count;
		while (++child < end)
			if (is_before(&heap[child], &heap[best]))
				best = child;
		if (!is_before(&heap[best], &last))
			break;
		heap[at] = heap[best];
		at = best;
	}
	heap[at] = last;
	return first;
}

/* ---- The year ---------------------------------------------------------------------------------------------------- */

static uint64_t day_of(const struct events *events, vb_time at)
{
	return (uint64_t)at >> events->day_shift;
}

static void add_to_day(struct events *events, uint64_t day, const struct event *event)
{
	uint32_t node = events->free_node, place = day % DAYS;
	assert(day - events->day < DAYS);
	if (node != (uint32_t)NO_NODE) {
		events->free_node = events->nodes[node].next;
	} else {
		if (!grow_by_one(&events->nodes, &events->node_room, events->node_count, sizeof(*events->nodes))) {
			events->is_out_of_memory = true;
			return;
		}
		node = events->node_count++;
	}
	events->nodes[node] = (struct event_node){ *event, events->days[place] };
	events->days[place] = node;
	events->is_used[place / 64] |= 1ull << place % 64;
}

void events_add(struct events *events, vb_time at, uint64_t key)
{
	struct event event = { at, key };
	uint64_t day = day_of(events, at);
	assert(at >= 0);
	events->count++;
	if (day <= events->day)
		add_today(events, &event);
	else if (day - events->day < DAYS)
		add_to_day(events, day, &event);
	else
		add_beyond(events, &event);
}

/* The first day after today with an event; false: the rest of the year has none. */
static bool find_day(const struct events *events, uint64_t *found)
{
	uint64_t first = (events->day + 1) % DAYS;
	for (uint64_t i = 0; i <= DAYS / 64; i++) {
		uint64_t word = (first / 64 + i) % (DAYS / 64), bits = events->is_used[word];
		if (i == 0)
			bits &= ~0ull << first % 64;
		else if (i == DAYS / 64)
			bits &= ~(~0ull << first % 64);
		if (bits) {
			uint64_t place = word * 64 + (uint64_t)__builtin_ctzll(bits);
			*found = events->day + 1 + (place - first) % DAYS;
			return true;
		}
	}
	return false;
}

static void look_at(struct events *events, uint32_t node)
{
	events->ahead = node;
	if (node != (uint32_t)NO_NODE)
		__builtin_prefetch(&events->nodes[node], 1);
}

static void look_ahead(struct events *events)
{
	uint64_t day;
	look_at(events, find_day(events, &day) ? events->days[day % DAYS] : (uint32_t)NO_NODE);
}

/* Begins the next day that has events, and moves events that are now within the year into it. */
static bool begin_day(struct events *events)
{
	uint64_t day;
	assert(events->today_count == 0);
	if (!find_day(events, &day)) {
		if (events->beyond_count == 0)
			return false;
		day = day_of(events, events->beyond[0].at);
	}
	assert(day > events->day);
	events->day = day;
	uint32_t place = day % DAYS;
	for (uint32_t node = events->days[place], next; node != (uint32_t)NO_NODE; node = next) {
		if (!grow_by_one(&events->today, &events->today_room, events->today_count, sizeof(*events->today))) {
			events->is_out_of_memory = true;
			return false;
		}
		next = events->nodes[node].next;
		events->today[events->today_count++] = events->nodes[node].event;
		events->nodes[node].next = events->free_node;
		events->free_node = node;
	}
	events->days[place] = (uint32_t)NO_NODE;
	events->is_used[place / 64] &= ~(1ull << place % 64);
	sort_today(events);
	while (events->beyond_count > 0 && day_of(events, events->beyond[0].at) < day + DAYS) {
		struct event event = take_beyond(events);
		events->count--;
		events_add(events, event.at, event.key);
	}
	look_ahead(events);
	return true;
}

bool events_peek(struct events *events, vb_time *at)
{
	while (events->today_count == 0)
		if (!begin_day(events))
			return false;
	*at = events->today[events->today_count - 1].at;
	return true;
}

bool events_next(struct events *events, vb_time until, struct event *event)
{
	vb_time at;
	if (!events_peek(events, &at) || at >= until)
		return false;
	*event = events->today[--events->today_count];
	events->count--;
	if (events->ahead != (uint32_t)NO_NODE)
		look_at(events, events->nodes[events->ahead].next);
	return true;
}
