/* Execution: turns requests into memory accesses and receive completions.
 * Holds: a request that fails a check has touched no memory; a message's bytes land in the order of its packets.
 * Not here: PSNs, duplicates, acks and NAKs (responder.c), what UC and UD make of a verdict (uc.c, ud.c), how READs and
 * atomics are answered (responses.c). IBA vol. 1, 9.7.4 and 9.7.5. */
#include "core/execute.h"
#include "base/invariant.h"
#include "core/events.h"
#include "core/lane.h"
#include "core/memory.h"
#include "core/qp.h"
#include "core/queues.h"
#include "core/tags.h"
#include "core/work_count.h"

const struct vb_outcome vb_outcomes[] = {
	/* clang-format off */
	[VB_EXECUTED] = { .recv_status = VB_WC_SUCCESS, .cause = VB_CAUSE_NONE },
	[VB_BAD_SEQUENCE] = { VB_NAK_INVALID_REQUEST, VB_WC_REM_INV_REQ_ERR, VB_EVENT_QP_REQ_ERR,
		VB_CAUSE_REMOTE_BAD_REQUEST },
	[VB_BAD_LENGTH] = { VB_NAK_INVALID_REQUEST, VB_WC_REM_INV_REQ_ERR, VB_EVENT_QP_REQ_ERR,
		VB_CAUSE_REMOTE_BAD_REQUEST },
	[VB_NOT_PERMITTED] = { VB_NAK_INVALID_REQUEST, VB_WC_REM_INV_REQ_ERR, VB_EVENT_QP_REQ_ERR,
		VB_CAUSE_REMOTE_BAD_REQUEST },
	[VB_TOO_MANY_READS] = { VB_NAK_INVALID_REQUEST, VB_WC_REM_INV_REQ_ERR, VB_EVENT_QP_REQ_ERR,
		VB_CAUSE_REMOTE_BAD_REQUEST },
	[VB_BAD_RKEY] = { VB_NAK_REMOTE_ACCESS, VB_WC_LOC_ACCESS_ERR, VB_EVENT_QP_ACCESS_ERR,
		VB_CAUSE_REMOTE_BAD_RKEY },
	[VB_RECV_TOO_SHORT] = { VB_NAK_INVALID_REQUEST, VB_WC_LOC_LEN_ERR, VB_EVENT_QP_REQ_ERR,
		VB_CAUSE_RECV_TOO_SHORT },
	[VB_BAD_RECV_SGE] = { VB_NAK_REMOTE_OPERATION, VB_WC_LOC_PROT_ERR, VB_EVENT_QP_REQ_ERR, VB_CAUSE_RECV_SGE },
	[VB_BAD_SRQ] = { VB_NAK_INVALID_REQUEST, VB_WC_REM_INV_REQ_ERR, VB_EVENT_QP_REQ_ERR, VB_CAUSE_REMOTE_BAD_SRQ },
	[VB_BAD_INVALIDATE] = { VB_NAK_REMOTE_ACCESS, VB_WC_LOC_ACCESS_ERR, VB_EVENT_QP_ACCESS_ERR,
		VB_CAUSE_REMOTE_BAD_RKEY },
	/* clang-format on */
};

void vb_target_reset(struct vb_target *target)
{
	*target = (struct vb_target){
		.qp = target->qp, .pd = target->pd, .srq = target->srq, .cq = target->cq, .srq_copy = target->srq_copy
	};
	assert(target->open == VB_NO_MESSAGE);
}

bool vb_target_expects(const struct vb_target *target, const struct vb_opcode *row)
{
	return vb_begins_message(row) ? target->open == VB_NO_MESSAGE : target->open == row->message;
}

