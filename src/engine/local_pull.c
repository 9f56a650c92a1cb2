/* Same host, the responder: a message whose payload is lent. It is opened like any other, pulled a piece at a time
 * straight into its place, and executed by its last bytes, which land by themselves.
 * Holds: of each neighbour one message is pulled at a time, and nothing else of his is executed meanwhile.
 * Not here: what is pulled with it (local_ahead.c), READs, which are lent the other way (local_read.c). */
#include "engine/execute.h"
#include "engine/local.h"
#include "engine/local_receive.h"
#include "engine/qp.h"
#include "engine/tags.h"
#include "engine/uc.h"

/* ---- The message as packets ------------------------------------------------------------------------------------- */

static uint8_t last_form(uint8_t opcode)
{
	uint8_t transport = opcode & (uint8_t)~VB_OPERATION_MASK;
	switch (opcode & VB_OPERATION_MASK) {
	case VB_SEND_ONLY:
		return transport | VB_SEND_LAST;
	case VB_SEND_ONLY_IMM:
		return transport | VB_SEND_LAST_IMM;
	case VB_SEND_ONLY_INV:
		return transport | VB_SEND_LAST_INV;
	case VB_WRITE_ONLY:
		return transport | VB_WRITE_LAST;
	default:
		return transport | VB_WRITE_LAST_IMM;
	}
}

/* The message is opened by a First of nothing, or, for tags, of its header; its Last is what completes it. */
static enum vb_verdict open_lent(struct vb_qp *qp, const struct vb_packet *whole, const uint8_t *head, uint32_t length)
{
	const struct vb_opcode *row = vb_packet_row(whole);
	struct vb_target *target = &qp->target;
	struct vb_packet first = *whole;
	bool is_write = row->message == VB_MESSAGE_WRITE;
	first.opcode = qp->transport | (is_write ? VB_WRITE_FIRST : VB_SEND_FIRST);
	first.payload = head;
	first.payload_length = length;
	if (is_write && row->has_imm && !vb_recv_take(target))
		return VB_NOT_READY;
	enum vb_verdict verdict = vb_execute(target, &first, NULL);
	if (verdict != VB_EXECUTED || is_write)
		return verdict;
	if (target->open == VB_NO_MESSAGE || !target->recv)
		return VB_BAD_SEQUENCE; /* tags took it for a message of its own, which it is too long for */
	return target->received + (whole->payload_length - length) > target->recv->length ? VB_RECV_TOO_SHORT
											  : VB_EXECUTED;
}

/* As a packet that continues the message, of bytes that are there already. */
static enum vb_verdict continue_lent(struct vb_qp *qp, const struct vb_packet *whole, uint32_t length)
{
	struct vb_packet middle = { .psn = whole->psn, .payload_length = length };
	bool is_write = vb_packet_row(whole)->message == VB_MESSAGE_WRITE;
	middle.opcode = qp->transport | (is_write ? VB_WRITE_MIDDLE : VB_SEND_MIDDLE);
	return length ? vb_execute(&qp->target, &middle, NULL) : VB_EXECUTED;
}

static enum vb_verdict finish_lent(
	struct vb_qp *qp, const struct vb_packet *whole, const uint8_t *tail, uint32_t length)
{
	struct vb_packet last = *whole;
	last.opcode = last_form(whole->opcode);
	last.payload = tail;
	last.payload_length = length;
	return vb_execute(&qp->target, &last, NULL);
}

/* ---- Its end ---------------------------------------------------------------------------------------------------- */

static void end_pull(struct vb_neighbour *neighbour, struct vb_qp *qp)
{
	neighbour->puller = NULL;
	qp->local.pulls = NULL;
	qp->target.open = VB_NO_MESSAGE;
}

static void give_up_pull(struct vb_neighbour *neighbour, struct vb_qp *qp, enum vb_answer_kind kind)
{
	struct vb_answer answer = vb_local_answer_to(&neighbour->pulled, kind, 0);
	end_pull(neighbour, qp);
	if (qp->type == VB_QP_UC)
		vb_uc_conclude(qp, NULL, VB_NOT_PERMITTED, 0);
	vb_local_say_of(neighbour, qp, &answer);
}

