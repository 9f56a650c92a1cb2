/* Links: what is on the wire, and for how long. Only the first packet under way on a link is in the calendar; where
 * packets overtake each other, each is.
 * Holds: packets arrive in the order in which they were sent, but for those that a fault delays. */
#include <stdlib.h>
#include "base/invariant.h"
#include "fabric/credits.h"
#include "fabric/faults.h"
#include "net/grow.h"
#include "fabric/port.h"
#include "fabric/taps.h"
#include "fabric/telemetry.h"

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

static void await(struct part *part, uint32_t number, vb_time at)
{
	uint32_t turn = (uint32_t)fabric_chance(part->fabric->config->seed, number, (uint64_t)at) >> 4;
	events_add(&part->events, at, event_key(EVENT_ARRIVAL, turn, number));
}

/* Not behind all. No later one will be there before `soonest`: what is, is passed once for all of them. */
static void put_between(struct part *part, struct link *link, uint32_t index, vb_time at, vb_time soonest)
{
	struct packet *packet = &part->packets[index];
	if (at < link->first_at) {
		packet->next = link->first;
		packet->at = link->first_at;
		link->first = index;
		link->first_at = at;
		return;
	}
	uint32_t passed = link->passed == NO_PACKET ? link->first : link->passed;
	while (part->packets[passed].at <= soonest)
		passed = part->packets[passed].next;
	if (link->first_at <= soonest)
		link->passed = passed;
	struct packet *before = &part->packets[passed];
	while (before->at <= at)
		before = &part->packets[before->next];
	packet->next = before->next;
	packet->at = before->at;
	before->next = index;
	before->at = at;
}

static void put_on_link(struct part *part, uint32_t number, uint32_t index, vb_time at, vb_time soonest)
{
	struct link *link = &part->fabric->links[number];
	struct packet *packet = &part->packets[index], *last;
	if (link->first == NO_PACKET) {
		packet->at = link->first_at = at;
		link->first = link->last = index;
		await(part, number, at);
		return;
	}
	last = &part->packets[link->last]; /* is written alone, for it is in no cache */
	if (link->is_unordered && at < last->at) {
		put_between(part, link, index, at, soonest);
	} else {
		packet->at = last->at = at;
		last->next = link->last = index;
	}
	if (link->is_unordered)
		await(part, number, at);
}

static uint32_t take_from_link(struct part *part, uint32_t number)
{
	struct link *link = &part->fabric->links[number];
	const uint32_t index = link->first;
	assert(index != NO_PACKET && link->first_at == part->now);
	if (index == link->passed)
		link->passed = NO_PACKET;
	if (index == link->last) {
		link->first = NO_PACKET;
		return index;
	}
	link->first = part->packets[index].next;
	link->first_at = part->packets[index].at;
	if (!link->is_unordered)
		await(part, number, link->first_at);
	return index;
}

static void post(struct part *part, uint32_t number, uint32_t index, vb_time at, vb_time soonest)
{
	struct letter_box *box = &part->out[part->fabric->links[number].to_part];
	if (!grow_by_one(&box->letters, &box->room, box->count, sizeof(*box->letters)) ||
		(part->records && !grow_by_one(&box->records, &box->record_room, box->count, sizeof(*box->records)))) {
		part->is_out_of_memory = true;
		return;
	}
	if (part->records)
		box->records[box->count] = part->records[index];
	box->letters[box->count++] =
		(struct letter){ at, soonest, number, part->packets[index], packet_headers(part, index) };
	packet_put(part, index);
}

static void set_out(struct part *part, uint32_t number, uint32_t index, vb_time there, vb_time later)
{
	if (part->fabric->links[number].to_part != part->index)
		post(part, number, index, there + later, there);
	else
		put_on_link(part, number, index, there + later, there);
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
	set_out(part, number, index, there, drawn.later[0]);
	if (copy != NO_PACKET)
		set_out(part, number, copy, there, drawn.later[1]);
}

/* Of a packet that has come now and leaves from `at` on. Where it has waited in a port, that is in the port's area. */
static void measure(struct part *part, uint32_t number, uint32_t index, vb_time at)
{
	const struct link *link = &part->fabric->links[number];
	const uint32_t bytes = part->packets[index].wire_bytes;
	part->fabric->counts[number].queued_area +=
		(double)bytes * ((double)(at - part->now) + (double)link_time(part->fabric, link, bytes) / 2);
}

static void show(struct part *part, uint32_t number, uint32_t index, vb_time at)
{
	const struct link *link = &part->fabric->links[number];
	if (link->is_measured)
		measure(part, number, index, at);
	if (link->is_captured)
		taps_see(part, number, index, at);
	if (link->is_telling)
		telemetry_note(part, number, index, at);
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
	if (link->is_captured | link->is_telling | link->is_measured)
		show(part, number, index, at);
	vb_time there = link->free_at + link->delay;
	if (link->is_cut_through && bytes > LINK_HEADER_BYTES)
		there = at + link_time(fabric, link, LINK_HEADER_BYTES) + link->delay;
	if (link->is_faulty && !packet->is_frame)
		set_out_faulty(part, number, index, at, there);
	else
		set_out(part, number, index, there, 0);
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
			const struct letter *letter = &box->letters[i];
			if (!packet_fill(part, index, &letter->packet, &letter->headers))
				return;
			if (part->records)
				part->records[index] = box->records[i];
			put_on_link(part, letter->link, index, letter->at, letter->soonest);
		}
		box->count = 0;
	}
}

