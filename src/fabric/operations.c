/* See operations.h. */
#include "fabric/operations.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "fabric/closing.h"
#include "fabric/endpoint.h"
#include "fabric/ns3.h"
#include "fabric/scale_up.h"
#include "fabric/starts.h"
#include "net/grow.h"

/* Of the rank's NICs, which all are alike. */
static vb_time host_latency(const struct fabric *fabric, uint32_t rank)
{
	const uint32_t endpoint = hosts_endpoint_of(&fabric->config->hosts, rank, 0);
	return fabric->network->nics[fabric->network->endpoints[endpoint].nic].host_latency;
}

/* Puts the rank's next operation into the calendar. */
static void await_flow(struct shard *shard, uint32_t number)
{
	struct rank *rank = &shard->fabric->ranks[number];
	if (rank->first_flow == FLOW_NONE)
		return;
	vb_time at = flow_at(shard->fabric, rank->first_flow)->due + host_latency(shard->fabric, number);
	if (rank->is_flow_awaited && rank->flow_at <= at)
		return;
	rank->is_flow_awaited = true;
	rank->flow_at = at;
	events_add(&shard->events, at, event_key(EVENT_FLOW, 0, number));
}

static void queue(const struct fabric *fabric, uint32_t number, uint32_t flow, vb_time due)
{
	struct rank *rank = &fabric->ranks[number];
	flow_at(fabric, flow)->due = due;
	rank->first_flow = starts_add(fabric, rank->first_flow, flow);
}

/* ---- What jobs ask for ------------------------------------------------------------------------------------------- */

/* For one call of a job. */
struct sink {
	struct job_sink calls;
	struct shard *shard;
	uint32_t rank;
	uint16_t job;
};

static struct flow_state *add_operation(struct sink *sink, vb_time start, uint64_t tag, uint32_t *number)
{
	struct shard *shard = sink->shard;
	*number = pool_take(&shard->fabric->flows, &shard->flows);
	if (*number == POOL_NONE) {
		shard->is_out_of_memory = true;
		return NULL;
	}
	struct flow_state *flow = flow_at(shard->fabric, *number);
	flow->from = sink->rank;
	flow->tag = tag;
	flow->job = sink->job;
	flow->result = (struct flow_result){ .start = start, .fct = -1 };
	return flow;
}

static void take_message(struct job_sink *calls, const struct message *message)
{
	struct sink *sink = (struct sink *)calls;
	const struct fabric *fabric = sink->shard->fabric;
	const struct hosts hosts = hosts_to(&fabric->config->hosts, fabric->jobs[sink->job]->rails);
	uint32_t number;
	assert(message->src == sink->rank);
	assert(message->src != message->dst || message->is_copy || message->is_of_sum);
	assert(message->dst < fabric->rank_count);
	assert(message->bytes > 0);
	struct flow_state *flow = add_operation(sink, message->start, message->tag, &number);
	if (!flow)
		return;
	flow->doing = FLOW_IS_SENT;
	flow->to = message->dst;
	flow->src = hosts_sends_by(&hosts, message->src, message->dst, message->part);
	flow->dst = hosts_receives_by(&hosts, message->src, message->dst, message->part);
	flow->bytes = message->bytes;
	flow->channel = message->channel;
	flow->entropy = ns3_is_wanted(fabric) ? ns3_port(fabric, sink->job, message) : message->entropy;
	flow->traffic_class = message->traffic_class;
	flow->tells_arrival = message->tells_arrival;
	flow->is_piece = message->is_piece;
	flow->is_copy = message->is_copy;
	flow->is_of_sum = message->is_of_sum;
	if (message->carried)
		memcpy(flow_carried(fabric, flow), message->carried, fabric->jobs[sink->job]->kind->carried_bytes);
	queue(fabric, sink->rank, number, message->start);
}

static void take_computation(struct job_sink *calls, vb_time until, uint64_t tag)
{
	struct sink *sink = (struct sink *)calls;
	uint32_t number;
	struct flow_state *flow = add_operation(sink, until, tag, &number);
	if (!flow)
		return;
	flow->doing = FLOW_IS_COMPUTED;
	queue(sink->shard->fabric, sink->rank, number, until);
}

