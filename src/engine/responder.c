/* Responder: turns RC and XRC request packets into memory accesses, receive completions and replies.
 * Holds: packets execute in PSN order, each once; a packet that fails a check has touched no memory.
 * Not here: what is sent back and when (responses.c), UC (unconnected.c). IBA vol. 1, 9.7.4 and 9.7.5. */
#include <stdlib.h>
#include "base/invariant.h"
#include "engine/qp.h"
#include "engine/xrc.h"

/* What became of a request packet. A request is judged once. */
enum verdict {
	EXECUTED,
	NOT_READY,
	BAD_SEQUENCE,
	BAD_LENGTH,
	NOT_PERMITTED,
	TOO_MANY_READS,
	BAD_RKEY,
	RECV_TOO_SHORT,
	BAD_RECV_SGE,
	BAD_INVALIDATE,
	BAD_SRQ,
};

/* IBA vol. 1, table 59 (responder error behaviour): the NAK, what an open receive completes with, the event, the cause.
 */
static const struct outcome {
	uint8_t nak;
	enum vb_wc_status recv_status;
	enum vb_event_kind event;
	enum vb_cause_kind cause;
} outcomes[] = {
	/* clang-format off */
	[BAD_SEQUENCE] = { VB_NAK_INVALID_REQUEST, VB_WC_REM_INV_REQ_ERR, VB_EVENT_QP_REQ_ERR, VB_CAUSE_REMOTE_BAD_REQUEST },
	[BAD_LENGTH] = { VB_NAK_INVALID_REQUEST, VB_WC_REM_INV_REQ_ERR, VB_EVENT_QP_REQ_ERR, VB_CAUSE_REMOTE_BAD_REQUEST },
	[NOT_PERMITTED] = { VB_NAK_INVALID_REQUEST, VB_WC_REM_INV_REQ_ERR, VB_EVENT_QP_REQ_ERR, VB_CAUSE_REMOTE_BAD_REQUEST },
	[TOO_MANY_READS] = { VB_NAK_INVALID_REQUEST, VB_WC_REM_INV_REQ_ERR, VB_EVENT_QP_REQ_ERR, VB_CAUSE_REMOTE_BAD_REQUEST },
	[BAD_RKEY] = { VB_NAK_REMOTE_ACCESS, VB_WC_LOC_ACCESS_ERR, VB_EVENT_QP_ACCESS_ERR, VB_CAUSE_REMOTE_BAD_RKEY },
	[RECV_TOO_SHORT] = { VB_NAK_INVALID_REQUEST, VB_WC_LOC_LEN_ERR, VB_EVENT_QP_REQ_ERR, VB_CAUSE_RECV_TOO_SHORT },
	[BAD_RECV_SGE] = { VB_NAK_REMOTE_OPERATION, VB_WC_LOC_PROT_ERR, VB_EVENT_QP_REQ_ERR, VB_CAUSE_RECV_SGE },
	[BAD_SRQ] = { VB_NAK_INVALID_REQUEST, VB_WC_REM_INV_REQ_ERR, VB_EVENT_QP_REQ_ERR, VB_CAUSE_REMOTE_BAD_SRQ },
	[BAD_INVALIDATE] = { VB_NAK_REMOTE_ACCESS, VB_WC_LOC_ACCESS_ERR, VB_EVENT_QP_ACCESS_ERR, VB_CAUSE_REMOTE_BAD_RKEY },
	/* clang-format on */
};

void vb_responder_reset(struct vb_qp *qp)
{
	struct vb_responder *rs = &qp->responder;
	free(rs->resources);
	memset(rs, 0, sizeof(*rs));
	vb_target_reset(&qp->target);
	rs->expected_psn = qp->attr.rq_psn & VB_PSN_MASK;
	vb_list_remove(&qp->ack_link);
}

/* ---- Checks ---------------------------------------------------------------------------------------------------- */

static bool continues_message(const struct vb_opcode *row)
{
	return row->place == VB_MIDDLE || row->place == VB_LAST;
}

