/* What leaves next, and how a packet is put into a batch. */
#ifndef VB_ENGINE_SCHEDULER_H
#define VB_ENGINE_SCHEDULER_H

#include "engine/send_queue.h"

void vb_schedule(struct vb_qp *qp);       /* it may have data to send, when its time comes */
void vb_schedule_now(struct vb_qp *qp);   /* or something that does not wait for that */
void vb_schedule_reply(struct vb_qp *qp); /* an ack, NAK or CNP that does not wait */
/* An ack that is held back is so no longer. */
void vb_schedule_no_ack(struct vb_qp *qp);
void vb_unschedule(struct vb_qp *qp); /* nothing of it is to leave */
/* A packet appended to the batch, headers zeroed, addressed to qp's peer. The caller has seen to the room. */
struct vb_outgoing *vb_batch_add(struct vb_batch *batch, struct vb_qp *qp, uint8_t opcode, const struct vb_av *av);
void vb_batch_undo(struct vb_batch *batch);
/* bytes NULL: there are none, only their number. */
void vb_batch_add_iov(struct vb_batch *batch, struct vb_outgoing *out, const void *bytes, size_t length);
/* Adds [offset, offset + length) of a WQE's message; false when an SGE does not allow it. */
bool vb_batch_add_wqe(struct vb_batch *batch, struct vb_outgoing *out, struct vb_qp *qp, struct vb_send_wqe *wqe,
	uint32_t offset, uint32_t length);

#endif
