/* Same host: which QPs go by descriptors, and the end of a QP or a neighbour with requests under way.
 * Holds: a QP's way changes only while nothing of it is under way; what was executed is said to the peer, or the
 * neighbour is lost.
 * Not here: sending (send.c), executing (receive.c, pull.c). */
#include "local/parts.h"
#include <stdlib.h>
#include "base/invariant.h"
#include "core/lane.h"
#include "core/message.h"
#include "core/peers.h"
#include "core/qp.h"
#include "core/send_queue.h"

void vb_neighbour_set_lending(struct vb_neighbour *neighbour, uint32_t lend_from)
{
	neighbour->lend_from = lend_from && lend_from < VB_LOCAL_LEND_MIN ? VB_LOCAL_LEND_MIN : lend_from;
}

void vb_neighbour_init(struct vb_neighbour *neighbour, struct vb_lane *lane, uint8_t slot, uint32_t lend_from)
{
	*neighbour = (struct vb_neighbour){ .lane = lane, .slot = slot };
	vb_neighbour_set_lending(neighbour, lend_from);
	vb_list_init(&neighbour->ready);
	vb_list_init(&neighbour->users);
	vb_list_init(&neighbour->debts);
	vb_list_init(&neighbour->readers);
	vb_list_init(&neighbour->datagrams);
	vb_list_init(&neighbour->watch_link);
}

void vb_neighbour_set_mapping(struct vb_neighbour *neighbour, bool maps_segments)
{
	neighbour->maps_segments = maps_segments;
}

