/* Shared receive queues of the basic type. Posting is in post.c, the limit event in events.c. */
#include <stdlib.h>
#include "verbs/objects.h"

VB_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	if (vb_host_is_forked_child())
		return vb_fail(VB_FORKED_ERRNO);
	if (attr->attr.max_wr < 1 || attr->attr.max_wr > VB_MAX_SRQ_WR || attr->attr.max_sge > VB_MAX_SGE)
		return vb_fail(EINVAL);
	struct srq_object *srq = calloc(1, sizeof(*srq));
	if (!srq)
		return vb_fail(ENOMEM);
	/* A limit is armed by ibv_modify_srq alone. */
	struct vb_srq_config config = { .max_wr = attr->attr.max_wr, .max_sge = attr->attr.max_sge, .user = srq };
	srq->ibv.context = pd->context;
	srq->ibv.srq_context = attr->srq_context;
	srq->ibv.pd = pd;
	srq->ibv.handle = vb_object_handle();
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	int err = vb_srq_create(((struct pd_object *)pd)->pd, &config, &srq->srq);
	if (err) {
		free(srq);
		return vb_fail(-err);
	}
	vb_srq_query(srq->srq, &config);
	attr->attr.max_wr = config.max_wr;
	attr->attr.max_sge = config.max_sge;
	vb_object_add(pd->context, OBJECT_SRQ, &srq->link);
	return &srq->ibv;
}

VB_EXPORT int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
	struct srq_object *srq = (struct srq_object *)ibv;
	if (vb_host_is_forked_child())
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
	if (vb_host_is_forked_child())
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
	vb_srq_events_finish(srq);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	free(srq);
	return 0;
}
