/* The ibv_wr_* way of posting: start, then an opcode and its setters for each request, then complete or abort.
 * A request is gathered in the QP's builder, since its setters come in any order. It is put into the queue when the
 * next one begins or the batch completes. The send queue's lock is held from start to complete.
 * Holds: after the first error no request is put. Then complete returns that error and drops the whole batch. */
#include <stdlib.h>
#include <string.h>
#include "verbs/faults.h"
#include "verbs/later.h"
#include "verbs/objects.h"
#include "verbs/tsan.h"

struct wr_builder {
	struct vb_send_wr wr;
	bool has_wr;
	int error; /* errno of the first request that failed */
	struct vb_sge sges[VB_MAX_SGE];
	uint8_t inline_data[VB_MAX_INLINE]; /* a copy: the program may reuse its buffer when the setter returns */
};

static void fail(struct wr_builder *builder, int error)
{
	if (!builder->error)
		builder->error = error;
}

/* Puts the request that has been gathered, if any. */
static void flush(struct qp_object *qp)
{
	struct wr_builder *builder = qp->builder;
	if (builder->has_wr && !builder->error) {
		bool lacks_address = qp->ibv.qp_type == IBV_QPT_UD && !builder->wr.av;
		builder->error = lacks_address ? EINVAL : -vb_sq_put(qp->qp, &builder->wr);
	}
	builder->has_wr = false;
}

static void wr_start(struct ibv_qp_ex *ibv)
{
	struct qp_object *qp = (struct qp_object *)ibv;
	bool is_forked = vb_is_forked(qp->ibv.context); /* then a thread of the parent may hold the lock */
	if (!is_forked)
		vb_sq_begin(qp->qp);
	qp->builder->has_wr = false;
	qp->builder->error = is_forked ? VB_FORKED_ERRNO : 0;
}

int vb_qp_ex_complete(struct ibv_qp_ex *ibv)
{
	struct qp_object *qp = (struct qp_object *)ibv;
	if (vb_refuses_forked(qp->ibv.context))
		return VB_FORKED_ERRNO;
	vb_tsan_posts(qp->ibv.context);
	flush(qp);
	int error = qp->builder->error;
	if (error)
		vb_sq_end(qp->qp, false);
	else
		vb_host_lane_end_post(qp->host_lane, qp->qp);
	return error;
}

static void wr_abort(struct ibv_qp_ex *ibv)
{
	struct qp_object *qp = (struct qp_object *)ibv;
	qp->builder->has_wr = false;
	if (!vb_is_forked(qp->ibv.context))
		vb_sq_end(qp->qp, false);
}

/* ---- Opcodes ----------------------------------------------------------------------------------------------------- */

static struct vb_send_wr *begin(struct ibv_qp_ex *ibv, enum vb_wr_opcode opcode)
{
	struct qp_object *qp = (struct qp_object *)ibv;
	flush(qp);
	struct vb_send_wr *wr = &qp->builder->wr;
	wr->wr_id = ibv->wr_id;
	wr->opcode = opcode;
	wr->flags = ibv->wr_flags & (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
	wr->sges = NULL;
	wr->sge_count = 0;
	wr->av = NULL;
	wr->remote_srqn = 0;
	wr->imm_or_inv = 0;
	qp->builder->has_wr = true;
	return wr;
}

static struct vb_send_wr *begin_rdma(
	struct ibv_qp_ex *ibv, enum vb_wr_opcode opcode, uint32_t rkey, uint64_t remote_addr)
{
	struct vb_send_wr *wr = begin(ibv, opcode);
	wr->rkey = rkey;
	wr->remote_addr = remote_addr;
	return wr;
}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
	begin_rdma(qp, VB_WR_RDMA_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, __be32 imm_data)
{
	begin_rdma(qp, VB_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr)->imm_or_inv = imm_data;
}

static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
	begin_rdma(qp, VB_WR_RDMA_READ, rkey, remote_addr);
}

static void wr_atomic_cmp_swp(
	struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, uint64_t compare, uint64_t swap)
{
	struct vb_send_wr *wr = begin_rdma(qp, VB_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr);
	wr->compare_add = compare;
	wr->swap = swap;
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, uint64_t add)
{
	begin_rdma(qp, VB_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr)->compare_add = add;
}

/* The eight bytes are sent in the order in which they lie. */
static void wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, const void *atomic_wr)
{
	struct vb_send_wr *wr = begin_rdma(qp, VB_WR_ATOMIC_WRITE, rkey, remote_addr);
	memcpy(&wr->swap, atomic_wr, sizeof(wr->swap));
}

static void wr_flush(
	struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr, size_t length, uint8_t type, uint8_t level)
{
	struct vb_send_wr *wr = begin_rdma(ibv, VB_WR_FLUSH, rkey, remote_addr);
	if (length > UINT32_MAX)
		fail(((struct qp_object *)ibv)->builder, EINVAL);
	wr->flush_length = (uint32_t)length;
	wr->flush_type = type;
	wr->flush_level = level;
}

