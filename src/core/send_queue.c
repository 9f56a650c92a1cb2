/* The send queue: posting by any thread, the doorbell, and the retirement of the oldest work requests: their places are
 * free, and they complete, in order.
 * Holds: released <= head <= cursor <= tail, at most max_wr apart; the lane alone moves head, the poster alone tail. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "core/events.h"
#include "core/lane.h"
#include "core/qp.h"
#include "core/queues.h"
#include "core/send_queue.h"
#include "core/work_count.h"
#include "core/wr_kinds.h"

#define RETIRED_AT_ONCE 32

int vb_sq_init(struct vb_send_queue *sq, uint32_t max_wr, uint32_t max_sge, uint32_t max_inline)
{
	vb_lock_init(&sq->lock);
	atomic_init(&sq->head, 0);
	atomic_init(&sq->tail, 0);
	atomic_init(&sq->released, 0);
	sq->staged = 0;
	sq->max_wr = max_wr;
	sq->max_sge = (uint16_t)max_sge;
	sq->max_inline = (uint16_t)max_inline;
	sq->size = 1;
	while (sq->size < max_wr)
		sq->size *= 2;
	size_t data = max_sge * sizeof(struct vb_sge) > max_inline ? max_sge * sizeof(struct vb_sge) : max_inline;
	sq->stride = (uint32_t)(offsetof(struct vb_send_wqe, sges) + data + 15) & ~15u;
	if (sq->stride < sizeof(struct vb_send_wqe))
		sq->stride = (sizeof(struct vb_send_wqe) + 15) & ~15u;
	sq->slots = calloc(sq->size, sq->stride);
	assert(sq->size >= max_wr && sq->stride >= sizeof(struct vb_send_wqe));
	return sq->slots ? 0 : -ENOMEM;
}

void vb_sq_deinit(struct vb_send_queue *sq)
{
	free(sq->slots);
	sq->slots = NULL;
}

/* ---- Posting ----------------------------------------------------------------------------------------------------- */

/* An ATOMIC WRITE whose eight bytes came with the request. */
static bool has_value(const struct vb_send_wr *wr)
{
	return wr->opcode == VB_WR_ATOMIC_WRITE && wr->sge_count == 0 && !(wr->flags & VB_SEND_INLINE);
}

/* The kind takes what the request brings. */
static bool form_is_right(const struct vb_qp *qp, const struct vb_wr_kind *kind, const struct vb_send_wr *wr)
{
	if (qp->type == VB_QP_UD && !wr->av)
		return false;
	return wr->flags & VB_SEND_INLINE ? kind->has_payload : wr->sge_count <= qp->sq.max_sge;
}

static int message_length(const struct vb_qp *qp, const struct vb_send_wr *wr, uint64_t *length)
{
	const struct vb_wr_kind *kind = &vb_wr_kinds[wr->opcode];
	*length = 0;
	if (kind->finished_by == VB_BY_ITSELF || kind->message == VB_MESSAGE_FLUSH)
		return 0;
	if (!form_is_right(qp, kind, wr))
		return -EINVAL;
	for (uint32_t i = 0; i < wr->sge_count; i++)
		*length += wr->sges[i].length;
	if (*length > VB_MAX_MESSAGE_BYTES || *length > qp->mtu * (uint64_t)VB_MAX_MESSAGE_PACKETS)
		return -EINVAL;
	if ((wr->flags & VB_SEND_INLINE) && *length > qp->sq.max_inline)
		return -EINVAL;
	if (has_value(wr))
		*length = 8;
	return kind->has_eight_bytes && *length != 8 ? -EINVAL : 0;
}

static void copy_inline(struct vb_send_wqe *wqe, const struct vb_send_wr *wr)
{
	uint8_t *to = wqe->inline_bytes;
	for (uint32_t i = 0; i < wr->sge_count; i++) {
		if (wr->sges[i].length == 0)
			continue;
		memcpy(to, (const void *)(uintptr_t)wr->sges[i].addr, wr->sges[i].length);
		to += wr->sges[i].length;
	}
	wqe->sge_count = 0;
}

static void fill_by_opcode(struct vb_qp *qp, struct vb_send_wqe *wqe, const struct vb_send_wr *wr)
{
	if (vb_wr_kinds[wr->opcode].has_eight_bytes) {
		wqe->atomic.compare_add = wr->compare_add;
		wqe->atomic.swap = wr->swap;
	} else if (wr->opcode == VB_WR_FLUSH) {
		wqe->flush.length = wr->flush_length;
		wqe->flush.type = wr->flush_type & VB_FETH_TYPE_MASK;
		wqe->flush.level = wr->flush_level & VB_FETH_LEVEL_MASK;
	} else if (wr->opcode == VB_WR_BIND_MW) {
		wqe->bind.mw = wr->bind.mw;
		wqe->bind.mr = wr->bind.mr;
		wqe->bind.addr = wr->bind.addr;
		wqe->bind.length = wr->bind.length;
		wqe->bind.access = wr->bind.access;
		wqe->bind.rkey = wr->bind.rkey;
	} else if (qp->type == VB_QP_UD) {
		wqe->sender = 0;
		wqe->ud.av = *wr->av;
		wqe->ud.qpn = wr->remote_qpn & VB_QPN_MASK;
		wqe->ud.qkey = wr->remote_qkey;
	}
}

void vb_sq_begin(struct vb_qp *qp)
{
	vb_lock_take(&qp->sq.lock);
	qp->sq.staged = atomic_load_explicit(&qp->sq.tail, memory_order_relaxed);
}

