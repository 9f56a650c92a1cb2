/* The list of tags of an SRQ, and what becomes of the first packet of a message to it.
 * Holds: entries are asked in the order in which they were added; a message takes one, once. */
#include "core/tags.h"
#include <errno.h>
#include <stdlib.h>
#include "base/bytes.h"
#include "base/invariant.h"
#include "core/events.h"
#include "core/execute.h"
#include "core/lane.h"
#include "core/qp.h"
#include "core/queues.h"
#include "core/send_queue.h"

/* The operations of a tag header. */
enum tag_opcode { TAG_NONE = 0, TAG_RENDEZVOUS = 1, TAG_FIN = 2, TAG_EAGER = 3 };

/* A handle is a serial number and the entry's index, and so never 0. */
#define SERIALS (UINT32_MAX / VB_MAX_TAGS)

struct entry {
	struct vb_list link;
	uint32_t handle; /* 0: unused */
	bool is_synced;
	uint64_t wr_id, tag, mask;
	struct vb_sge sge;
};

struct vb_tags {
	struct vb_lock lock;
	struct vb_list posted, unused;
	uint32_t unexpected; /* messages, ever */
	uint32_t known;      /* of them, as the program said last */
	uint32_t serial;     /* of the entry added last; 1 .. SERIALS */
	uint32_t capacity;
	struct entry entries[];
};

/* ---- The list ---------------------------------------------------------------------------------------------------- */

struct vb_tags *vb_tags_create(uint32_t capacity)
{
	struct vb_tags *tags = calloc(1, sizeof(*tags) + capacity * sizeof(tags->entries[0]));
	if (!tags)
		return NULL;
	vb_lock_init(&tags->lock);
	vb_list_init(&tags->posted);
	vb_list_init(&tags->unused);
	tags->capacity = capacity;
	for (uint32_t i = 0; i < capacity; i++)
		vb_list_add_tail(&tags->unused, &tags->entries[i].link);
	return tags;
}

static struct entry *entry_at(struct vb_list *node)
{
	return vb_container_of(node, struct entry, link);
}

static int add_locked(struct vb_tags *tags, struct vb_tag_op *op)
{
	struct vb_list *node = vb_list_pop(&tags->unused);
	if (!node)
		return -ENOMEM;
	struct entry *entry = entry_at(node);
	uint32_t index = (uint32_t)(entry - tags->entries);
	tags->serial = tags->serial % SERIALS + 1;
	*entry = (struct entry){
		.handle = tags->serial * VB_MAX_TAGS + index,
		.is_synced = tags->known == tags->unexpected,
		.wr_id = op->recv_wr_id,
		.tag = op->tag,
		.mask = op->mask,
		.sge = op->sge,
	};
	vb_list_add_tail(&tags->posted, &entry->link);
	op->handle = entry->handle;
	assert(entry->handle % VB_MAX_TAGS == index);
	return 0;
}

static void release(struct vb_tags *tags, struct entry *entry)
{
	assert(entry->handle != 0);
	vb_list_remove(&entry->link);
	entry->handle = 0;
	vb_list_add_tail(&tags->unused, &entry->link);
}

/* False: a message has taken it, or it never was. */
static bool delete_locked(struct vb_tags *tags, uint32_t handle)
{
	uint32_t index = handle % VB_MAX_TAGS;
	if (index >= tags->capacity || handle == 0 || tags->entries[index].handle != handle)
		return false;
	release(tags, &tags->entries[index]);
	return true;
}

/* The program knows of every unexpected message: what it added meanwhile takes part. */
static void sync_locked(struct vb_tags *tags, uint32_t known)
{
	tags->known = known;
	if (known != tags->unexpected)
		return;
	vb_list_for_each (node, &tags->posted)
		entry_at(node)->is_synced = true;
}

static int operate_locked(struct vb_tags *tags, struct vb_tag_op *op, struct vb_wc *wc)
{
	static const uint32_t opcodes[] = {
		[VB_TAG_ADD] = VB_WC_TM_ADD, [VB_TAG_DEL] = VB_WC_TM_DEL, [VB_TAG_SYNC] = VB_WC_TM_SYNC
	};
	int error = 0;
	*wc = (struct vb_wc){ .wr_id = op->wr_id, .opcode = opcodes[op->kind] };
	if (op->tells_unexpected)
		sync_locked(tags, op->unexpected);
	if (op->kind == VB_TAG_ADD)
		error = add_locked(tags, op);
	else if (op->kind == VB_TAG_DEL && !delete_locked(tags, op->handle))
		wc->status = VB_WC_TM_ERR;
	if (tags->known != tags->unexpected)
		wc->flags = VB_WC_TM_SYNC_REQ;
	return error;
}

