/* Virtual time: a binary heap of events, ties broken by the order in which they were made. */
#include <stdlib.h>
#include "sim.h"

static bool is_before(const struct event *a, const struct event *b)
{
	vb_time d = vb_time_diff(a->at, b->at);
	return d < 0 || (d == 0 && a->sequence < b->sequence);
}

void event_add(vb_time at, enum event_kind kind, void *object)
{
	if (world.event_count == world.event_room) {
		world.event_room = world.event_room ? world.event_room * 2 : 1024;
		world.heap = realloc(world.heap, world.event_room * sizeof(struct event));
	}
	struct event event = { at, world.event_sequence++, kind, object };
	unsigned i = world.event_count++;
	for (unsigned up; i > 0 && is_before(&event, &world.heap[up = (i - 1) / 2]); i = up)
		world.heap[i] = world.heap[up];
	world.heap[i] = event;
}

bool event_next(struct event *event)
{
	if (world.event_count == 0)
		return false;
	*event = world.heap[0];
	struct event last = world.heap[--world.event_count];
	unsigned i = 0;
	for (unsigned down; (down = 2 * i + 1) < world.event_count; i = down) {
		if (down + 1 < world.event_count && is_before(&world.heap[down + 1], &world.heap[down]))
			down++;
		if (!is_before(&world.heap[down], &last))
			break;
		world.heap[i] = world.heap[down];
	}
	world.heap[i] = last;
	return true;
}