/* The access that the QP must grant the peer for a message of that kind. */
static const uint32_t needed_access[] = {
	[VB_NO_MESSAGE] = UINT32_MAX,
	[VB_MESSAGE_SEND] = 0,
	[VB_MESSAGE_WRITE] = VB_ACCESS_REMOTE_WRITE,
	[VB_MESSAGE_ATOMIC_WRITE] = VB_ACCESS_REMOTE_WRITE,
	[VB_MESSAGE_READ] = VB_ACCESS_REMOTE_READ,
	[VB_MESSAGE_ATOMIC] = VB_ACCESS_REMOTE_ATOMIC,
	[VB_MESSAGE_FLUSH] = VB_ACCESS_FLUSH_GLOBAL,
	[VB_MESSAGE_READ_RESPONSE... VB_MESSAGE_BITMAP] = UINT32_MAX,
};

static bool reach(const struct vb_target *target, const struct vb_request *request, uint32_t length, uint32_t access,
	struct vb_reach *reach)
{
	return !vb_reach_remote_known(target->pd, &target->qp->known_rkey, target->qp->qpn, request->rkey, request->va,
		length, access, reach);
}

/* ---- Receives ---------------------------------------------------------------------------------------------------- */

/* Field by field, each once: what is put together first and copied then waits for its own stores. */
static void fill_completion(struct vb_wc *wc, const struct vb_qp *qp, const struct vb_request *last, uint64_t wr_id,
	uint32_t byte_len, enum vb_wc_opcode opcode)
{
	const struct vb_opcode *row = last->row;
	wc->wr_id = wr_id;
	wc->status = VB_WC_SUCCESS;
	wc->opcode = opcode;
	wc->vendor_err = 0;
	wc->byte_len = byte_len;
	wc->imm_or_inv = row->has_imm || row->has_inv ? last->imm_or_inv : 0;
	wc->qpn = qp->qpn;
	wc->src_qpn = qp->attr.dest_qpn;
	wc->flags = (row->has_imm ? VB_WC_WITH_IMM : 0) | (row->has_inv ? VB_WC_WITH_INV : 0);
	wc->sl = 0;
	wc->tm_priv = 0;
	wc->tm_tag = 0;
	wc->timestamp = qp->lane->now;
	wc->qp_user = qp->user;
	wc->qp = NULL;
	wc->sq_index = 0;
}

/* As vb_complete_recv, of a message that went well. */
static void complete_recv(
	struct vb_target *target, const struct vb_request *last, uint32_t byte_len, enum vb_wc_opcode opcode)
{
	struct vb_cq *cq = target->cq;
	uint64_t wr_id = target->recv->wr_id;
	assert(target->recv && target->cq);
	vb_recv_done(target);
	vb_count_work(target->qp, VB_COUNTED_RECV, VB_WC_SUCCESS, opcode == VB_WC_RECV ? byte_len : 0);
	vb_lock_take(&cq->lock);
	struct vb_wc *wc = vb_complete_in_place(target->qp, cq, last->is_solicited);
	if (wc)
		fill_completion(wc, target->qp, last, wr_id, byte_len, opcode);
	vb_lock_release(&cq->lock);
}

/* Behind what the message has brought already. Inline: every packet of a SEND comes by. */
__attribute__((always_inline)) static inline enum vb_verdict append(
	struct vb_target *target, const uint8_t *bytes, uint32_t length, bool is_last)
{
	const struct vb_recv_wqe *recv = vb_recv_take(target);
	if (!recv)
		return VB_NOT_READY;
	if (target->received + length > recv->length)
		return VB_RECV_TOO_SHORT;
	if (!vb_recv_scatter(target, target->received, bytes, length, is_last))
		return VB_BAD_RECV_SGE;
	target->received += length;
	return VB_EXECUTED;
}

enum vb_verdict vb_execute_datagram(
	struct vb_target *target, const uint8_t *head, uint32_t head_length, const uint8_t *payload, uint32_t length)
{
	const struct vb_recv_wqe *recv = vb_recv_take(target);
	assert(target->open == VB_NO_MESSAGE);
	if (!recv)
		return VB_NOT_READY;
	if (head_length + length > recv->length)
		return VB_RECV_TOO_SHORT;
	target->received = 0;
	enum vb_verdict verdict = append(target, head, head_length, false);
	return verdict == VB_EXECUTED ? append(target, payload, length, true) : verdict;
}

