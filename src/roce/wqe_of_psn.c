/* Which work request a PSN under way is of: selective.h. */
#include "roce/roce.h"
#include "base/invariant.h"
#include "core/send_queue.h"
#include "roce/message.h"
#include "roce/selective.h"

/* It is started, of those from the head up to the cursor. */
static bool is_begun(const struct vb_qp *qp, uint32_t index)
{
	return index != atomic_load_explicit(&qp->sq.tail, memory_order_acquire) &&
	       vb_send_wqe_at(&qp->sq, index)->is_started;
}

/* The last one that begins at psn or before. */
static uint32_t find_wqe(const struct vb_qp *qp, uint32_t psn)
{
	uint32_t low = head_index(qp), high = qp->requester.cursor;
	while (low != high) {
		uint32_t middle = low + (high - low + 1) / 2;
		if (is_begun(qp, middle) && vb_psn_diff(psn, vb_send_wqe_at(&qp->sq, middle)->first_psn) >= 0)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static bool has_psn(const struct vb_qp *qp, uint32_t index, uint32_t psn)
{
	const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, index);
	return index - head_index(qp) <= qp->requester.cursor - head_index(qp) && is_begun(qp, index) &&
	       psn_index(wqe, psn) < wqe->psn_count;
}

/* That of the PSN that was asked for before, or the next one, most of the time. */
struct vb_send_wqe *vb_wqe_of_psn(const struct vb_qp *qp, uint32_t psn)
{
	uint32_t index = vb_roce(qp)->selective->wqe_index;
	if (!has_psn(qp, index, psn) && !has_psn(qp, ++index, psn))
		index = find_wqe(qp, psn);
	vb_roce(qp)->selective->wqe_index = index;
	assert(has_psn(qp, index, psn));
	return vb_send_wqe_at(&qp->sq, index);
}
