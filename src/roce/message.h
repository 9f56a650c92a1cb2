/* A send work request as packets: which bytes they carry, in what pieces a READ is asked for, and what all that costs
 * of the windows. Shared by what sends it (requester.c) and what learns what became of it (acknowledgement.c). */
#ifndef VB_ROCE_MESSAGE_H
#define VB_ROCE_MESSAGE_H

#include "core/message.h"
#include "roce/roce.h"

/* Packets of a whole READ piece where packet index lies. */
static inline uint32_t piece_at(const struct vb_send_wqe *wqe, uint32_t index)
{
	return index < wqe->read.changed_at ? wqe->read.earlier_piece : wqe->read.piece;
}

/* One past the last packet of the READ piece that packet index lies in. */
static inline uint32_t piece_end(const struct vb_send_wqe *wqe, uint32_t index)
{
	uint32_t end = (index | (piece_at(wqe, index) - 1)) + 1;
	uint32_t bound = index < wqe->read.changed_at ? wqe->read.changed_at : wqe->psn_count;
	return end < bound ? end : bound;
}

/* One past the last response to the request packet in which packet index is asked for. */
static inline uint32_t response_end(const struct vb_send_wqe *wqe, uint32_t index)
{
	return wqe->opcode == VB_WR_RDMA_READ ? piece_end(wqe, index) : index + 1;
}

/* The first packet of that piece. */
static inline uint32_t piece_begin(const struct vb_send_wqe *wqe, uint32_t index)
{
	uint32_t begin = index & ~(piece_at(wqe, index) - 1);
	uint32_t bound = index < wqe->read.changed_at ? 0 : wqe->read.changed_at;
	return begin > bound ? begin : bound;
}

/* How many PSNs the request packet at index uses up. */
static inline uint32_t span_at(const struct vb_send_wqe *wqe, uint32_t index)
{
	return is_read(wqe) ? piece_end(wqe, index) - index : 1;
}

/* Bytes of the message before packet index. */
static inline uint32_t bytes_before(const struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t index)
{
	return index * vb_mtu_of(qp, wqe);
}

/* Bytes of the message in packets from .. to - 1. */
static inline uint32_t bytes_between(const struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t from, uint32_t to)
{
	uint32_t mtu = vb_mtu_of(qp, wqe);
	uint64_t begin = (uint64_t)from * mtu, end = (uint64_t)to * mtu;
	if (end > wqe->length)
		end = wqe->length;
	return end > begin ? (uint32_t)(end - begin) : 0;
}

struct window_cost {
	uint32_t out, in;
};

static inline struct window_cost cost_between(
	const struct vb_qp *qp, const struct vb_send_wqe *wqe, uint32_t from, uint32_t to)
{
	uint32_t overhead = (to - from) * vb_roce(qp)->overhead;
	if (is_read(wqe))
		return (struct window_cost){ 0, bytes_between(qp, wqe, from, to) + overhead };
	if (is_atomic(wqe))
		return (struct window_cost){ overhead, 0 };
	return (struct window_cost){ bytes_between(qp, wqe, from, to) + overhead, 0 };
}

#endif
