/* Same host, the requester: turns work requests into descriptors, and answers into completions.
 * Holds: work requests start in order; what is answered, is in the order of PSNs; answers that make no sense, or are to
 * nothing that is under way, change nothing.
 * Not here: starting and finishing a work request (requester.c, send_queue.c), waiting (recovery.c). */
#include <stdlib.h>
#include "base/copy.h"
#include "base/invariant.h"
#include "engine/lane.h"
#include "engine/local.h"
#include "engine/memory.h"
#include "engine/message.h"
#include "engine/qp.h"
#include "engine/recovery.h"
#include "engine/requester.h"
#include "engine/scheduler.h"
#include "engine/send_queue.h"

#define TURN_DESCRIPTORS 16

/* ---- Payload --------------------------------------------------------------------------------------------------- */

/* A message of one entry in ordinary memory, long enough; *reach is where it is. */
static bool is_lendable(const struct vb_qp *qp, const struct vb_send_wqe *wqe, struct vb_reach *reach)
{
	const struct vb_neighbour *to = qp->local.to;
	bool is_long = wqe->length >= to->lend_from;
	if (to->lend_from == 0 || qp->local.never_lends || wqe->length < VB_LOCAL_LEND_MIN || wqe->sge_count != 1 ||
		is_read(wqe) || (wqe->flags & VB_SEND_INLINE) || (!is_long && !to->maps_segments))
		return false;
	if (vb_reach_local(qp->pd, &wqe->sges[0], 0, wqe->length, 0, reach) || reach->kind)
		return false;
	return is_long || vb_reach_segment(reach);
}

uint32_t vb_local_part_count(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	struct vb_reach reach;
	if (wqe->length <= VB_LOCAL_PART || (is_read(wqe) ? vb_local_can_pull(qp, wqe) : is_lendable(qp, wqe, &reach)))
		return 1;
	return (uint32_t)(((uint64_t)wqe->length + VB_LOCAL_PART - 1) / VB_LOCAL_PART);
}

/* Some memory is there a page at a time only. */
static int reach_some(
	struct vb_qp *qp, const struct vb_sge *sge, uint32_t offset, uint32_t *length, struct vb_reach *reach)
{
	if (!vb_reach_local_known(qp->pd, &qp->known_lkey, sge, offset, *length, 0, reach))
		return 0;
	if (*length <= VB_MAX_MTU)
		return -1;
	*length = VB_MAX_MTU;
	return vb_reach_local(qp->pd, sge, offset, *length, 0, reach);
}

static enum vb_gathered gather_entries(
	struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t offset, uint32_t length, uint8_t *to)
{
	enum vb_gathered result = VB_GATHERED;
	for (uint32_t i = 0; i < wqe->sge_count && length > 0;) {
		const struct vb_sge *sge = &wqe->sges[i];
		if (offset >= sge->length) {
			offset -= sge->length;
			i++;
			continue;
		}
		uint32_t part = sge->length - offset < length ? sge->length - offset : length;
		struct vb_reach reach;
		if (reach_some(qp, sge, offset, &part, &reach))
			return VB_NO_ACCESS;
		const void *bytes = vb_load(&reach, part);
		if (bytes)
			vb_copy(to, bytes, part);
		else
			result = VB_NO_BYTES;
		to += part;
		length -= part;
		offset += part;
	}
	return length == 0 ? result : VB_NO_ACCESS;
}

enum vb_gathered vb_local_gather(
	struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t offset, uint32_t length, uint8_t *to)
{
	const uint8_t *own = own_bytes(wqe);
	if (!own)
		return gather_entries(qp, wqe, offset, length, to);
	vb_copy(to, own + offset, length);
	return VB_GATHERED;
}

enum step { STEP_DONE, STEP_NO_ROOM, STEP_NO_ACCESS };

/* A part of a message: so many bytes from offset on, and where they were put. */
struct part {
	uint32_t offset, length;
	enum vb_local_place place;
};

