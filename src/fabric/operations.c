/* See operations.h. */
#include "fabric/operations.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "fabric/closing.h"
#include "fabric/endpoint.h"
#include "fabric/ns3.h"
#include "fabric/starts.h"
#include "net/grow.h"

static vb_time host_latency(const struct fabric *fabric, uint32_t endpoint)
{
	return fabric->network->nics[fabric->network->endpoints[endpoint].nic].host_latency;
}

/* Puts the endpoint's next operation into the calendar. */
static void await_flow(struct shard *shard, struct endpoint *endpoint, uint32_t number)
{
	if (endpoint->first_flow == FLOW_NONE)
		return;
	vb_time at = flow_at(shard->fabric, endpoint->first_flow)->result.start + host_latency(shard->fabric, number);
	if (endpoint->is_flow_awaited && endpoint->flow_at <= at)
		return;
	endpoint->is_flow_awaited = true;
	endpoint->flow_at = at;
	events_add(&shard->events, at, event_key(EVENT_FLOW, 0, number));
}

/* ---- What jobs ask for ------------------------------------------------------------------------------------------- */

/* For one call of a job. */
struct sink {
	struct job_sink calls;
	struct shard *shard;
	uint32_t endpoint;
	uint8_t job;
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
	flow->src = sink->endpoint;
	flow->tag = tag;
	flow->job = sink->job;
	flow->result = (struct flow_result){ .start = start, .fct = -1 };
	return flow;
}

static void queue(struct sink *sink, uint32_t number)
{
	struct endpoint *endpoint = &sink->shard->fabric->endpoints[sink->endpoint];
	endpoint->first_flow = starts_add(sink->shard->fabric, endpoint->first_flow, number);
}

static void take_message(struct job_sink *calls, const struct message *message)
{
	struct sink *sink = (struct sink *)calls;
	const struct fabric *fabric = sink->shard->fabric;
	uint32_t number;
	assert(message->src == sink->endpoint && message->src != message->dst);
	assert(message->bytes > 0);
	struct flow_state *flow = add_operation(sink, message->start, message->tag, &number);
	if (!flow)
		return;
	flow->is_message = true;
	flow->dst = message->dst;
	flow->bytes = message->bytes;
	flow->channel = message->channel;
	flow->entropy = ns3_is_wanted(fabric) ? ns3_port(fabric, sink->job, message) : message->entropy;
	flow->traffic_class = message->traffic_class;
	flow->tells_arrival = message->tells_arrival;
	queue(sink, number);
}

static void take_computation(struct job_sink *calls, vb_time until, uint64_t tag)
{
	uint32_t number;
	if (add_operation((struct sink *)calls, until, tag, &number))
		queue((struct sink *)calls, number);
}

static struct sink sink_of(struct shard *shard, uint32_t endpoint, uint8_t job)
{
	return (struct sink){ .calls = { .send = take_message, .compute = take_computation },
		.shard = shard,
		.endpoint = endpoint,
		.job = job };
}

/* ---- What jobs are told ------------------------------------------------------------------------------------------ */

static void note_last(struct shard *shard, vb_time at)
{
	if (shard->last_flow < at)
		shard->last_flow = at;
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

/* The hash is a sum, so that it is the same with any number of shards. */
static void note_message(struct shard *shard, const struct flow_state *flow, vb_time at)
{
	const struct fabric *fabric = shard->fabric;
	if (fabric->has_list && flow->job == 0)
		return; /* the list has its results */
	shard->job_hash += fabric_chance(
		flow->tag, (uint64_t)flow->src << 32 | flow->dst, (uint64_t)flow->result.start ^ (uint64_t)at << 20);
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
		.src = flow->src,
		.dst = flow->dst,
		.job = number_of_job(fabric, flow),
		.error = flow->result.error,
		.cause = flow->result.cause };
}

void operation_end(struct shard *shard, uint32_t number)
{
	struct fabric *fabric = shard->fabric;
	struct flow_state *flow = flow_at(fabric, number);
	struct job *job = fabric->jobs[flow->job];
	assert(flow->result.fct == -1);
	assert(fabric->endpoints[flow->src].shard == shard->index);
	const vb_time heard = shard->now + host_latency(fabric, flow->src);
	flow->result.fct = flow->result.error ? -1 : heard - flow->result.start;
	shard->flows_done++;
	shard->flows_failed += flow->result.error != 0;
	shard->payload_bytes += flow->result.error ? 0 : flow->bytes;
	if (flow->result.error)
		note_failure(shard, flow, heard);
	if (!job->kind->ends_by_arrival || flow->result.error)
		note_last(shard, heard);
	note_message(shard, flow, heard);
	if (job->kind->ended) {
		struct sink sink = sink_of(shard, flow->src, flow->job);
		job->kind->ended(job, flow->src, flow->tag, heard, &flow->result, &sink.calls);
	}
	await_flow(shard, &fabric->endpoints[flow->src], flow->src);
	closing_add(shard, number);
}