static void wr_send(struct ibv_qp_ex *qp)
{
	begin(qp, VB_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm_data)
{
	begin(qp, VB_WR_SEND_WITH_IMM)->imm_or_inv = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t invalidate_rkey)
{
	begin(qp, VB_WR_SEND_WITH_INV)->imm_or_inv = invalidate_rkey;
}

static void wr_local_inv(struct ibv_qp_ex *qp, uint32_t invalidate_rkey)
{
	begin(qp, VB_WR_LOCAL_INV)->imm_or_inv = invalidate_rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *ibv, struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct qp_object *qp = (struct qp_object *)ibv;
	struct vb_send_wr *wr = begin(ibv, VB_WR_BIND_MW);
	int error = mw && mw->type == IBV_MW_TYPE_2 ? vb_bind_translate(info, mw, rkey, wr) : EINVAL;
	if (error)
		fail(qp->builder, error);
}

/* No QP of ours is created for this opcode. */
static void wr_send_tso(struct ibv_qp_ex *qp, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	fail(((struct qp_object *)qp)->builder, EOPNOTSUPP);
}

/* ---- Setters ----------------------------------------------------------------------------------------------------- */

static void wr_set_ud_addr(struct ibv_qp_ex *ibv, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct qp_object *qp = (struct qp_object *)ibv;
	if (!ah || qp->ibv.qp_type != IBV_QPT_UD) {
		fail(qp->builder, EINVAL);
		return;
	}
	struct vb_send_wr *wr = &qp->builder->wr;
	wr->av = &((struct ah_object *)ah)->av;
	wr->remote_qpn = remote_qpn;
	wr->remote_qkey = remote_qkey;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ibv, uint32_t remote_srqn)
{
	struct qp_object *qp = (struct qp_object *)ibv;
	if (qp->ibv.qp_type != IBV_QPT_XRC_SEND)
		fail(qp->builder, EINVAL);
	qp->builder->wr.remote_srqn = remote_srqn;
}

static void wr_set_sge_list(struct ibv_qp_ex *ibv, size_t num_sge, const struct ibv_sge *sg_list)
{
	struct wr_builder *builder = ((struct qp_object *)ibv)->builder;
	if (num_sge > VB_MAX_SGE) {
		fail(builder, EINVAL);
		return;
	}
	if (num_sge)
		memcpy(builder->sges, sg_list, num_sge * sizeof(builder->sges[0]));
	builder->wr.sges = builder->sges;
	builder->wr.sge_count = (uint32_t)num_sge;
}

static void wr_set_sge(struct ibv_qp_ex *ibv, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct wr_builder *builder = ((struct qp_object *)ibv)->builder;
	builder->sges[0] = (struct vb_sge){ addr, length, lkey };
	builder->wr.sges = builder->sges;
	builder->wr.sge_count = 1;
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ibv, size_t num_buf, const struct ibv_data_buf *buf_list)
{
	struct wr_builder *builder = ((struct qp_object *)ibv)->builder;
	size_t length = 0;
	for (size_t i = 0; i < num_buf; i++) {
		if (buf_list[i].length > VB_MAX_INLINE - length) {
			fail(builder, EINVAL);
			return;
		}
		if (buf_list[i].length)
			memcpy(builder->inline_data + length, buf_list[i].addr, buf_list[i].length);
		length += buf_list[i].length;
	}
	builder->sges[0] = (struct vb_sge){ (uintptr_t)builder->inline_data, (uint32_t)length, 0 };
	builder->wr.sges = builder->sges;
	builder->wr.sge_count = 1;
	builder->wr.flags |= VB_SEND_INLINE;
}

static void wr_set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t length)
{
	struct ibv_data_buf buf = { addr, length };
	wr_set_inline_data_list(qp, 1, &buf);
}

/* ---- Creation ---------------------------------------------------------------------------------------------------- */

static uint64_t offered_operations(enum ibv_qp_type type)
{
	const uint64_t datagram = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	const uint64_t connected = datagram | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				   IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW;
	const uint64_t reliable = connected | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_SEND_WITH_INV;
	switch (type) {
	case IBV_QPT_RC:
		return reliable | IBV_QP_EX_WITH_ATOMIC_WRITE | LATER_QP_EX_WITH_FLUSH;
	case IBV_QPT_XRC_SEND:
		return reliable;
	case IBV_QPT_UC:
		return connected;
	case IBV_QPT_UD:
		return datagram;
	case IBV_QPT_RAW_PACKET:
		return IBV_QP_EX_WITH_SEND;
	default: /* XRC_RECV sends nothing */
		return 0;
	}
}

int vb_qp_ex_init(struct qp_object *qp, uint64_t send_ops_flags)
{
	if (send_ops_flags & ~offered_operations(qp->ibv.qp_type))
		return EOPNOTSUPP;
	qp->builder = calloc(1, sizeof(*qp->builder));
	if (!qp->builder)
		return ENOMEM;
	struct ibv_qp_ex *ex = &qp->ex;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_send_tso = wr_send_tso;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_start = wr_start;
	ex->wr_complete = vb_qp_ex_complete;
	ex->wr_abort = wr_abort;
	ex->wr_atomic_write = wr_atomic_write;
	vb_faults_set_builder(ex);
	qp->later_ops[LATER_WR_FLUSH] = (void (*)(void))(later_wr_flush)wr_flush;
	return 0;
}
