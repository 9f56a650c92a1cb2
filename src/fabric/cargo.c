/* Cargo: what a holder's packet carries, and the calls that tell the holder what became of it (holder.h). Cargo lies
 * where the headers of other packets lie.
 * Holds: the holder gets each cargo back once. */
#include <string.h>
#include "base/invariant.h"
#include "fabric/holder.h"
#include "fabric/state.h"

_Static_assert(sizeof(void *) <= sizeof(struct short_headers), "cargo lies where headers would");

void cargo_put(struct shard *shard, uint32_t packet, void *cargo)
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
	assert(shard->packets[packet].has_cargo);
	void *cargo = cargo_of(shard, packet);
	shard->packets[packet].has_cargo = false;
	shard->headers[packet] = (struct short_headers){ 0 };
	return cargo;
}

void cargo_arrive(struct shard *shard, uint32_t endpoint, uint32_t packet)
{
	const struct fabric_holder *holder = shard->fabric->holder;
	bool is_marked = shard->packets[packet].is_marked;
	void *cargo = take(shard, packet);
	packet_put(shard, packet);
	holder->on_arrival(holder->user, endpoint, cargo, is_marked);
}

void cargo_lose(struct shard *shard, uint32_t packet)
{
	const struct fabric_holder *holder = shard->fabric->holder;
	holder->on_loss(holder->user, take(shard, packet));
}

bool cargo_copy(struct shard *shard, uint32_t copy, uint32_t packet)
{
	const struct fabric_holder *holder = shard->fabric->holder;
	void *cargo = holder->on_copy(holder->user, cargo_of(shard, packet));
	shard->packets[copy] = shard->packets[packet];
	shard->packets[copy].has_cargo = cargo != NULL;
	cargo_put(shard, copy, cargo);
	return cargo != NULL;
}

void cargo_call(struct shard *shard, uint32_t number)
{
	const struct fabric_holder *holder = shard->fabric->holder;
	holder->on_call(holder->user, number);
}