static void conclude_pull(struct vb_neighbour *neighbour, struct vb_qp *qp, const struct vb_packet *packet,
	enum vb_verdict verdict, vb_time now)
{
	struct vb_descriptor request = neighbour->pulled;
	neighbour->puller = NULL;
	qp->local.pulls = NULL;
	if (verdict != VB_EXECUTED)
		qp->target.open = VB_NO_MESSAGE;
	vb_local_end_request(neighbour, qp, &request, packet, verdict, NULL, 0, now);
}

/* ---- Its pieces ------------------------------------------------------------------------------------------------- */

/* Bytes of the message that land by themselves, and last. */
static uint32_t tail_of(const struct vb_neighbour *neighbour, uint32_t piece)
{
	uint32_t rest = neighbour->pulled.length - neighbour->pulled_bytes;
	if (piece < rest)
		return 0;
	return rest < sizeof(uint64_t) ? rest : sizeof(uint64_t);
}

/* The header for tags first, and nothing else with it. */
static uint32_t next_piece(const struct vb_neighbour *neighbour)
{
	uint32_t rest = neighbour->pulled.length - neighbour->pulled_bytes;
	if (!neighbour->is_opened)
		return sizeof(neighbour->tail);
	return rest < VB_LOCAL_PULL_MAX ? rest : VB_LOCAL_PULL_MAX;
}

/* A peer may send packets too, which it has no business to do now. */
static bool is_as_it_was(const struct vb_neighbour *neighbour, const struct vb_qp *qp)
{
	const struct vb_target *target = &qp->target;
	const struct vb_descriptor *request = &neighbour->pulled;
	if (qp->is_reliable && request->psn != qp->responder.expected_psn)
		return false;
	if (!neighbour->is_opened)
		return target->open == VB_NO_MESSAGE;
	uint32_t skipped = neighbour->pulled_bytes - target->received;
	return target->open == vb_opcodes[request->opcode].message && skipped <= sizeof(neighbour->tail);
}

/* The piece is in its place, but for the tail. */
static void take_piece(struct vb_neighbour *neighbour, vb_time now)
{
	struct vb_qp *qp = neighbour->puller;
	struct vb_packet packet;
	vb_local_to_packet(&packet, &neighbour->pulled, NULL);
	uint32_t piece = neighbour->piece, tail = tail_of(neighbour, piece);
	enum vb_verdict verdict;
	if (!neighbour->is_opened)
		verdict = open_lent(qp, &packet, neighbour->tail, piece);
	else
		verdict = continue_lent(qp, &packet, piece - tail);
	if (verdict == VB_EXECUTED && tail)
		verdict = finish_lent(qp, &packet, neighbour->tail, tail);
	neighbour->is_opened = true;
	neighbour->pulled_bytes += piece;
	if (verdict != VB_EXECUTED || tail)
		conclude_pull(neighbour, qp, &packet, verdict, now);
}

static void finish_pulled_ahead(struct vb_neighbour *neighbour, vb_time now)
{
	neighbour->here = NULL;
	neighbour->piece = neighbour->pulled.length;
	take_piece(neighbour, now);
}

bool vb_local_is_lendable_length(uint32_t length)
{
	return length >= VB_LOCAL_LEND_MIN && length <= VB_MAX_MESSAGE_BYTES;
}

void vb_local_begin_pull(struct vb_neighbour *neighbour, struct vb_qp *qp, const struct vb_descriptor *request,
	const struct vb_packet *packet, struct vb_local_room *room, vb_time now)
{
	bool is_tagged = vb_has_tags(qp) && vb_packet_row(packet)->message == VB_MESSAGE_SEND;
	enum vb_verdict verdict = is_tagged ? VB_EXECUTED : open_lent(qp, packet, NULL, 0);
	if (verdict != VB_EXECUTED) {
		qp->target.open = VB_NO_MESSAGE;
		vb_local_end_request(neighbour, qp, request, packet, verdict, room, 0, now);
		return;
	}
	neighbour->puller = qp;
	qp->local.pulls = neighbour;
	neighbour->pulled = *request;
	neighbour->pulled_bytes = 0;
	neighbour->is_opened = !is_tagged;
	if (neighbour->here && neighbour->here == qp->target.whole.bytes)
		finish_pulled_ahead(neighbour, now);
	else
		neighbour->ahead_count = neighbour->pulled_ahead = 0;
}

