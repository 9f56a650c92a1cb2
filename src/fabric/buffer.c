/* Shared buffers. A class of an ingress port has a reserve, then shares: its share may grow to alpha times the free
 * part of the shared room. A lossless class that reaches this is paused, and what still arrives goes into its headroom;
 * a lossy class is bounded by the same rule in the output queue. The packet that reaches the threshold is still taken,
 * so the room of a largest packet is set aside for each lossless class. */
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "fabric/buffer.h"
#include "fabric/credits.h"
#include "net/grow.h"
#include "fabric/pfc.h"
#include "fabric/port.h"
#include "fabric/stories.h"
#include "fabric/trim.h"
#include "net/why.h"

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

uint32_t buffer_alpha(
	const struct network *network, uint32_t link, const struct switch_profile *profile, uint32_t class)
{
	const double most = 4096;
	double alpha = profile->classes[class].alpha;
	if (profile->alpha_bits_per_second)
		alpha = alpha * (double)network->links[link].bits_per_second / (double)profile->alpha_bits_per_second;
	uint32_t units = (uint32_t)((alpha < most ? alpha : most) * 1024 + 0.5);
	return alpha > 0 && units == 0 ? 1 : units; /* 0 would mean no bound */
}

uint32_t buffer_largest_packet(const struct fabric_config *config)
{
	enum { ETHERNET = 14 + 4 + 8 + 12, IP_UDP = 20 + 8, HEADERS = 12 + 16 + 4 + 4 }; /* BTH, RETH, ImmDt, ICRC */
	uint32_t data = config->mtu + (config->data_overhead ? config->data_overhead : ETHERNET + IP_UDP + HEADERS);
	uint32_t ack = config->ack_overhead;
	if (config->endpoint == FABRIC_TCP)
		ack = (ack ? ack : FABRIC_TCP_OVERHEAD) + FABRIC_TCP_SACK(FABRIC_TCP_BLOCKS);
	return ack > data ? ack : data;
}

uint64_t buffer_headroom(const struct fabric_config *config, uint32_t link)
{
	const struct switch_profile *profile = network_profile(config->network, config->network->links[link].to);
	return profile->headroom_bytes ? profile->headroom_bytes : pfc_headroom(config, link);
}

/* The room that the ports of a switch set aside, in total. */
static uint64_t kept_aside(const struct fabric_config *config, uint32_t at_switch)
{
	const struct network *network = config->network;
	const struct network_switch *its = &network->switches[at_switch];
	const struct switch_profile *profile = &network->profiles[its->profile];
	uint64_t kept = 0;
	for (uint32_t i = 0; i < its->port_count; i++) {
		uint32_t in_link = network->links[network->ports[its->first_port + i]].reverse;
		const uint64_t headroom = buffer_headroom(config, in_link) + buffer_largest_packet(config);
		uint32_t lossless = 0;
		for (uint32_t class = 0; class < profile->class_count; class ++)
			lossless += pfc_is_lossless(profile, class);
		if (profile->keeps == KEEPS_PORTS)
			kept += profile->reserved_bytes + (lossless ? headroom : 0);
		else
			kept += profile->reserved_bytes * profile->class_count + headroom * lossless;
	}
	return kept;
}

static bool has_buffer(const struct switch_profile *profile)
{
	return profile->flow_control != FLOW_DROPS || (profile->buffer_bytes && !profile->port_bytes);
}

uint64_t buffer_shared(const struct fabric_config *config, uint32_t at_switch)
{
	const struct network *network = config->network;
	const struct switch_profile *profile = &network->profiles[network->switches[at_switch].profile];
	bool is_bounded = has_buffer(profile) && profile->buffer_bytes && profile->flow_control != FLOW_CREDITS;
	uint64_t kept = is_bounded ? kept_aside(config, at_switch) : 0;
	if (!is_bounded)
		return UINT64_MAX;
	return kept < profile->buffer_bytes ? profile->buffer_bytes - kept : 0;
}

/* Of intervals after which an event repeats, and which a frame must be able to carry. */
static bool is_out_of_bounds(vb_time span)
{
	return span != 0 && (span < VB_US || span >= (vb_time)1 << 48);
}

/* Where one end of a link stops classes of the other, both have the same number of classes. */
static int check_classes(const struct network *network, char *why, unsigned why_size)
{
	for (uint32_t i = 0; i < network->link_count; i++) {
		const struct switch_profile *from = network_profile(network, network->links[i].from);
		const struct switch_profile *to = network_profile(network, network->links[i].to);
		if (from && to && to->flow_control != FLOW_DROPS && from->class_count != to->class_count)
			return why_not(why, why_size,
				"link %u joins switches \"%s\" of %u classes and \"%s\" of %u: "
				"where one stops the other's classes, both must have as many",
				i, from->name, from->class_count, to->name, to->class_count);
	}
	return 0;
}

