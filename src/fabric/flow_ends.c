/* See flow_ends.h. A message flows; has left, when its last byte has; has arrived a tail later, which is what the last
 * packet takes; and has ended when its ack is back. The acks of what has arrived come back meanwhile. When links go
 * down or are up again, all ways are found anew, and a message may wait (flow_outages.c). */
#include "fabric/flow_ends.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "base/number_map.h"
#include "fabric/endpoint.h"
#include "fabric/engine_connections.h"
#include "fabric/flow_level.h"
#include "fabric/operations.h"
#include "net/grow.h"

enum { LEAST_ACKS = MAX_MIN_WHOLE / 1024 }; /* fewer bytes of acks than this part of a message's hold up nothing */

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static int open_all(struct fabric *fabric)
{
	struct flow_level *level = fabric->flow_level = calloc(1, sizeof(*level));
	if (!level)
		return -ENOMEM;
	level->next = -1;
	level->resending = fabric_resending(fabric->config);
	level->channel_of = calloc(fabric->network->endpoint_count + 1, sizeof(*level->channel_of));
	level->paths = flow_paths_open(fabric);
	if (level->paths)
		level->fluids = fluids_open(flow_paths_capacities(level->paths), fabric->network->link_count);
	for (uint32_t i = 0; i < fabric->network->fault_count; i++)
		flow_await_outage(&fabric->shards[0], i);
	return level->channel_of && level->fluids ? 0 : -ENOMEM;
}

/* The list is known then. */
static int open_ports(struct fabric *fabric)
{
	fabric->flow_level->ports = flow_ports_open(fabric);
	return fabric->flow_level->ports ? 0 : -ENOMEM;
}

static void close_all(struct fabric *fabric)
{
	struct flow_level *level = fabric->flow_level;
	struct flow_message *message;
	if (!level)
		return;
	for (uint32_t i = 0; pool_next(&fabric->flows, &i); i++)
		if ((message = flow_part(fabric, i))->path)
			flow_path_give_back(message->path);
	for (uint32_t i = 0; i < level->channel_count; i++)
		if (level->channels[i].path)
			flow_path_give_back(level->channels[i].path);
	for (uint32_t i = 0; level->channel_of && i < fabric->network->endpoint_count; i++)
		number_map_free(&level->channel_of[i]);
	free(level->channel_of);
	free(level->channels);
	fluids_close(level->fluids);
	flow_ports_close(level->ports);
	flow_paths_close(level->paths);
	free(level);
}

/* ---- Beginning --------------------------------------------------------------------------------------------------- */

/* Rates are found once for all that changes now: by this moment's last event. */
void flow_await(struct shard *shard, vb_time next)
{
	struct flow_level *level = shard->fabric->flow_level;
	if (next >= 0 && next != level->next)
		events_add(&shard->events, next, event_key(EVENT_FLUIDS, 0, 0));
	level->next = next;
}

void flow_await_stage(struct shard *shard, uint32_t number, enum stage stage, vb_time at)
{
	events_add(&shard->events, at, event_key(EVENT_STAGE, stage, number));
}

/* The message's from now on, which has none, or gives its own back. */
void flow_set_path(struct flow_level *level, struct flow_message *its, struct flow_path *path, uint64_t bytes)
{
	its->path = path;
	its->times = flow_path_times(level->paths, path, bytes);
	its->fluid.share = (struct max_min_flow){ .hops = path->hops, .hop_count = path->hop_count };
	its->fluid.back = path->hops + path->hop_count;
	its->fluid.back_count = path->back_count;
}

void flow_await_acks(struct shard *shard, const struct flow_message *its)
{
	if (its->fluid.ack_share >= LEAST_ACKS)
		flow_await_stage(shard, its->number, STAGE_ACKS, shard->now + its->times.tail);
	flow_await(shard, shard->now);
}

static uint64_t acks_of(const struct fabric_config *config, uint64_t packets)
{
	const uint64_t every = config->ack_every ? config->ack_every : 1;
	return (packets + every - 1) / every;
}

static void begin(struct shard *shard, uint32_t number, struct flow_path *path)
{
	const struct fabric *fabric = shard->fabric;
	struct flow_level *level = fabric->flow_level;
	struct flow_message *its = flow_part(fabric, number);
	const struct framing *framing = flow_paths_framing(level->paths);
	const uint64_t bytes = flow_at(fabric, number)->bytes, wire = framing_wire_bytes(framing, bytes);
	its->number = number;
	flow_set_path(level, its, path, bytes);
	its->packets = framing_packets(framing, bytes);
	its->acks = acks_of(fabric->config, its->packets);
	its->fluid.ack_share = (uint32_t)(its->acks * framing_ack_bytes(framing) * MAX_MIN_WHOLE / wire);
	fluids_add(level->fluids, &its->fluid, wire, shard->now);
	if (flow_may_begin(shard, its))
		flow_await_acks(shard, its);
}

