/* See holder.h. To the rest of a run, a packet either has cargo or has none. */
#include "base/invariant.h"
#include "fabric/holder.h"
#include <errno.h>
#include <stdlib.h>
#include "net/why.h"
#include "fabric/windows.h"

/* `fabric` comes first: a pointer to it is all that the holder has. */
struct held {
	struct fabric fabric;
	struct fabric_config config;
	struct flow_list no_flows;
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
	held->fabric = (struct fabric){ .config = &held->config, .holder = holder, .day_shift = holder->day_shift };
	int rc = fabric_begin(&held->fabric, NULL, why, why_size);
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
	struct held *held = (struct held *)fabric;
	for (uint32_t i = 0; i < fabric->shards[0].packet_count; i++)
		if (fabric->shards[0].packets[i].has_cargo)
			cargo_lose(&fabric->shards[0], i);
	fabric_end(fabric);
	free(held);
}

/* ---- Calls of the holder ----------------------------------------------------------------------------------------- */

void fabric_send(struct fabric *fabric, const struct fabric_post *post)
{
	struct shard *shard = &fabric->shards[0];
	const struct fabric_holder *holder = fabric->holder;
	uint32_t index = packet_get(shard), link = fabric->endpoints[post->from].link;
	assert(post->cargo);
	if (index == NO_PACKET) {
		holder->on_loss(holder->user, post->cargo);
		return;
	}
	cargo_put(shard, index, post->cargo);
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
	assert(at >= fabric->shards[0].now);
	events_add(&fabric->shards[0].events, at, event_key(EVENT_CALL, ((struct held *)fabric)->calls++, number));
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
