/* How a packet is put into a batch. */
#ifndef VB_ROCE_BATCH_H
#define VB_ROCE_BATCH_H

#include "core/send_queue.h"
#include "roce/holder.h"

/* A packet appended to the batch, headers zeroed, addressed to qp's peer. The caller has seen to the room. */
struct vb_outgoing *vb_batch_add(struct vb_batch *batch, struct vb_qp *qp, uint8_t opcode, const struct vb_av *av);
/* Its PSN, and with that its path. */
void vb_batch_set_psn(struct vb_outgoing *out, const struct vb_qp *qp, uint32_t psn);
void vb_batch_undo(struct vb_batch *batch);
/* The bytes of the last packet can still be read, which leaves once more (vb_lane_config.is_present). */
bool vb_batch_is_present(const struct vb_lane *lane, const struct vb_batch *batch);
/* bytes NULL: there are none, only their number. */
void vb_batch_add_iov(struct vb_batch *batch, struct vb_outgoing *out, const void *bytes, size_t length);
/* Adds [offset, offset + length) of a WQE's message; false when an SGE does not allow it. */
bool vb_batch_add_wqe(struct vb_batch *batch, struct vb_outgoing *out, struct vb_qp *qp, struct vb_send_wqe *wqe,
	uint32_t offset, uint32_t length);

/* A completion's cookie: bit 0 generation, 1 of an unreliable message, 2 has a READ response's bytes, 3 has bytes; 8-31
 * PSN. What is above is core/handed_out.c's. */
enum { VB_COOKIE_MESSAGE = 2, VB_COOKIE_RESPONSE = 4, VB_COOKIE_PAYLOAD = 8, VB_COOKIE_PSN_SHIFT = 8 };

/* The newest packet of the batch is of a message that completes when all its packets have left; others have PSNs of
 * their own (echoes), or none (CNPs). */
void vb_batch_is_message(struct vb_batch *batch);
/* The newest packet of the batch has a READ response's bytes, not a request's. */
void vb_batch_is_response(struct vb_batch *batch);
void vb_batch_hand_out(struct vb_lane *lane, struct vb_batch *batch); /* it goes to the port */

static inline bool vb_batch_has_room(const struct vb_batch *batch, unsigned budget)
{
	return batch->count < budget && batch->iov_count + VB_MAX_SGE <= VB_BATCH_IOV;
}

#endif
