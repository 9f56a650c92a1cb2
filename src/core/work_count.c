/* Counts of completed work: what is done, or failed, of a kind, added up for a program that wants to know no more.
 * Holds: a kind of a QP's work counts into one place at most. Who reads a count sees the data of what it counts. */
#include <errno.h>
#include <stdlib.h>
#include "core/qp.h"
#include "base/invariant.h"
#include "core/work_count.h"

int vb_qp_count_work(struct vb_qp *qp, struct vb_work_count *count, uint32_t kinds)
{
	enum vb_qp_state state = vb_state(qp);
	if (kinds == 0 || (kinds & ~(uint32_t)VB_COUNTED_MASK) || (state != VB_QPS_RESET && state != VB_QPS_INIT))
		return -EINVAL;
	if (!qp->counts)
		qp->counts = calloc(VB_COUNTED_KINDS, sizeof(struct vb_work_count *));
	if (!qp->counts)
		return -ENOMEM;
	for (int kind = 0; kind < VB_COUNTED_KINDS; kind++) {
		if ((kinds >> kind & 1) && qp->counts[kind])
			return -EBUSY;
	}
	for (int kind = 0; kind < VB_COUNTED_KINDS; kind++) {
		if (kinds >> kind & 1)
			qp->counts[kind] = count;
	}
	return 0;
}

void vb_count_work_slowly(struct vb_qp *qp, enum vb_counted kind, enum vb_wc_status status, uint32_t bytes)
{
	struct vb_work_count *count = qp->counts[kind];
	assert((unsigned)kind < VB_COUNTED_KINDS);
	if (!count)
		return;
	if (status != VB_WC_SUCCESS)
		atomic_fetch_add_explicit(&count->failed, 1, memory_order_release);
	else
		atomic_fetch_add_explicit(&count->done, count->is_bytes ? bytes : 1, memory_order_release);
}