void vb_neighbour_set_pulling(struct vb_neighbour *neighbour, uint32_t pull_from)
{
	neighbour->pull_from = pull_from;
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

/* ---- Which way ------------------------------------------------------------------------------------------------- */

/* Something is under way, or cut into parts to be sent. */
static bool has_begun(const struct vb_qp *qp)
{
	return vb_requester_is_busy(qp) || (!sq_is_empty(qp) && head_wqe(qp)->is_started);
}

static bool is_idle(const struct vb_qp *qp)
{
	return !has_begun(qp) && qp->requester.cursor == head_index(qp) && !qp->requester.doomed;
}

static bool has_sent_nothing(const struct vb_qp *qp)
{
	return qp->requester.ssn == 0 && qp->requester.max_psn == qp->attr.sq_psn;
}

static void turn_to(struct vb_qp *qp, struct vb_neighbour *neighbour)
{
	vb_list_remove(&qp->local->link);
	vb_list_remove(&qp->local->user_link);
	vb_local_forget_reads(qp);
	qp->neighbour = neighbour;
	qp->way = neighbour ? &vb_local_transport : qp->transport;
	qp->local->never_lends = qp->local->never_pulls = false;
	qp->requester.has_credits = false;
	if (neighbour)
		vb_list_add_tail(&neighbour->users, &qp->local->user_link);
	assert((qp->neighbour != NULL) == (qp->way != qp->transport));
}

void vb_local_choose(struct vb_qp *qp)
{
	struct vb_neighbour *neighbour = qp->peer ? qp->peer->neighbour : NULL;
	if (neighbour && neighbour->is_lost)
		neighbour = NULL;
	if (neighbour == qp->neighbour || qp->type == VB_QP_UD || qp->type == VB_QP_RAW)
		return;
	/* Packets that UC sent may be anywhere, and must not be overtaken. */
	if (is_idle(qp) && (qp->is_reliable || has_sent_nothing(qp)))
		turn_to(qp, neighbour);
}

/* ---- Goodbyes -------------------------------------------------------------------------------------------------- */

/* The lender hears that nobody takes the bytes any more. */
static void abandon_pull(struct vb_qp *qp)
{
	struct vb_neighbour *neighbour = qp->local->pulls;
	if (!neighbour)
		return;
	qp->local->pulls = NULL;
	neighbour->puller = NULL;
	neighbour->has_pending = true;
	neighbour->pending = (struct vb_answer){ .dest_qpn = neighbour->pulled.src_qpn,
		.src_qpn = qp->qpn,
		.psn = neighbour->pulled.psn,
		.kind = VB_ANSWER_ABSENT };
}

void vb_local_stop(struct vb_qp *qp)
{
	vb_list_remove(&qp->local->link);
	vb_local_forget_reads(qp);
	vb_local_forget_datagrams(qp);
	abandon_pull(qp);
}

/* Pending acks are still said. */
void vb_local_leave(struct vb_qp *qp)
{
	struct vb_debt *debt = qp->local->debt;
	vb_local_stop(qp);
	turn_to(qp, NULL);
	qp->local->debt = NULL;
	if (debt && vb_list_linked(&debt->link))
		debt->is_orphan = true;
	else
		free(debt);
	assert(!qp->neighbour);
}

static void forget_debts(struct vb_neighbour *neighbour)
{
	struct vb_list *node;
	while ((node = vb_list_pop(&neighbour->debts))) {
		struct vb_debt *debt = vb_container_of(node, struct vb_debt, link);
		if (debt->is_orphan)
			free(debt);
	}
}

/* UC knows nothing of what becomes of its messages: those that were sent are done, and one of which parts were starts
 * afresh. */
static void finish_unacknowledged(struct vb_qp *qp, vb_time now)
{
	struct vb_requester *rq = &qp->requester;
	rq->una_psn = rq->next_psn = rq->max_psn;
	vb_sq_retire_to(qp, rq->cursor);
	if (!sq_is_empty(qp))
		head_wqe(qp)->is_started = false;
	vb_requester_proceed(qp, now);
}

static void lose(struct vb_qp *qp, vb_time now)
{
	bool was_busy = has_begun(qp);
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

void vb_local_lost(struct vb_neighbour *neighbour, vb_time now)
{
	struct vb_qp *puller = neighbour->puller;
	struct vb_list *node;
	neighbour->lane->now = now;
	neighbour->is_lost = true;
	vb_peers_lose(neighbour->lane, neighbour);
	neighbour->puller = NULL;
	neighbour->has_pending = false;
	if (puller) {
		puller->target.open = VB_NO_MESSAGE;
		puller->local->pulls = NULL;
	}
	forget_debts(neighbour);
	vb_local_drop_datagrams(neighbour, now);
	while ((node = vb_list_pop(&neighbour->users)))
		lose(vb_container_of(node, struct vb_local, user_link)->qp, now);
	vb_lane_reap(neighbour->lane);
	assert(vb_list_empty(&neighbour->users));
}

/* ---- Checks ---------------------------------------------------------------------------------------------------- */

void vb_local_check(const struct vb_qp *qp)
{
	const struct vb_local *local = qp->local;
	assert(vb_list_linked(&local->user_link) == (local->qp->neighbour != NULL));
	assert(!vb_list_linked(&local->link) || local->qp->neighbour);
	if (local->debt)
		assert(!local->debt->is_orphan);
	vb_local_check_reads(qp);
	if (!local->qp->neighbour)
		return;
	assert(vb_psn_diff(qp->requester.next_psn, qp->requester.una_psn) >= 0);
	assert(vb_psn_diff(qp->requester.max_psn, qp->requester.next_psn) >= 0);
}

void vb_neighbour_check(const struct vb_neighbour *neighbour)
{
	vb_list_for_each (node, &neighbour->users)
		assert(vb_container_of(node, struct vb_local, user_link)->qp->neighbour == neighbour);
	vb_list_for_each (node, &neighbour->ready)
		assert(vb_container_of(node, struct vb_local, link)->qp->neighbour == neighbour);
	vb_list_for_each (node, &neighbour->debts)
		assert(vb_container_of(node, struct vb_debt, link)->to == neighbour);
	vb_list_for_each (node, &neighbour->readers)
		assert(vb_container_of(node, struct vb_local, reader_link)->qp->neighbour == neighbour);
	vb_local_check_datagrams(neighbour);
	if (!neighbour->puller)
		return;
	assert(neighbour->puller->local->pulls == neighbour && !neighbour->has_pending);
	assert(neighbour->pulled_bytes < neighbour->pulled.length && !neighbour->here);
	assert(neighbour->pulled_ahead <= neighbour->ahead_count && neighbour->ahead_count < VB_LOCAL_PULL_ITEMS);
}
