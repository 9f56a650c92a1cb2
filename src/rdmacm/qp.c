/* QPs and SRQs that belong to an id, and the completion queues made for them.
 * Holds: a QP is in INIT from its creation, so that receives can be posted; a datagram QP can send at once. */
#include <string.h>
#include "rdmacm/objects.h"
#include "verbs/qp_init.h"

enum { SEND, RECEIVE };

/* ---- Completion queues ------------------------------------------------------------------------------------------- */

static void destroy_cq(struct ibv_cq **cq, struct ibv_comp_channel **channel)
{
	if (*cq)
		ibv_destroy_cq(*cq);
	if (*channel)
		ibv_destroy_comp_channel(*channel);
	*cq = NULL;
	*channel = NULL;
}

/* Programs find the id by the CQ's context: rdma_get_send_comp asserts it. */
static int create_cq(struct rdma_cm_id *id, uint32_t size, struct ibv_cq **cq, struct ibv_comp_channel **channel)
{
	*channel = ibv_create_comp_channel(id->verbs);
	if (!*channel)
		return -errno;
	*cq = ibv_create_cq(id->verbs, size ? (int)size : 1, id, *channel, 0);
	if (*cq)
		return 0;
	int error = -errno;
	destroy_cq(cq, channel);
	return error;
}

/* Has an effect once neither QP nor SRQ of the id uses them. */
static void release_cqs(struct id_object *id)
{
	struct rdma_cm_id *public = &id->public;
	if (public->qp || public->srq)
		return;
	if (id->has_cqs[SEND])
		destroy_cq(&public->send_cq, &public->send_cq_channel);
	if (id->has_cqs[RECEIVE])
		destroy_cq(&public->recv_cq, &public->recv_cq_channel);
	id->has_cqs[SEND] = id->has_cqs[RECEIVE] = false;
}

/* The CQ is attr's, else the id's, else a new one. */
static int settle_cq(struct id_object *id, int which, uint32_t size, struct ibv_cq **wanted)
{
	struct rdma_cm_id *public = &id->public;
	struct ibv_cq **own = which == SEND ? &public->send_cq : &public->recv_cq;
	struct ibv_comp_channel **channel = which == SEND ? &public->send_cq_channel : &public->recv_cq_channel;

	if (*wanted)
		return 0;
	if (!*own) {
		int error = create_cq(public, size, own, channel);
		if (error)
			return error;
		id->has_cqs[which] = true;
	}
	*wanted = *own;
	return 0;
}

/* An XRC QP is one half of a connection, and needs only the CQs of that half. */
static int create_cqs(struct id_object *id, struct ibv_qp_init_attr_ex *attr)
{
	int error = 0;
	if (attr->qp_type != IBV_QPT_XRC_RECV)
		error = settle_cq(id, SEND, attr->cap.max_send_wr, &attr->send_cq);
	if (!error && attr->qp_type != IBV_QPT_XRC_SEND && attr->qp_type != IBV_QPT_XRC_RECV)
		error = settle_cq(id, RECEIVE, attr->cap.max_recv_wr, &attr->recv_cq);
	if (error)
		release_cqs(id);
	return error;
}

/* ---- States ------------------------------------------------------------------------------------------------------ */

static int move(struct id_object *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;
	int error = vb_id_init_attr(id, &attr, &mask);
	return error ? error : -ibv_modify_qp(id->public.qp, &attr, mask);
}

int vb_id_connect_qp(struct id_object *id)
{
	int error = move(id, IBV_QPS_RTR);
	return error ? error : move(id, IBV_QPS_RTS);
}

static int make_ready(struct id_object *id)
{
	int error = move(id, IBV_QPS_INIT);
	return error || !vb_id_is_datagram(id) ? error : vb_id_connect_qp(id);
}

void vb_id_fail_qp(struct id_object *id)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	if (id->public.qp)
		ibv_modify_qp(id->public.qp, &attr, IBV_QP_STATE);
}

/* ---- QPs --------------------------------------------------------------------------------------------------------- */

uint32_t vb_id_qpn(const struct id_object *id, uint32_t number)
{
	return id->public.qp ? id->public.qp->qp_num : number;
}

bool vb_id_has_srq(const struct id_object *id, bool otherwise)
{
	return id->public.qp ? id->public.qp->srq != NULL : otherwise || id->public.srq != NULL;
}

/* A QP of that kind that was given no domain gets the device's. */
static int settle_xrcd(struct id_object *id, struct ibv_qp_init_attr_ex *attr)
{
	bool has_one = (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) && attr->xrcd;
	if (attr->qp_type != IBV_QPT_XRC_RECV || has_one)
		return 0;
	attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
	return vb_device_xrcd(id->device, &attr->xrcd);
}

