/* The oldest work requests' retirement: their places are free, and they complete, in order.
 * Not here: posting (send_queue.c). */
#include "base/invariant.h"
#include "core/events.h"
#include "core/lane.h"
#include "core/qp.h"
#include "core/queues.h"
#include "core/send_queue.h"
#include "core/work_count.h"
#include "core/wr_kinds.h"

#define RETIRED_AT_ONCE 32

static void count_sent(struct vb_qp *qp, const struct vb_send_wqe *wqe, enum vb_wc_status status)
{
	uint8_t counted = vb_wr_kinds[wqe->opcode].counted;
	if (counted)
		vb_count_work(qp, (enum vb_counted)__builtin_ctz(counted), status, wqe->length);
}

/* Field by field, each once: what is put together first and copied then waits for its own stores. */
static void fill_completion(
	struct vb_wc *wc, struct vb_qp *qp, const struct vb_send_wqe *wqe, enum vb_wc_status status, uint32_t end)
{
	bool has_cause = status != VB_WC_SUCCESS && status != VB_WC_WR_FLUSH_ERR;
	wc->wr_id = wqe->wr_id;
	wc->status = status;
	wc->opcode = vb_wr_kinds[wqe->opcode].wc_opcode;
	wc->vendor_err = has_cause ? qp->cause.kind : 0;
	wc->byte_len = wqe->length;
	wc->imm_or_inv = 0;
	wc->qpn = qp->qpn;
	wc->src_qpn = 0;
	wc->flags = 0;
	wc->sl = 0;
	wc->tm_priv = 0;
	wc->tm_tag = 0;
	wc->timestamp = qp->lane->now;
	wc->qp_user = qp->user;
	wc->qp = qp;
	wc->sq_index = end;
}

/* The send queue of a QP with tags has no CQ. Its READs complete as the receives that they fetched for. */
static void complete_fetched(struct vb_qp *qp, struct vb_wc *wc)
{
	if (wc->opcode != VB_WC_RDMA_READ)
		return;
	wc->opcode = VB_WC_TM_RECV;
	wc->flags = wc->status == VB_WC_SUCCESS ? VB_WC_TM_DATA_VALID : 0;
	vb_complete(qp, qp->recv_cq, wc, false);
}

/* With the send CQ's lock, where there is one. */
static void retire_oldest(struct vb_qp *qp, enum vb_wc_status status)
{
	uint32_t head = atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
	assert(head != atomic_load_explicit(&qp->sq.tail, memory_order_relaxed));
	const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, head);
	bool is_reported = status != VB_WC_SUCCESS || (wqe->flags & VB_SEND_SIGNALED);
	struct vb_wc fetched, *wc = NULL;

	if (is_reported)
		wc = qp->send_cq ? vb_complete_in_place(qp, qp->send_cq, status != VB_WC_SUCCESS) : &fetched;
	if (wc)
		fill_completion(wc, qp, wqe, status, head + 1);
	atomic_store_explicit(&qp->sq.head, head + 1, memory_order_release);
	if (qp->counts)
		count_sent(qp, wqe, status);
	if (wc == &fetched)
		complete_fetched(qp, &fetched);
}

static void lock_completions(struct vb_cq *cq)
{
	if (cq)
		vb_lock_take(&cq->lock);
}

static void unlock_completions(struct vb_cq *cq)
{
	if (cq)
		vb_lock_release(&cq->lock);
}

void vb_sq_retire(struct vb_qp *qp, enum vb_wc_status status)
{
	lock_completions(qp->send_cq);
	retire_oldest(qp, status);
	unlock_completions(qp->send_cq);
}

/* One ack may finish many: they are completed some at a time, because a polling thread waits for the CQ's lock
 * meanwhile. */
void vb_sq_retire_to(struct vb_qp *qp, uint32_t index)
{
	struct vb_requester *rq = &qp->requester;
	uint32_t left = index - atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
	while (left > 0) {
		uint32_t some = left < RETIRED_AT_ONCE ? left : RETIRED_AT_ONCE;
		left -= some;
		lock_completions(qp->send_cq);
		while (some-- > 0)
			retire_oldest(qp, VB_WC_SUCCESS);
		unlock_completions(qp->send_cq);
	}
	if ((int32_t)(rq->cursor - index) < 0) {
		rq->cursor = index;
		rq->pending_error = VB_WC_SUCCESS; /* an earlier copy of what was missed got through */
	}
	assert((int32_t)(rq->cursor - index) >= 0);
}
