/* See estimate.h. */
#include "sim/estimate.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cc/cc.h"
#include "sim/simulation.h"
#include "sim/traffic.h"
#include "steps/step_graph.h"

/* From max_rss_bytes of runs with one byte a flow, by differences. In bytes: */
#define PROCESS_BYTES    2.8e6
#define LINK_BYTES       180.0 /* in each direction */
#define PORT_BYTES       900.0 /* more where switches have queues by class, in each direction */
#define ROUTE_BYTES      3.0   /* of a switch, for each switch that has endpoints */
#define ENDPOINT_BYTES   200.0
#define ENGINE_BYTES     3600.0       /* more if it is an engine */
#define FLOW_BYTES       82.0         /* in the list, with its result and ideal */
#define LEFT_BYTES       33.0         /* that stay of an engine's connection when it is closed */
#define IDEAL_BYTES      160.0        /* of a flow that is open, without engines */
#define CONNECTION_BYTES 3800.0       /* both ends of an engine's connection, while it is open */
#define CLOSING          (50 * VB_US) /* for which a connection is open beyond its packets: closing.h, engine_connections.c */
#define TELEMETRY_BYTES  1550.0       /* more if congestion control uses telemetry of switches */
#define FLUID_BYTES      700.0        /* of a message that is open, as a flow */
#define TCP_BYTES        480.0        /* of a flow that is open, both ends */
#define WAITING_BYTES    33.0         /* a packet, of all that may wait at once: some never do */
#define WINDOW_BYTES     1e6          /* under way, for a flow with congestion control */
/* From the CPU time of the same runs and of examples. In nanoseconds: */
#define HOP_NS        200.0
#define PORT_HOP_NS   320.0 /* where switches have queues by class */
#define CACHE_BYTES   8e6   /* a hop takes half as long again each time that memory doubles beyond this */
#define ROUTE_NS      85.0
#define CONNECTION_NS 4000.0 /* opened and closed */
#define FLOW_NS       300.0
#define MESSAGE_NS    600.0 /* of a job, told step by step */
#define FLUID_NS      400.0 /* more for a message as a flow, if it shares no link */

enum {
	SAMPLED_FLOWS = 32,
	OPEN_OF_A_RANK = 8, /* connections of a job from a file */
	MOST_PLACES =
		24, /* messages of a rank's all-to-all: eight are under way, and twice as many are forgotten soon */
};

static const vb_time END_OF_TIME = INT64_MAX / 2; /* flows that end then or later end in no run */

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static bool has_ports(const struct network *network)
{
	for (uint32_t i = 0; i < network->profile_count; i++) {
		const struct switch_profile *profile = &network->profiles[i];
		if (profile->flow_control != FLOW_DROPS || profile->class_count > 1)
			return true;
	}
	return false;
}

/* Switches with endpoints: each switch has a route to each of these. */
static double route_count(const struct network *network)
{
	uint32_t places = 0;

	for (uint32_t i = 0; i < network->switch_count; i++) {
		const struct network_switch *its = &network->switches[i];
		bool has_endpoint = false;
		for (uint32_t port = 0; port < its->port_count && !has_endpoint; port++)
			has_endpoint = !network_is_switch(network->links[network->ports[its->first_port + port]].to);
		places += has_endpoint;
	}
	return (double)places * network->switch_count;
}

struct beginning {
	vb_time at;
	uint32_t flow;
};

static int by_beginning(const void *a, const void *b)
{
	const struct beginning *x = a, *y = b;
	return x->at != y->at ? (x->at > y->at) - (x->at < y->at) : (x->flow > y->flow) - (x->flow < y->flow);
}

