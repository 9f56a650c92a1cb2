/* Shared receive queues, basic and XRC. Posting is in post.c, the limit event in events.c. */
#include "verbs/objects.h"

/* xrcd and cq: of an XRC SRQ, else NULL. The capacities granted are written back on success. */
static struct ibv_srq *srq_create(
	struct ibv_pd *pd, void *srq_context, struct ibv_srq_attr *attr, struct xrcd_object *xrcd, struct cq_object *cq)
{
	if (vb_is_forked(pd->context))
		return vb_fail(VB_FORKED_ERRNO);
	if (attr->max_wr < 1 || attr->max_wr > VB_MAX_SRQ_WR || attr->max_sge > VB_MAX_SGE)
		return vb_fail(EINVAL);
	bool is_programs;
	struct srq_object *srq = vb_pd_alloc(pd, sizeof(*srq), VB_ALLOCATION_SRQ, &is_programs);
	if (!srq)
		return vb_fail(ENOMEM);
	srq->is_programs_memory = is_programs;
	/* A limit is armed by ibv_modify_srq alone. */
	struct vb_srq_config config = {
		.max_wr = attr->max_wr,
		.max_sge = attr->max_sge,
		.user = srq,
		.xrcd = xrcd ? xrcd->xrcd : NULL,
		.cq = cq ? cq->cq : NULL,
	};
	srq->ibv.context = pd->context;
	srq->ibv.srq_context = srq_context;
	srq->ibv.pd = pd;
	srq->ibv.handle = vb_object_handle();
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	int err = vb_srq_create(((struct pd_object *)pd)->pd, &config, &srq->srq);
	if (err) {
		vb_pd_free(pd, srq, VB_ALLOCATION_SRQ, is_programs);
		return vb_fail(-err);
	}
	vb_srq_query(srq->srq, &config);
	attr->max_wr = config.max_wr;
	attr->max_sge = config.max_sge;
	srq->xrcd = xrcd;
	if (xrcd)
		atomic_fetch_add(&xrcd->users, 1);
	vb_pd_hold(pd, 1);
	vb_object_add(pd->context, OBJECT_SRQ, &srq->link);
	return &srq->ibv;
}

VB_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	return srq_create(pd, attr->srq_context, &attr->attr, NULL, NULL);
}

/* Only fields that comp_mask names are read. */
struct ibv_srq *vb_srq_ops_create_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t xrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	enum ibv_srq_type type = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? attr->srq_type : IBV_SRQT_BASIC;
	if ((attr->comp_mask & ~(xrc | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE)) ||
		(type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC))
		return vb_fail(EOPNOTSUPP);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd || attr->pd->context != context)
		return vb_fail(EINVAL);
	if (type == IBV_SRQT_BASIC)
		return srq_create(attr->pd, attr->srq_context, &attr->attr, NULL, NULL);
	if ((attr->comp_mask & xrc) != xrc || !attr->xrcd || !attr->cq || attr->xrcd->context != context ||
		attr->cq->context != context)
		return vb_fail(EINVAL);
	return srq_create(
		attr->pd, attr->srq_context, &attr->attr, (struct xrcd_object *)attr->xrcd, vb_cq_of(attr->cq));
}

int vb_srq_ops_get_num(struct ibv_srq *ibv, uint32_t *number)
{
	const struct srq_object *srq = (const struct srq_object *)ibv;
	if (!srq->xrcd)
		return EINVAL;
	*number = vb_srq_number(srq->srq);
	return 0;
}

VB_EXPORT int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
	struct srq_object *srq = (struct srq_object *)ibv;
	if (vb_is_forked(ibv->context))
		return VB_FORKED_ERRNO;
	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return EINVAL;
	struct vb_srq_config now;
	vb_srq_query(srq->srq, &now);
	uint32_t max_wr = mask & IBV_SRQ_MAX_WR ? attr->max_wr : now.max_wr;
	if (max_wr < 1 || max_wr > VB_MAX_SRQ_WR || ((mask & IBV_SRQ_LIMIT) && attr->srq_limit > max_wr))
		return EINVAL;
	int err = mask & IBV_SRQ_MAX_WR ? vb_srq_resize(srq->srq, max_wr) : 0;
	if (!err && (mask & IBV_SRQ_LIMIT))
		err = vb_srq_set_limit(srq->srq, attr->srq_limit);
	/* The limit may already be undercut: let the lane say so. */
	vb_lane_kick(vb_host_of(ibv->context));
	return -err;
}

VB_EXPORT int ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	if (vb_is_forked(ibv->context))
		return VB_FORKED_ERRNO;
	struct vb_srq_config now;
	vb_srq_query(((struct srq_object *)ibv)->srq, &now);
	*attr = (struct ibv_srq_attr){ .max_wr = now.max_wr, .max_sge = now.max_sge, .srq_limit = now.limit };
	return 0;
}

VB_EXPORT int ibv_destroy_srq(struct ibv_srq *ibv)
{
	struct srq_object *srq = (struct srq_object *)ibv;
	int err = vb_lane_lock_quiet(ibv->context);
	if (err)
		return err;
	err = vb_srq_destroy(srq->srq);
	vb_lane_unlock(vb_host_of(ibv->context));
	if (err)
		return -err;
	vb_object_remove(ibv->context, &srq->link);
	if (srq->xrcd)
		atomic_fetch_sub(&srq->xrcd->users, 1);
	vb_srq_events_finish(srq);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	struct ibv_pd *pd = ibv->pd;
	vb_pd_free(pd, srq, VB_ALLOCATION_SRQ, srq->is_programs_memory);
	vb_pd_hold(pd, -1);
	return 0;
}