static void end_for_memory(struct job_sink *calls)
{
	((struct sink *)calls)->shard->is_out_of_memory = true;
}

static struct sink sink_of(struct shard *shard, uint32_t rank, uint16_t job)
{
	return (struct sink){
		.calls = { .send = take_message, .compute = take_computation, .lack_memory = end_for_memory },
		.shard = shard,
		.rank = rank,
		.job = job
	};
}

/* ---- What jobs are told ------------------------------------------------------------------------------------------ */

static void note_last(struct shard *shard, uint32_t job, vb_time at)
{
	if (shard->last_flow < at)
		shard->last_flow = at;
	if (shard->job_ends[job] < at)
		shard->job_ends[job] = at;
}

/* In the order of time: the first few are kept. */
static void note_failure(struct shard *shard, const struct flow_state *flow, vb_time at)
{
	if (shard->failure_count == FABRIC_FAILURES)
		return;
	shard->failures[shard->failure_count++] = (struct fabric_failure){ .at = at,
		.src = flow->src,
		.dst = flow->dst,
		.bytes = flow->bytes,
		.error = flow->result.error,
		.cause = flow->result.cause };
}

static uint32_t number_of_job(const struct fabric *fabric, const struct flow_state *flow)
{
	return flow->job - fabric->has_list;
}

static uint16_t port_of(const struct fabric *fabric, const struct flow_state *flow)
{
	const struct hosts *hosts = &fabric->config->hosts;
	if (hosts_host_of(hosts, flow->from) == hosts_host_of(hosts, flow->to))
		return 0; /* it was no packets */
	return fabric->kind->port ? fabric->kind->port(fabric, flow) : flow->entropy;
}

/* The hash is a sum, so that it is the same with any number of shards. */
static void note_message(struct shard *shard, const struct flow_state *flow, vb_time at)
{
	const struct fabric *fabric = shard->fabric;
	if (fabric->has_list && flow->job == 0)
		return; /* the list has its results */
	shard->job_hash += fabric_chance(
		flow->tag, (uint64_t)flow->from << 32 | flow->to, (uint64_t)flow->result.start ^ (uint64_t)at << 20);
	if (!fabric->config->tells_messages)
		return;
	if (!grow_by_one(&shard->messages, &shard->message_room, shard->message_count, sizeof(*shard->messages))) {
		shard->is_out_of_memory = true;
		return;
	}
	shard->messages[shard->message_count++] = (struct fabric_message){ .tag = flow->tag,
		.bytes = flow->bytes,
		.start = flow->result.start,
		.end = at,
		.src = flow->from,
		.dst = flow->to,
		.job = number_of_job(fabric, flow),
		.error = flow->result.error,
		.cause = flow->result.cause,
		.from = flow->src,
		.to = flow->dst,
		.port = port_of(fabric, flow) };
}

static void tell_end(struct shard *shard, uint32_t number, vb_time heard)
{
	struct fabric *fabric = shard->fabric;
	struct flow_state *flow = flow_at(fabric, number);
	struct job *job = fabric->jobs[flow->job];
	assert(flow->result.fct == -1);
	assert(fabric->ranks[flow->from].shard == shard->index);
	flow->result.fct = flow->result.error ? -1 : heard - flow->result.start;
	shard->flows_done++;
	shard->flows_failed += flow->result.error != 0;
	shard->payload_bytes += flow->result.error ? 0 : flow->bytes;
	if (flow->result.error)
		note_failure(shard, flow, heard);
	if (!job->kind->ends_by_arrival || flow->result.error)
		note_last(shard, flow->job, heard);
	note_message(shard, flow, heard);
	if (job->kind->ended) {
		struct sink sink = sink_of(shard, flow->from, flow->job);
		job->kind->ended(
			job, flow->from, flow->tag, heard, &flow->result, flow_carried(fabric, flow), &sink.calls);
	}
	await_flow(shard, flow->from);
}

void operation_end(struct shard *shard, uint32_t number)
{
	tell_end(shard, number, shard->now + host_latency(shard->fabric, flow_at(shard->fabric, number)->from));
	closing_add(shard, number);
}

