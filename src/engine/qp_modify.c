/* Modify: the attributes of a QP, and what it takes to go from state to state. Which transition needs which attribute
 * is the table in qp_state.c. IBA vol. 1, 10.3. */
#include <errno.h>
#include "core/lane.h"
#include "base/invariant.h"
#include "core/qp_state.h"
#include "core/responder.h"
#include "engine/nic.h"
#include "engine/qp.h"
#include "roce/failover.h"
#include "roce/large.h"
#include "roce/peers.h"
#include "roce/selective.h"

static int check_values(const struct vb_qp *qp, const struct vb_qp_attr *attr, uint32_t mask)
{
	if ((mask & VB_QP_PKEY_INDEX) && attr->pkey_index != 0)
		return -EINVAL;
	if ((mask & VB_QP_PORT) && attr->port != 1)
		return -EINVAL;
	if ((mask & VB_QP_PATH_MTU) && (attr->path_mtu == 0 || attr->path_mtu > vb_nic_get_mtu(qp->pd->nic)))
		return -EINVAL;
	if ((mask & VB_QP_MAX_QP_RD_ATOMIC) && attr->max_rd_atomic > VB_MAX_INIT_RD_ATOMIC)
		return -EINVAL;
	if ((mask & VB_QP_MAX_DEST_RD_ATOMIC) && attr->max_dest_rd_atomic > VB_MAX_RD_ATOMIC)
		return -EINVAL;
	if (((mask & VB_QP_RETRY_CNT) && attr->retry_cnt > 7) || ((mask & VB_QP_RNR_RETRY) && attr->rnr_retry > 7))
		return -EINVAL;
	if (((mask & VB_QP_TIMEOUT) && attr->timeout > 31) ||
		((mask & VB_QP_MIN_RNR_TIMER) && attr->min_rnr_timer > 31))
		return -EINVAL;
	if ((mask & VB_QP_AV) &&
		(vb_gid_is_zero(&attr->av.dgid) || vb_gid_is_ipv4(&attr->av.dgid) != vb_gid_is_ipv4(&attr->av.sgid)))
		return -EINVAL;
	return 0;
}

