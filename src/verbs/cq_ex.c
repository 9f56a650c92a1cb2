/* The extended poller of a CQ: start_poll, next_poll, end_poll, and one reader per field.
 * Holds: from a successful start_poll to end_poll the thread has the poller to itself, unless the program promised to
 * use one thread only. Plain ibv_poll_cq works on every CQ, too. Completions are taken one at a time, so that those
 * that a program does not look at stay in the queue. */
#include <time.h>
#include "os/clock.h"
#include "verbs/faults.h"
#include "verbs/objects.h"
#include "verbs/tsan.h"

static void poller_take(struct cq_object *cq)
{
	if (!cq->is_single_threaded)
		vb_lock_take(&cq->poll_lock);
}

static void poller_release(struct cq_object *cq)
{
	if (!cq->is_single_threaded)
		vb_lock_release(&cq->poll_lock);
}

/* 0, or ENOENT without a completion, or an errno. */
static int show(struct cq_object *cq, int got)
{
	if (got <= 0)
		return got ? -got : ENOENT;
	vb_tsan_polled(cq->ibv.context);
	cq->ibv.status = (enum ibv_wc_status)cq->current.status;
	cq->ibv.wr_id = cq->current.wr_id;
	return 0;
}

int vb_cq_ex_start_poll(struct ibv_cq_ex *ibv, struct ibv_poll_cq_attr *attr)
{
	struct cq_object *cq = (struct cq_object *)ibv;
	if (attr->comp_mask)
		return EINVAL;
	if (vb_refuses_forked(ibv->context))
		return VB_FORKED_ERRNO;
	poller_take(cq);
	int got = vb_cq_poll(cq->cq, &cq->current, 1);
	if (got == 0)
		got = vb_cq_drive_and_poll(cq, &cq->current, 1);
	int result = show(cq, got);
	if (result)
		poller_release(cq);
	return result;
}

int vb_cq_ex_next_poll(struct ibv_cq_ex *ibv)
{
	struct cq_object *cq = (struct cq_object *)ibv;
	return show(cq, vb_cq_poll(cq->cq, &cq->current, 1));
}

static void end_poll(struct ibv_cq_ex *ibv)
{
	poller_release((struct cq_object *)ibv);
}

static const struct vb_wc *current(struct ibv_cq_ex *ibv)
{
	return &((struct cq_object *)ibv)->current;
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *cq)
{
	return (enum ibv_wc_opcode)current(cq)->opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *cq)
{
	return current(cq)->vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *cq)
{
	return current(cq)->byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *cq)
{
	return current(cq)->imm_or_inv;
}

static uint32_t read_qp_num(struct ibv_cq_ex *cq)
{
	return current(cq)->qpn;
}

static uint32_t read_src_qp(struct ibv_cq_ex *cq)
{
	return current(cq)->src_qpn;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *cq)
{
	return current(cq)->flags;
}

static uint8_t read_sl(struct ibv_cq_ex *cq)
{
	return current(cq)->sl;
}

static uint32_t read_slid(struct ibv_cq_ex *cq)
{
	return 0; /* RoCE has no LIDs */
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *cq)
{
	return 0;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *cq)
{
	return vb_host_monotonic_ns(current(cq)->timestamp);
}

static void read_tm_info(struct ibv_cq_ex *cq, struct ibv_wc_tm_info *info)
{
	info->tag = current(cq)->tm_tag;
	info->priv = __builtin_bswap32(current(cq)->tm_priv);
}

static uint64_t time_of_day_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *cq)
{
	return time_of_day_ns() - ((uint64_t)vb_clock_ns() - read_completion_ts(cq));
}

/* As with hardware, readers that the program did not ask for stay NULL, except those that cost nothing. */
void vb_cq_ex_init(struct cq_object *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ibv = &cq->ibv;
	ibv->start_poll = vb_cq_ex_start_poll;
	ibv->next_poll = vb_cq_ex_next_poll;
	ibv->end_poll = end_poll;
	ibv->read_opcode = read_opcode;
	ibv->read_vendor_err = read_vendor_err;
	ibv->read_wc_flags = read_wc_flags;
	ibv->read_byte_len = read_byte_len;
	ibv->read_imm_data = read_imm_data;
	ibv->read_qp_num = read_qp_num;
	ibv->read_src_qp = read_src_qp;
	ibv->read_slid = read_slid;
	ibv->read_sl = read_sl;
	ibv->read_dlid_path_bits = read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_TM_INFO)
		ibv->read_tm_info = read_tm_info;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ibv->read_completion_ts = read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ibv->read_completion_wallclock_ns = read_completion_wallclock_ns;
	vb_faults_set_poller(ibv);
}