/* Puts it into the descriptor, or the heap. */
static enum step copy_payload(struct vb_qp *qp, const struct vb_send_wqe *wqe, struct part *part,
	struct vb_descriptor *descriptor, struct vb_local_room *room)
{
	bool is_short = part->length <= VB_LOCAL_INLINE;
	if (!is_short && vb_local_heap_left(room) < part->length)
		return STEP_NO_ROOM;
	uint8_t *to = is_short ? descriptor->bytes : room->heap + room->heap_used;
	enum vb_gathered gathered = vb_local_gather(qp, wqe, part->offset, part->length, to);
	if (gathered == VB_NO_ACCESS)
		return STEP_NO_ACCESS;
	part->place = gathered == VB_NO_BYTES ? VB_LOCAL_NOWHERE : is_short ? VB_LOCAL_INLINED : VB_LOCAL_HEAPED;
	if (is_short)
		return STEP_DONE;
	descriptor->heap.at = room->heap_at + room->heap_used;
	descriptor->heap.total = wqe->length;
	if (gathered == VB_GATHERED)
		vb_local_use_heap(room, part->length);
	return STEP_DONE;
}

static enum step put_payload(struct vb_qp *qp, const struct vb_send_wqe *wqe, struct part *part,
	struct vb_descriptor *descriptor, struct vb_local_room *room)
{
	struct vb_reach reach;
	part->place = VB_LOCAL_NOWHERE;
	if (part->length == 0)
		return STEP_DONE;
	if (part->length >= VB_LOCAL_LEND_MIN && wqe->psn_count == 1 && is_lendable(qp, wqe, &reach)) {
		part->place = VB_LOCAL_LENT;
		descriptor->lent.address = (uintptr_t)reach.bytes;
		descriptor->lent.segment = vb_reach_segment(&reach);
		descriptor->lent.life = vb_handed_out_life(qp);
		return STEP_DONE;
	}
	/* Its key was another's when it was started. */
	if (part->length > VB_LOCAL_PART)
		return STEP_NO_ACCESS;
	return copy_payload(qp, wqe, part, descriptor, room);
}

/* ---- Descriptors ----------------------------------------------------------------------------------------------- */

/* What the peer asked of us is done: as an answer would say. Gives the flag for it. */
static uint8_t carry_debt(struct vb_qp *qp, struct vb_descriptor *descriptor)
{
	struct vb_debt *debt = qp->local.debt;
	if (!debt || debt->to != qp->local.to || !vb_list_linked(&debt->link))
		return 0;
	vb_list_remove(&debt->link);
	descriptor->acked = debt->psn;
	return VB_LOCAL_ACKED;
}

static uint32_t part_length(const struct vb_send_wqe *wqe, uint32_t offset)
{
	if (wqe->psn_count == 1 || wqe->length - offset < VB_LOCAL_PART)
		return wqe->length - offset;
	return VB_LOCAL_PART;
}

/* All of it in one descriptor was decided when it was started. */
static bool is_to_be_pulled(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	return wqe->psn_count == 1 && (wqe->length > VB_LOCAL_PART || vb_local_can_pull(qp, wqe));
}

static uint8_t flags_of(const struct vb_qp *qp, const struct vb_send_wqe *wqe, uint8_t opcode)
{
	if (is_read(wqe))
		return is_to_be_pulled(qp, wqe) ? VB_LOCAL_PULLS : 0;
	return (wqe->flags & VB_SEND_SOLICITED) && vb_opcodes[opcode].consumes_recv ? VB_LOCAL_SOLICITED : 0;
}

/* The descriptor of part index of the message; part says afterwards what it carries. */
static enum step build(
	struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t index, struct part *part, struct vb_local_room *room)
{
	struct vb_descriptor *descriptor = &room->descriptors[room->descriptor_count];
	uint8_t opcode = (uint8_t)(qp->transport | operation_of(wqe, index == 0, index + 1 == wqe->psn_count));
	uint32_t offset = index * VB_LOCAL_PART;

	*part = (struct part){ offset, part_length(wqe, offset), VB_LOCAL_NOWHERE };
	descriptor->length = part->length;
	descriptor->imm_or_inv = wqe->imm_or_inv;
	if (is_atomic(wqe)) {
		descriptor->atomic.swap_add = swap_or_add_of(wqe);
		descriptor->atomic.compare = compare_of(wqe);
	} else if (wqe->opcode == VB_WR_FLUSH) {
		descriptor->length = wqe->flush.length;
		descriptor->imm_or_inv = flush_word_of(wqe);
	} else if (!is_read(wqe)) {
		enum step step = put_payload(qp, wqe, part, descriptor, room);
		if (step != STEP_DONE)
			return step;
	}
	descriptor->opcode = opcode;
	descriptor->dest_qpn = qp->attr.dest_qpn;
	descriptor->src_qpn = qp->qpn;
	descriptor->psn = vb_psn_add(wqe->first_psn, index);
	descriptor->va = wqe->remote_addr + (is_read(wqe) ? offset : 0);
	descriptor->rkey = wqe->rkey;
	uint8_t flags = flags_of(qp, wqe, opcode);
	if (qp->type == VB_QP_XRC_SEND)
		descriptor->srqn = wqe->srqn;
	else
		flags |= carry_debt(qp, descriptor);
	descriptor->nature = (struct vb_local_nature){ part->place, flags };
	return STEP_DONE;
}