static void tell_arrival(struct shard *shard, uint32_t number, vb_time heard)
{
	struct fabric *fabric = shard->fabric;
	struct flow_state *flow = flow_at(fabric, number);
	struct job *job = fabric->jobs[flow->job];
	assert(fabric->ranks[flow->to].shard == shard->index);
	if (!flow->tells_arrival)
		return;
	if (job->kind->ends_by_arrival)
		note_last(shard, flow->job, heard);
	if (job->kind->arrived) {
		struct sink sink = sink_of(shard, flow->to, flow->job);
		job->kind->arrived(job, flow->to, flow->tag, heard, flow_carried(fabric, flow), &sink.calls);
	}
	await_flow(shard, flow->to);
}

void operation_arrive(struct shard *shard, uint32_t number)
{
	tell_arrival(shard, number, shard->now + host_latency(shard->fabric, flow_at(shard->fabric, number)->to));
}

/* ---- What is due ------------------------------------------------------------------------------------------------- */

static void end_computation(struct shard *shard, uint32_t number)
{
	const struct flow_state flow = *flow_at(shard->fabric, number);
	struct job *job = shard->fabric->jobs[flow.job];
	struct sink sink = sink_of(shard, flow.from, flow.job);
	pool_put(&shard->fabric->flows, &shard->flows, number);
	shard->flows_begun++;
	shard->flows_done++;
	note_last(shard, flow.job, flow.due);
	job->kind->computed(job, flow.from, flow.tag, flow.due, &sink.calls);
}

static void begin_message(struct shard *shard, uint32_t number)
{
	struct fabric *fabric = shard->fabric;
	const struct flow_state *flow = flow_at(fabric, number);
	const struct hosts *hosts = &fabric->config->hosts;
	struct job *job = fabric->jobs[flow->job];
	struct sink sink = sink_of(shard, flow->from, flow->job);
	shard->flows_begun++;
	if (hosts_host_of(hosts, flow->from) == hosts_host_of(hosts, flow->to))
		scale_up_send(shard, number);
	else
		fabric->kind->post(shard, number);
	if (job->kind->begun)
		job->kind->begun(job, flow->from, flow->tag, &sink.calls);
}

void operation_deliver(struct shard *shard, uint32_t number, vb_time at)
{
	struct flow_state *flow = flow_at(shard->fabric, number);
	assert(flow->doing == FLOW_IS_SENT);
	flow->doing = FLOW_IS_DELIVERED;
	queue(shard->fabric, flow->to, number, at);
	await_flow(shard, flow->to);
}

/* The sender hears of it at once, because a scale-up domain sends no acknowledgement. */
static void deliver(struct shard *shard, uint32_t number)
{
	const struct flow_state *flow = flow_at(shard->fabric, number);
	shard->scale_up_bytes += flow->bytes;
	tell_arrival(shard, number, flow->due);
	tell_end(shard, number, flow->due);
	pool_put(&shard->fabric->flows, &shard->flows, number);
}

static void do_what_is_due(struct shard *shard, uint32_t number)
{
	switch ((enum flow_doing)flow_at(shard->fabric, number)->doing) {
	case FLOW_IS_SENT:
		begin_message(shard, number);
		break;
	case FLOW_IS_COMPUTED:
		end_computation(shard, number);
		break;
	case FLOW_IS_DELIVERED:
		deliver(shard, number);
		break;
	}
}

/* Each NIC by which the rank may send. */
static void wake(struct shard *shard, uint32_t rank)
{
	const struct hosts *hosts = &shard->fabric->config->hosts;
	if (hosts->front.storage)
		endpoint_wake(shard, hosts_front_endpoint_of(hosts, rank));
	if (hosts_is_storage(hosts, rank))
		return;
	if (shard->fabric->sends_by_any_nic)
		for (uint32_t i = 0; i < hosts->nics; i++)
			endpoint_wake(shard, hosts_host_of(hosts, rank) * hosts->nics + i);
	else
		for (uint32_t i = 0; i < hosts_nics_of_gpu(hosts); i++)
			endpoint_wake(shard, hosts_endpoint_of(hosts, rank, i));
}