void link_on_arrival(struct part *part, uint32_t number)
{
	const struct link *link = &part->fabric->links[number];
	const uint32_t index = take_from_link(part, number);
	if (part->packets[index].is_frame) {
		port_on_frame(part, number, &part->packets[index]);
		packet_put(part, index);
		return;
	}
	part->packet_hops++;
	if (link->leads_to_switch)
		switch_receive(part, number, index);
	else if (part->fabric->held)
		cargo_arrive(part, link->to, index);
	else
		endpoint_receive(part, link->to, index);
}

/* ---- In time ------------------------------------------------------------------------------------------------------
 * What today's events will look at is asked for before they happen, in steps: each step reads what the one before has
 * asked for, of all events, and asks for what is behind that. */

static void ask_for_lines(const void *first, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		__builtin_prefetch((const char *)first + 64 * i, 1);
}

static const struct port *port_of(const struct part *part, uint32_t link)
{
	return part->fabric->ports ? part->fabric->ports[link] : NULL;
}

static void ask_for_port(const struct part *part, uint32_t link)
{
	const struct port *port = port_of(part, link);
	if (port)
		ask_for_lines(port, 2); /* of its queues the first; most have no other */
}

static void ask_for_ingress(const struct part *part, uint32_t in_link)
{
	if (part->fabric->ingresses)
		__builtin_prefetch(part->fabric->ingresses[in_link], 1);
}

static void ask_for_record(const struct part *part, uint32_t index)
{
	if (!part->records || part->packets[index].is_answer)
		return;
	const struct record *record = &part->records[index];
	__builtin_prefetch(record, 1);
	__builtin_prefetch(&record->hops[part->packets[index].hops % VB_CC_HOPS], 1);
}

/* The packet that leaves next, if one waits: of the lowest class that has any. */
static uint32_t first_in(const struct port *port)
{
	return port && port->occupied ? port->queues[__builtin_ctz(port->occupied)].head : NO_PACKET;
}

/* What is put on a link is put behind its last. */
static void ask_for_last(const struct part *part, uint32_t link)
{
	__builtin_prefetch(&part->packets[part->fabric->links[link].last], 1);
}

static void ask_for_link(const struct part *part, const struct event *event)
{
	const enum event_kind kind = event_kind(event);
	if (kind == EVENT_WIRE)
		__builtin_prefetch(&part->fabric->endpoints[event_number(event)], 1);
	if (kind != EVENT_ARRIVAL && kind != EVENT_PORT)
		return;
	__builtin_prefetch(&part->fabric->links[event_number(event)], 1);
	if (kind == EVENT_PORT)
		ask_for_port(part, event_number(event));
}

static void ask_for_packet(const struct part *part, const struct event *event)
{
	uint32_t index = NO_PACKET;
	if (event_kind(event) == EVENT_ARRIVAL)
		index = part->fabric->links[event_number(event)].first;
	else if (event_kind(event) == EVENT_PORT)
		index = first_in(part->fabric->ports[event_number(event)]);
	if (index != NO_PACKET)
		__builtin_prefetch(&part->packets[index], 1);
}

static void expect_arrival(struct part *part, const struct link *link)
{
	ask_for_record(part, link->first);
	if (link->leads_to_switch)
		switch_expect(part, link->to, link->first);
	else
		endpoint_expect(part, link->to, link->first);
}

static void expect_departure(const struct part *part, uint32_t link)
{
	const uint32_t index = first_in(part->fabric->ports[link]);
	if (index == NO_PACKET)
		return;
	ask_for_ingress(part, part->packets[index].in_link);
	ask_for_record(part, index);
	ask_for_last(part, link);
}

static void expect(struct part *part, const struct event *event)
{
	if (event_kind(event) == EVENT_ARRIVAL)
		expect_arrival(part, &part->fabric->links[event_number(event)]);
	else if (event_kind(event) == EVENT_PORT)
		expect_departure(part, event_number(event));
	else if (event_kind(event) == EVENT_WIRE)
		endpoint_ask(part, event_number(event));
}

/* Where an arrival goes on, if that is known. */
static void ask_for_way(const struct part *part, const struct event *event)
{
	if (event_kind(event) != EVENT_ARRIVAL)
		return;
	const struct link *link = &part->fabric->links[event_number(event)];
	const struct packet *packet = &part->packets[link->first];
	if (!link->leads_to_switch) {
		endpoint_ask(part, link->to);
	} else if (packet->is_routed) {
		ask_for_port(part, packet->in_link);
		ask_for_ingress(part, event_number(event));
		ask_for_last(part, packet->in_link);
	}
}

static void ask_for_end(const struct part *part, const struct event *event)
{
	if (event_kind(event) != EVENT_ARRIVAL)
		return;
	const struct link *link = &part->fabric->links[event_number(event)];
	const struct packet *packet = &part->packets[link->first];
	if (!link->leads_to_switch) {
		endpoint_ask_for_flow(part, link->to, link->first);
	} else if (packet->is_routed) {
		const struct port *port = port_of(part, packet->in_link);
		if (port && port->occupied)
			__builtin_prefetch(&part->packets[port->queues[__builtin_ctz(port->occupied)].tail], 1);
	}
}

void part_prefetch(struct part *part)
{
	const struct event *today = part->events.today;
	const uint32_t count = part->events.today_count;
	for (uint32_t i = count; i-- > 0;)
		ask_for_link(part, &today[i]);
	for (uint32_t i = count; i-- > 0;)
		ask_for_packet(part, &today[i]);
	for (uint32_t i = count; i-- > 0;)
		expect(part, &today[i]);
	for (uint32_t i = count; i-- > 0;)
		ask_for_way(part, &today[i]);
	for (uint32_t i = count; i-- > 0;)
		ask_for_end(part, &today[i]);
}