int buffer_check(const struct fabric_config *config, char *why, unsigned why_size)
{
	const struct network *network = config->network;
	for (uint32_t i = 0; i < network->switch_count; i++) {
		const struct switch_profile *profile = &network->profiles[network->switches[i].profile];
		if (profile->class_count < 1 || profile->class_count > FABRIC_CLASSES)
			return why_not(why, why_size, "switches \"%s\" have %u classes, and must have 1 to %u",
				profile->name, profile->class_count, FABRIC_CLASSES);
		if (profile->flow_control == FLOW_CREDITS && profile->credit_bytes < buffer_largest_packet(config) + 63)
			return why_not(
				why, why_size, "switches \"%s\" give credits for less than a packet", profile->name);
		if (profile->port_bytes > 1ull << 40)
			return why_not(
				why, why_size, "switches \"%s\" have port buffers of more than 1 TiB", profile->name);
		if (is_out_of_bounds(profile->pause_quanta) || is_out_of_bounds(profile->watchdog))
			return why_not(why, why_size,
				"switches \"%s\" have a pause or watchdog time that is not 0, and not 1 us to "
				"281 s",
				profile->name);
		if (profile->buffer_bytes > 1ull << 40)
			return why_not(
				why, why_size, "switches \"%s\" have a buffer of more than 1 TiB", profile->name);
		if (!has_buffer(profile) || !profile->buffer_bytes || profile->flow_control == FLOW_CREDITS)
			continue;
		uint64_t kept = kept_aside(config, i);
		if (kept > profile->buffer_bytes)
			return why_not(why, why_size,
				"switch %u has a buffer of %llu bytes, and its ports keep %llu aside", i,
				(unsigned long long)profile->buffer_bytes, (unsigned long long)kept);
	}
	return check_classes(network, why, why_size);
}

static int open_ingress(struct fabric *fabric, uint32_t number, const struct switch_profile *profile)
{
	assert(!fabric->ingresses[number]);
	struct ingress *ingress = grow_lines(sizeof(*ingress) + profile->class_count * sizeof(ingress->classes[0]));
	if (!ingress)
		return -ENOMEM;
	ingress->profile = profile;
	ingress->at_switch = network_index(fabric->network->links[number].to);
	ingress->headroom_bytes = buffer_headroom(fabric->config, number);
	for (uint32_t class = 0; class < profile->class_count; class ++) {
		ingress->classes[class].alpha = buffer_alpha(fabric->network, number, profile, class);
		ingress->classes[class].blocks_freed = profile->credit_bytes / CREDIT_BLOCK;
	}
	fabric->ingresses[number] = ingress;
	return stories_open(fabric, ingress, number);
}

int buffers_open(struct fabric *fabric)
{
	const struct network *network = fabric->network;
	for (uint32_t i = 0; i < network->switch_count; i++)
		fabric->buffers[i].shared = buffer_shared(fabric->config, i);
	for (uint32_t i = 0; i < network->link_count; i++) {
		const struct switch_profile *profile = network_profile(network, network->links[i].to);
		if (profile && has_buffer(profile) && open_ingress(fabric, i, profile))
			return -ENOMEM;
	}
	return 0;
}

void buffers_close(struct fabric *fabric)
{
	for (uint32_t i = 0; fabric->ingresses && i < fabric->network->link_count; i++) {
		if (fabric->ingresses[i])
			stories_close(fabric->ingresses[i]);
		free(fabric->ingresses[i]);
	}
}

/* ---- Thresholds -------------------------------------------------------------------------------------------------- */

static uint64_t free_of(const struct buffer *buffer)
{
	if (buffer->shared == UINT64_MAX)
		return UINT64_MAX;
	return buffer->shared > buffer->used ? buffer->shared - buffer->used : 0;
}

static uint64_t threshold(const struct buffer *buffer, uint32_t alpha, uint64_t limit)
{
	uint64_t bytes = free_of(buffer);
	if (alpha && bytes != UINT64_MAX)
		bytes = bytes * alpha >> 10;
	return limit && limit < bytes ? limit : bytes;
}

static uint64_t share_of(const struct ingress *ingress, uint64_t bytes)
{
	uint64_t reserved = ingress->profile->reserved_bytes;
	return bytes > reserved ? bytes - reserved : 0;
}

