/* Same host, the requester: turns work requests into descriptors.
 * Holds: work requests start in order.
 * Not here: starting and finishing a work request (core/requests.c), answers (answers.c), waiting (core/retry.c). */
#include <stdlib.h>
#include "base/copy.h"
#include "base/invariant.h"
#include "core/gather.h"
#include "core/lane.h"
#include "local/parts.h"
#include "core/memory.h"
#include "core/message.h"
#include "core/qp.h"
#include "core/send_queue.h"

#define TURN_DESCRIPTORS 16

/* ---- Payload ----------------------------------------------------------------------------------------------------- */

/* A message of one entry in ordinary memory, long enough; *reach is where it is. */
static bool is_lendable(const struct vb_qp *qp, const struct vb_send_wqe *wqe, struct vb_reach *reach)
{
	const struct vb_local_peer *to = qp->local_peer;
	bool is_long = wqe->length >= to->lend_from;
	if (to->lend_from == 0 || qp->local->never_lends || wqe->length < VB_LOCAL_LEND_MIN || wqe->sge_count != 1 ||
		is_read(wqe) || (wqe->flags & VB_SEND_INLINE) || (!is_long && !to->maps_segments))
		return false;
	if (vb_reach_local(qp->pd, &wqe->sges[0], 0, wqe->length, 0, reach) || reach->kind)
		return false;
	return is_long || vb_reach_segment(reach);
}

static uint32_t part_count(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	struct vb_reach reach;
	if (wqe->length <= VB_LOCAL_PART || (is_read(wqe) ? vb_local_can_pull(qp, wqe) : is_lendable(qp, wqe, &reach)))
		return 1;
	return (uint32_t)(((uint64_t)wqe->length + VB_LOCAL_PART - 1) / VB_LOCAL_PART);
}

void vb_local_cut(struct vb_qp *qp, struct vb_send_wqe *wqe)
{
	wqe->psn_count = part_count(qp, wqe);
	assert(wqe->psn_count > 0);
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
	enum vb_gathered gathered = vb_gather(qp, wqe, part->offset, part->length, to);
	if (gathered == VB_NO_ACCESS)
		return STEP_NO_ACCESS;
	part->place = gathered == VB_NO_BYTES ? VB_LOCAL_NOWHERE : is_short ? VB_LOCAL_INLINED : VB_LOCAL_HEAPED;
	if (is_short)
		return STEP_DONE;
	descriptor->heap.at = room->heap_at + room->heap_used;
	descriptor->heap.total = wqe->length;
	if (gathered == VB_GATHERED)
		vb_local_use_heap(room, part->length);
	assert(room->heap_used <= room->heap_bytes);
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
		descriptor->lent.epoch = vb_handed_out_epoch(qp);
		return STEP_DONE;
	}
	/* Its key was another's when it was started. */
	if (part->length > VB_LOCAL_PART)
		return STEP_NO_ACCESS;
	return copy_payload(qp, wqe, part, descriptor, room);
}

/* ---- Descriptors ------------------------------------------------------------------------------------------------- */

/* All of it in one descriptor was decided when it was started. */
static bool is_to_be_pulled(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	return wqe->psn_count == 1 && (wqe->length > VB_LOCAL_PART || vb_local_can_pull(qp, wqe));
}

/* The program hears nothing of it before a later request completes. A local operation behind it waits for its end. */
static bool is_unawaited(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	return !(wqe->flags & VB_SEND_SIGNALED) && !needs_response(wqe) && !qp->requester.has_local_operations;
}

static uint8_t flags_of(const struct vb_qp *qp, const struct vb_send_wqe *wqe, uint8_t opcode)
{
	const struct vb_opcode *row = &vb_opcodes[opcode];
	if (is_read(wqe))
		return is_to_be_pulled(qp, wqe) ? VB_LOCAL_PULLS : 0;
	uint8_t flags = !vb_ends_message(row) || is_unawaited(qp, wqe) ? VB_LOCAL_UNAWAITED : 0;
	if ((wqe->flags & VB_SEND_SOLICITED) && row->consumes_recv)
		flags |= VB_LOCAL_SOLICITED;
	return flags;
}

/* The descriptor of part index of the message; part says afterwards what it carries. */
static enum step build(
	struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t index, struct part *part, struct vb_local_room *room)
{
	struct vb_descriptor *descriptor = &room->descriptors[room->descriptor_count];
	uint8_t opcode = (uint8_t)(qp->service | operation_of(wqe, index == 0, index + 1 == wqe->psn_count));
	uint32_t offset = index * VB_LOCAL_PART;

	*part = (struct part){ offset, vb_local_part_length(wqe, offset), VB_LOCAL_NOWHERE };
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
		flags |= vb_local_carry_ack(qp, descriptor);
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
	assert(vb_psn_diff(rq->max_psn, rq->next_psn) >= 0);
}

enum turn { TURN_OVER, TURN_CUT_SHORT, TURN_NO_ROOM };

static enum turn take_turn(struct vb_qp *qp, struct vb_local_room *room, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	assert(qp->local_peer);
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

/* ---- Out --------------------------------------------------------------------------------------------------------- */

static bool has_descriptors(const struct vb_local_peer *peer)
{
	return !vb_list_empty(&peer->ready) || !vb_list_empty(&peer->datagrams);
}

bool vb_local_is_urgent(const struct vb_local_peer *peer)
{
	return has_descriptors(peer) || peer->has_pending || vb_lane_has_doorbells(peer->lane);
}

bool vb_local_wants_transmit(const struct vb_local_peer *peer)
{
	return vb_local_is_urgent(peer) || !vb_list_empty(&peer->pending_acks);
}

static const struct vb_pending_ack *ack_of_first(const struct vb_local_peer *peer)
{
	if (vb_list_empty(&peer->ready) || !vb_list_empty(&peer->datagrams))
		return NULL;
	const struct vb_qp *qp = vb_container_of(peer->ready.next, struct vb_local, link)->qp;
	return qp->type == VB_QP_RC || qp->type == VB_QP_UC ? qp->local->ack : NULL;
}

/* Some datagrams, and a QP's turn. */
static enum turn take_turns(struct vb_local_peer *peer, struct vb_local_room *room, vb_time now)
{
	if (!vb_local_send_datagrams(peer, room, now))
		return TURN_NO_ROOM;
	struct vb_list *node = vb_list_pop(&peer->ready);
	if (!node)
		return TURN_OVER;
	struct vb_qp *qp = vb_container_of(node, struct vb_local, link)->qp;
	enum turn turn = take_turn(qp, room, now);
	if (turn == TURN_NO_ROOM && !vb_list_linked(&qp->local->link))
		vb_list_add_head(&peer->ready, &qp->local->link);
	else if (turn == TURN_CUT_SHORT)
		vb_local_schedule(qp);
	vb_lane_reap(peer->lane);
	/* Pending acks that no descriptor carried. */
	return vb_local_send_acks(peer, room, NULL) ? turn : TURN_NO_ROOM;
}

void vb_local_transmit(struct vb_local_peer *peer, struct vb_local_room *room, vb_time now)
{
	peer->lane->now = now;
	vb_lane_answer_doorbells(peer->lane);
	if (peer->is_lost || !vb_local_tell_pending(peer, room))
		return;
	enum turn turn = vb_local_send_acks(peer, room, ack_of_first(peer)) ? TURN_OVER : TURN_NO_ROOM;
	while (turn != TURN_NO_ROOM && has_descriptors(peer))
		turn = take_turns(peer, room, now);
	vb_lane_reap(peer->lane);
}
