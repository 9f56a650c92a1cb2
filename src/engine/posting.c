/* Posting by a thread that has the lane. */
#include "core/message.h"
#include "engine/nic.h"
#include "roce/roce.h"

struct vb_local_peer *vb_sq_serve(struct vb_qp *qp, vb_time now)
{
	bool has_more = vb_sq_publish(qp);
	qp->lane->now = now;
	if (has_more)
		vb_qp_answer_doorbell(qp);
	vb_lane_reap(qp->lane);
	return vb_lane_is_quiet(qp->lane) ? qp->local_peer : NULL;
}

/* So many bytes take a few packets. They make no train of their own that is worth its system call. */
#define RIDER_MOST 16384

/* A short message, or the request for one, travels with others; a longer one makes its own trains. */
bool vb_sq_may_wait(const struct vb_qp *qp)
{
	const struct vb_send_queue *sq = &qp->sq;
	if (qp->type != VB_QP_RC || vb_state(qp) != VB_QPS_RTS || qp->local_peer || !vb_requester_is_busy(qp))
		return false;
	uint32_t tail = atomic_load_explicit(&sq->tail, memory_order_relaxed), unsent = tail - qp->requester.cursor;
	uint32_t length = vb_send_wqe_at(sq, tail - 1)->length;
	return length <= RIDER_MOST && unsent < VB_BATCH_PACKETS &&
	       unsent * (length + vb_roce(qp)->overhead) < vb_roce_lane_of(qp)->config.turn_bytes;
}
