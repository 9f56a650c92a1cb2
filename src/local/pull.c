/* Same host, the responder: a message whose payload is lent. It is opened like any other, pulled a piece at a time
 * straight into its place, and executed by its last bytes, which land by themselves.
 * Holds: one message is pulled of each local peer at a time, and nothing else of the local peer is executed meanwhile.
 * Not here: messages that are pulled with it (ahead.c), READs, which are lent the other way (read.c). */
#include "base/invariant.h"
#include "core/execute.h"
#include "local/receive.h"
#include "core/qp.h"
#include "core/responder.h"

/* ---- The message in parts ---------------------------------------------------------------------------------------- */

/* The row of another form of the message. */
static const struct vb_opcode *row_of(const struct vb_qp *qp, uint8_t operation)
{
	return &vb_opcodes[qp->service | operation];
}

static uint8_t last_form(uint8_t only)
{
	switch (only & VB_OPERATION_MASK) {
	case VB_SEND_ONLY:
		return VB_SEND_LAST;
	case VB_SEND_ONLY_IMM:
		return VB_SEND_LAST_IMM;
	case VB_SEND_ONLY_INV:
		return VB_SEND_LAST_INV;
	case VB_WRITE_ONLY:
		return VB_WRITE_LAST;
	default:
		return VB_WRITE_LAST_IMM;
	}
}

/* The message is opened by a First of nothing, or, for tags, of its header; its Last completes it. */
static enum vb_verdict open_lent(const struct vb_local_call *call, const uint8_t *head, uint32_t length)
{
	const struct vb_request *whole = &call->request;
	struct vb_target *target = &call->qp->target;
	struct vb_request first = *whole;
	bool is_write = whole->row->message == VB_MESSAGE_WRITE;
	first.row = row_of(call->qp, is_write ? VB_WRITE_FIRST : VB_SEND_FIRST);
	first.payload = head;
	first.payload_length = length;
	if (is_write && whole->row->has_imm && !vb_recv_take(target))
		return VB_NOT_READY;
	enum vb_verdict verdict = vb_execute(target, &first, NULL);
	if (verdict != VB_EXECUTED || is_write)
		return verdict;
	if (target->open == VB_NO_MESSAGE || !target->recv)
		return VB_BAD_SEQUENCE; /* tag matching took the first piece for a whole message; this one is longer */
	return target->received + (whole->payload_length - length) > target->recv->length ? VB_RECV_TOO_SHORT
											  : VB_EXECUTED;
}

/* A Middle of bytes that are in their place already. */
static enum vb_verdict continue_lent(const struct vb_local_call *call, uint32_t length)
{
	bool is_write = call->request.row->message == VB_MESSAGE_WRITE;
	struct vb_request middle = { .row = row_of(call->qp, is_write ? VB_WRITE_MIDDLE : VB_SEND_MIDDLE),
		.payload_length = length };
	return length ? vb_execute(&call->qp->target, &middle, NULL) : VB_EXECUTED;
}

static enum vb_verdict finish_lent(const struct vb_local_call *call, const uint8_t *tail, uint32_t length)
{
	struct vb_request last = call->request;
	last.row = row_of(call->qp, last_form(call->descriptor->opcode));
	last.payload = tail;
	last.payload_length = length;
	return vb_execute(&call->qp->target, &last, NULL);
}

/* ---- Its end ----------------------------------------------------------------------------------------------------- */

static void end_pull(struct vb_local_peer *peer, struct vb_qp *qp)
{
	peer->puller = NULL;
	qp->local->pulls = NULL;
	qp->target.open = VB_NO_MESSAGE;
	assert(!peer->puller && !qp->local->pulls);
}

static void give_up_pull(struct vb_local_peer *peer, struct vb_qp *qp, enum vb_answer_kind kind)
{
	struct vb_answer answer = vb_local_answer_to(&peer->pulled, kind, 0);
	assert(peer->puller == qp);
	end_pull(peer, qp);
	if (qp->type == VB_QP_UC)
		vb_uc_conclude(qp, NULL, VB_NOT_PERMITTED, 0);
	vb_local_say_of(peer, qp, &answer);
}

static void conclude_pull(struct vb_local_call *call, enum vb_verdict verdict)
{
	assert(call->peer->puller == call->qp);
	call->peer->puller = NULL;
	call->qp->local->pulls = NULL;
	if (verdict != VB_EXECUTED)
		call->qp->target.open = VB_NO_MESSAGE;
	vb_local_end_request(call, verdict);
}

/* ---- Its pieces -------------------------------------------------------------------------------------------------- */

/* Bytes of the message that land by themselves, and last. */
static uint32_t tail_of(const struct vb_local_peer *peer, uint32_t piece)
{
	uint32_t rest = peer->pulled.length - peer->pulled_bytes;
	if (piece < rest)
		return 0;
	return rest < sizeof(uint64_t) ? rest : sizeof(uint64_t);
}

/* The header for tags first, and nothing else with it. */
static uint32_t next_piece(const struct vb_local_peer *peer)
{
	uint32_t rest = peer->pulled.length - peer->pulled_bytes;
	if (!peer->is_opened)
		return sizeof(peer->tail);
	return rest < VB_LOCAL_PULL_MAX ? rest : VB_LOCAL_PULL_MAX;
}

