/* Prefetches what today's events will look at, before they happen. It works in steps: each step reads, for all events,
 * what the step before it has prefetched, and prefetches what that leads to.
 * Holds: nothing that happens changes by it. The path of a packet is chosen early only where nothing can change it. */
#include "fabric/port.h"
#include "fabric/telemetry.h"

static void ask_for_lines(const void *first, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		__builtin_prefetch((const char *)first + 64 * i, 1);
}

static const struct port *port_of(const struct shard *shard, uint32_t link)
{
	return shard->fabric->ports ? shard->fabric->ports[link] : NULL;
}

static void ask_for_port(const struct shard *shard, uint32_t link)
{
	const struct port *port = port_of(shard, link);
	if (port)
		ask_for_lines(port, 2); /* the first of its queues; most ports have only one */
}

static void ask_for_ingress(const struct shard *shard, uint32_t in_link)
{
	if (shard->fabric->ingresses)
		__builtin_prefetch(shard->fabric->ingresses[in_link], 1);
}

static void ask_for_record(const struct shard *shard, uint32_t index)
{
	if (!shard->records || shard->packets[index].is_answer)
		return;
	const struct record *record = &shard->records[index];
	__builtin_prefetch(record, 1);
	__builtin_prefetch(&record->hops[shard->packets[index].hops % VB_CC_HOPS], 1);
}

/* The packet that leaves next, if there is one: of the lowest class that has any. */
static uint32_t first_in(const struct port *port)
{
	return port && port->occupied ? port->queues[__builtin_ctz(port->occupied)].head : NO_PACKET;
}

/* A packet that is put on a link is linked to the last one there. */
static void ask_for_last(const struct shard *shard, uint32_t link)
{
	__builtin_prefetch(&shard->packets[shard->fabric->links[link].last], 1);
}

static void ask_for_link(const struct shard *shard, const struct event *event)
{
	const enum event_kind kind = event_kind(event);
	if (kind == EVENT_WIRE)
		__builtin_prefetch(&shard->fabric->endpoints[event_number(event)], 1);
	if (kind != EVENT_ARRIVAL && kind != EVENT_PORT)
		return;
	__builtin_prefetch(&shard->fabric->links[event_number(event)], 1);
	if (kind == EVENT_PORT)
		ask_for_port(shard, event_number(event));
}

static void ask_for_packet(const struct shard *shard, const struct event *event)
{
	uint32_t index = NO_PACKET;
	if (event_kind(event) == EVENT_ARRIVAL)
		index = shard->fabric->links[event_number(event)].first;
	else if (event_kind(event) == EVENT_PORT)
		index = first_in(shard->fabric->ports[event_number(event)]);
	if (index != NO_PACKET)
		__builtin_prefetch(&shard->packets[index], 1);
}

static void expect_arrival(struct shard *shard, const struct link *link)
{
	ask_for_record(shard, link->first);
	if (link->leads_to_switch)
		switch_expect(shard, link->to, link->first);
	else
		endpoint_expect(shard, link->to, link->first);
}

static void expect_departure(const struct shard *shard, uint32_t link)
{
	const uint32_t index = first_in(shard->fabric->ports[link]);
	if (index == NO_PACKET)
		return;
	ask_for_ingress(shard, shard->packets[index].in_link);
	ask_for_record(shard, index);
	ask_for_last(shard, link);
}

static void expect(struct shard *shard, const struct event *event)
{
	if (event_kind(event) == EVENT_ARRIVAL)
		expect_arrival(shard, &shard->fabric->links[event_number(event)]);
	else if (event_kind(event) == EVENT_PORT)
		expect_departure(shard, event_number(event));
	else if (event_kind(event) == EVENT_WIRE)
		endpoint_ask(shard, event_number(event));
}

/* For an arrival: the port that it goes on to, if known. */
static void ask_for_way(const struct shard *shard, const struct event *event)
{
	if (event_kind(event) != EVENT_ARRIVAL)
		return;
	const struct link *link = &shard->fabric->links[event_number(event)];
	const struct packet *packet = &shard->packets[link->first];
	if (!link->leads_to_switch) {
		endpoint_ask(shard, link->to);
	} else if (packet->is_routed) {
		ask_for_port(shard, packet->in_link);
		ask_for_ingress(shard, event_number(event));
		ask_for_last(shard, packet->in_link);
	}
}

static void ask_for_end(const struct shard *shard, const struct event *event)
{
	if (event_kind(event) != EVENT_ARRIVAL)
		return;
	const struct link *link = &shard->fabric->links[event_number(event)];
	const struct packet *packet = &shard->packets[link->first];
	if (!link->leads_to_switch) {
		endpoint_ask_for_flow(shard, link->to, link->first);
	} else if (packet->is_routed) {
		const struct port *port = port_of(shard, packet->in_link);
		if (port && port->occupied)
			__builtin_prefetch(&shard->packets[port->queues[__builtin_ctz(port->occupied)].tail], 1);
	}
}

void shard_prefetch(struct shard *shard)
{
	const struct event *today = shard->events.today;
	const uint32_t count = shard->events.today_count;
	for (uint32_t i = count; i-- > 0;)
		ask_for_link(shard, &today[i]);
	for (uint32_t i = count; i-- > 0;)
		ask_for_packet(shard, &today[i]);
	for (uint32_t i = count; i-- > 0;)
		expect(shard, &today[i]);
	for (uint32_t i = count; i-- > 0;)
		ask_for_way(shard, &today[i]);
	for (uint32_t i = count; i-- > 0;)
		ask_for_end(shard, &today[i]);
}
