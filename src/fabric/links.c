/* Links: what is on the wire, and for how long. Only the first packet under way on a link is in the calendar.
 * Holds: packets arrive in the order in which they were sent. */
#include <assert.h>
#include "fabric/grow.h"
#include "fabric/state.h"

#define HEADER_BYTES 64 /* that a switch wants to see of a packet before it sends it on */

/* ---- What goes wrong ------------------------------------------------------------------------------------------- */

static bool is_down(const struct network_fault *fault, vb_time at)
{
	if (fault->down_at == 0 && fault->up_at == 0)
		return false;
	if (fault->flap_period && at >= fault->down_at)
		at = fault->down_at + (at - fault->down_at) % fault->flap_period;
	return at >= fault->down_at && at < fault->up_at;
}

static bool is_lost(const struct fabric *fabric, uint32_t number, const struct link *link, uint32_t bytes, vb_time at)
{
	const struct network_fault *fault = &fabric->network->faults[fabric->network->links[number].fault];
	if (is_down(fault, at))
		return true;
	uint64_t drawn = fabric_chance(fabric->config->seed ^ 0xFA17, number, link->packets);
	if ((uint32_t)drawn % 1000000 < fault->loss_ppm)
		return true;
	double whole = 1, rate = 1 - fault->bit_error_rate; /* (1 - rate)^bits by squaring: the same on every machine */
	for (uint32_t bits = bytes * 8; bits > 0; bits >>= 1, rate *= rate)
		if (bits & 1)
			whole *= rate;
	return (double)(drawn >> 32) >= whole * 4294967296.0;
}

/* ---- Under way --------------------------------------------------------------------------------------------------- */

/* At the end of the queue of what is under way, and in the calendar if it is the first. */
static void set_out(struct part *part, uint32_t number, uint32_t index)
{
	struct link *link = &part->fabric->links[number];
	struct packet *packet = &part->packets[index];
	packet->next = NO_PACKET;
	if (link->head == NO_PACKET) {
		link->head = index;
		uint32_t turn = (uint32_t)fabric_chance(part->fabric->config->seed, number, (uint64_t)packet->at) >> 4;
		events_add(&part->events, packet->at, event_key(EVENT_ARRIVAL, turn, number));
	} else {
		part->packets[link->tail].next = index;
	}
	link->tail = index;
}

static void post(struct part *part, uint32_t number, uint32_t index)
{
	struct letter_box *box = &part->out[part->fabric->links[number].to_part];
	if (!grow_by_one(&box->letters, &box->room, box->count, sizeof(*box->letters))) {
		part->is_out_of_memory = true;
		return;
	}
	box->letters[box->count++] =
		(struct letter){ .link = number, .packet = part->packets[index], .headers = part->headers[index] };
	packet_put(part, index);
}

void link_send(struct part *part, uint32_t number, uint32_t index, vb_time at)
{
	struct fabric *fabric = part->fabric;
	struct link *link = &fabric->links[number];
	struct packet *packet = &part->packets[index];
	const uint32_t bytes = packet->wire_bytes;
	assert(at >= link->free_at);
	link->free_at = at + link_time(fabric, link, bytes);
	link->packets++;
	link->bytes += bytes;
	if (link->is_faulty && is_lost(fabric, number, link, bytes, at)) {
		fabric->counts[number].lost++;
		part->lost++;
		packet_put(part, index);
		return;
	}
	packet->at = link->free_at + link->delay;
	packet->in_link = number;
	if (link->is_cut_through && bytes > HEADER_BYTES)
		packet->at = at + link_time(fabric, link, HEADER_BYTES) + link->delay;
	if (link->to_part != part->index)
		post(part, number, index);
	else
		set_out(part, number, index);
}

void link_take_letters(struct part *part)
{
	struct fabric *fabric = part->fabric;
	for (uint32_t from = 0; from < fabric->part_count; from++) {
		struct letter_box *box = &fabric->parts[from].out[part->index];
		for (uint32_t i = 0; i < box->count; i++) {
			uint32_t index = packet_get(part);
			if (index == NO_PACKET)
				return;
			part->packets[index] = box->letters[i].packet;
			part->headers[index] = box->letters[i].headers;
			set_out(part, box->letters[i].link, index);
		}
		box->count = 0;
	}
}

void link_on_arrival(struct part *part, uint32_t number)
{
	struct link *link = &part->fabric->links[number];
	uint32_t index = link->head;
	struct packet *packet = &part->packets[index];
	assert(packet->at == part->now);
	part->packet_hops++;
	link->head = packet->next;
	if (link->head != NO_PACKET) {
		vb_time at = part->packets[link->head].at;
		uint32_t turn = (uint32_t)fabric_chance(part->fabric->config->seed, number, (uint64_t)at) >> 4;
		events_add(&part->events, at, event_key(EVENT_ARRIVAL, turn, number));
	}
	if (link->leads_to_switch)
		switch_receive(part, link->to, index);
	else
		endpoint_receive(part, link->to, index);
}
