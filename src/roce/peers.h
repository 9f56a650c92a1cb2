/* Peers with an allowance: core/peers.h. */
#ifndef VB_ROCE_PEERS_H
#define VB_ROCE_PEERS_H

#include "core/peers.h"

/* -ENOMEM. *peer is NULL where nothing is known of the address, and nobody bounds what may be under way to
 * unknown peers. */
int vb_peer_get(struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot, struct vb_peer **peer);
struct vb_peer *vb_peer_know(struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot); /* NULL: no memory */
/* A QP has measured the shortest round trip that it knows. */
void vb_peer_note_way(struct vb_lane *lane, struct vb_peer *peer, vb_time least_rtt);

#endif
