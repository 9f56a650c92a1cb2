/* What the holder is told: completions into CQs, and the list of objects that have something to say. */
#include "engine/events.h"
#include "engine/execute.h"
#include "engine/lane.h"
#include "engine/qp.h"
#include "engine/queues.h"
#include "engine/work_count.h"

void vb_raise(struct vb_lane *lane, struct vb_notice *notice, enum vb_event_kind kind)
{
	if (atomic_fetch_or(&notice->pending, 1ull << kind) == 0)
		vb_list_add_tail(&lane->notices, &notice->link);
}

/* A QP in the middle of destruction has nothing more to say. */
void vb_notice_forget(struct vb_notice *notice)
{
	atomic_store(&notice->pending, 0);
	vb_list_remove(&notice->link);
}

bool vb_lane_next_event(struct vb_lane *lane, struct vb_event *event)
{
	if (vb_list_empty(&lane->notices))
		return false;
	struct vb_notice *notice = vb_container_of(lane->notices.next, struct vb_notice, link);
	unsigned long long pending = atomic_load(&notice->pending);
	int kind = __builtin_ctzll(pending);

	*event = (struct vb_event){ .kind = (enum vb_event_kind)kind };
	switch (notice->of) {
	case VB_NOTICE_OF_QP:
		event->qp = vb_container_of(notice, struct vb_qp, notice);
		event->nic = event->qp->pd->nic;
		break;
	case VB_NOTICE_OF_CQ:
		event->cq = vb_container_of(notice, struct vb_cq, notice);
		event->nic = event->cq->nic;
		break;
	case VB_NOTICE_OF_SRQ:
		event->srq = vb_container_of(notice, struct vb_srq, notice);
		event->nic = event->srq->pd->nic;
		break;
	}
	/* Out of the list before pending becomes 0: from then on another lane may link the object. */
	if ((pending & (pending - 1)) == 0)
		vb_list_remove(&notice->link);
	unsigned long long before = atomic_fetch_and(&notice->pending, ~(1ull << kind));
	if ((pending & (pending - 1)) == 0 && before != 1ull << kind)
		vb_list_add_tail(&lane->notices, &notice->link); /* another lane added a reason meanwhile */
	return true;
}

bool vb_cq_tell(struct vb_lane *lane, struct vb_cq *cq, enum vb_cq_outcome outcome)
{
	switch (outcome) {
	case VB_CQ_STORED:
		return true;
	case VB_CQ_NOTIFY:
		vb_raise(lane, &cq->notice, VB_EVENT_COMPLETION);
		return true;
	case VB_CQ_OVERRUN:
		vb_raise(lane, &cq->notice, VB_EVENT_CQ_ERR);
		break;
	case VB_CQ_LOST:
		break;
	}
	vb_count(lane, VB_CQ_OVERRUNS, 1);
	return false;
}

struct vb_wc *vb_complete_in_place(struct vb_qp *qp, struct vb_cq *cq, bool wakes)
{
	enum vb_cq_outcome outcome;
	struct vb_wc *wc = vb_cq_claim(cq, wakes, &outcome);
	if (outcome != VB_CQ_STORED && !vb_cq_tell(qp->lane, cq, outcome))
		vb_qp_condemn(qp); /* whoever overran the queue: it cannot go on as if its program knew */
	return wc;
}

void vb_complete(struct vb_qp *qp, struct vb_cq *cq, struct vb_wc *wc, bool solicited)
{
	wc->qpn = qp->qpn;
	wc->timestamp = qp->lane->now;
	wc->qp_user = qp->user;
	vb_lock_take(&cq->lock);
	struct vb_wc *place = vb_complete_in_place(qp, cq, solicited || wc->status != VB_WC_SUCCESS);
	if (place)
		*place = *wc;
	vb_lock_release(&cq->lock);
}

void vb_complete_recv(struct vb_target *target, struct vb_wc *wc, bool solicited)
{
	wc->wr_id = target->recv->wr_id;
	if (wc->status != VB_WC_SUCCESS)
		wc->opcode = VB_WC_RECV;
	vb_recv_done(target);
	/* The data of a WRITE is its own; the receive tells of it and has none. */
	vb_count_work(target->qp, VB_COUNTED_RECV, wc->status, wc->opcode == VB_WC_RECV ? wc->byte_len : 0);
	vb_complete(target->qp, target->cq, wc, solicited);
}
