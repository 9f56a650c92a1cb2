/* Same host: READs whose bytes the requester pulls out of the peer's memory.
 * Holds: work requests complete in order. Behind a READ that is being pulled answers are heard and what they bring is
 * put in its place, but nothing completes; what a refusal or the like asks for is done when no READ is left before it.
 * So their FIFO is always read on, and no answer is kept but the word of the last.
 *
 * What cannot be pulled is asked for again, in parts, by the heap: when a key like its own was closed meanwhile, or our
 * place or theirs is no ordinary memory, or we may not. These descriptors stand outside of the order of PSNs, since the
 * peer has executed what was behind the READ; they have its own PSN, and so have their answers. The oldest READ alone
 * is asked for again.
 * Not here: the responder's answers (receive.c). */
#include "base/invariant.h"
#include "core/lane.h"
#include "local/parts.h"
#include "core/memory.h"
#include "core/message.h"
#include "core/qp.h"
#include "core/send_queue.h"

static struct vb_send_wqe *oldest(const struct vb_qp *qp)
{
	return vb_send_wqe_at(&qp->sq, qp->local->oldest_lent);
}

bool vb_local_can_pull(const struct vb_qp *qp, const struct vb_send_wqe *wqe)
{
	uint32_t from = qp->local_peer->pull_from;
	if (from == 0 || wqe->length < from || qp->local->never_pulls)
		return false;
	for (uint32_t i = 0; i < wqe->sge_count; i++) {
		struct vb_reach reach;
		if (vb_reach_local(qp->pd, &wqe->sges[i], 0, wqe->sges[i].length, VB_ACCESS_LOCAL_WRITE, &reach) ||
			reach.kind)
			return false;
	}
	return true;
}

/* ---- In line ----------------------------------------------------------------------------------------------------- */

/* The oldest is pulled, or asked for again. */
static void attend(struct vb_qp *qp)
{
	struct vb_local *local = qp->local;
	vb_list_remove(&local->reader_link);
	if (local->lent_count == 0)
		return;
	struct vb_send_wqe *wqe = oldest(qp);
	wqe->lent.is_again |= local->never_pulls;
	if (wqe->lent.is_again)
		vb_local_schedule(qp);
	else
		vb_list_add_tail(&local->qp->local_peer->readers, &local->reader_link);
}

void vb_local_lent(struct vb_qp *qp, uint32_t index, const struct vb_answer *answer)
{
	struct vb_local *local = qp->local;
	struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, index);
	bool is_first = local->lent_count++ == 0;
	if (answer->kind == VB_ANSWER_IN_PARTS) /* so is most likely what else it has */
		local->never_pulls = true;
	wqe->lent.address = answer->address;
	wqe->lent.removals = answer->removals;
	wqe->lent.segment = answer->segment;
	wqe->lent.here = wqe->lent.asked = 0;
	wqe->lent.is_again = wqe->lent.is_missing = false;
	if (is_first)
		local->oldest_lent = index;
	else
		vb_send_wqe_at(&qp->sq, local->newest_lent)->lent.next = index;
	local->newest_lent = index;
	local->heard_psn = vb_psn_add(wqe->first_psn, 1);
	local->heard_index = vb_after_local_operations(qp, index + 1);
	if (is_first)
		attend(qp);
	assert(local->lent_count > 0);
}

/* All of the oldest is here, and with it what was heard up to the next. What was kept is vb_local_go_on's. */
static void finish(struct vb_qp *qp, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	struct vb_local *local = qp->local;
	bool is_last = --local->lent_count == 0;
	assert(oldest(qp)->lent.here == oldest(qp)->length);
	if (!is_last)
		local->oldest_lent = oldest(qp)->lent.next;
	rq->rd_atomic_out--;
	rq->una_psn = is_last ? local->heard_psn : oldest(qp)->first_psn;
	vb_sq_retire_to(qp, is_last ? local->heard_index : local->oldest_lent);
	vb_local_renew(qp, now);
	attend(qp);
}

