/* Packets of one part: two arrays, with one index. */
#include <stdlib.h>
#include "fabric/state.h"

static bool grow(struct part *part)
{
	uint32_t room = part->packet_room ? part->packet_room * 2 : 1024;
	struct packet *packets = realloc(part->packets, room * sizeof(*packets));
	if (packets)
		part->packets = packets;
	struct vb_packet *headers = realloc(part->headers, room * sizeof(*headers));
	if (headers)
		part->headers = headers;
	if (packets && headers)
		part->packet_room = room;
	return packets && headers;
}

uint32_t packet_get(struct part *part)
{
	uint32_t packet = part->free_packet;
	if (packet != NO_PACKET) {
		part->free_packet = part->packets[packet].next;
		return packet;
	}
	if (part->packet_count == part->packet_room && !grow(part)) {
		part->is_out_of_memory = true;
		return NO_PACKET;
	}
	return part->packet_count++;
}

uint32_t packet_copy(struct part *part, uint32_t packet)
{
	uint32_t copy = packet_get(part);
	if (copy == NO_PACKET)
		return NO_PACKET;
	part->packets[copy] = part->packets[packet];
	part->headers[copy] = part->headers[packet];
	return copy;
}

void packet_put(struct part *part, uint32_t packet)
{
	part->packets[packet].next = part->free_packet;
	part->free_packet = packet;
}
