/* Rings of receive work requests: a QP's own, or the one inside an SRQ.
 * Holds: head and tail run freely, the slot of index i is i modulo size; a slot between head and tail does not change.
 * Posters share the lock; a QP's lane takes without it, an SRQ's takers hold it (srq.c). */
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "core/queues.h"

#define MAX_RECEIVE_BYTES 0x80000000u

int vb_recv_ring_init(struct vb_recv_ring *ring, uint32_t max_wr, uint32_t max_sge)
{
	*ring = (struct vb_recv_ring){ .max_wr = max_wr, .max_sge = max_sge };
	ring->stride = (uint32_t)vb_recv_wqe_bytes(max_sge);
	if (max_wr == 0)
		return 0;
	ring->size = max_wr < 2 ? 1 : 1u << (32 - __builtin_clz(max_wr - 1));
	ring->slots = calloc(ring->size, ring->stride);
	return ring->slots ? 0 : -ENOMEM;
}

void vb_recv_ring_deinit(struct vb_recv_ring *ring)
{
	free(ring->slots);
	ring->slots = NULL;
	ring->max_wr = ring->size = 0;
}

static struct vb_recv_wqe *slot(const struct vb_recv_ring *ring, uint32_t index)
{
	return (struct vb_recv_wqe *)(ring->slots + (size_t)(index & (ring->size - 1)) * ring->stride);
}

static int post_locked(struct vb_recv_ring *ring, const struct vb_recv_wr *wr, uint32_t length)
{
	uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	if (tail - atomic_load_explicit(&ring->head, memory_order_acquire) >= ring->max_wr)
		return -ENOMEM;
	struct vb_recv_wqe *wqe = slot(ring, tail);
	wqe->wr_id = wr->wr_id;
	wqe->length = length;
	wqe->sge_count = wr->sge_count;
	for (uint32_t i = 0; i < wr->sge_count; i++)
		wqe->sges[i] = wr->sges[i];
	atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
	assert(vb_recv_ring_count(ring) <= ring->max_wr);
	return 0;
}

int vb_recv_ring_post(struct vb_recv_ring *ring, const struct vb_recv_wr *wr)
{
	if (wr->sge_count > ring->max_sge)
		return -EINVAL;
	uint64_t length = 0;
	for (uint32_t i = 0; i < wr->sge_count; i++)
		length += wr->sges[i].length;
	if (length > MAX_RECEIVE_BYTES)
		return -EINVAL;
	vb_lock_take(&ring->lock);
	int error = post_locked(ring, wr, (uint32_t)length);
	vb_lock_release(&ring->lock);
	return error;
}

uint32_t vb_recv_ring_count(const struct vb_recv_ring *ring)
{
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
	return atomic_load_explicit(&ring->tail, memory_order_acquire) - head;
}

const struct vb_recv_wqe *vb_recv_ring_peek(const struct vb_recv_ring *ring)
{
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	return head == atomic_load_explicit(&ring->tail, memory_order_acquire) ? NULL : slot(ring, head);
}

void vb_recv_ring_pop(struct vb_recv_ring *ring)
{
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	assert(head != atomic_load_explicit(&ring->tail, memory_order_relaxed));
	atomic_store_explicit(&ring->head, head + 1, memory_order_release);
}

void vb_recv_ring_check(const struct vb_recv_ring *ring)
{
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed), count = vb_recv_ring_count(ring);
	assert(ring->max_wr <= ring->size && count <= ring->max_wr);
	for (uint32_t i = 0; i < count; i++)
		assert(slot(ring, head + i)->sge_count <= ring->max_sge);
}
