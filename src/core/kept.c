/* A NIC has sent a datagram microseconds after it was posted, and so programs deregister its memory right behind the
 * post. Ours may still wait: for the peer to be met, for its answer, for room, or for whoever holds the lane. So
 * before a region is closed the datagrams that name it take their bytes with them. A queue keeps no more than its own
 * entries, of an MTU each.
 * Holds: a work request that is INLINE and has an entry has its bytes there, in the list of its QP; nothing that may
 * be at the port is freed. */
#include "core/kept.h"
#include <stdlib.h>
#include "base/invariant.h"
#include "core/gather.h"
#include "core/lane.h"
#include "core/message.h"

struct vb_kept {
	union {
		struct vb_list link;  /* in its QP's kept */
		struct vb_kept *next; /* abandoned */
	};
	uint32_t index; /* of its work request */
	uint8_t bytes[];
};

static struct vb_kept *kept_of(struct vb_list *node)
{
	return vb_container_of(node, struct vb_kept, link);
}

static void free_abandoned(struct vb_qp *qp)
{
	while (qp->abandoned) {
		struct vb_kept *kept = qp->abandoned;
		qp->abandoned = kept->next;
		free(kept);
	}
}

void vb_kept_init(struct vb_qp *qp)
{
	vb_list_init(&qp->kept);
	vb_list_init(&qp->datagram_link);
}

void vb_kept_join(struct vb_qp *qp)
{
	assert(!vb_list_linked(&qp->datagram_link));
	if (qp->type != VB_QP_UD)
		return;
	vb_list_add_tail(&qp->lane->datagram_qps, &qp->datagram_link);
	atomic_store_explicit(&qp->lane->sends_datagrams, true, memory_order_release);
}

void vb_kept_leave(struct vb_qp *qp)
{
	vb_list_remove(&qp->datagram_link);
}

void vb_kept_free_done(struct vb_qp *qp)
{
	while (vb_kept_any(qp) && (int32_t)(kept_of(qp->kept.next)->index - head_index(qp)) < 0)
		free(kept_of(vb_list_pop(&qp->kept)));
}

void vb_kept_abandon(struct vb_qp *qp)
{
	for (struct vb_list *node; (node = vb_list_pop(&qp->kept));) {
		struct vb_kept *kept = kept_of(node);
		kept->next = qp->abandoned;
		qp->abandoned = kept;
	}
	if (vb_lane_handed_out(qp->lane) == 0)
		free_abandoned(qp);
	assert(!vb_kept_any(qp));
}

void vb_kept_deinit(struct vb_qp *qp)
{
	vb_kept_abandon(qp);
	free_abandoned(qp);
	assert(!qp->abandoned);
}

/* ---- Keeping ----------------------------------------------------------------------------------------------------- */

static bool names(const struct vb_send_wqe *wqe, uint32_t lkey)
{
	for (uint32_t i = 0; i < wqe->sge_count && !(wqe->flags & VB_SEND_INLINE); i++)
		if (wqe->sges[i].lkey == lkey && wqe->sges[i].length > 0)
			return true;
	return false;
}

static bool waits(const struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t index)
{
	return (int32_t)(index - qp->requester.cursor) >= 0 || wqe->sender;
}

/* A datagram that is too long, or names another key that is not open, fails as it would anyway. */
static void keep(struct vb_qp *qp, struct vb_send_wqe *wqe, uint32_t index)
{
	struct vb_kept *kept = wqe->length <= qp->mtu ? malloc(sizeof(*kept) + wqe->length) : NULL;
	if (!kept)
		return;
	if (vb_gather(qp, wqe, 0, wqe->length, kept->bytes) != VB_GATHERED) {
		free(kept);
		return;
	}
	kept->index = index;
	struct vb_list *before =
		qp->kept.prev; /* in the order of their requests: of another region some may be there */
	while (before != &qp->kept && (int32_t)(kept_of(before)->index - index) > 0)
		before = before->prev;
	vb_list_add_head(before, &kept->link);
	wqe->sges[0] = (struct vb_sge){ .addr = (uintptr_t)kept->bytes, .length = wqe->length };
	wqe->sge_count = 1;
	wqe->flags |= VB_SEND_INLINE;
	assert(wqe->flags & VB_SEND_INLINE);
}

static void keep_of(struct vb_qp *qp, uint32_t lkey)
{
	uint32_t tail = atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
	for (uint32_t i = head_index(qp); i != tail; i++) {
		struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, i);
		if (names(wqe, lkey) && waits(qp, wqe, i))
			keep(qp, wqe, i);
	}
}

bool vb_lane_sends_datagrams(const struct vb_lane *lane)
{
	return atomic_load_explicit(&lane->sends_datagrams, memory_order_acquire);
}

void vb_lane_keep_datagrams(struct vb_lane *lane, uint32_t lkey)
{
	vb_list_for_each (node, &lane->datagram_qps)
		keep_of(vb_container_of(node, struct vb_qp, datagram_link), lkey);
}

void vb_kept_check(const struct vb_qp *qp)
{
	const uint32_t head = head_index(qp);
	uint32_t last = head - 1;
	vb_list_for_each (node, &qp->kept) {
		const struct vb_kept *kept = kept_of(node);
		const struct vb_send_wqe *wqe = vb_send_wqe_at(&qp->sq, kept->index);
		assert((int32_t)(kept->index - last) > 0);
		assert((int32_t)(kept->index - atomic_load_explicit(&qp->sq.tail, memory_order_relaxed)) < 0);
		assert((wqe->flags & VB_SEND_INLINE) && wqe->sge_count == 1 &&
			wqe->sges[0].addr == (uintptr_t)kept->bytes);
		last = kept->index;
	}
}
