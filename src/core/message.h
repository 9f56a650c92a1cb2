/* A send work request as a message: what kind it is, and which PSNs it has. */
#ifndef VB_CORE_MESSAGE_H
#define VB_CORE_MESSAGE_H

#include "core/qp.h"
#include "core/send_queue.h"
#include "core/wr_kinds.h"

static inline struct vb_send_wqe *head_wqe(const struct vb_qp *qp)
{
	return vb_send_wqe_at(&qp->sq, atomic_load_explicit(&qp->sq.head, memory_order_relaxed));
}

static inline uint32_t head_index(const struct vb_qp *qp)
{
	return atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
}

static inline bool sq_is_empty(const struct vb_qp *qp)
{
	return head_index(qp) == atomic_load_explicit(&qp->sq.tail, memory_order_acquire);
}

static inline bool is_read(const struct vb_send_wqe *wqe)
{
	return wqe->opcode == VB_WR_RDMA_READ;
}

static inline bool is_atomic(const struct vb_send_wqe *wqe)
{
	return vb_wr_kinds[wqe->opcode].finished_by == VB_BY_VALUE;
}

/* The operation of the message's first, middle, last or only part. */
static inline uint8_t operation_of(const struct vb_send_wqe *wqe, bool is_first, bool is_last)
{
	const struct vb_wr_kind *kind = &vb_wr_kinds[wqe->opcode];
	if (is_first)
		return is_last ? kind->forms.only : kind->forms.first;
	return is_last ? kind->forms.last : kind->forms.middle;
}

/* Carries its eight bytes like a WRITE. IBA vol. 1, annex A19. */
static inline bool is_atomic_write(const struct vb_send_wqe *wqe)
{
	return wqe->opcode == VB_WR_ATOMIC_WRITE;
}

/* Counts and is answered like a READ of nothing. Annex A19. */
static inline bool is_answered_by_nothing(const struct vb_send_wqe *wqe)
{
	return vb_wr_kinds[wqe->opcode].finished_by == VB_BY_NOTHING;
}

/* The bytes that the work request has with it; NULL: it has entries. */
static inline const uint8_t *own_bytes(const struct vb_send_wqe *wqe)
{
	if (wqe->flags & VB_SEND_INLINE)
		return wqe->sge_count ? (const uint8_t *)(uintptr_t)wqe->sges[0].addr : wqe->inline_bytes;
	return is_atomic_write(wqe) && wqe->sge_count == 0 ? (const uint8_t *)&wqe->atomic.swap : NULL;
}

/* AtomicETH has what to swap in, or to add, first. IBA vol. 1, 9.2.5.1. */
static inline uint64_t swap_or_add_of(const struct vb_send_wqe *wqe)
{
	return wqe->opcode == VB_WR_ATOMIC_CMP_AND_SWP ? wqe->atomic.swap : wqe->atomic.compare_add;
}

static inline uint64_t compare_of(const struct vb_send_wqe *wqe)
{
	return wqe->opcode == VB_WR_ATOMIC_CMP_AND_SWP ? wqe->atomic.compare_add : 0;
}

/* FETH, annex A19.4.1. */
static inline uint32_t flush_word_of(const struct vb_send_wqe *wqe)
{
	return (uint32_t)(wqe->flush.type | wqe->flush.level << VB_FETH_LEVEL_SHIFT);
}

static inline bool is_local(const struct vb_send_wqe *wqe)
{
	return vb_wr_kinds[wqe->opcode].finished_by == VB_BY_ITSELF;
}

static inline bool takes_a_receive(const struct vb_send_wqe *wqe)
{
	return vb_wr_kinds[wqe->opcode].takes_receive;
}

static inline uint32_t psn_index(const struct vb_send_wqe *wqe, uint32_t psn)
{
	return (psn - wqe->first_psn) & VB_PSN_MASK;
}

static inline bool needs_response(const struct vb_send_wqe *wqe)
{
	return vb_wr_kinds[wqe->opcode].finished_by >= VB_BY_READ;
}

#endif
