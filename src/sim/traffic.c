/* See traffic.h. */
#include "sim/traffic.h"

#include "base/invariant.h"

enum { STEPS_SEEN = 16 };

static void count(struct traffic *traffic, uint64_t bytes, double times, const struct fabric_config *config)
{
	const uint32_t every = config->ack_every ? config->ack_every : 16; /* 0: as sockets do, by bytes */
	const uint64_t packets = (bytes + config->mtu - 1) / config->mtu;

	traffic->packets += (double)packets * times;
	traffic->acks += (double)((packets + every - 1) / every) * times;
}

static uint32_t sends_of(const struct collective_job *job, uint32_t rank)
{
	return collective_sends(&job->of, job->algorithm, collective_place_of(&job->of, job->of.first + rank));
}

static struct collective_step message_of(const struct collective_job *job, uint32_t rank, uint32_t number)
{
	return collective_message(
		&job->of, job->algorithm, collective_place_of(&job->of, job->of.first + rank), number);
}

static bool crosses(const struct simulation *simulation, uint32_t rank, uint32_t other)
{
	const struct hosts *hosts = &simulation->hosts;
	return hosts_host_of(hosts, rank) != hosts_host_of(hosts, other);
}

/* Ranks of a tree differ. */
static void count_edges(struct traffic *traffic, const struct simulation *simulation, const struct collective_job *job)
{
	struct collective_edge edges[COLLECTIVE_EDGES];

	for (uint32_t place = 0; place < job->of.ranks; place++)
		for (uint32_t i = job->algorithm->edges(&job->of, place, edges); i-- > 0;) {
			const uint32_t pieces = collective_pieces(edges[i].bytes);
			const uint32_t copies = collective_copies(&job->of, &edges[i]);
			traffic->messages += (double)pieces * copies;
			traffic->bytes += (double)edges[i].bytes * copies;
			if (crosses(simulation, collective_rank_at(&job->of, place),
				    collective_rank_at(&job->of, edges[i].to)))
				count(traffic, (edges[i].bytes + pieces - 1) / pieces, pieces, &simulation->config);
		}
	traffic->classes |= (uint8_t)(1u << job->of.traffic_class);
}

/* All hosts send what the first does, but for a byte. What stays in a host is no packet. */
static void count_collective(
	struct traffic *traffic, const struct simulation *simulation, const struct collective_job *job)
{
	const uint32_t gpus = simulation->hosts.gpus ? simulation->hosts.gpus : 1;
	const uint32_t alike = gpus < job->of.ranks ? gpus : job->of.ranks;

	for (uint32_t rank = 0; rank < alike; rank++)
		for (uint32_t i = 0; i < sends_of(job, rank); i++) {
			const struct collective_step is = message_of(job, rank, i);
			const double times = (double)job->of.ranks / alike;
			traffic->messages += times;
			traffic->bytes += (double)is.bytes * times;
			if (crosses(simulation, job->of.first + rank, collective_rank_at(&job->of, is.to)))
				count(traffic, is.bytes, times, &simulation->config);
		}
	traffic->classes |= (uint8_t)(1u << job->of.traffic_class);
}

/* Messages of a collective are counted as if all were of the mean size. */
static void count_graph(struct traffic *traffic, const struct simulation *simulation)
{
	const struct graph *graph = &simulation->job_file.graph;

	for (uint32_t i = 0; i < graph->count; i++) {
		const struct graph_operation *its = &graph->operations[i];
		double times = its->kind == GRAPH_SEND, bytes = (double)its->bytes;
		if (its->kind == GRAPH_COLLECTIVE && graph->groups[its->group].count > 1) {
			const struct collective of = graph_collective_of(graph, i);
			times = collective_sends(
				&of, collective_find(&of), graph_member(&graph->groups[its->group], its->rank));
			bytes = times > 0 ? collective_law(&of).bytes / times : 0;
		}
		traffic->messages += times;
		traffic->bytes += times * bytes;
		if (times > 0 && simulation_ranks(simulation) > simulation->hosts.gpus)
			count(traffic, (uint64_t)bytes, times, &simulation->config);
		traffic->classes |= (uint8_t)(1u << its->traffic_class);
	}
}

