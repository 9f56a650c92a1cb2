/* Bytes to struct vb_packet and back. The opcode's row says which headers there are; here is the meaning of each
 * header's bytes, reading and writing side by side. Holds: vb_packet_decode knows that all headers lie inside the bytes
 * before it reads the first extension header. Not here: the ICRC (icrc.c), which headers an opcode has (opcode.c),
 * whether the packet makes sense (the engine). */
#include "base/bytes.h"
#include "base/invariant.h"
#include "wire/packet.h"

enum { /* BTH byte 1, byte 4 and byte 8 */
	BTH_SOLICITED = 0x80,
	BTH_MIGREQ = 0x40,
	BTH_PAD_SHIFT = 4,
	BTH_PAD_MASK = 0x3,
	BTH_VERSION_MASK = 0x0F,
	BTH_FECN = 0x80,
	BTH_BECN = 0x40,
	BTH_ACKREQ = 0x80,
};

static void read_bth(struct vb_packet *packet, const uint8_t *b)
{
	packet->opcode = b[0];
	packet->solicited = b[1] & BTH_SOLICITED;
	packet->migreq = b[1] & BTH_MIGREQ;
	packet->pkey = vb_load_be16(b + 2);
	packet->fecn = b[4] & BTH_FECN;
	packet->becn = b[4] & BTH_BECN;
	packet->dest_qpn = vb_load_be24(b + 5);
	packet->ackreq = b[8] & BTH_ACKREQ;
	packet->psn = vb_load_be24(b + 9);
}

static void write_bth(const struct vb_packet *packet, uint8_t *b)
{
	b[0] = packet->opcode;
	b[1] = (uint8_t)((packet->solicited ? BTH_SOLICITED : 0) | (packet->migreq ? BTH_MIGREQ : 0) |
			 vb_pad(packet->payload_length) << BTH_PAD_SHIFT);
	vb_store_be16(b + 2, packet->pkey);
	b[4] = (uint8_t)((packet->fecn ? BTH_FECN : 0) | (packet->becn ? BTH_BECN : 0));
	vb_store_be24(b + 5, packet->dest_qpn);
	b[8] = packet->ackreq ? BTH_ACKREQ : 0;
	vb_store_be24(b + 9, packet->psn);
}

static inline void read_header(struct vb_packet *packet, enum vb_header header, const uint8_t *b)
{
	switch (header) {
	case VB_RETH:
		packet->va = vb_load_be64(b);
		packet->rkey = vb_load_be32(b + 8);
		packet->dma_length = vb_load_be32(b + 12);
		break;
	case VB_AETH:
		packet->syndrome = b[0];
		packet->msn = vb_load_be24(b + 1);
		break;
	case VB_ATOMICETH:
		packet->va = vb_load_be64(b);
		packet->rkey = vb_load_be32(b + 8);
		packet->swap_add = vb_load_be64(b + 12);
		packet->compare = vb_load_be64(b + 20);
		break;
	case VB_ATOMICACKETH:
		packet->atomic_result = vb_load_be64(b);
		break;
	case VB_IMMDT:
		memcpy(&packet->imm, b, sizeof(packet->imm));
		break;
	case VB_IETH:
		packet->inv_rkey = vb_load_be32(b);
		break;
	case VB_DETH:
		packet->qkey = vb_load_be32(b);
		packet->src_qpn = vb_load_be24(b + 5);
		break;
	case VB_XRCETH:
		packet->xrc_srqn = vb_load_be24(b + 1);
		break;
	case VB_FETH:
		packet->flush = vb_load_be32(b);
		break;
	case VB_HELLOETH:
		packet->hold_bytes = vb_load_be32(b);
		packet->hello = b[4];
		packet->large_mtu = vb_load_be16(b + 6);
		break;
	case VB_BITMAPETH:
		packet->told = b[0];
		packet->expected_psn = vb_load_be24(b + 1);
		packet->named = vb_load_be32(b + 4);
		packet->executed_ahead = vb_load_be16(b + 8);
		packet->bits[0] = vb_load_be64(b + 12);
		packet->bits[1] = vb_load_be64(b + 20);
		break;
	case VB_PATHETH:
		packet->secret = vb_load_be64(b);
		packet->path_flags = b[8];
		packet->path_number = vb_load_be24(b + 9);
		break;
	case VB_ADDRESSETH:
		memcpy(packet->address.raw, b, sizeof(packet->address.raw));
		break;
	case VB_CNP_RESERVED:
	case VB_END:
	case VB_HEADER_COUNT:
		break;
	}
}

