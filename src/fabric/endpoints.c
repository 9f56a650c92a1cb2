/* Endpoints: a wire that asks for the next packet when the last has left, so that the next packet is chosen at the last
 * moment; and a timer. An engine, or its substitute, decides what to send (endpoint.h). operations.c begins flows.
 * Holds: an endpoint that has something to send, or to do at a time, is in the calendar. */
#include "base/invariant.h"
#include "net/chance.h"
#include "fabric/endpoint.h"
#include "fabric/port.h"

static const struct nic_profile *nic_of(const struct fabric *fabric, uint32_t endpoint)
{
	return &fabric->network->nics[fabric->network->endpoints[endpoint].nic];
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

int endpoints_open(struct fabric *fabric)
{
	static const struct endpoint_kind *const kinds[] = {
		[FABRIC_ENGINE] = &engine_ends, [FABRIC_IDEAL] = &ideal_ends, [FABRIC_TCP] = &tcp_ends
	};
	for (uint32_t i = 0; i < fabric->network->endpoint_count; i++) {
		fabric->endpoints[i].link = fabric->network->endpoints[i].link;
		fabric->endpoints[i].sleeps = nic_of(fabric, i)->wake_latency > 0;
		fabric->endpoints[i].first_waiting = NO_PACKET;
	}
	if (fabric->holder)
		return 0;
	fabric->kind = fabric->config->by_flows ? &flow_ends : kinds[fabric->config->endpoint];
	return fabric->kind->open(fabric);
}

void endpoints_close(struct fabric *fabric)
{
	if (fabric->kind)
		fabric->kind->close(fabric);
}

/* ---- Sending ----------------------------------------------------------------------------------------------------- */

static uint32_t wire_bytes_of(const struct fabric *fabric, const struct vb_packet *packet)
{
	enum { ETHERNET = 14 + 4 + 8 + 12, IP_UDP = 20 + 8 };
	uint32_t overhead = packet->payload_length ? fabric->data_overhead : fabric->ack_overhead;
	return overhead ? packet->payload_length + overhead : vb_packet_wire_length(packet) + IP_UDP + ETHERNET;
}

uint32_t endpoint_make_packet(struct shard *shard, const struct vb_packet *headers, struct packet packet)
{
	const struct fabric *fabric = shard->fabric;
	uint32_t index = packet_get(shard);
	if (index == NO_PACKET)
		return NO_PACKET;
	bool is_response = vb_packet_row(headers)->is_response;
	packet.generation = fabric->generation & 1;
	if (packet.wire_bytes == 0)
		packet.wire_bytes = (uint16_t)wire_bytes_of(fabric, headers);
	if (is_response) {
		packet.is_answer = true;
		packet.takes_marks = false;
		packet.traffic_class = fabric->config->ack_class;
	}
	if (!packet_fill(shard, index, &packet, headers))
		return NO_PACKET;
	if (is_response)
		shard->acks++;
	else
		shard->data_packets++;
	return index;
}

static void await_wire(struct shard *shard, struct endpoint *endpoint, uint32_t number)
{
	const struct link *link = &shard->fabric->links[endpoint->link];
	if (endpoint->is_wire_awaited)
		return;
	endpoint->is_wire_awaited = true;
	events_add(&shard->events, link->free_at, event_key(EVENT_WIRE, 0, number));
}

/* A class that is paused, or has a packet that may not leave, is not asked for more. */
static void hold_classes(const struct fabric *fabric, struct endpoint *endpoint)
{
	const struct port *port = fabric->ports[endpoint->link];
	const uint8_t stopped = port->paused | port->occupied;
	uint8_t held = 0;
	if (stopped == endpoint->stopped)
		return;
	endpoint->stopped = stopped;
	for (uint8_t class = 0; class < FABRIC_CLASSES; class ++)
		held |= (uint8_t)((stopped >> port_class_of(port, class) & 1) << class);
	const bool replies = stopped >> port_class_of(port, fabric->config->ack_class) & 1;
	fabric->kind->hold(fabric, endpoint, held, replies);
}

static void send_next_by_class(struct shard *shard, struct endpoint *endpoint, uint32_t number)
{
	const struct link *link = &shard->fabric->links[endpoint->link];
	assert(link->kind == LINK_STOPPABLE);
	while (link->free_at <= shard->now) {
		if (port_send_next(shard, endpoint->link))
			continue;
		hold_classes(shard->fabric, endpoint);
		do {
			uint32_t index = shard->fabric->kind->pull(shard, endpoint, number);
			if (index == NO_PACKET)
				return;
			port_queue(shard, endpoint->link, index);
		} while (shard->at_hand);
	}
	hold_classes(shard->fabric, endpoint);
	if (shard->fabric->ports[endpoint->link]->occupied || shard->fabric->kind->wants(shard, endpoint))
		await_wire(shard, endpoint, number);
}

static void send_next(struct shard *shard, struct endpoint *endpoint, uint32_t number)
{
	const struct link *link = &shard->fabric->links[endpoint->link];
	if (link->kind == LINK_STOPPABLE) {
		send_next_by_class(shard, endpoint, number);
		return;
	}
	while (shard->at_hand || link->free_at <= shard->now) {
		uint32_t index = shard->fabric->kind->pull(shard, endpoint, number);
		if (index == NO_PACKET)
			return;
		link_send(shard, endpoint->link, index, link->free_at > shard->now ? link->free_at : shard->now);
	}
	if (shard->fabric->kind->wants(shard, endpoint))
		await_wire(shard, endpoint, number);
}

/* A paced flow asks for an early time, then for its timeout again, and so on: an event for the timeout is then in the
 * calendar already. `at` may be in the past by now. */
static void set_timer(struct shard *shard, struct endpoint *endpoint, uint32_t number)
{
	struct vb_deadline deadline = shard->fabric->kind->deadline(shard, endpoint);
	if (!deadline.is_set || (endpoint->is_armed && endpoint->armed_for <= deadline.at))
		return;
	vb_time at = deadline.at > shard->now ? deadline.at : shard->now + 1;
	const struct link *link = &shard->fabric->links[endpoint->link];
	if (at < link->free_at && shard->fabric->kind->waits_for_wire)
		at = link->free_at;
	if (endpoint->is_armed && endpoint->armed_for <= at)
		return;
	if (endpoint->is_armed && (!endpoint->spare_at || endpoint->armed_for < endpoint->spare_at))
		endpoint->spare_at = endpoint->armed_for;
	if (endpoint->spare_at && endpoint->spare_at <= at) {
		at = endpoint->spare_at;
		endpoint->spare_at = 0;
	} else {
		events_add(&shard->events, at, event_key(EVENT_TIMER, 0, number));
	}
	endpoint->is_armed = true;
	endpoint->armed_for = at;
	assert(endpoint->armed_for >= shard->now);
}

static void go_on(struct shard *shard, struct endpoint *endpoint, uint32_t number)
{
	send_next(shard, endpoint, number);
	set_timer(shard, endpoint, number);
}

/* ---- What happens ------------------------------------------------------------------------------------------------ */

void endpoint_expect(const struct shard *shard, uint32_t number, uint32_t index)
{
	const struct endpoint *endpoint = &shard->fabric->endpoints[number];
	__builtin_prefetch(&shard->headers[index]);
	__builtin_prefetch(endpoint);
}

void endpoint_ask(const struct shard *shard, uint32_t number)
{
	const struct fabric *fabric = shard->fabric;
	if (fabric->kind && fabric->kind->ask)
		fabric->kind->ask(&fabric->endpoints[number]);
}

void endpoint_ask_for_flow(const struct shard *shard, uint32_t number, uint32_t index)
{
	const struct fabric *fabric = shard->fabric;
	if (fabric->kind && fabric->kind->ask_for_flow)
		fabric->kind->ask_for_flow(&fabric->endpoints[number], &shard->headers[index]);
}

/* Something has arrived, or is due. */
static void rouse(struct shard *shard, struct endpoint *endpoint, uint32_t number)
{
	assert(endpoint->sleeps);
	if (endpoint->is_waking)
		return;
	endpoint->is_waking = true;
	const uint64_t half = (uint64_t)nic_of(shard->fabric, number)->wake_latency / 2;
	const uint64_t drawn =
		chance_exponential(fabric_chance(shard->fabric->config->seed ^ 0x3A4E, number, endpoint->wakes++));
	const vb_time later = (vb_time)(half + (uint64_t)((unsigned __int128)half * drawn >> 32));
	events_add(&shard->events, shard->now + later, event_key(EVENT_WAKE, 0, number));
}

static void put_aside(struct shard *shard, struct endpoint *endpoint, uint32_t number, uint32_t index)
{
	shard->packets[index].next = NO_PACKET;
	if (endpoint->first_waiting == NO_PACKET)
		endpoint->first_waiting = index;
	else
		shard->packets[endpoint->last_waiting].next = index;
	endpoint->last_waiting = index;
	rouse(shard, endpoint, number);
}

void endpoint_on_wake(struct shard *shard, uint32_t number)
{
	struct endpoint *endpoint = &shard->fabric->endpoints[number];
	assert(endpoint->is_waking);
	endpoint->is_waking = false;
	while (endpoint->first_waiting != NO_PACKET) {
		const uint32_t index = endpoint->first_waiting;
		endpoint->first_waiting = shard->packets[index].next;
		shard->fabric->kind->receive(shard, endpoint, number, index);
	}
	shard->fabric->kind->advance(shard, endpoint, number);
	go_on(shard, endpoint, number);
}

void endpoint_receive(struct shard *shard, uint32_t number, uint32_t index)
{
	struct endpoint *endpoint = &shard->fabric->endpoints[number];
	if (endpoint->sleeps) {
		put_aside(shard, endpoint, number, index);
		return;
	}
	shard->fabric->kind->receive(shard, endpoint, number, index);
	go_on(shard, endpoint, number);
}

void endpoint_wake(struct shard *shard, uint32_t number)
{
	go_on(shard, &shard->fabric->endpoints[number], number);
}

void endpoint_on_wire(struct shard *shard, uint32_t number)
{
	struct endpoint *endpoint = &shard->fabric->endpoints[number];
	assert(endpoint->is_wire_awaited);
	endpoint->is_wire_awaited = false;
	go_on(shard, endpoint, number);
}

void endpoint_on_timer(struct shard *shard, uint32_t number)
{
	struct endpoint *endpoint = &shard->fabric->endpoints[number];
	if (endpoint->spare_at == shard->now)
		endpoint->spare_at = 0;
	if (!endpoint->is_armed || endpoint->armed_for != shard->now)
		return; /* an earlier event has done it */
	endpoint->is_armed = false;
	if (endpoint->sleeps) {
		rouse(shard, endpoint, number);
		return;
	}
	shard->fabric->kind->advance(shard, endpoint, number);
	go_on(shard, endpoint, number);
}

/* ---- What is said ------------------------------------------------------------------------------------------------ */

uint64_t endpoints_executed(const struct fabric *fabric)
{
	return fabric->kind->executed(fabric);
}

vb_time endpoints_slowest(const struct fabric *fabric)
{
	return fabric->kind->slowest ? fabric->kind->slowest(fabric) : 0;
}

void endpoints_say(const struct fabric *fabric, struct fabric_result *result)
{
	fabric->kind->say(fabric, result);
}
