/* Management datagrams: their packet, the common header, and the discovery MAD by which Verbena peers know each other.
 *
 * Discovery is a vendor MAD of the range that carries an OUI (IBA vol. 1, 16.5), so that another implementation sees
 * that it is foreign, or ignores it. The OUI is locally administered (bit 1 of its first byte is set), and so has no
 * owner. Layout, offsets from the start of the MAD:
 *
 *    0  common header: base version 1, class 0x35, class version 1, GET or GET_RESPONSE, attribute id 0xFF10
 *   24  RMPP header, all zero: not segmented
 *   36  reserved, zero
 *   37  OUI 76:62:6E
 *   40  version of this exchange (2)
 *   42  reserved, zero (2)
 *   44  receive buffer in bytes (4)
 *   48  features (4)
 *   52  the QPN of the process that is asked about, or 0 (4)
 *   56  in the answer, the state of that process: enum vb_process_state (1)
 *   57  reserved, zero */
#include "base/bytes.h"
#include "wire/icrc.h"
#include "wire/mad.h"
#include "wire/packet.h"

enum {
	BASE_VERSION = 1,
	CLASS_VERSION = 1,
	ATTRIBUTE_DISCOVERY = 0xFF10, /* 0xFF00 and up are the vendor's own */
	OUI = 0x76626E,

	OFFSET_OUI = 37,
	OFFSET_VERSION = 40,
	OFFSET_RECEIVE_BUFFER = 44,
	OFFSET_FEATURES = 48,
	OFFSET_QPN = 52,
	OFFSET_PROCESS = 56,
};

size_t vb_mad_packet(
	const struct vb_flow *flow, uint32_t psn, const uint8_t mad[VB_MAD_LENGTH], uint32_t length, uint8_t *out)
{
	const struct vb_packet packet = { .opcode = VB_UD_SEND_ONLY,
		.pkey = VB_PKEY_DEFAULT,
		.dest_qpn = VB_QPN_GSI,
		.psn = psn & VB_PSN_MASK,
		.qkey = VB_QKEY_GSI,
		.src_qpn = VB_QPN_GSI,
		.payload_length = length };
	const size_t headers = vb_packet_encode_headers(&packet, out), padded = length + vb_pad(length);
	const size_t total = headers + padded + VB_ICRC_LENGTH;

	memcpy(out + headers, mad, VB_MAD_LENGTH);
	memset(out + headers + VB_MAD_LENGTH, 0, padded - VB_MAD_LENGTH);
	uint32_t crc = vb_icrc_headers(vb_icrc_begin(flow, total, 0), out, headers);
	crc = vb_icrc_end(vb_icrc_add(crc, out + headers, padded));
	for (unsigned i = 0; i < VB_ICRC_LENGTH; i++)
		out[total - VB_ICRC_LENGTH + i] = (uint8_t)(crc >> 8 * i);
	return total;
}

void vb_mad_header_decode(struct vb_mad_header *header, const uint8_t mad[VB_MAD_LENGTH])
{
	header->base_version = mad[0];
	header->mgmt_class = mad[1];
	header->class_version = mad[2];
	header->method = mad[3];
	header->status = vb_load_be16(mad + 4);
	header->class_specific = vb_load_be16(mad + 6);
	header->transaction_id = vb_load_be64(mad + 8);
	header->attribute_id = vb_load_be16(mad + 16);
	header->attribute_modifier = vb_load_be32(mad + 20);
}

void vb_mad_header_encode(const struct vb_mad_header *header, uint8_t mad[VB_MAD_LENGTH])
{
	mad[0] = header->base_version;
	mad[1] = header->mgmt_class;
	mad[2] = header->class_version;
	mad[3] = header->method;
	vb_store_be16(mad + 4, header->status);
	vb_store_be16(mad + 6, header->class_specific);
	vb_store_be64(mad + 8, header->transaction_id);
	vb_store_be16(mad + 16, header->attribute_id);
	vb_store_be16(mad + 18, 0);
	vb_store_be32(mad + 20, header->attribute_modifier);
}

bool vb_discovery_decode(struct vb_discovery *discovery, const uint8_t mad[VB_MAD_LENGTH])
{
	struct vb_mad_header header;
	vb_mad_header_decode(&header, mad);
	if (header.base_version != BASE_VERSION || header.mgmt_class != VB_MAD_CLASS_VENDOR ||
		header.class_version != CLASS_VERSION || header.attribute_id != ATTRIBUTE_DISCOVERY)
		return false;
	if (header.method != VB_MAD_METHOD_GET && header.method != VB_MAD_METHOD_GET_RESPONSE)
		return false;
	/* Another implementation that answers an unknown GET says so in status. */
	if (header.status != 0 || vb_load_be24(mad + OFFSET_OUI) != OUI)
		return false;
	if (vb_load_be16(mad + OFFSET_VERSION) != VB_DISCOVERY_VERSION)
		return false;
	discovery->is_response = header.method == VB_MAD_METHOD_GET_RESPONSE;
	discovery->transaction_id = header.transaction_id;
	discovery->version = vb_load_be16(mad + OFFSET_VERSION);
	discovery->receive_buffer = vb_load_be32(mad + OFFSET_RECEIVE_BUFFER);
	discovery->features = vb_load_be32(mad + OFFSET_FEATURES);
	discovery->qpn = vb_load_be32(mad + OFFSET_QPN) & VB_QPN_MASK;
	discovery->process = mad[OFFSET_PROCESS] <= VB_PROCESS_STOPPED ? mad[OFFSET_PROCESS] : VB_PROCESS_NOT_TOLD;
	return true;
}

void vb_discovery_encode(const struct vb_discovery *discovery, uint8_t mad[VB_MAD_LENGTH])
{
	memset(mad, 0, VB_MAD_LENGTH);
	struct vb_mad_header header = {
		.base_version = BASE_VERSION,
		.mgmt_class = VB_MAD_CLASS_VENDOR,
		.class_version = CLASS_VERSION,
		.method = discovery->is_response ? VB_MAD_METHOD_GET_RESPONSE : VB_MAD_METHOD_GET,
		.transaction_id = discovery->transaction_id,
		.attribute_id = ATTRIBUTE_DISCOVERY,
	};
	vb_mad_header_encode(&header, mad);
	vb_store_be24(mad + OFFSET_OUI, OUI);
	vb_store_be16(mad + OFFSET_VERSION, discovery->version);
	vb_store_be32(mad + OFFSET_RECEIVE_BUFFER, discovery->receive_buffer);
	vb_store_be32(mad + OFFSET_FEATURES, discovery->features);
	vb_store_be32(mad + OFFSET_QPN, discovery->qpn);
	mad[OFFSET_PROCESS] = (uint8_t)discovery->process;
}
