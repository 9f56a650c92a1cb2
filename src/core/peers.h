/* The peers that a lane knows, by address. A peer outlives the last QP there: the next connection starts
 * wiser. */
#ifndef VB_CORE_PEERS_H
#define VB_CORE_PEERS_H

#include "base/invariant.h"
#include "base/list.h"
#include "core/objects.h"

struct vb_local_peer;

/* One slot of an address: each has a receive buffer of its own, so a process that does not run holds up nobody else.
 * Slot 0 stands for the address itself. */
struct vb_peer {
	struct vb_peer *next; /* in its hash bucket */
	struct vb_gid gid;
	uint8_t slot; /* top 8 bits of its QPNs */
	struct vb_peer_facts facts;
	uint32_t users;                   /* connected QPs */
	vb_time patience;                 /* how long a silence is no reason to probe */
	struct vb_local_peer *local_peer; /* whose slot it is, on this host; NULL: packets only */
	struct vb_list wanted_link;       /* in the lane's, until the holder takes it */
	bool is_lost;                     /* the local peer has ended, or let go */
	bool is_wanted;                   /* and until it is answered */
	bool is_put_off;                  /* the answer may take long: datagrams do not wait for it */
	bool was_wanted;                  /* since it last had a local peer */
	/* QPs that wait to hear what the peer is; not empty only while facts.is_asked or is_wanted */
	struct vb_list curious;
};

static inline void vb_peer_put(struct vb_peer *peer)
{
	assert(peer->users > 0);
	peer->users--;
}

const struct vb_peer *vb_peer_find(const struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot);
/* From *peer on, which is NULL at first, the next slot of that address. NULL: no more. */
struct vb_peer *vb_peer_next_slot(const struct vb_lane *lane, const struct vb_gid *gid, struct vb_peer *before);
/* The peer is one that is not there yet; it is freed with the lane. -ENOMEM */
int vb_peer_add(struct vb_lane *lane, struct vb_peer *peer, const struct vb_gid *gid, uint8_t slot);
void vb_peers_deinit(struct vb_lane *lane);
void vb_peer_wake_curious(struct vb_peer *peer);
/* True: what the peer is has been asked and not answered; the QP is scheduled when it is. */
bool vb_peer_must_answer(struct vb_qp *qp);
/* The holder is to look whether it is a local peer. NULL: nobody. */
void vb_peer_want(struct vb_lane *lane, struct vb_peer *peer);
/* True: that is not answered yet; the QP is scheduled when it is. */
bool vb_peer_must_be_met(struct vb_qp *qp);
/* It is that local peer's, or no longer anybody's (NULL). */
void vb_peer_set_local_peer(struct vb_lane *lane, struct vb_peer *peer, struct vb_local_peer *local_peer);
/* The local peer has ended: those whose it is may be wanted again. */
void vb_peers_lose(struct vb_lane *lane, const struct vb_local_peer *local_peer);

/* ---- The holder's (local/local.h) -------------------------------------------------------------------------------- */

/* Whom requests are for, and the lane does not know whether it is a local peer: asked of a holder that said it would
 * hear (vb_lane_config.meets_local_peers), at each RTR, and by UD once an address and slot. Until the holder has
 * answered each by vb_lane_set_local_peer, with NULL for whoever is of another host, first requests to there wait. They
 * may come of any call; taken before and after each vb_lane_transmit, none waits for nothing. False: none more. */
bool vb_lane_next_wanted_peer(struct vb_lane *lane, struct vb_gid *gid, uint8_t *slot);
/* A connected QP has that slot of that address for its peer, from RTR on; a UD QP sent there last. */
bool vb_lane_has_use_for(const struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot);
/* A UD QP is in RTR or above, and has not failed: whoever likes may send to it. */
bool vb_lane_takes_datagrams(const struct vb_lane *lane);
/* The answer may take as long as the peer lives: connected QPs wait for it, datagrams go as
 * packets. */
void vb_lane_put_off_local_peer(struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot);

#endif
