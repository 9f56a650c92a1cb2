/* See pfc.h. A port's watchdog: a class that was paused for too long is taken to be stuck. For as long again its queue
 * is dropped, with all packets that arrive for it; then the pause holds again, unless it was taken back. */
#include "base/invariant.h"
#include "fabric/buffer.h"
#include "fabric/pfc.h"
#include "fabric/series.h"
#include "fabric/stories.h"

#define FRAME_BYTES     84
#define SMALLEST_PACKET 16 /* smaller ones are not worth describing */

/* ---- At the receiving end ---------------------------------------------------------------------------------------- */

static vb_time time_of(uint64_t bytes, uint64_t bits_per_second)
{
	return (vb_time)(((unsigned __int128)bytes * 8000000000000u + bits_per_second - 1) / bits_per_second);
}

static uint64_t bytes_in(vb_time time, uint64_t bits_per_second)
{
	return (uint64_t)((unsigned __int128)time * bits_per_second / 8000000000000u);
}

static bool cuts_through(const struct network *network, network_node node)
{
	return network_is_switch(node) && network_profile(network, node)->is_cut_through;
}

/* The slowest of the other links to the switch. */
static uint64_t slowest_beside(const struct network *network, uint32_t number)
{
	const struct network_switch *at = &network->switches[network_index(network->links[number].to)];
	uint64_t slowest = network_rate(network, number);
	bool is_any = false;
	for (uint32_t i = 0; i < at->port_count; i++) {
		const uint32_t out = network->ports[at->first_port + i];
		if (network->links[out].reverse == number || (is_any && network_rate(network, out) >= slowest))
			continue;
		slowest = network_rate(network, out);
		is_any = true;
	}
	return slowest;
}

/* For how long the wire in the other direction may be occupied already. */
static vb_time longest_wait(const struct network *network, uint32_t number, uint64_t largest)
{
	const struct network_link *link = &network->links[number];
	uint64_t bytes = largest > FRAME_BYTES ? largest : FRAME_BYTES; /* or another frame occupies it */
	vb_time wait = time_of(bytes, network_rate(network, link->reverse)), tail = 0;
	if (cuts_through(network, link->to) && largest > LINK_HEADER_BYTES)
		tail = time_of(largest - LINK_HEADER_BYTES, slowest_beside(network, number));
	return tail > wait ? tail : wait;
}

uint64_t pfc_headroom(const struct fabric_config *config, uint32_t number)
{
	const struct network *network = config->network;
	const struct network_link *link = &network->links[number], *back = &network->links[link->reverse];
	const uint64_t largest = buffer_largest_packet(config), rate = network_rate(network, number);
	const uint64_t heard = cuts_through(network, back->to) ? LINK_HEADER_BYTES : FRAME_BYTES;
	vb_time time = link_delay(network, number) + link_delay(network, link->reverse) +
		       longest_wait(network, number, largest) + time_of(heard, network_rate(network, link->reverse));
	if (network->is_whole_ns ||
		8000000000000u % rate) { /* rounding lets each packet take up to this much less than its bytes would */
		const vb_time less = network->is_whole_ns ? VB_NS : VB_PS;
		time += (vb_time)(bytes_in(time, rate) / SMALLEST_PACKET + 1) * less;
	}
	return bytes_in(time, rate) + largest;
}

/* A pause holds for a limited time, and is renewed after half of it. */
static void renew_later(struct shard *shard, uint32_t in_link, struct ingress *ingress)
{
	if (ingress->is_renewing || ingress->profile->pause_quanta == 0)
		return;
	ingress->is_renewing = true;
	events_add(
		&shard->events, shard->now + ingress->profile->pause_quanta / 2, event_key(EVENT_RENEWAL, 0, in_link));
}

void pfc_on_renewal(struct shard *shard, uint32_t in_link)
{
	struct ingress *ingress = shard->fabric->ingresses[in_link];
	assert(ingress->is_renewing);
	uint32_t back = shard->fabric->network->links[in_link].reverse;
	ingress->is_renewing = false;
	if (!ingress->paused)
		return;
	shard->fabric->ports[back]->pauses_due |= ingress->paused;
	renew_later(shard, in_link, ingress);
	port_run(shard, back);
}