static struct flow_path *path_of(struct shard *shard, const struct flow_state *flow, struct flow_port *port)
{
	struct flow_level *level = shard->fabric->flow_level;
	struct flow_path *path = flow_ports_take(level->ports, flow, port)
					 ? NULL
					 : flow_path_of(level->paths, flow->src, flow->dst, port->port);
	shard->is_out_of_memory |= !path;
	return path;
}

/* NULL: no memory. */
static struct channel *channel_of(struct flow_level *level, const struct fabric *fabric, const struct flow_state *flow)
{
	uint32_t *number = number_map_make(&level->channel_of[flow->src], connection_key(fabric, flow));
	if (number && *number)
		return &level->channels[*number - 1];
	if (!number ||
		!grow_by_one(&level->channels, &level->channel_room, level->channel_count, sizeof(struct channel)))
		return NULL;
	level->channels[level->channel_count++] =
		(struct channel){ .src = flow->src, .dst = flow->dst, .first = FLOW_NONE };
	*number = level->channel_count;
	return &level->channels[*number - 1];
}

static void begin_next(struct shard *shard, struct channel *channel)
{
	const struct fabric *fabric = shard->fabric;
	const uint32_t number = channel->first;
	assert(!channel->is_busy);
	if (number == FLOW_NONE)
		return;
	struct flow_message *its = flow_part(fabric, number);
	channel->first = flow_at(fabric, number)->next;
	channel->is_busy = true;
	its->port = channel->port;
	channel->path->uses++;
	begin(shard, number, channel->path);
}

static void append(const struct fabric *fabric, struct channel *channel, uint32_t number)
{
	flow_at(fabric, number)->next = FLOW_NONE;
	if (channel->first == FLOW_NONE)
		channel->first = number;
	else
		flow_at(fabric, channel->last)->next = number;
	channel->last = number;
}

static void post_in_channel(struct shard *shard, uint32_t number)
{
	const struct fabric *fabric = shard->fabric;
	struct flow_level *level = fabric->flow_level;
	const struct flow_state *flow = flow_at(fabric, number);
	struct flow_message *its = flow_part(fabric, number);
	struct channel *channel = channel_of(level, fabric, flow);
	shard->is_out_of_memory |= !channel;
	if (channel && !channel->path)
		channel->path = path_of(shard, flow, &channel->port);
	if (!channel || !channel->path)
		return;
	its->channel = (uint32_t)(channel - level->channels);
	if (channel->has_failed) {
		flow_flush(shard, number);
		return;
	}
	append(fabric, channel, number);
	if (!channel->is_busy)
		begin_next(shard, channel);
}

static void post(struct shard *shard, uint32_t number)
{
	const struct flow_state *flow = flow_at(shard->fabric, number);
	struct flow_message *its = flow_part(shard->fabric, number);
	if (flow->channel) {
		post_in_channel(shard, number);
		return;
	}
	struct flow_path *path = path_of(shard, flow, &its->port);
	its->channel = NO_CHANNEL;
	if (path)
		begin(shard, number, path);
}

/* ---- Leaving, arriving and ending -------------------------------------------------------------------------------- */

static void leave(struct shard *shard, struct flow_message *its)
{
	struct flow_level *level = shard->fabric->flow_level;
	its->has_left = true;
	flow_await_stage(shard, its->number, STAGE_ARRIVED, shard->now + its->times.tail);
	if (its->channel == NO_CHANNEL)
		return;
	level->channels[its->channel].is_busy = false;
	begin_next(shard, &level->channels[its->channel]);
}

void flow_ends_on_fluids(struct shard *shard)
{
	struct flow_level *level = shard->fabric->flow_level;
	struct fluid *fluid;
	if (level->next != shard->now)
		return; /* rates have changed since */
	while ((fluid = fluids_take(level->fluids, shard->now)))
		leave(shard, (struct flow_message *)fluid);
	fluids_find_rates(level->fluids, shard->now);
	shard->is_out_of_memory |= fluids_lack_memory(level->fluids);
	level->next = -1;
	flow_await(shard, fluids_next(level->fluids));
}

static void count_on(
	struct fabric *fabric, const struct max_min_hop *hops, uint32_t count, uint64_t packets, uint64_t bytes)
{
	for (uint32_t i = 0; i < count; i++) {
		struct link *link = &fabric->links[hops[i].link];
		link->bytes += (uint64_t)((unsigned __int128)bytes * hops[i].weight / MAX_MIN_WHOLE);
		link->packets += (uint32_t)((unsigned __int128)packets * hops[i].weight / MAX_MIN_WHOLE);
	}
}

