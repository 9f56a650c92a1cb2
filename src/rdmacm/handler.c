/* Turns the connection manager's events into the program's. It runs with the CM's mutex held, in any thread that drives
 * the CM: it copies the content of the message into an event, puts that into the id's channel, and touches no QP.
 * Holds: an id has a spare event for each event that the CM may have for it, made where a lack of memory can still be
 * reported. A request for which there is no memory is rejected. A request that the backlog has no room for is dropped:
 * its sender repeats it, as with a full backlog of a socket. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "rdmacm/objects.h"

/* ---- Requests ---------------------------------------------------------------------------------------------------- */

/* The ends of a request are the addresses that it came by, because these are answered and connected to; the addresses
 * in its content may be foreign, unless they are this host's. Only the content has the peer's port. Our port and the
 * port space are the listener's. */
static bool fill_addresses(struct id_object *id, const struct id_object *listener, const struct vb_cm_path *path,
	const struct vb_cm_message *message)
{
	const uint8_t *private_data =
		message->kind == VB_CM_REQ ? message->req.private_data : message->sidr_req.private_data;
	struct vb_gid local = vb_cm_destination(message, &path->remote, &path->local);
	struct vb_gid remote = vb_cm_origin(message, &path->remote, &path->local);
	struct vb_cm_ip_header header;
	struct rdma_addr *addr = &id->public.route.addr;

	if (!vb_cm_ip_header_decode(&header, private_data))
		return false;
	vb_sockaddr_fill(&addr->src_storage, &local, listener->binding.port, path->scope);
	vb_sockaddr_fill(&addr->dst_storage, &remote, header.src_port, path->scope);
	memcpy(addr->addr.ibaddr.sgid.raw, path->local.raw, sizeof(path->local.raw));
	memcpy(addr->addr.ibaddr.dgid.raw, path->remote.raw, sizeof(path->remote.raw));
	addr->addr.ibaddr.pkey = htobe16(VB_PKEY);
	id->way = (struct vb_way){
		.local = path->local,
		.remote = path->remote,
		.scope = path->scope,
	};
	return true;
}

/* The id of a request, with the options and context of its listener; NULL: no memory. */
static struct id_object *request_create(struct id_object *listener)
{
	struct id_object *id = calloc(1, sizeof(*id));
	if (!id)
		return NULL;
	pthread_mutex_init(&id->calls, NULL);
	vb_list_init(&id->groups);
	vb_list_init(&id->spare);
	id->generation = vb_generation();
	id->public.context = listener->public.context;
	id->public.ps = listener->public.ps;
	id->public.qp_type = listener->public.qp_type;
	vb_events_lock();
	id->options = listener->options;
	vb_events_unlock();
	id->is_quiet = !id->options.hears_lost_requests;
	id->state = ID_REQUESTED;
	return id;
}

static void fill_request(struct id_object *id, const struct vb_cm_req *req)
{
	id->remote = (struct vb_side){
		.qpn = req->qpn,
		.psn = req->psn,
		.qkey = req->qkey,
		.vendor_id = req->vendor_id,
		.responder_resources = req->responder_resources,
		.initiator_depth = req->initiator_depth,
		.retry_count = req->retry_count,
		.rnr_retry = req->rnr_retry,
		.has_srq = req->has_srq,
		.has_flow_control = req->has_flow_control,
	};
	id->way.mtu = req->path_mtu;
	id->way.flow_label = req->primary.flow_label;
	id->way.traffic_class = req->primary.traffic_class;
	id->way.hop_limit = req->primary.hop_limit;
	id->way.ack_timeout = req->primary.ack_timeout;
}

/* The peer's resources bound our depth, and the other way round. */
static void fill_parameters(struct event_object *event, const struct vb_side *remote)
{
	struct rdma_conn_param *param = &event->public.param.conn;
	param->responder_resources = remote->initiator_depth;
	param->initiator_depth = remote->responder_resources;
	param->flow_control = remote->has_flow_control;
	param->retry_count = remote->retry_count;
	param->rnr_retry_count = remote->rnr_retry;
	param->srq = remote->has_srq;
	param->qp_num = remote->qpn;
}

