/* Same host, the responder: what neighbours ask, executed, and how it is answered.
 * Holds: descriptors execute in PSN order, each once; one that fails a check has touched no memory; each that is for a
 * connection is answered, or those who asked would wait for ever.
 * Not here: what a request does (execute.c), payload that is lent (local_pull.c), when answers leave (local_send.c). */
#include <stdlib.h>
#include "base/copy.h"
#include "base/invariant.h"
#include "engine/execute.h"
#include "engine/lane.h"
#include "engine/local.h"
#include "engine/local_receive.h"
#include "engine/memory.h"
#include "engine/peers.h"
#include "engine/qp.h"
#include "engine/responder.h"
#include "engine/uc.h"
#include "engine/xrc.h"

/* ---- Answers --------------------------------------------------------------------------------------------------- */

struct vb_answer vb_local_answer_to(const struct vb_descriptor *request, enum vb_answer_kind kind, uint8_t code)
{
	return (struct vb_answer){ .dest_qpn = request->src_qpn & VB_QPN_MASK,
		.src_qpn = request->dest_qpn & VB_QPN_MASK,
		.psn = request->psn,
		.kind = (uint8_t)kind,
		.code = code };
}

/* Said with the next room there is; nothing more is executed before. */
static void say(struct vb_neighbour *neighbour, const struct vb_answer *answer)
{
	neighbour->pending = *answer;
	neighbour->has_pending = true;
}

static void say_absent(struct vb_neighbour *neighbour, const struct vb_descriptor *request)
{
	struct vb_answer answer = vb_local_answer_to(request, VB_ANSWER_ABSENT, 0);
	say(neighbour, &answer);
}

void vb_local_say_of(struct vb_neighbour *neighbour, struct vb_qp *qp, const struct vb_answer *answer)
{
	if (answer->kind != VB_ANSWER_ABSENT)
		vb_list_remove(&qp->local.debt->link);
	say(neighbour, answer);
}

/* With others of the same QP, or with its next descriptor. */
static void owe(struct vb_neighbour *neighbour, struct vb_qp *qp, const struct vb_descriptor *request)
{
	struct vb_debt *debt = qp->local.debt;
	debt->to = neighbour;
	debt->dest_qpn = request->src_qpn;
	debt->src_qpn = request->dest_qpn;
	debt->psn = request->psn;
	if (!vb_list_linked(&debt->link))
		vb_list_add_tail(&neighbour->debts, &debt->link);
}

/* One to a neighbour that the QP had before stays his. */
static bool may_owe(const struct vb_neighbour *neighbour, struct vb_qp *qp)
{
	struct vb_debt *debt = qp->local.debt;
	if (debt && vb_list_linked(&debt->link) && debt->to != neighbour) {
		debt->is_orphan = true;
		qp->local.debt = NULL;
	}
	if (qp->local.debt)
		return true;
	debt = qp->local.debt = calloc(1, sizeof(*debt));
	if (debt)
		vb_list_init(&debt->link);
	return debt;
}

/* ---- Descriptors as packets ------------------------------------------------------------------------------------ */

static bool carries_payload(const struct vb_opcode *row)
{
	return row->message == VB_MESSAGE_SEND || row->message == VB_MESSAGE_WRITE ||
	       row->message == VB_MESSAGE_ATOMIC_WRITE;
}

/* Is the payload where it can be? The other end may say anything. */
static bool place_is_right(const struct vb_descriptor *request, const struct vb_local_heap *heap)
{
	const struct vb_opcode *row = &vb_opcodes[request->opcode];
	if (row->message == VB_MESSAGE_READ)
		return request->length <= VB_LOCAL_PART ||
		       ((request->flags & VB_LOCAL_PULLS) && request->length <= VB_MAX_MESSAGE_BYTES);
	if (!carries_payload(row))
		return true;
	if (row->message == VB_MESSAGE_ATOMIC_WRITE && (request->length != 8 || request->place == VB_LOCAL_LENT))
		return false;
	switch ((enum vb_local_place)request->place) {
	case VB_LOCAL_NOWHERE:
		return request->length <= VB_LOCAL_PART;
	case VB_LOCAL_INLINED:
		return request->length <= VB_LOCAL_INLINE;
	case VB_LOCAL_HEAPED:
		return request->length <= VB_LOCAL_PART && (uint64_t)request->heap.at + request->length <= heap->length;
	case VB_LOCAL_LENT:
		return row->place == VB_ONLY && vb_local_is_lendable_length(request->length);
	}
	return false;
}

