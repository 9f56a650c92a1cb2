/* See ns3.h. */
#include "base/invariant.h"
#include "fabric/ns3.h"
#include <errno.h>
#include <stdlib.h>

enum { FIRST_PORT = 10000, SERVICE_PORT = 100 };

/* ---- The hash: MurmurHash3 (Appleby), 32 bits -------------------------------------------------------------------- */

static uint32_t turned(uint32_t word, unsigned bits)
{
	return word << bits | word >> (32 - bits);
}

uint32_t ns3_hash(uint32_t seed, const uint32_t words[3])
{
	uint32_t hash = seed;
	for (unsigned i = 0; i < 3; i++) {
		hash ^= turned(words[i] * 0xcc9e2d51u, 15) * 0x1b873593u;
		hash = turned(hash, 13) * 5 + 0xe6546b64u;
	}
	hash ^= 12; /* bytes */
	hash = (hash ^ hash >> 16) * 0x85ebca6bu;
	hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
	return hash ^ hash >> 16;
}

/* ---- Which way --------------------------------------------------------------------------------------------------- */

uint32_t ns3_address(uint32_t endpoint)
{
	return (11u << 24 | 1) + (endpoint / 256 << 16) + (endpoint % 256 << 8);
}

static uint32_t node_number(const struct network *network, network_node node)
{
	return network_index(node) + (network_is_switch(node) ? network->endpoint_count : 0);
}

/* Its tables list next hops in the order of their addresses in memory: large objects, as its switches are, from high to
 * low. */
static bool is_before(const struct network *network, uint32_t link, uint32_t other)
{
	const uint32_t to = node_number(network, network->links[link].to);
	const uint32_t other_to = node_number(network, network->links[other].to);
	return to != other_to ? to > other_to : link < other;
}

static uint32_t place_of(const struct network *network, struct route_choice choice, uint32_t rank)
{
	assert(rank < choice.count);
	for (uint32_t i = 0; i < choice.count; i++) {
		uint32_t before = 0;
		for (uint32_t k = 0; k < choice.count; k++)
			before += is_before(network, choice.links[k], choice.links[i]);
		if (before == rank)
			return i;
	}
	return 0;
}

uint32_t ns3_choose(const struct shard *shard, uint32_t at_switch, uint32_t packet, struct route_choice choice)
{
	const struct network *network = shard->fabric->network;
	const struct packet *its = &shard->packets[packet];
	const bool is_response = vb_opcodes[shard->headers[packet].opcode].is_response;
	const uint32_t ports =
		is_response ? SERVICE_PORT | (uint32_t)its->flow << 16 : its->flow | (uint32_t)SERVICE_PORT << 16;
	const uint32_t words[] = { ns3_address(its->src), ns3_address(its->dst), ports };
	const uint32_t hash = ns3_hash(node_number(network, network_switch_node(at_switch)), words);
	return place_of(network, choice, hash % choice.count);
}

/* ---- Source ports ------------------------------------------------------------------------------------------------ */

struct numbered {
	uint32_t src, dst, flow;
	vb_time start;
};

static int in_order(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;
	if (x->src != y->src)
		return x->src < y->src ? -1 : 1;
	if (x->dst != y->dst)
		return x->dst < y->dst ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->flow < y->flow ? -1 : x->flow > y->flow;
}

static bool has_its_switches(const struct network *network)
{
	for (uint32_t i = 0; i < network->profile_count; i++)
		if (network->profiles[i].hash == HASH_NS3)
			return true;
	return false;
}

int ns3_open(struct fabric *fabric)
{
	const struct flow_list *list = fabric->config->flows;
	if (fabric->holder || !has_its_switches(fabric->network))
		return 0;
	struct numbered *flows = calloc(list->count + 1, sizeof(*flows));
	fabric->source_ports = calloc(list->count + 1, sizeof(*fabric->source_ports));
	if (!flows || !fabric->source_ports) {
		free(flows);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < list->count; i++)
		flows[i] = (struct numbered){ list->flows[i].src, list->flows[i].dst, i, list->flows[i].start };
	qsort(flows, list->count, sizeof(*flows), in_order);
	for (uint32_t i = 0; i < list->count; i++) {
		const bool is_first = i == 0 || flows[i].src != flows[i - 1].src || flows[i].dst != flows[i - 1].dst;
		fabric->source_ports[flows[i].flow] =
			is_first ? FIRST_PORT : (uint16_t)(fabric->source_ports[flows[i - 1].flow] + 1);
	}
	free(flows);
	return 0;
}

uint16_t ns3_port(const struct fabric *fabric, uint32_t job, const struct message *message)
{
	const bool is_listed = fabric->has_list && job == 0;
	return is_listed ? fabric->source_ports[message->tag] : (uint16_t)(FIRST_PORT + message->entropy);
}

void ns3_close(struct fabric *fabric)
{
	free(fabric->source_ports);
}

/* ---- Telemetry --------------------------------------------------------------------------------------------------- */

struct vb_cc_hop ns3_told(struct vb_cc_hop hop)
{
	enum { BYTES_UNIT = 128, QUEUE_UNIT = 80, QUEUE_BITS = 17 };
	hop.at -= hop.at % VB_NS;
	hop.tx_bytes -= hop.tx_bytes % BYTES_UNIT;
	hop.queue_bytes = (hop.queue_bytes / QUEUE_UNIT & ((1u << QUEUE_BITS) - 1)) * QUEUE_UNIT;
	return hop;
}