static void note_sent(struct vb_qp *qp, const struct vb_send_wqe *wqe, const struct part *part, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	if (!vb_requester_is_busy(qp))
		rq->progress_at = now;
	if (psn_index(wqe, rq->next_psn) + 1 == wqe->psn_count)
		rq->cursor++;
	rq->next_psn = vb_psn_add(rq->next_psn, 1);
	if (vb_psn_diff(rq->next_psn, rq->max_psn) > 0)
		rq->max_psn = rq->next_psn;
	if (needs_response(wqe))
		rq->rd_atomic_out++;
	vb_count(qp->lane, VB_TX_PACKETS, 1);
	vb_count(qp->lane, VB_TX_BYTES, part->place == VB_LOCAL_NOWHERE ? 0 : part->length);
}

enum turn { TURN_OVER, TURN_CUT_SHORT, TURN_NO_ROOM };

static enum turn take_turn(struct vb_qp *qp, struct vb_local_room *room, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	if (!vb_local_ask_again(qp, room))
		return TURN_NO_ROOM;
	for (unsigned i = 0; i < TURN_DESCRIPTORS; i++) {
		if (rq->cursor == atomic_load_explicit(&qp->sq.tail, memory_order_acquire))
			return TURN_OVER;
		struct vb_send_wqe *wqe = vb_requester_next(qp, now);
		if (!wqe || (needs_response(wqe) && rq->rd_atomic_out >= qp->attr.max_rd_atomic))
			return TURN_OVER;
		if (room->descriptor_count == room->descriptor_max)
			return TURN_NO_ROOM;
		struct part part;
		enum step step = build(qp, wqe, psn_index(wqe, rq->next_psn), &part, room);
		if (step == STEP_NO_ROOM)
			return TURN_NO_ROOM;
		if (step == STEP_NO_ACCESS) {
			vb_requester_doom(qp, VB_WC_LOC_PROT_ERR, VB_CAUSE_LOCAL_SGE, now);
			return TURN_OVER;
		}
		vb_local_add(room);
		note_sent(qp, wqe, &part, now);
	}
	return TURN_CUT_SHORT;
}

/* ---- Out ------------------------------------------------------------------------------------------------------- */

static bool tell_one(struct vb_debt *debt, struct vb_local_room *room)
{
	if (room->answer_count == room->answer_max)
		return false;
	vb_list_remove(&debt->link);
	room->answers[room->answer_count++] = (struct vb_answer){
		.dest_qpn = debt->dest_qpn, .src_qpn = debt->src_qpn, .psn = debt->psn, .kind = VB_ANSWER_DONE
	};
	if (debt->is_orphan)
		free(debt);
	return true;
}

/* All but one, which goes with its QP's descriptor. False: there is no room. */
static bool tell_debts(struct vb_neighbour *neighbour, struct vb_local_room *room, const struct vb_debt *but)
{
	for (struct vb_list *node = neighbour->debts.next, *next; node != &neighbour->debts; node = next) {
		struct vb_debt *debt = vb_container_of(node, struct vb_debt, link);
		next = node->next;
		if (debt != but && !tell_one(debt, room))
			return false;
	}
	return true;
}

/* That nobody takes a descriptor says nothing of those before, so what is to be said of them goes first. */
bool vb_local_tell_pending(struct vb_neighbour *neighbour, struct vb_local_room *room)
{
	if (!neighbour->has_pending)
		return true;
	if (neighbour->pending.kind == VB_ANSWER_ABSENT && !tell_debts(neighbour, room, NULL))
		return false;
	if (room->answer_count == room->answer_max)
		return false;
	room->answers[room->answer_count++] = neighbour->pending;
	neighbour->has_pending = false;
	return true;
}

static bool has_descriptors(const struct vb_neighbour *neighbour)
{
	return !vb_list_empty(&neighbour->ready) || !vb_list_empty(&neighbour->datagrams);
}