/* ---- SEND -------------------------------------------------------------------------------------------------------- */

/* All of the packet but its first skip bytes. */
__attribute__((always_inline)) static inline enum vb_verdict place_send(
	struct vb_target *target, const struct vb_request *request, uint32_t skip)
{
	const struct vb_opcode *row = request->row;
	bool ends = vb_ends_message(row);
	const uint8_t *payload = skip ? request->payload + skip : request->payload;
	if (vb_begins_message(row))
		target->received = 0;
	enum vb_verdict verdict = append(target, payload, request->payload_length - skip, ends);
	if (verdict != VB_EXECUTED)
		return verdict;
	if (row->has_inv && vb_key_invalidate(target->pd, target->qp->qpn, request->imm_or_inv))
		return VB_BAD_INVALIDATE;
	target->open = ends ? VB_NO_MESSAGE : VB_MESSAGE_SEND;
	return VB_EXECUTED;
}

static enum vb_verdict execute_send(struct vb_target *target, const struct vb_request *request)
{
	enum vb_verdict verdict = place_send(target, request, 0);
	assert(request->row->message == VB_MESSAGE_SEND);
	if (verdict == VB_EXECUTED && target->open == VB_NO_MESSAGE)
		complete_recv(target, request, target->received, VB_WC_RECV);
	return verdict;
}

/* To an SRQ with tags: the first packet says whose buffer the message is for, and what of the packet is not for it. */
static enum vb_verdict execute_tagged_send(struct vb_target *target, const struct vb_request *request)
{
	static const enum vb_verdict verdicts[] = { [VB_TAG_GOES_ON] = VB_EXECUTED,
		[VB_TAG_DONE] = VB_EXECUTED,
		[VB_TAG_NOT_READY] = VB_NOT_READY,
		[VB_TAG_BAD_BUFFER] = VB_BAD_RECV_SGE };
	uint32_t skip = 0;
	assert(target->srq == target->qp->srq);
	if (vb_begins_message(request->row)) {
		enum vb_tag_outcome outcome = vb_tags_open(target->qp, request);
		if (outcome != VB_TAG_GOES_ON)
			return verdicts[outcome];
		skip = target->tagged.skip;
	}
	enum vb_verdict verdict = place_send(target, request, skip);
	if (verdict == VB_EXECUTED && target->open == VB_NO_MESSAGE)
		vb_tags_complete(target->qp, request);
	return verdict;
}

/* ---- WRITE ------------------------------------------------------------------------------------------------------- */

/* The RETH opens the message: its whole range is checked once, and with each packet whether the key is still what it
 * was. */
static enum vb_verdict open_write(struct vb_target *target, const struct vb_request *request, bool is_only)
{
	if (request->length > VB_MAX_MESSAGE_BYTES)
		return VB_BAD_LENGTH;
	if (is_only ? request->length != request->payload_length : request->length <= request->payload_length)
		return VB_BAD_LENGTH;
	if (request->length > 0 && !reach(target, request, request->length, VB_ACCESS_REMOTE_WRITE, &target->whole))
		return VB_BAD_RKEY;
	target->va = request->va;
	target->rkey = request->rkey;
	target->write_length = request->length;
	target->received = 0;
	assert(target->write_length <= VB_MAX_MESSAGE_BYTES);
	return VB_EXECUTED;
}

static bool reach_next(const struct vb_target *target, uint32_t length, struct vb_reach *part)
{
	return vb_reach_part(&target->whole, target->received, length, true, part) ||
	       !vb_reach_remote(target->pd, target->qp->qpn, target->rkey, target->va + target->received, length,
		       VB_ACCESS_REMOTE_WRITE, part);
}

