/* Shared receive queues: basic, XRC, and with tags.
 * Not here: posting receives (post.c), the limit event (events.c). */
#include "core/tags.h"
#include "verbs/objects.h"

/* An XRC SRQ has xrcd and cq, one with tags has cq and max_tags; the others are NULL and 0. The capacities granted are
 * written back on success. */
static struct ibv_srq *srq_create(struct ibv_pd *pd, void *srq_context, struct ibv_srq_attr *attr,
	struct xrcd_object *xrcd, struct cq_object *cq, uint32_t max_tags)
{
	if (vb_refuses_forked(pd->context))
		return vb_fail(VB_FORKED_ERRNO);
	if (attr->max_wr < 1 || attr->max_wr > VB_MAX_SRQ_WR || attr->max_sge > VB_MAX_SGE)
		return vb_fail(EINVAL);
	bool is_programs;
	struct srq_object *srq = vb_pd_alloc(pd, sizeof(*srq), VB_ALLOCATION_SRQ, &is_programs);
	if (!srq)
		return vb_fail(ENOMEM);
	srq->is_programs_memory = is_programs;
	/* Only ibv_modify_srq arms a limit. */
	struct vb_srq_config config = {
		.max_wr = attr->max_wr,
		.max_sge = attr->max_sge,
		.user = srq,
		.xrcd = xrcd ? xrcd->xrcd : NULL,
		.cq = cq ? cq->cq : NULL,
		.max_tags = max_tags,
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
	srq->has_tags = max_tags > 0;
	if (cq)
		vb_cq_add_lane(cq, vb_host_lane_of(pd->context));
	if (xrcd)
		vb_users_add(&xrcd->users, 1);
	vb_pd_hold(pd, 1);
	vb_object_add(pd->context, OBJECT_SRQ, &srq->link);
	return &srq->ibv;
}

VB_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	if (vb_call_fails(VB_CALL_ibv_create_srq))
		return NULL;
	return srq_create(pd, attr->srq_context, &attr->attr, NULL, NULL, 0);
}

static struct ibv_srq *create_with_tags(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t needed = IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
	if ((attr->comp_mask & needed) != needed || !attr->cq || attr->cq->context != context ||
		attr->tm_cap.max_num_tags < 1 || attr->tm_cap.max_num_tags > VB_MAX_TAGS ||
		attr->tm_cap.max_ops > VB_MAX_SRQ_WR)
		return vb_fail(EINVAL);
	return srq_create(
		attr->pd, attr->srq_context, &attr->attr, NULL, vb_cq_of(attr->cq), attr->tm_cap.max_num_tags);
}

/* Only fields that comp_mask names are read. */
struct ibv_srq *vb_srq_ops_create_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t xrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	enum ibv_srq_type type = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? attr->srq_type : IBV_SRQT_BASIC;
	if ((attr->comp_mask & ~(xrc | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_TM)) ||
		(type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC && type != IBV_SRQT_TM))
		return vb_fail(EOPNOTSUPP);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd || attr->pd->context != context)
		return vb_fail(EINVAL);
	if (type == IBV_SRQT_BASIC)
		return srq_create(attr->pd, attr->srq_context, &attr->attr, NULL, NULL, 0);
	if (type == IBV_SRQT_TM)
		return create_with_tags(context, attr);
	if ((attr->comp_mask & xrc) != xrc || !attr->xrcd || !attr->cq || attr->xrcd->context != context ||
		attr->cq->context != context)
		return vb_fail(EINVAL);
	return srq_create(
		attr->pd, attr->srq_context, &attr->attr, (struct xrcd_object *)attr->xrcd, vb_cq_of(attr->cq), 0);
}

int vb_srq_ops_get_num(struct ibv_srq *ibv, uint32_t *number)
{
	const struct srq_object *srq = (const struct srq_object *)ibv;
	if (!srq->xrcd)
		return EINVAL;
	*number = vb_srq_number(srq->srq);
	return 0;
}

/* ---- Tags -------------------------------------------------------------------------------------------------------- */

