/* What is to happen in the hosts by themselves: the fabric calls when it is time. */
#include <stdlib.h>
#include "net/grow.h"
#include "sim.h"

void event_add(vb_time at, enum event_kind kind, void *object)
{
	uint32_t number = world.free_event;
	if (number) {
		world.free_event = world.events[number].next_free;
	} else {
		if (!grow_by_one(&world.events, &world.event_room, ++world.event_count, sizeof(struct event)))
			broken("there is no memory for another event");
		number = world.event_count; /* 0 is none */
	}
	world.events[number] = (struct event){ .kind = kind, .object = object };
	fabric_call(world.fabric, vb_time_diff(at, world.begin), number);
}

struct event event_take(uint32_t number)
{
	struct event event = world.events[number];
	world.events[number].next_free = world.free_event;
	world.free_event = number;
	return event;
}
