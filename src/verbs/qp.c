/* Queue pairs: creation and destruction. Attributes and states are qp_attr.c, posting post.c and qp_ex.c. */
#include <stdlib.h>
#include "verbs/objects.h"

static int check_init_attr(const struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_qp_cap *cap = &attr->cap;
	if (attr->qp_type != IBV_QPT_RC && attr->qp_type != IBV_QPT_UC && attr->qp_type != IBV_QPT_UD)
		return EOPNOTSUPP;
	if (!attr->pd || !attr->send_cq || !attr->recv_cq)
		return EINVAL;
	const struct ibv_context *context = attr->pd->context;
	if (attr->send_cq->context != context || attr->recv_cq->context != context ||
		(attr->srq && attr->srq->context != context))
		return EINVAL;
	if (cap->max_send_wr > VB_MAX_QP_WR || cap->max_send_sge > VB_MAX_SGE || cap->max_inline_data > VB_MAX_INLINE)
		return EINVAL;
	if (!attr->srq && (cap->max_recv_wr > VB_MAX_QP_WR || cap->max_recv_sge > VB_MAX_SGE))
		return EINVAL;
	return 0;
}

static int create_in_lane(struct qp_object *qp, const struct ibv_qp_init_attr_ex *attr, struct vb_qp_config *config)
{
	const struct ibv_qp_cap *cap = &attr->cap;
	*config = (struct vb_qp_config){
		.type = (enum vb_qp_type)attr->qp_type,
		.pd = ((struct pd_object *)attr->pd)->pd,
		.send_cq = vb_cq_of(attr->send_cq)->cq,
		.recv_cq = vb_cq_of(attr->recv_cq)->cq,
		.srq = attr->srq ? ((struct srq_object *)attr->srq)->srq : NULL,
		.max_send_wr = cap->max_send_wr,
		.max_recv_wr = attr->srq ? 0 : cap->max_recv_wr,
		.max_send_sge = cap->max_send_sge,
		.max_recv_sge = attr->srq ? 0 : cap->max_recv_sge,
		.max_inline = cap->max_inline_data,
		.signal_all = attr->sq_sig_all != 0,
		.user = qp,
	};
	int err = vb_lane_lock(qp->host);
	if (err)
		return err;
	err = vb_qp_create(vb_device_lane(qp->host), config, &qp->qp);
	vb_lane_unlock(qp->host);
	return err;
}

/* attr with only what its comp_mask names; the capacities granted are written back on success. */
static struct ibv_qp *qp_create(struct ibv_qp_init_attr_ex *attr)
{
	int err = check_init_attr(attr);
	if (err)
		return vb_fail(err);
	struct qp_object *qp = calloc(1, sizeof(*qp));
	if (!qp)
		return vb_fail(ENOMEM);
	struct ibv_context *context = attr->pd->context;
	struct ibv_qp *ibv = &qp->ibv;
	ibv->context = context;
	ibv->qp_context = attr->qp_context;
	ibv->pd = attr->pd;
	ibv->send_cq = attr->send_cq;
	ibv->recv_cq = attr->recv_cq;
	ibv->srq = attr->srq;
	ibv->state = IBV_QPS_RESET;
	ibv->qp_type = attr->qp_type;
	pthread_mutex_init(&ibv->mutex, NULL);
	pthread_cond_init(&ibv->cond, NULL);
	qp->host = vb_host_of(context);

	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		err = vb_qp_ex_init(qp, attr->send_ops_flags);
		if (err)
			goto out_free;
	}
	struct vb_qp_config config;
	err = -create_in_lane(qp, attr, &config);
	if (err)
		goto out_free;
	ibv->qp_num = vb_qp_number(qp->qp);
	ibv->handle = ibv->qp_num;
	attr->cap.max_send_wr = config.max_send_wr;
	attr->cap.max_send_sge = config.max_send_sge;
	attr->cap.max_inline_data = config.max_inline;
	attr->cap.max_recv_wr = config.max_recv_wr;
	attr->cap.max_recv_sge = config.max_recv_sge;
	vb_object_add(context, OBJECT_QP, &qp->link);
	return ibv;

out_free:
	free(qp->builder);
	free(qp);
	return vb_fail(err);
}

VB_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex full = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp = qp_create(&full);
	if (qp)
		attr->cap = full.cap;
	return qp;
}

/* Only fields that comp_mask names are read. */
struct ibv_qp *vb_qp_ops_create_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t known = (IBV_QP_INIT_ATTR_SEND_OPS_FLAGS << 1) - 1;
	const uint32_t not_offered = IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
	uint32_t mask = attr->comp_mask;
	if (mask & ~known)
		return vb_fail(EINVAL);
	if ((mask & not_offered) || ((mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags) ||
		((mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER) && attr->max_tso_header))
		return vb_fail(EOPNOTSUPP);
	if (!(mask & IBV_QP_INIT_ATTR_PD))
		return vb_fail(EINVAL);
	return qp_create(attr);
}

/* As with the kernel, a QP that is still in multicast groups is busy. */
VB_EXPORT int ibv_destroy_qp(struct ibv_qp *ibv)
{
	struct qp_object *qp = vb_qp_of(ibv);
	if (qp->group_count)
		return EBUSY;
	int err = vb_lane_lock_quiet(ibv->context);
	if (err)
		return err;
	vb_lane_settle(qp->host);
	err = vb_qp_destroy(qp->qp);
	vb_lane_unlock(qp->host);
	if (err)
		return -err;
	vb_object_remove(ibv->context, &qp->link);
	vb_qp_events_finish(qp);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	free(qp->groups);
	free(qp->builder);
	free(qp);
	return 0;
}

VB_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *ibv)
{
	struct qp_object *qp = vb_qp_of(ibv);
	return qp->builder ? &qp->ex : NULL;
}