static bool find_places(struct vb_neighbour *neighbour, struct vb_local_pull *pull)
{
	const struct vb_target *target = &neighbour->puller->target;
	uint32_t tail = tail_of(neighbour, neighbour->piece);
	if (!neighbour->is_opened)
		tail = neighbour->piece;
	pull->iov_count = 0;
	if (neighbour->piece > tail && !vb_execute_places(target, neighbour->piece - tail, pull->iov, &pull->iov_count))
		return false;
	if (tail)
		pull->iov[pull->iov_count++] = (struct vb_iov){ neighbour->tail, tail };
	return true;
}

bool vb_local_pull_message(struct vb_neighbour *neighbour, struct vb_local_pull *pull, vb_time now)
{
	struct vb_qp *qp = neighbour->puller;
	const struct vb_descriptor *request = &neighbour->pulled;
	if (!qp)
		return false;
	neighbour->piece = next_piece(neighbour);
	pull->lent_count = 0;
	pull->length = 0;
	vb_local_pull_add(
		pull, request->lent.address + neighbour->pulled_bytes, neighbour->piece, request->lent.segment);
	pull->proof_at = (uint32_t)offsetof(struct vb_lives, lives[request->src_qpn & 0xffff]);
	pull->proof_bytes = sizeof(request->lent.life);
	pull->proof = 0;
	memcpy(&pull->proof, &request->lent.life, sizeof(request->lent.life));
	if (!find_places(neighbour, pull)) {
		give_up_pull(neighbour, qp, VB_ANSWER_UNWANTED);
		return false;
	}
	neighbour->pulled_ahead = 0;
	if (neighbour->piece == request->length)
		vb_local_pull_ahead(neighbour, pull);
	return true;
}

/* The message is done: those that were pulled with it, each as if it were taken now. */
static unsigned take_ahead(struct vb_neighbour *neighbour, vb_time now)
{
	unsigned taken = 0, pulled = neighbour->pulled_ahead;
	while (taken < pulled && !neighbour->puller && !neighbour->has_pending) {
		const struct vb_local_ahead *ahead = &neighbour->ahead[taken];
		if (vb_local_is_held(neighbour, &ahead->request))
			break;
		taken++;
		memcpy(neighbour->tail, ahead->tail, sizeof(ahead->tail));
		neighbour->here = ahead->place;
		vb_local_take_one(neighbour, &ahead->request, NULL, NULL, now);
		neighbour->here = NULL;
	}
	return taken;
}

unsigned vb_local_message_pulled(struct vb_neighbour *neighbour, enum vb_local_outcome outcome, vb_time now)
{
	static const enum vb_answer_kind kinds[] = { [VB_PULL_STALE] = VB_ANSWER_ABSENT,
		[VB_PULL_FAULT] = VB_ANSWER_UNREADABLE,
		[VB_PULL_REFUSED] = VB_ANSWER_UNWANTED };
	struct vb_qp *qp = neighbour->puller;
	if (!qp)
		return 0;
	if (outcome != VB_PULLED && outcome != VB_PULL_REFUSED && neighbour->pulled_ahead) {
		neighbour->ahead_count = neighbour->pulled_ahead = 0; /* of whichever it is: the first by itself */
		return 0;
	}
	if (outcome != VB_PULLED) {
		give_up_pull(neighbour, qp, kinds[outcome]);
		return 0;
	}
	if (!is_as_it_was(neighbour, qp)) {
		give_up_pull(neighbour, qp, VB_ANSWER_ABSENT);
		return 0;
	}
	take_piece(neighbour, now);
	return take_ahead(neighbour, now);
}
