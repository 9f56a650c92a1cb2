/* Which introductions are taken, and for how long. Any process that has a slot of this host can ask for one with us,
 * and each takes descriptors and address space of this process.
 *
 * Holds: an introduction is taken for a QP that wants that peer: a connected one whose peer it is, from RTR on, or a
 * UD QP that receives. A peer that no connected QP wants, and that is not used, is let go. */
#include "base/invariant.h"
#include "host/peers/host_peer.h"

#define IDLE (5 * VB_S)

void vb_host_peers_say_open(struct vb_host_peers *all)
{
	const struct vb_host_lane *d = all->host_lane;

	if (all->is_open == vb_lane_takes_datagrams(d->lane))
		return;
	all->is_open = !all->is_open;
	vb_broker_open(d->process->broker, d->slot.number, all->is_open);
}

/* No QP is connected to it, nor waits for it. Addresses come and go, and QPs stay connected. */
static bool is_dispensable(const struct vb_host_peer *peer)
{
	return !peer->is_ours && peer->state != VB_PEER_CLOSING && !peer->is_awaited &&
	       vb_list_empty(&peer->engine.users) && !vb_host_peer_has_use(peer);
}

/* Lets as many go as is needed. For a connection even those go that have just sent datagrams. */
static bool make_room(struct vb_host_peers *all, bool for_connection, unsigned count)
{
	vb_list_for_each_safe (node, &all->connected) {
		struct vb_host_peer *peer = vb_container_of(node, struct vb_host_peer, link);
		if (!is_dispensable(peer) || (!for_connection && peer->is_used))
			continue;
		vb_host_peer_let_go(peer, vb_host_now());
		if (vb_host_peer_descriptors_take(count))
			return true;
	}
	return false;
}

enum vb_local_reason vb_host_peers_admit(struct vb_host_peers *all, uint8_t slot, unsigned count)
{
	const struct vb_host_peer *peer = all->by_slot[slot];
	const bool for_connection = peer && vb_host_peer_has_use(peer);

	assert(!peer || !vb_host_peer_is_connected(peer));
	if (!for_connection && !vb_lane_takes_datagrams(all->host_lane->lane))
		return VB_LOCAL_UNWANTED;
	return vb_host_peer_descriptors_take(count) || make_room(all, for_connection, count) ? VB_LOCAL_IS_USED
											     : VB_LOCAL_FULL;
}

void vb_host_peers_let_idle_go(struct vb_host_peers *all, vb_time now)
{
	vb_list_for_each_safe (node, &all->connected) {
		struct vb_host_peer *peer = vb_container_of(node, struct vb_host_peer, link);
		if (!peer->is_used && is_dispensable(peer))
			vb_host_peer_let_go(peer, now);
		else
			peer->is_used = false;
	}
	all->idle_at.is_set = false;
	if (!vb_list_empty(&all->connected))
		vb_host_peers_watch_idle(all, now);
}

void vb_host_peers_watch_idle(struct vb_host_peers *all, vb_time now)
{
	if (!all->idle_at.is_set)
		all->idle_at = (struct vb_deadline){ vb_time_add(now, IDLE), true };
	assert(!vb_list_empty(&all->connected));
}
