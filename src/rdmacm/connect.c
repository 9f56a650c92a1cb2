/* The active side of a connection: the request, or for datagrams the question for a service. And calls about a
 * connection for either side: its end, data before its confirmation, ECE. Not here: the reply (reply.c). */
#include <string.h>
#include "rdmacm/objects.h"

enum {
	CM_RESPONSE_TIMEOUT = 20, /* 4.096 us * 2^20 = 4.3 s, as in Linux */
	CM_RETRIES = 15,
	LID_PERMISSIVE = 0xFFFF, /* RoCE has no LIDs: the path may lead through routers */
};

/* The IP addresses and the port, which the peer's librdmacm shows to its program. Within a host they may be loopback
 * addresses, and differ from those of the path. */
static void put_ip_header(const struct id_object *id, uint8_t *to)
{
	const struct rdma_addr *addr = &id->public.route.addr;
	struct vb_cm_ip_header header = {
		.src = vb_sockaddr_gid(&addr->src_addr),
		.dst = vb_sockaddr_gid(&addr->dst_addr),
		.is_ipv6 = addr->src_addr.sa_family == AF_INET6,
		.src_port = vb_sockaddr_port(&addr->src_addr),
	};
	vb_cm_ip_header_encode(&header, to);
}

/* ---- Connections ------------------------------------------------------------------------------------------------- */

static void fill_local(struct id_object *id, const struct rdma_conn_param *param)
{
	const struct device_entry *device = id->device;
	id->local.qpn = vb_id_qpn(id, param->qp_num) & (VB_QPN_LIMIT - 1);
	id->local.psn = vb_random_psn();
	id->local.responder_resources = vb_at_most(param->responder_resources, device->max_responder_resources);
	id->local.initiator_depth = vb_at_most(param->initiator_depth, device->max_initiator_depth);
	id->local.retry_count = vb_at_most(param->retry_count, VB_RETRIES);
	id->local.rnr_retry = vb_at_most(param->rnr_retry_count, VB_RETRIES);
	id->local.has_srq = vb_id_has_srq(id, param->srq);
	id->local.has_flow_control = param->flow_control != 0;
}

static void fill_transport(const struct id_object *id, struct vb_cm_req *req)
{
	switch (id->public.qp_type) {
	case IBV_QPT_UC:
		req->transport = VB_CM_TRANSPORT_UC;
		break;
	case IBV_QPT_XRC_SEND:
		req->transport = VB_CM_TRANSPORT_EXTENDED;
		req->extended_transport = VB_CM_EXTENDED_XRC;
		break;
	default:
		req->transport = VB_CM_TRANSPORT_RC;
		break;
	}
}

static void fill_req(const struct id_object *id, struct vb_cm_req *req)
{
	const struct vb_side *local = &id->local;
	*req = (struct vb_cm_req){
		.service_id = vb_id_service(id, vb_sockaddr_port(&id->public.route.addr.dst_addr)),
		.ca_guid = id->device->guid,
		.qpn = local->qpn,
		.psn = local->psn,
		.pkey = VB_PKEY,
		.responder_resources = local->responder_resources,
		.initiator_depth = local->initiator_depth,
		.remote_timeout = CM_RESPONSE_TIMEOUT,
		.local_timeout = CM_RESPONSE_TIMEOUT,
		.retry_count = local->retry_count,
		.rnr_retry = local->rnr_retry,
		.max_cm_retries = CM_RETRIES,
		.path_mtu = (uint8_t)id->way.mtu,
		.has_flow_control = local->has_flow_control,
		.has_srq = local->has_srq,
		.vendor_id = local->vendor_id,
		.primary = {
			.local = id->way.local,
			.remote = id->way.remote,
			.local_lid = LID_PERMISSIVE,
			.remote_lid = LID_PERMISSIVE,
			.flow_label = id->way.flow_label,
			.traffic_class = id->way.traffic_class,
			.hop_limit = id->way.hop_limit,
			.ack_timeout = id->way.ack_timeout,
		},
	};
	fill_transport(id, req);
	put_ip_header(id, req->private_data);
}