struct traffic traffic_of(const struct simulation *simulation)
{
	const struct flow_list *list = &simulation->flows;
	struct traffic traffic = { 0 };

	for (uint32_t i = 0; i < list->count; i++) {
		traffic.messages++;
		traffic.bytes += (double)list->flows[i].bytes;
		count(&traffic, list->flows[i].bytes, 1, &simulation->config);
		traffic.classes |= (uint8_t)(1u << list->flows[i].traffic_class);
	}
	if (simulation->has_graph)
		count_graph(&traffic, simulation);
	for (uint32_t i = 0; simulation->collectives && i < simulation->job_count; i++)
		(simulation->collectives[i].algorithm->edges ? count_edges : count_collective)(
			&traffic, simulation, &simulation->collectives[i]);
	return traffic;
}

static uint32_t steps_seen(const struct collective_job *job)
{
	const uint32_t sends = sends_of(job, job->of.ranks / 2); /* that of a chain's end sends nothing, perhaps */
	return sends == 0 ? 1 : sends < STEPS_SEEN ? sends : STEPS_SEEN;
}

uint64_t traffic_flows(const struct simulation *simulation)
{
	uint64_t flows = simulation->flows.count;

	if (simulation->has_graph)
		flows += simulation->job_file.graph.ranks;
	for (uint32_t i = 0; simulation->collectives && i < simulation->job_count; i++)
		flows += (uint64_t)simulation->collectives[i].of.ranks * steps_seen(&simulation->collectives[i]);
	return flows;
}

/* From a rank to another; to the next host's if that one is in its own, since some GPU of this host sends to it. */
static struct flow flow_between(const struct simulation *simulation, uint32_t rank, uint32_t to)
{
	const struct hosts *hosts = &simulation->hosts;

	if (!crosses(simulation, rank, to))
		to = (rank + (hosts->gpus ? hosts->gpus : 1)) % simulation_ranks(simulation);
	return (struct flow){
		.src = hosts_sends_by(hosts, rank, to, 0), .dst = hosts_endpoint_of(hosts, to, 0), .bytes = 1
	};
}

/* From a rank to the one of another host that it first sends to. */
static struct flow flow_of_graph(const struct simulation *simulation, uint32_t rank)
{
	const struct graph *graph = &simulation->job_file.graph;
	uint32_t to = rank;

	for (uint32_t i = graph->first[rank]; i < graph->first[rank + 1] && !crosses(simulation, rank, to); i++)
		if (graph->operations[i].kind == GRAPH_SEND)
			to = graph->operations[i].peer;
	return flow_between(simulation, rank, to);
}

struct flow traffic_flow(const struct simulation *simulation, uint64_t number)
{
	const struct collective_job *job = simulation->collectives;

	if (number < simulation->flows.count)
		return simulation->flows.flows[number];
	number -= simulation->flows.count;
	if (simulation->has_graph)
		return flow_of_graph(simulation, (uint32_t)number);
	for (; number >= (uint64_t)job->of.ranks * steps_seen(job); job++)
		number -= (uint64_t)job->of.ranks * steps_seen(job);
	assert(job < simulation->collectives + simulation->job_count);
	const uint32_t rank = (uint32_t)(number / steps_seen(job));
	const uint32_t sends = sends_of(job, rank);
	/* The end of a chain sends nothing: the way to the next rank stands for it. */
	const struct collective_step step = sends ? message_of(job, rank, (uint32_t)(number % steps_seen(job)) % sends)
						  : (struct collective_step){ (rank + 1) % job->of.ranks, 1 };
	struct flow flow = flow_between(simulation, job->of.first + rank, collective_rank_at(&job->of, step.to));
	flow.bytes = step.bytes;
	flow.start = job->of.start;
	flow.traffic_class = job->of.traffic_class;
	return flow;
}
