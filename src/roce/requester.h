/* Requests as packets, and what acknowledges them. */
#ifndef VB_ROCE_REQUESTER_H
#define VB_ROCE_REQUESTER_H

#include "roce/holder.h"

struct vb_send_wqe;

/* Builds the request packet of packets index .. end - 1 of the message (of a READ; others have one). False: a local SGE
 * forbids it. */
bool vb_requester_build(
	struct vb_qp *qp, struct vb_batch *batch, struct vb_send_wqe *wqe, uint32_t index, uint32_t end);
bool vb_requester_emit(struct vb_qp *qp, struct vb_batch *batch, vb_time now); /* false: nothing to send now */
/* At most so many Middles, right behind the First or Middle that was emitted last, which nothing but their place in the
 * message tells from it; gives their number, often 0. */
uint32_t vb_requester_emit_middles(struct vb_qp *qp, struct vb_batch *batch, uint32_t most, vb_time now);
/* It goes on sending, most likely: what has left need not be asked about now. */
bool vb_requester_asks_later(const struct vb_qp *qp);
bool vb_requester_has_work(const struct vb_qp *qp); /* something is to be sent, if windows and the like allow it */
bool vb_requester_has_unsent(
	const struct vb_qp *qp); /* as exactly as can be said: the cursor may stay at what was sent */

/* acknowledgement.c */
void vb_requester_receive(struct vb_qp *qp, const struct vb_packet *packet, vb_time now);

/* A request of the peer's has come, of a message that is whole with it or not: vb_lane_awaits_answer(). */
void vb_requester_note_answer(struct vb_qp *qp, bool is_whole, vb_time now);

#endif
