/* Timers: a 4-ary heap of those that are armed, sorted by key.
 * Holds: a timer's key is never later than its deadline, so the top of the heap may say too early, never too late. A
 * timer that comes up before its deadline goes back down with the deadline as its key; a cancelled one drops out. Times
 * wrap. If there was no call for months, old and new keys may stand in any order until the old ones have come up. */
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "base/timers.h"

enum { ARITY = 4, FIRST_ROOM = 2 };

void vb_timers_init(struct vb_timers *timers)
{
	*timers = (struct vb_timers){ 0 };
}

void vb_timers_deinit(struct vb_timers *timers)
{
	free(timers->heap);
	*timers = (struct vb_timers){ 0 };
}

int vb_timers_reserve(struct vb_timers *timers, uint32_t room)
{
	if (room <= timers->room)
		return 0;
	uint32_t wanted = timers->room ? timers->room : FIRST_ROOM;
	while (wanted < room && wanted <= INT32_MAX / 2)
		wanted *= 2;
	if (wanted < room)
		return -ENOMEM;
	struct vb_timer **heap = realloc(timers->heap, wanted * sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	timers->heap = heap;
	timers->room = wanted;
	return 0;
}

void vb_timer_init(struct vb_timer *timer)
{
	*timer = (struct vb_timer){ .index = -1 };
}

static void put(struct vb_timers *timers, uint32_t at, struct vb_timer *timer)
{
	timers->heap[at] = timer;
	timer->index = (int32_t)at;
	if (at == 0)
		timers->first = timer->key;
}

/* timer belongs at the free place `at` or above it. */
static void sift_up(struct vb_timers *timers, uint32_t at, struct vb_timer *timer)
{
	while (at > 0) {
		uint32_t parent = (at - 1) / ARITY;
		if (!vb_time_before(timer->key, timers->heap[parent]->key))
			break;
		put(timers, at, timers->heap[parent]);
		at = parent;
	}
	put(timers, at, timer);
}

static uint32_t earliest_child(const struct vb_timers *timers, uint32_t first)
{
	uint32_t end = first + ARITY < timers->count ? first + ARITY : timers->count, best = first;
	for (uint32_t child = first + 1; child < end; child++)
		if (vb_time_before(timers->heap[child]->key, timers->heap[best]->key))
			best = child;
	return best;
}

/* timer belongs at the free place `at` or below it. */
static void sift_down(struct vb_timers *timers, uint32_t at, struct vb_timer *timer)
{
	for (uint32_t first; (first = at * ARITY + 1) < timers->count;) {
		uint32_t child = earliest_child(timers, first);
		if (!vb_time_before(timers->heap[child]->key, timer->key))
			break;
		put(timers, at, timers->heap[child]);
		at = child;
	}
	put(timers, at, timer);
}

void vb_timer_set(struct vb_timers *timers, struct vb_timer *timer, vb_time at)
{
	timer->deadline = (struct vb_deadline){ .at = at, .is_set = true };
	if (timer->index < 0) {
		assert(timers->count < timers->room);
		timer->key = at;
		sift_up(timers, timers->count++, timer);
	} else if (vb_time_before(at, timer->key)) {
		timer->key = at;
		sift_up(timers, (uint32_t)timer->index, timer);
	}
}

void vb_timer_cancel(struct vb_timer *timer)
{
	timer->deadline.is_set = false;
}

static void take_out(struct vb_timers *timers, struct vb_timer *timer)
{
	uint32_t at = (uint32_t)timer->index;
	assert(at < timers->count && timers->heap[at] == timer);
	struct vb_timer *last = timers->heap[--timers->count];
	timer->index = -1;
	if (last == timer)
		return;
	if (vb_time_before(last->key, timer->key))
		sift_up(timers, at, last);
	else
		sift_down(timers, at, last);
}

void vb_timer_remove(struct vb_timers *timers, struct vb_timer *timer)
{
	timer->deadline.is_set = false;
	if (timer->index >= 0)
		take_out(timers, timer);
}

void vb_timer_replace(struct vb_timers *timers, struct vb_timer *timer, struct vb_timer *heir)
{
	*heir = *timer;
	if (timer->index >= 0)
		timers->heap[timer->index] = heir;
	vb_timer_init(timer);
}

struct vb_timer *vb_timers_expire(struct vb_timers *timers, vb_time now)
{
	while (timers->count > 0 && vb_time_is_due(timers->first, now)) {
		struct vb_timer *timer = timers->heap[0];
		if (!timer->deadline.is_set) {
			take_out(timers, timer);
		} else if (!vb_time_is_due(timer->deadline.at, now)) {
			timer->key = timer->deadline.at;
			sift_down(timers, 0, timer);
		} else {
			timer->deadline.is_set = false;
			take_out(timers, timer);
			return timer;
		}
	}
	return NULL;
}

void vb_timers_check(const struct vb_timers *timers)
{
	assert(timers->count <= timers->room);
	assert(timers->count == 0 || timers->first == timers->heap[0]->key);
	for (uint32_t at = 0; at < timers->count; at++) {
		const struct vb_timer *timer = timers->heap[at];
		assert(timer->index == (int32_t)at);
		assert(at == 0 || !vb_time_before(timer->key, timers->heap[(at - 1) / ARITY]->key));
		assert(!timer->deadline.is_set || !vb_time_before(timer->deadline.at, timer->key));
	}
}
