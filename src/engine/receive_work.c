/* Receive work requests as the receiving side of a QP uses them: its own ring's, or a copy taken from an SRQ. One at a
 * time is held, in responder.recv, from the packet that needs it to its completion. */
#include "engine/qp.h"

const struct vb_recv_wqe *vb_recv_take(struct vb_qp *qp)
{
	struct vb_responder *rs = &qp->responder;
	if (rs->recv)
		return rs->recv;
	if (!qp->srq)
		return rs->recv = vb_recv_ring_peek(&qp->rq);
	bool limit_reached = false;
	if (!vb_srq_take(qp->srq, rs->srq_copy, &limit_reached))
		return NULL;
	if (limit_reached)
		vb_raise(qp->lane, &qp->srq->notice, VB_EVENT_SRQ_LIMIT_REACHED);
	return rs->recv = rs->srq_copy;
}

void vb_recv_done(struct vb_qp *qp)
{
	qp->responder.recv = NULL;
	if (!qp->srq)
		vb_recv_ring_pop(&qp->rq);
}

bool vb_recv_scatter(struct vb_qp *qp, const struct vb_recv_wqe *recv, uint32_t offset, const uint8_t *payload,
	uint32_t length, bool ends_message)
{
	const struct vb_pd *pd = qp->srq ? qp->srq->pd : qp->pd; /* a shared queue's requests are of its own domain */
	return vb_scatter(pd, recv->sges, recv->sge_count, offset, payload, length, ends_message);
}
