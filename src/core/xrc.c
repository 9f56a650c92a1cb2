/* XRC (extended reliable connected): one connection reaches every SRQ of a domain. A request names the SRQ in its
 * XRCETH, and with it whose memory keys are valid, who provides the receive and where that completes.
 * Holds: the target of an XRC_RECV QP is the SRQ named last, with its domain and CQ; or there is none, and the domain
 * is the QP's own, in which no key opens anything. A number that is gone, or of another domain, is refused.
 * Not here: what a request does (execute.c), who may have such QPs (verbs/). IBA vol. 1, annex A14. */
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "core/execute.h"
#include "core/lane.h"
#include "core/memory.h"
#include "core/qp.h"
#include "core/queues.h"
#include "core/xrc.h"

/* ---- Domains ----------------------------------------------------------------------------------------------------- */

int vb_xrcd_create(struct vb_nic *nic, struct vb_xrcd **xrcd)
{
	struct vb_xrcd *new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	new->nowhere.nic = nic;
	vb_lock_init(&new->lock);
	vb_list_init(&new->qps);
	*xrcd = new;
	return 0;
}

int vb_xrcd_destroy(struct vb_xrcd *xrcd)
{
	vb_lock_take(&xrcd->lock);
	bool is_used = !vb_list_empty(&xrcd->qps);
	vb_lock_release(&xrcd->lock);
	if (is_used || atomic_load_explicit(&xrcd->srqs, memory_order_acquire) > 0)
		return -EBUSY;
	free(xrcd);
	return 0;
}

/* ---- Numbers ----------------------------------------------------------------------------------------------------- */

void vb_srq_table_init(struct vb_srq_table *table)
{
	vb_lock_init(&table->lock);
	table->next = 1;
}

void vb_srq_table_deinit(struct vb_srq_table *table)
{
	struct vb_srq_slot *_Atomic *chunks = atomic_load_explicit(&table->chunks, memory_order_relaxed);
	for (uint32_t i = 0; chunks && i < VB_SRQ_CHUNKS; i++)
		free(atomic_load_explicit(&chunks[i], memory_order_relaxed));
	free((void *)chunks);
}

/* Made if need be; NULL when there is no memory. */
static struct vb_srq_slot *_Atomic *chunks_of(struct vb_srq_table *table)
{
	struct vb_srq_slot *_Atomic *chunks = atomic_load_explicit(&table->chunks, memory_order_relaxed);
	if (!chunks) {
		chunks = calloc(VB_SRQ_CHUNKS, sizeof(*chunks));
		atomic_store_explicit(&table->chunks, chunks, memory_order_release);
	}
	return chunks;
}

/* The entry of an index, whose chunk is made if need be; NULL when there is no memory. */
static struct vb_srq_slot *slot_of(struct vb_srq_table *table, uint32_t index)
{
	struct vb_srq_slot *_Atomic *chunks = chunks_of(table);
	if (!chunks)
		return NULL;
	struct vb_srq_slot *_Atomic *place = &chunks[index / VB_SRQS_PER_CHUNK];
	struct vb_srq_slot *chunk = atomic_load_explicit(place, memory_order_acquire);
	if (!chunk) {
		chunk = calloc(VB_SRQS_PER_CHUNK, sizeof(*chunk));
		atomic_store_explicit(place, chunk, memory_order_release);
	}
	return chunk ? &chunk[index % VB_SRQS_PER_CHUNK] : NULL;
}

/* Round robin, so that no number returns soon; index 0 stays free, so none is 0. */
static int enter_locked(struct vb_srq_table *table, struct vb_srq *srq)
{
	if (table->used >= VB_MAX_XRC_SRQ)
		return -ENOMEM;
	for (;;) {
		uint32_t index = table->next++ & 0xffff;
		if (index == 0)
			continue;
		struct vb_srq_slot *slot = slot_of(table, index);
		if (!slot)
			return -ENOMEM;
		if (atomic_load_explicit(&slot->srq, memory_order_relaxed))
			continue;
		srq->number = (uint32_t)slot->generation << 16 | index;
		table->used++;
		atomic_store_explicit(&slot->srq, srq, memory_order_release);
		return 0;
	}
}

