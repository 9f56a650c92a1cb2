/* See operations.h. */
#include "base/invariant.h"
#include "fabric/operations.h"
#include "fabric/closing.h"
#include "fabric/endpoint.h"
#include "fabric/starts.h"

static vb_time host_latency(const struct fabric *fabric, uint32_t endpoint)
{
	return fabric->network->nics[fabric->network->endpoints[endpoint].nic].host_latency;
}

static void queue_flow(struct fabric *fabric, uint32_t number, vb_time at)
{
	assert(fabric->flows[number].waits_left == 0);
	struct endpoint *source = &fabric->endpoints[fabric->flows[number].src];
	fabric->flows[number].result.start = at;
	source->first_flow = starts_add(fabric->flows, source->first_flow, number);
}

/* Puts the endpoint's next flow into the calendar. */
static void await_flow(struct shard *shard, struct endpoint *endpoint, uint32_t number)
{
	if (endpoint->first_flow == FLOW_NONE)
		return;
	vb_time at = shard->fabric->flows[endpoint->first_flow].result.start + host_latency(shard->fabric, number);
	if (endpoint->is_flow_awaited && endpoint->flow_at <= at)
		return;
	endpoint->is_flow_awaited = true;
	endpoint->flow_at = at;
	events_add(&shard->events, at, event_key(EVENT_FLOW, 0, number));
}

/* The endpoint hears of an event of a flow. Flows for which this was the last event to wait for begin; all of them are
 * the endpoint's own. */
static void let_begin(struct shard *shard, uint32_t endpoint, uint32_t number, enum flow_event event)
{
	struct fabric *fabric = shard->fabric;
	const struct flow_followers *its = &fabric->followers;
	const vb_time heard = shard->now + host_latency(fabric, endpoint);
	for (uint32_t i = its->first[number]; i < its->first[number + 1]; i++) {
		const uint32_t flow = its->followers[i].flow;
		if (its->followers[i].event != event)
			continue;
		assert(fabric->flows[flow].src == endpoint);
		assert(fabric->flows[flow].waits_left > 0);
		if (--fabric->flows[flow].waits_left == 0)
			queue_flow(fabric, flow, heard + fabric->config->flows->flows[flow].start);
	}
}

void operation_end(struct shard *shard, uint32_t number)
{
	struct fabric *fabric = shard->fabric;
	struct flow_state *state = &fabric->flows[number];
	assert(state->result.fct == -1);
	assert(fabric->endpoints[state->src].shard == shard->index);
	const vb_time heard = shard->now + host_latency(fabric, state->src);
	state->result.fct = state->result.error ? -1 : heard - state->result.start;
	shard->flows_done++;
	shard->flows_failed += state->result.error != 0;
	shard->payload_bytes += state->result.error ? 0 : fabric->config->flows->flows[number].bytes;
	if (shard->last_flow < heard)
		shard->last_flow = heard;
	if (fabric->followers.first)
		let_begin(shard, state->src, number, FLOW_ENDED);
	await_flow(shard, &fabric->endpoints[state->src], state->src);
	closing_add(shard, number);
}

void operation_arrive(struct shard *shard, uint32_t number)
{
	const uint32_t at = shard->fabric->flows[number].dst;
	const vb_time heard = shard->now + host_latency(shard->fabric, at);
	assert(shard->fabric->endpoints[at].shard == shard->index);
	if (shard->last_arrival < heard)
		shard->last_arrival = heard;
	if (!shard->fabric->followers.first)
		return;
	let_begin(shard, at, number, FLOW_ARRIVED);
	await_flow(shard, &shard->fabric->endpoints[at], at);
}

bool operation_is_awaited(const struct fabric *fabric, uint32_t number)
{
	const struct flow_followers *its = &fabric->followers;
	if (fabric->config->flows->tells_arrivals)
		return true;
	for (uint32_t i = its->first ? its->first[number] : 0; its->first && i < its->first[number + 1]; i++)
		if (its->followers[i].event == FLOW_ARRIVED)
			return true;
	return false;
}

int operations_open(struct fabric *fabric)
{
	return flow_followers_make(&fabric->followers, fabric->config->flows);
}

void operations_begin(struct fabric *fabric)
{
	const struct flow_list *list = fabric->config->flows;
	/* Most lists are sorted by start. From the last on, each flow becomes the first of its source, which is removed
	 * in one step. */
	for (uint32_t i = list->count; i-- > 0;)
		if (list->flows[i].waits == 0)
			queue_flow(fabric, i, list->flows[i].start);
	for (uint32_t i = 0; i < fabric->network->endpoint_count; i++)
		await_flow(&fabric->shards[fabric->endpoints[i].shard], &fabric->endpoints[i], i);
}

void operations_on_start(struct shard *shard, uint32_t number)
{
	struct endpoint *endpoint = &shard->fabric->endpoints[number];
	uint32_t flow;
	if (!endpoint->is_flow_awaited || endpoint->flow_at != shard->now)
		return; /* an earlier event has done it */
	endpoint->is_flow_awaited = false;
	const vb_time decided = shard->now - host_latency(shard->fabric, number);
	while ((flow = endpoint->first_flow) != FLOW_NONE && shard->fabric->flows[flow].result.start <= decided) {
		endpoint->first_flow = starts_remove(shard->fabric->flows, flow);
		shard->flows_begun++;
		assert(shard->fabric->flows[flow].src == number);
		shard->fabric->kind->post(shard, flow);
	}
	await_flow(shard, endpoint, number);
	endpoint_wake(shard, number);
}