static struct vb_cm_path cm_path(const struct id_object *id)
{
	return (struct vb_cm_path){ id->way.local, id->way.remote, id->way.scope };
}

static int send_request(struct id_object *id, const struct vb_cm_req *req)
{
	struct vb_cm_path path = cm_path(id);
	struct vb_cm *cm = vb_id_lock_cm(id);
	if (!cm)
		return -VB_FORKED_ERRNO;
	int error = vb_id_make_cm(id, cm);
	if (!error)
		error = vb_cm_connect(id->cm, &path, req, vb_connections_now());
	vb_connections_unlock();
	return error;
}

static int connect_stream(struct id_object *id, const struct rdma_conn_param *param)
{
	struct vb_cm_req req;
	int error = vb_check_resources(id, param);
	if (error)
		return error;
	fill_local(id, param);
	fill_req(id, &req);
	error = vb_put_private_data(id, param->private_data, param->private_data_len,
		req.private_data + VB_CM_IP_HEADER_LENGTH, VB_CM_REQ_PRIVATE - VB_CM_IP_HEADER_LENGTH);
	return error ? error : send_request(id, &req);
}

/* ---- Datagrams --------------------------------------------------------------------------------------------------- */

static int connect_datagram(struct id_object *id, const struct rdma_conn_param *param)
{
	struct vb_cm_sidr_req req = {
		.pkey = VB_PKEY,
		.service_id = vb_id_service(id, vb_sockaddr_port(&id->public.route.addr.dst_addr)),
	};
	struct vb_cm_path path = cm_path(id);

	if (param->private_data_len && !param->private_data)
		return -EINVAL;
	put_ip_header(id, req.private_data);
	int error = vb_put_private_data(id, param->private_data, param->private_data_len,
		req.private_data + VB_CM_IP_HEADER_LENGTH, VB_CM_SIDR_REQ_PRIVATE - VB_CM_IP_HEADER_LENGTH);
	if (error)
		return error;
	struct vb_cm *cm = vb_id_lock_cm(id);
	if (!cm)
		return -VB_FORKED_ERRNO;
	error = vb_id_make_cm(id, cm);
	if (!error)
		error = vb_cm_sidr_request(
			id->cm, &path, &req, 4096 * VB_NS << CM_RESPONSE_TIMEOUT, CM_RETRIES, vb_connections_now());
	vb_connections_unlock();
	return error;
}

