/* See traffic.h. */
#include "sim/traffic.h"

#include "base/invariant.h"

enum {
	STEPS_SEEN = 16,
};

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static void count(struct traffic *traffic, uint64_t bytes, double times, const struct fabric_config *config)
{
	const uint32_t every = config->ack_every ? config->ack_every : 16; /* 0: as sockets do, by bytes */
	const uint64_t packets = (bytes + config->mtu - 1) / config->mtu;

	traffic->packets += (double)packets * times;
	traffic->acks += (double)((packets + every - 1) / every) * times;
}

static uint32_t ranks_of(const struct collective_job *job)
{
	return job->groups->count * job->groups->size;
}

static bool crosses(const struct simulation *simulation, uint32_t rank, uint32_t other)
{
	const struct hosts *hosts = &simulation->hosts;
	return hosts_host_of(hosts, rank) != hosts_host_of(hosts, other);
}

/* So many messages like this one, if they leave their host in so many parts each. Those that stay are no packets. */
static void count_cut(struct traffic *traffic, const struct simulation *simulation, uint32_t rank,
	struct collective_step is, double times, uint32_t parts)
{
	const bool leaves = crosses(simulation, rank, is.to);
	const uint32_t cuts = leaves ? parts : 1;

	traffic->messages += times * cuts;
	traffic->bytes += (double)is.bytes * times;
	if (leaves)
		count(traffic, (is.bytes + cuts - 1) / cuts, times * cuts, &simulation->config);
}

static void count_step(struct traffic *traffic, const struct simulation *simulation, const struct collective *of,
	uint32_t rank, struct collective_step is, double times)
{
	count_cut(traffic, simulation, rank, is, times, of->nccl.is_cut && of->nccl.qps > 1 ? of->nccl.qps : 1);
}

/* By steps all hosts send what the first does, but for a byte. */
static void count_steps(struct traffic *traffic, const struct simulation *simulation, const struct collective_job *job)
{
	const uint32_t gpus = simulation->hosts.gpus ? simulation->hosts.gpus : 1;
	const uint32_t alike = gpus < ranks_of(job) ? gpus : ranks_of(job);
	const double times = (double)ranks_of(job) / alike;

	for (uint32_t k = 0; k < alike; k++)
		for (uint32_t i = 0, rank = job->groups->rank_at[k]; i < collective_job_sends(job, rank); i++)
			count_step(traffic, simulation, &job->of, rank, collective_job_message(job, rank, i), times);
}

/* All pieces of what a rank sends to another by an edge. Copies of a piece stay in a host, as those to the first do. */
static void count_edge(struct traffic *traffic, const struct simulation *simulation, const struct collective *of,
	uint32_t rank, uint32_t to, uint64_t bytes, uint32_t copies)
{
	const uint32_t last = collective_pieces(of, bytes) - 1;

	count_step(traffic, simulation, of, rank, (struct collective_step){ to, collective_piece(of, bytes, 0) },
		(double)last * copies);
	count_step(traffic, simulation, of, rank, (struct collective_step){ to, collective_piece(of, bytes, last) },
		copies);
}

/* By edges each rank sends something else: a chain's end nothing, an inner rank of a tree more than a leaf. */
static void count_edges(struct traffic *traffic, const struct simulation *simulation, const struct collective_job *job)
{
	struct collective_edge edges[COLLECTIVE_EDGES];

	for (uint32_t first = 0; first < ranks_of(job); first += job->of.ranks)
		for (uint32_t place = 0; place < job->of.ranks; place++)
			for (uint32_t i = job->algorithm->edges(&job->of, place, edges); i-- > 0;) {
				const uint32_t *rank_at = job->groups->rank_at + first;
				const uint32_t rank = rank_at[collective_rank_at(&job->of, place)];
				const uint32_t to = rank_at[collective_rank_at(&job->of, edges[i].to)];
				count_edge(traffic, simulation, &job->of, rank, to, edges[i].bytes,
					collective_copies(&job->of, &edges[i]));
				count_cut(traffic, simulation, to,
					(struct collective_step){ rank, COLLECTIVE_OPENING_BYTES },
					collective_opened(&job->of, job->algorithm, &edges[i]), 1);
			}
}