static bool sequence_is_right(const struct vb_target *target, const struct vb_opcode *row)
{
	return continues_message(row) ? target->open == row->message : target->open == VB_NO_MESSAGE;
}

/* Payload against place: First and Middle are full, Last is not empty, Only may be. 9.7.4.1.6. */
static bool payload_is_right(const struct vb_qp *qp, const struct vb_opcode *row, const struct vb_packet *packet)
{
	switch ((enum vb_payload)row->payload) {
	case VB_PAYLOAD_FULL:
		return packet->payload_length == qp->mtu;
	case VB_PAYLOAD_LAST:
		return packet->payload_length >= 1 && packet->payload_length <= qp->mtu;
	case VB_PAYLOAD_ONLY:
		return packet->payload_length <= qp->mtu;
	case VB_PAYLOAD_EIGHT:
		return packet->payload_length == 8;
	default:
		return packet->payload_length == 0;
	}
}

static bool is_permitted(const struct vb_qp *qp, const struct vb_opcode *row)
{
	switch ((enum vb_message)row->message) {
	case VB_MESSAGE_SEND:
		return true;
	case VB_MESSAGE_WRITE:
	case VB_MESSAGE_ATOMIC_WRITE:
		return qp->attr.access & VB_ACCESS_REMOTE_WRITE;
	case VB_MESSAGE_READ:
		return qp->attr.access & VB_ACCESS_REMOTE_READ;
	case VB_MESSAGE_ATOMIC:
		return qp->attr.access & VB_ACCESS_REMOTE_ATOMIC;
	case VB_MESSAGE_FLUSH:
		return qp->attr.access & VB_ACCESS_FLUSH_GLOBAL;
	default:
		return false;
	}
}

/* ---- Execution ------------------------------------------------------------------------------------------------- */

static void complete_recv(struct vb_qp *qp, const struct vb_packet *packet, uint32_t byte_len, enum vb_wc_opcode opcode)
{
	const struct vb_opcode *row = vb_packet_row(packet);
	struct vb_wc wc = {
		.status = VB_WC_SUCCESS,
		.opcode = opcode,
		.byte_len = byte_len,
		.src_qpn = qp->attr.dest_qpn,
		.flags = (row->has_imm ? VB_WC_WITH_IMM : 0) | (row->has_inv ? VB_WC_WITH_INV : 0),
		.imm_or_inv = row->has_imm ? packet->imm : packet->inv_rkey,
	};
	vb_complete_recv(&qp->target, &wc, packet->solicited);
}

/* Inline for execute_send: every packet of a SEND comes by. */
__attribute__((always_inline)) static inline enum verdict place_send(struct vb_qp *qp, const struct vb_packet *packet)
{
	struct vb_target *target = &qp->target;
	const struct vb_opcode *row = vb_packet_row(packet);
	bool ends = row->place == VB_LAST || row->place == VB_ONLY;
	const struct vb_recv_wqe *recv = vb_recv_take(&qp->target);

	if (!recv)
		return NOT_READY;
	if (row->place == VB_FIRST || row->place == VB_ONLY)
		target->received = 0;
	if (target->received + packet->payload_length > recv->length)
		return RECV_TOO_SHORT;
	if (!vb_recv_scatter(&qp->target, target->received, packet->payload, packet->payload_length, ends))
		return BAD_RECV_SGE;
	if (row->has_inv && vb_key_invalidate(qp->target.pd, qp->qpn, packet->inv_rkey))
		return BAD_INVALIDATE;
	target->received += packet->payload_length;
	target->open = ends ? VB_NO_MESSAGE : VB_MESSAGE_SEND;
	return EXECUTED;
}

static enum verdict execute_send(struct vb_qp *qp, const struct vb_packet *packet)
{
	enum verdict verdict = place_send(qp, packet);
	if (verdict == EXECUTED && qp->target.open == VB_NO_MESSAGE)
		complete_recv(qp, packet, qp->target.received, VB_WC_RECV);
	return verdict;
}

