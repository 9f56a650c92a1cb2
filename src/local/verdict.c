/* Same host, the responder: how requests are answered.
 * Holds: each request of a connection is answered, or its sender would wait for ever; an answer of its own is said
 * before anything more is executed.
 * Not here: which requests are executed (receive.c), when answers leave (pending.c). */
#include <stdlib.h>
#include "base/copy.h"
#include "base/invariant.h"
#include "core/execute.h"
#include "core/lane.h"
#include "local/receive.h"
#include "core/memory.h"
#include "core/qp.h"
#include "core/responder.h"
#include "core/xrc.h"

/* ---- Answers ----------------------------------------------------------------------------------------------------- */

struct vb_answer vb_local_answer_to(const struct vb_descriptor *descriptor, enum vb_answer_kind kind, uint8_t code)
{
	return (struct vb_answer){ .dest_qpn = descriptor->src_qpn & VB_QPN_MASK,
		.src_qpn = descriptor->dest_qpn & VB_QPN_MASK,
		.psn = descriptor->psn,
		.kind = (uint8_t)kind,
		.code = code };
}

void vb_local_say(struct vb_local_peer *peer, const struct vb_answer *answer)
{
	assert(!peer->has_pending);
	peer->pending = *answer;
	peer->has_pending = true;
}

void vb_local_say_absent(struct vb_local_peer *peer, const struct vb_descriptor *descriptor)
{
	struct vb_answer answer = vb_local_answer_to(descriptor, VB_ANSWER_ABSENT, 0);
	vb_local_say(peer, &answer);
}

void vb_local_say_of(struct vb_local_peer *peer, struct vb_qp *qp, const struct vb_answer *answer)
{
	if (answer->kind != VB_ANSWER_ABSENT) {
		vb_list_remove(&qp->local->ack->link);
		qp->local->ack->is_carried = false;
	}
	vb_local_say(peer, answer);
}

void vb_local_owe(const struct vb_local_call *call)
{
	struct vb_pending_ack *ack = call->qp->local->ack;
	assert(ack && !ack->is_orphan);
	ack->to = call->peer;
	ack->dest_qpn = call->descriptor->src_qpn;
	ack->src_qpn = call->descriptor->dest_qpn;
	ack->psn = call->descriptor->psn;
	if (!vb_list_linked(&ack->link)) {
		vb_list_add_tail(&call->peer->pending_acks, &ack->link);
		ack->is_awaited = false;
	}
	ack->is_awaited |= !(call->descriptor->flags & VB_LOCAL_UNAWAITED);
	ack->is_carried = ack->goes_alone = false;
	assert(vb_list_linked(&ack->link));
}

/* A pending ack to an earlier local peer is left with that local peer. */
bool vb_local_may_owe(const struct vb_local_peer *peer, struct vb_qp *qp)
{
	struct vb_pending_ack *ack = qp->local->ack;
	if (ack && vb_list_linked(&ack->link) && ack->to != peer) {
		ack->is_orphan = true;
		qp->local->ack = NULL;
	}
	if (qp->local->ack)
		return true;
	ack = qp->local->ack = calloc(1, sizeof(*ack));
	if (ack)
		vb_list_init(&ack->link);
	assert(qp->local->ack == ack);
	return ack;
}

/* ---- Refusals ---------------------------------------------------------------------------------------------------- */

static void refuse(struct vb_local_call *call, enum vb_verdict verdict)
{
	struct vb_qp *qp = call->qp;
	struct vb_answer answer = vb_local_answer_to(call->descriptor, VB_ANSWER_REFUSED, vb_outcomes[verdict].nak);
	assert(verdict != VB_EXECUTED && verdict != VB_NOT_READY);
	vb_execute_refusal(&qp->target, &call->request, verdict, call->now);
	vb_count(qp->lane, VB_NAK_SENT, 1);
	vb_local_say_of(call->peer, qp, &answer);
}

/* ---- READs ------------------------------------------------------------------------------------------------------- */