/* As packets would have been counted. */
static void count(struct shard *shard, const struct flow_message *its)
{
	struct fabric *fabric = shard->fabric;
	const struct framing *framing = flow_paths_framing(fabric->flow_level->paths);
	const struct flow_path *path = its->path;
	const uint64_t bytes = framing_wire_bytes(framing, flow_at(fabric, its->number)->bytes);
	shard->data_packets += its->packets;
	shard->arrived += its->packets;
	shard->acks += its->acks;
	count_on(fabric, path->hops, path->hop_count, its->packets, bytes);
	count_on(fabric, path->hops + path->hop_count, path->back_count, its->acks,
		its->acks * framing_ack_bytes(framing));
}

static void arrive(struct shard *shard, uint32_t number)
{
	struct flow_message *its = flow_part(shard->fabric, number);
	fluids_set_acks(shard->fabric->flow_level->fluids, &its->fluid, false);
	count(shard, its);
	its->has_arrived = true;
	flow_await_stage(shard, number, STAGE_ENDED, shard->now + its->times.ack);
	operation_arrive(shard, number);
}

void flow_end(struct shard *shard, uint32_t number)
{
	struct flow_message *its = flow_part(shard->fabric, number);
	if (its->path)
		flow_path_give_back(its->path);
	its->path = NULL;
	if (its->channel == NO_CHANNEL)
		flow_ports_give_back(shard->fabric->flow_level->ports, flow_at(shard->fabric, number), its->port);
	operation_end(shard, number);
}

static void begin_acks(struct shard *shard, uint32_t number)
{
	struct flow_message *its = flow_part(shard->fabric, number);
	if (!its->waits && !its->has_arrived)
		fluids_set_acks(shard->fabric->flow_level->fluids, &its->fluid, true);
}

void flow_ends_on_stage(struct shard *shard, uint32_t number, uint32_t stage)
{
	switch ((enum stage)stage) {
	case STAGE_ACKS:
		begin_acks(shard, number);
		break;
	case STAGE_ARRIVED:
		arrive(shard, number);
		break;
	case STAGE_ENDED:
		if (flow_is_heard(shard, flow_part(shard->fabric, number)))
			flow_end(shard, number);
		break;
	case STAGE_AGAIN:
		flow_go_on(shard, number);
		break;
	case STAGE_FAILED:
		flow_may_fail(shard, number);
		break;
	}
	if (fluids_have_changed(shard->fabric->flow_level->fluids))
		flow_await(shard, shard->now);
}

/* Nothing of a message that has ended is under way. */
static bool close_flow(struct fabric *fabric, uint32_t number)
{
	(void)fabric;
	(void)number;
	return true;
}

/* ---- Packets, of which there are none ---------------------------------------------------------------------------- */

static uint32_t pull(struct shard *shard, struct endpoint *endpoint, uint32_t number)
{
	(void)shard;
	(void)endpoint;
	(void)number;
	return NO_PACKET;
}

static void hold(const struct fabric *fabric, struct endpoint *endpoint, uint8_t classes, bool replies)
{
	(void)fabric;
	(void)endpoint;
	(void)classes;
	(void)replies;
}

static bool wants(const struct shard *shard, const struct endpoint *endpoint)
{
	(void)shard;
	(void)endpoint;
	return false;
}

static struct vb_deadline deadline(const struct shard *shard, const struct endpoint *endpoint)
{
	(void)shard;
	(void)endpoint;
	return (struct vb_deadline){ 0 };
}

/* ---- What is said ------------------------------------------------------------------------------------------------ */

static uint16_t port(const struct fabric *fabric, const struct flow_state *flow)
{
	(void)fabric;
	return ((const struct flow_message *)(flow + 1))->port.port;
}

static uint64_t executed(const struct fabric *fabric)
{
	return fabric->shards[0].arrived;
}

/* Nothing is wrong before the next has left, which may be long. */
static vb_time slowest(const struct fabric *fabric)
{
	const vb_time next = fluids_next(fabric->flow_level->fluids);
	return next > 0 ? next : 0;
}

static void say(const struct fabric *fabric, struct fabric_result *result)
{
	(void)fabric;
	(void)result;
}

const struct endpoint_kind flow_ends = {
	.open = open_all,
	.open_flows = open_ports,
	.close = close_all,
	.flow_bytes = sizeof(struct flow_message),
	.close_flow = close_flow,
	.post = post,
	.port = port,
	.pull = pull,
	.hold = hold,
	.wants = wants,
	.deadline = deadline,
	.executed = executed,
	.say = say,
	.patience = VB_S,
	.slowest = slowest,
};
