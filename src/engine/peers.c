/* The lane's table of peers by address and slot. Plain RoCE knows nothing of a peer's receive buffer and relies on a
 * network that never drops; a socket's buffer does, so each peer has an allowance.
 * Holds: users is the number of QPs that point at a peer; nobody is curious about one that was not asked, or wished
 * for.
 * Not here: who may use the allowance (flight.c). */
#include "engine/peers.h"
#include <errno.h>
#include <stdlib.h>
#include "engine/flight.h"
#include "engine/lane.h"
#include "engine/local.h"
#include "engine/qp.h"
#include "engine/scheduler.h"

#define STRANGER_ALLOWANCE 65536

static uint32_t gid_hash(const struct vb_gid *gid)
{
	uint64_t a, b;
	memcpy(&a, gid->raw, 8);
	memcpy(&b, gid->raw + 8, 8);
	a = (a ^ b * 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u;
	return (uint32_t)(a >> 32);
}

const struct vb_peer *vb_peer_find(const struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot)
{
	if (lane->peer_buckets == 0)
		return NULL;
	struct vb_peer *peer = lane->peers[gid_hash(gid) & (lane->peer_buckets - 1)];
	while (peer && !(peer->slot == slot && vb_gid_equal(&peer->gid, gid)))
		peer = peer->next;
	return peer;
}

static bool grow(struct vb_lane *lane)
{
	uint32_t buckets = lane->peer_buckets ? lane->peer_buckets * 2 : 8;
	struct vb_peer **table = calloc(buckets, sizeof(struct vb_peer *));
	if (!table)
		return false;
	for (uint32_t i = 0; i < lane->peer_buckets; i++) {
		for (struct vb_peer *peer = lane->peers[i], *next; peer; peer = next) {
			struct vb_peer **bucket = &table[gid_hash(&peer->gid) & (buckets - 1)];
			next = peer->next;
			peer->next = *bucket;
			*bucket = peer;
		}
	}
	free(lane->peers);
	lane->peers = table;
	lane->peer_buckets = buckets;
	return true;
}

static uint64_t limit_towards(const struct vb_lane *lane, const struct vb_peer_facts *facts)
{
	if (facts->is_verbena && facts->receive_buffer)
		return facts->receive_buffer / 2;
	if (lane->config.stranger_allowance == VB_UNLIMITED)
		return UINT64_MAX;
	return lane->config.stranger_allowance ? lane->config.stranger_allowance : STRANGER_ALLOWANCE;
}

struct vb_peer *vb_peer_know(struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot)
{
	struct vb_peer *peer = (struct vb_peer *)vb_peer_find(lane, gid, slot);
	if (peer)
		return peer;
	if (lane->peer_count >= lane->peer_buckets && !grow(lane))
		return NULL;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->gid = *gid;
	peer->slot = slot;
	peer->patience = lane->config.patience;
	const struct vb_peer *address = slot ? vb_peer_find(lane, gid, 0) : NULL;
	if (address)
		peer->facts = address->facts;
	vb_list_init(&peer->curious);
	vb_list_init(&peer->wish_link);
	vb_allowance_init(&peer->allowance, limit_towards(lane, &peer->facts));
	struct vb_peer **bucket = &lane->peers[gid_hash(gid) & (lane->peer_buckets - 1)];
	peer->next = *bucket;
	*bucket = peer;
	lane->peer_count++;
	return peer;
}

/* Of an address that is there for its CNPs alone nothing is known. */
static bool is_known(const struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot)
{
	const struct vb_peer *peer = vb_peer_find(lane, gid, slot);
	return peer &&
	       (peer->facts.is_verbena || peer->facts.is_asked || peer->facts.receive_buffer || peer->neighbour);
}

static bool matters(const struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot)
{
	return lane->config.stranger_allowance != VB_UNLIMITED || lane->config.meets_neighbours ||
	       is_known(lane, gid, 0) || is_known(lane, gid, slot);
}

int vb_peer_get(struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot, struct vb_peer **peer)
{
	*peer = NULL;
	if (!matters(lane, gid, slot))
		return 0;
	*peer = vb_peer_know(lane, gid, slot);
	if (!*peer)
		return -ENOMEM;
	(*peer)->users++;
	return 0;
}

void vb_peer_put(struct vb_peer *peer)
{
	peer->users--;
}

void vb_peers_deinit(struct vb_lane *lane)
{
	for (uint32_t i = 0; i < lane->peer_buckets; i++) {
		for (struct vb_peer *peer = lane->peers[i], *next; peer; peer = next) {
			next = peer->next;
			free(peer);
		}
	}
	free(lane->peers);
}

static void wake_curious(struct vb_peer *peer)
{
	struct vb_list *node;
	while ((node = vb_list_pop(&peer->curious)) != NULL) {
		struct vb_qp *qp = vb_container_of(node, struct vb_qp, flight.link);
		vb_local_choose(qp);
		vb_schedule(qp);
	}
}

void vb_lane_set_peer(struct vb_lane *lane, const struct vb_gid *gid, const struct vb_peer_facts *facts)
{
	if (!vb_peer_know(lane, gid, 0))
		return;
	struct vb_peer *peer = lane->peers[gid_hash(gid) & (lane->peer_buckets - 1)];
	for (; peer; peer = peer->next) { /* all slots of an address hang in one bucket */
		if (!vb_gid_equal(&peer->gid, gid))
			continue;
		peer->facts = *facts;
		vb_allowance_set_limit(&peer->allowance, limit_towards(lane, facts));
		if (!facts->is_asked)
			wake_curious(peer);
	}
}

bool vb_lane_has_peer(const struct vb_lane *lane, const struct vb_gid *gid)
{
	return vb_peer_find(lane, gid, 0);
}

bool vb_peer_must_answer(struct vb_qp *qp)
{
	if (!qp->peer || !qp->peer->facts.is_asked)
		return false;
	vb_flight_wait_in(qp, &qp->peer->curious);
	return true;
}

/* ---- Neighbours ------------------------------------------------------------------------------------------------ */

static bool has_neighbour(const struct vb_peer *peer)
{
	return peer->neighbour && !peer->neighbour->is_lost;
}

void vb_peer_wish(struct vb_lane *lane, struct vb_peer *peer)
{
	if (!lane->config.meets_neighbours || !peer || peer->slot == 0 || peer->is_wished || has_neighbour(peer))
		return;
	peer->is_wished = peer->was_wished = true;
	peer->is_put_off = false;
	vb_list_add_tail(&lane->wishes, &peer->wish_link);
}

bool vb_lane_next_wish(struct vb_lane *lane, struct vb_gid *gid, uint8_t *slot)
{
	struct vb_list *node = vb_list_pop(&lane->wishes);
	if (!node)
		return false;
	const struct vb_peer *peer = vb_container_of(node, struct vb_peer, wish_link);
	*gid = peer->gid;
	*slot = peer->slot;
	return true;
}

bool vb_lane_has_use_for(const struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot)
{
	const struct vb_peer *peer = vb_peer_find(lane, gid, slot);
	return peer && peer->users > 0;
}

bool vb_lane_takes_datagrams(const struct vb_lane *lane)
{
	return lane->datagram_receivers > 0;
}

bool vb_peer_must_be_met(struct vb_qp *qp)
{
	if (!qp->peer || !qp->peer->is_wished || (qp->type == VB_QP_UD && qp->peer->is_put_off))
		return false;
	vb_flight_wait_in(qp, &qp->peer->curious);
	return true;
}

void vb_lane_put_off_neighbour(struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot)
{
	struct vb_peer *peer = (struct vb_peer *)vb_peer_find(lane, gid, slot);
	if (!peer || !peer->is_wished)
		return;
	peer->is_put_off = true;
	wake_curious(peer); /* who is connected waits again */
}

int vb_lane_set_neighbour(struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot, struct vb_neighbour *neighbour)
{
	struct vb_peer *peer = vb_peer_know(lane, gid, slot);
	if (!peer)
		return -ENOMEM;
	if (peer->neighbour)
		peer->was_wished = false;
	peer->neighbour = neighbour;
	lane->has_neighbours |= neighbour != NULL;
	peer->is_wished = false;
	vb_list_remove(&peer->wish_link);
	wake_curious(peer);
	return 0;
}