/* To an SRQ with tags: the first packet says whose buffer the message is for, and what of the packet is not for it. */
static enum verdict execute_tagged_send(struct vb_qp *qp, const struct vb_packet *packet)
{
	static const enum verdict verdicts[] = { [VB_TAG_GOES_ON] = EXECUTED,
		[VB_TAG_DONE] = EXECUTED,
		[VB_TAG_NOT_READY] = NOT_READY,
		[VB_TAG_BAD_BUFFER] = BAD_RECV_SGE };
	struct vb_packet rest = *packet;
	if (!continues_message(vb_packet_row(packet))) {
		enum vb_tag_outcome outcome = vb_tags_open(qp, packet);
		if (outcome != VB_TAG_GOES_ON)
			return verdicts[outcome];
		uint32_t skip = qp->target.tagged.skip;
		rest.payload = skip ? packet->payload + skip : packet->payload;
		rest.payload_length -= skip;
	}
	enum verdict verdict = place_send(qp, &rest);
	if (verdict == EXECUTED && qp->target.open == VB_NO_MESSAGE)
		vb_tags_complete(qp, packet);
	return verdict;
}

/* The RETH opens the message: its whole range is checked once, each packet's part again, for the key may be revoked. */
static enum verdict open_write(struct vb_qp *qp, const struct vb_packet *packet, bool is_only)
{
	struct vb_target *target = &qp->target;
	struct vb_reach reach;
	if (packet->dma_length > VB_MAX_MESSAGE_BYTES)
		return BAD_LENGTH;
	if (is_only ? packet->dma_length != packet->payload_length : packet->dma_length <= packet->payload_length)
		return BAD_LENGTH;
	if (packet->dma_length > 0 && vb_reach_remote(qp->target.pd, qp->qpn, packet->rkey, packet->va, packet->dma_length,
					      VB_ACCESS_REMOTE_WRITE, &reach))
		return BAD_RKEY;
	target->va = packet->va;
	target->rkey = packet->rkey;
	target->write_length = packet->dma_length;
	target->received = 0;
	return EXECUTED;
}

static enum verdict execute_write(struct vb_qp *qp, const struct vb_packet *packet)
{
	struct vb_target *target = &qp->target;
	const struct vb_opcode *row = vb_packet_row(packet);
	bool ends = row->place == VB_LAST || row->place == VB_ONLY;
	struct vb_reach reach = { 0 };

	if (row->has_imm && !vb_recv_take(&qp->target))
		return NOT_READY;
	if (!continues_message(row)) {
		enum verdict verdict = open_write(qp, packet, ends);
		if (verdict != EXECUTED)
			return verdict;
	}
	uint32_t total = target->received + packet->payload_length;
	if (ends ? total != target->write_length : total >= target->write_length)
		return BAD_LENGTH;
	if (packet->payload_length > 0 && vb_reach_remote(qp->target.pd, qp->qpn, target->rkey, target->va + target->received,
						  packet->payload_length, VB_ACCESS_REMOTE_WRITE, &reach))
		return BAD_RKEY;
	vb_place(&reach, packet->payload, packet->payload_length, ends);
	target->received = total;
	target->open = ends ? VB_NO_MESSAGE : VB_MESSAGE_WRITE;
	if (ends)
		vb_count_work(qp, VB_COUNTED_REMOTE_WRITE, VB_WC_SUCCESS, total);
	if (row->has_imm)
		complete_recv(qp, packet, target->write_length, VB_WC_RECV_RDMA_WITH_IMM);
	return EXECUTED;
}

static enum verdict execute_read(struct vb_qp *qp, const struct vb_packet *packet, uint32_t *psn_count)
{
	struct vb_reach reach;
	if (packet->dma_length > VB_MAX_MESSAGE_BYTES)
		return BAD_LENGTH;
	if (!vb_responder_has_room(qp))
		return TOO_MANY_READS;
	if (packet->dma_length > 0 && vb_reach_remote(qp->target.pd, qp->qpn, packet->rkey, packet->va, packet->dma_length,
					      VB_ACCESS_REMOTE_READ, &reach))
		return BAD_RKEY;
	*psn_count = vb_psn_count(qp, packet->dma_length);
	vb_responder_read(qp, packet, *psn_count);
	return EXECUTED;
}