static const uint8_t *payload_of(const struct vb_descriptor *request, const struct vb_local_heap *heap)
{
	if (request->place == VB_LOCAL_INLINED)
		return request->bytes;
	return request->place == VB_LOCAL_HEAPED ? heap->bytes + request->heap.at : NULL;
}

/* Of an Only the range is what it carries; a First says how long its message is. */
static uint32_t range_of(const struct vb_descriptor *request, const struct vb_opcode *row)
{
	return row->place == VB_FIRST ? request->heap.total : request->length;
}

/* Field by field into its place: what is put together elsewhere and copied at once waits for its own stores. */
void vb_local_to_packet(struct vb_packet *packet, const struct vb_descriptor *request, const struct vb_local_heap *heap)
{
	const struct vb_opcode *row = &vb_opcodes[request->opcode];
	bool has_payload = carries_payload(row);
	memset(packet, 0, sizeof(*packet));
	packet->opcode = request->opcode;
	packet->solicited = request->flags & VB_LOCAL_SOLICITED;
	packet->dest_qpn = request->dest_qpn;
	packet->psn = request->psn;
	packet->va = request->va;
	packet->rkey = request->rkey;
	packet->payload_length = has_payload ? request->length : 0;
	packet->payload = has_payload ? payload_of(request, heap) : NULL;
	if (row->message == VB_MESSAGE_ATOMIC) {
		packet->swap_add = request->atomic.swap_add;
		packet->compare = request->atomic.compare;
		return;
	}
	packet->dma_length = range_of(request, row);
	packet->imm = row->has_imm ? request->imm_or_inv : 0;
	packet->inv_rkey = row->has_inv ? request->imm_or_inv : 0;
	packet->flush = request->imm_or_inv;
}

/* ---- Verdicts -------------------------------------------------------------------------------------------------- */

static void refuse(struct vb_neighbour *neighbour, struct vb_qp *qp, const struct vb_descriptor *request,
	const struct vb_packet *packet, enum vb_verdict verdict, vb_time now)
{
	struct vb_answer answer = vb_local_answer_to(request, VB_ANSWER_REFUSED, vb_outcomes[verdict].nak);
	vb_responder_drop_resources(qp);
	vb_execute_refusal(&qp->target, packet, verdict, now);
	vb_count(qp->lane, VB_NAK_SENT, 1);
	vb_local_say_of(neighbour, qp, &answer);
}

/* ---- READs ----------------------------------------------------------------------------------------------------- */

/* To who can pull, if the holder lets him and closed keys are counted. */
static bool is_to_be_lent(const struct vb_neighbour *neighbour, const struct vb_descriptor *request,
	const struct vb_lives *lives, const struct vb_reach *range)
{
	bool can_pull = (request->flags & (VB_LOCAL_PULLS | VB_LOCAL_AGAIN)) == VB_LOCAL_PULLS;
	return can_pull && neighbour->lend_from && lives && !range->kind && request->length > 0;
}

/* Into the answer, or the heap. False: there is no room. */
static bool put_bytes(struct vb_answer *answer, const struct vb_reach *range, struct vb_local_room *room)
{
	bool is_short = answer->length <= sizeof(answer->bytes);
	if (answer->length > VB_LOCAL_PART || (!is_short && answer->length > vb_local_heap_left(room)))
		return false;
	answer->at = room->heap_at + room->heap_used;
	if (answer->length == 0)
		return true;
	const void *bytes = vb_load(range, answer->length);
	if (!bytes) {
		answer->at = VB_LOCAL_NO_BYTES;
		return true;
	}
	vb_copy(is_short ? answer->bytes : room->heap + room->heap_used, bytes, answer->length);
	if (!is_short)
		vb_local_use_heap(room, answer->length);
	return true;
}