static enum vb_verdict execute_write(struct vb_target *target, const struct vb_request *request)
{
	const struct vb_opcode *row = request->row;
	bool ends = vb_ends_message(row);
	struct vb_reach part = { 0 };

	if (row->has_imm && !vb_recv_take(target))
		return VB_NOT_READY;
	if (vb_begins_message(row)) {
		enum vb_verdict verdict = open_write(target, request, ends);
		if (verdict != VB_EXECUTED)
			return verdict;
	}
	uint32_t total = target->received + request->payload_length;
	if (ends ? total != target->write_length : total >= target->write_length)
		return VB_BAD_LENGTH;
	if (request->payload_length > 0 && !reach_next(target, request->payload_length, &part))
		return VB_BAD_RKEY;
	vb_place(&part, request->payload, request->payload_length, ends);
	target->received = total;
	target->open = ends ? VB_NO_MESSAGE : VB_MESSAGE_WRITE;
	if (ends)
		vb_count_work(target->qp, VB_COUNTED_REMOTE_WRITE, VB_WC_SUCCESS, total);
	if (row->has_imm)
		complete_recv(target, request, target->write_length, VB_WC_RECV_RDMA_WITH_IMM);
	return VB_EXECUTED;
}

bool vb_execute_middle(struct vb_target *target, const uint8_t *payload, uint32_t length)
{
	uint32_t total = target->received + length;
	struct vb_reach part;
	assert(target->open == VB_MESSAGE_WRITE);
	if (total >= target->write_length || !vb_reach_part(&target->whole, target->received, length, true, &part))
		return false;
	vb_place(&part, payload, length, false);
	target->received = total;
	return true;
}

/* ---- Requests that are answered ---------------------------------------------------------------------------------- */

static enum vb_verdict execute_read(const struct vb_target *target, const struct vb_request *request)
{
	struct vb_reach all;
	if (request->length > VB_MAX_MESSAGE_BYTES)
		return VB_BAD_LENGTH;
	if (request->length > 0 && !reach(target, request, request->length, VB_ACCESS_REMOTE_READ, &all))
		return VB_BAD_RKEY;
	return VB_EXECUTED;
}

static enum vb_verdict execute_atomic(
	const struct vb_target *target, const struct vb_request *request, uint64_t *before)
{
	struct vb_reach word;
	assert(request->length == 8);
	if (request->va & 7)
		return VB_BAD_LENGTH; /* misaligned: invalid request. 9.7.4.1.7 */
	if (!reach(target, request, 8, VB_ACCESS_REMOTE_ATOMIC, &word))
		return VB_BAD_RKEY;
	if ((uintptr_t)word.bytes & 7)
		return VB_BAD_LENGTH; /* aligned for the peer, not for us (a region with its own base) */
	*before = request->is_swap ? vb_compare_swap(&word, request->compare, request->swap_add)
				   : vb_fetch_add(&word, request->swap_add);
	return VB_EXECUTED;
}

/* One store of eight bytes, once, for a duplicate is answered from memory. Annex A19.4.2. */
static enum vb_verdict execute_atomic_write(const struct vb_target *target, const struct vb_request *request)
{
	struct vb_reach word;
	if ((request->va & 7) || request->length != 8)
		return VB_BAD_LENGTH;
	if (!reach(target, request, 8, VB_ACCESS_REMOTE_WRITE, &word))
		return VB_BAD_RKEY;
	if ((uintptr_t)word.bytes & 7)
		return VB_BAD_LENGTH; /* as with atomics */
	vb_place(&word, request->payload, 8, true);
	return VB_EXECUTED;
}

/* Everything before it has been executed, so it lies in memory: that others see it takes a fence. That it survives a
 * loss of power we cannot say of any memory. Annex A19.4.1. */
