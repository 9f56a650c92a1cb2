/* Modifying and querying a QP: attributes are translated both ways. The engine's table decides which transitions and
 * attributes are legal; here only attributes that a RoCE port cannot have are refused.
 * Holds: as in rdma-core, ibv_qp.state is the state that the program last set or asked for. The engine's may differ. */
#include <string.h>
#include "verbs/objects.h"

static bool mtu_from_enum(enum ibv_mtu mtu, uint32_t *bytes)
{
	if (mtu < IBV_MTU_256 || mtu > IBV_MTU_4096)
		return false;
	*bytes = 128u << mtu;
	return true;
}

static enum ibv_mtu mtu_to_enum(uint32_t bytes)
{
	for (enum ibv_mtu mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++) {
		if (bytes == 128u << mtu)
			return mtu;
	}
	return 0;
}

/* Path migration, resizing and pacing by the program do not exist: a mask that asks for them is refused. */
static int check_attr(const struct ibv_qp_attr *attr, int mask)
{
	if (mask & (IBV_QP_ALT_PATH | IBV_QP_RATE_LIMIT))
		return EOPNOTSUPP;
	if ((mask & IBV_QP_PATH_MIG_STATE) && attr->path_mig_state != IBV_MIG_MIGRATED)
		return EOPNOTSUPP;
	if ((mask & IBV_QP_CAP) || ((mask & IBV_QP_PORT) && attr->port_num != VB_PORT) ||
		((mask & IBV_QP_PKEY_INDEX) && attr->pkey_index >= VB_PKEYS))
		return EINVAL;
	return 0;
}

/* As in the kernel, attributes of the half that an XRC QP lacks are ignored: some programs treat it like an RC QP. */
static int own_half(enum ibv_qp_type type, int mask)
{
	switch (type) {
	case IBV_QPT_XRC_SEND:
		return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	case IBV_QPT_XRC_RECV:
		return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
	default:
		return mask;
	}
}

static int translate_attr(struct ibv_context *context, const struct ibv_qp_attr *from, int mask, struct vb_qp_attr *to)
{
	*to = (struct vb_qp_attr){
		.state = (enum vb_qp_state)from->qp_state,
		.cur_state = (enum vb_qp_state)from->cur_qp_state,
		.qkey = from->qkey,
		.rq_psn = from->rq_psn & VB_PSN_MASK,
		.sq_psn = from->sq_psn & VB_PSN_MASK,
		.dest_qpn = from->dest_qp_num & VB_QPN_MASK,
		.access = from->qp_access_flags & (VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ |
							  VB_ACCESS_REMOTE_ATOMIC | VB_ACCESS_FLUSH_GLOBAL),
		.pkey_index = from->pkey_index,
		.port = from->port_num,
		.notify_drained = from->en_sqd_async_notify != 0,
		.max_rd_atomic = from->max_rd_atomic,
		.max_dest_rd_atomic = from->max_dest_rd_atomic,
		.min_rnr_timer = from->min_rnr_timer,
		.timeout = from->timeout,
		.retry_cnt = from->retry_cnt,
		.rnr_retry = from->rnr_retry,
	};
	if ((mask & IBV_QP_PATH_MTU) && !mtu_from_enum(from->path_mtu, &to->path_mtu))
		return EINVAL;
	if (mask & IBV_QP_AV)
		return -vb_av_from_ah_attr(context, &from->ah_attr, &to->av);
	return 0;
}

/* Requests that were posted before the change leave before it, as before SQD. */
static bool ends_all(enum vb_qp_state state)
{
	return state == VB_QPS_RESET || state == VB_QPS_ERR;
}

