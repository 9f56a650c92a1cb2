/* Doorbells, the lane's side: what rang is made ready, or flushed.
 * Not here: ringing (send_queue.c). */
#include "core/lane.h"
#include "base/invariant.h"
#include "core/peers.h"
#include "core/qp.h"

bool vb_lane_has_doorbells(const struct vb_lane *lane)
{
	return atomic_load(&lane->doorbells) || atomic_load(&lane->flushes);
}

void vb_qp_answer_doorbell(struct vb_qp *qp)
{
	switch (vb_state(qp)) {
	case VB_QPS_RTS:
	case VB_QPS_SQD:
		if (__builtin_expect(qp->peer && qp->peer->local_peer != qp->local_peer, false))
			qp->transport->choose(qp);
		vb_schedule(qp);
		break;
	case VB_QPS_SQE:
		vb_qp_flush_sends(qp);
		break;
	case VB_QPS_ERR:
		vb_qp_flush(qp);
		break;
	default:
		break;
	}
}

static void answer_flushes(struct vb_lane *lane)
{
	struct vb_qp *qp = atomic_exchange(&lane->flushes, NULL);
	while (qp) {
		struct vb_qp *next = atomic_load_explicit(&qp->flush_next, memory_order_relaxed);
		assert(qp->lane == lane);
		atomic_exchange(&qp->flush_rung, false);
		if (vb_state(qp) == VB_QPS_ERR)
			vb_qp_flush(qp);
		qp = next;
	}
}

void vb_lane_answer_doorbells(struct vb_lane *lane)
{
	if (!vb_lane_has_doorbells(lane))
		return;
	struct vb_qp *qp = atomic_exchange(&lane->doorbells, NULL), *in_order = NULL;
	while (qp) { /* the stack has the newest on top */
		struct vb_qp *next = atomic_load_explicit(&qp->doorbell_next, memory_order_relaxed);
		atomic_store_explicit(&qp->doorbell_next, in_order, memory_order_relaxed);
		in_order = qp;
		qp = next;
	}
	while (in_order) {
		struct vb_qp *next = atomic_load_explicit(&in_order->doorbell_next, memory_order_relaxed);
		/* With the fence in is_rung: either we see what was posted, or its poster sees that it has to ring. */
		atomic_store_explicit(&in_order->doorbell_rung, false, memory_order_release);
		atomic_thread_fence(memory_order_seq_cst);
		assert(in_order->lane == lane);
		vb_qp_answer_doorbell(in_order);
		in_order = next;
	}
	answer_flushes(lane);
}
