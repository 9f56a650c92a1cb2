/* Links: the packets on the wire, and for how long. Only the first packet on a link is in the calendar; on links where
 * packets overtake each other, all are.
 * Holds: packets arrive in the order in which they were sent, except those that a fault delays. */
#include <stdlib.h>
#include "base/invariant.h"
#include "fabric/credits.h"
#include "fabric/faults.h"
#include "net/grow.h"
#include "fabric/endpoint.h"
#include "fabric/port.h"
#include "fabric/series.h"
#include "fabric/taps.h"
#include "fabric/telemetry.h"

/* ---- Delays ------------------------------------------------------------------------------------------------------ */

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

static void await(struct shard *shard, uint32_t number, vb_time at)
{
	uint32_t turn = (uint32_t)fabric_chance(shard->fabric->config->seed, number, (uint64_t)at) >> 4;
	events_add(&shard->events, at, event_key(EVENT_ARRIVAL, turn, number));
}

/* Inserts a packet that is not the last. No later packet arrives before `soonest`: what does is skipped once for all.
 */
static void put_between(struct shard *shard, struct link *link, uint32_t index, vb_time at, vb_time soonest)
{
	struct packet *packet = &shard->packets[index];
	assert(link->is_unordered);
	assert(at < shard->packets[link->last].at);
	if (at < link->first_at) {
		packet->next = link->first;
		packet->at = link->first_at;
		link->first = index;
		link->first_at = at;
		return;
	}
	uint32_t passed = link->passed == NO_PACKET ? link->first : link->passed;
	while (shard->packets[passed].at <= soonest)
		passed = shard->packets[passed].next;
	if (link->first_at <= soonest)
		link->passed = passed;
	struct packet *before = &shard->packets[passed];
	while (before->at <= at)
		before = &shard->packets[before->next];
	packet->next = before->next;
	packet->at = before->at;
	before->next = index;
	before->at = at;
}

static void put_on_link(struct shard *shard, uint32_t number, uint32_t index, vb_time at, vb_time soonest)
{
	struct link *link = &shard->fabric->links[number];
	struct packet *packet = &shard->packets[index], *last;
	assert(at >= shard->now);
	if (link->first == NO_PACKET) {
		packet->at = link->first_at = at;
		link->first = link->last = index;
		await(shard, number, at);
		return;
	}
	last = &shard->packets[link->last]; /* is only written, as it is in no cache */
	if (link->is_unordered && at < last->at) {
		put_between(shard, link, index, at, soonest);
	} else {
		packet->at = last->at = at;
		last->next = link->last = index;
	}
	if (link->is_unordered)
		await(shard, number, at);
}

static uint32_t take_from_link(struct shard *shard, uint32_t number)
{
	struct link *link = &shard->fabric->links[number];
	const uint32_t index = link->first;
	assert(index != NO_PACKET && link->first_at == shard->now);
	if (index == link->passed)
		link->passed = NO_PACKET;
	if (index == link->last) {
		link->first = NO_PACKET;
		return index;
	}
	link->first = shard->packets[index].next;
	link->first_at = shard->packets[index].at;
	if (!link->is_unordered)
		await(shard, number, link->first_at);
	return index;
}

static void post(struct shard *shard, uint32_t number, uint32_t index, vb_time at, vb_time soonest)
{
	struct mailbox *box = &shard->out[shard->fabric->links[number].to_shard];
	assert(shard->fabric->links[number].to_shard != shard->index);
	if (!grow_by_one(&box->entries, &box->room, box->count, sizeof(*box->entries)) ||
		(shard->records && !grow_by_one(&box->records, &box->record_room, box->count, sizeof(*box->records)))) {
		shard->is_out_of_memory = true;
		return;
	}
	if (shard->records)
		box->records[box->count] = shard->records[index];
	box->entries[box->count++] =
		(struct mailbox_entry){ at, soonest, number, shard->packets[index], packet_headers(shard, index) };
	packet_put(shard, index);
}

static void set_out(struct shard *shard, uint32_t number, uint32_t index, vb_time there, vb_time later)
{
	if (shard->fabric->links[number].to_shard != shard->index)
		post(shard, number, index, there + later, there);
	else
		put_on_link(shard, number, index, there + later, there);
}

