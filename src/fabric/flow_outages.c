/* Messages that are no packets, where links go down: they take the ways that their packets would take, wait while their
 * way is down (net/stalls.h), or fail. */
#include "base/invariant.h"
#include "fabric/endpoint.h"
#include "fabric/flow_level.h"
#include "fabric/flow_ends.h"
#include "fabric/operations.h"

void flow_await_outage(struct shard *shard, uint32_t fault)
{
	const vb_time next = fault_next_change(&shard->fabric->network->faults[fault], shard->now);
	if (next >= 0)
		events_add(&shard->events, next, event_key(EVENT_OUTAGE, 0, fault));
}

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

static void wait_for_way(struct shard *shard, struct flow_message *its, struct stall stall)
{
	stall.again = -1;
	its->waits = true;
	its->stall = stall;
	const vb_time end = stall_end(&shard->fabric->flow_level->resending, &stall);
	flow_await_stage(shard, its->number, STAGE_FAILED, end > shard->now ? end : shard->now);
}

static void hear(struct flow_message *its, bool is_heard, vb_time now)
{
	if (is_heard)
		its->deaf_since = -1;
	else if (its->deaf_since < 0)
		its->deaf_since = now;
}

static void stop(struct shard *shard, struct flow_message *its)
{
	struct fluids *fluids = shard->fabric->flow_level->fluids;
	const uint64_t rate = its->fluid.rate ? its->fluid.rate : its->path->rate;
	const vb_time left = fluids_stop(fluids, &its->fluid, rate, shard->now);
	wait_for_way(shard, its, (struct stall){ .since = shard->now, .left = left, .rate = rate });
	flow_await(shard, shard->now);
}

bool flow_may_begin(struct shard *shard, struct flow_message *its)
{
	const struct flow_paths *paths = shard->fabric->flow_level->paths;
	its->deaf_since = -1;
	hear(its, flow_path_back_is_up(paths, its->path), shard->now);
	if (flow_path_is_up(paths, its->path))
		return true;
	stop(shard, its);
	return false;
}

bool flow_is_heard(struct shard *shard, struct flow_message *its)
{
	const vb_time since = its->deaf_since, rest = shard->now - since - its->times.tail - its->times.ack;
	if (flow_path_back_is_up(shard->fabric->flow_level->paths, its->path))
		return true;
	wait_for_way(
		shard, its, (struct stall){ .since = since, .left = rest > 0 ? rest : 0, .rate = its->path->rate });
	return false;
}

/* ---- Going on, and failing --------------------------------------------------------------------------------------- */

void flow_go_on(struct shard *shard, uint32_t number)
{
	struct flow_message *its = flow_part(shard->fabric, number);
	if (!its->waits || its->stall.again != shard->now)
		return;
	its->waits = false;
	if (its->has_arrived) {
		flow_end(shard, number);
		return;
	}
	fluids_go_on(shard->fabric->flow_level->fluids, &its->fluid, shard->now);
	flow_await_acks(shard, its);
}

void flow_flush(struct shard *shard, uint32_t number)
{
	struct flow_message *its = flow_part(shard->fabric, number);
	its->is_flushed = true;
	flow_await_stage(shard, number, STAGE_FAILED, shard->now);
}

/* Of a connection all that is behind it fails, too. */
static void fail_channel(struct shard *shard, struct channel *channel)
{
	channel->has_failed = true;
	channel->is_busy = false;
	for (uint32_t i = channel->first; i != FLOW_NONE; i = flow_at(shard->fabric, i)->next)
		flow_flush(shard, i);
	channel->first = FLOW_NONE;
}

