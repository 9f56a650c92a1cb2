/* Links: what is on the wire, and for how long. Only the first packet under way on a link is in the calendar.
 * Holds: packets arrive in the order in which they were sent. */
#include <assert.h>
#include <stdlib.h>
#include "fabric/credits.h"
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

/* ---- What goes wrong ------------------------------------------------------------------------------------------- */

static bool is_down(const struct network_fault *fault, vb_time at)
{
	if (fault->down_at == 0 && fault->up_at == 0)
		return false;
	if (fault->flap_period && at >= fault->down_at)
		at = fault->down_at + (at - fault->down_at) % fault->flap_period;
	return at >= fault->down_at && at < fault->up_at;
}

bool link_is_known_down(const struct fabric *fabric, uint32_t number, vb_time at)
{
	if (!fabric->links[number].is_faulty)
		return false;
	const struct network_fault *fault = &fabric->network->faults[fabric->network->links[number].fault];
	return is_down(fault, at - fault->detection);
}

/* Frames are not: what tells of pauses and credits is said until it is heard. */
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

static struct under_way *first_of(const struct link *link)
{
	return &link->ring[link->head & ((1u << link->ring_shift) - 1)];
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

/* The first under way is in the calendar. */
static void await(struct part *part, uint32_t number, vb_time at)
{
	uint32_t turn = (uint32_t)fabric_chance(part->fabric->config->seed, number, (uint64_t)at) >> 4;
	events_add(&part->events, at, event_key(EVENT_ARRIVAL, turn, number));
}

static void set_out(struct part *part, uint32_t number, uint32_t index, vb_time at)
{
	struct link *link = &part->fabric->links[number];
	if ((!link->ring || link->tail - link->head == 1u << link->ring_shift) && !grow_ring(link)) {
		part->is_out_of_memory = true;
		packet_put(part, index);
		return;
	}
	link->ring[link->tail & ((1u << link->ring_shift) - 1)] = (struct under_way){ at, index };
	if (link->tail++ == link->head)
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
	if (link->is_faulty && !packet->is_frame && is_lost(fabric, number, link, bytes, at)) {
		credits_return(fabric, number, packet);
		fabric->counts[number].lost++;
		part->lost++;
		packet_put(part, index);
		return;
	}
	packet->in_link = number;
	vb_time there = link->free_at + link->delay;
	if (link->is_cut_through && bytes > LINK_HEADER_BYTES)
		there = at + link_time(fabric, link, LINK_HEADER_BYTES) + link->delay;
	if (link->to_part != part->index)
		post(part, number, index, there);
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
			set_out(part, box->letters[i].link, index, box->letters[i].at);
		}
		box->count = 0;
	}
}

void link_on_arrival(struct part *part, uint32_t number)
{
	struct link *link = &part->fabric->links[number];
	struct under_way first = *first_of(link);
	assert(link->head != link->tail && first.at == part->now);
	if (++link->head != link->tail)
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