static void copy_attributes(struct vb_qp_attr *to, const struct vb_qp_attr *from, uint32_t mask)
{
	if (mask & VB_QP_PKEY_INDEX)
		to->pkey_index = from->pkey_index;
	if (mask & VB_QP_PORT)
		to->port = from->port;
	if (mask & VB_QP_ACCESS_FLAGS)
		to->access = from->access;
	if (mask & VB_QP_QKEY)
		to->qkey = from->qkey;
	if (mask & VB_QP_AV)
		to->av = from->av;
	if (mask & VB_QP_PATH_MTU)
		to->path_mtu = from->path_mtu;
	if (mask & VB_QP_TIMEOUT)
		to->timeout = from->timeout;
	if (mask & VB_QP_RETRY_CNT)
		to->retry_cnt = from->retry_cnt;
	if (mask & VB_QP_RNR_RETRY)
		to->rnr_retry = from->rnr_retry;
	if (mask & VB_QP_RQ_PSN)
		to->rq_psn = from->rq_psn & VB_PSN_MASK;
	if (mask & VB_QP_SQ_PSN)
		to->sq_psn = from->sq_psn & VB_PSN_MASK;
	if (mask & VB_QP_MAX_QP_RD_ATOMIC)
		to->max_rd_atomic = from->max_rd_atomic;
	if (mask & VB_QP_MAX_DEST_RD_ATOMIC)
		to->max_dest_rd_atomic = from->max_dest_rd_atomic;
	if (mask & VB_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = from->min_rnr_timer;
	if (mask & VB_QP_DEST_QPN)
		to->dest_qpn = from->dest_qpn & VB_QPN_MASK;
	if (mask & VB_QP_EN_SQD_ASYNC_NOTIFY)
		to->notify_drained = from->notify_drained;
}

/* Linux's rule, symmetric in the two QPNs, so that both directions hash alike: rocev2 1.5. */
static uint16_t flow_of(const struct vb_qp *qp)
{
	uint64_t label = qp->attr.av.flow_label;
	if (label == 0) {
		label = (uint64_t)qp->qpn * qp->attr.dest_qpn;
		label ^= label >> 20;
		label ^= label >> 40;
		label &= 0xfffff;
	}
	return (uint16_t)(0xC000 | ((label & 0x3fff) ^ (label >> 14)));
}

/* The peer at its address now. Bytes under way count against that from now on. */
static int find_peer(struct vb_qp *qp)
{
	struct vb_peer *peer;
	if (vb_roce_lane_of(qp)->config.cnps.scope == VB_CNP_PER_DESTINATION) {
		vb_roce(qp)->destination = vb_roce_peer(vb_peer_know(qp->lane, &qp->attr.av.dgid, 0));
		if (!vb_roce(qp)->destination)
			return -ENOMEM;
	}
	int error = vb_peer_get(qp->lane, &qp->attr.av.dgid, (uint8_t)(qp->attr.dest_qpn >> 16), &peer);
	if (error)
		return error;
	vb_peer_want(qp->lane, peer);
	vb_flight_turn_to(qp, peer);
	return 0;
}

static int enter_rtr(struct vb_qp *qp)
{
	if (qp->type == VB_QP_UD || qp->type == VB_QP_RAW) {
		vb_roce_set_mtu(qp, atomic_load(&qp->pd->nic->mtu));
		return 0;
	}
	int error = find_peer(qp);
	if (error)
		return error;
	vb_roce_set_mtu(qp, qp->attr.path_mtu);
	qp->flow = flow_of(qp);
	vb_responder_reset(qp);
	vb_responses_reset(qp);
	assert(qp->mtu > 0);
	const struct vb_lane_config *config = &vb_roce_lane_of(qp)->config;
	if (config->recovery != VB_RECOVERY_SELECTIVE || qp->type != VB_QP_RC)
		return 0;
	return vb_selective_begin(qp, config->hold_bytes);
}

static int reset_requests(struct vb_qp *qp, vb_time now)
{
	int error = vb_roce_requests_reset(qp, now);
	if (!error)
		vb_requester_reset(qp, now);
	assert(error || !vb_requester_is_busy(qp));
	return error;
}

static int enter(struct vb_qp *qp, enum vb_qp_state from, enum vb_qp_state to, vb_time now)
{
	int error = 0;
	switch (to) {
	case VB_QPS_RESET:
		vb_qp_set_state(qp, VB_QPS_RESET);
		vb_qp_clear(qp);
		return 0;
	case VB_QPS_RTR:
		if (from == VB_QPS_INIT)
			error = enter_rtr(qp);
		break;
	case VB_QPS_RTS:
		if (from == VB_QPS_RTR)
			error = reset_requests(qp, now);
		else if (from == VB_QPS_SQE)
			qp->requester.pending_error = VB_WC_SUCCESS;
		if (error)
			break;
		qp->attr.is_draining = false;
		qp->transport->choose(qp);
		/* A new one has nothing to send, but for what tags fetch, and takes no turn before it has. */
		if (from != VB_QPS_RTR || qp->requester.cursor != atomic_load(&qp->sq.tail))
			vb_schedule(qp);
		break;
	case VB_QPS_SQD:
		if (from == VB_QPS_RTS)
			qp->attr.is_draining = true;
		break;
	case VB_QPS_ERR:
		if (from != VB_QPS_ERR)
			vb_qp_enter_error(qp);
		return 0;
	default:
		break;
	}
	if (!error)
		vb_qp_set_state(qp, to);
	return error;
}

/* SQD allows a new address. */
static int follow_address(struct vb_qp *qp)
{
	return qp->peer && vb_gid_equal(&qp->peer->gid, &qp->attr.av.dgid) ? 0 : find_peer(qp);
}

static bool is_same_way(const struct vb_av *a, const struct vb_av *b)
{
	return vb_gid_equal(&a->sgid, &b->sgid) && vb_gid_equal(&a->dgid, &b->dgid);
}

int vb_qp_modify(struct vb_qp *qp, const struct vb_qp_attr *attr, uint32_t mask, vb_time now)
{
	enum vb_qp_state from = vb_state(qp), to = mask & VB_QP_STATE ? attr->state : from;

	qp->lane->now = now;
	if ((unsigned)to >= VB_QPS_COUNT || ((mask & VB_QP_CUR_STATE) && attr->cur_state != from))
		return -EINVAL;
	int error = vb_qp_transition_check(qp->type, from, to, mask);
	if (!error)
		error = check_values(qp, attr, mask);
	if (error)
		return error;
	struct vb_qp_attr before = qp->attr;
	copy_attributes(&qp->attr, attr, mask);
	error = enter(qp, from, to, now);
	if (!error && (mask & VB_QP_AV)) {
		error = follow_address(qp);
		if (!error && !is_same_way(&before.av, &qp->attr.av))
			vb_large_readdress(qp);
		if (!error)
			vb_failover_readdress(qp);
	}
	if (error)
		qp->attr = before;
	else if (to == VB_QPS_SQD)
		vb_requester_proceed(qp, now);
	vb_lane_reap(qp->lane);
	return error;
}

int vb_qp_set_congestion_control(struct vb_qp *qp, const struct vb_cc_config *config)
{
	if (vb_state(qp) > VB_QPS_RTR)
		return -EINVAL;
	vb_roce(qp)->congestion.config = config;
	return 0;
}
