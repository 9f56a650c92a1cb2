/* The plain poller of a CQ, the hot path: one call of the engine, one translation per entry, in place. Only an empty
 * queue costs more, for then the poller drives the device.
 * Not here: the extended poller (cq_ex.c), creation (cq.c). */
#include "verbs/objects.h"
#include "verbs/tsan.h"
#include "verbs/wait.h"

#define POLL_CHUNK 32 /* entries per hold of the queue's lock, for which threads that add completions wait */

static unsigned lanes_of(const struct cq_object *cq)
{
	unsigned lanes = atomic_load_explicit(&cq->lanes, memory_order_relaxed);
	return lanes ? lanes : vb_host_lane_bit(cq->host_lane);
}

static void drive(const struct cq_object *cq)
{
	vb_device_drive(vb_host_of(cq->ibv.context), lanes_of(cq));
}

int vb_cq_drive_and_poll(struct cq_object *cq, struct vb_wc *wc, int n)
{
	drive(cq);
	return vb_cq_poll(cq->cq, wc, n);
}

static void translate(void *wc, uint32_t index, const struct vb_wc *from)
{
	struct ibv_wc *to = &((struct ibv_wc *)wc)[index];
	to->wr_id = from->wr_id;
	to->status = (enum ibv_wc_status)from->status;
	to->opcode = (enum ibv_wc_opcode)from->opcode;
	to->vendor_err = from->vendor_err;
	to->byte_len = from->byte_len;
	to->imm_data = from->imm_or_inv;
	to->qp_num = from->qpn;
	to->src_qp = from->src_qpn;
	to->wc_flags = from->flags;
	to->pkey_index = 0;
	to->slid = 0;
	to->sl = from->sl;
	to->dlid_path_bits = 0;
}

VB_EXPORT unsigned vb_cq_lanes(struct ibv_cq *cq)
{
	return lanes_of(vb_cq_of(cq));
}

VB_EXPORT int vb_cq_take_here(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	if (vb_refuses_forked(cq->context))
		return -VB_FORKED_ERRNO;
	int taken = vb_cq_take(vb_cq_of(cq)->cq, n, translate, wc);
	if (taken > 0)
		vb_tsan_polled(cq->context);
	return taken;
}

int vb_cq_ops_poll(struct ibv_cq *ibv, int n, struct ibv_wc *wc)
{
	struct cq_object *cq = vb_cq_of(ibv);
	int total = 0;
	if (vb_refuses_forked(ibv->context)) /* before any lock: a thread of the parent may hold it */
		return -VB_FORKED_ERRNO;
	while (total < n) {
		int want = n - total < POLL_CHUNK ? n - total : POLL_CHUNK;
		int got = vb_cq_take(cq->cq, want, translate, &wc[total]);
		if (got == 0 && total == 0) {
			drive(cq);
			got = vb_cq_take(cq->cq, want, translate, wc);
		}
		if (got < 0)
			return total ? total : got;
		total += got;
		if (got < want)
			break;
	}
	if (total > 0)
		vb_tsan_polled(ibv->context);
	return total;
}
