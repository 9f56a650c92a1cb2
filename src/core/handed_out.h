/* Packets at the port, and whose they are when they come back. */
#ifndef VB_CORE_HANDED_OUT_H
#define VB_CORE_HANDED_OUT_H

#include "core/objects.h"

struct vb_epochs;

#define VB_COOKIE_GENERATION 1u

/* Packets at the port, in two generations: those of the younger one are counted apart while the older one's come back.
 * So whoever must wait for what is out now does not wait for what leaves meanwhile. */
struct vb_handed_out {
	uint32_t generation; /* of what is handed out now; its lowest bit is in the cookies */
	uint32_t wanted;     /* the newest generation that somebody waits for */
	unsigned counts[2];  /* by that bit */
};

/* Packets of qp at the port concern it no more: completions of it say nothing but that its bytes are free. */
void vb_handed_out_disown(struct vb_qp *qp);
uint16_t vb_handed_out_epoch(const struct vb_qp *qp);           /* until it is disowned */
void vb_handed_out_add(struct vb_lane *lane, unsigned packets); /* of the present generation */
/* Packets have come back, of which so many have a cookie with the generation bit set. */
void vb_handed_out_remove(struct vb_lane *lane, unsigned packets, unsigned odd);
/* The QP whose packet it was, unless that epoch of it is over. */
struct vb_qp *vb_handed_out_owner(const struct vb_lane *lane, uint64_t cookie);
/* Before the lane's first QP. The devices' keys count their removals there too (vb_nic_config). */
void vb_lane_publish_epochs(struct vb_lane *lane, struct vb_epochs *epochs);

#endif
