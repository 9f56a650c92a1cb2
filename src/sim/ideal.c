/* The time that a flow would take alone on the network. */
#include "sim/ideal.h"

#include <errno.h>
#include <stdlib.h>
#include "net/route.h"

enum { MAX_LINKS = 64 };

/* Unless a scenario gives the overhead: a RETH in a message's first packet, and an AETH in an acknowledgement. */
enum { OVERHEAD = FABRIC_ROCE_OVERHEAD, FIRST_MORE = 16, ACK_MORE = 4 };

/* The part of a packet that a cut-through switch needs before it forwards it. */
enum { HEADER_BYTES = 64 };

struct way {
	const struct network_link *links[MAX_LINKS];
	unsigned count;
};

/* One of the shortest paths: all have the same number of links. */
static bool find_way(
	const struct network *network, const struct routes *routes, uint32_t src, uint32_t dst, struct way *way)
{
	uint32_t link = network->endpoints[src].link;

	for (way->count = 0; way->count < MAX_LINKS;) {
		const struct network_link *is = &network->links[link];
		way->links[way->count++] = is;
		if (!network_is_switch(is->to))
			return is->to == dst;
		struct route_choice choice = routes_towards(routes, network_index(is->to), dst);
		if (!choice.count)
			return false;
		link = choice.links[0];
	}
	return false;
}

static vb_time bytes_time(const struct network *network, const struct network_link *link, uint64_t bytes)
{
	vb_time time = (vb_time)((unsigned __int128)bytes * 8 * (uint64_t)VB_S /
				 network_rate(network, (uint32_t)(link - network->links)));
	return network->is_whole_ns ? time - time % VB_NS : time;
}

static const struct switch_profile *behind(const struct network *network, const struct network_link *link)
{
	return &network->profiles[network->switches[network_index(link->to)].profile];
}

/* A train of packets along a path, without delays that shift all alike: when the last packet's bits were on each link.
 */
struct train {
	const struct network *network;
	const struct way *way;
	vb_time begins[MAX_LINKS], ends[MAX_LINKS];
};

static bool is_cut_through(const struct train *train, unsigned before)
{
	return behind(train->network, train->way->links[before])->is_cut_through;
}

/* Sends one more packet. Returns whether from now on each packet of its size arrives just as much later as this one
 * did: the links then idle equally long between packets. */
static bool send(struct train *train, uint64_t bytes)
{
	bool is_steady = true;
	vb_time slowest = 0;

	for (unsigned i = 0; i < train->way->count; i++) {
		vb_time takes = bytes_time(train->network, train->way->links[i], bytes), there = 0,
			was = train->ends[i];
		bool is_cut = i && is_cut_through(train, i - 1);
		if (i)
			there = is_cut ? train->begins[i - 1] + bytes_time(train->network, train->way->links[i - 1],
									bytes < HEADER_BYTES ? bytes : HEADER_BYTES)
				       : train->ends[i - 1];
		vb_time ends = (there > was ? there : was) + takes;
		if (is_cut && ends < train->ends[i - 1]) /* no bit leaves before it has arrived */
			ends = train->ends[i - 1];
		train->ends[i] = ends;
		train->begins[i] = ends - takes;
		slowest = takes > slowest ? takes : slowest;
		is_steady = is_steady && ends - was == slowest;
	}
	return is_steady;
}

/* So many more packets of a size, once they arrive evenly. */
static void skip(struct train *train, uint64_t count, uint64_t bytes)
{
	vb_time slowest = 0;

	for (unsigned i = 0; i < train->way->count; i++) {
		vb_time takes = bytes_time(train->network, train->way->links[i], bytes);
		slowest = takes > slowest ? takes : slowest;
		train->begins[i] += (vb_time)count * slowest;
		train->ends[i] += (vb_time)count * slowest;
	}
}