/* Faults spare frames: pauses and credits would be repeated until they were received. */
static void set_out_faulty(struct shard *shard, uint32_t number, uint32_t index, vb_time at, vb_time there)
{
	struct fabric *fabric = shard->fabric;
	struct packet *packet = &shard->packets[index];
	struct fault_draw drawn = fault_draw(fabric, number, packet->wire_bytes, at);
	assert(!packet->is_frame);
	if (drawn.is_lost) {
		credits_return(fabric, number, packet);
		fabric->counts[number].lost++;
		series_on_missing(shard, number);
		shard->lost++;
		packet_put(shard, index);
		return;
	}
	if (drawn.is_marked && packet->takes_marks && !packet->is_marked) {
		packet->is_marked = true;
		fabric->counts[number].marks++;
	}
	uint32_t copy = drawn.is_doubled ? packet_copy(shard, index) : NO_PACKET;
	set_out(shard, number, index, there, drawn.later[0]);
	if (copy != NO_PACKET)
		set_out(shard, number, copy, there, drawn.later[1]);
}

/* For a packet that arrives now and leaves at `at`. The time that a packet waits in a port is in the port's area. */
static void measure(struct shard *shard, uint32_t number, uint32_t index, vb_time at)
{
	const struct link *link = &shard->fabric->links[number];
	const uint32_t bytes = shard->packets[index].wire_bytes;
	shard->fabric->counts[number].queued_area +=
		(double)bytes * ((double)(at - shard->now) + (double)link_time(shard->fabric, link, bytes) / 2);
}

static void show(struct shard *shard, uint32_t number, uint32_t index, vb_time at)
{
	const struct link *link = &shard->fabric->links[number];
	if (link->is_measured) {
		measure(shard, number, index, at);
		series_on_sent(shard, number, shard->packets[index].wire_bytes, at);
	}
	if (link->is_captured)
		taps_see(shard, number, index, at);
	if (link->is_telling)
		telemetry_note(shard, number, index, at);
}

void link_send(struct shard *shard, uint32_t number, uint32_t index, vb_time at)
{
	struct fabric *fabric = shard->fabric;
	struct link *link = &fabric->links[number];
	struct packet *packet = &shard->packets[index];
	const uint32_t bytes = packet->wire_bytes;
	assert(at >= link->free_at);
	link->free_at = at + link_time(fabric, link, bytes);
	link->packets++;
	link->bytes += bytes;
	if (link->is_captured | link->is_telling | link->is_measured)
		show(shard, number, index, at);
	vb_time there = link->free_at + link->delay;
	if (link->is_cut_through && bytes > LINK_HEADER_BYTES)
		there = at + link_time(fabric, link, LINK_HEADER_BYTES) + link->delay;
	if (link->is_faulty && !packet->is_frame)
		set_out_faulty(shard, number, index, at, there);
	else
		set_out(shard, number, index, there, 0);
}

void link_take_mail(struct shard *shard)
{
	struct fabric *fabric = shard->fabric;
	for (uint32_t from = 0; from < fabric->shard_count; from++) {
		struct mailbox *box = &fabric->shards[from].out[shard->index];
		for (uint32_t i = 0; i < box->news_count; i++)
			fabric->kind->expect(shard, box->news[i].endpoint, box->news[i].connection);
		box->news_count = 0;
		for (uint32_t i = 0; i < box->count; i++) {
			uint32_t index = packet_get(shard);
			if (index == NO_PACKET)
				return;
			const struct mailbox_entry *entry = &box->entries[i];
			if (!packet_fill(shard, index, &entry->packet, &entry->headers))
				return;
			if (shard->records)
				shard->records[index] = box->records[i];
			put_on_link(shard, entry->link, index, entry->at, entry->soonest);
		}
		box->count = 0;
	}
}

void link_on_arrival(struct shard *shard, uint32_t number)
{
	const struct link *link = &shard->fabric->links[number];
	const uint32_t index = take_from_link(shard, number);
	if (shard->packets[index].is_frame) {
		port_on_frame(shard, number, &shard->packets[index]);
		packet_put(shard, index);
		return;
	}
	shard->packet_hops++;
	if (link->leads_to_switch)
		switch_receive(shard, number, index);
	else if (shard->fabric->holder)
		cargo_arrive(shard, link->to, index);
	else
		endpoint_receive(shard, link->to, index);
}