void pfc_on_admitted(struct shard *shard, uint32_t in_link, uint8_t class)
{
	struct ingress *ingress = shard->fabric->ingresses[in_link];
	const uint8_t bit = (uint8_t)(1u << class);
	if (!ingress || !pfc_is_lossless(ingress->profile, class) || ingress->paused & bit ||
		!buffer_is_over(shard->fabric, ingress, class))
		return;
	uint32_t back = shard->fabric->network->links[in_link].reverse;
	struct port *port = shard->fabric->ports[back];
	ingress->paused |= bit;
	assert(!(port->pauses_due & bit));
	port->pauses_due |= bit;
	port->resumes_due &= (uint8_t)~bit;
	renew_later(shard, in_link, ingress);
	port_run(shard, back);
}

void pfc_on_released(struct shard *shard, uint32_t in_link, uint8_t class)
{
	struct ingress *ingress = shard->fabric->ingresses[in_link];
	const uint8_t bit = (uint8_t)(1u << class);
	if (!(ingress->paused & bit) || !buffer_is_under(shard->fabric, ingress, class))
		return;
	uint32_t back = shard->fabric->network->links[in_link].reverse;
	struct port *port = shard->fabric->ports[back];
	ingress->paused &= (uint8_t)~bit;
	assert(!(port->resumes_due & bit));
	story_on_resume(shard, ingress, class);
	port->resumes_due |= bit;
	port->pauses_due &= (uint8_t)~bit;
	port_run(shard, back);
}

/* ---- At the sending end ------------------------------------------------------------------------------------------ */

static void watch(struct shard *shard, uint32_t number, struct port_queue *queue)
{
	const struct port *port = shard->fabric->ports[number];
	if (shard->fabric->links[number].kind != LINK_PORT || port->profile->watchdog == 0)
		return;
	assert(queue->watch_at == 0);
	queue->watch_at = shard->now + port->profile->watchdog;
	events_add(&shard->events, queue->watch_at, event_key(EVENT_WATCH, 0, number));
}

static void pause(struct shard *shard, uint32_t number, uint8_t class, vb_time quanta)
{
	struct port *port = shard->fabric->ports[number];
	struct port_queue *queue = &port->queues[class];
	const uint8_t bit = (uint8_t)(1u << class);
	queue->paused_until = quanta ? shard->now + quanta : 0;
	if (quanta)
		events_add(&shard->events, queue->paused_until, event_key(EVENT_PORT, 0, number));
	if (port->paused & bit)
		return;
	port->paused |= bit;
	queue->paused_at = shard->now;
	if (!(port->dropped & bit))
		watch(shard, number, queue);
}

static void resume(struct shard *shard, uint32_t number, uint8_t class)
{
	struct port *port = shard->fabric->ports[number];
	struct port_queue *queue = &port->queues[class];
	const uint8_t bit = (uint8_t)(1u << class);
	if (!(port->paused & bit))
		return;
	port->paused &= (uint8_t)~bit;
	assert(queue->paused_at <= shard->now);
	shard->fabric->counts[number].paused += shard->now - queue->paused_at;
	series_on_pause(shard, number, queue->paused_at, shard->now);
	if (!(port->dropped & bit))
		queue->watch_at = 0;
}

void pfc_on_frame(struct shard *shard, uint32_t number, const struct frame *frame)
{
	assert(frame->kind != FRAME_CREDIT);
	const struct port *port = shard->fabric->ports[number];
	for (uint8_t class = 0; class < port->profile->class_count; class ++) {
		if (!(frame->classes & 1u << class))
			continue;
		if (frame->kind == FRAME_PAUSE)
			pause(shard, number, class, (vb_time)frame->value);
		else
			resume(shard, number, class);
	}
	if (frame->kind == FRAME_RESUME)
		port_wake(shard, number);
}

void pfc_end_pauses(struct shard *shard, uint32_t number)
{
	const struct port *port = shard->fabric->ports[number];
	for (uint8_t class = 0; port->paused >> class; class ++)
		if (port->paused & 1u << class && port->queues[class].paused_until &&
			port->queues[class].paused_until <= shard->now)
			resume(shard, number, class);
}

void pfc_on_watch(struct shard *shard, uint32_t number)
{
	struct port *port = shard->fabric->ports[number];
	for (uint8_t class = 0; class < port->profile->class_count; class ++) {
		struct port_queue *queue = &port->queues[class];
		const uint8_t bit = (uint8_t)(1u << class);
		if (queue->watch_at != shard->now)
			continue;
		queue->watch_at = 0;
		if (port->dropped & bit) {
			port->dropped &= (uint8_t)~bit;
			if (port->paused & bit)
				watch(shard, number, queue);
			continue;
		}
		assert(port->paused & bit);
		port->dropped |= bit;
		shard->fabric->counts[number].watchdog_fired++;
		watch(shard, number, queue);
		port_drop_queue(shard, number, class);
	}
}
