/* See holder.h. To the rest of a run a packet has cargo or has none. */
#include "fabric/holder.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "net/why.h"
#include "fabric/windows.h"

struct held {
	struct fabric fabric;
	struct fabric_config config;
	struct flow_list no_flows;
	const struct fabric_holder *holder;
	uint32_t calls;
};

static bool may_be_held(const struct held *held)
{
	for (uint32_t i = 0; i < held->config.network->endpoint_count; i++)
		if (held->fabric.links[held->fabric.endpoints[i].link].kind != LINK_ENDPOINT)
			return false;
	return true;
}

int fabric_open(const struct network *network, uint64_t seed, const struct fabric_holder *holder,
	struct fabric **fabric, char *why, unsigned why_size)
{
	struct held *held = calloc(1, sizeof(*held));
	if (!held)
		return -ENOMEM;
	held->config =
		(struct fabric_config){ .network = network, .flows = &held->no_flows, .seed = seed, .mtu = VB_MAX_MTU };
	held->holder = holder;
	held->fabric = (struct fabric){ .config = &held->config, .held = held, .day_shift = holder->day_shift };
	int rc = fabric_begin(&held->fabric, why, why_size);
	if (rc) {
		free(held);
		return rc;
	}
	if (!may_be_held(held)) {
		fabric_close(&held->fabric);
		return why_not(why, why_size, "a switch may stop endpoints by classes, and they have none");
	}
	*fabric = &held->fabric;
	return 0;
}

void fabric_close(struct fabric *fabric)
{
	struct held *held = fabric->held;
	for (uint32_t i = 0; i < fabric->shards[0].packet_count; i++)
		if (fabric->shards[0].packets[i].has_cargo)
			cargo_lose(&fabric->shards[0], i);
	fabric_end(fabric);
	free(held);
}

/* ---- Cargo ------------------------------------------------------------------------------------------------------- */

_Static_assert(sizeof(void *) <= sizeof(struct short_headers), "cargo lies where headers would");

static void put(struct shard *shard, uint32_t packet, void *cargo)
{
	memcpy(&shard->headers[packet], &cargo, sizeof(cargo));
}

static void *cargo_of(const struct shard *shard, uint32_t packet)
{
	void *cargo;
	memcpy(&cargo, &shard->headers[packet], sizeof(cargo));
	return cargo;
}

static void *take(struct shard *shard, uint32_t packet)
{
	void *cargo = cargo_of(shard, packet);
	shard->packets[packet].has_cargo = false;
	shard->headers[packet] = (struct short_headers){ 0 };
	return cargo;
}

void cargo_arrive(struct shard *shard, uint32_t endpoint, uint32_t packet)
{
	const struct fabric_holder *holder = shard->fabric->held->holder;
	bool is_marked = shard->packets[packet].is_marked;
	void *cargo = take(shard, packet);
	packet_put(shard, packet);
	holder->on_arrival(holder->user, endpoint, cargo, is_marked);
}

void cargo_lose(struct shard *shard, uint32_t packet)
{
	const struct fabric_holder *holder = shard->fabric->held->holder;
	holder->on_loss(holder->user, take(shard, packet));
}

bool cargo_copy(struct shard *shard, uint32_t copy, uint32_t packet)
{
	const struct fabric_holder *holder = shard->fabric->held->holder;
	void *cargo = holder->on_copy(holder->user, cargo_of(shard, packet));
	shard->packets[copy] = shard->packets[packet];
	shard->packets[copy].has_cargo = cargo != NULL;
	put(shard, copy, cargo);
	return cargo != NULL;
}

void cargo_call(struct shard *shard, uint32_t number)
{
	const struct fabric_holder *holder = shard->fabric->held->holder;
	holder->on_call(holder->user, number);
}

/* ---- What the holder does ---------------------------------------------------------------------------------------- */

void fabric_send(struct fabric *fabric, const struct fabric_post *post)
{
	struct shard *shard = &fabric->shards[0];
	const struct fabric_holder *holder = fabric->held->holder;
	uint32_t index = packet_get(shard), link = fabric->endpoints[post->from].link;
	if (index == NO_PACKET) {
		holder->on_loss(holder->user, post->cargo);
		return;
	}
	put(shard, index, post->cargo);
	shard->packets[index] = (struct packet){ .src = post->from,
		.dst = post->to,
		.flow = post->flow,
		.wire_bytes = post->wire_bytes,
		.takes_marks = post->takes_marks,
		.has_cargo = true };
	vb_time free_at = fabric->links[link].free_at;
	link_send(shard, link, index, free_at > shard->now ? free_at : shard->now);
}

void fabric_call(struct fabric *fabric, vb_time at, uint32_t number)
{
	events_add(&fabric->shards[0].events, at, event_key(EVENT_CALL, fabric->held->calls++, number));
}

int fabric_step(struct fabric *fabric)
{
	bool is_any = windows_step(fabric);
	return fabric->shards[0].is_out_of_memory || fabric->shards[0].events.is_out_of_memory ? -ENOMEM : is_any;
}

vb_time fabric_now(const struct fabric *fabric)
{
	return fabric->shards[0].now;
}

vb_time fabric_free_at(const struct fabric *fabric, uint32_t endpoint)
{
	return fabric->links[fabric->endpoints[endpoint].link].free_at;
}

uint64_t fabric_lost(const struct fabric *fabric)
{
	return fabric->shards[0].lost;
}
