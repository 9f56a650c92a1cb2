/* What is at the port, and whose it is when it comes back. */
#ifndef VB_ENGINE_HANDED_OUT_H
#define VB_ENGINE_HANDED_OUT_H

#include "engine/nic.h"

struct vb_lives;

/* Packets at the port, in two generations: those of the younger one are counted apart while the older one's come back.
 * So whoever must wait for what is out now does not wait for what leaves meanwhile. */
struct vb_handed_out {
	uint32_t generation;        /* of what is handed out now; its lowest bit is in the cookies */
	uint32_t wanted;            /* the newest generation that somebody waits for */
	unsigned counts[2];         /* by that bit */
	struct vb_lives *published; /* for other processes; or NULL */
	uint16_t lives;             /* of QPs, counted up whenever what one has at the port concerns it no more */
};

/* What qp has at the port concerns it no more: receipts of it say nothing but that its bytes are free. */
void vb_handed_out_disown(struct vb_qp *qp);
uint16_t vb_handed_out_life(const struct vb_qp *qp); /* until it is disowned */
void vb_handed_out_add(struct vb_lane *lane, struct vb_batch *batch);
/* The newest packet of the batch is of a message that completes when all its packets have left; others have PSNs of
 * their own (echoes), or none (CNPs). */
void vb_handed_out_is_message(struct vb_batch *batch);
/* The newest packet of the batch has a READ response's bytes, not a request's. */
void vb_handed_out_is_response(struct vb_batch *batch);
/* qp is gone but for the bytes that are at the port; they go when they have come back. */
void vb_qp_leave(struct vb_qp *qp);

#endif
