/* The work request of a PSN under way: selective.h. It may be behind the cursor, which goes back to a request that
 * fails while those behind it are under way. Holds: of the send queue the first ones are started, up to one. */
#include "roce/roce.h"
#include "base/invariant.h"
#include "core/send_queue.h"
#include "roce/message.h"
#include "roce/selective.h"

static uint32_t count(const struct vb_qp *qp)
{
	return atomic_load_explicit(&qp->sq.tail, memory_order_acquire) - head_index(qp);
}

/* The last one that begins at psn or before. */
static uint32_t find_wqe(const struct vb_qp *qp, uint32_t psn)
{
	uint32_t low = head_index(qp), high = low + count(qp) - 1;
	assert(count(qp) > 0);
	while (low != high) {
		uint32_t middle = low + (high - low + 1) / 2;
		const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, middle);
		if (wqe->is_started && vb_psn_diff(psn, wqe->first_psn) >= 0)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

static bool has_psn(const struct vb_qp *qp, uint32_t index, uint32_t psn)
{
	const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, index);
	return index - head_index(qp) < count(qp) && wqe->is_started && psn_index(wqe, psn) < wqe->psn_count;
}

/* Callers go through PSNs in their order, so most of the time the answer is the last one or the one behind it. */
struct vb_send_wqe *vb_wqe_of_psn(const struct vb_qp *qp, uint32_t psn)
{
	uint32_t index = vb_roce(qp)->selective->wqe_index;
	if (!has_psn(qp, index, psn) && !has_psn(qp, ++index, psn))
		index = find_wqe(qp, psn);
	vb_roce(qp)->selective->wqe_index = index;
	assert(has_psn(qp, index, psn));
	return vb_send_wqe_at(&qp->sq, index);
}
