/* Queue pairs: creation and destruction.
 * Not here: attributes and states (qp_attr.c), posting (post.c, qp_ex.c), QPs with several handles (xrc.c), and the
 * special parts of raw packet QPs (raw.c, flow.c). */
#include <stdlib.h>
#include "verbs/objects.h"
#include "verbs/qp_init.h"

static int check_type(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return 0;
	default:
		return EOPNOTSUPP;
	}
}

/* An XRC QP is one half of a QP. As in the kernel, attributes of the other half are ignored. */
static void drop_other_half(struct ibv_qp_init_attr_ex *attr)
{
	if (attr->qp_type == IBV_QPT_XRC_RECV) {
		attr->pd = NULL;
		attr->send_cq = NULL;
		attr->cap = (struct ibv_qp_cap){ 0 };
	}
	attr->recv_cq = NULL;
	attr->srq = NULL;
	attr->cap.max_recv_wr = attr->cap.max_recv_sge = 0;
}

/* A QP that spreads its frames over work queues has no queues of its own. */
static void drop_queues(struct ibv_qp_init_attr_ex *attr)
{
	attr->send_cq = attr->recv_cq = NULL;
	attr->srq = NULL;
	attr->cap = (struct ibv_qp_cap){ 0 };
}

static int check_init_attr(const struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_qp_cap *cap = &attr->cap;
	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return attr->xrcd && attr->xrcd->context == context ? 0 : EINVAL;
	bool is_spread = attr->rwq_ind_tbl; /* a receiver that has no queues */
	if (!attr->pd || (!attr->send_cq && !is_spread) ||
		(!attr->recv_cq && attr->qp_type != IBV_QPT_XRC_SEND && !is_spread))
		return EINVAL;
	if (attr->pd->context != context || (attr->send_cq && attr->send_cq->context != context) ||
		(attr->recv_cq && attr->recv_cq->context != context) || (attr->srq && attr->srq->context != context))
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
		.pd = attr->pd ? ((struct pd_object *)attr->pd)->pd : NULL,
		.send_cq = attr->send_cq ? vb_cq_of(attr->send_cq)->cq : NULL,
		.recv_cq = attr->recv_cq ? vb_cq_of(attr->recv_cq)->cq : NULL,
		.srq = attr->srq ? ((struct srq_object *)attr->srq)->srq : NULL,
		.xrcd = qp->xrcd ? qp->xrcd->xrcd : NULL,
		.max_send_wr = cap->max_send_wr,
		.max_recv_wr = attr->srq ? 0 : cap->max_recv_wr,
		.max_send_sge = cap->max_send_sge,
		.max_recv_sge = attr->srq ? 0 : cap->max_recv_sge,
		.max_inline = cap->max_inline_data,
		.signal_all = attr->sq_sig_all != 0,
		.user = qp,
	};
	int err = vb_host_lane_lock(qp->host_lane);
	if (err)
		return err;
	err = vb_qp_create(vb_host_lane_lane(qp->host_lane), config, &qp->qp);
	if (!err && attr->rwq_ind_tbl) {
		err = vb_raw_spread(qp, attr);
		if (err)
			vb_qp_destroy(qp->qp);
	}
	vb_host_lane_unlock(qp->host_lane);
	return err;
}

/* These QPs must all be in one lane: raw packet QPs share taps, receiving XRC QPs share their domain's SRQs, and tags
 * are matched in order. */
static bool is_at_home(const struct ibv_qp_init_attr_ex *attr)
{
	return attr->qp_type == IBV_QPT_RAW_PACKET || attr->qp_type == IBV_QPT_XRC_RECV ||
	       (attr->srq && ((struct srq_object *)attr->srq)->has_tags);
}

static struct vb_host_lane *host_lane_for(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	const struct td_object *td = attr->pd ? ((struct pd_object *)attr->pd)->td : NULL;
	if (is_at_home(attr) || (!td && !attr->send_cq))
		return vb_host_lane_of(context);
	return td ? td->host_lane : vb_cq_of(attr->send_cq)->host_lane;
}