/* A peer may send packets too, which it has no business to do now. */
static bool is_as_it_was(const struct vb_local_peer *peer, const struct vb_qp *qp)
{
	const struct vb_target *target = &qp->target;
	const struct vb_descriptor *request = &peer->pulled;
	if (qp->is_reliable && request->psn != qp->responder.expected_psn)
		return false;
	if (!peer->is_opened)
		return target->open == VB_NO_MESSAGE;
	uint32_t skipped = peer->pulled_bytes - target->received;
	return target->open == vb_opcodes[request->opcode].message && skipped <= sizeof(peer->tail);
}

static void fill_call(struct vb_local_call *call, struct vb_local_peer *peer, vb_time now)
{
	call->peer = peer;
	call->qp = peer->puller;
	call->descriptor = &peer->pulled;
	call->room = NULL;
	call->before = 0;
	call->now = now;
	vb_local_fill_request(&call->request, &peer->pulled, NULL);
	assert(call->qp);
}

/* The piece is in its place, but for the tail. */
static void take_piece(struct vb_local_peer *peer, vb_time now)
{
	uint32_t piece = peer->piece, tail = tail_of(peer, piece);
	struct vb_local_call call;
	enum vb_verdict verdict;
	assert(peer->puller && peer->pulled_bytes + piece <= peer->pulled.length);
	fill_call(&call, peer, now);
	if (!peer->is_opened)
		verdict = open_lent(&call, peer->tail, piece);
	else
		verdict = continue_lent(&call, piece - tail);
	if (verdict == VB_EXECUTED && tail)
		verdict = finish_lent(&call, peer->tail, tail);
	peer->is_opened = true;
	peer->pulled_bytes += piece;
	if (verdict != VB_EXECUTED || tail)
		conclude_pull(&call, verdict);
}

static void finish_pulled_ahead(struct vb_local_peer *peer, vb_time now)
{
	peer->here = NULL;
	peer->piece = peer->pulled.length;
	take_piece(peer, now);
}

void vb_local_begin_pull(struct vb_local_call *call)
{
	struct vb_local_peer *peer = call->peer;
	struct vb_qp *qp = call->qp;
	assert(!peer->puller && !qp->local->pulls);
	bool is_tagged = vb_has_tags(qp) && call->request.row->message == VB_MESSAGE_SEND;
	enum vb_verdict verdict = is_tagged ? VB_EXECUTED : open_lent(call, NULL, 0);
	if (verdict != VB_EXECUTED) {
		qp->target.open = VB_NO_MESSAGE;
		vb_local_end_request(call, verdict);
		return;
	}
	peer->puller = qp;
	qp->local->pulls = peer;
	peer->pulled = *call->descriptor;
	peer->pulled_bytes = 0;
	peer->is_opened = !is_tagged;
	if (peer->here && peer->here == qp->target.whole.bytes)
		finish_pulled_ahead(peer, call->now);
	else
		peer->ahead_count = peer->pulled_ahead = 0;
}

static bool find_places(struct vb_local_peer *peer, struct vb_local_pull *pull)
{
	const struct vb_target *target = &peer->puller->target;
	uint32_t tail = tail_of(peer, peer->piece);
	if (!peer->is_opened)
		tail = peer->piece;
	pull->iov_count = 0;
	if (peer->piece > tail && !vb_execute_places(target, peer->piece - tail, pull->iov, &pull->iov_count))
		return false;
	if (tail)
		pull->iov[pull->iov_count++] = (struct vb_iov){ peer->tail, tail };
	assert(pull->iov_count > 0);
	return true;
}

bool vb_local_pull_message(struct vb_local_peer *peer, struct vb_local_pull *pull, vb_time now)
{
	struct vb_qp *qp = peer->puller;
	const struct vb_descriptor *request = &peer->pulled;
	if (!qp)
		return false;
	peer->piece = next_piece(peer);
	pull->lent_count = 0;
	pull->length = 0;
	vb_local_pull_add(pull, request->lent.address + peer->pulled_bytes, peer->piece, request->lent.segment);
	pull->proof_at = (uint32_t)offsetof(struct vb_epochs, epochs[request->src_qpn & 0xffff]);
	pull->proof_bytes = sizeof(request->lent.epoch);
	pull->proof = 0;
	memcpy(&pull->proof, &request->lent.epoch, sizeof(request->lent.epoch));
	if (!find_places(peer, pull)) {
		give_up_pull(peer, qp, VB_ANSWER_UNWANTED);
		return false;
	}
	peer->pulled_ahead = 0;
	if (peer->piece == request->length)
		vb_local_pull_ahead(peer, pull);
	return true;
}

bool vb_local_message_pulled(struct vb_local_peer *peer, enum vb_local_outcome outcome, vb_time now)
{
	static const enum vb_answer_kind kinds[] = { [VB_PULL_STALE] = VB_ANSWER_ABSENT,
		[VB_PULL_FAULT] = VB_ANSWER_UNREADABLE,
		[VB_PULL_REFUSED] = VB_ANSWER_UNWANTED };
	struct vb_qp *qp = peer->puller;
	if (!qp)
		return false;
	if (outcome != VB_PULLED && outcome != VB_PULL_REFUSED && peer->pulled_ahead) {
		peer->ahead_count = peer->pulled_ahead = 0; /* one of them is at fault: the first by itself */
		return false;
	}
	if (outcome != VB_PULLED) {
		give_up_pull(peer, qp, kinds[outcome]);
		return false;
	}
	if (!is_as_it_was(peer, qp)) {
		give_up_pull(peer, qp, VB_ANSWER_ABSENT);
		return false;
	}
	take_piece(peer, now);
	return true;
}