VB_EXPORT int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
	if (vb_call_fails(VB_CALL_ibv_modify_qp))
		return errno;
	struct qp_object *qp = vb_qp_of(ibv);
	struct vb_qp_attr wanted;
	mask = own_half(ibv->qp_type, mask);
	int err = vb_refuses_forked(ibv->context) ? VB_FORKED_ERRNO : check_attr(attr, mask);
	if (!err)
		err = translate_attr(ibv->context, attr, mask, &wanted);
	if (err)
		return err;
	err = vb_host_lane_lock(qp->host_lane);
	if (err)
		return -err;
	if ((mask & IBV_QP_STATE) && ends_all(wanted.state))
		vb_host_lane_take_leave(qp->host_lane, qp->qp);
	else if ((mask & IBV_QP_STATE) && wanted.state == VB_QPS_SQD)
		vb_host_lane_settle_qp(qp->host_lane, qp->qp);
	if ((mask & IBV_QP_STATE) && wanted.state == VB_QPS_RTR && (mask & IBV_QP_DEST_QPN))
		vb_host_lane_catch_up(qp->host_lane, wanted.dest_qpn);
	err = vb_qp_modify(qp->qp, &wanted, (uint32_t)mask, vb_host_now());
	if (!err && (mask & IBV_QP_AV))
		vb_device_discover(qp->host, vb_host_lane_bit(qp->host_lane), &wanted.av);
	if (!err && (mask & IBV_QP_STATE))
		ibv->state = (enum ibv_qp_state)wanted.state;
	vb_host_lane_unlock(qp->host_lane);
	return -err;
}

static void fill_attr(const struct vb_qp_attr *from, const struct ibv_qp_cap *cap, struct ibv_qp_attr *to)
{
	*to = (struct ibv_qp_attr){
		.qp_state = (enum ibv_qp_state)from->state,
		.cur_qp_state = (enum ibv_qp_state)from->state,
		.path_mtu = mtu_to_enum(from->path_mtu),
		.path_mig_state = IBV_MIG_MIGRATED,
		.qkey = from->qkey,
		.rq_psn = from->rq_psn,
		.sq_psn = from->sq_psn,
		.dest_qp_num = from->dest_qpn,
		.qp_access_flags = from->access,
		.cap = *cap,
		.pkey_index = from->pkey_index,
		.en_sqd_async_notify = from->notify_drained,
		.sq_draining = from->is_draining,
		.max_rd_atomic = from->max_rd_atomic,
		.max_dest_rd_atomic = from->max_dest_rd_atomic,
		.min_rnr_timer = from->min_rnr_timer,
		.port_num = from->port,
		.timeout = from->timeout,
		.retry_cnt = from->retry_cnt,
		.rnr_retry = from->rnr_retry,
	};
	vb_av_to_ah_attr(&from->av, &to->ah_attr);
}

/* The mask is only a hint: all attributes are filled in. Only ibv_qp.state depends on it. */
VB_EXPORT int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init_attr)
{
	if (vb_call_fails(VB_CALL_ibv_query_qp))
		return errno;
	struct qp_object *qp = vb_qp_of(ibv);
	struct vb_qp_attr now;
	struct vb_qp_config config;
	if (vb_refuses_forked(ibv->context))
		return VB_FORKED_ERRNO;
	int err = vb_host_lane_lock(qp->host_lane);
	if (err)
		return -err;
	vb_qp_query(qp->qp, &now, &config);
	if (mask & IBV_QP_STATE)
		ibv->state = (enum ibv_qp_state)now.state;
	vb_host_lane_unlock(qp->host_lane);

	struct ibv_qp_cap cap = {
		.max_send_wr = config.max_send_wr,
		.max_recv_wr = config.max_recv_wr,
		.max_send_sge = config.max_send_sge,
		.max_recv_sge = config.max_recv_sge,
		.max_inline_data = config.max_inline,
	};
	fill_attr(&now, &cap, attr);
	*init_attr = (struct ibv_qp_init_attr){
		.qp_context = ibv->qp_context,
		.send_cq = ibv->send_cq,
		.recv_cq = ibv->recv_cq,
		.srq = ibv->srq,
		.cap = cap,
		.qp_type = ibv->qp_type,
		.sq_sig_all = config.signal_all,
	};
	return 0;
}

/* Lost packets come again, so a buffer's bytes may be written out of order. */
VB_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	return 0;
}