/* The key is found open after its removals were read: if they are the same when the bytes have been pulled, it was
 * then. */
static enum vb_verdict read_range(struct vb_neighbour *neighbour, const struct vb_qp *qp, const struct vb_pd *pd,
	const struct vb_descriptor *request, struct vb_local_room *room, struct vb_answer *answer)
{
	struct vb_lives *lives = pd->nic->keys.lives;
	struct vb_reach range = { 0 };
	uint32_t removals = lives ? atomic_load(&lives->removals[vb_lives_place(request->rkey)]) : 0;
	*answer = vb_local_answer_to(request, VB_ANSWER_READ, 0);
	answer->length = request->length;
	if (request->length > 0 && vb_reach_remote(pd, qp->qpn, request->rkey, request->va, request->length,
					   VB_ACCESS_REMOTE_READ, &range))
		return VB_BAD_RKEY;
	if (is_to_be_lent(neighbour, request, lives, &range)) {
		answer->kind = VB_ANSWER_LENT;
		answer->segment = vb_reach_segment(&range);
		neighbour->lent_bytes += request->length;
		answer->address = (uintptr_t)range.bytes;
		answer->removals = removals;
	} else if (!put_bytes(answer, &range, room)) {
		answer->kind = VB_ANSWER_IN_PARTS;
	}
	if (answer->kind != VB_ANSWER_IN_PARTS)
		vb_count(qp->lane, VB_TX_BYTES, request->length);
	return VB_EXECUTED;
}

/* Of one that was executed, and lent. Its answer says nothing of others. */
static void read_again(struct vb_neighbour *neighbour, struct vb_qp *qp, const struct vb_descriptor *request,
	struct vb_local_room *room, vb_time now)
{
	const struct vb_pd *pd =
		qp->type == VB_QP_XRC_RECV ? vb_xrc_domain(qp, request->srqn & VB_SRQN_MASK) : qp->target.pd;
	struct vb_answer answer;
	struct vb_packet packet;
	enum vb_verdict verdict = VB_BAD_LENGTH;
	if (!pd)
		verdict = VB_BAD_SRQ;
	else if (!(qp->attr.access & VB_ACCESS_REMOTE_READ))
		verdict = VB_NOT_PERMITTED;
	else if (request->length <= VB_LOCAL_PART)
		verdict = read_range(neighbour, qp, pd, request, room, &answer);
	if (vb_is_condemned(qp)) {
		say_absent(neighbour, request);
	} else if (verdict != VB_EXECUTED) {
		vb_local_to_packet(&packet, request, NULL);
		refuse(neighbour, qp, request, &packet, verdict, now);
	} else if (request->flags & VB_LOCAL_PULLS) { /* its key is there still, the memory is not */
		answer = vb_local_answer_to(request, VB_ANSWER_REFUSED, VB_NAK_REMOTE_OPERATION);
		vb_responder_fail_read(qp, request->psn, VB_CAUSE_LOCAL_FAULT, now);
		vb_local_say_of(neighbour, qp, &answer);
	} else {
		say(neighbour, &answer);
	}
}

/* ---- What becomes of requests ---------------------------------------------------------------------------------- */

static void accept(struct vb_qp *qp, const struct vb_descriptor *request)
{
	struct vb_responder *rs = &qp->responder;
	const struct vb_opcode *row = &vb_opcodes[request->opcode];
	assert(request->psn == rs->expected_psn);
	rs->expected_psn = vb_psn_add(request->psn, 1);
	rs->nak_sent = false;
	qp->requester.is_asked = true;
	if (row->place == VB_LAST || row->place == VB_ONLY)
		rs->msn = vb_psn_add(rs->msn, 1);
}