static int by_time(const void *a, const void *b)
{
	const vb_time *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* When so much is sent at that rate, beginning then: the sum may exceed what a time can hold. */
static vb_time busy_until(vb_time from, double bits, uint64_t bits_per_second)
{
	double takes = bits * (double)VB_S / (double)bits_per_second;

	return from < END_OF_TIME && takes < (double)(END_OF_TIME - from) ? from + (vb_time)takes : END_OF_TIME;
}

/* For one flow: until when its endpoints' links are busy with it and all that began before, one after the other. */
static vb_time end_of(const struct network *network, const struct flow *flow, vb_time *leaves, vb_time *comes)
{
	uint32_t from = network->endpoints[flow->src].link, to = network->endpoints[flow->dst].link;
	vb_time *out = &leaves[flow->src], *in = &comes[flow->dst];
	double bits = 8.0 * (double)flow->bytes;

	*out = busy_until(*out > flow->start ? *out : flow->start, bits, network->links[from].bits_per_second);
	*in = busy_until(*in > flow->start ? *in : flow->start, bits, network->links[to].bits_per_second);
	return (*out > *in ? *out : *in) + CLOSING;
}

/* The largest number of these flows that are open at one moment, as ends sort after starts. A flow that waits for
 * another is open only when that one no longer is, so the two count as one that never ends. */
static uint64_t most_open(const struct simulation *simulation, struct beginning *beginnings, vb_time *ends,
	vb_time *busy, bool *is_followed)
{
	const struct flow_list *list = &simulation->flows;
	uint64_t count = 0, most = 0;

	for (uint32_t i = 0; i < list->count; i++)
		if (list->flows[i].waits == 0)
			beginnings[count++] = (struct beginning){ list->flows[i].start, i };
	for (uint32_t i = 0; i < list->wait_count; i++)
		is_followed[list->waits[i].before] = true;
	qsort(beginnings, count, sizeof(*beginnings), by_beginning);
	for (uint64_t i = 0; i < count; i++) {
		const uint32_t flow = beginnings[i].flow;
		vb_time end = end_of(
			&simulation->network, &list->flows[flow], busy, busy + simulation->network.endpoint_count);
		ends[i] = is_followed[flow] ? INT64_MAX : end;
	}
	qsort(ends, count, sizeof(*ends), by_time);
	for (uint64_t begun = 0, ended = 0; begun < count; begun++) {
		while (ended < begun && ends[ended] <= beginnings[begun].at)
			ended++;
		most = begun + 1 - ended > most ? begun + 1 - ended : most;
	}
	return most;
}

/* Flows are open from their start to their end; behind sockets all connections are open from the beginning. While flows
 * are not listed yet, the number is unknown. */
static double open_at_once(const struct simulation *simulation, uint64_t flows)
{
	const struct flow_list *list = &simulation->flows;

	if (simulation->scenario->behind == BEHIND_SOCKETS)
		return (double)flows;
	struct beginning *beginnings = calloc((size_t)list->count + 1, sizeof(*beginnings));
	vb_time *ends = calloc((size_t)list->count + 1, sizeof(*ends));
	vb_time *busy = calloc(2 * (size_t)simulation->network.endpoint_count + 1, sizeof(*busy));
	bool *is_followed = calloc((size_t)list->count + 1, sizeof(*is_followed));
	uint64_t most = beginnings && ends && busy && is_followed
				? most_open(simulation, beginnings, ends, busy, is_followed)
				: 0;
	free(beginnings);
	free(ends);
	free(busy);
	free(is_followed);
	return (double)most;
}

/* A rank has a connection to each other rank that it sends to, and for each two messages at most: the one that is sent,
 * and one that waits to be forgotten. */
static uint64_t open_at_once_of(const struct collective *of)
{
	const struct collective_algorithm *algorithm = collective_find(of);
	uint64_t peers = 1, ranks = of->ranks;

	if (!algorithm)
		return 0;
	if (algorithm->edges)
		peers = COLLECTIVE_EDGES;
	else if (algorithm->waiting == FOR_ALL_OF_A_HALF)
		peers = ranks - 1;
	else if (algorithm->waiting == FOR_BOTH_RINGS)
		peers = 2;
	else if (algorithm->waiting == FOR_ALL_BEFORE)
		peers = algorithm->steps(of->ranks);
	else if (algorithm->waiting == FOR_A_PLACE)
		peers = ranks - 1 < MOST_PLACES ? ranks - 1 : MOST_PLACES;
	return peers * ranks * (of->nccl.qps ? of->nccl.qps : 1);
}

/* Of a connection of a graph's collectives. */
static double qps_of_graph(const struct simulation *simulation)
{
	const uint32_t qps = simulation->scenario->job_nccl.qps;
	return qps ? qps : 1;
}

static double graph_bytes(const struct simulation *simulation)
{
	return simulation->has_graph ? (double)STEP_OPERATION_BYTES * simulation->job_file.graph.count : 0;
}

void estimate_memory(const struct simulation *simulation, uint64_t flows, struct estimate *estimate)
{
	const struct scenario *scenario = simulation->scenario;
	const struct network *network = &simulation->network;
	double connection = scenario->endpoint == FABRIC_TCP ? TCP_BYTES : IDEAL_BYTES, endpoint = ENDPOINT_BYTES;
	double flow = FLOW_BYTES;

	if (scenario->mode == MODE_FLOWS) {
		connection = FLUID_BYTES;
	} else if (scenario->endpoint == FABRIC_ENGINE) {
		connection = CONNECTION_BYTES;
		flow += LEFT_BYTES;
		endpoint += ENGINE_BYTES;
		if (scenario->cc.algorithm->goes_by == VB_CC_BY_TELEMETRY)
			connection += TELEMETRY_BYTES;
	}
	*estimate = (struct estimate){ .flows = flows };
	estimate->network_bytes =
		(uint64_t)(PROCESS_BYTES + endpoint * network->endpoint_count + ROUTE_BYTES * route_count(network) +
			   (LINK_BYTES + (has_ports(network) ? PORT_BYTES : 0)) * network->link_count);
	double open = 0;
	for (uint32_t i = 0; i < simulation->collective_count; i++)
		open += (double)open_at_once_of(&simulation->collectives[i].of);
	for (uint32_t i = 0; i < simulation->service_count; i++)
		open += simulation->services[i].kind->load(&simulation->services[i]).open;
	if (simulation->has_graph)
		open += OPEN_OF_A_RANK * simulation->job_file.graph.ranks * qps_of_graph(simulation);
	estimate->flow_bytes = (uint64_t)(flow * (double)flows + connection * (open_at_once(simulation, flows) + open) +
					  graph_bytes(simulation));
}

/* ---- Packets ----------------------------------------------------------------------------------------------------- */

/* The packets that may wait in all switches; infinite if a switch has no bound. */
static double buffer_bytes(const struct network *network)
{
	double bytes = 0;

	for (uint32_t i = 0; i < network->switch_count; i++) {
		const struct switch_profile *profile = network_profile(network, network_switch_node(i));
		uint32_t ports = network->switches[i].port_count;
		double its = profile->flow_control == FLOW_CREDITS
				     ? (double)profile->credit_bytes * profile->class_count * ports
			     : profile->port_bytes ? (double)profile->port_bytes * ports
						   : (double)profile->buffer_bytes;
		if (its <= 0)
			return INFINITY;
		bytes += its;
	}
	return bytes;
}

/* Links between two endpoints, one way, by a breadth-first search of the switches. */
static uint32_t links_between(
	const struct network *network, const struct flow *flow, uint32_t *distance, uint32_t *queue)
{
	network_node from = network->links[network->endpoints[flow->src].link].to;
	network_node to = network->links[network->endpoints[flow->dst].link].to;
	uint32_t count = 1;

	if (!network_is_switch(from) || !network_is_switch(to))
		return 1;
	memset(distance, 0xFF, network->switch_count * sizeof(*distance));
	distance[network_index(from)] = 0;
	queue[0] = network_index(from);
	for (uint32_t next = 0; next < count && distance[network_index(to)] == UINT32_MAX; next++) {
		const struct network_switch *its = &network->switches[queue[next]];
		for (uint32_t port = 0; port < its->port_count; port++) {
			network_node node = network->links[network->ports[its->first_port + port]].to;
			if (!network_is_switch(node) || distance[network_index(node)] != UINT32_MAX)
				continue;
			distance[network_index(node)] = distance[queue[next]] + 1;
			queue[count++] = network_index(node);
		}
	}
	return distance[network_index(to)] == UINT32_MAX ? 1 : distance[network_index(to)] + 2;
}

/* On average, over a sample of flows from the whole list. */
static double mean_links(const struct simulation *simulation)
{
	const struct network *network = &simulation->network;
	const uint64_t flows = traffic_flows(simulation);
	uint32_t *distance = calloc(network->switch_count + 1, sizeof(*distance));
	uint32_t *queue = calloc(network->switch_count + 1, sizeof(*queue));
	uint64_t samples = flows < SAMPLED_FLOWS ? flows : SAMPLED_FLOWS, counted = 0;
	double sum = 0;

	for (uint64_t i = 0; distance && queue && i < samples; i++) {
		const struct flow flow = traffic_flow(simulation, i * flows / samples);
		if (flow.src == flow.dst)
			continue; /* within a host */
		sum += links_between(network, &flow, distance, queue);
		counted++;
	}
	free(distance);
	free(queue);
	return counted ? sum / (double)counted : 1;
}

/* Packets that all NICs can send by the limit of virtual time. */
static double packets_by_limit(const struct simulation *simulation)
{
	const struct network *network = &simulation->network;
	double bits_per_second = 0;

	if (!simulation->scenario->limit)
		return INFINITY;
	for (uint32_t i = 0; i < network->endpoint_count; i++)
		bits_per_second += (double)network->links[network->endpoints[i].link].bits_per_second;
	return bits_per_second * (double)simulation->scenario->limit / (double)VB_S / 8 / simulation->config.mtu;
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

/* How much longer a hop takes if memory exceeds the caches. */
static double cache_factor(double bytes)
{
	double factor = 1;

	for (; bytes > 2 * CACHE_BYTES; bytes /= 2)
		factor += 0.5;
	return bytes > CACHE_BYTES ? factor + (bytes / CACHE_BYTES - 1) / 2 : factor;
}

/* That collectives of a job from a file open for one message each. */
static double connections_of_graph(const struct simulation *simulation)
{
	const struct graph *graph = &simulation->job_file.graph;
	const double cuts = simulation->scenario->job_nccl.is_cut ? qps_of_graph(simulation) : 1;
	double connections = 0;

	for (uint32_t i = 0; i < graph->count; i++) {
		const struct graph_operation *its = &graph->operations[i];
		if (its->kind != GRAPH_COLLECTIVE)
			continue;
		const struct collective of = graph_collective_of(graph, i);
		if (of.ranks > 1 && collective_opens_each(collective_find(&of)))
			connections += (of.ranks - 1) * cuts;
	}
	return connections;
}

/* All that are opened in the run. */
static double connections_of(const struct simulation *simulation)
{
	double connections = simulation->flows.count;

	for (uint32_t i = 0; i < simulation->collective_count; i++) {
		const struct collective_job *job = &simulation->collectives[i];
		const double messages = (double)collective_cut_messages(&job->of, job->algorithm);
		connections += collective_opens_each(job->algorithm)
				       ? messages
				       : least(messages, (double)open_at_once_of(&job->of));
	}
	for (uint32_t i = 0; i < simulation->service_count; i++)
		connections += simulation->services[i].kind->load(&simulation->services[i]).open;
	if (simulation->has_graph)
		connections += OPEN_OF_A_RANK * simulation->job_file.graph.ranks * qps_of_graph(simulation) +
			       connections_of_graph(simulation);
	return connections;
}

/* No packets: how often messages change each other's rates is not known. */
static void estimate_flows(const struct simulation *simulation, struct estimate *estimate)
{
	const struct traffic traffic = traffic_of(simulation);

	estimate_memory(simulation, simulation->flows.count, estimate);
	estimate->payload_bytes = traffic.bytes;
	estimate->cpu_s =
		1e-9 * (traffic.messages * (MESSAGE_NS + FLUID_NS) + ROUTE_NS * route_count(&simulation->network));
}

void estimate_run(const struct simulation *simulation, struct estimate *estimate)
{
	if (simulation->config.by_flows) {
		estimate_flows(simulation, estimate);
		return;
	}
	const struct fabric_config *config = &simulation->config;
	const struct traffic traffic = traffic_of(simulation);
	double packets = traffic.packets, acks = traffic.acks, flows = traffic.messages;

	estimate_memory(simulation, simulation->flows.count, estimate);
	estimate->payload_bytes = traffic.bytes;
	double sent = least(packets, packets_by_limit(simulation)),
	       waiting = least(least(sent, traffic.at_once), buffer_bytes(&simulation->network) / config->mtu);
	if (config->endpoint == FABRIC_TCP ||
		(config->endpoint == FABRIC_ENGINE && config->cc.algorithm != &vb_cc_none))
		waiting = least(waiting, flows * WINDOW_BYTES / config->mtu);
	estimate->waiting_bytes = (uint64_t)(WAITING_BYTES * waiting);
	estimate->packet_hops = sent * (1 + acks / (packets > 0 ? packets : 1)) * mean_links(simulation);

	double likely = WAITING_BYTES * least(waiting, traffic.meeting);
	double bytes = (double)(estimate->network_bytes + estimate->flow_bytes) - graph_bytes(simulation) + likely;
	double hop_ns = (has_ports(&simulation->network) ? PORT_HOP_NS : HOP_NS) * cache_factor(bytes);
	double listed = simulation->flows.count;
	double opened = config->endpoint == FABRIC_ENGINE ? connections_of(simulation) : 0;
	estimate->cpu_s = 1e-9 * (estimate->packet_hops * hop_ns + listed * FLOW_NS + (flows - listed) * MESSAGE_NS +
					 opened * CONNECTION_NS + ROUTE_NS * route_count(&simulation->network));
}

/* ---- The estimate as text ---------------------------------------------------------------------------------------- */

/* The key that makes such a network smaller. */
static const char *network_key(const struct scenario *scenario)
{
	static const struct {
		const char *kind, *key;
	} keys[] = { { "fat-tree", "network.radix" }, { "torus", "network.dimensions" },
		{ "rail", "network.machines" } };

	for (size_t i = 0; !*scenario->topology_file && i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strcmp(scenario->topology.kind, keys[i].kind) == 0)
			return keys[i].key;
	return *scenario->topology_file ? "network.file" : "network.endpoints";
}

/* The key that makes the largest workload smaller. */
static void flows_key(const struct simulation *simulation, char *text, size_t size)
{
	static const struct {
		const char *kind, *key;
	} keys[] = { { "incast", "senders" }, { "permutation", "endpoints" }, { "all-to-all", "endpoints" },
		{ "poisson", "duration" }, { "allreduce", "endpoints" }, { "all-gather", "endpoints" },
		{ "reduce-scatter", "endpoints" } };
	const struct scenario *scenario = simulation->scenario;
	const uint32_t endpoints = network_back_endpoints(&simulation->network);
	uint64_t most = 0;

	snprintf(text, size, "the list of flows");
	for (uint32_t i = 0; i < scenario->workload_count; i++) {
		struct workload workload = simulation_workload(simulation, i);
		struct collective collective;
		uint64_t flows = workload_collective(&workload, endpoints, &collective)
					 ? open_at_once_of(&collective)
					 : workload_flows(&workload, endpoints);
		for (size_t k = 0; flows > most && k < sizeof(keys) / sizeof(keys[0]); k++)
			if (strcmp(workload.kind, keys[k].kind) == 0)
				snprintf(text, size, "workload.%" PRIu32 ".%s", i, keys[k].key);
		most = flows > most ? flows : most;
	}
}

int estimate_check(
	const struct simulation *simulation, const struct estimate *estimate, uint64_t limit, char *why, size_t size)
{
	uint64_t needed = estimate->network_bytes + estimate->flow_bytes;
	char needs[32], has[32], flows[32], key[80];

	if (needed <= limit)
		return 0;
	if (estimate->flow_bytes > estimate->network_bytes)
		flows_key(simulation, key, sizeof(key));
	else
		snprintf(key, sizeof(key), "%s", network_key(simulation->scenario));
	snprintf(why, size,
		"%s flows between %" PRIu32 " endpoints need about %s of memory, and there are %s: lower %s",
		value_count_text((double)estimate->flows, flows, sizeof(flows)), simulation->network.endpoint_count,
		value_bytes_text(needed, needs, sizeof(needs)), value_bytes_text(limit, has, sizeof(has)), key);
	return -EINVAL;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void estimate_add(struct estimate *sum, const struct estimate *its)
{
	sum->flows = larger(sum->flows, its->flows);
	sum->network_bytes = larger(sum->network_bytes, its->network_bytes);
	sum->flow_bytes = larger(sum->flow_bytes, its->flow_bytes);
	sum->waiting_bytes = larger(sum->waiting_bytes, its->waiting_bytes);
	sum->payload_bytes += its->payload_bytes;
	sum->packet_hops += its->packet_hops;
	sum->cpu_s += its->cpu_s;
}

static const char *duration_text(double seconds, char *text, size_t size)
{
	static const struct {
		double seconds;
		const char *name;
	} units[] = { { 365.25 * 86400, "years" }, { 86400, "days" }, { 3600, "hours" }, { 60, "minutes" },
		{ 1, "s" } };
	size_t unit = 0;

	while (unit < 4 && seconds < 2 * units[unit].seconds)
		unit++;
	snprintf(text, size, "%.3g %s", seconds / units[unit].seconds, units[unit].name);
	return text;
}

const char *estimate_text(const struct estimate *estimate, char *text, size_t size)
{
	char hops[64], payload[32], bytes[32], more[64] = "", duration[32];
	uint64_t needed = estimate->network_bytes + estimate->flow_bytes;

	if (estimate->waiting_bytes > needed)
		snprintf(more, sizeof(more), ", and up to %s for packets that wait",
			value_bytes_text(estimate->waiting_bytes, bytes, sizeof(bytes)));
	value_count_text(estimate->packet_hops, hops, sizeof(hops));
	snprintf(text, size, "about %s%s of payload: %s of CPU time, %s of memory%s",
		estimate->packet_hops > 0 ? strcat(hops, " packet-hops for ") : "",
		value_bytes_text(estimate->payload_bytes < 1.8e19 ? (uint64_t)estimate->payload_bytes : UINT64_MAX,
			payload, sizeof(payload)),
		duration_text(estimate->cpu_s, duration, sizeof(duration)),
		value_bytes_text(needed, bytes, sizeof(bytes)), more);
	return text;
}