static enum verdict execute_atomic(struct vb_qp *qp, const struct vb_packet *packet)
{
	struct vb_reach reach;
	if (packet->va & 7)
		return BAD_LENGTH; /* misaligned: invalid request. 9.7.4.1.7 */
	if (!vb_responder_has_room(qp))
		return TOO_MANY_READS;
	if (vb_reach_remote(qp->target.pd, qp->qpn, packet->rkey, packet->va, 8, VB_ACCESS_REMOTE_ATOMIC, &reach))
		return BAD_RKEY;
	if (!reach.is_phantom && ((uintptr_t)reach.bytes & 7))
		return BAD_LENGTH; /* aligned for the peer, not for us (a region with its own base) */
	bool is_swap = (packet->opcode & VB_OPERATION_MASK) == VB_CMP_SWAP;
	uint64_t result = is_swap ? vb_atomic_cmp_swap(&reach, packet->compare, packet->swap_add)
				  : vb_atomic_fetch_add(&reach, packet->swap_add);
	vb_responder_atomic(qp, packet, result);
	return EXECUTED;
}

/* One store of eight bytes, once, for a duplicate is answered from memory. Annex A19.4.2. */
static enum verdict execute_atomic_write(struct vb_qp *qp, const struct vb_packet *packet)
{
	struct vb_reach reach;
	if ((packet->va & 7) || packet->dma_length != 8)
		return BAD_LENGTH;
	if (!vb_responder_has_room(qp))
		return TOO_MANY_READS;
	if (vb_reach_remote(qp->target.pd, qp->qpn, packet->rkey, packet->va, 8, VB_ACCESS_REMOTE_WRITE, &reach))
		return BAD_RKEY;
	if (reach.bytes && ((uintptr_t)reach.bytes & 7))
		return BAD_LENGTH; /* as with atomics */
	vb_place(&reach, packet->payload, 8, true);
	vb_responder_done(qp, packet);
	return EXECUTED;
}

/* Everything before it has been executed, so it lies in memory: that others see it takes a fence. That it survives a loss
 * of power we cannot say of any memory. Annex A19.4.1. */
static enum verdict execute_flush(struct vb_qp *qp, const struct vb_packet *packet)
{
	uint32_t type = packet->flush & VB_FETH_TYPE_MASK;
	uint32_t level = packet->flush >> VB_FETH_LEVEL_SHIFT & VB_FETH_LEVEL_MASK;
	struct vb_reach reach;
	if (type == 0 || level > VB_FLUSH_REGION)
		return NOT_PERMITTED;
	if (type & ~(uint32_t)VB_FLUSH_GLOBAL)
		return BAD_RKEY; /* as of a region without that right, which none of ours has */
	if (!vb_responder_has_room(qp))
		return TOO_MANY_READS;
	uint32_t length = level == VB_FLUSH_RANGE ? packet->dma_length : 0;
	if (vb_reach_remote(qp->target.pd, qp->qpn, packet->rkey, packet->va, length, VB_ACCESS_FLUSH_GLOBAL, &reach))
		return BAD_RKEY;
	atomic_thread_fence(memory_order_seq_cst);
	vb_responder_done(qp, packet);
	return EXECUTED;
}

