/* Links: what is on the wire, and for how long. Only the first packet under way on a link is in the calendar; where packets
 * overtake each other, each is.
 * Holds: packets arrive in the order in which they were sent, but for those that a fault delays. */
#include <assert.h>
#include <stdlib.h>
#include "fabric/credits.h"
#include "fabric/faults.h"
#include "fabric/grow.h"
#include "fabric/port.h"
#include "fabric/taps.h"

enum { FIRST_SHIFT = 3, MOST_SHIFT = 27 };

/* ---- Delays ---------------------------------------------------------------------------------------------------- */

static vb_time latency_of(const struct network *network, network_node node, bool is_receiving)
{
	if (network_is_switch(node))
		return is_receiving ? network_profile(network, node)->latency : 0;
	const struct nic_profile *nic = &network->nics[network->endpoints[network_index(node)].nic];
	return (is_receiving ? nic->receive_latency : nic->send_latency) + nic->pcie_latency;
}

vb_time link_delay(const struct network *network, uint32_t number)
{
	const struct network_link *link = &network->links[number];
	return link->delay + latency_of(network, link->from, false) + latency_of(network, link->to, true);
}

/* ---- Under way --------------------------------------------------------------------------------------------------- */

static struct under_way *place_of(const struct link *link, uint32_t count)
{
	return &link->ring[count & ((1u << link->ring_shift) - 1)];
}

static struct under_way *first_of(const struct link *link)
{
	return place_of(link, link->head);
}

static bool grow_ring(struct link *link)
{
	const uint32_t count = link->tail - link->head, old = 1u << link->ring_shift;
	const uint8_t shift = link->ring ? (uint8_t)(link->ring_shift + 1) : FIRST_SHIFT;
	struct under_way *ring = shift < MOST_SHIFT ? malloc(sizeof(*ring) << shift) : NULL;
	if (!ring)
		return false;
	for (uint32_t i = 0; i < count; i++)
		ring[i] = link->ring[(link->head + i) & (old - 1)];
	free(link->ring);
	link->ring = ring;
	link->ring_shift = shift;
	link->head = 0;
	link->tail = count;
	return true;
}

static void await(struct part *part, uint32_t number, vb_time at)
{
	uint32_t turn = (uint32_t)fabric_chance(part->fabric->config->seed, number, (uint64_t)at) >> 4;
	events_add(&part->events, at, event_key(EVENT_ARRIVAL, turn, number));
}

static void put_on_ring(struct part *part, uint32_t number, uint32_t index, vb_time at)
{
	struct link *link = &part->fabric->links[number];
	if ((!link->ring || link->tail - link->head == 1u << link->ring_shift) && !grow_ring(link)) {
		part->is_out_of_memory = true;
		packet_put(part, index);
		return;
	}
	uint32_t place = link->tail++;
	for (; link->is_unordered && place != link->head && place_of(link, place - 1)->at > at; place--)
		*place_of(link, place) = *place_of(link, place - 1);
	*place_of(link, place) = (struct under_way){ at, index };
	if (place == link->head || link->is_unordered)
		await(part, number, at);
}

static void post(struct part *part, uint32_t number, uint32_t index, vb_time at)
{
	struct letter_box *box = &part->out[part->fabric->links[number].to_part];
	if (!grow_by_one(&box->letters, &box->room, box->count, sizeof(*box->letters))) {
		part->is_out_of_memory = true;
		return;
	}
	box->letters[box->count++] =
		(struct letter){ at, number, part->packets[index], part->headers[index] };
	packet_put(part, index);
}

static void set_out(struct part *part, uint32_t number, uint32_t index, vb_time there)
{
	if (part->fabric->links[number].to_part != part->index)
		post(part, number, index, there);
	else
		put_on_ring(part, number, index, there);
}

/* Frames are not: what tells of pauses and credits is said until it is heard. */
static void set_out_faulty(struct part *part, uint32_t number, uint32_t index, vb_time at, vb_time there)
{
	struct fabric *fabric = part->fabric;
	struct packet *packet = &part->packets[index];
	struct fault_draw drawn = fault_draw(fabric, number, packet->wire_bytes, at);
	if (drawn.is_lost) {
		credits_return(fabric, number, packet);
		fabric->counts[number].lost++;
		part->lost++;
		packet_put(part, index);
		return;
	}
	if (drawn.is_marked && packet->takes_marks && !packet->is_marked) {
		packet->is_marked = true;
		fabric->counts[number].marks++;
	}
	uint32_t copy = drawn.is_doubled ? packet_copy(part, index) : NO_PACKET;
	set_out(part, number, index, there + drawn.later[0]);
	if (copy != NO_PACKET)
		set_out(part, number, copy, there + drawn.later[1]);
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
	if (link->is_captured)
		taps_see(part, number, index, at);
	packet->in_link = number;
	vb_time there = link->free_at + link->delay;
	if (link->is_cut_through && bytes > LINK_HEADER_BYTES)
		there = at + link_time(fabric, link, LINK_HEADER_BYTES) + link->delay;
	if (link->is_faulty && !packet->is_frame)
		set_out_faulty(part, number, index, at, there);
	else
		set_out(part, number, index, there);
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
			put_on_ring(part, box->letters[i].link, index, box->letters[i].at);
		}
		box->count = 0;
	}
}

void link_on_arrival(struct part *part, uint32_t number)
{
	struct link *link = &part->fabric->links[number];
	struct under_way first = *first_of(link);
	assert(link->head != link->tail && first.at == part->now);
	if (++link->head != link->tail && !link->is_unordered)
		await(part, number, first_of(link)->at);
	if (part->packets[first.packet].is_frame) {
		port_on_frame(part, number, &part->packets[first.packet]);
		packet_put(part, first.packet);
		return;
	}
	part->packet_hops++;
	if (link->leads_to_switch)
		switch_receive(part, link->to, first.packet);
	else
		endpoint_receive(part, link->to, first.packet);
}

/* ---- In time ------------------------------------------------------------------------------------------------------ */

/* The link of today's i-th event, if something arrives on it; else NULL. */
static const struct link *arrival_today(const struct part *part, uint32_t i)
{
	const struct event *event = &part->events.today[i];
	return event_kind(event) == EVENT_ARRIVAL ? &part->fabric->links[event_number(event)] : NULL;
}

/* Each load wants what the one before has brought: so all links, then all rings, then all packets, and what is behind
 * those. */
void part_prefetch(struct part *part)
{
	const uint32_t count = part->events.today_count;
	const struct link *link;
	for (uint32_t i = count; i-- > 0;)
		if ((link = arrival_today(part, i)))
			__builtin_prefetch(link);
	for (uint32_t i = count; i-- > 0;)
		if ((link = arrival_today(part, i)))
			__builtin_prefetch(first_of(link));
	for (uint32_t i = count; i-- > 0;)
		if ((link = arrival_today(part, i)))
			__builtin_prefetch(&part->packets[first_of(link)->packet]);
	for (uint32_t i = count; i-- > 0;) {
		if (!(link = arrival_today(part, i)))
			continue;
		if (link->leads_to_switch)
			switch_expect(part, link->to, first_of(link)->packet);
		else
			endpoint_expect(part, link->to, first_of(link)->packet);
	}
}