int vb_sq_put(struct vb_qp *qp, const struct vb_send_wr *wr)
{
	if (vb_state(qp) < VB_QPS_RTS || !qp->send_cq || !vb_wr_is_allowed(qp->type, wr->opcode))
		return -EINVAL;
	return vb_sq_stage(qp, wr);
}

int vb_sq_stage(struct vb_qp *qp, const struct vb_send_wr *wr)
{
	struct vb_send_queue *sq = &qp->sq;
	bool has_payload = vb_wr_kinds[wr->opcode].has_payload;
	uint64_t length;

	int error = message_length(qp, wr, &length);
	if (error)
		return error;
	/* As on hardware a slot is free when its completion, or a later one, was polled: a program that throttles on
	 * ENOMEM alone cannot overrun its CQ. */
	if (sq->staged - atomic_load_explicit(&sq->released, memory_order_acquire) >= sq->max_wr)
		return -ENOMEM;

	struct vb_send_wqe *wqe = vb_send_wqe_at(sq, sq->staged);
	wqe->wr_id = wr->wr_id;
	wqe->opcode = (uint8_t)wr->opcode;
	wqe->flags = (uint8_t)(wr->flags | (qp->signal_all ? VB_SEND_SIGNALED : 0));
	wqe->is_started = wqe->is_large = false;
	wqe->length = (uint32_t)length;
	wqe->imm_or_inv = wr->imm_or_inv;
	wqe->rkey = wr->rkey;
	wqe->srqn = wr->remote_srqn & VB_SRQN_MASK;
	wqe->remote_addr = wr->remote_addr;
	fill_by_opcode(qp, wqe, wr);
	if (!has_payload)
		wqe->flags &= (uint8_t)~VB_SEND_INLINE;
	if (wqe->flags & VB_SEND_INLINE) {
		copy_inline(wqe, wr);
	} else {
		wqe->sge_count = (uint8_t)(length || has_payload ? wr->sge_count : 0);
		for (uint32_t i = 0; i < wqe->sge_count; i++)
			wqe->sges[i] = wr->sges[i];
	}
	sq->staged++;
	assert(sq->staged - atomic_load_explicit(&sq->released, memory_order_relaxed) <= sq->max_wr);
	return 0;
}

/* ---- The doorbell ------------------------------------------------------------------------------------------------ */

/* True: the lane will yet look at the queue, and see what lies there now. */
static bool is_rung(struct vb_qp *qp)
{
	if (!atomic_load_explicit(&qp->doorbell_rung, memory_order_acquire))
		return false;
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load(&qp->doorbell_rung);
}

/* Any thread pushes, the lane empties it. */
static void push(_Atomic(struct vb_qp *) *stack, struct vb_qp *qp, _Atomic(struct vb_qp *) *next)
{
	struct vb_qp *top = atomic_load_explicit(stack, memory_order_relaxed);
	do {
		atomic_store_explicit(next, top, memory_order_relaxed);
	} while (!atomic_compare_exchange_weak(stack, &top, qp));
}

/* True: there is something new. */
static bool publish_staged(struct vb_qp *qp)
{
	if (qp->sq.staged == atomic_load_explicit(&qp->sq.tail, memory_order_relaxed))
		return false;
	atomic_store_explicit(&qp->sq.tail, qp->sq.staged, memory_order_release);
	return true;
}

/* With sq.lock: nobody else rings, and the lane takes a bell that rang off the stack before it says so. */
static void ring_doorbell(struct vb_qp *qp)
{
	if (is_rung(qp))
		return;
	atomic_store_explicit(&qp->doorbell_rung, true, memory_order_relaxed);
	push(&qp->lane->doorbells, qp, &qp->doorbell_next);
}

/* For receives of a QP in ERR. By a bell of its own, without sq.lock: whoever posts may be putting sends together, and
 * hold that. */
static void ring_for_flush(struct vb_qp *qp)
{
	if (!atomic_exchange(&qp->flush_rung, true))
		push(&qp->lane->flushes, qp, &qp->flush_next);
}

void vb_sq_end(struct vb_qp *qp, bool publish)
{
	if (publish && publish_staged(qp))
		ring_doorbell(qp);
	vb_lock_release(&qp->sq.lock);
}

bool vb_sq_publish(struct vb_qp *qp)
{
	bool has_more = publish_staged(qp);
	vb_lock_release(&qp->sq.lock);
	return has_more;
}

int vb_rq_post(struct vb_qp *qp, const struct vb_recv_wr *wr)
{
	if (!qp->rq.slots || vb_state(qp) == VB_QPS_RESET)
		return -EINVAL;
	int error = vb_recv_ring_post(&qp->rq, wr);
	/* The state is read again: a QP that went to ERR meanwhile has flushed what it saw, and must flush this too.
	 * A flush takes the ring's lock after the state is set, so that one of the two sees the other. */
	if (!error && atomic_load(&qp->state) == VB_QPS_ERR)
		ring_for_flush(qp);
	return error;
}

/* ---- Retirement -------------------------------------------------------------------------------------------------- */

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

void vb_sq_check(const struct vb_qp *qp)
{
	const struct vb_send_queue *sq = &qp->sq;
	uint32_t released = atomic_load_explicit(&sq->released, memory_order_relaxed);
	uint32_t used = atomic_load_explicit(&sq->tail, memory_order_relaxed) - released;
	uint32_t to_cursor = qp->requester.cursor - released;
	uint32_t to_head = atomic_load_explicit(&sq->head, memory_order_relaxed) - released;
	assert(to_head <= to_cursor && to_cursor <= used && used <= sq->max_wr);
}