/* VERBENA_FAULTS lets the request go unanswered: it is not sent, and its time is over at once. */
static int time_out(struct id_object *id)
{
	vb_events_lock();
	struct event_object *event = vb_event_take_spare(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	vb_events_unlock();
	if (!event)
		return -ENOMEM;
	vb_event_queue(event);
	return 0;
}

static int connect_locked(struct id_object *id, const struct rdma_conn_param *param)
{
	static const struct rdma_conn_param as_much_as_possible = {
		.responder_resources = RDMA_MAX_RESP_RES,
		.initiator_depth = RDMA_MAX_INIT_DEPTH,
		.retry_count = VB_RETRIES,
		.rnr_retry_count = VB_RETRIES,
	};
	if (id->state != ID_ROUTE_RESOLVED)
		return -EINVAL;
	if (vb_sockaddr_is_multicast(&id->public.route.addr.dst_addr))
		return -EINVAL;
	int error = vb_id_reserve_events(id);
	if (error)
		return error;
	if (!param)
		param = &as_much_as_possible;
	if (vb_call_strike(VB_CALL_CM_TIMEOUT))
		error = time_out(id);
	else
		error = vb_id_is_datagram(id) ? connect_datagram(id, param) : connect_stream(id, param);
	if (!error)
		id->state = ID_CONNECTING;
	else if (id->cm && vb_id_lock_cm(id)) {
		vb_id_destroy_cm(id);
		vb_connections_unlock();
	}
	return error;
}

VB_EXPORT int rdma_connect(struct rdma_cm_id *public, struct rdma_conn_param *param)
{
	if (vb_call_fails(VB_CALL_rdma_connect))
		return -1;
	struct id_object *id = vb_id_of(public);
	if (vb_id_is_refused(id))
		return -1;
	pthread_mutex_lock(&id->calls);
	int error = connect_locked(id, param);
	pthread_mutex_unlock(&id->calls);
	return vb_id_complete(id, error);
}

/* ---- The end ----------------------------------------------------------------------------------------------------- */

/* A connection that has ended, or never begun, is not the caller's error. will_tell: DISCONNECTED follows, or is queued
 * already. */
static int disconnect(struct id_object *id, bool *will_tell)
{
	if (!vb_id_lock_cm(id))
		return -VB_FORKED_ERRNO;
	int error = id->cm ? 0 : -EINVAL;
	if (!error)
		*will_tell = vb_cm_disconnect(id->cm, NULL, 0, vb_connections_now()) == 0 ||
			     vb_cm_id_state(id->cm) == VB_CM_TIMEWAIT;
	vb_connections_unlock();
	return error;
}

VB_EXPORT int rdma_disconnect(struct rdma_cm_id *public)
{
	if (vb_call_fails(VB_CALL_rdma_disconnect))
		return -1;
	struct id_object *id = vb_id_of(public);
	bool will_tell = false;

	if (vb_id_is_refused(id))
		return -1;
	pthread_mutex_lock(&id->calls);
	int error = id->state >= ID_CONNECTING && !vb_id_is_datagram(id) ? 0 : -EINVAL;
	if (!error) {
		vb_id_fail_qp(id);
		error = disconnect(id, &will_tell);
	}
	if (id->is_disconnected)
		will_tell = false;
	pthread_mutex_unlock(&id->calls);
	return will_tell ? vb_id_complete(id, error) : vb_result(error);
}

/* The program received data before the connection was confirmed. */
VB_EXPORT int rdma_notify(struct rdma_cm_id *public, enum ibv_event_type event)
{
	if (vb_call_fails(VB_CALL_rdma_notify))
		return -1;
	struct id_object *id = vb_id_of(public);
	int error = -EINVAL;

	if (event != IBV_EVENT_COMM_EST)
		return vb_result(-EINVAL);
	if (vb_id_is_refused(id))
		return -1;
	pthread_mutex_lock(&id->calls);
	if (id->state >= ID_CONNECTING && !vb_id_is_datagram(id)) {
		if (!vb_id_lock_cm(id))
			error = -VB_FORKED_ERRNO;
		else {
			if (id->cm)
				error = vb_cm_id_state(id->cm) == VB_CM_ESTABLISHED
						? -EISCONN
						: vb_cm_notify_established(id->cm, vb_connections_now());
			vb_connections_unlock();
		}
	}
	pthread_mutex_unlock(&id->calls);
	return vb_result(error);
}

/* ---- ECE: options that the QPs of both sides agree on, for programs that move their QPs themselves --------------- */

VB_EXPORT int rdma_set_local_ece(struct rdma_cm_id *public, struct ibv_ece *ece)
{
	if (vb_call_fails(VB_CALL_rdma_set_local_ece))
		return -1;
	struct id_object *id = vb_id_of(public);
	if (!ece || public->qp || !ece->vendor_id || ece->vendor_id >= VB_QPN_LIMIT)
		return vb_result(-EINVAL);
	if (vb_id_is_refused(id))
		return -1;
	pthread_mutex_lock(&id->calls);
	id->local.vendor_id = ece->vendor_id;
	pthread_mutex_unlock(&id->calls);
	return 0;
}

VB_EXPORT int rdma_get_remote_ece(struct rdma_cm_id *public, struct ibv_ece *ece)
{
	if (vb_call_fails(VB_CALL_rdma_get_remote_ece))
		return -1;
	struct id_object *id = vb_id_of(public);
	if (!ece || public->qp)
		return vb_result(-EINVAL);
	if (vb_id_is_refused(id))
		return -1;
	pthread_mutex_lock(&id->calls);
	*ece = (struct ibv_ece){ .vendor_id = id->remote.vendor_id };
	pthread_mutex_unlock(&id->calls);
	return 0;
}
