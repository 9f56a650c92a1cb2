/* See spread.h. */
#include "fabric/spread.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "fabric/path.h"
#include "net/grow.h"

int spread_open(
	struct spread *spread, const struct fabric_config *config, const struct routes *routes, struct detours *detours)
{
	const uint32_t switches = config->network->switch_count;
	*spread = (struct spread){ .config = config,
		.routes = routes,
		.detours = detours && detours->network ? detours : NULL,
		.parts = calloc(switches + 1, sizeof(*spread->parts)),
		.queue = calloc(switches + 1, sizeof(*spread->queue)) };
	return spread->parts && spread->queue ? 0 : -ENOMEM;
}

void spread_close(struct spread *spread)
{
	free(spread->parts);
	free(spread->queue);
	free(spread->hops);
	*spread = (struct spread){ 0 };
}

static bool take_link(struct spread *spread, uint32_t link, uint32_t part)
{
	const network_node to = spread->config->network->links[link].to;
	if (!grow_by_one(&spread->hops, &spread->hop_room, spread->hop_count, sizeof(*spread->hops)))
		return false;
	spread->hops[spread->hop_count++] = (struct max_min_hop){ link, part };
	if (!network_is_switch(to))
		return true;
	if (spread->parts[network_index(to)] == 0)
		spread->queue[spread->switch_count++] = network_index(to);
	spread->parts[network_index(to)] += part;
	return true;
}

/* Of the switch at hand, whose links begin at `first` of the hops: two ways may have become one. */
static bool join_link(struct spread *spread, uint32_t first, uint32_t link, uint32_t part)
{
	const network_node to = spread->config->network->links[link].to;
	for (uint32_t i = first; i < spread->hop_count; i++)
		if (spread->hops[i].link == link) {
			spread->hops[i].weight += part;
			if (network_is_switch(to))
				spread->parts[network_index(to)] += part;
			return true;
		}
	return take_link(spread, link, part);
}

static bool is_adaptive(const struct spread *spread, uint32_t at)
{
	const struct network *network = spread->config->network;
	return network->profiles[network->switches[at].profile].routing == ROUTING_ADAPTIVE;
}

static uint32_t count_leading(const struct spread *spread, const struct route_choice *ways, uint32_t dst)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < ways->count; i++)
		count += detours_lead(spread->detours, ways->links[i], dst, spread->now);
	return count;
}

/* A switch that sprays takes the next link in place of one that is known to be down; an adaptive one, any other. */
static bool take_detours(
	struct spread *spread, uint32_t at, uint32_t dst, const struct route_choice *ways, uint32_t part)
{
	const uint32_t first_hop = spread->hop_count;
	const struct route_choice all = routes_towards(spread->routes, at, dst);
	detours_look(spread->detours);
	const uint32_t leading = is_adaptive(spread, at) ? count_leading(spread, ways, dst) : 0;
	const uint32_t shares = leading ? leading : ways->count;
	for (uint32_t i = 0; i < ways->count; i++) {
		const uint32_t first = (uint32_t)(ways->links - all.links) + i;
		const uint32_t link = detours_first_up(spread->detours, all, first, dst, spread->now);
		if (leading && link != ways->links[i])
			continue;
		if (!join_link(spread, first_hop, link, part > shares ? part / shares : 1))
			return false;
	}
	return true;
}

static bool take_ways(struct spread *spread, uint32_t at, uint32_t src, uint32_t dst, uint16_t port, uint32_t part)
{
	const struct route_choice ways = path_ways(spread->config, spread->routes, at, src, dst, port);
	assert(ways.count > 0);
	if (spread->detours)
		return take_detours(spread, at, dst, &ways, part);
	for (uint32_t i = 0; i < ways.count; i++)
		if (!take_link(spread, ways.links[i], part > ways.count ? part / ways.count : 1))
			return false;
	return true;
}

/* All ways have as many links, so all that comes to a switch has come before its turn. */
int spread_walk(struct spread *spread, uint32_t src, uint32_t dst, uint16_t port)
{
	spread->switch_count = 0;
	if (!take_link(spread, spread->config->network->endpoints[src].link, MAX_MIN_WHOLE))
		return -ENOMEM;
	for (uint32_t next = 0; next < spread->switch_count; next++) {
		const uint32_t at = spread->queue[next], part = spread->parts[at];
		spread->parts[at] = 0;
		if (!take_ways(spread, at, src, dst, port, part))
			return -ENOMEM;
	}
	return 0;
}