/* Only to a peer that can pull, if the holder lends and closed keys are counted. */
static bool is_to_be_lent(
	const struct vb_local_call *call, const struct vb_epochs *epochs, const struct vb_reach *range)
{
	bool can_pull = (call->descriptor->flags & (VB_LOCAL_PULLS | VB_LOCAL_AGAIN)) == VB_LOCAL_PULLS;
	return can_pull && call->peer->lend_from && epochs && !range->kind && call->descriptor->length > 0;
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

/* The key is looked up after its removals were read. If they are the same once the bytes have been pulled, the key was
 * open until then. */
static enum vb_verdict read_range(struct vb_local_call *call, const struct vb_pd *pd, struct vb_answer *answer)
{
	const struct vb_descriptor *descriptor = call->descriptor;
	struct vb_epochs *epochs = pd->nic->keys.epochs;
	struct vb_reach range = { 0 };
	uint32_t removals = epochs ? atomic_load(&epochs->removals[vb_epochs_place(descriptor->rkey)]) : 0;
	*answer = vb_local_answer_to(descriptor, VB_ANSWER_READ, 0);
	answer->length = descriptor->length;
	if (descriptor->length > 0 && vb_reach_remote(pd, call->qp->qpn, descriptor->rkey, descriptor->va,
					      descriptor->length, VB_ACCESS_REMOTE_READ, &range))
		return VB_BAD_RKEY;
	if (is_to_be_lent(call, epochs, &range)) {
		answer->kind = VB_ANSWER_LENT;
		answer->segment = vb_reach_segment(&range);
		call->peer->lent_bytes += descriptor->length;
		answer->address = (uintptr_t)range.bytes;
		answer->removals = removals;
	} else if (!put_bytes(answer, &range, call->room)) {
		answer->kind = VB_ANSWER_IN_PARTS;
	}
	if (answer->kind != VB_ANSWER_IN_PARTS)
		vb_count(call->qp->lane, VB_TX_BYTES, descriptor->length);
	return VB_EXECUTED;
}

static enum vb_verdict judge_again(struct vb_local_call *call, struct vb_answer *answer)
{
	struct vb_qp *qp = call->qp;
	const struct vb_pd *pd =
		qp->type == VB_QP_XRC_RECV ? vb_xrc_domain(qp, call->descriptor->srqn & VB_SRQN_MASK) : qp->target.pd;
	if (!pd)
		return VB_BAD_SRQ;
	if (!(qp->attr.access & VB_ACCESS_REMOTE_READ))
		return VB_NOT_PERMITTED;
	return call->descriptor->length <= VB_LOCAL_PART ? read_range(call, pd, answer) : VB_BAD_LENGTH;
}

void vb_local_read_again(struct vb_local_call *call)
{
	struct vb_answer answer;
	enum vb_verdict verdict = judge_again(call, &answer);
	if (vb_is_failing(call->qp)) {
		vb_local_say_absent(call->peer, call->descriptor);
	} else if (verdict != VB_EXECUTED) {
		refuse(call, verdict);
	} else if (call->descriptor->flags & VB_LOCAL_PULLS) { /* its key is there still, the memory is not */
		answer = vb_local_answer_to(call->descriptor, VB_ANSWER_REFUSED, VB_NAK_REMOTE_OPERATION);
		vb_qp_fail_read(call->qp, call->descriptor->psn, VB_CAUSE_LOCAL_FAULT, call->now);
		vb_local_say_of(call->peer, call->qp, &answer);
	} else {
		vb_local_say(call->peer, &answer);
	}
}

/* ---- Verdicts ---------------------------------------------------------------------------------------------------- */

static void accept(struct vb_qp *qp, const struct vb_descriptor *descriptor)
{
	struct vb_responder *rs = &qp->responder;
	assert(descriptor->psn == rs->expected_psn);
	rs->expected_psn = vb_psn_add(descriptor->psn, 1);
	rs->nak_sent = false;
	vb_requester_note_asked(qp, &vb_opcodes[descriptor->opcode]);
	if (vb_ends_message(&vb_opcodes[descriptor->opcode]))
		rs->msn = vb_psn_add(rs->msn, 1);
}

/* Some requests have an answer of their own; one answer is owed for the others together. */
static void answer_executed(struct vb_local_call *call)
{
	uint8_t message = call->request.row->message;
	struct vb_answer answer;
	if (message == VB_MESSAGE_ATOMIC) {
		answer = vb_local_answer_to(call->descriptor, VB_ANSWER_VALUE, 0);
		answer.value = call->before;
		vb_local_say_of(call->peer, call->qp, &answer);
	} else if (message != VB_MESSAGE_READ) {
		vb_local_owe(call);
	} else if (read_range(call, call->qp->target.pd, &answer) == VB_EXECUTED) {
		vb_local_say_of(call->peer, call->qp, &answer);
	} else { /* its key was open a moment ago */
		refuse(call, VB_BAD_RKEY);
	}
}

void vb_local_end_request(struct vb_local_call *call, enum vb_verdict verdict)
{
	struct vb_qp *qp = call->qp;
	struct vb_answer answer;
	if (qp->type == VB_QP_UC) {
		vb_uc_conclude(qp, &call->request, verdict, call->now);
		vb_local_owe(call);
		return;
	}
	if (vb_is_failing(qp)) { /* its program never hears of it, and so the peer does not */
		vb_local_say_absent(call->peer, call->descriptor);
		return;
	}
	switch (verdict) {
	case VB_EXECUTED:
		accept(qp, call->descriptor);
		answer_executed(call);
		break;
	case VB_NOT_READY:
		vb_count(qp->lane, VB_RNR_SENT, 1);
		answer = vb_local_answer_to(call->descriptor, VB_ANSWER_NOT_READY, qp->attr.min_rnr_timer & 31);
		vb_local_say_of(call->peer, qp, &answer);
		break;
	default:
		refuse(call, verdict);
		break;
	}
}