void operation_arrive(struct shard *shard, uint32_t number)
{
	struct fabric *fabric = shard->fabric;
	const struct flow_state *flow = flow_at(fabric, number);
	struct job *job = fabric->jobs[flow->job];
	const vb_time heard = shard->now + host_latency(fabric, flow->dst);
	assert(fabric->endpoints[flow->dst].shard == shard->index);
	if (!flow->tells_arrival)
		return;
	if (job->kind->ends_by_arrival)
		note_last(shard, heard);
	if (job->kind->arrived) {
		struct sink sink = sink_of(shard, flow->dst, flow->job);
		job->kind->arrived(job, flow->dst, flow->tag, heard, &sink.calls);
	}
	await_flow(shard, &fabric->endpoints[flow->dst], flow->dst);
}

static void end_computation(struct shard *shard, uint32_t number)
{
	const struct flow_state flow = *flow_at(shard->fabric, number);
	struct job *job = shard->fabric->jobs[flow.job];
	struct sink sink = sink_of(shard, flow.src, flow.job);
	pool_put(&shard->fabric->flows, &shard->flows, number);
	shard->flows_begun++;
	shard->flows_done++;
	note_last(shard, flow.result.start);
	job->kind->computed(job, flow.src, flow.tag, flow.result.start, &sink.calls);
}

static void begin_message(struct shard *shard, uint32_t number)
{
	const struct flow_state *flow = flow_at(shard->fabric, number);
	struct job *job = shard->fabric->jobs[flow->job];
	struct sink sink = sink_of(shard, flow->src, flow->job);
	shard->flows_begun++;
	shard->fabric->kind->post(shard, number);
	if (job->kind->begun)
		job->kind->begun(job, flow->src, flow->tag, &sink.calls);
}

void operations_on_start(struct shard *shard, uint32_t number)
{
	struct fabric *fabric = shard->fabric;
	struct endpoint *endpoint = &fabric->endpoints[number];
	uint32_t flow;
	if (!endpoint->is_flow_awaited || endpoint->flow_at != shard->now)
		return; /* an earlier event has done it */
	endpoint->is_flow_awaited = false;
	const vb_time decided = shard->now - host_latency(fabric, number);
	while ((flow = endpoint->first_flow) != FLOW_NONE && flow_at(fabric, flow)->result.start <= decided) {
		endpoint->first_flow = starts_remove(fabric, flow);
		assert(flow_at(fabric, flow)->src == number);
		if (flow_at(fabric, flow)->is_message)
			begin_message(shard, flow);
		else
			end_computation(shard, flow);
	}
	await_flow(shard, endpoint, number);
	endpoint_wake(shard, number);
}

void operation_forget(struct fabric *fabric, uint32_t number)
{
	const uint32_t src = flow_at(fabric, number)->src;
	pool_put(&fabric->flows, &fabric->shards[fabric->endpoints[src].shard].flows, number);
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

int operations_open(struct fabric *fabric, struct flow_result *results)
{
	const struct fabric_config *config = fabric->config;
	fabric->has_list = config->flows->count > 0;
	fabric->jobs = calloc(config->job_count + 1, sizeof(struct job *));
	if (!fabric->jobs)
		return -ENOMEM;
	pool_open(&fabric->flows, flow_stride(fabric->kind ? fabric->kind->flow_bytes : 0));
	int rc = flow_job_open(&fabric->listed, config->flows, fabric->network->endpoint_count, results);
	if (rc)
		return rc;
	if (fabric->has_list)
		fabric->jobs[fabric->job_count++] = &fabric->listed.job;
	for (uint32_t i = 0; i < config->job_count; i++)
		fabric->jobs[fabric->job_count++] = config->jobs[i];
	for (uint32_t i = 0; i < fabric->job_count; i++)
		fabric->operations += fabric->jobs[i]->operations;
	return 0;
}

void operations_close(struct fabric *fabric)
{
	flow_job_close(&fabric->listed);
	pool_close(&fabric->flows);
	free(fabric->jobs);
}

void operations_begin(struct fabric *fabric)
{
	for (uint32_t i = 0; i < fabric->network->endpoint_count; i++) {
		struct shard *shard = &fabric->shards[fabric->endpoints[i].shard];
		for (uint32_t k = 0; k < fabric->job_count; k++) {
			struct sink sink = sink_of(shard, i, (uint8_t)k);
			if (i < fabric->jobs[k]->endpoints)
				fabric->jobs[k]->kind->begin(fabric->jobs[k], i, &sink.calls);
		}
		await_flow(shard, &fabric->endpoints[i], i);
	}
}