static struct vb_srq *find_srq(const struct vb_srq_table *table, uint32_t number)
{
	uint32_t index = number & 0xffff;
	struct vb_srq_slot *_Atomic *chunks = atomic_load_explicit(&table->chunks, memory_order_acquire);
	struct vb_srq_slot *chunk =
		chunks ? atomic_load_explicit(&chunks[index / VB_SRQS_PER_CHUNK], memory_order_acquire) : NULL;
	struct vb_srq *srq =
		chunk ? atomic_load_explicit(&chunk[index % VB_SRQS_PER_CHUNK].srq, memory_order_acquire) : NULL;
	return srq && srq->number == number ? srq : NULL;
}

int vb_xrc_enter_srq(struct vb_srq *srq)
{
	struct vb_srq_table *table = &srq->pd->nic->xrc_srqs;
	vb_lock_take(&table->lock);
	int error = enter_locked(table, srq);
	vb_lock_release(&table->lock);
	if (error)
		return error;
	atomic_fetch_add_explicit(&srq->xrcd->srqs, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&srq->cq->users, 1, memory_order_relaxed);
	assert(srq->number != 0);
	return 0;
}

/* ---- QPs of a domain --------------------------------------------------------------------------------------------- */

void vb_xrc_add_qp(struct vb_qp *qp)
{
	vb_lock_take(&qp->xrcd->lock);
	vb_list_add_tail(&qp->xrcd->qps, &qp->xrcd_link);
	vb_lock_release(&qp->xrcd->lock);
}

void vb_xrc_remove_qp(struct vb_qp *qp)
{
	vb_lock_take(&qp->xrcd->lock);
	vb_list_remove(&qp->xrcd_link);
	vb_lock_release(&qp->xrcd->lock);
}

bool vb_xrc_turn_to(struct vb_qp *qp, uint32_t number)
{
	struct vb_target *target = &qp->target;
	if (target->srq && target->srq->number == number)
		return true;
	struct vb_srq *srq = find_srq(&qp->xrcd->nowhere.nic->xrc_srqs, number);
	if (!srq || srq->xrcd != qp->xrcd || target->open != VB_NO_MESSAGE || target->recv)
		return false;
	target->srq = srq;
	target->pd = srq->pd;
	target->cq = srq->cq;
	assert(target->srq->number == number);
	return true;
}

const struct vb_pd *vb_xrc_domain(const struct vb_qp *qp, uint32_t number)
{
	const struct vb_srq *srq = find_srq(&qp->xrcd->nowhere.nic->xrc_srqs, number);
	return srq && srq->xrcd == qp->xrcd ? srq->pd : NULL;
}

/* The QP loses what it has of the SRQ: the receive that a message is arriving into, and access to its domain for
 * READs that are still to be answered. */
static void forget_srq(struct vb_qp *qp, const struct vb_srq *srq)
{
	qp->transport->forget_srq(qp, srq);
	if (qp->target.srq != srq)
		return;
	qp->target.recv = NULL;
	qp->target.srq = NULL;
	qp->target.cq = NULL;
	qp->target.pd = qp->pd;
	qp->target.whole = (struct vb_reach){ 0 };
	assert(!qp->target.srq);
}

void vb_xrc_remove_srq(struct vb_srq *srq)
{
	struct vb_srq_table *table = &srq->pd->nic->xrc_srqs;
	vb_lock_take(&table->lock);
	struct vb_srq_slot *slot = slot_of(table, srq->number & 0xffff);
	atomic_store_explicit(&slot->srq, NULL, memory_order_release);
	slot->generation++;
	table->used--;
	vb_lock_release(&table->lock);

	vb_lock_take(&srq->xrcd->lock);
	vb_list_for_each (node, &srq->xrcd->qps)
		forget_srq(vb_container_of(node, struct vb_qp, xrcd_link), srq);
	vb_lock_release(&srq->xrcd->lock);
	atomic_fetch_sub_explicit(&srq->cq->users, 1, memory_order_release);
	atomic_fetch_sub_explicit(&srq->xrcd->srqs, 1, memory_order_release);
}

void vb_xrc_check(const struct vb_qp *qp)
{
	const struct vb_target *target = &qp->target;
	const struct vb_srq *srq = target->srq;
	if (srq)
		assert(srq->xrcd == qp->xrcd && target->pd == srq->pd && target->cq == srq->cq && target->cq);
	else
		assert(target->pd == qp->pd && !target->cq && !target->recv);
}
