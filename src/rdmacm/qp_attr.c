/* QP attributes for each state, from what the connection manager knows. rdma_create_qp's QPs are moved with them;
 * programs that make their own QPs ask for them by rdma_init_qp_attr. */
#include <string.h>
#include "rdmacm/objects.h"

enum { REMOTE_ACCESS = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };

static int init_attr(const struct id_object *id, struct ibv_qp_attr *attr, int *mask)
{
	attr->pkey_index = 0;
	attr->port_num = VB_PORT;
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	if (vb_id_is_datagram(id)) {
		attr->qkey = RDMA_UDP_QKEY;
		*mask |= IBV_QP_QKEY;
	} else {
		attr->qp_access_flags = REMOTE_ACCESS;
		*mask |= IBV_QP_ACCESS_FLAGS;
	}
	return id->device ? 0 : -EINVAL;
}

void vb_way_ah_attr(const struct vb_way *way, struct ibv_ah_attr *attr)
{
	*attr = (struct ibv_ah_attr){
		.grh = { .flow_label = way->flow_label,
			.sgid_index = way->gid_index,
			.hop_limit = way->hop_limit,
			.traffic_class = way->traffic_class },
		.is_global = 1,
		.port_num = VB_PORT,
	};
	memcpy(attr->grh.dgid.raw, way->remote.raw, sizeof(attr->grh.dgid.raw));
}

/* A responder answers READs and atomics, a requester waits for answers. An RC QP does both, an XRC QP one of them (IBA
 * vol. 1, annex A14). */
static bool is_responder(const struct id_object *id)
{
	return id->public.qp_type == IBV_QPT_RC || id->public.qp_type == IBV_QPT_XRC_RECV;
}

static bool is_requester(const struct id_object *id)
{
	return id->public.qp_type == IBV_QPT_RC || id->public.qp_type == IBV_QPT_XRC_SEND;
}

/* The peer's parameters are known, from a request or a reply. */
static bool knows_peer(const struct id_object *id)
{
	return id->state == ID_REQUESTED || id->state == ID_ACCEPTED || id->state == ID_RESPONDED ||
	       (id->state == ID_CONNECTING && id->remote.qpn);
}

static int rtr_attr(const struct id_object *id, struct ibv_qp_attr *attr, int *mask)
{
	*mask = IBV_QP_STATE;
	if (vb_id_is_datagram(id))
		return 0;
	vb_way_ah_attr(&id->way, &attr->ah_attr);
	attr->path_mtu = id->way.mtu;
	attr->dest_qp_num = id->remote.qpn;
	attr->rq_psn = id->local.psn;
	*mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (is_responder(id)) {
		attr->max_dest_rd_atomic = id->local.responder_resources;
		attr->min_rnr_timer = 0;
		*mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	}
	return knows_peer(id) ? 0 : -EINVAL;
}

static int rts_attr(const struct id_object *id, struct ibv_qp_attr *attr, int *mask)
{
	*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (vb_id_is_datagram(id)) {
		attr->sq_psn = id->local.psn;
		return 0;
	}
	attr->sq_psn = id->remote.psn;
	if (is_responder(id) || is_requester(id)) {
		attr->timeout = id->options.has_ack_timeout ? id->options.ack_timeout : id->way.ack_timeout;
		*mask |= IBV_QP_TIMEOUT;
	}
	if (is_requester(id)) {
		attr->retry_cnt = id->remote.retry_count;
		attr->rnr_retry = id->remote.rnr_retry;
		attr->max_rd_atomic = id->local.initiator_depth;
		*mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	}
	return knows_peer(id) ? 0 : -EINVAL;
}

int vb_id_init_attr(struct id_object *id, struct ibv_qp_attr *attr, int *mask)
{
	switch (attr->qp_state) {
	case IBV_QPS_INIT:
		return init_attr(id, attr, mask);
	case IBV_QPS_RTR:
		return rtr_attr(id, attr, mask);
	case IBV_QPS_RTS:
		return rts_attr(id, attr, mask);
	default:
		return -EINVAL;
	}
}

VB_EXPORT int rdma_init_qp_attr(struct rdma_cm_id *public, struct ibv_qp_attr *attr, int *mask)
{
	if (vb_call_fails(VB_CALL_rdma_init_qp_attr))
		return -1;
	struct id_object *id = vb_id_of(public);
	if (vb_id_is_refused(id))
		return -1;
	pthread_mutex_lock(&id->calls);
	int error = vb_id_init_attr(id, attr, mask);
	pthread_mutex_unlock(&id->calls);
	return vb_result(error);
}
