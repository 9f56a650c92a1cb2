/* A packet as the request that it carries. */
#ifndef VB_ROCE_REQUEST_PACKET_H
#define VB_ROCE_REQUEST_PACKET_H

#include "core/request.h"
#include "wire/packet.h"

/* Field by field into its place: what is put together elsewhere and copied at once waits for its own stores. */
static inline void vb_request_of_packet(struct vb_request *request, const struct vb_packet *packet)
{
	const struct vb_opcode *row = vb_packet_row(packet);
	request->row = row;
	request->payload = packet->payload;
	request->payload_length = packet->payload_length;
	request->is_solicited = packet->solicited;
	request->rkey = packet->rkey;
	request->va = packet->va;
	if (row->message == VB_MESSAGE_ATOMIC) {
		request->is_swap = (packet->opcode & VB_OPERATION_MASK) == VB_CMP_SWAP;
		request->length = 8;
		request->swap_add = packet->swap_add;
		request->compare = packet->compare;
		return;
	}
	request->length = packet->dma_length;
	request->imm_or_inv = row->has_imm ? packet->imm : packet->inv_rkey;
	request->flush = packet->flush;
}

#endif
