/* See spread.h. */
#include "fabric/spread.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "fabric/path.h"
#include "net/grow.h"

int spread_open(struct spread *spread, const struct fabric_config *config, const struct routes *routes)
{
	const uint32_t switches = config->network->switch_count;
	*spread = (struct spread){ .config = config,
		.routes = routes,
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

/* All ways have as many links, so all that comes to a switch has come before its turn. */
int spread_walk(struct spread *spread, uint32_t src, uint32_t dst, uint16_t port)
{
	spread->switch_count = 0;
	if (!take_link(spread, spread->config->network->endpoints[src].link, MAX_MIN_WHOLE))
		return -ENOMEM;
	for (uint32_t next = 0; next < spread->switch_count; next++) {
		const uint32_t at = spread->queue[next], part = spread->parts[at];
		const struct route_choice ways = path_ways(spread->config, spread->routes, at, src, dst, port);
		assert(ways.count > 0);
		spread->parts[at] = 0;
		for (uint32_t i = 0; i < ways.count; i++)
			if (!take_link(spread, ways.links[i], part > ways.count ? part / ways.count : 1))
				return -ENOMEM;
	}
	return 0;
}
