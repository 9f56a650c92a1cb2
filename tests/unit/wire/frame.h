/* For tests: a packet from its IP header on, taken apart into what a socket would show and what it would not. */
#ifndef VB_TESTS_FRAME_H
#define VB_TESTS_FRAME_H

#include "base/bytes.h"
#include "wire/icrc.h"
#include "wire/packet.h"

struct frame {
	struct vb_flow flow;
	bool is_ipv4, df_clear;
	uint16_t ipv4_id;
	const uint8_t *payload; /* UDP payload: BTH to ICRC */
	size_t length;
};

/* False when the bytes are not UDP over IPv4 without options or over IPv6. Bytes behind the UDP length are ignored. */
static inline bool frame_parse(struct frame *frame, const uint8_t *ip, size_t length)
{
	const uint8_t *udp;
	memset(frame, 0, sizeof(*frame));
	if (length >= 28 && ip[0] == 0x45 && ip[9] == 17) {
		frame->is_ipv4 = true;
		frame->ipv4_id = vb_load_be16(ip + 4);
		frame->df_clear = (vb_load_be16(ip + 6) & 0x4000) == 0;
		frame->flow.src = vb_gid_from_ipv4(ip[12], ip[13], ip[14], ip[15]);
		frame->flow.dst = vb_gid_from_ipv4(ip[16], ip[17], ip[18], ip[19]);
		udp = ip + 20;
	} else if (length >= 48 && ip[0] >> 4 == 6 && ip[6] == 17) {
		memcpy(frame->flow.src.raw, ip + 8, 16);
		memcpy(frame->flow.dst.raw, ip + 24, 16);
		udp = ip + 40;
	} else {
		return false;
	}
	frame->flow.src_port = vb_load_be16(udp);
	frame->flow.dst_port = vb_load_be16(udp + 2);
	frame->payload = udp + 8;
	frame->length = vb_load_be16(udp + 4) - 8u;
	return frame->payload + frame->length <= ip + length;
}

/* The ICRC as a sender makes it: headers and payload apart. The packet's DF is taken as set. */
static inline uint32_t frame_icrc(const struct frame *frame, size_t headers_length)
{
	uint32_t crc = vb_icrc_begin(&frame->flow, frame->length, frame->ipv4_id);
	crc = vb_icrc_headers(crc, frame->payload, headers_length);
	crc = vb_icrc_add(crc, frame->payload + headers_length, frame->length - headers_length - VB_ICRC_LENGTH);
	return vb_icrc_end(crc);
}

/* The ICRC that the packet carries. */
static inline uint32_t frame_icrc_carried(const struct frame *frame)
{
	const uint8_t *b = frame->payload + frame->length - VB_ICRC_LENGTH;
	return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

#endif