void vb_local_forget_reads(struct vb_qp *qp)
{
	struct vb_local *local = qp->local;
	if (local->lent_count == 0)
		return;
	vb_list_remove(&local->reader_link);
	if (local->qp->local_peer->reader == qp)
		local->qp->local_peer->reader = NULL;
	local->qp->local_peer->is_held = false;
	local->lent_count = 0;
	local->has_kept = false;
	assert(!vb_list_linked(&local->reader_link));
}

bool vb_local_is_held(struct vb_local_peer *peer, const struct vb_descriptor *descriptor)
{
	if (vb_list_empty(&peer->readers) || vb_opcodes[descriptor->opcode].message == VB_MESSAGE_READ)
		return false;
	const struct vb_qp *qp = vb_lane_find_qp(peer->lane, descriptor->dest_qpn);
	if (!qp || qp->local_peer != peer || !vb_list_linked(&qp->local->reader_link))
		return false;
	if (!peer->is_held) /* for those, and not for others that follow without end */
		peer->held_psn = qp->local->heard_psn;
	peer->is_held = vb_psn_diff(peer->held_psn, qp->requester.una_psn) > 0;
	return peer->is_held;
}

bool vb_local_would_overtake(const struct vb_qp *qp, const struct vb_descriptor *descriptor)
{
	return qp->local->lent_count > 0 && oldest(qp)->lent.is_again &&
	       vb_opcodes[descriptor->opcode].message != VB_MESSAGE_READ;
}

/* ---- Pulling ----------------------------------------------------------------------------------------------------- */

static void begin_again(struct vb_qp *qp)
{
	oldest(qp)->lent.is_again = true;
	attend(qp);
	assert(!vb_list_linked(&qp->local->reader_link));
}

/* False: its place is no ordinary memory, or not ours. */
static bool add_read(const struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t length, struct vb_local_pull *pull)
{
	unsigned places = pull->iov_count;
	if (!vb_scatter_places(
		    qp->pd, wqe->sges, wqe->sge_count, wqe->lent.here, length, pull->iov, &pull->iov_count)) {
		pull->iov_count = places;
		return false;
	}
	vb_local_pull_add(pull, wqe->lent.address + wqe->lent.here, length, wqe->lent.segment);
	return true;
}

static void set_proof(const struct vb_send_wqe *wqe, struct vb_local_pull *pull)
{
	pull->proof_at = (uint32_t)offsetof(struct vb_epochs, removals[vb_epochs_place(wqe->rkey)]);
	pull->proof_bytes = sizeof(wqe->lent.removals);
	pull->proof = 0;
	memcpy(&pull->proof, &wqe->lent.removals, sizeof(wqe->lent.removals));
}

/* READs of the same key, behind one of which all is pulled. */
static void add_following(struct vb_local_peer *peer, const struct vb_qp *qp, struct vb_local_pull *pull)
{
	const struct vb_send_wqe *before = oldest(qp);
	while (peer->read_count < qp->local->lent_count && !qp->local->never_pulls) {
		const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, before->lent.next);
		if (wqe->rkey != before->rkey || wqe->lent.removals != before->lent.removals ||
			!vb_local_pull_has_room(pull, wqe->length, wqe->sge_count) ||
			!add_read(qp, wqe, wqe->length, pull))
			return;
		peer->read_count++;
		before = wqe;
	}
}