void flow_may_fail(struct shard *shard, uint32_t number)
{
	const struct fabric *fabric = shard->fabric;
	struct flow_message *its = flow_part(fabric, number);
	const bool is_over = its->waits && stall_end(&fabric->flow_level->resending, &its->stall) <= shard->now;
	if (!is_over && !its->is_flushed)
		return;
	struct flow_result *is = &flow_at(fabric, number)->result;
	is->error = its->is_flushed ? VB_WC_WR_FLUSH_ERR : VB_WC_RETRY_EXC_ERR;
	is->cause = VB_CAUSE_RETRY_EXCEEDED;
	its->waits = false;
	if (its->channel != NO_CHANNEL && !its->is_flushed)
		fail_channel(shard, &fabric->flow_level->channels[its->channel]);
	flow_end(shard, number);
}

/* On the wire, of the messages that wait for this one. */
static uint64_t bytes_behind(const struct fabric *fabric, const struct flow_message *its)
{
	const struct flow_level *level = fabric->flow_level;
	uint64_t bytes = 0;
	if (its->channel == NO_CHANNEL)
		return 0;
	for (uint32_t i = level->channels[its->channel].first; i != FLOW_NONE; i = flow_at(fabric, i)->next)
		bytes += framing_wire_bytes(flow_paths_framing(level->paths), flow_at(fabric, i)->bytes);
	return bytes;
}

/* The way is up: what finds the gap, or the first ack, takes a round trip. The receiver says once that there is a gap.
 */
static void await_again(struct shard *shard, struct flow_message *its)
{
	const struct fabric *fabric = shard->fabric;
	its->stall.is_deaf |= its->deaf_since >= 0;
	const vb_time again =
		stall_again(&fabric->flow_level->resending, &its->stall, bytes_behind(fabric, its), shard->now);
	const vb_time at = again == its->stall.since ? again : again + its->times.tail + its->times.ack;
	if (at == its->stall.again || again >= stall_end(&fabric->flow_level->resending, &its->stall))
		return;
	its->stall.again = at;
	flow_await_stage(shard, its->number, STAGE_AGAIN, at);
}

static void find_way(struct shard *shard, struct flow_message *its)
{
	const struct fabric *fabric = shard->fabric;
	struct flow_level *level = fabric->flow_level;
	const struct flow_state *flow = flow_at(fabric, its->number);
	struct flow_path *path = flow_path_now(level->paths, its->path, flow->src, flow->dst, its->port.port),
			 *was = its->path;
	shard->is_out_of_memory |= !path;
	if (!path)
		return;
	const bool is_up = flow_path_is_up(level->paths, path), is_heard = flow_path_back_is_up(level->paths, path);
	if (!its->has_left && !its->waits && (path != was || !is_up))
		stop(shard, its);
	const bool sends_acks = its->fluid.sends_acks && path != was;
	if (sends_acks)
		fluids_set_acks(level->fluids, &its->fluid, false);
	flow_set_path(level, its, path, flow->bytes);
	if (sends_acks)
		fluids_set_acks(level->fluids, &its->fluid, true);
	flow_path_give_back(was);
	hear(its, is_heard, shard->now);
	if (!its->waits)
		return;
	if (is_up && (!its->has_arrived || is_heard))
		await_again(shard, its);
	else
		its->stall.again = -1;
}

static void find_way_of_channel(struct shard *shard, struct channel *channel)
{
	struct flow_path *was = channel->path;
	channel->path =
		flow_path_now(shard->fabric->flow_level->paths, was, channel->src, channel->dst, channel->port.port);
	shard->is_out_of_memory |= !channel->path;
	flow_path_give_back(was);
}

void flow_ends_on_outage(struct shard *shard, uint32_t fault)
{
	const struct fabric *fabric = shard->fabric;
	struct flow_level *level = fabric->flow_level;
	struct flow_message *its;
	flow_await_outage(shard, fault);
	for (uint32_t i = 0; i < level->channel_count; i++)
		if (level->channels[i].path)
			find_way_of_channel(shard, &level->channels[i]);
	for (uint32_t i = 0; pool_next(&fabric->flows, &i); i++)
		if ((its = flow_part(fabric, i))->path)
			find_way(shard, its);
}
