/* The store of packets that came before their turn: hold.h.
 * Holds: count and bits are those of the packets that are here, bytes what they and the ring cost; each lies between
 * the PSN whose turn it is and end_psn, fewer than all places apart. Not here: what is done with them (early.c,
 * selective.c). */
#include "roce/hold.h"
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "roce/psn_bits.h"

static void set_bits(struct vb_hold *hold, uint32_t psn, uint32_t span)
{
	for (uint32_t i = 0; i < span; i++)
		vb_psn_set(hold->bits, hold->mask, vb_psn_add(psn, i));
}

static bool has_any(const struct vb_hold *hold, uint32_t psn, uint32_t span)
{
	for (uint32_t i = 0; i < span; i++)
		if (vb_psn_bit(hold->bits, hold->mask, vb_psn_add(psn, i)))
			return true;
	return false;
}

static void insert(struct vb_hold *hold, struct vb_held *held)
{
	hold->places[held->packet.psn & hold->mask] = held;
	set_bits(hold, held->packet.psn, held->span);
}

static uint32_t places_of(const struct vb_hold *hold)
{
	return hold->places ? hold->mask + 1 : 0;
}

static uint32_t ring_bytes(uint32_t places)
{
	return places * (uint32_t)sizeof(struct vb_held *) + places / 8;
}

/* More bytes of the ring, for so many PSNs. */
static uint32_t growth_for(const struct vb_hold *hold, uint32_t psns)
{
	uint32_t places = vb_psn_places(psns), before = places_of(hold);
	return places > before ? ring_bytes(places) - ring_bytes(before) : 0;
}

/* Room for so many PSNs from the first on. */
static bool reserve(struct vb_hold *hold, uint32_t psns, struct vb_hold_pool *pool)
{
	uint32_t places = vb_psn_places(psns), before = places_of(hold), growth = growth_for(hold, psns);
	if (growth == 0)
		return true;
	struct vb_hold larger = *hold;
	larger.places = calloc(places, sizeof(struct vb_held *));
	larger.bits = calloc(places / 64, sizeof(*larger.bits));
	larger.mask = places - 1;
	if (!larger.places || !larger.bits) {
		free(larger.places);
		free(larger.bits);
		return false;
	}
	for (uint32_t i = 0; i < before; i++)
		if (hold->places[i])
			insert(&larger, hold->places[i]);
	free(hold->places);
	free(hold->bits);
	*hold = larger;
	hold->bytes += growth;
	pool->used += growth;
	assert(hold->mask + 1 >= psns);
	return true;
}

/* ---- Copies ------------------------------------------------------------------------------------------------------ */

static const uint32_t rooms[VB_HOLD_SIZES] = { 1024, 1408, 2048, VB_MAX_MTU, VB_LARGE_MTU };

uint32_t vb_hold_room(uint32_t length)
{
	unsigned size = 0;
	if (length <= rooms[0] / 2)
		return length;
	while (rooms[size] < length)
		size++;
	assert(size < VB_HOLD_SIZES);
	return rooms[size];
}

/* Of copies of that size; NULL: none are kept. */
static struct vb_held **spares_of(struct vb_hold_pool *pool, uint32_t room)
{
	for (unsigned i = 0; i < VB_HOLD_SIZES; i++)
		if (room == rooms[i])
			return &pool->spare[i];
	return NULL;
}

static uint32_t bytes_of(uint32_t room)
{
	return (uint32_t)sizeof(struct vb_held) + room;
}

static struct vb_held *take_cell(struct vb_hold_pool *pool, uint32_t room)
{
	struct vb_held **spares = spares_of(pool, room), *held = spares ? *spares : NULL;
	if (!held)
		return malloc(bytes_of(room));
	*spares = held->next;
	pool->spare_bytes -= bytes_of(room);
	return held;
}

static uint64_t spare_most(const struct vb_hold_pool *pool)
{
	uint64_t rest = pool->most > pool->used ? pool->most - pool->used : 0;
	return rest > VB_HOLD_SPARE_BYTES ? rest : VB_HOLD_SPARE_BYTES;
}

static void give_cell(struct vb_hold_pool *pool, struct vb_held *held)
{
	struct vb_held **spares = spares_of(pool, held->room);
	if (!spares || pool->spare_bytes + bytes_of(held->room) > spare_most(pool)) {
		free(held);
		return;
	}
	held->next = *spares;
	*spares = held;
	pool->spare_bytes += bytes_of(held->room);
	assert(pool->spare_bytes <= spare_most(pool));
}

static void trim(struct vb_hold_pool *pool, uint64_t most)
{
	for (unsigned i = 0; i < VB_HOLD_SIZES; i++)
		while (pool->spare[i] && pool->spare_bytes > most)
			free(take_cell(pool, rooms[i]));
	assert(pool->spare_bytes <= most);
}

void vb_hold_pool_deinit(struct vb_hold_pool *pool)
{
	assert(pool->used == 0);
	trim(pool, 0);
}

static uint32_t cost_of(const struct vb_packet *packet)
{
	return bytes_of(packet->payload ? vb_hold_room(packet->payload_length) : packet->payload_length);
}

static struct vb_held *copy_of(const struct vb_packet *packet, uint32_t span, struct vb_hold_pool *pool)
{
	uint32_t length = packet->payload ? packet->payload_length : 0, room = vb_hold_room(length);
	struct vb_held *held = take_cell(pool, room);
	if (!held)
		return NULL;
	held->packet = *packet;
	held->span = span;
	held->room = room;
	held->cost = cost_of(packet);
	if (length) {
		memcpy(held->bytes, packet->payload, length);
		held->packet.payload = held->bytes;
	}
	return held;
}

