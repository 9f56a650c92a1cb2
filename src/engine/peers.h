/* Who is at an address, as far as a lane knows. What is known outlives the last QP there: the next connection starts
 * wiser. */
#ifndef VB_ENGINE_PEERS_H
#define VB_ENGINE_PEERS_H

#include "engine/flight.h"
#include "engine/nic.h"
#include "engine/responder.h"

/* One slot of an address: each has a receive buffer of its own, so a process that does not run holds up nobody else.
 * Slot 0 stands for the address itself. */
struct vb_peer {
	struct vb_peer *next; /* in its hash bucket */
	struct vb_gid gid;
	uint8_t slot; /* top 8 bits of its QPNs */
	struct vb_peer_facts facts;
	uint32_t users;                /* connected QPs */
	struct vb_cnp_clock cnp_clock; /* of an address */
	vb_time patience;              /* how long a silence is no reason to probe: recovery.c */
	struct vb_allowance allowance;
	struct vb_neighbour *neighbour; /* whose slot it is, on this host; NULL: packets only. local.h */
	struct vb_list wish_link;       /* in the lane's, until the holder takes it */
	bool is_wished;                 /* and until it is answered */
	bool is_put_off;                /* the answer may take long: datagrams do not wait for it */
	bool was_wished;                /* since it last had a neighbour */
	/* QPs that wait to hear what the peer is; not empty only while facts.is_asked or is_wished */
	struct vb_list curious;
};

/* -ENOMEM. *peer is NULL where nothing is known of the address, and nobody bounds what may be under way to
 * strangers. */
int vb_peer_get(struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot, struct vb_peer **peer);
void vb_peer_put(struct vb_peer *peer);
struct vb_peer *vb_peer_know(struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot); /* NULL: no memory */
const struct vb_peer *vb_peer_find(const struct vb_lane *lane, const struct vb_gid *gid, uint8_t slot);
void vb_peers_deinit(struct vb_lane *lane);
/* True: what the peer is has been asked and not answered; the QP is scheduled when it is. */
bool vb_peer_must_answer(struct vb_qp *qp);
/* The holder is to look whether it is a neighbour. NULL: nobody. */
void vb_peer_wish(struct vb_lane *lane, struct vb_peer *peer);
/* True: that is not answered yet; the QP is scheduled when it is. */
bool vb_peer_must_be_met(struct vb_qp *qp);

#endif