static enum vb_verdict execute_flush(const struct vb_target *target, const struct vb_request *request)
{
	uint32_t type = request->flush & VB_FETH_TYPE_MASK;
	uint32_t level = request->flush >> VB_FETH_LEVEL_SHIFT & VB_FETH_LEVEL_MASK;
	struct vb_reach range;
	if (type == 0 || level > VB_FLUSH_REGION)
		return VB_NOT_PERMITTED;
	if (type & ~(uint32_t)VB_FLUSH_GLOBAL)
		return VB_BAD_RKEY; /* as of a region without that right, which none of ours has */
	uint32_t length = level == VB_FLUSH_RANGE ? request->length : 0;
	if (!reach(target, request, length, VB_ACCESS_FLUSH_GLOBAL, &range))
		return VB_BAD_RKEY;
	atomic_thread_fence(memory_order_seq_cst);
	return VB_EXECUTED;
}

/* ---- Bytes that somebody else puts in their place ---------------------------------------------------------------- */

bool vb_execute_places(const struct vb_target *target, uint32_t length, struct vb_iov *iov, unsigned *count)
{
	const struct vb_recv_wqe *recv = target->recv;
	const struct vb_pd *pd = target->srq ? target->srq->pd : target->pd;
	struct vb_reach part = { 0 };
	if (target->open == VB_MESSAGE_SEND)
		return recv && vb_scatter_places(pd, recv->sges, recv->sge_count, target->received, length, iov, count);
	if (!reach_next(target, length, &part) || part.kind)
		return false;
	iov[(*count)++] = (struct vb_iov){ part.bytes, length };
	return true;
}

/* ---- Any request ------------------------------------------------------------------------------------------------- */

enum vb_verdict vb_execute(struct vb_target *target, const struct vb_request *request, uint64_t *before)
{
	const struct vb_opcode *row = request->row;
	if (needed_access[row->message] & ~target->qp->attr.access)
		return VB_NOT_PERMITTED;
	switch ((enum vb_message)row->message) {
	case VB_MESSAGE_SEND:
		return target->srq && target->srq->tags ? execute_tagged_send(target, request)
							: execute_send(target, request);
	case VB_MESSAGE_WRITE:
		return execute_write(target, request);
	case VB_MESSAGE_READ:
		return execute_read(target, request);
	case VB_MESSAGE_ATOMIC_WRITE:
		return execute_atomic_write(target, request);
	case VB_MESSAGE_FLUSH:
		return execute_flush(target, request);
	default:
		return execute_atomic(target, request, before);
	}
}

/* The first packet of a message says which memory it wants. */
static void note_access(struct vb_qp *qp, const struct vb_request *request)
{
	const struct vb_opcode *row = request->row;
	if (vb_begins_message(row))
		vb_qp_note_access(qp, (enum vb_message)row->message, request->va, request->rkey, request->length);
}

void vb_execute_refusal(
	struct vb_target *target, const struct vb_request *request, enum vb_verdict verdict, vb_time now)
{
	const struct vb_outcome *outcome = &vb_outcomes[verdict];
	struct vb_qp *qp = target->qp;
	assert(verdict != VB_EXECUTED && verdict != VB_NOT_READY);
	if (target->recv) {
		struct vb_wc wc = { .status = outcome->recv_status, .vendor_err = outcome->cause };
		vb_complete_recv(target, &wc, true);
	} else {
		vb_raise(qp->lane, &qp->notice, outcome->event);
	}
	vb_qp_fail(qp, outcome->cause, outcome->recv_status, now);
	if (verdict == VB_BAD_RKEY)
		note_access(qp, request);
	assert(!target->recv);
}

void vb_target_check(const struct vb_target *target)
{
	if (target->recv && target->srq)
		assert(target->recv == target->srq_copy);
	else if (target->recv)
		assert(target->recv == vb_recv_ring_peek(&target->qp->rq));
	if (target->open == VB_MESSAGE_SEND && target->recv)
		assert(target->received <= target->recv->length);
	if (target->open == VB_MESSAGE_WRITE)
		assert(target->received < target->write_length);
}