uint64_t buffer_threshold(const struct fabric *fabric, const struct ingress *ingress, uint8_t class)
{
	return threshold(&fabric->buffers[ingress->at_switch], ingress->classes[class].alpha,
		ingress->profile->classes[class].limit_bytes);
}

bool buffer_is_over(const struct fabric *fabric, const struct ingress *ingress, uint8_t class)
{
	return ingress->classes[class].headroom > 0 ||
	       share_of(ingress, ingress->classes[class].bytes) >= buffer_threshold(fabric, ingress, class);
}

bool buffer_is_under(const struct fabric *fabric, const struct ingress *ingress, uint8_t class)
{
	uint64_t share = share_of(ingress, ingress->classes[class].bytes);
	return ingress->classes[class].headroom == 0 &&
	       (share == 0 || share + ingress->profile->resume_offset <= buffer_threshold(fabric, ingress, class));
}

/* ---- In and out -------------------------------------------------------------------------------------------------- */

static void set_bytes(struct fabric *fabric, struct ingress *ingress, uint8_t class, uint64_t bytes)
{
	struct ingress_class *its = &ingress->classes[class];
	struct buffer *buffer = &fabric->buffers[ingress->at_switch];
	buffer->used = buffer->used + share_of(ingress, bytes) - share_of(ingress, its->bytes);
	its->bytes = bytes;
}

static bool admit_lossless(struct fabric *fabric, struct ingress *ingress, uint8_t class, uint32_t bytes)
{
	struct ingress_class *its = &ingress->classes[class];
	if (!(ingress->paused & 1u << class) || !buffer_is_over(fabric, ingress, class)) {
		set_bytes(fabric, ingress, class, its->bytes + bytes);
		return true;
	}
	if (its->headroom + bytes > ingress->headroom_bytes)
		return false;
	its->headroom += bytes;
	assert(its->headroom <= ingress->headroom_bytes);
	return true;
}

/* In the port, but for the class that has room of its own. */
static uint64_t buffered(const struct port *port)
{
	return port->bytes - (port->profile->trim_bytes ? port->queues[port->profile->class_count - 1].bytes : 0);
}

static bool has_room(const struct fabric *fabric, const struct port *port, const struct ingress *ingress, uint8_t class,
	uint32_t bytes)
{
	const struct port_queue *queue = &port->queues[class];
	const struct class_profile *profile = &port->profile->classes[class];
	if (port->profile->port_bytes && buffered(port) + bytes > port->profile->port_bytes)
		return false;
	if (profile->limit_bytes && queue->bytes + bytes > profile->limit_bytes)
		return false;
	if (!ingress)
		return true;
	const struct buffer *buffer = &fabric->buffers[ingress->at_switch];
	uint64_t now = ingress->classes[class].bytes;
	uint64_t wanted = share_of(ingress, now + bytes) - share_of(ingress, now);
	return wanted == 0 || (wanted <= free_of(buffer) && queue->bytes + bytes <= threshold(buffer, queue->alpha, 0));
}

bool buffer_admit(struct shard *shard, uint32_t number, const struct packet *packet)
{
	struct fabric *fabric = shard->fabric;
	const struct port *port = fabric->ports[number];
	struct ingress *ingress = fabric->ingresses[packet->in_link];
	const uint8_t class = port_class(port, packet);
	const uint32_t bytes = packet->wire_bytes;
	if (port->profile->flow_control == FLOW_CREDITS) /* the sender had credits for it */
		return true;
	if (trim_has_own_room(port->profile, class))
		return port->queues[class].bytes + bytes <= trim_room(port->profile);
	if (pfc_is_lossless(port->profile, class))
		return admit_lossless(fabric, ingress, class, bytes);
	if (!has_room(fabric, port, ingress, class, bytes))
		return false;
	if (ingress)
		set_bytes(fabric, ingress, class, ingress->classes[class].bytes + bytes);
	return true;
}

void buffer_release(struct shard *shard, const struct packet *packet, uint8_t class)
{
	struct fabric *fabric = shard->fabric;
	struct ingress *ingress = fabric->ingresses[packet->in_link];
	if (!ingress || trim_has_own_room(ingress->profile, class))
		return;
	if (ingress->profile->flow_control == FLOW_CREDITS) {
		credits_give(shard, packet->in_link, class, packet->wire_bytes);
		return;
	}
	struct ingress_class *its = &ingress->classes[class];
	uint64_t bytes = packet->wire_bytes, from_headroom = its->headroom < bytes ? its->headroom : bytes;
	assert(its->bytes >= bytes - from_headroom);
	its->headroom -= from_headroom;
	set_bytes(fabric, ingress, class, its->bytes - (bytes - from_headroom));
	pfc_on_released(shard, packet->in_link, class);
}
