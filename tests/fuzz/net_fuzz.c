/* Any bytes as a file of a network ('t' before them), of flows ('f') or of a distribution of sizes ('s'): it is refused
 * with a reason, or it is a network whose links lead back and whose routes lead on, flows between its endpoints that
 * all begin, or sizes that can be drawn. Nothing may be leaked. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "net/flow_text.h"
#include "net/route.h"
#include "net/sizes.h"
#include "net/topology_text.h"

enum { ENDPOINTS = 100, MOST_ROUTES = 1 << 18 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static char why[100];

static void require(bool holds)
{
	if (!holds)
		abort();
}

/* A refusal has a reason, and what is accepted has none. */
static bool is_accepted(int error)
{
	require(error == 0 || (error == -EINVAL && why[0] && memchr(why, 0, sizeof(why))));
	return error == 0;
}

static void check_links(const struct network *network)
{
	for (uint32_t i = 0; i < network->link_count; i++) {
		const struct network_link *link = &network->links[i], *back = &network->links[link->reverse];
		require(back->reverse == i && back->from == link->to && back->to == link->from);
		require(link->bits_per_second > 0 && link->delay >= 0);
		require(link->fault == NETWORK_NONE || link->fault < network->fault_count);
	}
	for (uint32_t i = 0; i < network->endpoint_count; i++)
		require(network->links[network->endpoints[i].link].from == i);
}

/* From endpoint 0 to all others, always by the first choice. */
static void check_routes(const struct network *network)
{
	if ((uint64_t)network->switch_count * network->endpoint_count > MOST_ROUTES)
		return;
	struct routes *routes = routes_make(network);
	require(routes);
	for (uint32_t i = 1; i < network->endpoint_count; i++) {
		network_node at = network->links[network->endpoints[0].link].to;
		for (uint32_t steps = 0; at != i; steps++) {
			require(network_is_switch(at) && steps <= network->switch_count);
			struct route_choice choice = routes_towards(routes, network_index(at), i);
			require(choice.count > 0);
			at = network->links[choice.links[0]].to;
		}
	}
	routes_free(routes);
}

static void read_network(struct text *text)
{
	struct network network = { 0 };
	const struct topology like = { .profile = { .name = "p" }, .nic = { .name = "n" } };
	if (is_accepted(topology_read_text(text, &like, &network))) {
		check_links(&network);
		check_routes(&network);
	} else
		require(!network.links && !network.endpoints);
	network_free(&network);
}

static void read_flows(struct text *text)
{
	struct flow_list list = { 0 };
	if (is_accepted(flow_list_read_text(&list, text, ENDPOINTS)))
		require(flow_list_check(&list, ENDPOINTS, why, sizeof(why)) == 0);
	else
		require(list.count == 0 && list.wait_count == 0);
	flow_list_free(&list);
}

static void read_sizes(struct text *text)
{
	struct sizes sizes;
	if (!is_accepted(sizes_read(text, &sizes)))
		return;
	uint64_t most = sizes.points[sizes.count - 1].bytes;
	require(sizes_mean_millibytes(&sizes) / 1000 <= most);
	for (int i = 0; i < 64; i++)
		require(sizes_draw(&sizes, UINT64_MAX >> i) - 1 < most);
	sizes_free(&sizes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	if (length == 0)
		return 0;
	struct text text = text_of("f", (const char *)bytes + 1, length - 1, why, sizeof(why));
	why[0] = 0;
	if (bytes[0] == 't')
		read_network(&text);
	else if (bytes[0] == 'f')
		read_flows(&text);
	else if (bytes[0] == 's')
		read_sizes(&text);
	return 0;
}
