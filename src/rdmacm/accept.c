/* The passive side: a request that was fetched is accepted or rejected. */
#include "base/invariant.h"
#include "rdmacm/objects.h"

static int reject(struct id_object *id, uint16_t reason, const void *data, size_t length)
{
	if (!vb_id_lock_cm(id))
		return -VB_FORKED_ERRNO;
	int error = id->cm ? vb_cm_reject(id->cm, reason, NULL, 0, data, length, vb_connections_now()) : -EINVAL;
	id->is_quiet &= error != 0;
	vb_connections_unlock();
	return error;
}

/* ---- Connections ------------------------------------------------------------------------------------------------- */

/* "As much as possible" means the values that were proposed when the request came (events.c). */
static void fill_local(struct id_object *id, const struct rdma_conn_param *param)
{
	struct vb_side *local = &id->local;

	local->qpn = vb_id_qpn(id, param->qp_num) & (VB_QPN_LIMIT - 1);
	if (param->responder_resources != RDMA_MAX_RESP_RES)
		local->responder_resources = param->responder_resources;
	if (param->initiator_depth != RDMA_MAX_INIT_DEPTH)
		local->initiator_depth = param->initiator_depth;
	local->rnr_retry = vb_at_most(param->rnr_retry_count, VB_RETRIES);
	local->has_srq = vb_id_has_srq(id, param->srq);
	local->has_flow_control = param->flow_control != 0;
}

static int send_reply(struct id_object *id, const struct rdma_conn_param *param)
{
	const struct vb_side *local = &id->local;
	struct vb_cm_rep rep = {
		.ca_guid = id->device->guid,
		.qpn = local->qpn,
		.psn = local->psn,
		.responder_resources = local->responder_resources,
		.initiator_depth = local->initiator_depth,
		.target_ack_delay = id->device->ack_delay,
		.rnr_retry = local->rnr_retry,
		.has_flow_control = local->has_flow_control,
		.has_srq = local->has_srq,
		.vendor_id = local->vendor_id,
	};
	int error = vb_put_private_data(
		id, param->private_data, param->private_data_len, rep.private_data, sizeof(rep.private_data));
	if (error)
		return error;
	if (!vb_id_lock_cm(id))
		return -VB_FORKED_ERRNO;
	error = id->cm ? vb_cm_accept(id->cm, &rep, vb_connections_now()) : -EINVAL;
	id->is_quiet &= error != 0;
	vb_connections_unlock();
	return error;
}

static int accept_stream(struct id_object *id, const struct rdma_conn_param *param)
{
	int error = vb_check_resources(id, param);
	if (error)
		return error;
	if (param->private_data_len + id->connect_length > VB_CM_REP_PRIVATE)
		return -EINVAL;
	assert(id->state == ID_REQUESTED);
	fill_local(id, param);
	if (id->public.qp)
		error = vb_id_connect_qp(id);
	if (!error)
		error = send_reply(id, param);
	if (error)
		vb_id_fail_qp(id);
	return error;
}

/* ---- Datagrams --------------------------------------------------------------------------------------------------- */

static int answer(struct id_object *id, uint8_t status, uint32_t qpn, const void *data, size_t length)
{
	struct vb_cm_sidr_rep rep = {
		.status = status,
		.qpn = qpn,
		.qkey = status == VB_CM_SIDR_OK ? RDMA_UDP_QKEY : 0,
		.service_id = vb_id_service(id, vb_sockaddr_port(&id->public.route.addr.src_addr)),
	};
	if (length && !data)
		return -EINVAL;
	int error = vb_put_private_data(id, data, length, rep.private_data, sizeof(rep.private_data));
	if (error)
		return error;
	if (!vb_id_lock_cm(id))
		return -VB_FORKED_ERRNO;
	error = id->cm ? vb_cm_sidr_reply(id->cm, &rep, vb_connections_now()) : -EINVAL;
	id->is_quiet &= error != 0;
	vb_connections_unlock();
	return error;
}

static int accept_datagram(struct id_object *id, const struct rdma_conn_param *param)
{
	uint32_t qpn = vb_id_qpn(id, param->qp_num) & (VB_QPN_LIMIT - 1);
	return answer(id, VB_CM_SIDR_OK, qpn, param->private_data, param->private_data_len);
}

/* ---- The calls --------------------------------------------------------------------------------------------------- */

VB_EXPORT int rdma_accept(struct rdma_cm_id *public, struct rdma_conn_param *param)
{
	if (vb_call_fails(VB_CALL_rdma_accept))
		return -1;
	static const struct rdma_conn_param as_asked = {
		.responder_resources = RDMA_MAX_RESP_RES,
		.initiator_depth = RDMA_MAX_INIT_DEPTH,
		.rnr_retry_count = VB_RETRIES,
	};
	struct id_object *id = vb_id_of(public);
	bool is_datagram = vb_id_is_datagram(id);
	int error = -EINVAL;

	if (vb_id_is_refused(id))
		return -1;
	pthread_mutex_lock(&id->calls);
	if (id->state == ID_REQUESTED) {
		const struct rdma_conn_param *wanted = param ? param : &as_asked;
		error = is_datagram ? accept_datagram(id, wanted) : accept_stream(id, wanted);
		if (!error)
			id->state = ID_ACCEPTED;
	}
	pthread_mutex_unlock(&id->calls);
	/* A datagram service causes no event. */
	return is_datagram ? vb_result(error) : vb_id_complete(id, error);
}

static int reject_with(struct rdma_cm_id *public, uint16_t reason, const void *data, uint8_t length)
{
	struct id_object *id = vb_id_of(public);
	uint8_t full[VB_CM_REJ_PRIVATE] = { 0 };
	int error = -EINVAL;

	if (vb_id_is_refused(id))
		return -1;
	pthread_mutex_lock(&id->calls);
	if (vb_id_is_datagram(id)) {
		if (id->state == ID_REQUESTED)
			error = answer(id, VB_CM_SIDR_REJECTED, 0, data, length);
	} else if ((id->state == ID_REQUESTED || id->state == ID_RESPONDED) && (data || !length)) {
		error = vb_put_private_data(id, data, length, full, sizeof(full));
		if (!error)
			error = reject(id, reason, full, id->connect_length + length);
	}
	if (!error)
		id->state = ID_IDLE;
	pthread_mutex_unlock(&id->calls);
	return vb_result(error);
}

VB_EXPORT int rdma_reject(struct rdma_cm_id *public, const void *data, uint8_t length)
{
	if (vb_call_fails(VB_CALL_rdma_reject))
		return -1;
	return reject_with(public, VB_CM_REJ_CONSUMER, data, length);
}

VB_EXPORT int rdma_reject_ece(struct rdma_cm_id *public, const void *data, uint8_t length)
{
	if (vb_call_fails(VB_CALL_rdma_reject_ece))
		return -1;
	enum { VENDOR_OPTION_NOT_SUPPORTED = 35 };
	return reject_with(public, VENDOR_OPTION_NOT_SUPPORTED, data, length);
}