/* Inline for receive_expected: every request comes by. */
__attribute__((always_inline)) static inline enum verdict execute(
	struct vb_qp *qp, const struct vb_packet *packet, uint32_t *psn_count)
{
	const struct vb_opcode *row = vb_packet_row(packet);
	if (!sequence_is_right(&qp->target, row))
		return BAD_SEQUENCE;
	if (!is_permitted(qp, row))
		return NOT_PERMITTED;
	if (!payload_is_right(qp, row, packet))
		return BAD_LENGTH;
	switch ((enum vb_message)row->message) {
	case VB_MESSAGE_SEND:
		return vb_has_tags(qp) ? execute_tagged_send(qp, packet) : execute_send(qp, packet);
	case VB_MESSAGE_WRITE:
		return execute_write(qp, packet);
	case VB_MESSAGE_READ:
		return execute_read(qp, packet, psn_count);
	case VB_MESSAGE_ATOMIC_WRITE:
		return execute_atomic_write(qp, packet);
	case VB_MESSAGE_FLUSH:
		return execute_flush(qp, packet);
	default:
		return execute_atomic(qp, packet);
	}
}

/* ---- Outcomes -------------------------------------------------------------------------------------------------- */

static bool is_answered_by_a_response(const struct vb_opcode *row)
{
	return row->message == VB_MESSAGE_READ || row->message == VB_MESSAGE_ATOMIC ||
	       row->message == VB_MESSAGE_ATOMIC_WRITE || row->message == VB_MESSAGE_FLUSH;
}

static void accept(struct vb_qp *qp, const struct vb_packet *packet, uint32_t psn_count, vb_time now)
{
	struct vb_responder *rs = &qp->responder;
	const struct vb_opcode *row = vb_packet_row(packet);

	assert(packet->psn == rs->expected_psn);
	rs->expected_psn = vb_psn_add(packet->psn, psn_count);
	rs->nak_sent = false;
	qp->requester.is_asked = true;
	qp->lane->answer.is_set = false;
	if (row->place == VB_LAST || row->place == VB_ONLY)
		rs->msn = vb_psn_add(rs->msn, 1);
	rs->ack.packets++;
	rs->ack.bytes += packet->payload_length;
	if (is_answered_by_a_response(row))
		vb_schedule(qp);
	else if (packet->ackreq)
		vb_responder_ack(qp, vb_responder_ack_syndrome(qp), packet->psn, false, now);
}

/* The first packet of a message says which memory it wants. */
static void note_access(struct vb_qp *qp, const struct vb_packet *packet)
{
	const struct vb_opcode *row = vb_packet_row(packet);
	uint32_t length = row->message == VB_MESSAGE_ATOMIC ? 8 : packet->dma_length;
	if (!continues_message(row))
		vb_qp_note_access(qp, (enum vb_message)row->message, packet->va, packet->rkey, length);
}

/* A fatal NAK: the receive in hand completes in error, the NAK leaves although the QP is in ERR by then. */
static void refuse(struct vb_qp *qp, const struct vb_packet *packet, enum verdict verdict, vb_time now)
{
	const struct outcome *outcome = &outcomes[verdict];
	bool has_recv = qp->target.recv != NULL;

	vb_responder_drop_resources(qp);
	if (has_recv) {
		struct vb_wc wc = { .status = outcome->recv_status, .vendor_err = outcome->cause };
		vb_complete_recv(&qp->target, &wc, true);
	} else {
		vb_raise(qp->lane, &qp->notice, outcome->event);
	}
	vb_qp_fail(qp, outcome->cause, outcome->recv_status, now);
	if (verdict == BAD_RKEY)
		note_access(qp, packet);
	vb_responder_refuse(qp, outcome->nak, packet->psn, now);
}

static void conclude(
	struct vb_qp *qp, const struct vb_packet *packet, enum verdict verdict, uint32_t psn_count, vb_time now)
{
	switch (verdict) {
	case EXECUTED:
		accept(qp, packet, psn_count, now);
		break;
	case NOT_READY:
		vb_count(qp->lane, VB_RNR_SENT, 1);
		qp->responder.nak_sent = true;
		vb_responder_ack(qp, VB_AETH_RNR | (qp->attr.min_rnr_timer & 31), packet->psn, true, now);
		break;
	default:
		/* Answers to what came before go first; the peer asks again. */
		if (qp->responder.active_resources > 0) {
			qp->responder.verdict = (uint8_t)verdict;
			vb_count(qp->lane, VB_DROP_OUT_OF_ORDER, 1);
			break;
		}
		refuse(qp, packet, verdict, now);
		break;
	}
}