/* Delays that shift all packets alike. */
static vb_time delays_of(const struct network *network, const struct way *way)
{
	vb_time delays = 0;

	for (unsigned i = 0; i < way->count; i++)
		delays += way->links[i]->delay + (i ? behind(network, way->links[i - 1])->latency : 0);
	return delays;
}

/* Until a message's last bit has arrived. */
static vb_time message_time(
	const struct network *network, const struct way *way, const struct fabric_config *config, uint64_t bytes)
{
	struct train train = { .network = network, .way = way };
	uint64_t n = (bytes + config->mtu - 1) / config->mtu, last = bytes - (n - 1) * config->mtu;
	uint64_t overhead = config->data_overhead ? config->data_overhead : OVERHEAD;
	uint64_t first_more = config->data_overhead ? 0 : FIRST_MORE, pad = config->data_overhead ? 0 : 3;
	uint64_t full = ((config->mtu + pad) & ~pad) + overhead;

	last = ((last + pad) & ~pad) + overhead;
	if (n > 1)
		send(&train, full + first_more);
	for (uint64_t left = n > 2 ? n - 2 : 0; left > 0; left--)
		if (send(&train, full)) {
			skip(&train, left - 1, full);
			break;
		}
	send(&train, last + (n == 1 ? first_more : 0));
	return train.ends[way->count - 1] + delays_of(network, way);
}

static vb_time ack_time(const struct network *network, const struct way *way, const struct fabric_config *config)
{
	struct train train = { .network = network, .way = way };

	send(&train, config->ack_overhead ? config->ack_overhead : OVERHEAD + ACK_MORE);
	return train.ends[way->count - 1] + delays_of(network, way);
}

/* The time that both ends add to a packet. */
static vb_time ends_time(const struct network *network, uint32_t src, uint32_t dst)
{
	const struct nic_profile *from = &network->nics[network->endpoints[src].nic];
	const struct nic_profile *to = &network->nics[network->endpoints[dst].nic];

	return from->send_latency + from->pcie_latency + to->receive_latency + to->pcie_latency;
}

double ideal_payload_rate(const struct simulation *simulation, uint32_t link)
{
	const struct fabric_config *config = &simulation->config;
	const double overhead = config->data_overhead ? config->data_overhead : OVERHEAD;

	return (double)simulation->network.links[link].bits_per_second / 8 * config->mtu / (config->mtu + overhead);
}

vb_time ideal_message(
	const struct simulation *simulation, const struct routes *routes, uint32_t src, uint32_t dst, uint64_t bytes)
{
	const struct network *network = &simulation->network;
	struct way way;

	if (!find_way(network, routes, src, dst, &way))
		return 0;
	return network->nics[network->endpoints[src].nic].host_latency +
	       message_time(network, &way, &simulation->config, bytes) + ends_time(network, src, dst);
}

static vb_time ideal_of(const struct simulation *simulation, const struct routes *routes, const struct flow *flow)
{
	const struct network *network = &simulation->network;
	const struct fabric_config *config = &simulation->config;
	struct way way, back;

	if (!find_way(network, routes, flow->src, flow->dst, &way) ||
		!find_way(network, routes, flow->dst, flow->src, &back))
		return 0;
	return 2 * network->nics[network->endpoints[flow->src].nic].host_latency +
	       message_time(network, &way, config, flow->bytes) + ack_time(network, &back, config) +
	       ends_time(network, flow->src, flow->dst) + ends_time(network, flow->dst, flow->src);
}

int ideals_find(struct simulation *simulation)
{
	uint32_t count = simulation->flows.count;
	struct routes *routes = routes_make(&simulation->network);

	simulation->ideals = calloc(count ? count : 1, sizeof(*simulation->ideals));
	if (!routes || !simulation->ideals) {
		routes_free(routes);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++)
		simulation->ideals[i] = ideal_of(simulation, routes, &simulation->flows.flows[i]);
	routes_free(routes);
	return 0;
}
