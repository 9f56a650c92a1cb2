/* Shared receive queues: a receive ring that QPs of several lanes take from, with a low-water mark. How peers name one
 * by number is xrc.c.
 * Holds: requests leave in the order in which they were posted; an armed limit is reported once and is then disarmed.
 * IBA vol. 1, 10.2.9. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "core/memory.h"
#include "core/qp.h"
#include "core/queues.h"
#include "core/tags.h"
#include "core/xrc.h"

static bool is_consistent(const struct vb_pd *pd, const struct vb_srq_config *config)
{
	if (config->max_tags && (config->max_tags > VB_MAX_TAGS || config->xrcd || !config->cq))
		return false;
	if (!config->xrcd)
		return config->max_tags ? config->cq->nic == pd->nic : !config->cq;
	return config->cq && config->cq->nic == pd->nic && config->xrcd->nowhere.nic == pd->nic;
}

int vb_srq_create(struct vb_pd *pd, const struct vb_srq_config *config, struct vb_srq **srq)
{
	if (config->max_wr == 0 || config->max_wr > VB_MAX_SRQ_WR || config->max_sge > VB_MAX_SGE ||
		config->limit > config->max_wr || !is_consistent(pd, config))
		return -EINVAL;
	struct vb_srq *new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	int error = vb_recv_ring_init(&new->ring, config->max_wr, config->max_sge);
	new->pd = pd;
	new->xrcd = config->xrcd;
	new->cq = config->cq;
	new->limit = config->limit;
	new->user = config->user;
	new->notice.of = VB_NOTICE_OF_SRQ;
	vb_list_init(&new->notice.link);
	if (!error && new->xrcd)
		error = vb_xrc_enter_srq(new);
	if (!error && config->max_tags && !(new->tags = vb_tags_create(config->max_tags)))
		error = -ENOMEM;
	if (error) {
		vb_recv_ring_deinit(&new->ring);
		free(new);
		return error;
	}
	if (new->tags)
		atomic_fetch_add_explicit(&new->cq->users, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&pd->users, 1, memory_order_relaxed);
	*srq = new;
	assert(!new->xrcd == !new->number);
	return 0;
}

int vb_srq_destroy(struct vb_srq *srq)
{
	if (atomic_load_explicit(&srq->users, memory_order_acquire) > 0)
		return -EBUSY;
	assert(!vb_list_linked(&srq->notice.link));
	if (srq->xrcd)
		vb_xrc_remove_srq(srq);
	if (srq->tags)
		atomic_fetch_sub_explicit(&srq->cq->users, 1, memory_order_release);
	free(srq->tags);
	atomic_fetch_sub_explicit(&srq->pd->users, 1, memory_order_release);
	vb_recv_ring_deinit(&srq->ring);
	free(srq);
	return 0;
}

static void copy_wqe(struct vb_recv_wqe *to, const struct vb_recv_wqe *from)
{
	memcpy(to, from, vb_recv_wqe_bytes(from->sge_count));
}

static const struct vb_recv_wqe *wqe_at(const struct vb_recv_ring *ring, uint32_t index)
{
	return (const struct vb_recv_wqe *)(ring->slots + (size_t)(index & (ring->size - 1)) * ring->stride);
}

static bool resize_locked(struct vb_srq *srq, struct vb_recv_ring *spare)
{
	struct vb_recv_ring *ring = &srq->ring;
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	if (tail - head > spare->max_wr || srq->limit > spare->max_wr)
		return false;
	for (uint32_t i = head; i != tail; i++)
		copy_wqe((struct vb_recv_wqe *)wqe_at(spare, i), wqe_at(ring, i));
	uint8_t *old = ring->slots;
	ring->slots = spare->slots;
	ring->size = spare->size;
	ring->max_wr = spare->max_wr;
	spare->slots = old;
	return true;
}

int vb_srq_resize(struct vb_srq *srq, uint32_t max_wr)
{
	if (max_wr == 0 || max_wr > VB_MAX_SRQ_WR)
		return -EINVAL;
	struct vb_recv_ring spare;
	int error = vb_recv_ring_init(&spare, max_wr, srq->ring.max_sge);
	if (error)
		return error;
	vb_lock_take(&srq->ring.lock);
	bool fits = resize_locked(srq, &spare);
	vb_lock_release(&srq->ring.lock);
	vb_recv_ring_deinit(&spare);
	return fits ? 0 : -EINVAL;
}

int vb_srq_set_limit(struct vb_srq *srq, uint32_t limit)
{
	vb_lock_take(&srq->ring.lock);
	bool fits = limit <= srq->ring.max_wr;
	if (fits)
		srq->limit = limit;
	vb_lock_release(&srq->ring.lock);
	return fits ? 0 : -EINVAL;
}

void vb_srq_query(struct vb_srq *srq, struct vb_srq_config *config)
{
	vb_lock_take(&srq->ring.lock);
	*config = (struct vb_srq_config){
		.max_wr = srq->ring.max_wr,
		.max_sge = srq->ring.max_sge,
		.limit = srq->limit,
		.user = srq->user,
		.xrcd = srq->xrcd,
		.cq = srq->cq,
	};
	vb_lock_release(&srq->ring.lock);
}

int vb_srq_post(struct vb_srq *srq, const struct vb_recv_wr *wr)
{
	return vb_recv_ring_post(&srq->ring, wr);
}

uint32_t vb_srq_number(const struct vb_srq *srq)
{
	return srq->number;
}

void *vb_srq_user(const struct vb_srq *srq)
{
	return srq->user;
}

void vb_srq_check(const struct vb_srq *srq)
{
	vb_recv_ring_check(&srq->ring);
	assert(srq->limit <= srq->ring.max_wr);
	assert(!srq->xrcd == !srq->number && (!srq->tags || srq->cq));
	if (srq->tags)
		vb_tags_check(srq->tags);
}
