/* See thresholds.h. In a buffer S of which n classes of ports may each use alpha times the free part, each gets alpha S
 * / (1 + n alpha). */
#include "fabric/thresholds.h"
#include "fabric/buffer.h"
#include "fabric/pfc.h"
#include "fabric/port.h"

enum { ONE = 1024 }; /* alpha is in units of 1/1024 */

static const struct network_switch *switch_of(const struct network *network, uint32_t link)
{
	return &network->switches[network_index(network->links[link].from)];
}

static const struct switch_profile *profile_of(const struct network *network, uint32_t link)
{
	return network_profile(network, network->links[link].from);
}

static uint64_t mark_bytes(const struct network *network, uint32_t link, uint32_t given)
{
	return port_mark_bytes(profile_of(network, link), network->links[link].bits_per_second, given);
}

uint64_t threshold_mark_min(const struct network *network, uint32_t link, uint32_t class)
{
	return mark_bytes(network, link, profile_of(network, link)->classes[class].mark_min);
}

uint64_t threshold_mark_max(const struct network *network, uint32_t link, uint32_t class)
{
	return mark_bytes(network, link, profile_of(network, link)->classes[class].mark_max);
}

uint64_t threshold_headroom(const struct fabric_config *config, uint32_t link)
{
	const struct switch_profile *profile = network_profile(config->network, config->network->links[link].to);
	bool is_any = false;
	for (uint32_t class = 0; profile && class < profile->class_count; class ++)
		is_any |= pfc_is_lossless(profile, class);
	return is_any && profile->buffer_bytes ? pfc_headroom(config, link) : 0;
}

/* The senders to a link's queue: the other ports of its switch. */
struct senders {
	const struct fabric_config *config;
	const struct switch_profile *profile;
	uint64_t shared; /* of the buffer */
	uint64_t alphas; /* the sum of theirs */
	uint64_t most;   /* what they have beside the shared room */
	uint32_t count;
	bool is_bounded; /* each has an alpha */
};

static struct senders senders_of(const struct fabric_config *config, uint32_t link, uint32_t class)
{
	const struct network *network = config->network;
	const struct network_switch *its = switch_of(network, link);
	struct senders senders = { .config = config,
		.profile = profile_of(network, link),
		.is_bounded = true,
		.shared = buffer_shared(config, network_index(network->links[link].from)) };
	for (uint32_t i = 0; i < its->port_count; i++) {
		uint32_t out = network->ports[its->first_port + i];
		if (out == link)
			continue;
		uint32_t alpha = buffer_alpha(network, network->links[out].reverse, senders.profile, class);
		senders.count++;
		senders.alphas += alpha;
		senders.is_bounded &= alpha != 0;
		senders.most +=
			senders.profile->reserved_bytes + buffer_largest_packet(config) +
			(pfc_is_lossless(senders.profile, class) ? buffer_headroom(config, network->links[out].reverse)
								 : 0);
	}
	return senders;
}

static uint64_t part_of(uint64_t shared, uint64_t alpha, uint64_t alphas)
{
	return (uint64_t)((unsigned __int128)shared * alpha / (ONE + alphas));
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A lossy class is bounded in its output queue, a paused one at its input. */
uint64_t threshold_queue_most(const struct fabric_config *config, uint32_t link, uint32_t class)
{
	const struct switch_profile *profile = profile_of(config->network, link);
	const struct class_profile *its = &profile->classes[class];
	const struct senders senders = senders_of(config, link, class);
	if (profile->flow_control == FLOW_CREDITS)
		return senders.count * profile->credit_bytes;
	uint64_t shared = senders.shared;
	if (pfc_is_lossless(profile, class)) {
		if (shared == UINT64_MAX)
			return its->limit_bytes ? senders.count * its->limit_bytes + senders.most : UINT64_MAX;
		if (senders.is_bounded)
			shared = part_of(shared, senders.alphas, senders.alphas);
		return (its->limit_bytes ? least(shared, senders.count * its->limit_bytes) : shared) + senders.most;
	}
	const uint32_t alpha = buffer_alpha(config->network, link, profile, class);
	uint64_t most = shared;
	if (shared != UINT64_MAX)
		most = least(shared, alpha ? part_of(shared, alpha, alpha) : shared) + senders.most;
	if (its->limit_bytes)
		most = least(most, its->limit_bytes);
	return profile->port_bytes ? least(most, profile->port_bytes) : most;
}

/* How many links of a rate make a queue grow; more than there are: none do. */
static uint32_t needed(const struct network *network, uint32_t link, uint64_t rate)
{
	uint64_t count = network_rate(network, link) / rate + 1;
	return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

static uint32_t count_as_fast(const struct network *network, uint32_t link, uint64_t rate)
{
	const struct network_switch *its = switch_of(network, link);
	uint32_t count = 0;
	for (uint32_t i = 0; i < its->port_count; i++) {
		uint32_t out = network->ports[its->first_port + i];
		count += out != link && network_rate(network, network->links[out].reverse) >= rate;
	}
	return count;
}

/* The length of the queue when so many senders of this kind have their share in it. */
static uint64_t queue_of(const struct senders *senders, uint32_t in_link, uint32_t class, uint32_t count, bool is_busy)
{
	const uint64_t alpha = buffer_alpha(senders->config->network, in_link, senders->profile, class);
	const uint64_t limit = senders->profile->classes[class].limit_bytes;
	uint64_t share = senders->shared == UINT64_MAX ? UINT64_MAX : 0;
	if (share == 0 && is_busy)
		share = senders->is_bounded ? part_of(senders->shared, alpha, senders->alphas)
					    : senders->shared / senders->count;
	else if (share == 0)
		share = alpha ? part_of(senders->shared, alpha, alpha * count) : senders->shared / count;
	if (limit)
		share = least(share, limit);
	return share == UINT64_MAX ? UINT64_MAX : (share + senders->profile->reserved_bytes) * count;
}

uint64_t threshold_pause(const struct fabric_config *config, uint32_t link, uint32_t class, bool is_busy)
{
	const struct network *network = config->network;
	const struct network_switch *its = switch_of(network, link);
	const struct senders senders = senders_of(config, link, class);
	uint64_t shortest = UINT64_MAX, last_rate = 0;
	if (!pfc_is_lossless(senders.profile, class))
		return UINT64_MAX;
	for (uint32_t i = 0; i < its->port_count; i++) {
		uint32_t in_link = network->links[network->ports[its->first_port + i]].reverse;
		uint64_t rate = network_rate(network, in_link);
		if (network->links[in_link].reverse == link || rate == last_rate) /* neighbours are mostly alike */
			continue;
		last_rate = rate;
		uint32_t count = needed(network, link, rate);
		if (count <= count_as_fast(network, link, rate))
			shortest = least(shortest, queue_of(&senders, in_link, class, count, is_busy));
	}
	return shortest;
}