static void add_lanes(const struct ibv_qp *ibv, struct vb_host_lane *host_lane)
{
	if (ibv->send_cq)
		vb_cq_add_lane(vb_cq_of(ibv->send_cq), host_lane);
	if (ibv->recv_cq)
		vb_cq_add_lane(vb_cq_of(ibv->recv_cq), host_lane);
}

/* Makes the QP in its lane or, if that has no number left, in another. */
static int create(struct qp_object *qp, const struct ibv_qp_init_attr_ex *attr, struct vb_qp_config *config)
{
	struct vb_host_lane *wanted = qp->host_lane;
	int err = create_in_lane(qp, attr, config);
	while (err == -ENOSPC && !is_at_home(attr)) {
		qp->host_lane = vb_device_host_lane_after(qp->host, qp->host_lane);
		if (qp->host_lane == wanted)
			break;
		err = create_in_lane(qp, attr, config);
	}
	if (!err)
		add_lanes(&qp->ibv, qp->host_lane);
	return err == -ENOSPC ? -ENOMEM : err;
}

static void name_cqs(const struct ibv_qp *ibv, int change)
{
	if (ibv->send_cq)
		vb_users_add(&vb_cq_of(ibv->send_cq)->named_by, change);
	if (ibv->recv_cq)
		vb_users_add(&vb_cq_of(ibv->recv_cq)->named_by, change);
}

static int check(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	int err = vb_refuses_forked(context) ? VB_FORKED_ERRNO : check_type(attr->qp_type);
	if (!err)
		err = check_init_attr(context, attr);
	if (!err && attr->qp_type == IBV_QPT_RAW_PACKET)
		err = vb_raw_check(context, attr);
	return err;
}

/* The object alone: the engine has no QP for it yet. NULL: out of memory. */
static struct qp_object *make_object(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	bool is_programs;
	struct qp_object *qp = vb_pd_alloc(attr->pd, sizeof(*qp), VB_ALLOCATION_QP, &is_programs);
	if (!qp)
		return NULL;
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
	qp->is_programs_memory = is_programs;
	qp->host = vb_host_of(context);
	qp->host_lane = host_lane_for(context, attr);
	vb_qp_own(qp, attr->qp_type == IBV_QPT_XRC_RECV ? (struct xrcd_object *)attr->xrcd : NULL);
	return qp;
}

static void free_unmade(struct qp_object *qp)
{
	if (qp->xrcd)
		vb_users_add(&qp->xrcd->users, -1);
	free(qp->builder);
	vb_pd_free(qp->ibv.pd, qp, VB_ALLOCATION_QP, qp->is_programs_memory);
}

/* attr has only what its comp_mask names. The capacities granted are written back on success. */
static struct ibv_qp *qp_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	int err = check(context, attr);
	if (err)
		return vb_fail(err);
	struct ibv_qp_init_attr_ex used = *attr;
	if (attr->qp_type == IBV_QPT_XRC_SEND || attr->qp_type == IBV_QPT_XRC_RECV)
		drop_other_half(&used);
	if (used.rwq_ind_tbl)
		drop_queues(&used);
	struct qp_object *qp = make_object(context, &used);
	if (!qp)
		return vb_fail(ENOMEM);
	struct vb_qp_config config;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		err = vb_qp_ex_init(qp, attr->send_ops_flags);
	if (!err)
		err = -create(qp, &used, &config);
	if (err) {
		free_unmade(qp);
		return vb_fail(err);
	}
	qp->ibv.qp_num = vb_qp_number(qp->qp);
	qp->ibv.handle = qp->ibv.qp_num;
	attr->cap = (struct ibv_qp_cap){
		.max_send_wr = config.max_send_wr,
		.max_recv_wr = config.max_recv_wr,
		.max_send_sge = config.max_send_sge,
		.max_recv_sge = config.max_recv_sge,
		.max_inline_data = config.max_inline,
	};
	vb_pd_hold(used.pd, 1);
	name_cqs(&qp->ibv, 1);
	vb_object_add(context, OBJECT_QP, &qp->link);
	return &qp->ibv;
}