bool vb_local_is_urgent(const struct vb_neighbour *neighbour)
{
	return has_descriptors(neighbour) || neighbour->has_pending || vb_lane_has_doorbells(neighbour->lane);
}

bool vb_local_wants_transmit(const struct vb_neighbour *neighbour)
{
	return vb_local_is_urgent(neighbour) || !vb_list_empty(&neighbour->debts);
}

static const struct vb_debt *debt_of_first(const struct vb_neighbour *neighbour)
{
	if (vb_list_empty(&neighbour->ready) || !vb_list_empty(&neighbour->datagrams))
		return NULL;
	const struct vb_qp *qp = vb_container_of(neighbour->ready.next, struct vb_qp, local.link);
	return qp->type == VB_QP_RC || qp->type == VB_QP_UC ? qp->local.debt : NULL;
}

/* Some datagrams, and a QP's turn. */
static enum turn take_turns(struct vb_neighbour *neighbour, struct vb_local_room *room, vb_time now)
{
	if (!vb_local_send_datagrams(neighbour, room, now))
		return TURN_NO_ROOM;
	struct vb_list *node = vb_list_pop(&neighbour->ready);
	if (!node)
		return TURN_OVER;
	struct vb_qp *qp = vb_container_of(node, struct vb_qp, local.link);
	enum turn turn = take_turn(qp, room, now);
	if (turn == TURN_NO_ROOM && !vb_list_linked(&qp->local.link))
		vb_list_add_head(&neighbour->ready, &qp->local.link);
	else if (turn == TURN_CUT_SHORT)
		vb_local_schedule(qp);
	/* What no descriptor carried. */
	return tell_debts(neighbour, room, NULL) ? turn : TURN_NO_ROOM;
}

void vb_local_transmit(struct vb_neighbour *neighbour, struct vb_local_room *room, vb_time now)
{
	neighbour->lane->now = now;
	vb_lane_answer_doorbells(neighbour->lane);
	if (neighbour->is_lost || !vb_local_tell_pending(neighbour, room))
		return;
	enum turn turn = tell_debts(neighbour, room, debt_of_first(neighbour)) ? TURN_OVER : TURN_NO_ROOM;
	while (turn != TURN_NO_ROOM && has_descriptors(neighbour))
		turn = take_turns(neighbour, room, now);
	vb_lane_reap(neighbour->lane);
}

/* ---- Answers --------------------------------------------------------------------------------------------------- */

static void fail_as_senseless(struct vb_qp *qp, vb_time now)
{
	vb_qp_fail(qp, VB_CAUSE_BAD_RESPONSE, VB_WC_BAD_RESP_ERR, now);
}

/* What the next answer is to. Behind READs that are being pulled nothing completes yet. */
struct place {
	uint32_t psn, index;
};

static uint32_t heard_psn(const struct vb_qp *qp)
{
	return qp->local.lent_count ? qp->local.heard_psn : qp->requester.una_psn;
}

static struct place next_place(const struct vb_qp *qp)
{
	uint32_t index = qp->local.lent_count ? qp->local.heard_index : head_index(qp);
	return (struct place){ heard_psn(qp), vb_after_local_operations(qp, index) };
}

/* All before it is answered. */
static void move_to(struct vb_qp *qp, struct place place, vb_time now)
{
	if (qp->local.lent_count) {
		qp->local.heard_psn = place.psn;
		qp->local.heard_index = place.index;
	} else {
		qp->requester.una_psn = place.psn;
		vb_sq_retire_to(qp, place.index);
	}
	vb_recovery_renew(qp, now);
}

/* All that is under way before end is executed. False: among it is what has an answer of its own. */
static bool retire(struct vb_qp *qp, uint32_t end, vb_time now)
{
	struct place place = next_place(qp);
	bool is_right = true;
	if (place.psn == end)
		return true;
	while (place.psn != end) {
		const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, place.index);
		if (is_read(wqe) || is_atomic(wqe)) {
			is_right = false;
			break;
		}
		uint32_t left = wqe->psn_count - psn_index(wqe, place.psn);
		uint32_t count = (uint32_t)vb_psn_diff(end, place.psn);
		place.psn = vb_psn_add(place.psn, left < count ? left : count);
		if (left > count)
			break;
		if (needs_response(wqe))
			qp->requester.rd_atomic_out--;
		place.index = vb_after_local_operations(qp, place.index + 1);
	}
	move_to(qp, place, now);
	return is_right;
}