/* Only what comp_mask names is read. */
static int create_qp(struct id_object *id, struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *public = &id->public;

	if (!public->verbs || public->qp)
		return -EINVAL;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = public->pd;
	}
	if (attr->pd->context != public->verbs)
		return -EINVAL;
	if (!attr->srq && public->srq)
		attr->srq = public->srq;
	int error = settle_xrcd(id, attr);
	if (!error)
		error = create_cqs(id, attr);
	if (error)
		return error;
	struct ibv_qp *qp = ibv_create_qp_ex(public->verbs, attr);
	if (!qp) {
		error = -errno;
		goto out_cqs;
	}
	public->qp = qp;
	error = make_ready(id);
	if (error)
		goto out_qp;
	if (qp->pd)
		id->public.pd = qp->pd;
	return 0;

out_qp:
	id->public.qp = NULL;
	ibv_destroy_qp(qp);
out_cqs:
	release_cqs(id);
	return error;
}

VB_EXPORT int rdma_create_qp_ex(struct rdma_cm_id *public, struct ibv_qp_init_attr_ex *attr)
{
	if (vb_call_fails(VB_CALL_rdma_create_qp_ex))
		return -1;
	struct id_object *id = vb_id_of(public);
	struct ibv_cq *send_cq = attr->send_cq, *recv_cq = attr->recv_cq;

	if (vb_id_is_refused(id))
		return -1;
	pthread_mutex_lock(&id->calls);
	int error = create_qp(id, attr);
	if (error) {
		attr->send_cq = send_cq;
		attr->recv_cq = recv_cq;
	}
	pthread_mutex_unlock(&id->calls);
	return vb_result(error);
}

VB_EXPORT int rdma_create_qp(struct rdma_cm_id *public, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	if (vb_call_fails(VB_CALL_rdma_create_qp))
		return -1;
	struct ibv_qp_init_attr_ex full = vb_qp_init_extended(pd, attr);
	int result = rdma_create_qp_ex(public, &full);
	if (result == 0) {
		attr->send_cq = full.send_cq;
		attr->recv_cq = full.recv_cq;
		attr->cap = full.cap;
	}
	return result;
}

void vb_id_destroy_qp(struct id_object *id)
{
	if (!id->public.qp)
		return;
	vb_id_detach_groups(id);
	ibv_destroy_qp(id->public.qp);
	id->public.qp = NULL;
	release_cqs(id);
}

VB_EXPORT void rdma_destroy_qp(struct rdma_cm_id *public)
{
	struct id_object *id = vb_id_of(public);
	if (!vb_id_is_ours(id))
		return;
	pthread_mutex_lock(&id->calls);
	vb_id_destroy_qp(id);
	pthread_mutex_unlock(&id->calls);
}

/* ---- SRQs -------------------------------------------------------------------------------------------------------- */

/* An XRC SRQ has a domain and a CQ of its own; others complete on the CQs of their QPs. */
static int settle_xrc(struct id_object *id, struct ibv_srq_init_attr_ex *attr)
{
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) || attr->srq_type != IBV_SRQT_XRC)
		return 0;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd) {
		int error = vb_device_xrcd(id->device, &attr->xrcd);
		if (error)
			return error;
	}
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ))
		attr->cq = NULL;
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	return settle_cq(id, RECEIVE, attr->attr.max_wr, &attr->cq);
}

static int create_srq(struct id_object *id, struct ibv_srq_init_attr_ex *attr)
{
	struct rdma_cm_id *public = &id->public;

	if (!public->verbs || public->srq)
		return -EINVAL;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
		attr->pd = public->pd;
	}
	if (attr->pd->context != public->verbs)
		return -EINVAL;
	int error = settle_xrc(id, attr);
	if (error)
		return error;
	public->srq = ibv_create_srq_ex(public->verbs, attr);
	if (!public->srq) {
		error = -errno;
		release_cqs(id);
		return error;
	}
	public->pd = attr->pd;
	return 0;
}

VB_EXPORT int rdma_create_srq_ex(struct rdma_cm_id *public, struct ibv_srq_init_attr_ex *attr)
{
	if (vb_call_fails(VB_CALL_rdma_create_srq_ex))
		return -1;
	struct id_object *id = vb_id_of(public);
	if (vb_id_is_refused(id))
		return -1;
	pthread_mutex_lock(&id->calls);
	int error = create_srq(id, attr);
	pthread_mutex_unlock(&id->calls);
	return vb_result(error);
}

VB_EXPORT int rdma_create_srq(struct rdma_cm_id *public, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	if (vb_call_fails(VB_CALL_rdma_create_srq))
		return -1;
	struct ibv_srq_init_attr_ex full = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = public->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC,
		.pd = pd,
	};
	int result = rdma_create_srq_ex(public, &full);
	if (result == 0)
		attr->attr = full.attr;
	return result;
}

VB_EXPORT void rdma_destroy_srq(struct rdma_cm_id *public)
{
	struct id_object *id = vb_id_of(public);
	if (!vb_id_is_ours(id))
		return;
	pthread_mutex_lock(&id->calls);
	if (public->srq)
		ibv_destroy_srq(public->srq);
	public->srq = NULL;
	release_cqs(id);
	pthread_mutex_unlock(&id->calls);
}