/* Of the messages that a rank sends in a collective those that are under way at a time. */
static double part_at_once(const struct collective *of)
{
	const struct collective_algorithm *algorithm = collective_find(of);
	const double at_once = algorithm->waiting == FOR_BOTH_RINGS ? 2
			       : algorithm->waiting == FOR_A_PLACE  ? COLLECTIVE_PLACES
								    : 1;

	if (algorithm->edges || algorithm->waiting == FOR_ALL_OF_A_HALF)
		return 1;
	const double steps = collective_steps(of, algorithm);
	return at_once < steps ? at_once / steps : 1;
}

static void count_at_once(struct traffic *traffic, double packets, bool may_meet)
{
	traffic->at_once += packets;
	traffic->meeting += may_meet ? packets : 0;
}

/* By such an algorithm a rank gets messages from one other rank at a time. */
static bool is_in_step(const struct collective *of)
{
	const struct collective_algorithm *algorithm = collective_find(of);
	return !algorithm->edges && !collective_opens_each(algorithm);
}

static void count_collective(
	struct traffic *traffic, const struct simulation *simulation, const struct collective_job *job)
{
	const double before = traffic->packets;

	if (job->algorithm->edges)
		count_edges(traffic, simulation, job);
	else
		count_steps(traffic, simulation, job);
	count_at_once(traffic, (traffic->packets - before) * part_at_once(&job->of), !is_in_step(&job->of));
	traffic->classes |= (uint8_t)(1u << job->of.traffic_class);
}

/* Messages of a collective are counted as if all were of the mean size. */
static struct traffic traffic_of_operation(const struct simulation *simulation, uint32_t number)
{
	const struct graph *graph = &simulation->job_file.graph;
	const struct graph_operation *its = &graph->operations[number];
	const double times = (double)graph_job_sends(&simulation->graph_job, number);
	struct traffic traffic = {
		.messages = times, .bytes = (double)its->bytes, .classes = (uint8_t)(1u << its->traffic_class)
	};
	bool may_meet = true;
	double part = 1;

	if (times == 0)
		return (struct traffic){ .classes = traffic.classes };
	if (its->kind == GRAPH_COLLECTIVE) {
		const struct collective of = graph_collective_of(graph, number);
		traffic.bytes = collective_law(&of).bytes;
		part = part_at_once(&of);
		may_meet = !is_in_step(&of);
	}
	count(&traffic, (uint64_t)(traffic.bytes / times), graph_job_leaving(&simulation->graph_job, number),
		&simulation->config);
	count_at_once(&traffic, traffic.packets * part, may_meet);
	return traffic;
}

/* Of a stream one operation is under way at a time, and all without a stream may be. */
static void count_rank(struct traffic *traffic, const struct simulation *simulation, uint32_t rank)
{
	const struct graph *graph = &simulation->job_file.graph;
	struct traffic most[GRAPH_NO_STREAM + 1] = { 0 };

	for (uint32_t i = graph->first[rank]; i < graph->first[rank + 1]; i++) {
		const struct traffic its = traffic_of_operation(simulation, i);
		struct traffic *of_stream = &most[graph->operations[i].stream];
		const bool runs_beside = graph->operations[i].stream == GRAPH_NO_STREAM;
		traffic->messages += its.messages;
		traffic->bytes += its.bytes;
		traffic->packets += its.packets;
		traffic->acks += its.acks;
		traffic->classes |= its.classes;
		of_stream->at_once =
			runs_beside ? of_stream->at_once + its.at_once : larger(of_stream->at_once, its.at_once);
		of_stream->meeting =
			runs_beside ? of_stream->meeting + its.meeting : larger(of_stream->meeting, its.meeting);
	}
	for (uint32_t i = 0; i <= GRAPH_NO_STREAM; i++) {
		traffic->at_once += most[i].at_once;
		traffic->meeting += most[i].meeting;
	}
}

static void count_graph(struct traffic *traffic, const struct simulation *simulation)
{
	for (uint32_t rank = 0; rank < simulation->job_file.graph.ranks; rank++)
		count_rank(traffic, simulation, rank);
}

