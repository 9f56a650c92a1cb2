/* A window for the unacknowledged transports. UC and UD tell their sender nothing, and a socket's receive buffer is
 * small: a sender that is faster than its receiver loses most of what it sends. Between Verbena peers an echo closes
 * the loop: a manufacturer opcode sent after the data, through the same socket, answered when the receiver's lane has
 * taken what came before it. Nothing waits for an echo longer than ECHO_PATIENCE; a lost one costs that and no more.
 * Others never see it. Whether a peer is one of ours is asked when a QP is first pointed at it; data waits for the
 * answer, no longer than ANSWER_PATIENCE. */
#include <stdlib.h>
#include "roce/roce.h"
#include "base/invariant.h"
#include "roce/batch.h"
#include "roce/echo.h"
#include "roce/peers.h"
#include "roce/requester.h"

#define ECHO_EVERY      32768
#define ECHO_PATIENCE   (100 * VB_MS) /* a receiver may have lost its core for a while */
#define ANSWER_PATIENCE (150 * VB_MS) /* time for the question to be asked twice */

/* ---- Who sends data ---------------------------------------------------------------------------------------------- */

static bool has_window(const struct vb_qp *qp)
{
	return qp->peer && qp->peer->facts.is_verbena;
}

static struct vb_echo *echo_of(struct vb_qp *qp)
{
	if (!vb_roce(qp)->echo)
		vb_roce(qp)->echo = calloc(1, sizeof(*vb_roce(qp)->echo));
	return vb_roce(qp)->echo;
}

/* Everything up to there has left the peer's receive buffer, or is given up. */
static void drain(struct vb_qp *qp, uint64_t drained)
{
	struct vb_echo *echo = vb_roce(qp)->echo;
	uint32_t freed = (uint32_t)(drained - echo->drained);
	assert(drained >= vb_roce(qp)->echo->drained && drained <= vb_roce(qp)->echo->sent);
	echo->drained = drained;
	vb_flight_remove(qp, freed, 0);
}

void vb_echo_give_up(struct vb_qp *qp)
{
	if (!vb_roce(qp)->echo)
		return;
	vb_roce(qp)->echo->answered = vb_roce(qp)->echo->asked;
	drain(qp, vb_roce(qp)->echo->sent);
	assert(vb_roce(qp)->echo->drained == vb_roce(qp)->echo->sent);
}

/* A UD QP has many destinations, its window is that of the present one: what it sent to others is out of its hands. */
void vb_echo_turn_to(struct vb_qp *qp, const struct vb_gid *gid, uint32_t qpn)
{
	uint8_t slot = (uint8_t)(qpn >> 16);
	struct vb_peer *peer = NULL;
	if (qp->peer && qp->peer->slot == slot && vb_gid_equal(&qp->peer->gid, gid))
		return;
	vb_echo_give_up(qp);
	if (qpn != VB_QPN_MULTICAST)
		vb_peer_get(qp->lane, gid, slot, &peer); /* without memory for one it goes as to an unknown peer */
	vb_flight_turn_to(qp, peer);
	assert(qp->peer == peer);
}

static void block(struct vb_echo *echo, vb_time now)
{
	if (echo->is_blocked)
		return;
	echo->is_blocked = true;
	echo->waits_since = now;
	assert(echo->is_blocked);
}

/* False when there is no memory to wait with. */
static bool wait_for_answer(struct vb_qp *qp, vb_time now)
{
	struct vb_echo *echo = echo_of(qp);
	if (!echo)
		return false;
	block(echo, now);
	if (!qp->timer.deadline.is_set)
		vb_timer_set(&qp->lane->timers, &qp->timer, vb_time_add(now, ANSWER_PATIENCE));
	return true;
}

bool vb_echo_allows(struct vb_qp *qp, uint32_t cost, vb_time now)
{
	assert(!qp->is_reliable);
	if (vb_peer_must_answer(qp) && wait_for_answer(qp, now))
		return false;
	struct vb_echo *echo = has_window(qp) ? echo_of(qp) : NULL;
	if (!echo)
		return true;
	if (vb_flight_allows(qp, cost, 0)) {
		echo->is_blocked = false;
		return true;
	}
	if (vb_roce(qp)->flight.out == 0)
		return false; /* others use up the peer's allowance: their echoes wake it */
	if (echo->asked == echo->answered)
		echo->is_due = true;
	block(echo, now);
	return false;
}

void vb_echo_on_sent(struct vb_qp *qp, const struct vb_outgoing *out, uint32_t cost)
{
	struct vb_echo *echo = has_window(qp) ? echo_of(qp) : NULL;
	if (!echo)
		return;
	echo->sent += cost;
	echo->waits_since = qp->lane->now;
	if (!qp->timer.deadline.is_set)
		vb_timer_set(&qp->lane->timers, &qp->timer, vb_time_add(qp->lane->now, ECHO_PATIENCE));
	vb_flight_add(qp, cost, 0);
	echo->qpn = out->packet.dest_qpn;
	echo->av = *out->av;
	if (echo->sent - echo->asked_at_bytes >= ECHO_EVERY && echo->asked - echo->answered < VB_ECHO_MARKS)
		echo->is_due = true;
	assert(echo->asked - echo->answered <= VB_ECHO_MARKS);
}

