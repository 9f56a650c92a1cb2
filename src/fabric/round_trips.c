/* See round_trips.h. Many flows share few different round trips: each has one list of values, in each shard that needs
 * it. */
#include "base/invariant.h"
#include "fabric/round_trips.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "net/grow.h"
#include "net/unloaded.h"
#include "fabric/state.h"

enum { MOST_HOPS = 64 };

/* ---- Times of paths ---------------------------------------------------------------------------------------------- */

static vb_time time_on(const struct network *network, uint32_t link, uint64_t bytes)
{
	vb_time time = (vb_time)((unsigned __int128)bytes * 8000000000000u / network_rate(network, link));
	return network->is_whole_ns ? time - time % VB_NS : time;
}

static bool is_cut_through(const struct network *network, uint32_t link)
{
	const struct switch_profile *to = network_profile(network, network->links[link].to);
	return to && to->is_cut_through;
}

vb_time way_time(const struct network *network, const struct routes *routes, uint32_t src, uint32_t dst, uint32_t bytes)
{
	const uint32_t head = bytes < LINK_HEADER_BYTES ? bytes : LINK_HEADER_BYTES;
	uint32_t link = network->endpoints[src].link;
	vb_time delays = 0, may_begin = 0, ends = 0; /* on the current link, without delays that shift all bits alike */
	for (unsigned hop = 0; hop < MOST_HOPS; hop++) {
		const vb_time takes = time_on(network, link, bytes);
		ends = may_begin + takes > ends ? may_begin + takes : ends; /* no bit leaves before it has arrived */
		delays += link_delay(network, link);
		if (!network_is_switch(network->links[link].to))
			break;
		may_begin = is_cut_through(network, link) ? ends - takes + time_on(network, link, head) : ends;
		const struct route_choice choice = routes_towards(routes, network_index(network->links[link].to), dst);
		if (choice.count == 0)
			break;
		link = choice.links[0];
	}
	return delays + ends;
}

/* As engines send on Ethernet, without the RETH of a message's first packet. */
static uint32_t overhead_of(uint32_t given)
{
	return given ? given : FRAMING_ROCE_OVERHEAD;
}

/* How many packets one waits for, at most, before all are acknowledged together. */
static uint32_t packets_waited_for(const struct fabric_config *config)
{
	uint32_t every = config->ack_every ? config->ack_every : 1;
	if (config->receive_buffer && !config->ack_every)
		every = vb_lane_behind_sockets(config->receive_buffer).acks.every_bytes / config->mtu;
	return every ? every - 1 : 0;
}

vb_time round_trip_time(const struct fabric_config *config, const struct routes *routes, uint32_t src, uint32_t dst)
{
	enum { AETH = 4 };
	const struct network *network = config->network;
	const uint32_t ack = overhead_of(config->ack_overhead) + (config->ack_overhead ? 0 : AETH);
	const uint32_t packet = config->mtu + overhead_of(config->data_overhead);
	return way_time(network, routes, src, dst, packet) + way_time(network, routes, dst, src, ack) +
	       packets_waited_for(config) * time_on(network, network->endpoints[src].link, packet) +
	       network->nics[network->endpoints[src].nic].wake_latency +
	       network->nics[network->endpoints[dst].nic].wake_latency;
}

/* ---- Configurations by round trip -------------------------------------------------------------------------------- */

struct round_trip {
	vb_time time;
	struct vb_cc_config config; /* with these values, for a line of its rate */
	uint64_t values[VB_CC_PARAMETERS_MAX];
};

struct round_trips {
	struct round_trip **list; /* sorted by time and line rate; each entry stays in place, as QPs borrow it */
	uint32_t count, room;
	uint64_t common[VB_CC_PARAMETERS_MAX];
};

static bool is_path(const struct fabric_config *config, unsigned parameter)
{
	const struct vb_cc_algorithm *algorithm = config->cc.algorithm;
	return config->cc.parameters && algorithm->parameters[parameter].may_be_path &&
	       ((const uint64_t *)config->cc.parameters)[parameter] == VB_CC_PATH;
}