int vb_srq_tag_op(struct vb_lane *lane, struct vb_srq *srq, struct vb_tag_op *op, vb_time now)
{
	struct vb_wc wc;
	enum vb_cq_outcome outcome = VB_CQ_STORED;
	if (!srq->tags || (unsigned)op->kind > VB_TAG_SYNC)
		return -EINVAL;
	lane->now = now;
	vb_lock_take(&srq->tags->lock);
	int error = operate_locked(srq->tags, op, &wc);
	wc.timestamp = now;
	if (!error && (op->is_signaled || wc.status != VB_WC_SUCCESS))
		outcome = vb_cq_push(srq->cq, &wc, false);
	vb_lock_release(&srq->tags->lock);
	vb_cq_tell(lane, srq->cq, outcome);
	return error;
}

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

static struct entry *find_locked(struct vb_tags *tags, uint64_t tag)
{
	vb_list_for_each (node, &tags->posted) {
		struct entry *entry = entry_at(node);
		if (entry->is_synced && (tag & entry->mask) == entry->tag)
			return entry;
	}
	return NULL;
}

struct header {
	enum tag_opcode opcode;
	uint32_t priv;
	uint64_t tag;
	uint64_t va;
	uint32_t rkey, length; /* of a rendezvous */
};

/* TAG_NONE also for a FIN, which is the program's, and for what is no header. A rendezvous request is one packet. */
static struct header read_header(const struct vb_request *request)
{
	const uint8_t *at = request->payload;
	struct header header = { .opcode = TAG_NONE };
	bool is_only = request->row->place == VB_ONLY;
	if (!at || request->payload_length < VB_TAG_HEADER)
		return header;
	if (at[0] == TAG_RENDEZVOUS && is_only && request->payload_length >= VB_TAG_REQUEST) {
		header.opcode = TAG_RENDEZVOUS;
		header.va = vb_load_be64(at + 16);
		header.rkey = vb_load_be32(at + 24);
		header.length = vb_load_be32(at + 28);
	} else if (at[0] == TAG_EAGER) {
		header.opcode = TAG_EAGER;
	}
	memcpy(&header.priv, at + 4, 4); /* as it lies: the ABI keeps its order */
	header.tag = vb_load_be64(at + 8);
	return header;
}

/* The message's buffer is the entry's from now on. */
static void take_entry(struct vb_qp *qp, struct entry *entry)
{
	struct vb_recv_wqe *recv = qp->target.srq_copy;
	assert(!qp->target.recv && entry->handle != 0);
	recv->wr_id = entry->wr_id;
	recv->length = entry->sge.length;
	recv->sge_count = entry->sge.length ? 1 : 0;
	if (recv->sge_count)
		recv->sges[0] = entry->sge;
	qp->target.recv = recv;
	release(qp->srq->tags, entry);
	assert(entry->handle == 0);
}

/* Told at once, so that it stands in the order of other matches, and of unexpected messages. */
static void tell_match(struct vb_qp *qp, uint64_t wr_id, const struct header *header, const struct vb_wc *so_far)
{
	struct vb_wc wc = *so_far;
	wc.wr_id = wr_id;
	wc.opcode = VB_WC_TM_RECV;
	wc.flags = VB_WC_TM_MATCH;
	wc.src_qpn = qp->attr.dest_qpn;
	wc.tm_tag = header->tag;
	wc.tm_priv = header->priv;
	vb_complete(qp, qp->recv_cq, &wc, wc.status != VB_WC_SUCCESS);
}

/* ---- Eager messages ---------------------------------------------------------------------------------------------- */

static enum vb_tag_outcome eager(
	struct vb_qp *qp, struct entry *entry, const struct header *header, const struct vb_request *request)
{
	struct vb_tagged *tagged = &qp->target.tagged;
	uint64_t wr_id = entry->wr_id;
	take_entry(qp, entry);
	*tagged = (struct vb_tagged){
		.wc_opcode = VB_WC_TM_RECV, .wc_flags = VB_WC_TM_DATA_VALID, .skip = VB_TAG_HEADER
	};
	if (request->row->place == VB_ONLY) {
		tagged->wc_flags |= VB_WC_TM_MATCH;
		tagged->tag = header->tag;
		tagged->priv = header->priv;
		return VB_TAG_GOES_ON;
	}
	tell_match(qp, wr_id, header, &(struct vb_wc){ .status = VB_WC_SUCCESS });
	return VB_TAG_GOES_ON;
}

void vb_tags_complete(struct vb_qp *qp, const struct vb_request *last)
{
	const struct vb_tagged *tagged = &qp->target.tagged;
	const struct vb_opcode *row = last->row;
	struct vb_wc wc = {
		.status = VB_WC_SUCCESS,
		.opcode = tagged->wc_opcode,
		.byte_len = qp->target.received,
		.src_qpn = qp->attr.dest_qpn,
		.flags = tagged->wc_flags | (row->has_imm ? VB_WC_WITH_IMM : 0) | (row->has_inv ? VB_WC_WITH_INV : 0),
		.imm_or_inv = row->has_imm || row->has_inv ? last->imm_or_inv : 0,
		.tm_tag = tagged->tag,
		.tm_priv = tagged->priv,
	};
	assert(qp->target.recv);
	vb_complete_recv(&qp->target, &wc, last->is_solicited);
}

/* ---- Rendezvous -------------------------------------------------------------------------------------------------- */

