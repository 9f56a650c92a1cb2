/* The lane's table of peers by address and slot, and who waits to hear what a peer is.
 * Holds: users is the number of QPs that point at a peer; nobody waits to hear of one that was not asked or wanted.
 * Not here: how much may be under way to a peer (roce/peers.c). */
#include "core/peers.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "core/lane.h"
#include "core/qp.h"

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

struct vb_peer *vb_peer_next_slot(const struct vb_lane *lane, const struct vb_gid *gid, struct vb_peer *before)
{
	if (lane->peer_buckets == 0)
		return NULL;
	/* All slots of an address hang in one bucket. */
	struct vb_peer *peer = before ? before->next : lane->peers[gid_hash(gid) & (lane->peer_buckets - 1)];
	while (peer && !vb_gid_equal(&peer->gid, gid))
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

int vb_peer_add(struct vb_lane *lane, struct vb_peer *peer, const struct vb_gid *gid, uint8_t slot)
{
	assert(!vb_peer_find(lane, gid, slot));
	if (lane->peer_count >= lane->peer_buckets && !grow(lane))
		return -ENOMEM;
	peer->gid = *gid;
	peer->slot = slot;
	peer->patience = lane->patience;
	const struct vb_peer *address = slot ? vb_peer_find(lane, gid, 0) : NULL;
	if (address)
		peer->facts = address->facts;
	vb_list_init(&peer->curious);
	vb_list_init(&peer->wanted_link);
	struct vb_peer **bucket = &lane->peers[gid_hash(gid) & (lane->peer_buckets - 1)];
	peer->next = *bucket;
	*bucket = peer;
	lane->peer_count++;
	assert(vb_peer_find(lane, gid, slot) == peer);
	return 0;
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

void vb_peer_wake_curious(struct vb_peer *peer)
{
	struct vb_list *node;
	while ((node = vb_list_pop(&peer->curious)) != NULL) {
		struct vb_qp *qp = vb_container_of(node, struct vb_qp, wait_link);
		qp->transport->choose(qp);
		vb_schedule(qp);
	}
	assert(vb_list_empty(&peer->curious));
}

bool vb_lane_has_peer(const struct vb_lane *lane, const struct vb_gid *gid)
{
	return vb_peer_find(lane, gid, 0);
}

bool vb_peer_must_answer(struct vb_qp *qp)
{
	if (!qp->peer || !qp->peer->facts.is_asked)
		return false;
	vb_wait_in(qp, &qp->peer->curious);
	assert(vb_list_linked(&qp->wait_link));
	return true;
}

/* ---- Local peers ------------------------------------------------------------------------------------------------- */

void vb_peer_want(struct vb_lane *lane, struct vb_peer *peer)
{
	if (!lane->meets_local_peers || !peer || peer->slot == 0 || peer->is_wanted ||
		(peer->local_peer && !peer->is_lost))
		return;
	peer->is_wanted = peer->was_wanted = true;
	peer->is_put_off = false;
	vb_list_add_tail(&lane->wanted, &peer->wanted_link);
	assert(vb_list_linked(&peer->wanted_link));
}

bool vb_lane_next_wanted_peer(struct vb_lane *lane, struct vb_gid *gid, uint8_t *slot)
{
	struct vb_list *node = vb_list_pop(&lane->wanted);
	if (!node)
		return false;
	const struct vb_peer *peer = vb_container_of(node, struct vb_peer, wanted_link);
	*gid = peer->gid;
	*slot = peer->slot;
	assert(peer->is_wanted);
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
	if (!qp->peer || !qp->peer->is_wanted || (qp->type == VB_QP_UD && qp->peer->is_put_off))
		return false;
	vb_wait_in(qp, &qp->peer->curious);
	assert(vb_list_linked(&qp->wait_link));
	return true;
}

void vb_lane_put_off_local_peer(struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot)
{
	struct vb_peer *peer = (struct vb_peer *)vb_peer_find(lane, gid, slot);
	if (!peer || !peer->is_wanted)
		return;
	peer->is_put_off = true;
	vb_peer_wake_curious(peer); /* who is connected waits again */
}

void vb_peer_set_local_peer(struct vb_lane *lane, struct vb_peer *peer, struct vb_local_peer *local_peer)
{
	if (peer->local_peer)
		peer->was_wanted = false;
	peer->local_peer = local_peer;
	peer->is_lost = false;
	lane->has_local_peers |= local_peer != NULL;
	peer->is_wanted = false;
	vb_list_remove(&peer->wanted_link);
	vb_peer_wake_curious(peer);
	assert(!peer->is_wanted && !vb_list_linked(&peer->wanted_link));
}

void vb_peers_lose(struct vb_lane *lane, const struct vb_local_peer *local_peer)
{
	assert(local_peer);
	for (uint32_t i = 0; i < lane->peer_buckets; i++)
		for (struct vb_peer *peer = lane->peers[i]; peer; peer = peer->next)
			peer->is_lost |= peer->local_peer == local_peer;
}
