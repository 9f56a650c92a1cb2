/* Posting work requests: the ABI's lists go into the engine's queues, entry by entry. This is the hot path: there is no
 * allocation and no system call. Scatter/gather lists are passed through.
 * Holds: on an error *bad_wr is the first request not posted, and those before it are posted. */
#include "verbs/objects.h"
#include "verbs/tsan.h"

_Static_assert(sizeof(struct ibv_sge) == sizeof(struct vb_sge) &&
		       offsetof(struct ibv_sge, addr) == offsetof(struct vb_sge, addr) &&
		       offsetof(struct ibv_sge, length) == offsetof(struct vb_sge, length) &&
		       offsetof(struct ibv_sge, lkey) == offsetof(struct vb_sge, lkey),
	"scatter/gather lists are passed through");

#define SEND_FLAGS_ENGINE (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)

static inline const struct vb_sge *sge_list(const struct ibv_sge *list)
{
	return (const struct vb_sge *)list;
}

static inline struct vb_mw *mw_of(struct ibv_mw *mw)
{
	return ((struct mw_object *)mw)->mw;
}

/* The engine's domain, also of a parent domain. */
static inline struct vb_pd *domain_of(struct ibv_pd *pd)
{
	return ((struct pd_object *)pd)->pd;
}

/* A window opens its memory to peers alone, so local and optional bits are ignored. */
int vb_bind_translate(const struct ibv_mw_bind_info *info, struct ibv_mw *mw, uint32_t rkey, struct vb_send_wr *to)
{
	if (!mw || (!info->mr && info->length) || (info->mr && domain_of(info->mr->pd) != domain_of(mw->pd)))
		return EINVAL;
	to->bind.mw = mw_of(mw);
	to->bind.mr = info->mr ? ((struct mr_object *)info->mr)->mr : NULL;
	to->bind.addr = info->addr;
	to->bind.length = info->length;
	to->bind.access = info->mw_access_flags & ~(unsigned int)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_OPTIONAL_RANGE);
	to->bind.rkey = rkey;
	return 0;
}

/* Sets only the fields that the opcode uses. */
static inline int translate_send(const struct ibv_qp *qp, const struct ibv_send_wr *from, struct vb_send_wr *to)
{
	if (from->num_sge < 0)
		return EINVAL;
	to->wr_id = from->wr_id;
	to->opcode = (enum vb_wr_opcode)from->opcode;
	to->flags = from->send_flags & SEND_FLAGS_ENGINE;
	to->sges = sge_list(from->sg_list);
	to->sge_count = (uint32_t)from->num_sge;
	to->imm_or_inv = from->imm_data;
	to->av = NULL;
	to->remote_srqn = qp->qp_type == IBV_QPT_XRC_SEND ? from->qp_type.xrc.remote_srqn : 0;

	switch (from->opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		if (qp->qp_type == IBV_QPT_UD) {
			if (!from->wr.ud.ah)
				return EINVAL;
			to->av = &((struct ah_object *)from->wr.ud.ah)->av;
			to->remote_qpn = from->wr.ud.remote_qpn;
			to->remote_qkey = from->wr.ud.remote_qkey;
		}
		return 0;
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		return 0;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
		to->remote_addr = from->wr.rdma.remote_addr;
		to->rkey = from->wr.rdma.rkey;
		return 0;
	case IBV_WR_ATOMIC_WRITE:
		if (from->num_sge == 0) /* the bytes come by list, or by ibv_wr_atomic_write */
			return EINVAL;
		to->remote_addr = from->wr.rdma.remote_addr;
		to->rkey = from->wr.rdma.rkey;
		return 0;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		to->remote_addr = from->wr.atomic.remote_addr;
		to->rkey = from->wr.atomic.rkey;
		to->compare_add = from->wr.atomic.compare_add;
		to->swap = from->wr.atomic.swap;
		return 0;
	case IBV_WR_BIND_MW:
		if (!from->bind_mw.mw || from->bind_mw.mw->type != IBV_MW_TYPE_2)
			return EINVAL;
		return vb_bind_translate(&from->bind_mw.bind_info, from->bind_mw.mw, from->bind_mw.rkey, to);
	default: /* TSO, and opcodes of hardware drivers */
		return EINVAL;
	}
}

int vb_qp_ops_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct qp_object *qp = vb_qp_of(ibv);
	int err = 0;
	if (vb_refuses_forked(ibv->context)) {
		*bad_wr = wr;
		return VB_FORKED_ERRNO;
	}
	vb_tsan_posts(ibv->context);
	vb_sq_begin(qp->qp);
	for (; wr; wr = wr->next) {
		struct vb_send_wr request;
		err = translate_send(ibv, wr, &request);
		if (!err)
			err = -vb_sq_put(qp->qp, &request);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	vb_host_lane_end_post(qp->host_lane, qp->qp);
	return err;
}

/* Binds a type-1 window, by a request whose new key is known as soon as it is posted. */
int vb_qp_ops_bind_mw(struct ibv_qp *ibv, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct qp_object *qp = vb_qp_of(ibv);
	if (vb_refuses_forked(ibv->context))
		return VB_FORKED_ERRNO;
	struct vb_send_wr request = {
		.wr_id = bind->wr_id,
		.opcode = VB_WR_BIND_MW,
		.flags = bind->send_flags & SEND_FLAGS_ENGINE,
	};
	vb_sq_begin(qp->qp);
	uint32_t rkey = vb_mw_next_key(mw_of(mw));
	int err = rkey ? vb_bind_translate(&bind->bind_info, mw, rkey, &request) : ENOMEM;
	if (!err)
		err = -vb_sq_put(qp->qp, &request);
	vb_sq_end(qp->qp, !err);
	if (err) {
		if (rkey)
			vb_mw_forget_key(mw_of(mw), rkey);
		return err;
	}
	__atomic_store_n(&mw->rkey, rkey, __ATOMIC_RELAXED); /* two threads may bind one window */
	vb_host_lane_kick(qp->host_lane);
	return 0;
}

static inline int translate_recv(const struct ibv_recv_wr *from, struct vb_recv_wr *to)
{
	if (from->num_sge < 0)
		return EINVAL;
	*to = (struct vb_recv_wr){ from->wr_id, sge_list(from->sg_list), (uint32_t)from->num_sge };
	return 0;
}

/* Posts a list to queue: the engine's SRQ or, unless is_shared, the engine's QP. err: the reason to post none, or 0. */
static inline int post_receives(
	void *queue, bool is_shared, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr, int err)
{
	for (; wr; wr = wr->next) {
		struct vb_recv_wr request;
		if (!err)
			err = translate_recv(wr, &request);
		if (!err)
			err = is_shared ? -vb_srq_post(queue, &request) : -vb_rq_post(queue, &request);
		if (err) {
			*bad_wr = wr;
			break;
		}
	}
	return err;
}

int vb_qp_ops_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct qp_object *qp = vb_qp_of(ibv);
	vb_tsan_posts(ibv->context);
	int err = post_receives(qp->qp, false, wr, bad_wr, vb_refuses_forked(ibv->context) ? VB_FORKED_ERRNO : 0);
	/* A QP in the error state flushes what is posted to it, and only its lane can do that. */
	if (vb_qp_state(qp->qp) == VB_QPS_ERR)
		vb_host_lane_kick(qp->host_lane);
	return err;
}

int vb_srq_ops_post_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct srq_object *srq = (struct srq_object *)ibv;
	vb_tsan_posts(ibv->context);
	return post_receives(srq->srq, true, wr, bad_wr, vb_refuses_forked(ibv->context) ? VB_FORKED_ERRNO : 0);
}