bool vb_local_pull_read(struct vb_local_peer *peer, struct vb_local_pull *pull)
{
	while (!vb_list_empty(&peer->readers)) {
		struct vb_qp *qp = vb_container_of(peer->readers.next, struct vb_local, reader_link)->qp;
		const struct vb_send_wqe *wqe = oldest(qp);
		uint32_t rest = wqe->length - wqe->lent.here;
		uint32_t piece = rest < VB_LOCAL_PULL_MAX ? rest : VB_LOCAL_PULL_MAX;
		pull->lent_count = pull->iov_count = 0;
		pull->length = 0;
		if (!add_read(qp, wqe, piece, pull)) {
			begin_again(qp);
			continue;
		}
		set_proof(wqe, pull);
		peer->reader = qp;
		peer->read_piece = piece;
		peer->read_count = 1;
		if (piece == rest && !peer->reads_singly)
			add_following(peer, qp, pull);
		return true;
	}
	return false;
}

static void take_read(struct vb_local_peer *peer, struct vb_qp *qp, uint32_t piece, vb_time now)
{
	struct vb_send_wqe *wqe = oldest(qp);
	vb_count(qp->lane, VB_RX_BYTES, piece);
	peer->read_bytes += piece;
	wqe->lent.asked = wqe->lent.here += piece;
	if (wqe->lent.here == wqe->length)
		finish(qp, now);
	else
		attend(qp);
}

/* The first of them a piece, the others whole; to finish one may end them all. */
static void take_reads(struct vb_local_peer *peer, struct vb_qp *qp, vb_time now)
{
	take_read(peer, qp, peer->read_piece, now);
	for (unsigned i = 1; i < peer->read_count && qp->local->lent_count > 0; i++)
		take_read(peer, qp, oldest(qp)->length, now);
}

struct vb_qp *vb_local_read_pulled(struct vb_local_peer *peer, enum vb_local_outcome outcome, vb_time now)
{
	struct vb_qp *qp = peer->reader;
	struct vb_send_wqe *wqe = oldest(qp);
	uint32_t before = qp->local->lent_count;
	peer->reader = NULL;
	peer->reads_singly = outcome != VB_PULLED && outcome != VB_PULL_REFUSED && peer->read_count > 1;
	if (peer->reads_singly)
		return NULL; /* one of them is at fault: the oldest by itself */
	if (outcome == VB_PULLED) {
		take_reads(peer, qp, now);
		return qp->local->lent_count != before ? qp : NULL;
	}
	if (outcome == VB_PULL_REFUSED)
		qp->local->never_pulls = true;
	wqe->lent.is_missing = outcome == VB_PULL_FAULT;
	begin_again(qp);
	return NULL;
}

/* ---- Asking again ------------------------------------------------------------------------------------------------ */

/* As many parts at a time as READs. */
bool vb_local_ask_again(struct vb_qp *qp, struct vb_local_room *room)
{
	if (qp->local->lent_count == 0 || !oldest(qp)->lent.is_again)
		return true;
	struct vb_send_wqe *wqe = oldest(qp);
	uint32_t most = wqe->lent.is_missing ? 1 : qp->attr.max_rd_atomic;
	while (wqe->lent.asked < wqe->length && wqe->lent.asked - wqe->lent.here < most * VB_LOCAL_PART) {
		uint32_t part = vb_local_part_from(wqe, wqe->lent.asked);
		if (room->descriptor_count == room->descriptor_max)
			return false;
		struct vb_descriptor *descriptor = &room->descriptors[room->descriptor_count];
		descriptor->opcode = (uint8_t)(qp->service | VB_READ_REQUEST);
		descriptor->nature = (struct vb_local_nature){ VB_LOCAL_NOWHERE,
			wqe->lent.is_missing ? VB_LOCAL_AGAIN | VB_LOCAL_PULLS : VB_LOCAL_AGAIN };
		descriptor->dest_qpn = qp->attr.dest_qpn;
		descriptor->src_qpn = qp->qpn;
		descriptor->psn = wqe->first_psn;
		descriptor->srqn = qp->type == VB_QP_XRC_SEND ? wqe->srqn : 0;
		descriptor->length = part;
		descriptor->va = wqe->remote_addr + wqe->lent.asked;
		descriptor->rkey = wqe->rkey;
		descriptor->imm_or_inv = 0;
		vb_local_add(room);
		wqe->lent.asked += part;
		vb_count(qp->lane, VB_TX_PACKETS, 1);
	}
	return true;
}