/* What an answer of its own was to has got it. */
static void retire_answered(struct vb_qp *qp, struct place place, vb_time now)
{
	const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, place.index);
	bool is_last = psn_index(wqe, place.psn) + 1 == wqe->psn_count;
	place.psn = vb_psn_add(place.psn, 1);
	if (is_last)
		place.index = vb_after_local_operations(qp, place.index + 1);
	qp->requester.rd_atomic_out--;
	move_to(qp, place, now);
}

/* Says something of the oldest request that is not answered: at once, if no READ is left before it. */
static void settle(struct vb_qp *qp, enum vb_answer_kind kind, uint8_t code, vb_time now)
{
	struct vb_local *local = &qp->local;
	if (local->lent_count == 0) {
		vb_local_conclude(qp, kind, code, now);
		return;
	}
	local->has_kept = true;
	local->kept_kind = (uint8_t)kind;
	local->kept_code = code;
}

static void take_value(struct vb_qp *qp, const struct vb_answer *answer, vb_time now)
{
	struct place place = next_place(qp);
	const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, place.index);
	if (!is_atomic(wqe))
		fail_as_senseless(qp, now);
	else if (!vb_scatter(qp->pd, &qp->known_lkey, wqe->sges, wqe->sge_count, 0, answer->bytes,
			 sizeof(answer->value), true))
		settle(qp, VB_ANSWER_MISPLACED, 0, now);
	else
		retire_answered(qp, place, now);
}

static void take_read(struct vb_qp *qp, const struct vb_answer *answer, const struct vb_local_heap *heap, vb_time now)
{
	struct place place = next_place(qp);
	const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, place.index);
	uint32_t index = psn_index(wqe, place.psn), offset = index * VB_LOCAL_PART;
	if (!is_read(wqe) || answer->length != part_length(wqe, offset) || !vb_answer_lies_in(answer, heap)) {
		fail_as_senseless(qp, now);
	} else if (!vb_scatter(qp->pd, &qp->known_lkey, wqe->sges, wqe->sge_count, offset,
			   vb_answer_bytes(answer, heap), answer->length, index + 1 == wqe->psn_count)) {
		settle(qp, VB_ANSWER_MISPLACED, 0, now);
	} else {
		vb_count(qp->lane, VB_RX_BYTES, answer->length);
		retire_answered(qp, place, now);
	}
}

static void take_lent(struct vb_qp *qp, const struct vb_answer *answer, vb_time now)
{
	struct place place = next_place(qp);
	const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, place.index);
	if (is_read(wqe) && wqe->psn_count == 1 && wqe->length > 0)
		vb_local_lent(qp, place.index, answer);
	else
		fail_as_senseless(qp, now);
}

/* The peer cannot pull. What is under way, none of which it has executed, goes again in parts. */
static void lend_no_more(struct vb_qp *qp)
{
	struct vb_requester *rq = &qp->requester;
	uint32_t tail = atomic_load_explicit(&qp->sq.tail, memory_order_acquire), psn = rq->una_psn;
	qp->local.never_lends = true;
	for (uint32_t i = head_index(qp); i != tail; i++) {
		struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, i);
		if (!wqe->is_started)
			break;
		if (i == head_index(qp) && psn_index(wqe, psn) < wqe->psn_count && psn != wqe->first_psn) {
			psn = vb_psn_add(wqe->first_psn, wqe->psn_count); /* parts of it are through: it was not lent */
			continue;
		}
		wqe->first_psn = psn;
		if (wqe->psn_count)
			wqe->psn_count = vb_local_part_count(qp, wqe);
		psn = vb_psn_add(psn, wqe->psn_count);
	}
	vb_recovery_go_back(qp);
	rq->max_psn = rq->next_psn;
}

/* Of the oldest request under way. */
void vb_local_conclude(struct vb_qp *qp, enum vb_answer_kind kind, uint8_t code, vb_time now)
{
	switch (kind) {
	case VB_ANSWER_NOT_READY:
		vb_count(qp->lane, VB_RNR_RECEIVED, 1);
		vb_recovery_on_rnr(qp, code & VB_AETH_CODE_MASK, now);
		break;
	case VB_ANSWER_LATER:
		vb_recovery_on_later(qp, now);
		break;
	case VB_ANSWER_REFUSED:
		vb_requester_refused(qp, code, now);
		break;
	case VB_ANSWER_UNREADABLE:
		vb_qp_fail(qp, VB_CAUSE_LOCAL_FAULT, VB_WC_LOC_PROT_ERR, now);
		break;
	case VB_ANSWER_UNWANTED:
		lend_no_more(qp);
		break;
	case VB_ANSWER_ABSENT:
		vb_recovery_on_absence(qp, now);
		break;
	case VB_ANSWER_MISPLACED:
		vb_qp_fail(qp, VB_CAUSE_LOCAL_SGE, VB_WC_LOC_PROT_ERR, now);
		break;
	default:
		fail_as_senseless(qp, now);
		break;
	}
}

