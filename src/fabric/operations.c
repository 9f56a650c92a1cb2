/* See operations.h. */
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
	struct endpoint *source = &fabric->endpoints[fabric->flows[number].src];
	fabric->flows[number].result.start = at;
	source->first_flow = starts_add(fabric->flows, source->first_flow, number);
}

/* The next to begin is in the calendar. */
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

void operation_end(struct shard *shard, uint32_t number)
{
	struct fabric *fabric = shard->fabric;
	struct flow_state *state = &fabric->flows[number];
	const vb_time heard = shard->now + host_latency(fabric, state->src);
	state->result.fct = state->result.error ? -1 : heard - state->result.start;
	shard->flows_done++;
	shard->flows_failed += state->result.error != 0;
	shard->payload_bytes += state->result.error ? 0 : fabric->config->flows->flows[number].bytes;
	if (shard->last_flow < heard)
		shard->last_flow = heard;
	for (uint32_t flow = state->first_waiting, next; flow != FLOW_NONE; flow = next) {
		next = fabric->flows[flow].next;
		queue_flow(fabric, flow, heard + fabric->config->flows->flows[flow].start);
	}
	await_flow(shard, &fabric->endpoints[state->src], state->src);
	closing_add(shard, number);
}

void operations_begin(struct fabric *fabric)
{
	const struct flow_list *list = fabric->config->flows;
	for (uint32_t i = list->count;
		i-- > 0;) /* most lists are sorted: then each becomes the first, which is removed at once */
		if (list->flows[i].after == FLOW_NONE)
			queue_flow(fabric, i, list->flows[i].start);
	for (uint32_t i = 0; i < fabric->network->endpoint_count; i++)
		await_flow(&fabric->shards[fabric->endpoints[i].shard], &fabric->endpoints[i], i);
}

void operations_on_start(struct shard *shard, uint32_t number)
{
	struct endpoint *endpoint = &shard->fabric->endpoints[number];
	uint32_t flow;
	if (!endpoint->is_flow_awaited || endpoint->flow_at != shard->now)
		return; /* an earlier one has done it */
	endpoint->is_flow_awaited = false;
	const vb_time decided = shard->now - host_latency(shard->fabric, number);
	while ((flow = endpoint->first_flow) != FLOW_NONE && shard->fabric->flows[flow].result.start <= decided) {
		endpoint->first_flow = starts_remove(shard->fabric->flows, flow);
		shard->flows_begun++;
		shard->fabric->kind->post(shard, flow);
	}
	await_flow(shard, endpoint, number);
	endpoint_wake(shard, number);
}
