/* Receive work requests as what arrives uses them: of the QP's own ring, or a copy taken from an SRQ. One at a time is
 * held, in target.recv, from the packet that needs it to its completion. */
#include <string.h>
#include "base/invariant.h"
#include "core/events.h"
#include "core/execute.h"
#include "core/memory.h"
#include "core/qp.h"
#include "core/queues.h"
#include "core/work_count.h"

bool vb_srq_take(struct vb_srq *srq, struct vb_recv_wqe *wqe, bool *limit_reached)
{
	*limit_reached = false;
	vb_lock_take(&srq->ring.lock);
	const struct vb_recv_wqe *oldest = vb_recv_ring_peek(&srq->ring);
	if (oldest) {
		memcpy(wqe, oldest, vb_recv_wqe_bytes(oldest->sge_count));
		vb_recv_ring_pop(&srq->ring);
		*limit_reached = vb_recv_ring_count(&srq->ring) < srq->limit;
		if (*limit_reached)
			srq->limit = 0;
	}
	vb_lock_release(&srq->ring.lock);
	return oldest != NULL;
}

static const struct vb_recv_wqe *take_shared(struct vb_target *target)
{
	bool limit_reached = false;
	if (!vb_srq_take(target->srq, target->srq_copy, &limit_reached))
		return NULL;
	if (limit_reached)
		vb_raise(target->qp->lane, &target->srq->notice, VB_EVENT_SRQ_LIMIT_REACHED);
	assert(target->srq_copy);
	return target->recv = target->srq_copy;
}

const struct vb_recv_wqe *vb_recv_take(struct vb_target *target)
{
	if (target->recv)
		return target->recv;
	return target->srq ? take_shared(target) : (target->recv = vb_recv_ring_peek(&target->qp->rq));
}

void vb_recv_done(struct vb_target *target)
{
	assert(target->recv);
	target->recv = NULL;
	if (!target->srq)
		vb_recv_ring_pop(&target->qp->rq);
}

bool vb_recv_scatter(
	const struct vb_target *target, uint32_t offset, const uint8_t *payload, uint32_t length, bool ends_message)
{
	const struct vb_recv_wqe *recv = target->recv;
	assert(target->recv);
	/* A shared queue's requests are of its own domain. */
	const struct vb_pd *pd = target->srq ? target->srq->pd : target->pd;
	return vb_scatter(
		pd, &target->qp->known_rkey, recv->sges, recv->sge_count, offset, payload, length, ends_message);
}

void vb_complete_recv(struct vb_target *target, struct vb_wc *wc, bool solicited)
{
	assert(target->recv && target->cq);
	wc->wr_id = target->recv->wr_id;
	if (wc->status != VB_WC_SUCCESS)
		wc->opcode = VB_WC_RECV;
	vb_recv_done(target);
	/* The data of a WRITE is its own; the receive tells of it and has none. */
	vb_count_work(target->qp, VB_COUNTED_RECV, wc->status, wc->opcode == VB_WC_RECV ? wc->byte_len : 0);
	vb_complete(target->qp, target->cq, wc, solicited);
}