/* What has an answer of its own gets it; the others are owed one together. */
static void answer_executed(struct vb_neighbour *neighbour, struct vb_qp *qp, const struct vb_descriptor *request,
	const struct vb_packet *packet, struct vb_local_room *room, uint64_t before, vb_time now)
{
	uint8_t message = vb_opcodes[request->opcode].message;
	struct vb_answer answer;
	if (message == VB_MESSAGE_ATOMIC) {
		answer = vb_local_answer_to(request, VB_ANSWER_VALUE, 0);
		answer.value = before;
		vb_local_say_of(neighbour, qp, &answer);
	} else if (message != VB_MESSAGE_READ) {
		owe(neighbour, qp, request);
	} else if (read_range(neighbour, qp, qp->target.pd, request, room, &answer) == VB_EXECUTED) {
		vb_local_say_of(neighbour, qp, &answer);
	} else { /* its key was open a moment ago */
		refuse(neighbour, qp, request, packet, VB_BAD_RKEY, now);
	}
}

void vb_local_end_request(struct vb_neighbour *neighbour, struct vb_qp *qp, const struct vb_descriptor *request,
	const struct vb_packet *packet, enum vb_verdict verdict, struct vb_local_room *room, uint64_t before,
	vb_time now)
{
	struct vb_answer answer;
	if (qp->type == VB_QP_UC) {
		vb_uc_conclude(qp, packet, verdict, now);
		owe(neighbour, qp, request);
		return;
	}
	if (vb_is_condemned(qp)) { /* its program never hears of it, and so the peer does not */
		say_absent(neighbour, request);
		return;
	}
	switch (verdict) {
	case VB_EXECUTED:
		accept(qp, request);
		answer_executed(neighbour, qp, request, packet, room, before, now);
		break;
	case VB_NOT_READY:
		vb_count(qp->lane, VB_RNR_SENT, 1);
		answer = vb_local_answer_to(request, VB_ANSWER_NOT_READY, qp->attr.min_rnr_timer & 31);
		vb_local_say_of(neighbour, qp, &answer);
		break;
	default:
		refuse(neighbour, qp, request, packet, verdict, now);
		break;
	}
}

/* ---- Requests -------------------------------------------------------------------------------------------------- */

static bool is_request(const struct vb_opcode *row)
{
	return row->message >= VB_MESSAGE_SEND && row->message <= VB_MESSAGE_ATOMIC_WRITE;
}

/* NULL: there is no QP for it. */
static struct vb_qp *find_target(struct vb_neighbour *neighbour, const struct vb_descriptor *request)
{
	struct vb_qp *qp = vb_lane_find_qp(neighbour->lane, request->dest_qpn);
	if (!qp) {
		vb_count(neighbour->lane, VB_DROP_BAD_QPN, 1);
		return NULL;
	}
	bool is_connected = qp->type == VB_QP_RC || qp->type == VB_QP_UC || qp->type == VB_QP_XRC_RECV;
	if (!is_connected || (request->opcode & ~VB_OPERATION_MASK) != qp->transport ||
		!is_request(&vb_opcodes[request->opcode])) {
		vb_count(neighbour->lane, VB_DROP_TRANSPORT, 1);
		return NULL;
	}
	if (vb_state(qp) < VB_QPS_RTR || vb_state(qp) == VB_QPS_ERR) {
		vb_count(neighbour->lane, VB_DROP_QP_STATE, 1);
		return NULL;
	}
	if (!qp->peer || qp->peer->neighbour != neighbour || qp->attr.dest_qpn != request->src_qpn) {
		vb_count(neighbour->lane, VB_DROP_ADDRESS, 1);
		return NULL;
	}
	return may_owe(neighbour, qp) ? qp : NULL;
}

/* What continues a message is of the one that is open; else what is a descriptor's own is wrong. */
static enum vb_verdict judge(struct vb_qp *qp, const struct vb_descriptor *request, const struct vb_packet *packet,
	const struct vb_local_heap *heap, uint64_t *before)
{
	const struct vb_opcode *row = vb_packet_row(packet);
	if (qp->type == VB_QP_XRC_RECV && !vb_xrc_turn_to(qp, request->srqn & VB_SRQN_MASK))
		return VB_BAD_SRQ;
	if (qp->is_reliable && !vb_target_expects(&qp->target, row))
		return VB_BAD_SEQUENCE;
	if (!place_is_right(request, heap))
		return VB_BAD_LENGTH;
	if (vb_is_answered_by_a_response(row) && qp->attr.max_dest_rd_atomic == 0)
		return VB_TOO_MANY_READS;
	return request->place == VB_LOCAL_LENT && carries_payload(row) ? VB_EXECUTED
								       : vb_execute(&qp->target, packet, before);
}