/* ---- The store --------------------------------------------------------------------------------------------------- */

/* All places are empty. */
static void give_back(struct vb_hold *hold, struct vb_hold_pool *pool)
{
	assert(hold->count == 0 && hold->bytes == ring_bytes(places_of(hold)));
	pool->used -= hold->bytes;
	if (pool->used == 0) {
		pool->most = 0;
		trim(pool, VB_HOLD_SPARE_BYTES);
	}
	free(hold->places);
	free(hold->bits);
	*hold = (struct vb_hold){ 0 };
}

enum vb_hold_outcome vb_hold_put(
	struct vb_hold *hold, uint32_t first, const struct vb_packet *packet, uint32_t span, struct vb_hold_pool *pool)
{
	uint32_t ahead = (uint32_t)vb_psn_diff(packet->psn, first), cost = cost_of(packet);
	assert(vb_psn_diff(packet->psn, first) > 0 && span > 0);
	if (ahead >= VB_HOLD_PSNS || span > VB_HOLD_PSNS - ahead)
		return VB_HOLD_FULL;
	bool is_within = hold->places && ahead + span <= hold->mask + 1;
	if (is_within && has_any(hold, packet->psn, span))
		return vb_psn_bit(hold->bits, hold->mask, packet->psn) ? VB_HOLD_HAD : VB_HOLD_FULL;
	uint64_t more = (uint64_t)cost + growth_for(hold, ahead + span);
	if (hold->bytes + more > pool->of_qp || pool->used + more > pool->of_lane)
		return VB_HOLD_FULL;
	if (!reserve(hold, ahead + span, pool))
		return VB_HOLD_FULL;
	/* Of what did not fit before, a part may be here. */
	bool has_part = !is_within && has_any(hold, packet->psn, span);
	struct vb_held *held = has_part ? NULL : copy_of(packet, span, pool);
	if (!held) {
		if (hold->count == 0)
			give_back(hold, pool);
		return VB_HOLD_FULL;
	}
	insert(hold, held);
	uint32_t end = vb_psn_add(packet->psn, span);
	if (hold->count == 0 || vb_psn_diff(end, hold->end_psn) > 0)
		hold->end_psn = end;
	hold->count++;
	hold->bytes += cost;
	pool->used += cost;
	if (pool->used > pool->most)
		pool->most = pool->used;
	trim(pool, spare_most(pool)); /* of other sizes */
	return VB_HOLD_TAKEN;
}

const struct vb_held *vb_hold_at(const struct vb_hold *hold, uint32_t psn)
{
	if (hold->count == 0)
		return NULL;
	const struct vb_held *held = hold->places[psn & hold->mask];
	return held && held->packet.psn == psn ? held : NULL;
}

static void drop(struct vb_hold *hold, uint32_t place, struct vb_hold_pool *pool)
{
	struct vb_held *held = hold->places[place];
	for (uint32_t i = 0; i < held->span; i++)
		vb_psn_clear(hold->bits, hold->mask, vb_psn_add(held->packet.psn, i));
	hold->places[place] = NULL;
	hold->count--;
	hold->bytes -= held->cost;
	pool->used -= held->cost;
	give_cell(pool, held);
}

void vb_hold_pass(struct vb_hold *hold, uint32_t from, uint32_t to, struct vb_hold_pool *pool)
{
	if (hold->count == 0)
		return;
	uint32_t turns = (to - from) & VB_PSN_MASK;
	for (uint32_t i = 0; i < turns && i <= hold->mask && hold->count > 0; i++)
		if (vb_hold_at(hold, vb_psn_add(from, i)))
			drop(hold, vb_psn_add(from, i) & hold->mask, pool);
	if (hold->count == 0)
		give_back(hold, pool);
}

void vb_hold_clear(struct vb_hold *hold, struct vb_hold_pool *pool)
{
	for (uint32_t i = 0; hold->count > 0 && i <= hold->mask; i++)
		if (hold->places[i])
			drop(hold, i, pool);
	give_back(hold, pool);
}

void vb_hold_bitmap(const struct vb_hold *hold, uint32_t first, uint32_t psn, uint64_t *bits)
{
	memset(bits, 0, VB_BITMAP_PSNS / 8);
	for (uint32_t i = 0; hold->count > 0 && i < VB_BITMAP_PSNS; i++, psn = vb_psn_add(psn, 1)) {
		bool is_within = vb_psn_diff(psn, first) >= 0 && vb_psn_diff(hold->end_psn, psn) > 0;
		if (is_within && vb_psn_bit(hold->bits, hold->mask, psn))
			bits[i / 64] |= (uint64_t)1 << i % 64;
	}
}

void vb_hold_check(const struct vb_hold *hold, uint32_t first)
{
	uint32_t count = 0, bytes = ring_bytes(places_of(hold));
	assert(!hold->places == (hold->count == 0));
	for (uint32_t i = 0; hold->places && i <= hold->mask; i++) {
		const struct vb_held *held = hold->places[i];
		if (!held)
			continue;
		assert(vb_psn_diff(held->packet.psn, first) >= 0);
		assert(vb_psn_diff(hold->end_psn, vb_psn_add(held->packet.psn, held->span)) >= 0);
		assert((uint32_t)vb_psn_diff(hold->end_psn, first) <= hold->mask + 1);
		count++;
		bytes += held->cost;
	}
	assert(count == hold->count && bytes == hold->bytes);
}
