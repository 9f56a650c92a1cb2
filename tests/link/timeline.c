/* See timeline.h. */
#include "timeline.h"

#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"

int link_timeline_init(struct link_timeline *timeline, uint32_t room, size_t packet_bytes)
{
	*timeline = (struct link_timeline){ .room = room, .packet_bytes = packet_bytes };
	timeline->heap = calloc(room, sizeof(struct link_packet *));
	return timeline->heap ? 0 : -ENOMEM;
}

void link_timeline_deinit(struct link_timeline *timeline)
{
	while (timeline->count)
		free(timeline->heap[--timeline->count]);
	while (timeline->spare) {
		struct link_packet *packet = timeline->spare;
		timeline->spare = packet->next;
		free(packet);
	}
	free(timeline->heap);
}

struct link_packet *link_timeline_new(struct link_timeline *timeline)
{
	struct link_packet *packet = timeline->spare;

	if (packet) {
		timeline->spare = packet->next;
		return packet;
	}
	if (timeline->made == timeline->room)
		return NULL;
	packet = malloc(sizeof(*packet) + timeline->packet_bytes);
	timeline->made += packet != NULL;
	return packet;
}

void link_timeline_return(struct link_timeline *timeline, struct link_packet *packet)
{
	packet->next = timeline->spare;
	timeline->spare = packet;
}

static bool is_before(const struct link_packet *a, const struct link_packet *b)
{
	return a->due == b->due ? a->number < b->number : vb_time_before(a->due, b->due);
}

void link_timeline_schedule(struct link_timeline *timeline, struct link_packet *packet, vb_time due)
{
	uint32_t at = timeline->count++;

	assert(timeline->count <= timeline->room);
	packet->due = due;
	packet->number = timeline->next_number++;
	for (; at && is_before(packet, timeline->heap[(at - 1) / 2]); at = (at - 1) / 2)
		timeline->heap[at] = timeline->heap[(at - 1) / 2];
	timeline->heap[at] = packet;
}

static void put_from_top(struct link_timeline *timeline, struct link_packet *packet)
{
	struct link_packet **heap = timeline->heap;
	uint32_t at = 0;

	for (uint32_t child = 1; child < timeline->count; child = 2 * at + 1) {
		if (child + 1 < timeline->count && is_before(heap[child + 1], heap[child]))
			child++;
		if (!is_before(heap[child], packet))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = packet;
}

struct link_packet *link_timeline_take(struct link_timeline *timeline, vb_time now)
{
	if (!timeline->count || vb_time_before(now, timeline->heap[0]->due))
		return NULL;
	struct link_packet *packet = timeline->heap[0];
	if (--timeline->count)
		put_from_top(timeline, timeline->heap[timeline->count]);
	return packet;
}

struct vb_deadline link_timeline_next(const struct link_timeline *timeline)
{
	return (struct vb_deadline){ timeline->count ? timeline->heap[0]->due : 0, timeline->count != 0 };
}
