/* See port.h. */
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "fabric/buffer.h"
#include "fabric/credits.h"
#include "net/grow.h"
#include "fabric/pfc.h"
#include "fabric/port.h"
#include "fabric/series.h"
#include "fabric/stories.h"
#include "fabric/telemetry.h"
#include "fabric/trim.h"

#define NO_CLASS 0xFF

enum {
	PAUSE_BYTES = 84,
	CREDIT_BYTES = 8
}; /* on the wire: a minimum-size frame with preamble and gap; InfiniBand, 7.9.4 */

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static bool is_needed(const struct switch_profile *from, const struct switch_profile *to)
{
	if (to && to->flow_control != FLOW_DROPS)
		return true;
	return from && (from->flow_control != FLOW_DROPS || from->class_count > 1 || from->classes[0].limit_bytes ||
			       (from->classes[0].mark_max && from->marks == MARKS_LEAVING) ||
			       (from->buffer_bytes && !from->port_bytes));
}

uint32_t port_mark_bytes(const struct switch_profile *profile, uint64_t bits_per_second, uint32_t given)
{
	const uint64_t rate = profile->mark_bits_per_second ? profile->mark_bits_per_second : 100000000000;
	uint64_t bytes = (uint64_t)given * (bits_per_second / 1000000) / (rate / 1000000);
	return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

static int open_port(struct fabric *fabric, uint32_t number)
{
	assert(!fabric->ports[number]);
	const struct network_link *given = &fabric->network->links[number];
	const struct switch_profile *profile =
		network_profile(fabric->network, network_is_switch(given->from) ? given->from : given->to);
	const uint32_t count = profile->class_count;
	struct port *port = grow_lines(sizeof(*port) + count * sizeof(port->queues[0]));
	if (!port)
		return -ENOMEM;
	port->profile = profile;
	for (uint32_t i = 0; i < count; i++) {
		const struct class_profile *class = &profile->classes[i];
		struct port_queue *queue = &port->queues[i];
		queue->quantum = class->is_strict || count == 1
					 ? 0
					 : fabric->largest_packet * (class->weight ? class->weight : 1);
		queue->mark_min = port_mark_bytes(profile, given->bits_per_second, class->mark_min);
		queue->mark_max = port_mark_bytes(profile, given->bits_per_second, class->mark_max);
		queue->alpha = buffer_alpha(fabric->network, number, profile, i);
	}
	fabric->ports[number] = port;
	fabric->links[number].kind = network_is_switch(given->from) ? LINK_PORT : LINK_STOPPABLE;
	credits_open(fabric, number);
	return 0;
}

/* A port that records telemetry must know the queue behind a packet when it leaves. */
static bool is_needed_at(const struct fabric *fabric, uint32_t link)
{
	const struct network *network = fabric->network;
	const struct switch_profile *from = network_profile(network, network->links[link].from);
	return is_needed(from, network_profile(network, network->links[link].to)) ||
	       (from && telemetry_is_wanted(fabric->config));
}

static bool are_needed(const struct fabric *fabric)
{
	for (uint32_t i = 0; i < fabric->network->link_count; i++)
		if (is_needed_at(fabric, i))
			return true;
	return false;
}

int ports_open(struct fabric *fabric)
{
	const struct network *network = fabric->network;
	if (!are_needed(fabric))
		return 0;
	fabric->ports = calloc(network->link_count, sizeof(*fabric->ports));
	fabric->ingresses = calloc(network->link_count, sizeof(*fabric->ingresses));
	fabric->buffers = calloc(network->switch_count, sizeof(*fabric->buffers));
	if (!fabric->ports || !fabric->ingresses || !fabric->buffers || buffers_open(fabric))
		return -ENOMEM;
	for (uint32_t i = 0; i < network->link_count; i++)
		if (is_needed_at(fabric, i) && open_port(fabric, i))
			return -ENOMEM;
	return 0;
}

void ports_close(struct fabric *fabric)
{
	for (uint32_t i = 0; fabric->ports && i < fabric->network->link_count; i++)
		free(fabric->ports[i]);
	if (fabric->ingresses)
		buffers_close(fabric);
	free(fabric->ports);
	free(fabric->ingresses);
	free(fabric->buffers);
}

/* ---- Arrivals ---------------------------------------------------------------------------------------------------- */

void port_drop(struct shard *shard, uint32_t number, uint32_t index)
{
	const struct port *port = shard->fabric->ports[number];
	bool is_promised = port->profile->flow_control != FLOW_DROPS &&
			   port->profile->classes[port_class(port, &shard->packets[index])].is_lossless;
	assert(!shard->packets[index].is_frame);
	shard->fabric->counts[number].drops++;
	series_on_missing(shard, number);
	shard->fabric->counts[number].lossless_drops += is_promised;
	shard->drops++;
	shard->lossless_drops += is_promised;
	packet_put(shard, index);
}

/* RED: no packet below mark_min, all beyond mark_max, and a random share between. */
static bool is_marked(struct shard *shard, uint32_t number, uint8_t class)
{
	const struct port *port = shard->fabric->ports[number];
	const struct port_queue *queue = &port->queues[class];
	if (queue->bytes <= queue->mark_min)
		return false;
	if (queue->bytes > queue->mark_max)
		return true;
	uint64_t count =
		port->profile->marks == MARKS_LEAVING ? shard->fabric->links[number].packets : port->ever_queued;
	uint64_t drawn = fabric_chance(shard->fabric->config->seed ^ 0xECE, number, count);
	return (uint64_t)((uint32_t)drawn % 1000000) * (queue->mark_max - queue->mark_min) <
	       (uint64_t)(queue->bytes - queue->mark_min) * port->profile->classes[class].mark_ppm;
}

static void mark(struct shard *shard, uint32_t number, struct packet *packet, uint8_t class, enum marking when)
{
	const struct port *port = shard->fabric->ports[number];
	if (port->profile->marks != when || !port->queues[class].mark_max || !packet->takes_marks ||
		!is_marked(shard, number, class))
		return;
	packet->is_marked = true;
	shard->fabric->counts[number].marks++;
}

/* Called before the queue changes. */
static void see(struct shard *shard, uint32_t number)
{
	struct port *port = shard->fabric->ports[number];
	if (!shard->fabric->links[number].is_measured)
		return;
	assert(port->seen_at <= shard->now);
	series_on_queue(shard, number, port->bytes, port->seen_at, shard->now);
	port->area += (double)port->bytes * (double)(shard->now - port->seen_at);
	port->seen_at = shard->now;
}

void port_queue(struct shard *shard, uint32_t number, uint32_t index)
{
	struct port *port = shard->fabric->ports[number];
	struct packet *packet = &shard->packets[index];
	const uint8_t class = port_class(port, packet);
	struct port_queue *queue = &port->queues[class];
	packet->next = NO_PACKET;
	if (port->occupied & 1u << class)
		shard->packets[queue->tail].next = index;
	else
		queue->head = index;
	queue->tail = index;
	see(shard, number);
	queue->bytes += packet->wire_bytes;
	port->occupied |= (uint8_t)(1u << class);
	port->ever_queued++;
	port->bytes += packet->wire_bytes;
	if (port->bytes > port->most_bytes)
		port->most_bytes = port->bytes;
}

/* Whole, or what is left of it; false: there is no room for that either. */
static bool admit(struct shard *shard, uint32_t number, uint32_t index)
{
	const struct port *port = shard->fabric->ports[number];
	const struct packet *packet = &shard->packets[index];
	if (port->dropped & 1u << port_class(port, packet))
		return false;
	if (buffer_admit(shard, number, packet))
		return true;
	if (!trim_cut(shard, port->profile, index) || !buffer_admit(shard, number, packet))
		return false;
	shard->fabric->counts[number].trims++;
	return true;
}

void port_receive(struct shard *shard, uint32_t number, uint32_t index)
{
	struct fabric *fabric = shard->fabric;
	struct port *port = fabric->ports[number];
	struct packet *packet = &shard->packets[index];
	const uint32_t in_link = packet->in_link;
	if (!admit(shard, number, index)) {
		port_drop(shard, number, index);
		return;
	}
	const uint8_t class = port_class(port, packet);
	const struct link *from = &fabric->links[in_link];
	packet->at = 0; /* when its end arrives */
	if (from->is_cut_through && packet->wire_bytes > LINK_HEADER_BYTES)
		packet->at = shard->now + link_time(fabric, from, packet->wire_bytes - LINK_HEADER_BYTES);
	mark(shard, number, packet, class, MARKS_COMING);
	pfc_on_admitted(shard, in_link, class);
	port_queue(shard, number, index);
	if (fabric->config->tells_pauses)
		story_on_queued(shard, in_link, class);
	port_run(shard, number);
}

/* ---- Departures -------------------------------------------------------------------------------------------------- */

bool port_is_stopped(const struct shard *shard, const struct port *port, uint8_t class)
{
	return port->paused & 1u << class || (port->has_credits && !credits_are_there(&port->queues[class],
									   &shard->packets[port->queues[class].head]));
}

static uint8_t strict_class(const struct port *port, uint8_t ready)
{
	for (uint8_t class = (uint8_t)port->profile->class_count; class -- > 0;)
		if (ready & 1u << class && port->queues[class].quantum == 0)
			return class;
	return NO_CLASS;
}

/* The turn passes to the next class that is ready; classes on the way that have nothing to send lose their deficit.
 * Classes without a deficit are not touched: most links carry one class, and each class is a cache line. */
static void pass_turn(struct port *port, uint8_t ready)
{
	assert(ready != 0);
	const uint8_t up_to = (uint8_t)((2u << port->turn) - 1), later = ready & (uint8_t)~up_to;
	const uint8_t next = (uint8_t)__builtin_ctz(later ? later : ready), before = (uint8_t)((1u << next) - 1);
	const uint8_t own = (uint8_t)(1u << port->turn);
	const uint8_t passed = (uint8_t)((later ? before & ~up_to : before | ~up_to) | own) & (uint8_t)~ready;
	for (uint8_t left = passed & port->with_deficit; left; left &= (uint8_t)(left - 1))
		port->queues[__builtin_ctz(left)].deficit = 0;
	port->with_deficit &= (uint8_t)~passed;
	port->turn = next;
	port->has_begun_turn = false;
}

/* Deficit round robin: a quantum is at least a packet, so one round always finds one. */
static uint8_t weighted_class(const struct shard *shard, struct port *port, uint8_t ready)
{
	for (;; pass_turn(port, ready)) {
		struct port_queue *queue = &port->queues[port->turn];
		if (!(ready & 1u << port->turn))
			continue;
		if (!port->has_begun_turn)
			queue->deficit += queue->quantum;
		port->has_begun_turn = true;
		port->with_deficit |= (uint8_t)(1u << port->turn);
		if (shard->packets[queue->head].wire_bytes <= queue->deficit)
			return port->turn;
	}
}

static uint8_t next_class(const struct shard *shard, struct port *port)
{
	uint8_t ready = 0;
	for (uint8_t class = 0; port->occupied >> class; class ++)
		if (port->occupied & 1u << class && !port_is_stopped(shard, port, class))
			ready |= (uint8_t)(1u << class);
	if (ready == 0)
		return NO_CLASS;
	uint8_t class = strict_class(port, ready);
	return class != NO_CLASS ? class : weighted_class(shard, port, ready);
}

static uint32_t take(struct shard *shard, uint32_t number, uint8_t class)
{
	struct port *port = shard->fabric->ports[number];
	struct port_queue *queue = &port->queues[class];
	uint32_t index = queue->head;
	const struct packet *packet = &shard->packets[index];
	queue->head = packet->next;
	assert(queue->bytes >= packet->wire_bytes);
	see(shard, number);
	queue->bytes -= packet->wire_bytes;
	port->bytes -= packet->wire_bytes;
	if (queue->head == NO_PACKET)
		port->occupied &= (uint8_t) ~(1u << class);
	assert((queue->head == NO_PACKET) == (queue->bytes == 0));
	return index;
}

void port_drop_queue(struct shard *shard, uint32_t number, uint8_t class)
{
	struct port *port = shard->fabric->ports[number];
	while (port->occupied & 1u << class) {
		uint32_t index = take(shard, number, class);
		buffer_release(shard, &shard->packets[index], class);
		port_drop(shard, number, index);
	}
}

static void send_packet(struct shard *shard, uint32_t number, uint8_t class)
{
	struct fabric *fabric = shard->fabric;
	struct link *link = &fabric->links[number];
	struct port *port = fabric->ports[number];
	uint32_t index = take(shard, number, class);
	struct packet *packet = &shard->packets[index];
	struct port_queue *queue = &port->queues[class];
	vb_time at = shard->now;
	credits_take(queue, packet);
	if (queue->quantum) {
		assert(queue->deficit >= packet->wire_bytes);
		queue->deficit -= packet->wire_bytes;
	}
	if (link->kind == LINK_PORT) {
		vb_time last = packet->at - link_time(fabric, link, packet->wire_bytes);
		if (last > at) /* the wire must not overtake the packet's end */
			at = last;
		mark(shard, number, packet, class, MARKS_LEAVING);
		buffer_release(shard, packet, class); /* which may send a frame, and so move the packets */
	}
	link_send(shard, number, index, at);
}

static bool next_frame(struct fabric *fabric, uint32_t number, struct frame *frame)
{
	struct port *port = fabric->ports[number];
	if (port->pauses_due) {
		*frame = (struct frame){ FRAME_PAUSE, port->pauses_due, (uint64_t)port->profile->pause_quanta };
		port->pauses_due = 0;
		fabric->counts[number].pauses++;
	} else if (port->resumes_due) {
		*frame = (struct frame){ FRAME_RESUME, port->resumes_due, 0 };
		port->resumes_due = 0;
		fabric->counts[number].resumes++;
	} else if (port->credits_due) {
		uint8_t lane = (uint8_t)__builtin_ctz(port->credits_due);
		*frame = (struct frame){ FRAME_CREDIT, (uint8_t)(1u << lane), credits_granted(fabric, number, lane) };
		port->credits_due &= (uint8_t) ~(1u << lane);
	} else {
		return false;
	}
	return true;
}

static void send_frame(struct shard *shard, uint32_t number, const struct frame *frame)
{
	assert(frame->classes != 0);
	uint32_t index = packet_get(shard);
	if (index == NO_PACKET)
		return;
	shard->headers[index] = (struct short_headers){ 0 };
	shard->packets[index] = (struct packet){ .is_frame = true,
		.says = (uint64_t)frame->kind | (uint64_t)frame->classes << 8 | frame->value << 16,
		.wire_bytes = frame->kind == FRAME_CREDIT ? CREDIT_BYTES : PAUSE_BYTES };
	link_send(shard, number, index, shard->now);
}

bool port_send_next(struct shard *shard, uint32_t number)
{
	struct frame frame;
	assert(shard->fabric->links[number].free_at <= shard->now);
	if (next_frame(shard->fabric, number, &frame)) {
		send_frame(shard, number, &frame);
		return true;
	}
	uint8_t class = next_class(shard, shard->fabric->ports[number]);
	if (class == NO_CLASS)
		return false;
	send_packet(shard, number, class);
	return true;
}

void port_run(struct shard *shard, uint32_t number)
{
	const struct link *link = &shard->fabric->links[number];
	struct port *port = shard->fabric->ports[number];
	if (port->is_awaited || (link->free_at <= shard->now && !port_send_next(shard, number)))
		return;
	if (!(port->occupied | port->pauses_due | port->resumes_due | port->credits_due))
		return;
	assert(link->free_at >= shard->now);
	port->is_awaited = true;
	events_add(&shard->events, link->free_at, event_key(EVENT_PORT, 0, number));
}

void port_wake(struct shard *shard, uint32_t number)
{
	if (shard->fabric->links[number].kind == LINK_PORT)
		port_run(shard, number);
	else
		endpoint_wake(shard, network_index(shard->fabric->network->links[number].from));
}

/* The wire is free, or a pause may be over. */
void port_on_event(struct shard *shard, uint32_t number)
{
	const struct link *link = &shard->fabric->links[number];
	pfc_end_pauses(shard, number);
	if (link->kind == LINK_PORT && link->free_at > shard->now)
		return;
	shard->fabric->ports[number]->is_awaited = false;
	port_wake(shard, number);
}

void port_on_frame(struct shard *shard, uint32_t number, const struct packet *packet)
{
	const struct frame frame = { (enum frame_kind)(packet->says & 0xFF), packet->says >> 8 & 0xFF,
		packet->says >> 16 };
	uint32_t back = shard->fabric->network->links[number].reverse;
	assert(packet->is_frame);
	if (frame.kind == FRAME_CREDIT)
		credits_on_frame(shard, back, &frame);
	else
		pfc_on_frame(shard, back, &frame);
}

void port_say(struct fabric *fabric, uint32_t number, vb_time now)
{
	struct shard *any = &fabric->shards[0]; /* none runs any more */
	const struct port *port = fabric->ports[number];
	struct fabric_link_counts *counts = &fabric->counts[number];
	counts->most_queued = port->most_bytes;
	counts->queued_area += port->area;
	series_on_queue(any, number, port->bytes, port->seen_at, now);
	for (uint8_t class = 0; port->paused >> class; class ++)
		if (port->paused & 1u << class) {
			counts->paused += now - port->queues[class].paused_at;
			series_on_pause(any, number, port->queues[class].paused_at, now);
		}
}
