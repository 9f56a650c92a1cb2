/* News for the holder: completions into CQs, and the list of objects that have something to say. */
#include "core/events.h"
#include "base/invariant.h"
#include "core/execute.h"
#include "core/lane.h"
#include "core/qp.h"
#include "core/queues.h"

void vb_raise(struct vb_lane *lane, struct vb_notice *notice, enum vb_event_kind kind)
{
	assert((unsigned)kind < 64);
	if (atomic_fetch_or(&notice->pending, 1ull << kind) == 0)
		vb_list_add_tail(&lane->notices, &notice->link);
}

/* A QP in the middle of destruction has nothing more to say. */
void vb_notice_forget(struct vb_notice *notice)
{
	assert((unsigned)notice->of <= VB_NOTICE_OF_SRQ);
	atomic_store(&notice->pending, 0);
	vb_list_remove(&notice->link);
}

bool vb_lane_next_event(struct vb_lane *lane, struct vb_event *event)
{
	if (vb_list_empty(&lane->notices))
		return false;
	struct vb_notice *notice = vb_container_of(lane->notices.next, struct vb_notice, link);
	unsigned long long pending = atomic_load(&notice->pending);
	assert(pending != 0);
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

/* A completion of the QP was lost. It fails at the end of the turn: it cannot go on as if its program knew. */
static void condemn(struct vb_qp *qp)
{
	if (vb_state(qp) == VB_QPS_ERR || vb_is_failing(qp))
		return;
	vb_raise(qp->lane, &qp->notice, VB_EVENT_QP_FATAL);
	vb_list_add_tail(&qp->lane->failing, &qp->failing_link);
	qp->is_failing = true;
	assert(vb_list_linked(&qp->failing_link));
}

struct vb_wc *vb_complete_in_place(struct vb_qp *qp, struct vb_cq *cq, bool wakes)
{
	enum vb_cq_outcome outcome;
	struct vb_wc *wc = vb_cq_claim(cq, wakes, &outcome);
	if (outcome != VB_CQ_STORED && !vb_cq_tell(qp->lane, cq, outcome))
		condemn(qp);
	assert(!wc == (outcome == VB_CQ_OVERRUN || outcome == VB_CQ_LOST));
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
