/* Same host, the responder: a descriptor as the request that it carries. */
#include "local/receive.h"

static bool payload_is_right(
	const struct vb_descriptor *descriptor, const struct vb_opcode *row, const struct vb_local_heap *heap)
{
	switch ((enum vb_local_place)descriptor->place) {
	case VB_LOCAL_NOWHERE:
		return descriptor->length <= VB_LOCAL_PART;
	case VB_LOCAL_INLINED:
		return descriptor->length <= VB_LOCAL_INLINE;
	case VB_LOCAL_HEAPED:
		return descriptor->length <= VB_LOCAL_PART &&
		       (uint64_t)descriptor->heap.at + descriptor->length <= heap->length;
	case VB_LOCAL_LENT:
		return row->place == VB_ONLY && vb_local_is_lendable_length(descriptor->length);
	}
	return false;
}

bool vb_local_place_is_right(const struct vb_descriptor *descriptor, const struct vb_local_heap *heap)
{
	const struct vb_opcode *row = &vb_opcodes[descriptor->opcode];
	if (row->message == VB_MESSAGE_READ)
		return descriptor->length <= VB_LOCAL_PART ||
		       ((descriptor->flags & VB_LOCAL_PULLS) && descriptor->length <= VB_MAX_MESSAGE_BYTES);
	if (!vb_local_carries_payload(row))
		return true;
	if (row->message == VB_MESSAGE_ATOMIC_WRITE && (descriptor->length != 8 || descriptor->place == VB_LOCAL_LENT))
		return false;
	return payload_is_right(descriptor, row, heap);
}

static const uint8_t *payload_of(const struct vb_descriptor *descriptor, const struct vb_local_heap *heap)
{
	if (descriptor->place == VB_LOCAL_INLINED)
		return descriptor->bytes;
	return descriptor->place == VB_LOCAL_HEAPED ? heap->bytes + descriptor->heap.at : NULL;
}

/* The range of an Only is what it carries; a First says how long its message is. */
static uint32_t range_of(const struct vb_descriptor *descriptor, const struct vb_opcode *row)
{
	return row->place == VB_FIRST ? descriptor->heap.total : descriptor->length;
}

/* Field by field into its place: what is put together elsewhere and copied at once waits for its own stores. */
void vb_local_fill_request(
	struct vb_request *request, const struct vb_descriptor *descriptor, const struct vb_local_heap *heap)
{
	const struct vb_opcode *row = &vb_opcodes[descriptor->opcode];
	bool has_payload = vb_local_carries_payload(row);
	request->row = row;
	request->payload = has_payload ? payload_of(descriptor, heap) : NULL;
	request->payload_length = has_payload ? descriptor->length : 0;
	request->is_solicited = descriptor->flags & VB_LOCAL_SOLICITED;
	request->rkey = descriptor->rkey;
	request->va = descriptor->va;
	if (row->message == VB_MESSAGE_ATOMIC) {
		request->is_swap = (descriptor->opcode & VB_OPERATION_MASK) == VB_CMP_SWAP;
		request->length = 8;
		request->swap_add = descriptor->atomic.swap_add;
		request->compare = descriptor->atomic.compare;
		return;
	}
	request->length = range_of(descriptor, row);
	request->imm_or_inv = request->flush = descriptor->imm_or_inv;
}
