/* The invariants of a whole lane: each file's own check, and the sums that no file has alone.
 * Holds: the use of the peers' allowances is what the QPs connected to them have under way, that of the lane's for
 * READs what all but the silent have; acks that wait are in the order of their deadlines; nobody condemned outlives a
 * call; a QP that has something to send and nothing under way is scheduled, or waits where it will be. */
#include "engine/check.h"
#include "base/invariant.h"
#include "core/execute.h"
#include "core/kept.h"
#include "core/keys.h"
#include "core/queues.h"
#include "core/xrc.h"
#include "engine/qp.h"
#include "roce/echo.h"
#include "roce/requester.h"

static void check_queues(const struct vb_qp *qp)
{
	vb_sq_check(qp);
	if (qp->rq.slots)
		vb_recv_ring_check(&qp->rq);
	if (qp->send_cq)
		vb_cq_check(qp->send_cq);
	if (qp->target.cq)
		vb_cq_check(qp->target.cq);
	if (qp->target.srq)
		vb_srq_check(qp->target.srq);
	if (qp->xrcd)
		vb_xrc_check(qp);
}

static bool has_timer(const struct vb_qp *qp)
{
	return !qp->local_peer && (qp->attr.timeout != 0 || !vb_roce_lane_of(qp)->config.never_probes);
}

/* Nothing that could come back, no timer and no list would ever let it go on. */
static bool is_forgotten(const struct vb_qp *qp)
{
	bool is_scheduled =
		vb_list_linked(&qp->ready_link) || vb_list_linked(&qp->local->link) || atomic_load(&qp->doorbell_rung);
	bool waits_for_port = !qp->is_reliable && atomic_load(&qp->sq.head) != qp->requester.cursor;
	bool waits_for_time = vb_roce(qp)->congestion.is_waiting || qp->timer.deadline.is_set;
	bool waits_for_answer = !has_timer(qp) && qp->requester.una_psn != qp->requester.next_psn;
	bool waits = vb_list_linked(&qp->wait_link) || waits_for_time || waits_for_port || waits_for_answer;
	bool has_work = vb_state(qp) == VB_QPS_RTS && qp->type != VB_QP_RAW && vb_requester_has_work(qp);
	return has_work && !is_scheduled && !waits;
}

static void check_qp(const struct vb_lane *lane, const struct vb_qp *qp)
{
	enum vb_qp_state state = vb_state(qp);
	assert(qp->lane == lane && vb_lane_find_qp(lane, qp->qpn) == qp);
	assert(!vb_is_failing(qp));
	assert(state != VB_QPS_SQE || !qp->is_reliable);
	assert(!vb_list_linked(&qp->ready_link) || state >= VB_QPS_RTR);
	check_queues(qp);
	qp->transport->check(qp);
	vb_target_check(&qp->target);
	vb_local_check(qp);
	assert(qp->way == (qp->local_peer ? &vb_local_transport : qp->transport));
	vb_kept_check(qp);
	if (state != VB_QPS_RTS && state != VB_QPS_SQD) {
		assert(vb_roce(qp)->flight.out == 0 && vb_roce(qp)->flight.in == 0);
		return;
	}
	if (qp->peer && qp->type != VB_QP_UD)
		vb_requester_check(qp);
	if (qp->is_reliable && !qp->local_peer)
		vb_recovery_check(qp);
	if (qp->is_reliable && vb_requester_is_busy(qp) && has_timer(qp)) /* or nobody would ever ask again */
		assert(qp->timer.deadline.is_set);
	assert(!is_forgotten(qp));
}

struct sums {
	uint32_t qps, users;
	uint64_t reads, requests;
};

static void add_qp(const struct vb_lane *lane, const struct vb_qp *qp, struct sums *sums)
{
	check_qp(lane, qp);
	sums->qps++;
	if (!vb_roce(qp)->flight.is_silent)
		sums->reads += vb_roce(qp)->flight.in;
	if (!qp->peer)
		return;
	sums->users++;
	sums->requests += vb_roce(qp)->flight.out;
	assert(vb_roce_peer(qp->peer)->allowance.used >= vb_roce(qp)->flight.out);
}

static void check_peers(const struct vb_lane *lane, const struct sums *sums)
{
	uint32_t users = 0;
	uint64_t requests = 0;
	for (uint32_t i = 0; i < lane->peer_buckets; i++) {
		for (const struct vb_peer *peer = lane->peers[i]; peer; peer = peer->next) {
			users += peer->users;
			requests += vb_roce_peer(peer)->allowance.used;
			vb_allowance_check(&vb_roce_peer(peer)->allowance);
			assert(peer->facts.is_asked || peer->is_wanted || vb_list_empty(&peer->curious));
		}
	}
	assert(users == sums->users && requests == sums->requests);
}

uint32_t vb_qp_oldest_psn(const struct vb_qp *qp)
{
	return qp->requester.una_psn;
}

/* The QP of the next place that has one, from *index on. */
static const struct vb_qp *next_qp(const struct vb_lane *lane, uint32_t *index)
{
	while (*index <= lane->qp_mask) {
		const struct vb_qp *qp = lane->qps[(*index)++];
		if (qp)
			return qp;
	}
	return NULL;
}

static void check_acks(const struct vb_lane *lane)
{
	const struct vb_qp *before = NULL;
	vb_list_for_each (node, &vb_roce_lane(lane)->acks) {
		const struct vb_qp *qp = &vb_container_of(node, struct vb_roce_qp, ack_link)->qp;
		assert(!before ||
			!vb_time_before(vb_roce(qp)->responses.ack.deadline, vb_roce(before)->responses.ack.deadline));
		before = qp;
	}
}

void vb_lane_check(const struct vb_lane *lane)
{
	struct sums sums = { 0 };
	uint32_t index = 0;
	for (const struct vb_qp *qp; sums.qps < lane->qp_count && (qp = next_qp(lane, &index));)
		add_qp(lane, qp, &sums);
	assert(sums.qps == lane->qp_count && sums.reads == vb_roce_lane(lane)->reads.used);
	vb_allowance_check(&vb_roce_lane(lane)->reads);
	check_peers(lane, &sums);
	vb_timers_check(&lane->timers);
	vb_timers_check(&vb_roce_lane(lane)->congestion_timers);
	check_acks(lane);
	assert(vb_list_empty(&lane->failing));
	assert(vb_roce_lane(lane)->echo_tail - vb_roce_lane(lane)->echo_next <= VB_ECHO_REPLIES);
	assert(vb_list_empty(&lane->leaving) || vb_lane_handed_out(lane));
}