static struct event_object *request_event(
	struct id_object *listener, struct id_object *id, const struct vb_cm_message *message)
{
	struct event_object *event = vb_event_create(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	if (!event)
		return NULL;
	event->owner = listener;
	event->public.listen_id = &listener->public;
	if (message->kind == VB_CM_REQ) {
		vb_event_set_data(event, message->req.private_data + VB_CM_IP_HEADER_LENGTH,
			VB_CM_REQ_PRIVATE - VB_CM_IP_HEADER_LENGTH);
		fill_parameters(event, &id->remote);
	} else {
		vb_event_set_data(event, message->sidr_req.private_data + VB_CM_IP_HEADER_LENGTH,
			VB_CM_SIDR_REQ_PRIVATE - VB_CM_IP_HEADER_LENGTH);
	}
	return event;
}

/* Queues the event in the listener's channel, if the backlog has room. */
static bool queue_request(struct id_object *listener, struct id_object *id, struct event_object *event)
{
	vb_events_lock();
	bool has_room = listener->backlog > 0;
	if (has_room) {
		assert(!id->listener);
		listener->backlog--;
		id->listener = listener;
		id->public.channel = listener->public.channel;
		vb_event_queue_locked(event);
	}
	vb_events_unlock();
	return has_room;
}

/* Refuses a request that cannot be served before the channel becomes readable, so that a program that polls it finds an
 * event. Both sides cut messages into packets of one size, so an MTU above ours is impossible. */
static bool is_servable(const struct vb_cm_event *from)
{
	const struct vb_cm_path *path = vb_cm_id_path(from->id);
	uint8_t wanted = from->message.req.path_mtu, mtu = vb_gid_mtu(&path->local);
	if (!mtu)
		return false;
	if (from->kind != VB_CM_EVENT_REQUEST || (wanted >= IBV_MTU_256 && wanted <= mtu))
		return true;
	vb_connections_explain_mtu(&(struct vb_mtu_refusal){ .local = path->local,
		.remote = path->remote,
		.port = (uint16_t)from->message.req.service_id,
		.wanted = 128u << wanted,
		.carried = 128u << mtu,
		.is_ours = true });
	vb_cm_reject(from->id, VB_CM_REJ_INVALID_MTU, &mtu, sizeof(mtu), NULL, 0, vb_connections_now());
	return false;
}

/* VERBENA_FAULTS rejects it. */
static bool is_struck(const struct vb_cm_event *from)
{
	const int reason = from->kind == VB_CM_EVENT_REQUEST ? vb_connections_strike(VB_CALL_CM_REJECT) : 0;
	if (reason)
		vb_cm_reject(from->id, (uint16_t)reason, NULL, 0, NULL, 0, vb_connections_now());
	return reason != 0;
}

/* False: the request must be rejected. */
static bool admit(struct id_object *listener, const struct vb_cm_event *from)
{
	bool is_req = from->kind == VB_CM_EVENT_REQUEST, is_settled = false;
	if (is_req == vb_id_is_datagram(listener) || !is_servable(from) || is_struck(from))
		return false;
	struct id_object *id = request_create(listener);
	if (!id)
		return false;
	struct event_object *event = NULL;
	if (vb_id_reserve_events(id) || !fill_addresses(id, listener, vb_cm_id_path(from->id), &from->message))
		goto out_free;
	if (is_req)
		fill_request(id, &from->message.req);
	event = request_event(listener, id, &from->message);
	if (!event)
		goto out_free;
	assert(!vb_cm_id_user(from->id)); /* a new id of the CM */
	id->cm = from->id;
	vb_cm_id_set_user(from->id, id);
	if (queue_request(listener, id, event))
		return true;
	vb_cm_id_forget(from->id);
	is_settled = true;
out_free:
	free(event);
	vb_id_free(id);
	return is_settled;
}

/* ---- Events of an existing id ------------------------------------------------------------------------------------ */

/* An event of id, with private data if there is any. */
static struct event_object *prepare(
	struct id_object *id, enum rdma_cm_event_type type, int status, const uint8_t *data, uint8_t length)
{
	vb_events_lock();
	struct event_object *event = vb_event_take_spare(id, type, status);
	vb_events_unlock();
	if (event && data)
		vb_event_set_data(event, data, length);
	return event;
}

static void say(struct id_object *id, enum rdma_cm_event_type type, int status, const uint8_t *data, uint8_t length)
{
	struct event_object *event = prepare(id, type, status, data, length);
	if (event)
		vb_event_queue(event);
}

static void say_reply(struct id_object *id, const struct vb_cm_rep *rep)
{
	struct event_object *event =
		prepare(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, rep->private_data, VB_CM_REP_PRIVATE);
	if (!event)
		return;
	event->is_reply = true;
	event->remote = (struct vb_side){
		.qpn = rep->qpn,
		.psn = rep->psn,
		.qkey = rep->qkey,
		.vendor_id = rep->vendor_id,
		.responder_resources = rep->responder_resources,
		.initiator_depth = rep->initiator_depth,
		.rnr_retry = rep->rnr_retry,
		.has_srq = rep->has_srq,
		.has_flow_control = rep->has_flow_control,
	};
	fill_parameters(event, &event->remote);
	vb_event_queue(event);
}

/* A datagram service: its QP number, its key, and an address that leads there. */
static void say_service(struct id_object *id, const struct vb_cm_sidr_rep *rep)
{
	bool is_ok = rep->status == VB_CM_SIDR_OK;
	struct event_object *event = prepare(id, is_ok ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_UNREACHABLE,
		rep->status, rep->private_data, VB_CM_SIDR_REP_PRIVATE);
	if (!event)
		return;
	if (is_ok) {
		event->public.param.ud.qp_num = rep->qpn;
		event->public.param.ud.qkey = rep->qkey;
		event->is_reply = true;
	}
	vb_event_queue(event);
}

/* Programs take 0 for success, so an end without a REJ has a reason, too: a peer that vanished or restarted has left a
 * stale connection. */
static int reason_of(const struct vb_cm_event *event)
{
	if (event->has_message)
		return event->message.rej.reason;
	return event->error == -ENOBUFS ? VB_CM_REJ_NO_RESOURCES : VB_CM_REJ_STALE_CONNECTION;
}

void vb_handle_established(struct vb_cm_id *cm)
{
	if (vb_connections_strike(VB_CALL_CM_DISCONNECT))
		vb_cm_disconnect(cm, NULL, 0, vb_connections_now());
}

void vb_handle_cm_event(void *context, const struct vb_cm_event *event)
{
	struct id_object *id = event->id ? vb_cm_id_user(event->id) : NULL;

	if (id && id->is_quiet)
		return;
	switch (event->kind) {
	case VB_CM_EVENT_REQUEST:
	case VB_CM_EVENT_SIDR_REQUEST:
		if (!admit(vb_cm_id_user(event->listener), event))
			vb_cm_id_destroy(event->id, vb_connections_now());
		break;
	case VB_CM_EVENT_REPLY:
		say_reply(id, &event->message.rep);
		break;
	case VB_CM_EVENT_ESTABLISHED:
		say(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
		vb_handle_established(event->id);
		break;
	case VB_CM_EVENT_REJECTED:
		say(id, RDMA_CM_EVENT_REJECTED, reason_of(event), event->message.rej.private_data, VB_CM_REJ_PRIVATE);
		break;
	case VB_CM_EVENT_SILENT: /* programs do not see it */
		break;
	case VB_CM_EVENT_UNREACHABLE:
	case VB_CM_EVENT_SIDR_TIMEOUT:
		say(id, RDMA_CM_EVENT_UNREACHABLE, event->error ? event->error : -ETIMEDOUT, NULL, 0);
		break;
	case VB_CM_EVENT_DISCONNECT:
	case VB_CM_EVENT_DISCONNECTED:
		say(id, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
		break;
	case VB_CM_EVENT_TIMEWAIT_EXIT:
		say(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, NULL, 0);
		break;
	case VB_CM_EVENT_SIDR_REPLY:
		say_service(id, &event->message.sidr_rep);
		break;
	case VB_CM_EVENT_DELAYED:
		break;
	}
}
