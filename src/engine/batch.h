/* How a packet is put into a batch. */
#ifndef VB_ENGINE_BATCH_H
#define VB_ENGINE_BATCH_H

#include "engine/send_queue.h"

/* A packet appended to the batch, headers zeroed, addressed to qp's peer. The caller has seen to the room. */
struct vb_outgoing *vb_batch_add(struct vb_batch *batch, struct vb_qp *qp, uint8_t opcode, const struct vb_av *av);
void vb_batch_undo(struct vb_batch *batch);
/* bytes NULL: there are none, only their number. */
void vb_batch_add_iov(struct vb_batch *batch, struct vb_outgoing *out, const void *bytes, size_t length);
/* Adds [offset, offset + length) of a WQE's message; false when an SGE does not allow it. */
bool vb_batch_add_wqe(struct vb_batch *batch, struct vb_outgoing *out, struct vb_qp *qp, struct vb_send_wqe *wqe,
	uint32_t offset, uint32_t length);

#endif
