/* Same host: which QPs go by descriptors, and the end of a QP or a local peer with requests under way.
 * Holds: a QP's way changes only while nothing of it is under way; what was executed is said to the peer, or the
 * local peer is lost.
 * Not here: sending (send.c), executing (receive.c, pull.c). */
#include "local/parts.h"
#include <stdlib.h>
#include "base/invariant.h"
#include "core/lane.h"
#include "core/message.h"
#include "core/peers.h"
#include "core/qp.h"
#include "core/send_queue.h"

void vb_local_peer_set_lending(struct vb_local_peer *peer, uint32_t lend_from)
{
	peer->lend_from = lend_from && lend_from < VB_LOCAL_LEND_MIN ? VB_LOCAL_LEND_MIN : lend_from;
}

void vb_local_peer_init(struct vb_local_peer *peer, struct vb_lane *lane, uint8_t slot, uint32_t lend_from)
{
	*peer = (struct vb_local_peer){ .lane = lane, .slot = slot };
	vb_local_peer_set_lending(peer, lend_from);
	vb_list_init(&peer->ready);
	vb_list_init(&peer->users);
	vb_list_init(&peer->pending_acks);
	vb_list_init(&peer->readers);
	vb_list_init(&peer->datagrams);
	vb_list_init(&peer->watch_link);
}

void vb_local_peer_set_mapping(struct vb_local_peer *peer, bool maps_segments)
{
	peer->maps_segments = maps_segments;
}

void vb_local_peer_set_pulling(struct vb_local_peer *peer, uint32_t pull_from)
{
	peer->pull_from = pull_from;
}

static struct vb_deadline no_deadline(const struct vb_qp *qp)
{
	return (struct vb_deadline){ 0 };
}

static void ignore_timer(struct vb_qp *qp, vb_time now) {}

/* Descriptors that were sent are refused by the peer one by one: there is nothing to take back. */
static void go_back(struct vb_qp *qp) {}

const struct vb_transport vb_local_transport = {
	.schedule = vb_local_schedule,
	.cut = vb_local_cut,
	.deadline = no_deadline,
	.on_timer = ignore_timer,
	.go_back = go_back,
};

void vb_local_init(struct vb_qp *qp, struct vb_local *local)
{
	qp->local = local;
	local->qp = qp;
	vb_list_init(&local->link);
	vb_list_init(&local->user_link);
	vb_list_init(&local->reader_link);
}

/* ---- Which way --------------------------------------------------------------------------------------------------- */

/* Something is under way, or cut into parts to be sent. */
static bool has_begun(const struct vb_qp *qp)
{
	return vb_requester_is_busy(qp) || (!sq_is_empty(qp) && head_wqe(qp)->is_started);
}

static bool is_idle(const struct vb_qp *qp)
{
	return !has_begun(qp) && qp->requester.cursor == head_index(qp) && !qp->requester.pending_error;
}

static bool has_sent_nothing(const struct vb_qp *qp)
{
	return qp->requester.ssn == 0 && qp->requester.max_psn == qp->attr.sq_psn;
}

static void turn_to(struct vb_qp *qp, struct vb_local_peer *peer)
{
	vb_list_remove(&qp->local->link);
	vb_list_remove(&qp->local->user_link);
	vb_local_forget_reads(qp);
	qp->local_peer = peer;
	qp->way = peer ? &vb_local_transport : qp->transport;
	qp->local->never_lends = qp->local->never_pulls = false;
	qp->requester.has_credits = false;
	if (peer)
		vb_list_add_tail(&peer->users, &qp->local->user_link);
	assert((qp->local_peer != NULL) == (qp->way != qp->transport));
}

void vb_local_choose(struct vb_qp *qp)
{
	struct vb_local_peer *peer = qp->peer ? qp->peer->local_peer : NULL;
	if (peer && peer->is_lost)
		peer = NULL;
	if (peer == qp->local_peer || qp->type == VB_QP_UD || qp->type == VB_QP_RAW)
		return;
	/* Packets that UC sent may be anywhere, and must not be overtaken. */
	if (is_idle(qp) && (qp->is_reliable || has_sent_nothing(qp)))
		turn_to(qp, peer);
}

/* ---- Goodbyes ---------------------------------------------------------------------------------------------------- */

/* The lender hears that nobody takes the bytes any more. */
static void abandon_pull(struct vb_qp *qp)
{
	struct vb_local_peer *peer = qp->local->pulls;
	if (!peer)
		return;
	qp->local->pulls = NULL;
	peer->puller = NULL;
	peer->has_pending = true;
	peer->pending = (struct vb_answer){
		.dest_qpn = peer->pulled.src_qpn, .src_qpn = qp->qpn, .psn = peer->pulled.psn, .kind = VB_ANSWER_ABSENT
	};
}

