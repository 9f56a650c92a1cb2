/* How much may be under way to a peer. Plain RoCE knows nothing of a peer's receive buffer and relies on a network that
 * never drops; a socket's buffer does, so each peer has an allowance.
 * Not here: who may use the allowance (flight.c), the table (core/peers.c). */
#include "roce/roce.h"
#include "base/invariant.h"
#include "roce/peers.h"
#include <errno.h>
#include <stdlib.h>

#define UNKNOWN_PEER_ALLOWANCE 65536

static uint64_t limit_towards(const struct vb_lane *lane, const struct vb_roce_peer *peer)
{
	const struct vb_peer_facts *facts = &peer->peer.facts;
	if (facts->is_verbena && facts->receive_buffer)
		return (uint64_t)facts->receive_buffer / 2 * vb_flight_ways(peer->least_rtt);
	if (vb_roce_lane(lane)->config.unknown_peer_allowance == VB_UNLIMITED)
		return UINT64_MAX;
	return vb_roce_lane(lane)->config.unknown_peer_allowance ? vb_roce_lane(lane)->config.unknown_peer_allowance
								 : UNKNOWN_PEER_ALLOWANCE;
}

struct vb_peer *vb_peer_know(struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot)
{
	struct vb_peer *peer = (struct vb_peer *)vb_peer_find(lane, gid, slot);
	if (peer)
		return peer;
	struct vb_roce_peer *new = calloc(1, sizeof(*new));
	if (!new || vb_peer_add(lane, &new->peer, gid, slot)) {
		free(new);
		return NULL;
	}
	vb_allowance_init(&new->allowance, limit_towards(lane, new));
	return &new->peer;
}

/* Of an address that is there for its CNPs alone nothing is known. */
static bool is_known(const struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot)
{
	const struct vb_peer *peer = vb_peer_find(lane, gid, slot);
	return peer &&
	       (peer->facts.is_verbena || peer->facts.is_asked || peer->facts.receive_buffer || peer->local_peer);
}

static bool matters(const struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot)
{
	return vb_roce_lane(lane)->config.unknown_peer_allowance != VB_UNLIMITED || lane->meets_local_peers ||
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
	assert((*peer)->users > 0);
	return 0;
}

void vb_lane_set_peer(struct vb_lane *lane, const struct vb_gid *gid, const struct vb_peer_facts *facts)
{
	if (!vb_peer_know(lane, gid, 0))
		return;
	for (struct vb_peer *peer = NULL; (peer = vb_peer_next_slot(lane, gid, peer));) {
		peer->facts = *facts;
		vb_allowance_set_limit(&vb_roce_peer(peer)->allowance, limit_towards(lane, vb_roce_peer(peer)));
		if (!facts->is_asked)
			vb_peer_wake_curious(peer);
	}
}

void vb_peer_note_way(struct vb_lane *lane, struct vb_peer *peer, vb_time least_rtt)
{
	struct vb_roce_peer *known = vb_roce_peer(peer);
	if (!peer || (known->least_rtt && known->least_rtt <= least_rtt))
		return;
	known->least_rtt = least_rtt;
	vb_allowance_set_limit(&known->allowance, limit_towards(lane, known));
}
