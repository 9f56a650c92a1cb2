/* The queues of raw packet QPs: frames out of send work requests, and into receive work requests.
 * Holds: a send request is done when its frame has left, so the oldest is always the one being sent. Not here: which QP
 * receives a frame (steering.c). */
#include "roce/roce.h"
#include "roce/raw.h"
#include <errno.h>
#include "base/invariant.h"
#include "core/events.h"
#include "core/execute.h"
#include "core/memory.h"
#include "core/send_queue.h"

void vb_raw_schedule(struct vb_qp *qp)
{
	assert(qp->type == VB_QP_RAW);
	if (!vb_list_linked(&qp->ready_link))
		vb_list_add_tail(&vb_roce_lane_of(qp)->raw_ready, &qp->ready_link);
}

/* ---- Sending ----------------------------------------------------------------------------------------------------- */

static void fail_send(struct vb_qp *qp, enum vb_wc_status status, enum vb_cause_kind cause, vb_time now)
{
	vb_qp_fail(qp, cause, status, now);
}

static bool gather(const struct vb_qp *qp, const struct vb_send_wqe *wqe, struct vb_frame *frame)
{
	if (wqe->flags & VB_SEND_INLINE) {
		frame->iov[frame->iov_count++] = (struct vb_iov){ (void *)wqe->inline_bytes, wqe->length };
		return true;
	}
	for (uint32_t i = 0; i < wqe->sge_count; i++) {
		struct vb_reach reach;
		if (wqe->sges[i].length == 0)
			continue;
		if (vb_reach_local(qp->pd, &wqe->sges[i], 0, wqe->sges[i].length, 0, &reach))
			return false;
		const void *bytes = vb_load(&reach, wqe->sges[i].length);
		if (!bytes)
			return false;
		frame->iov[frame->iov_count++] = (struct vb_iov){ (void *)bytes, wqe->sges[i].length };
	}
	return true;
}

/* The oldest request as a frame; false when there is none, or it failed. */
static bool make_frame(struct vb_qp *qp, struct vb_frame *frame, vb_time now)
{
	uint32_t head = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
	assert(qp->requester.cursor == head);
	if (vb_state(qp) != VB_QPS_RTS || head == atomic_load_explicit(&qp->sq.tail, memory_order_acquire))
		return false;
	const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, head);
	frame->qp = qp;
	frame->length = wqe->length;
	frame->iov_count = 0;
	if (wqe->length < VB_ETHERNET_LENGTH || wqe->length > VB_FRAME_MAX) {
		fail_send(qp, VB_WC_LOC_LEN_ERR, VB_CAUSE_LOCAL_LENGTH, now);
		return false;
	}
	if (!gather(qp, wqe, frame)) {
		fail_send(qp, VB_WC_LOC_PROT_ERR, VB_CAUSE_LOCAL_SGE, now);
		return false;
	}
	return true;
}

bool vb_lane_next_frame(struct vb_lane *lane, struct vb_frame *frame, vb_time now)
{
	struct vb_list *node;
	bool is_made = false;
	lane->now = now;
	vb_lane_answer_doorbells(lane);
	while (!is_made && (node = vb_list_pop(&vb_roce_lane(lane)->raw_ready)))
		is_made = make_frame(vb_container_of(node, struct vb_qp, ready_link), frame, now);
	vb_lane_reap(lane);
	return is_made;
}

void vb_lane_frame_waits(const struct vb_frame *frame)
{
	vb_list_add_tail(&vb_roce_lane_of(frame->qp)->raw_ready, &frame->qp->ready_link);
}

static void frame_left(struct vb_qp *qp, int error, vb_time now)
{
	if (error == EMSGSIZE) {
		fail_send(qp, VB_WC_LOC_LEN_ERR, VB_CAUSE_LOCAL_LENGTH, now);
		return;
	}
	if (error == EFAULT) {
		fail_send(qp, VB_WC_LOC_PROT_ERR, VB_CAUSE_LOCAL_FAULT, now);
		return;
	}
	vb_sq_retire(qp, VB_WC_SUCCESS);
	qp->requester.cursor = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
	vb_schedule(qp); /* others first, then its next */
}

void vb_lane_frame_sent(struct vb_lane *lane, const struct vb_frame *frame, int error, vb_time now)
{
	lane->now = now;
	if (error)
		vb_count(lane, VB_TX_ERRORS, 1);
	frame_left(frame->qp, error, now);
	vb_lane_reap(lane);
}

const struct vb_nic *vb_qp_nic(const struct vb_qp *qp)
{
	return qp->pd->nic;
}

/* ---- Receiving --------------------------------------------------------------------------------------------------- */

void vb_raw_receive(struct vb_qp *qp, const uint8_t *frame, uint32_t length)
{
	enum vb_qp_state state = vb_state(qp);
	if (state < VB_QPS_RTR || state == VB_QPS_ERR) {
		vb_count(qp->lane, VB_DROP_QP_STATE, 1);
		return;
	}
	enum vb_verdict verdict = qp->recv_cq ? vb_execute_datagram(&qp->target, NULL, 0, frame, length) : VB_NOT_READY;
	if (verdict == VB_NOT_READY) {
		vb_count(qp->lane, VB_DROP_NO_RECV, 1);
		return;
	}
	struct vb_wc wc = {
		.status = vb_outcomes[verdict].recv_status,
		.vendor_err = vb_outcomes[verdict].cause,
		.opcode = VB_WC_RECV,
		.byte_len = length,
	};
	vb_complete_recv(&qp->target, &wc, wc.status != VB_WC_SUCCESS);
}