bool vb_local_asks_again(const struct vb_qp *qp, uint32_t psn)
{
	return qp->local->lent_count > 0 && oldest(qp)->lent.is_again && oldest(qp)->first_psn == psn;
}

static void take_part(struct vb_qp *qp, const struct vb_answer *answer, const struct vb_local_heap *heap, vb_time now)
{
	struct vb_send_wqe *wqe = oldest(qp);
	uint32_t here = wqe->lent.here;
	bool is_asked = wqe->lent.asked > here && answer->length == vb_local_part_from(wqe, here);
	assert(oldest(qp)->lent.is_again);
	if (!is_asked || !vb_answer_lies_in(answer, heap)) {
		vb_qp_fail(qp, VB_CAUSE_BAD_RESPONSE, VB_WC_BAD_RESP_ERR, now);
		return;
	}
	if (!vb_scatter(qp->pd, &qp->known_lkey, wqe->sges, wqe->sge_count, here, vb_answer_bytes(answer, heap),
		    answer->length, true)) {
		vb_qp_fail(qp, VB_CAUSE_LOCAL_SGE, VB_WC_LOC_PROT_ERR, now);
		return;
	}
	vb_count(qp->lane, VB_RX_BYTES, answer->length);
	wqe->lent.here += answer->length;
	if (wqe->lent.here == wqe->length)
		finish(qp, now);
	else
		vb_local_schedule(qp);
}

/* The QP there has refused a later request, or its program has taken it away: it does not come back. */
static void give_up(struct vb_qp *qp, vb_time now)
{
	const struct vb_local *local = qp->local;
	if (local->has_kept && local->kept_kind == VB_ANSWER_REFUSED)
		vb_requester_refused(qp, local->kept_code, now);
	else
		vb_qp_fail(qp, VB_CAUSE_RETRY_EXCEEDED, VB_WC_RETRY_EXC_ERR, now);
}

void vb_local_answered_again(
	struct vb_qp *qp, const struct vb_answer *answer, const struct vb_local_heap *heap, vb_time now)
{
	switch ((enum vb_answer_kind)answer->kind) {
	case VB_ANSWER_READ:
		take_part(qp, answer, heap, now);
		break;
	case VB_ANSWER_REFUSED:
		vb_requester_refused(qp, answer->code, now);
		break;
	case VB_ANSWER_ABSENT:
		give_up(qp, now);
		break;
	default:
		vb_qp_fail(qp, VB_CAUSE_BAD_RESPONSE, VB_WC_BAD_RESP_ERR, now);
		break;
	}
}

void vb_local_check_reads(const struct vb_qp *qp)
{
	const struct vb_requester *rq = &qp->requester;
	const struct vb_local *local = qp->local;
	if (local->lent_count == 0) {
		assert(!local->has_kept && !vb_list_linked(&local->reader_link));
		return;
	}
	const struct vb_send_wqe *wqe = oldest(qp);
	uint32_t index = local->oldest_lent;
	assert(local->qp->local_peer && is_read(wqe) && wqe->is_started && rq->una_psn == wqe->first_psn);
	assert(wqe->lent.here < wqe->length && wqe->lent.here <= wqe->lent.asked && wqe->lent.asked <= wqe->length);
	assert(vb_list_linked(&local->reader_link) == !wqe->lent.is_again);
	assert(vb_psn_diff(local->heard_psn, rq->una_psn) > 0 && vb_psn_diff(rq->next_psn, local->heard_psn) >= 0);
	assert(rq->rd_atomic_out >= local->lent_count);
	for (uint32_t i = 1; i < local->lent_count; i++)
		index = vb_send_wqe_at(&qp->sq, index)->lent.next;
	assert(index == local->newest_lent);
}