static int translate_op(const struct ibv_ops_wr *from, struct vb_tag_op *to)
{
	const int known = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC;
	bool adds = from->opcode == IBV_WR_TAG_ADD;
	if ((unsigned)from->opcode > IBV_WR_TAG_SYNC || (from->flags & ~known) ||
		(adds && (from->tm.add.num_sge < 0 || from->tm.add.num_sge > 1)))
		return EINVAL;
	*to = (struct vb_tag_op){
		.kind = (enum vb_tag_op_kind)from->opcode,
		.wr_id = from->wr_id,
		.is_signaled = from->flags & IBV_OPS_SIGNALED,
		.tells_unexpected = from->opcode == IBV_WR_TAG_SYNC || (from->flags & IBV_OPS_TM_SYNC),
		.unexpected = from->tm.unexpected_cnt,
		.handle = from->tm.handle,
	};
	if (!adds)
		return 0;
	to->recv_wr_id = from->tm.add.recv_wr_id;
	to->tag = from->tm.add.tag;
	to->mask = from->tm.add.mask;
	if (from->tm.add.num_sge) {
		const struct ibv_sge *sge = from->tm.add.sg_list;
		to->sge = (struct vb_sge){ sge->addr, sge->length, sge->lkey };
	}
	return 0;
}

static int post_op(struct srq_object *srq, struct ibv_ops_wr *wr)
{
	struct vb_tag_op op;
	int err = translate_op(wr, &op);
	if (!err)
		err = -vb_srq_tag_op(
			vb_host_lane_lane(vb_host_lane_of(srq->ibv.context)), srq->srq, &op, vb_host_now());
	if (!err && wr->opcode == IBV_WR_TAG_ADD)
		wr->tm.handle = op.handle;
	return err;
}

int vb_srq_ops_post_ops(struct ibv_srq *ibv, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad_wr)
{
	struct vb_host_lane *host_lane = vb_host_lane_of(ibv->context);
	int err = vb_refuses_forked(ibv->context) ? VB_FORKED_ERRNO : -vb_host_lane_lock(host_lane);
	if (err) {
		*bad_wr = wr;
		return err;
	}
	for (; wr; wr = wr->next) {
		err = post_op((struct srq_object *)ibv, wr);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	vb_host_lane_unlock(host_lane);
	return err;
}

VB_EXPORT int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
	if (vb_call_fails(VB_CALL_ibv_modify_srq))
		return errno;
	struct srq_object *srq = (struct srq_object *)ibv;
	if (vb_refuses_forked(ibv->context))
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
	/* There may already be fewer receives than the limit: the lane raises the event. */
	vb_host_lane_kick(vb_host_lane_of(ibv->context));
	return -err;
}

VB_EXPORT int ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	if (vb_call_fails(VB_CALL_ibv_query_srq))
		return errno;
	if (vb_refuses_forked(ibv->context))
		return VB_FORKED_ERRNO;
	struct vb_srq_config now;
	vb_srq_query(((struct srq_object *)ibv)->srq, &now);
	*attr = (struct ibv_srq_attr){ .max_wr = now.max_wr, .max_sge = now.max_sge, .srq_limit = now.limit };
	return 0;
}

VB_EXPORT int ibv_destroy_srq(struct ibv_srq *ibv)
{
	if (vb_call_fails(VB_CALL_ibv_destroy_srq))
		return errno;
	struct srq_object *srq = (struct srq_object *)ibv;
	int err = -vb_device_lock(vb_host_of(ibv->context), VB_ALL_LANES);
	if (err)
		return err;
	err = vb_srq_destroy(srq->srq);
	vb_device_unlock(vb_host_of(ibv->context), VB_ALL_LANES);
	if (err)
		return -err;
	vb_object_remove(ibv->context, &srq->link);
	if (srq->xrcd)
		vb_users_add(&srq->xrcd->users, -1);
	vb_srq_events_finish(srq);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	struct ibv_pd *pd = ibv->pd;
	vb_pd_free(pd, srq, VB_ALLOCATION_SRQ, srq->is_programs_memory);
	vb_pd_hold(pd, -1);
	return 0;
}
