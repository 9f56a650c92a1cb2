/* Receive work requests as what arrives uses them: of the QP's own ring, or a copy taken from an SRQ. One at a time is
 * held, in target.recv, from the packet that needs it to its completion. */
#include "engine/events.h"
#include "engine/execute.h"
#include "engine/memory.h"
#include "engine/qp.h"
#include "engine/queues.h"

static const struct vb_recv_wqe *take_shared(struct vb_target *target)
{
	bool limit_reached = false;
	if (!vb_srq_take(target->srq, target->srq_copy, &limit_reached))
		return NULL;
	if (limit_reached)
		vb_raise(target->qp->lane, &target->srq->notice, VB_EVENT_SRQ_LIMIT_REACHED);
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
	target->recv = NULL;
	if (!target->srq)
		vb_recv_ring_pop(&target->qp->rq);
}

bool vb_recv_scatter(
	const struct vb_target *target, uint32_t offset, const uint8_t *payload, uint32_t length, bool ends_message)
{
	const struct vb_recv_wqe *recv = target->recv;
	/* A shared queue's requests are of its own domain. */
	const struct vb_pd *pd = target->srq ? target->srq->pd : target->pd;
	return vb_scatter(
		pd, &target->qp->known_rkey, recv->sges, recv->sge_count, offset, payload, length, ends_message);
}