/* As if all of its messages were of the mean size, and all left their host. */
static void count_service(struct traffic *traffic, const struct simulation *simulation, const struct service *service)
{
	const struct service_load load = service->kind->load(service);
	const double mean = load.bytes / load.messages, before = traffic->packets;

	traffic->messages += load.messages;
	traffic->bytes += load.bytes;
	count(traffic, (uint64_t)mean + 1, load.messages, &simulation->config);
	const double at_once = load.open < load.messages ? load.open / load.messages : 1;
	count_at_once(traffic, (traffic->packets - before) * at_once, true);
	traffic->classes |= (uint8_t)(1u << simulation->scenario->workloads[service->workload].workload.traffic_class);
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
	count_at_once(&traffic, traffic.packets, true);
	if (simulation->has_graph)
		count_graph(&traffic, simulation);
	for (uint32_t i = 0; i < simulation->collective_count; i++)
		(simulation->collectives[i].algorithm->edges ? count_edges : count_collective)(
			&traffic, simulation, &simulation->collectives[i]);
	for (uint32_t i = 0; i < simulation->service_count; i++)
		count_service(&traffic, simulation, &simulation->services[i]);
	return traffic;
}

static uint32_t steps_seen(const struct collective_job *job)
{
	/* That of a chain's end sends nothing, perhaps. */
	const uint32_t sends = collective_job_sends(job, job->groups->rank_at[job->of.ranks / 2]);
	return sends == 0 ? 1 : sends < STEPS_SEEN ? sends : STEPS_SEEN;
}

uint64_t traffic_flows(const struct simulation *simulation)
{
	uint64_t flows = simulation->flows.count;

	if (simulation->has_graph)
		flows += simulation->job_file.graph.ranks;
	for (uint32_t i = 0; i < simulation->collective_count; i++)
		flows += (uint64_t)ranks_of(&simulation->collectives[i]) * steps_seen(&simulation->collectives[i]);
	return flows + simulation->service_count;
}

/* From a rank to another; to the next host's if that one is in its own, since some GPU of this host sends to it. */
static struct flow flow_between(
	const struct simulation *simulation, enum hosts_rails rails, uint32_t rank, uint32_t to, uint32_t part)
{
	const struct hosts hosts = hosts_to(&simulation->hosts, rails);

	if (!crosses(simulation, rank, to))
		to = (rank + (hosts.gpus ? hosts.gpus : 1)) % simulation_ranks(simulation);
	return (struct flow){ .src = hosts_sends_by(&hosts, rank, to, part),
		.dst = hosts_receives_by(&hosts, rank, to, part),
		.bytes = 1 };
}

/* From a rank to the one of another host that it first sends to. */
static struct flow flow_of_graph(const struct simulation *simulation, uint32_t rank)
{
	const struct graph *graph = &simulation->job_file.graph;
	uint32_t to = rank;

	for (uint32_t i = graph->first[rank]; i < graph->first[rank + 1] && !crosses(simulation, rank, to); i++)
		if (graph->operations[i].kind == GRAPH_SEND)
			to = graph->operations[i].peer;
	return flow_between(simulation, RAILS_AS_HOSTS, rank, to, 0);
}

static struct flow flow_of_service(const struct simulation *simulation, const struct service *service)
{
	const struct service_load load = service->kind->load(service);
	return flow_between(simulation, RAILS_AS_HOSTS, load.from, load.to, 0);
}

struct flow traffic_flow(const struct simulation *simulation, uint64_t number)
{
	const struct collective_job *job = simulation->collectives;

	if (number < simulation->flows.count)
		return simulation->flows.flows[number];
	number -= simulation->flows.count;
	if (simulation->has_graph && number < simulation->job_file.graph.ranks)
		return flow_of_graph(simulation, (uint32_t)number);
	number -= simulation->has_graph ? simulation->job_file.graph.ranks : 0;
	if (number < simulation->service_count)
		return flow_of_service(simulation, &simulation->services[number]);
	number -= simulation->service_count;
	for (; number >= (uint64_t)ranks_of(job) * steps_seen(job); job++)
		number -= (uint64_t)ranks_of(job) * steps_seen(job);
	assert(job < simulation->collectives + simulation->collective_count);
	const uint32_t at = (uint32_t)(number / steps_seen(job)), rank = job->groups->rank_at[at];
	const uint32_t sends = collective_job_sends(job, rank);
	/* The end of a chain sends nothing: the way to the next rank stands for it. */
	const struct collective_step step =
		sends ? collective_job_message(job, rank, (uint32_t)(number % steps_seen(job)) % sends)
		      : (struct collective_step){ job->groups->rank_at[(at + 1) % ranks_of(job)], 1 };
	struct flow flow = flow_between(simulation, job->of.nccl.rails, rank, step.to, job->of.part);
	flow.bytes = step.bytes;
	flow.start = job->of.start;
	flow.traffic_class = job->of.traffic_class;
	return flow;
}
