/* The loop of an unacknowledged transport towards a Verbena peer: what was sent, what has left the peer's receive
 * buffer, and the replies to its own such questions. */
#ifndef VB_ROCE_ECHO_H
#define VB_ROCE_ECHO_H

#include "roce/holder.h"

#define VB_ECHO_MARKS 8

struct vb_echo {
	uint64_t sent, drained; /* bytes, ever; what lies between them may still fill the peer's receive buffer */
	uint64_t marks[VB_ECHO_MARKS]; /* what sent was when request n % VB_ECHO_MARKS left */
	uint32_t asked, answered;      /* requests, ever */
	uint64_t asked_at_bytes;       /* sent at the newest request */
	bool is_due;                   /* a request is to leave after the data */
	bool is_blocked;
	vb_time waits_since; /* when it was blocked, or last sent */
	uint32_t qpn;        /* whom to ask: where the newest data went */
	struct vb_av av;
};

/* A reply that is to leave; lives in the lane's ring, also while it is handed out. */
struct vb_echo_reply {
	struct vb_qp *qp; /* the QP that was asked; NULL when it is gone */
	uint32_t qpn, psn;
	struct vb_av av;
};

#define VB_ECHO_REPLIES 64

/* UD: the next packet goes there. */
void vb_echo_turn_to(struct vb_qp *qp, const struct vb_gid *gid, uint32_t qpn);
/* UC and UD: may a packet that costs so much go to the peer now? If not, the QP waits for an echo, or for others'
 * echoes. */
bool vb_echo_allows(struct vb_qp *qp, uint32_t cost, vb_time now);
void vb_echo_on_sent(struct vb_qp *qp, const struct vb_outgoing *out, uint32_t cost);
/* True: the QP waits until what it sent has arrived, or nobody knows of it any more. */
bool vb_echo_must_drain(struct vb_qp *qp, vb_time now);
void vb_echo_emit_request(struct vb_qp *qp, struct vb_batch *batch);
void vb_echo_on_timer(struct vb_qp *qp, vb_time now);
void vb_echo_give_up(struct vb_qp *qp); /* nothing of what was sent counts any more */
void vb_echo_receive(struct vb_qp *qp, const struct vb_path *path, const struct vb_packet *packet);
bool vb_echo_emit_reply(struct vb_lane *lane, struct vb_batch *batch);
void vb_echo_forget(struct vb_qp *qp); /* the QP goes: nothing of it stays in the ring */

#endif