static bool is_again(const struct vb_descriptor *request)
{
	return vb_opcodes[request->opcode].message == VB_MESSAGE_READ && (request->flags & VB_LOCAL_AGAIN);
}

static void receive_one(struct vb_neighbour *neighbour, const struct vb_descriptor *request,
	const struct vb_local_heap *heap, struct vb_local_room *room, vb_time now)
{
	if ((request->opcode & ~VB_OPERATION_MASK) == VB_UD) {
		vb_local_receive_datagram(neighbour, request, heap);
		return;
	}
	struct vb_qp *qp = find_target(neighbour, request);
	struct vb_packet packet;
	uint64_t before = 0;
	if (!qp) {
		say_absent(neighbour, request);
		return;
	}
	qp->requester.heard_at = now;
	qp->requester.was_heard = true;
	if ((request->flags & VB_LOCAL_ACKED) && qp->local.to == neighbour)
		vb_local_acked(qp, request->acked, now);
	vb_responder_establish(qp);
	if (is_again(request)) {
		read_again(neighbour, qp, request, room, now);
		return;
	}
	vb_local_to_packet(&packet, request, heap);
	if (qp->type == VB_QP_UC && !vb_uc_expects(qp, &packet)) {
		owe(neighbour, qp, request);
		return;
	}
	if (qp->type != VB_QP_UC && request->psn != qp->responder.expected_psn) {
		vb_count(qp->lane, VB_DROP_OUT_OF_ORDER, 1);
		say_absent(neighbour, request);
		return;
	}
	if (vb_local_would_overtake(qp, request)) {
		struct vb_answer answer = vb_local_answer_to(request, VB_ANSWER_LATER, 0);
		vb_local_say_of(neighbour, qp, &answer);
		return;
	}
	enum vb_verdict verdict = judge(qp, request, &packet, heap, &before);
	bool is_lent = carries_payload(vb_packet_row(&packet)) && request->place == VB_LOCAL_LENT;
	if (verdict == VB_EXECUTED && is_lent)
		vb_local_begin_pull(neighbour, qp, request, &packet, room, now);
	else
		vb_local_end_request(neighbour, qp, request, &packet, verdict, room, before, now);
}

void vb_local_take_one(struct vb_neighbour *neighbour, const struct vb_descriptor *request,
	const struct vb_local_heap *heap, struct vb_local_room *room, vb_time now)
{
	neighbour->is_held = false;
	vb_count(neighbour->lane, VB_RX_PACKETS, 1);
	vb_count(neighbour->lane, VB_RX_BYTES, request->place == VB_LOCAL_NOWHERE ? 0 : request->length);
	receive_one(neighbour, request, heap, room, now);
	vb_lane_reap(neighbour->lane);
}

/* An answer of its own is put away at once, so that there is room for it is known before; who can pull may ask
 * again. */
static bool may_take(
	struct vb_neighbour *neighbour, const struct vb_local_room *room, const struct vb_descriptor *request)
{
	if (neighbour->puller || neighbour->is_lost || room->answer_count == room->answer_max ||
		vb_local_is_held(neighbour, request))
		return false;
	bool needs_heap = vb_opcodes[request->opcode].message == VB_MESSAGE_READ && request->length <= VB_LOCAL_PART &&
			  !(request->flags & VB_LOCAL_PULLS);
	return !needs_heap || vb_local_heap_left(room) >= request->length;
}

unsigned vb_local_receive(struct vb_neighbour *neighbour, const struct vb_descriptor *descriptors, unsigned n,
	const struct vb_local_heap *heap, struct vb_local_room *room, vb_time now)
{
	unsigned taken = 0;
	neighbour->lane->now = now;
	neighbour->lane->is_marked = false;
	while (vb_local_tell_pending(neighbour, room) && taken < n && may_take(neighbour, room, &descriptors[taken])) {
		vb_local_take_one(neighbour, &descriptors[taken++], heap, room, now);
		if (neighbour->puller)
			vb_local_foresee(neighbour, &descriptors[taken], n - taken);
	}
	return taken;
}