bool round_trips_are_wanted(const struct fabric_config *config)
{
	const struct vb_cc_algorithm *algorithm = config->cc.algorithm;
	for (unsigned i = 0; algorithm && config->endpoint == FABRIC_ENGINE && i < algorithm->parameter_count; i++)
		if (is_path(config, i))
			return true;
	return false;
}

/* The run's configuration, with this time for parameters that ask for the path's; 0: their default. */
static void fill(const struct fabric_config *config, vb_time time, uint64_t *values)
{
	const struct vb_cc_algorithm *algorithm = config->cc.algorithm;
	for (unsigned i = 0; i < algorithm->parameter_count; i++) {
		const uint64_t instead = time ? (uint64_t)time : algorithm->parameters[i].preset;
		values[i] = is_path(config, i) ? instead : ((const uint64_t *)config->cc.parameters)[i];
	}
}

/* Behind sockets the line's rate is unknown. */
static uint64_t line_rate_of(const struct fabric_config *config, uint32_t src)
{
	return config->receive_buffer ? 0 : network_rate(config->network, config->network->endpoints[src].link) / 8;
}

static bool is_before(const struct round_trip *trip, vb_time time, uint64_t line_rate)
{
	return trip->time < time || (trip->time == time && trip->config.line_rate < line_rate);
}

/* Its index in the list, or where it belongs. */
static uint32_t place_of(const struct round_trips *trips, vb_time time, uint64_t line_rate)
{
	uint32_t low = 0, high = trips->count;
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		if (is_before(trips->list[middle], time, line_rate))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Makes one at its place in the list. */
static struct round_trip *add(
	const struct fabric_config *config, struct round_trips *trips, uint32_t place, vb_time time, uint64_t line_rate)
{
	struct round_trip *added = malloc(sizeof(*added));
	if (!added || !grow_by_one(&trips->list, &trips->room, trips->count, sizeof(*trips->list))) {
		free(added);
		return NULL;
	}
	added->time = time;
	added->config = config->cc;
	added->config.line_rate = line_rate;
	added->config.parameters = added->values;
	fill(config, time, added->values);
	memmove(&trips->list[place + 1], &trips->list[place], (trips->count++ - place) * sizeof(*trips->list));
	trips->list[place] = added;
	assert(place < trips->count);
	return added;
}

int round_trips_open(struct fabric *fabric)
{
	const struct fabric_config *config = fabric->config;
	if (!round_trips_are_wanted(config))
		return 0;
	for (uint32_t i = 0; i < fabric->shard_count; i++) {
		struct round_trips *trips = fabric->shards[i].round_trips = calloc(1, sizeof(*trips));
		if (!trips)
			return -ENOMEM;
		fill(config, 0, trips->common);
	}
	return 0;
}

void round_trips_close(struct fabric *fabric)
{
	for (uint32_t k = 0; fabric->shards && k < fabric->shard_count; k++) {
		struct round_trips *trips = fabric->shards[k].round_trips;
		for (uint32_t i = 0; trips && i < trips->count; i++)
			free(trips->list[i]);
		if (trips)
			free(trips->list);
		free(trips);
	}
}

struct vb_cc_config round_trips_common(const struct fabric *fabric)
{
	struct vb_cc_config config = fabric->config->cc;
	if (fabric->shards[0].round_trips)
		config.parameters = fabric->shards[0].round_trips->common;
	return config;
}

int round_trips_config(struct shard *shard, uint32_t src, uint32_t dst, const struct vb_cc_config **found)
{
	const struct fabric_config *config = shard->fabric->config;
	struct round_trips *trips = shard->round_trips;
	const vb_time time = round_trip_time(config, shard->fabric->routes, src, dst);
	const uint64_t line_rate = line_rate_of(config, src);
	const uint32_t place = place_of(trips, time, line_rate);
	struct round_trip *its = place < trips->count ? trips->list[place] : NULL;
	if (!its || its->time != time || its->config.line_rate != line_rate)
		its = add(config, trips, place, time, line_rate);
	if (!its)
		return -ENOMEM;
	*found = &its->config;
	return 0;
}
