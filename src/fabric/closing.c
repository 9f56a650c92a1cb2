/* See closing.h. Flows are in two lists, linked by `next`: those that ended in this generation, in each shard, and
 * those that had ended before it. */
#include "base/invariant.h"
#include "fabric/closing.h"
#include "fabric/endpoint.h"
#include "fabric/operations.h"

void closing_add(struct shard *shard, uint32_t flow)
{
	flow_at(shard->fabric, flow)->next = shard->first_ended;
	shard->first_ended = flow;
}

static bool is_older_gone(const struct fabric *fabric)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < fabric->shard_count; i++)
		count += fabric->shards[i].under_way[!fabric->generation];
	return count == 0;
}

static void push(struct fabric *fabric, uint32_t *list, uint32_t flow)
{
	flow_at(fabric, flow)->next = *list;
	*list = flow;
}

/* Flows that may not be closed yet are tried again when this generation is gone. */
static uint32_t close_all(struct fabric *fabric)
{
	uint32_t stay = FLOW_NONE;
	for (uint32_t flow = fabric->first_closing, next; flow != FLOW_NONE; flow = next) {
		next = flow_at(fabric, flow)->next;
		if (fabric->kind->close_flow(fabric, flow))
			operation_forget(fabric, flow);
		else
			push(fabric, &stay, flow);
	}
	return stay;
}

/* The latest come first: behind the first that was retired, all were. */
static void retire_new(struct fabric *fabric)
{
	for (uint32_t i = 0; i < fabric->shard_count; i++)
		for (uint32_t flow = fabric->shards[i].first_ended; flow != FLOW_NONE;) {
			struct flow_state *its = flow_at(fabric, flow);
			if (its->is_retired)
				break;
			its->is_retired = true;
			fabric->kind->retire_flow(fabric, flow);
			flow = its->next;
		}
}

void closing_advance(struct fabric *fabric)
{
	if (fabric->kind->retire_flow)
		retire_new(fabric);
	if (!fabric->kind->close_flow || !is_older_gone(fabric))
		return;
	fabric->first_closing = close_all(fabric);
	for (uint32_t i = 0; i < fabric->shard_count; i++) {
		struct shard *shard = &fabric->shards[i];
		for (uint32_t flow = shard->first_ended, next; flow != FLOW_NONE; flow = next) {
			next = flow_at(fabric, flow)->next;
			push(fabric, &fabric->first_closing, flow);
		}
		shard->first_ended = FLOW_NONE;
	}
	fabric->generation = !fabric->generation;
}