static bool can_fetch(const struct vb_qp *qp, const struct entry *entry, const struct header *header)
{
	return vb_state(qp) == VB_QPS_RTS && qp->attr.max_rd_atomic > 0 && header->length <= entry->sge.length &&
	       header->length <= VB_MAX_MESSAGE_BYTES;
}

/* A READ into the buffer, and when it is done the request's own headers back, as FIN. False: no room for both. The lock
 * is only tried because a program may hold it, though what it posts is refused. */
static bool fetch(struct vb_qp *qp, const struct entry *entry, const struct header *header, const uint8_t *request)
{
	uint8_t fin[VB_TAG_REQUEST];
	struct vb_sge into = entry->sge, from = { (uintptr_t)fin, sizeof(fin), 0 };
	into.length = header->length;
	struct vb_send_wr read = { .wr_id = entry->wr_id,
		.opcode = VB_WR_RDMA_READ,
		.flags = VB_SEND_SIGNALED,
		.sges = &into,
		.sge_count = 1,
		.remote_addr = header->va,
		.rkey = header->rkey };
	struct vb_send_wr send = {
		.opcode = VB_WR_SEND, .flags = VB_SEND_INLINE | VB_SEND_FENCE, .sges = &from, .sge_count = 1
	};

	memcpy(fin, request, sizeof(fin));
	fin[0] = TAG_FIN;
	if (!vb_lock_try(&qp->sq.lock))
		return false;
	qp->sq.staged = atomic_load_explicit(&qp->sq.tail, memory_order_relaxed);
	bool is_staged = !vb_sq_stage(qp, &read) && !vb_sq_stage(qp, &send);
	vb_sq_end(qp, is_staged);
	return is_staged;
}

/* The buffer is too small, or the QP cannot READ: the program gets the headers in the buffer, and fetches itself. */
static enum vb_tag_outcome hand_over(
	struct vb_qp *qp, struct entry *entry, const struct header *header, const struct vb_request *request)
{
	take_entry(qp, entry);
	const struct vb_recv_wqe *recv = qp->target.recv;
	uint32_t length = recv->length < VB_TAG_REQUEST ? recv->length : VB_TAG_REQUEST;
	if (!vb_recv_scatter(&qp->target, 0, request->payload, length, true))
		return VB_TAG_BAD_BUFFER;
	vb_recv_done(&qp->target);
	tell_match(qp, recv->wr_id, header, &(struct vb_wc){ .status = VB_WC_TM_RNDV_INCOMPLETE, .byte_len = length });
	return VB_TAG_DONE;
}

static enum vb_tag_outcome rendezvous(
	struct vb_qp *qp, struct entry *entry, const struct header *header, const struct vb_request *request)
{
	uint64_t wr_id = entry->wr_id;
	if (!can_fetch(qp, entry, header))
		return hand_over(qp, entry, header, request);
	if (!fetch(qp, entry, header, request->payload))
		return VB_TAG_NOT_READY;
	release(qp->srq->tags, entry);
	tell_match(qp, wr_id, header, &(struct vb_wc){ .status = VB_WC_SUCCESS, .byte_len = header->length });
	return VB_TAG_DONE;
}

/* ---- The first packet of a message ------------------------------------------------------------------------------- */

/* Into an ordinary receive. */
static enum vb_tag_outcome unmatched(struct vb_qp *qp, bool is_tagged)
{
	if (!vb_recv_take(&qp->target))
		return VB_TAG_NOT_READY;
	if (is_tagged)
		qp->srq->tags->unexpected++;
	qp->target.tagged = (struct vb_tagged){ .wc_opcode = is_tagged ? VB_WC_TM_RECV : VB_WC_TM_NO_TAG };
	return VB_TAG_GOES_ON;
}

static enum vb_tag_outcome open_locked(struct vb_qp *qp, const struct vb_request *request)
{
	struct header header = read_header(request);
	struct entry *entry = header.opcode == TAG_NONE ? NULL : find_locked(qp->srq->tags, header.tag);
	if (!entry)
		return unmatched(qp, header.opcode != TAG_NONE);
	return header.opcode == TAG_EAGER ? eager(qp, entry, &header, request)
					  : rendezvous(qp, entry, &header, request);
}

enum vb_tag_outcome vb_tags_open(struct vb_qp *qp, const struct vb_request *request)
{
	assert(vb_begins_message(request->row));
	vb_lock_take(&qp->srq->tags->lock);
	enum vb_tag_outcome outcome = open_locked(qp, request);
	vb_lock_release(&qp->srq->tags->lock);
	return outcome;
}

void vb_tags_check(struct vb_tags *tags)
{
	uint32_t count = 0;
	vb_list_for_each (node, &tags->posted) {
		const struct entry *entry = entry_at(node);
		assert(entry->handle != 0 && entry->handle % VB_MAX_TAGS == (uint32_t)(entry - tags->entries));
		count++;
	}
	vb_list_for_each (node, &tags->unused) {
		assert(entry_at(node)->handle == 0);
		count++;
	}
	assert(count == tags->capacity);
}