bool vb_echo_must_drain(struct vb_qp *qp, vb_time now)
{
	struct vb_echo *echo = vb_roce(qp)->echo;
	if (!echo || vb_roce(qp)->flight.out == 0)
		return false;
	if (echo->asked == echo->answered)
		echo->is_due = true;
	block(echo, now);
	return true;
}

void vb_echo_emit_request(struct vb_qp *qp, struct vb_batch *batch)
{
	struct vb_echo *echo = vb_roce(qp)->echo;
	struct vb_outgoing *out = vb_batch_add(batch, qp, VB_ECHO_REQUEST, &echo->av);
	echo->is_due = false;
	echo->asked++;
	echo->marks[echo->asked % VB_ECHO_MARKS] = echo->sent;
	echo->asked_at_bytes = echo->sent;
	out->packet.dest_qpn = echo->qpn;
	out->packet.psn = echo->asked & VB_PSN_MASK;
	out->packet.src_qpn = qp->qpn;
	assert(!echo->is_due);
}

static void resume(struct vb_qp *qp)
{
	assert(vb_roce(qp)->echo);
	vb_roce(qp)->echo->is_blocked = false;
	vb_schedule(qp);
}

static void receive_reply(struct vb_qp *qp, const struct vb_packet *packet)
{
	struct vb_echo *echo = vb_roce(qp)->echo;
	uint32_t ahead = echo ? (packet->psn - echo->answered) & VB_PSN_MASK : 0;
	if (ahead == 0 || ahead > echo->asked - echo->answered) {
		vb_count(qp->lane, VB_DROP_STALE_ACK, 1);
		return;
	}
	echo->answered += ahead;
	drain(qp, echo->marks[echo->answered % VB_ECHO_MARKS]);
	if (echo->is_blocked)
		resume(qp);
}

/* Nobody answered, or nobody was asked since the sender fell silent: what was sent is gone, one way or another. */
void vb_echo_on_timer(struct vb_qp *qp, vb_time now)
{
	struct vb_echo *echo = vb_roce(qp)->echo;
	if (!echo || (echo->sent == echo->drained && !echo->is_blocked))
		return;
	bool is_asked = qp->peer && qp->peer->facts.is_asked;
	vb_time due = vb_time_add(echo->waits_since, is_asked ? ANSWER_PATIENCE : ECHO_PATIENCE);
	if (!vb_time_is_due(due, now)) {
		vb_timer_set(&qp->lane->timers, &qp->timer, due);
		return;
	}
	if (is_asked)
		vb_lane_set_peer(qp->lane, &qp->peer->gid, &(struct vb_peer_facts){ 0 }); /* an unknown peer, then */
	vb_echo_give_up(qp);
	if (echo->is_blocked)
		resume(qp);
}

/* ---- Who receives it --------------------------------------------------------------------------------------------- */

static void note_request(struct vb_qp *qp, const struct vb_path *path, const struct vb_packet *packet)
{
	struct vb_lane *lane = qp->lane;
	if (!vb_roce_lane(lane)->echo_replies)
		vb_roce_lane(lane)->echo_replies = calloc(VB_ECHO_REPLIES, sizeof(*vb_roce_lane(lane)->echo_replies));
	if (!vb_roce_lane(lane)->echo_replies ||
		vb_roce_lane(lane)->echo_tail - vb_roce_lane(lane)->echo_next >= VB_ECHO_REPLIES)
		return;
	vb_roce_lane(lane)->echo_replies[vb_roce_lane(lane)->echo_tail++ % VB_ECHO_REPLIES] = (struct vb_echo_reply){
		.qp = qp,
		.qpn = packet->src_qpn,
		.psn = packet->psn,
		.av = { .sgid = path->dst, .dgid = path->src },
	};
	assert(vb_roce_lane(lane)->echo_tail - vb_roce_lane(lane)->echo_next <= VB_ECHO_REPLIES);
}

void vb_echo_receive(struct vb_qp *qp, const struct vb_path *path, const struct vb_packet *packet)
{
	if (qp->is_reliable || vb_state(qp) < VB_QPS_RTR || vb_state(qp) == VB_QPS_ERR) {
		vb_count(qp->lane, VB_DROP_QP_STATE, 1);
		return;
	}
	if (packet->opcode == VB_ECHO_REQUEST)
		note_request(qp, path, packet);
	else
		receive_reply(qp, packet);
}

bool vb_echo_emit_reply(struct vb_lane *lane, struct vb_batch *batch)
{
	while (vb_roce_lane(lane)->echo_next != vb_roce_lane(lane)->echo_tail) {
		struct vb_echo_reply *reply =
			&vb_roce_lane(lane)->echo_replies[vb_roce_lane(lane)->echo_next++ % VB_ECHO_REPLIES];
		if (!reply->qp)
			continue;
		struct vb_outgoing *out = vb_batch_add(batch, reply->qp, VB_ECHO_REPLY, &reply->av);
		out->packet.dest_qpn = reply->qpn;
		out->packet.psn = reply->psn;
		return true;
	}
	return false;
}

void vb_echo_forget(struct vb_qp *qp)
{
	struct vb_lane *lane = qp->lane;
	for (uint32_t i = vb_roce_lane(lane)->echo_next; i != vb_roce_lane(lane)->echo_tail; i++) {
		struct vb_echo_reply *reply = &vb_roce_lane(lane)->echo_replies[i % VB_ECHO_REPLIES];
		if (reply->qp == qp)
			reply->qp = NULL;
	}
}