/* Everything before it is answered. */
static void take(struct vb_qp *qp, const struct vb_answer *answer, const struct vb_local_heap *heap, vb_time now)
{
	switch ((enum vb_answer_kind)answer->kind) {
	case VB_ANSWER_VALUE:
		take_value(qp, answer, now);
		break;
	case VB_ANSWER_READ:
		take_read(qp, answer, heap, now);
		break;
	case VB_ANSWER_LENT:
	case VB_ANSWER_IN_PARTS:
		take_lent(qp, answer, now);
		break;
	default:
		settle(qp, (enum vb_answer_kind)answer->kind, answer->code, now);
		break;
	}
}

static bool is_under_way(const struct vb_qp *qp, uint32_t psn)
{
	return vb_psn_diff(psn, heard_psn(qp)) >= 0 && vb_psn_diff(psn, qp->requester.next_psn) < 0 &&
	       !qp->local.has_kept;
}

static bool is_sending(const struct vb_qp *qp)
{
	return vb_state(qp) == VB_QPS_RTS || vb_state(qp) == VB_QPS_SQD;
}

void vb_local_acked(struct vb_qp *qp, uint32_t psn, vb_time now)
{
	if (!is_sending(qp) || !is_under_way(qp, psn)) {
		vb_count(qp->lane, VB_DROP_GHOST, 1);
		return;
	}
	if (!retire(qp, vb_psn_add(psn, 1), now))
		fail_as_senseless(qp, now);
	vb_requester_proceed(qp, now);
}

/* UC hears only that its descriptors were taken. A message that could not be pulled is lost, and the next is not
 * lent. */
static enum vb_answer_kind kind_for(struct vb_qp *qp, const struct vb_answer *answer)
{
	enum vb_answer_kind kind = (enum vb_answer_kind)answer->kind;
	if (qp->is_reliable || kind == VB_ANSWER_UNREADABLE)
		return kind;
	if (kind == VB_ANSWER_UNWANTED)
		qp->local.never_lends = true;
	return VB_ANSWER_DONE;
}

static void take_answer(
	struct vb_neighbour *neighbour, const struct vb_answer *answer, const struct vb_local_heap *heap, vb_time now)
{
	struct vb_qp *qp = vb_lane_find_qp(neighbour->lane, answer->dest_qpn);
	if (!qp || qp->local.to != neighbour || qp->attr.dest_qpn != answer->src_qpn) {
		vb_count(neighbour->lane, VB_DROP_GHOST, 1);
		return;
	}
	enum vb_answer_kind kind = kind_for(qp, answer);
	qp->requester.heard_at = now;
	qp->requester.was_heard = true;
	if (kind == VB_ANSWER_DONE) {
		vb_local_acked(qp, answer->psn, now);
		return;
	}
	if (vb_local_asks_again(qp, answer->psn)) {
		vb_local_answered_again(qp, answer, heap, now);
		vb_requester_proceed(qp, now);
		return;
	}
	/* One behind one that was refused is not taken either, which says nothing new. */
	bool is_behind = kind == VB_ANSWER_ABSENT && answer->psn != heard_psn(qp);
	if (!is_sending(qp) || !is_under_way(qp, answer->psn) || is_behind) {
		vb_count(neighbour->lane, VB_DROP_GHOST, 1);
		return;
	}
	if (retire(qp, answer->psn, now))
		take(qp, answer, heap, now);
	else
		fail_as_senseless(qp, now);
	vb_requester_proceed(qp, now);
}

void vb_local_answered(struct vb_neighbour *neighbour, const struct vb_answer *answers, unsigned n,
	const struct vb_local_heap *heap, vb_time now)
{
	neighbour->lane->now = now;
	for (unsigned i = 0; i < n; i++) {
		take_answer(neighbour, &answers[i], heap, now);
		vb_lane_reap(neighbour->lane);
	}
}
