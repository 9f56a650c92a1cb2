/* The hash table doubles when it holds as many nodes as buckets; chains stay about one long. The heap is binary. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "cm/table.h"

enum { FIRST_BUCKETS = 64, MAX_BUCKETS = 1 << 24, FIRST_TIMERS = 64 };

int vb_cm_table_init(struct vb_cm_table *table)
{
	*table = (struct vb_cm_table){ .room = FIRST_BUCKETS };
	table->buckets = calloc(FIRST_BUCKETS, sizeof(*table->buckets));
	return table->buckets ? 0 : -ENOMEM;
}

void vb_cm_table_deinit(struct vb_cm_table *table)
{
	free(table->buckets);
	*table = (struct vb_cm_table){ 0 };
}

static struct vb_cm_node **bucket_of(const struct vb_cm_table *table, uint64_t hash)
{
	return &table->buckets[hash & (table->room - 1)];
}

static void put(struct vb_cm_table *table, struct vb_cm_node *node)
{
	struct vb_cm_node **bucket = bucket_of(table, node->hash);
	node->next = *bucket;
	*bucket = node;
}

static void grow(struct vb_cm_table *table)
{
	struct vb_cm_table old = *table;
	struct vb_cm_node **buckets = calloc((size_t)old.room * 2, sizeof(*buckets));
	if (!buckets)
		return;
	table->buckets = buckets;
	table->room *= 2;
	for (uint32_t i = 0; i < old.room; i++) {
		for (struct vb_cm_node *node = old.buckets[i], *next; node; node = next) {
			next = node->next;
			put(table, node);
		}
	}
	free(old.buckets);
}

void vb_cm_table_add(struct vb_cm_table *table, struct vb_cm_node *node, uint64_t hash)
{
	assert(!node->is_linked);
	if (table->count >= table->room && table->room < MAX_BUCKETS)
		grow(table);
	node->hash = hash;
	node->is_linked = true;
	put(table, node);
	table->count++;
}

void vb_cm_table_remove(struct vb_cm_table *table, struct vb_cm_node *node)
{
	if (!node->is_linked)
		return;
	struct vb_cm_node **at = bucket_of(table, node->hash);
	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	node->is_linked = false;
	table->count--;
}

static struct vb_cm_node *first_of(struct vb_cm_node *node, uint64_t hash)
{
	while (node && node->hash != hash)
		node = node->next;
	return node;
}

struct vb_cm_node *vb_cm_table_find(const struct vb_cm_table *table, uint64_t hash)
{
	return first_of(*bucket_of(table, hash), hash);
}

struct vb_cm_node *vb_cm_table_next(const struct vb_cm_node *node)
{
	return first_of(node->next, node->hash);
}

/* ---- Timers ----------------------------------------------------------------------------------------------------- */

void vb_cm_timers_deinit(struct vb_cm_timers *timers)
{
	free(timers->heap);
	*timers = (struct vb_cm_timers){ 0 };
}

int vb_cm_timers_reserve(struct vb_cm_timers *timers, uint32_t room)
{
	if (room <= timers->room)
		return 0;
	uint32_t wanted = timers->room ? timers->room * 2 : FIRST_TIMERS;
	struct vb_cm_timer **heap = realloc(timers->heap, wanted * sizeof(struct vb_cm_timer *));
	if (!heap)
		return -ENOMEM;
	assert(room <= wanted);
	timers->heap = heap;
	timers->room = wanted;
	return 0;
}

void vb_cm_timer_init(struct vb_cm_timer *timer)
{
	*timer = (struct vb_cm_timer){ .index = -1 };
}

static void place(struct vb_cm_timers *timers, uint32_t at, struct vb_cm_timer *timer)
{
	timers->heap[at] = timer;
	timer->index = (int32_t)at;
}

/* The timer belongs at the free place `at`, above it or below it. */
static void sift(struct vb_cm_timers *timers, uint32_t at, struct vb_cm_timer *timer)
{
	for (uint32_t up; at > 0 && vb_time_before(timer->at, timers->heap[up = (at - 1) / 2]->at); at = up)
		place(timers, at, timers->heap[up]);
	for (uint32_t down; (down = 2 * at + 1) < timers->count; at = down) {
		if (down + 1 < timers->count && vb_time_before(timers->heap[down + 1]->at, timers->heap[down]->at))
			down++;
		if (!vb_time_before(timers->heap[down]->at, timer->at))
			break;
		place(timers, at, timers->heap[down]);
	}
	place(timers, at, timer);
}

void vb_cm_timer_set(struct vb_cm_timers *timers, struct vb_cm_timer *timer, vb_time at)
{
	timer->at = at;
	if (timer->index < 0) {
		assert(timers->count < timers->room);
		sift(timers, timers->count++, timer);
	} else {
		sift(timers, (uint32_t)timer->index, timer);
	}
}

void vb_cm_timer_cancel(struct vb_cm_timers *timers, struct vb_cm_timer *timer)
{
	if (timer->index < 0)
		return;
	struct vb_cm_timer *last = timers->heap[--timers->count];
	if (last != timer)
		sift(timers, (uint32_t)timer->index, last);
	timer->index = -1;
}

struct vb_cm_timer *vb_cm_timers_expire(struct vb_cm_timers *timers, vb_time now)
{
	if (timers->count == 0 || !vb_time_is_due(timers->heap[0]->at, now))
		return NULL;
	struct vb_cm_timer *timer = timers->heap[0];
	vb_cm_timer_cancel(timers, timer);
	return timer;
}

struct vb_deadline vb_cm_timers_next(const struct vb_cm_timers *timers)
{
	if (timers->count == 0)
		return (struct vb_deadline){ .is_set = false };
	return (struct vb_deadline){ .at = timers->heap[0]->at, .is_set = true };
}