VB_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	if (vb_call_fails(VB_CALL_ibv_create_qp))
		return NULL;
	if (!pd)
		return vb_fail(EINVAL);
	struct ibv_qp_init_attr_ex full = vb_qp_init_extended(pd, attr);
	struct ibv_qp *qp = qp_create(pd->context, &full);
	if (qp)
		attr->cap = full.cap;
	return qp;
}

/* Only fields that comp_mask names are read. */
struct ibv_qp *vb_qp_ops_create_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t known = (IBV_QP_INIT_ATTR_SEND_OPS_FLAGS << 1) - 1;
	const uint32_t spreading = IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
	uint32_t mask = attr->comp_mask;
	if (mask & ~known)
		return vb_fail(EINVAL);
	if ((mask & spreading) && ((mask & spreading) != spreading || !attr->rwq_ind_tbl))
		return vb_fail(EINVAL);
	if ((mask & spreading) && attr->qp_type != IBV_QPT_RAW_PACKET)
		return vb_fail(EOPNOTSUPP);
	if (((mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags) ||
		((mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER) && attr->max_tso_header))
		return vb_fail(EOPNOTSUPP);
	if (!(mask & (attr->qp_type == IBV_QPT_XRC_RECV ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD)))
		return vb_fail(EINVAL);
	if (mask & spreading)
		return qp_create(context, attr);
	struct ibv_qp_init_attr_ex named = *attr; /* the table is not read unless the mask says so */
	named.rwq_ind_tbl = NULL;
	struct ibv_qp *qp = qp_create(context, &named);
	if (qp)
		attr->cap = named.cap;
	return qp;
}

static void free_object(struct qp_object *qp)
{
	pthread_mutex_destroy(&qp->ibv.mutex);
	pthread_cond_destroy(&qp->ibv.cond);
	if (qp->table)
		vb_users_add(&qp->table->users, -1);
	vb_comp_cntr_detach(qp);
	free(qp->groups);
	free(qp->builder);
	name_cqs(&qp->ibv, -1);
	struct ibv_pd *pd = qp->ibv.pd;
	vb_pd_free(pd, qp, VB_ALLOCATION_QP, qp->is_programs_memory);
	vb_pd_hold(pd, -1);
}

/* As with the kernel, a QP that is still in multicast groups, or has flows, is busy. */
VB_EXPORT int ibv_destroy_qp(struct ibv_qp *ibv)
{
	if (vb_call_fails(VB_CALL_ibv_destroy_qp))
		return errno;
	struct qp_object *qp = vb_qp_of(ibv);
	if (vb_is_forked(ibv->context))
		return VB_FORKED_ERRNO;
	if (qp->group_count || atomic_load(&qp->flows))
		return EBUSY;
	int err = -vb_host_lane_lock(qp->host_lane);
	if (err)
		return err;
	struct qp_object *owner;
	vb_host_lane_take_leave(qp->host_lane, qp->qp);
	bool is_last = vb_qp_disown(qp, &owner);
	if (is_last) {
		vb_host_lane_note_end(qp->host_lane, qp->qp);
		vb_qp_destroy(qp->qp);
	}
	vb_object_remove(ibv->context, &qp->link);
	vb_host_lane_unlock(qp->host_lane);
	vb_qp_events_finish(qp);
	if (is_last && owner != qp)
		free_object(owner);
	if (is_last || owner != qp)
		free_object(qp);
	return 0;
}

VB_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *ibv)
{
	struct qp_object *qp = vb_qp_of(ibv);
	return qp->builder ? &qp->ex : NULL;
}
