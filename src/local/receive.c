/* Same host, the responder: executes the requests of local peers.
 * Holds: descriptors execute in PSN order, each once; one that fails a check has touched no memory.
 * Not here: what a request does (execute.c), how it is answered (verdict.c), payload that is lent
 * (pull.c). */
#include "base/invariant.h"
#include "core/execute.h"
#include "core/lane.h"
#include "local/receive.h"
#include "core/peers.h"
#include "core/qp.h"
#include "core/responder.h"
#include "core/xrc.h"

/* ---- Requests ---------------------------------------------------------------------------------------------------- */

static bool is_request(const struct vb_opcode *row)
{
	return row->message >= VB_MESSAGE_SEND && row->message <= VB_MESSAGE_ATOMIC_WRITE;
}

/* NULL: there is no QP for it. */
static struct vb_qp *find_target(struct vb_local_peer *peer, const struct vb_descriptor *descriptor)
{
	struct vb_qp *qp = vb_lane_find_qp(peer->lane, descriptor->dest_qpn);
	if (!qp) {
		vb_count(peer->lane, VB_DROP_BAD_QPN, 1);
		return NULL;
	}
	bool is_connected = qp->type == VB_QP_RC || qp->type == VB_QP_UC || qp->type == VB_QP_XRC_RECV;
	if (!is_connected || (descriptor->opcode & ~VB_OPERATION_MASK) != qp->service ||
		!is_request(&vb_opcodes[descriptor->opcode])) {
		vb_count(peer->lane, VB_DROP_TRANSPORT, 1);
		return NULL;
	}
	if (vb_state(qp) < VB_QPS_RTR || vb_state(qp) == VB_QPS_ERR) {
		vb_count(peer->lane, VB_DROP_QP_STATE, 1);
		return NULL;
	}
	bool is_from_peer = qp->peer && qp->peer->local_peer == peer && qp->attr.dest_qpn == descriptor->src_qpn;
	/* A message from where the peer was before (SQD allows a new address) is pulled to its end. */
	bool pulls_from_another = qp->local->pulls && qp->local->pulls != peer;
	if (!is_from_peer || pulls_from_another) {
		vb_count(peer->lane, VB_DROP_ADDRESS, 1);
		return NULL;
	}
	return vb_local_may_owe(peer, qp) ? qp : NULL;
}

static bool is_lent(const struct vb_local_call *call)
{
	return call->descriptor->place == VB_LOCAL_LENT && vb_local_carries_payload(call->request.row);
}

/* A part that continues a message must be of the open one; then the descriptor's own fields are checked. */
static enum vb_verdict judge(struct vb_local_call *call, const struct vb_local_heap *heap)
{
	const struct vb_opcode *row = call->request.row;
	struct vb_qp *qp = call->qp;
	if (qp->type == VB_QP_XRC_RECV && !vb_xrc_turn_to(qp, call->descriptor->srqn & VB_SRQN_MASK))
		return VB_BAD_SRQ;
	if (qp->is_reliable && !vb_target_expects(&qp->target, row))
		return VB_BAD_SEQUENCE;
	if (!vb_local_place_is_right(call->descriptor, heap))
		return VB_BAD_LENGTH;
	if (vb_is_answered_by_a_response(row) && qp->attr.max_dest_rd_atomic == 0)
		return VB_TOO_MANY_READS;
	return is_lent(call) ? VB_EXECUTED : vb_execute(&qp->target, &call->request, &call->before);
}

static bool is_again(const struct vb_descriptor *descriptor)
{
	return vb_opcodes[descriptor->opcode].message == VB_MESSAGE_READ && (descriptor->flags & VB_LOCAL_AGAIN);
}

/* True: it is the next one. Else it has been answered, if it is to be. */
static bool is_its_turn(struct vb_local_call *call)
{
	const struct vb_descriptor *descriptor = call->descriptor;
	struct vb_qp *qp = call->qp;
	if (qp->type == VB_QP_UC && !vb_uc_expects(qp, descriptor->psn, call->request.row)) {
		vb_local_owe(call);
		return false;
	}
	if (qp->type != VB_QP_UC && descriptor->psn != qp->responder.expected_psn) {
		vb_count(qp->lane, VB_DROP_OUT_OF_ORDER, 1);
		vb_local_say_absent(call->peer, descriptor);
		return false;
	}
	if (vb_local_would_overtake(qp, descriptor)) {
		struct vb_answer answer = vb_local_answer_to(descriptor, VB_ANSWER_LATER, 0);
		vb_local_say_of(call->peer, qp, &answer);
		return false;
	}
	return true;
}

