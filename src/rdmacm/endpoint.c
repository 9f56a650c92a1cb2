/* Endpoints: one call makes an id ready with an answer of rdma_getaddrinfo, and one call fetches a request from a
 * listener. Both ids are synchronous. */
#include <stdlib.h>
#include <string.h>
#include "rdmacm/objects.h"

enum { RESOLVE_TIMEOUT_MS = 2000 };

/* The requests of a listener get QPs with these attributes. */
static int keep_template(struct id_object *id, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	id->template_pd = pd;
	if (!attr)
		return 0;
	id->template = malloc(sizeof(*id->template));
	if (!id->template)
		return -ENOMEM;
	*id->template = *attr;
	id->template->qp_type = id->public.qp_type;
	return 0;
}

static int keep_connect_data(struct id_object *id, const struct rdma_addrinfo *res)
{
	if (!res->ai_connect_len)
		return 0;
	id->connect_data = malloc(res->ai_connect_len);
	if (!id->connect_data)
		return -ENOMEM;
	memcpy(id->connect_data, res->ai_connect, res->ai_connect_len);
	id->connect_length = res->ai_connect_len;
	return 0;
}

static int make_passive(
	struct id_object *id, const struct rdma_addrinfo *res, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	if (rdma_bind_addr(&id->public, res->ai_src_addr))
		return -errno;
	return keep_template(id, pd, attr);
}

static int resolve_route(struct id_object *id, const struct rdma_addrinfo *res)
{
	if (!res->ai_route_len)
		return rdma_resolve_route(&id->public, RESOLVE_TIMEOUT_MS) ? -errno : 0;
	if (rdma_set_option(&id->public, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, res->ai_route, res->ai_route_len))
		return -errno;
	return vb_id_complete(id, 0) ? -errno : 0;
}

static int make_active(
	struct id_object *id, const struct rdma_addrinfo *res, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	if (rdma_resolve_addr(&id->public, res->ai_src_addr, res->ai_dst_addr, RESOLVE_TIMEOUT_MS))
		return -errno;
	int error = resolve_route(id, res);
	if (error)
		return error;
	if (attr) {
		attr->qp_type = id->public.qp_type;
		if (rdma_create_qp(&id->public, pd, attr))
			return -errno;
	}
	return keep_connect_data(id, res);
}

VB_EXPORT int rdma_create_ep(
	struct rdma_cm_id **public, struct rdma_addrinfo *res, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	if (vb_call_fails(VB_CALL_rdma_create_ep))
		return -1;
	if (!res)
		return vb_result(-EINVAL);
	struct id_object *id =
		vb_id_create(NULL, NULL, (enum rdma_port_space)res->ai_port_space, (enum ibv_qp_type)res->ai_qp_type);
	if (!id)
		return -1;
	int error = res->ai_flags & RAI_PASSIVE ? make_passive(id, res, pd, attr) : make_active(id, res, pd, attr);
	if (error) {
		rdma_destroy_ep(&id->public);
		return vb_result(error);
	}
	*public = &id->public;
	return 0;
}

VB_EXPORT void rdma_destroy_ep(struct rdma_cm_id *public)
{
	rdma_destroy_qp(public);
	rdma_destroy_srq(public);
	rdma_destroy_id(public);
}

/* ---- Requests ---------------------------------------------------------------------------------------------------- */

/* The new id becomes synchronous too, and gets a QP if its listener has a template. */
static int prepare(struct id_object *listener, struct id_object *id)
{
	int error = vb_id_migrate(id, NULL);
	if (error || !listener->template)
		return error;
	struct ibv_qp_init_attr attr = *listener->template;
	return rdma_create_qp(&id->public, listener->template_pd, &attr) ? -errno : 0;
}

VB_EXPORT int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **public)
{
	if (vb_call_fails(VB_CALL_rdma_get_request))
		return -1;
	struct id_object *listener = vb_id_of(listen);
	struct rdma_cm_event *event;

	if (!listener->is_sync)
		return vb_result(-EINVAL);
	if (listen->event) {
		rdma_ack_cm_event(listen->event);
		listen->event = NULL;
	}
	if (rdma_get_cm_event(listen->channel, &event))
		return -1;
	int error = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->status : -EINVAL;
	if (error) {
		listen->event = event;
		return vb_result(error < 0 ? error : -error);
	}
	struct rdma_cm_id *id = event->id;
	error = prepare(listener, vb_id_of(id));
	if (error) {
		rdma_ack_cm_event(event);
		rdma_destroy_ep(id);
		return vb_result(error);
	}
	id->event = event;
	*public = id;
	return 0;
}
