/* Any bytes as a UDP payload: decoded, written again, and compared. What may differ is written down here: reserved bits
 * of BTH bytes 4 and 8, the reserved first byte of XRCETH, fifth of DETH, last three of HELLOETH and two of BITMAPETH,
 * and the sixteen bytes of a CNP. The ICRC and the MAD parsers take the same bytes. */
#include <stdlib.h>
#include "base/bytes.h"
#include "wire/cm.h"
#include "wire/frame.h"
#include "wire/icrc.h"
#include "wire/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void clear_reserved(uint8_t *bytes)
{
	bytes[4] &= 0xC0;
	bytes[8] &= 0x80;
	uint8_t *b = bytes + VB_BTH_LENGTH;
	for (const uint8_t *header = vb_opcodes[bytes[0]].headers; *header != VB_END; header++) {
		if (*header == VB_XRCETH)
			b[0] = 0;
		if (*header == VB_DETH)
			b[4] = 0;
		if (*header == VB_HELLOETH)
			b[5] = 0;
		if (*header == VB_BITMAPETH)
			memset(b + 10, 0, 2);
		if (*header == VB_CNP_RESERVED)
			memset(b, 0, vb_header_length[VB_CNP_RESERVED]);
		b += vb_header_length[*header];
	}
}

static void check_packet(const uint8_t *bytes, size_t length)
{
	struct vb_packet packet;
	if (vb_packet_decode(&packet, bytes, length) != VB_DECODE_OK)
		return;
	uint8_t again[VB_MAX_HEADER_BYTES], expected[VB_MAX_HEADER_BYTES];
	size_t n = vb_packet_row(&packet)->headers_length;
	require(vb_packet_wire_length(&packet) == length);
	require(packet.payload == bytes + n && packet.payload_length <= VB_MAX_PAYLOAD);
	require(packet.dest_qpn == vb_peek_dest_qpn(bytes));
	memcpy(expected, bytes, n);
	clear_reserved(expected);
	require(vb_packet_encode_headers(&packet, again) == n);
	require(memcmp(again, expected, n) == 0);
}

static void check_icrc(const uint8_t *bytes, size_t length)
{
	static const struct vb_flow flows[] = {
		{ { { [10] = 0xFF, [11] = 0xFF, [12] = 10 } }, { { [10] = 0xFF, [11] = 0xFF, [12] = 11 } }, 0xC000,
			VB_UDP_PORT },
		{ { { 0xFE, 0x80 } }, { { 0xFE, 0x80, [15] = 1 } }, 0xC000, VB_UDP_PORT },
	};
	uint16_t id = 0;
	for (unsigned i = 0; i < 4; i++)
		vb_icrc_verify(&flows[i / 2], bytes, length, i % 2, &id);
}

static void check_mad(const uint8_t *bytes, size_t length)
{
	uint8_t mad[VB_MAD_LENGTH] = { 0 }, again[VB_MAD_LENGTH];
	struct vb_discovery discovery, twice;
	memcpy(mad, bytes, length < sizeof(mad) ? length : sizeof(mad));
	if (!vb_discovery_decode(&discovery, mad))
		return;
	vb_discovery_encode(&discovery, again);
	require(vb_discovery_decode(&twice, again) && twice.receive_buffer == discovery.receive_buffer &&
		twice.features == discovery.features && twice.transaction_id == discovery.transaction_id);
}

/* What is read must be what is written and read again; reserved bits go. */
static void check_cm(const uint8_t *bytes, size_t length)
{
	uint8_t mad[VB_MAD_LENGTH] = { 1, VB_MAD_CLASS_CM, 2, VB_MAD_METHOD_SEND }, again[VB_MAD_LENGTH];
	struct vb_cm_message message, twice;
	struct vb_cm_ip_header header, same;
	if (length < 4)
		return;
	memcpy(mad + 4, bytes, length < sizeof(mad) - 4 ? length : sizeof(mad) - 4);
	if (vb_cm_decode(&message, mad)) {
		vb_cm_encode(&message, again);
		require(vb_cm_decode(&twice, again) && memcmp(&message, &twice, sizeof(message)) == 0);
	}
	if (vb_cm_ip_header_decode(&header, mad + 3)) {
		vb_cm_ip_header_encode(&header, again);
		require(vb_cm_ip_header_decode(&same, again) && vb_gid_equal(&header.src, &same.src) &&
			vb_gid_equal(&header.dst, &same.dst) && header.src_port == same.src_port);
	}
}

/* No header is found beyond what the frame has room for. */
static void check_frame(const uint8_t *bytes, size_t length)
{
	struct vb_frame_headers headers;
	uint32_t found = vb_frame_parse(&headers, bytes, (uint32_t)length);
	bool has_ip = found & (VB_FRAME_IPV4 | VB_FRAME_IPV6), has_ports = found & (VB_FRAME_TCP | VB_FRAME_UDP);
	require(!found || length >= VB_ETHERNET_LENGTH);
	require(!has_ip || length >= VB_ETHERNET_LENGTH + 20);
	require(!has_ports || (has_ip && length >= VB_ETHERNET_LENGTH + 24));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	check_frame(bytes, length);
	check_packet(bytes, length);
	check_icrc(bytes, length);
	check_mad(bytes, length);
	check_cm(bytes, length);
	return 0;
}