static inline void write_header(const struct vb_packet *packet, enum vb_header header, uint8_t *b)
{
	switch (header) {
	case VB_RETH:
		vb_store_be64(b, packet->va);
		vb_store_be32(b + 8, packet->rkey);
		vb_store_be32(b + 12, packet->dma_length);
		break;
	case VB_AETH:
		b[0] = packet->syndrome;
		vb_store_be24(b + 1, packet->msn);
		break;
	case VB_ATOMICETH:
		vb_store_be64(b, packet->va);
		vb_store_be32(b + 8, packet->rkey);
		vb_store_be64(b + 12, packet->swap_add);
		vb_store_be64(b + 20, packet->compare);
		break;
	case VB_ATOMICACKETH:
		vb_store_be64(b, packet->atomic_result);
		break;
	case VB_IMMDT:
		memcpy(b, &packet->imm, sizeof(packet->imm));
		break;
	case VB_IETH:
		vb_store_be32(b, packet->inv_rkey);
		break;
	case VB_DETH:
		vb_store_be32(b, packet->qkey);
		b[4] = 0;
		vb_store_be24(b + 5, packet->src_qpn);
		break;
	case VB_XRCETH:
		b[0] = 0;
		vb_store_be24(b + 1, packet->xrc_srqn);
		break;
	case VB_FETH:
		vb_store_be32(b, packet->flush);
		break;
	case VB_HELLOETH:
		memset(b, 0, 8);
		vb_store_be32(b, packet->hold_bytes);
		b[4] = packet->hello;
		vb_store_be16(b + 6, packet->large_mtu);
		break;
	case VB_BITMAPETH:
		b[0] = packet->told;
		vb_store_be24(b + 1, packet->expected_psn);
		vb_store_be32(b + 4, packet->named);
		vb_store_be16(b + 8, packet->executed_ahead);
		vb_store_be16(b + 10, 0);
		vb_store_be64(b + 12, packet->bits[0]);
		vb_store_be64(b + 20, packet->bits[1]);
		break;
	case VB_PATHETH:
		vb_store_be64(b, packet->secret);
		b[8] = packet->path_flags;
		vb_store_be24(b + 9, packet->path_number);
		break;
	case VB_ADDRESSETH:
		memcpy(b, packet->address.raw, sizeof(packet->address.raw));
		break;
	case VB_CNP_RESERVED:
		memset(b, 0, 16);
		break;
	case VB_END:
	case VB_HEADER_COUNT:
		break;
	}
}

static uint32_t largest_payload(uint8_t service)
{
	switch (service) {
	case VB_RC:
		return VB_LARGE_MTU;
	case VB_MANUFACTURER:
		return VB_MAX_PAYLOAD;
	default:
		return VB_MAX_MTU;
	}
}

/* The payload is the rest between the headers and the pad and ICRC. */
static enum vb_decode_error take_payload(
	struct vb_packet *packet, const struct vb_opcode *row, const uint8_t *bytes, size_t length)
{
	size_t pad = bytes[1] >> BTH_PAD_SHIFT & BTH_PAD_MASK;
	size_t around = row->headers_length + pad + VB_ICRC_LENGTH;
	if (length < around)
		return VB_DECODE_SHORT;
	packet->payload = bytes + row->headers_length;
	packet->payload_length = (uint32_t)(length - around);
	uint8_t service = bytes[0] & (uint8_t)~VB_OPERATION_MASK;
	if (packet->payload_length > largest_payload(service))
		return VB_DECODE_LONG;
	if (row->payload == VB_PAYLOAD_NONE && packet->payload_length != 0)
		return VB_DECODE_PAYLOAD;
	if (row->payload == VB_PAYLOAD_EIGHT && packet->payload_length != 8)
		return VB_DECODE_PAYLOAD;
	return VB_DECODE_OK;
}

enum vb_decode_error vb_packet_decode(struct vb_packet *packet, const uint8_t *bytes, size_t length)
{
	if (length < VB_BTH_LENGTH + VB_ICRC_LENGTH)
		return VB_DECODE_SHORT;
	if (length > VB_MAX_PACKET_BYTES)
		return VB_DECODE_LONG;
	if (length % 4 != 0)
		return VB_DECODE_UNALIGNED;
	if (bytes[1] & BTH_VERSION_MASK)
		return VB_DECODE_VERSION;
	const struct vb_opcode *row = &vb_opcodes[bytes[0]];
	if (row->message == VB_NO_MESSAGE)
		return VB_DECODE_OPCODE;
	enum vb_decode_error error = take_payload(packet, row, bytes, length);
	if (error)
		return error;

	read_bth(packet, bytes);
	const uint8_t *b = bytes + VB_BTH_LENGTH;
	for (const uint8_t *header = row->headers; *header != VB_END; header++) {
		read_header(packet, *header, b);
		b += vb_header_length[*header];
	}
	assert(b == packet->payload);
	return VB_DECODE_OK;
}

size_t vb_packet_encode_headers(const struct vb_packet *packet, uint8_t *out)
{
	write_bth(packet, out);
	uint8_t *b = out + VB_BTH_LENGTH;
	for (const uint8_t *header = vb_packet_row(packet)->headers; *header != VB_END; header++) {
		write_header(packet, *header, b);
		b += vb_header_length[*header];
	}
	assert((size_t)(b - out) == vb_packet_row(packet)->headers_length);
	return (size_t)(b - out);
}