void vb_local_take_leave(struct vb_qp *qp)
{
	struct vb_pending_ack *ack = qp->local->ack;
	struct vb_local_peer *peer = qp->peer ? qp->peer->local_peer : NULL;
	if (!ack || !peer || ack->to != peer || peer->is_lost)
		return;
	ack->goes_alone = true;
	if (!ack->is_carried)
		return;
	assert(!vb_list_linked(&ack->link));
	vb_list_add_tail(&peer->pending_acks, &ack->link);
	ack->is_awaited = true;
	ack->is_carried = false;
}

void vb_local_stop(struct vb_qp *qp)
{
	vb_local_take_leave(qp);
	vb_list_remove(&qp->local->link);
	vb_local_forget_reads(qp);
	vb_local_forget_datagrams(qp);
	abandon_pull(qp);
}

/* Pending acks are still said. */
void vb_local_leave(struct vb_qp *qp)
{
	struct vb_pending_ack *ack = qp->local->ack;
	vb_local_stop(qp);
	turn_to(qp, NULL);
	qp->local->ack = NULL;
	if (ack && vb_list_linked(&ack->link))
		ack->is_orphan = true;
	else
		free(ack);
	assert(!qp->local_peer);
}

static void forget_pending_acks(struct vb_local_peer *peer)
{
	struct vb_list *node;
	while ((node = vb_list_pop(&peer->pending_acks))) {
		struct vb_pending_ack *ack = vb_container_of(node, struct vb_pending_ack, link);
		if (ack->is_orphan)
			free(ack);
	}
}

/* UC knows nothing of what becomes of its messages: those that were sent are done, and one of which parts were starts
 * afresh. A peer that has not lost us yet is not to take what they lent. */
static void finish_unacknowledged(struct vb_qp *qp, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	vb_handed_out_disown(qp);
	rq->una_psn = rq->next_psn = rq->max_psn;
	vb_sq_retire_to(qp, rq->cursor);
	if (!sq_is_empty(qp))
		head_wqe(qp)->is_started = false;
	vb_requester_proceed(qp, now);
}

static void lose(struct vb_qp *qp, vb_time now)
{
	bool was_busy = has_begun(qp);
	if (qp->local->ack)
		qp->local->ack->is_carried = false;
	turn_to(qp, NULL);
	if (was_busy && qp->is_reliable) {
		vb_qp_fail(qp, VB_CAUSE_PEER_DIED, VB_WC_RETRY_EXC_ERR, now);
		return;
	}
	qp->requester.heard_at = now; /* its end is the last that is heard of it: see vb_qp_silent_for */
	if (was_busy)
		finish_unacknowledged(qp, now);
	vb_schedule(qp);
}

void vb_local_lost(struct vb_local_peer *peer, vb_time now)
{
	struct vb_qp *puller = peer->puller;
	struct vb_list *node;
	peer->lane->now = now;
	peer->is_lost = true;
	vb_peers_lose(peer->lane, peer);
	peer->puller = NULL;
	peer->has_pending = false;
	if (puller) {
		puller->target.open = VB_NO_MESSAGE;
		puller->local->pulls = NULL;
	}
	forget_pending_acks(peer);
	vb_local_drop_datagrams(peer, now);
	while ((node = vb_list_pop(&peer->users)))
		lose(vb_container_of(node, struct vb_local, user_link)->qp, now);
	vb_lane_reap(peer->lane);
	assert(vb_list_empty(&peer->users));
}

/* ---- Checks ------------------------------------------------------------------------------------------------------ */

void vb_local_check(const struct vb_qp *qp)
{
	const struct vb_local *local = qp->local;
	assert(vb_list_linked(&local->user_link) == (local->qp->local_peer != NULL));
	assert(!vb_list_linked(&local->link) || local->qp->local_peer);
	if (local->ack)
		assert(!local->ack->is_orphan);
	vb_local_check_reads(qp);
	if (!local->qp->local_peer)
		return;
	assert(vb_psn_diff(qp->requester.next_psn, qp->requester.una_psn) >= 0);
	assert(vb_psn_diff(qp->requester.max_psn, qp->requester.next_psn) >= 0);
}

void vb_local_peer_check(const struct vb_local_peer *peer)
{
	vb_list_for_each (node, &peer->users)
		assert(vb_container_of(node, struct vb_local, user_link)->qp->local_peer == peer);
	vb_list_for_each (node, &peer->ready)
		assert(vb_container_of(node, struct vb_local, link)->qp->local_peer == peer);
	vb_list_for_each (node, &peer->pending_acks)
		assert(vb_container_of(node, struct vb_pending_ack, link)->to == peer);
	vb_list_for_each (node, &peer->readers)
		assert(vb_container_of(node, struct vb_local, reader_link)->qp->local_peer == peer);
	vb_local_check_datagrams(peer);
	if (!peer->puller)
		return;
	assert(peer->puller->local->pulls == peer && !peer->has_pending);
	assert(peer->pulled_bytes < peer->pulled.length && !peer->here);
	assert(peer->pulled_ahead <= peer->ahead_count && peer->ahead_count < VB_LOCAL_PULL_ITEMS);
}