static void receive_expected(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	uint32_t psn_count = 1;
	enum verdict verdict = (enum verdict)qp->responder.verdict;

	if (verdict == EXECUTED)
		verdict = execute(qp, packet, &psn_count);
	if (!vb_is_condemned(qp)) /* else its program never hears of it, and so the peer does not */
		conclude(qp, packet, verdict, psn_count, now);
}

static void receive_ahead(struct vb_qp *qp, vb_time now)
{
	struct vb_responder *rs = &qp->responder;
	vb_count(qp->lane, VB_OUT_OF_ORDER, 1);
	if (rs->nak_sent) {
		vb_count(qp->lane, VB_DROP_OUT_OF_ORDER, 1);
		return;
	}
	rs->nak_sent = true;
	vb_count(qp->lane, VB_NAK_SENT, 1);
	vb_responder_ack(qp, VB_NAK_PSN_SEQUENCE, rs->expected_psn, true, now);
}

/* What the refusal says, it says of every request up to it, unless that one waits for a response of its own: of such, a
 * READ that the refusal cut short is refused where it begins. */
bool vb_responder_refuse_again(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	struct vb_responder *rs = &qp->responder;
	const struct vb_opcode *row = vb_packet_row(packet);
	int32_t ahead = vb_psn_diff(packet->psn, rs->refusal_psn);

	if (!rs->refusal || row->is_response || row->message == VB_MESSAGE_CNP || ahead > 0)
		return false;
	if (ahead < 0 && is_answered_by_a_response(row)) {
		if (row->message != VB_MESSAGE_READ || packet->dma_length > VB_MAX_MESSAGE_BYTES ||
			(uint32_t)-ahead >= vb_psn_count(qp, packet->dma_length))
			return false;
		rs->refusal_psn = packet->psn;
	}
	vb_count(qp->lane, VB_DUPLICATES, 1);
	vb_responder_refuse(qp, rs->refusal, rs->refusal_psn, now);
	return true;
}

void vb_responder_receive(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	struct vb_responder *rs = &qp->responder;
	enum vb_qp_state state = vb_state(qp);

	if (state != VB_QPS_RTR && state != VB_QPS_RTS && state != VB_QPS_SQD) {
		vb_count(qp->lane, VB_DROP_QP_STATE, 1);
		return;
	}
	if (state == VB_QPS_RTR && !rs->comm_established) {
		rs->comm_established = true;
		vb_raise(qp->lane, &qp->notice, VB_EVENT_COMM_EST);
	}
	int32_t ahead = vb_psn_diff(packet->psn, rs->expected_psn);
	if (ahead == 0)
		receive_expected(qp, packet, now);
	else if (ahead > 0)
		receive_ahead(qp, now);
	else
		vb_responder_duplicate(qp, packet, now);
}

/* The SRQ that the request names is looked up when it is the request's turn: a duplicate may name one that is gone. */
void vb_responder_receive_xrc(struct vb_qp *qp, const struct vb_packet *packet, vb_time now)
{
	if (packet->psn == qp->responder.expected_psn && !vb_xrc_turn_to(qp, packet->xrc_srqn))
		conclude(qp, packet, BAD_SRQ, 0, now);
	else
		vb_responder_receive(qp, packet, now);
}

void vb_responder_check(const struct vb_qp *qp)
{
	const struct vb_target *target = &qp->target;
	if (target->recv && target->srq)
		assert(target->recv == target->srq_copy);
	else if (target->recv)
		assert(target->recv == vb_recv_ring_peek(&qp->rq));
	if (target->open == VB_MESSAGE_SEND && target->recv)
		assert(target->received <= target->recv->length);
	if (target->open == VB_MESSAGE_WRITE)
		assert(target->received < target->write_length);
}