void operations_on_start(struct shard *shard, uint32_t number)
{
	struct fabric *fabric = shard->fabric;
	struct rank *rank = &fabric->ranks[number];
	uint32_t flow;
	if (!rank->is_flow_awaited || rank->flow_at != shard->now)
		return; /* an earlier event has done it */
	rank->is_flow_awaited = false;
	const vb_time decided = shard->now - host_latency(fabric, number);
	while ((flow = rank->first_flow) != FLOW_NONE && flow_at(fabric, flow)->due <= decided) {
		rank->first_flow = starts_remove(fabric, flow);
		do_what_is_due(shard, flow);
	}
	await_flow(shard, number);
	wake(shard, number);
}

void operation_forget(struct fabric *fabric, uint32_t number)
{
	const uint32_t src = flow_at(fabric, number)->src;
	pool_put(&fabric->flows, &fabric->shards[fabric->endpoints[src].shard].flows, number);
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

/* Behind a record is what its endpoints know of it, and then what jobs let it carry. */
static void open_records(struct fabric *fabric)
{
	uint32_t most = 0;
	for (uint32_t i = 0; i < fabric->job_count; i++)
		if (fabric->jobs[i]->kind->carried_bytes > most)
			most = fabric->jobs[i]->kind->carried_bytes;
	fabric->carried_at = flow_stride(fabric->kind ? fabric->kind->flow_bytes : 0);
	pool_open(&fabric->flows, fabric->carried_at + (most + 7) / 8 * 8);
}

int operations_open(struct fabric *fabric, struct flow_result *results)
{
	const struct fabric_config *config = fabric->config;
	fabric->has_list = config->flows->count > 0;
	fabric->jobs = calloc(config->job_count + 1, sizeof(struct job *));
	if (!fabric->jobs)
		return -ENOMEM;
	fabric->rank_count = hosts_all_ranks(&config->hosts, fabric->network->endpoint_count);
	fabric->ranks = calloc(fabric->rank_count + 1, sizeof(*fabric->ranks));
	if (!fabric->ranks)
		return -ENOMEM;
	for (uint32_t i = 0; i < fabric->rank_count; i++) {
		const uint32_t endpoint = hosts_endpoint_of(&config->hosts, i, 0);
		fabric->ranks[i] = (struct rank){ .first_flow = FLOW_NONE, .shard = fabric->endpoints[endpoint].shard };
	}
	int rc = flow_job_open(&fabric->listed, config->flows, fabric->rank_count, results);
	if (rc == 0)
		rc = scale_up_open(fabric);
	if (rc)
		return rc;
	if (fabric->has_list)
		fabric->jobs[fabric->job_count++] = &fabric->listed.job;
	for (uint32_t i = 0; i < config->job_count; i++)
		fabric->jobs[fabric->job_count++] = config->jobs[i];
	open_records(fabric);
	for (uint32_t i = 0; i < fabric->job_count; i++) {
		fabric->operations += fabric->jobs[i]->operations;
		fabric->sends_by_any_nic |=
			config->hosts.gpus && hosts_to(&config->hosts, fabric->jobs[i]->rails).keeps_rails;
	}
	for (uint32_t i = 0; i < fabric->shard_count; i++) {
		fabric->shards[i].job_ends = calloc(fabric->job_count + 1, sizeof(vb_time));
		if (!fabric->shards[i].job_ends)
			return -ENOMEM;
	}
	return 0;
}

void operations_close(struct fabric *fabric)
{
	flow_job_close(&fabric->listed);
	scale_up_close(fabric);
	free(fabric->ranks);
	pool_close(&fabric->flows);
	free(fabric->jobs);
}

void operations_begin(struct fabric *fabric)
{
	for (uint32_t i = 0; i < fabric->rank_count; i++) {
		struct shard *shard = &fabric->shards[fabric->ranks[i].shard];
		for (uint32_t k = 0; k < fabric->job_count; k++) {
			struct sink sink = sink_of(shard, i, (uint16_t)k);
			if (i < fabric->jobs[k]->ranks)
				fabric->jobs[k]->kind->begin(fabric->jobs[k], i, &sink.calls);
		}
		await_flow(shard, i);
	}
}