static void note_heard(
	struct vb_local_peer *peer, struct vb_qp *qp, const struct vb_descriptor *descriptor, vb_time now)
{
	qp->requester.heard_at = now;
	qp->requester.was_heard = true;
	if ((descriptor->flags & VB_LOCAL_ACKED) && qp->local_peer == peer)
		vb_local_acked(qp, descriptor->acked, now);
	vb_lane_reap(peer->lane); /* what that fails is flushed before the request is executed */
	vb_responder_establish(qp);
}

static void execute(struct vb_local_call *call, const struct vb_local_heap *heap)
{
	vb_local_fill_request(&call->request, call->descriptor, heap);
	if (is_again(call->descriptor)) {
		vb_local_read_again(call);
		return;
	}
	if (!is_its_turn(call))
		return;
	enum vb_verdict verdict = judge(call, heap);
	if (verdict == VB_EXECUTED && is_lent(call))
		vb_local_begin_pull(call);
	else
		vb_local_end_request(call, verdict);
}

static void receive_connected(struct vb_local_peer *peer, const struct vb_descriptor *descriptor,
	const struct vb_local_heap *heap, struct vb_local_room *room, vb_time now)
{
	struct vb_local_call call;
	call.qp = find_target(peer, descriptor);
	if (!call.qp) {
		vb_local_say_absent(peer, descriptor);
		return;
	}
	call.peer = peer;
	call.descriptor = descriptor;
	call.room = room;
	call.before = 0;
	call.now = now;
	note_heard(peer, call.qp, descriptor, now);
	if (vb_state(call.qp) == VB_QPS_ERR) { /* its receives are flushed: nothing more of the peer's happens */
		vb_count(peer->lane, VB_DROP_QP_STATE, 1);
		vb_local_say_absent(peer, descriptor);
		return;
	}
	execute(&call, heap);
}

void vb_local_take_one(struct vb_local_peer *peer, const struct vb_descriptor *descriptor,
	const struct vb_local_heap *heap, struct vb_local_room *room, vb_time now)
{
	assert(!peer->puller && !peer->has_pending);
	peer->is_held = false;
	vb_count(peer->lane, VB_RX_PACKETS, 1);
	vb_count(peer->lane, VB_RX_BYTES, descriptor->place == VB_LOCAL_NOWHERE ? 0 : descriptor->length);
	if ((descriptor->opcode & ~VB_OPERATION_MASK) == VB_UD)
		vb_local_receive_datagram(peer, descriptor, heap);
	else
		receive_connected(peer, descriptor, heap, room, now);
	vb_lane_reap(peer->lane);
}

/* An answer of its own is put away at once, so room for it must be there before the request is taken. A peer that can
 * pull may ask again. */
static bool may_take(
	struct vb_local_peer *peer, const struct vb_local_room *room, const struct vb_descriptor *descriptor)
{
	if (peer->puller || peer->is_lost || room->answer_count == room->answer_max ||
		vb_local_is_held(peer, descriptor))
		return false;
	bool needs_heap = vb_opcodes[descriptor->opcode].message == VB_MESSAGE_READ &&
			  descriptor->length <= VB_LOCAL_PART && !(descriptor->flags & VB_LOCAL_PULLS);
	return !needs_heap || vb_local_heap_left(room) >= descriptor->length;
}

unsigned vb_local_receive(struct vb_local_peer *peer, const struct vb_descriptor *descriptors, unsigned n,
	const struct vb_local_heap *heap, struct vb_local_room *room, vb_time now)
{
	unsigned taken = 0;
	peer->lane->now = now;
	while (vb_local_tell_pending(peer, room) && taken < n && may_take(peer, room, &descriptors[taken])) {
		vb_local_take_one(peer, &descriptors[taken++], heap, room, now);
		if (peer->puller)
			vb_local_foresee(peer, &descriptors[taken], n - taken);
	}
	assert(taken <= n);
	return taken;
}
