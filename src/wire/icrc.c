/* The invariant CRC: CRC-32 over the packet with everything that a router may change forced to ones.
 * Holds: for an IPv4 packet, (expected ICRC xor received ICRC) moved back to the header's bytes 4 to 7 is the
 * difference of those four bytes, for the map is a bijection of 32 bits. Beyond the identification it is corruption.
 * Not here: the arithmetic (gf32.c). Source: IBA vol. 1, 7.8.1; annex A17.9.
 *
 * To accept any identification has a cost: random corruption passes with 2^-16 instead of 2^-32. Every single-bit error
 * is still caught, since DF is known. */
#include "base/bytes.h"
#include "base/invariant.h"
#include "wire/crc32.h"
#include "wire/icrc.h"
#include "wire/gf32.h"
#include "wire/packet.h"

enum {
	IPV4_LENGTH = 20,
	IPV6_LENGTH = 40,
	UDP_LENGTH = 8,
	FLAG_DF = 0x4000,
	PROTOCOL_UDP = 17,
	BTH_MASKED = 4, /* FECN, BECN and six reserved bits */
	PSEUDO_MAX = IPV6_LENGTH + UDP_LENGTH,
};

/* Running value after the eight bytes of ones that stand for the local route header. */
#define AFTER_ROUTE_HEADER 0x2144DF1Cu

static size_t put_ipv4(uint8_t *b, const struct vb_flow *flow, size_t udp_length, uint16_t id, uint16_t flags)
{
	b[0] = 0x45;
	b[1] = 0xFF; /* TOS */
	vb_store_be16(b + 2, (uint16_t)(IPV4_LENGTH + udp_length));
	vb_store_be16(b + 4, id);
	vb_store_be16(b + 6, flags);
	b[8] = 0xFF; /* TTL */
	b[9] = PROTOCOL_UDP;
	b[10] = b[11] = 0xFF; /* checksum */
	memcpy(b + 12, flow->src.raw + 12, 4);
	memcpy(b + 16, flow->dst.raw + 12, 4);
	return IPV4_LENGTH;
}

static size_t put_ipv6(uint8_t *b, const struct vb_flow *flow, size_t udp_length)
{
	b[0] = 0x6F; /* traffic class and flow label */
	b[1] = b[2] = b[3] = 0xFF;
	vb_store_be16(b + 4, (uint16_t)udp_length);
	b[6] = PROTOCOL_UDP;
	b[7] = 0xFF; /* hop limit */
	memcpy(b + 8, flow->src.raw, 16);
	memcpy(b + 24, flow->dst.raw, 16);
	return IPV6_LENGTH;
}

static bool is_ipv4(const struct vb_flow *flow)
{
	return vb_gid_is_ipv4(&flow->src) && vb_gid_is_ipv4(&flow->dst);
}

/* IP and UDP header with the masked bytes at one; returns their length. */
static size_t put_pseudo(uint8_t *b, const struct vb_flow *flow, size_t payload_length, uint16_t id, uint16_t flags)
{
	size_t udp_length = UDP_LENGTH + payload_length;
	size_t n = is_ipv4(flow) ? put_ipv4(b, flow, udp_length, id, flags) : put_ipv6(b, flow, udp_length);
	vb_store_be16(b + n, flow->src_port);
	vb_store_be16(b + n + 2, flow->dst_port);
	vb_store_be16(b + n + 4, (uint16_t)udp_length);
	b[n + 6] = b[n + 7] = 0xFF; /* checksum */
	assert(n + UDP_LENGTH <= PSEUDO_MAX);
	return n + UDP_LENGTH;
}

uint32_t vb_icrc_begin(const struct vb_flow *flow, size_t udp_payload_length, uint16_t ipv4_id)
{
	uint8_t pseudo[PSEUDO_MAX];
	size_t n = put_pseudo(pseudo, flow, udp_payload_length, ipv4_id, FLAG_DF);
	return vb_crc32(AFTER_ROUTE_HEADER, pseudo, n);
}

uint32_t vb_icrc_headers(uint32_t crc, const uint8_t *headers, size_t length)
{
	uint8_t masked[VB_MAX_HEADER_BYTES];
	size_t n = length < sizeof(masked) ? length : sizeof(masked);
	memcpy(masked, headers, n);
	masked[BTH_MASKED] = 0xFF;
	crc = vb_crc32(crc, masked, n);
	return n == length ? crc : vb_icrc_add(crc, headers + n, length - n);
}

uint32_t vb_icrc_add(uint32_t crc, const void *bytes, size_t length)
{
	return vb_crc32(crc, bytes, length);
}

/* Words from the end of IPv4 bytes 4 to 7 to the end of the ICRC: 12 bytes of IP, 8 of UDP, then the payload. */
static uint32_t words_behind_id(size_t udp_payload_length)
{
	assert(udp_payload_length % 4 == 0); /* else the map takes no whole number of words */
	return (uint32_t)((IPV4_LENGTH - 8 + UDP_LENGTH + udp_payload_length) / 4);
}

/* The identification is the first two of the four bytes; the CRC takes the low byte of a word first. */
uint32_t vb_icrc_id_image(size_t udp_payload_length, uint16_t id)
{
	return id == 0 ? 0 : vb_gf32_forward(__builtin_bswap16(id), words_behind_id(udp_payload_length));
}

/* difference: expected xor received, both as the number that is stored least significant byte first. *ipv4_id is the
 * expected identification, and becomes the received one. */
static bool recover_id(uint32_t difference, size_t udp_payload_length, uint16_t *ipv4_id)
{
	uint32_t word = vb_gf32_back(difference, words_behind_id(udp_payload_length));
	if (word >> 16 != 0)
		return false;
	*ipv4_id ^= __builtin_bswap16((uint16_t)word);
	return true;
}

bool vb_icrc_verify(const struct vb_flow *flow, const uint8_t *bytes, size_t length, bool df_clear, uint16_t *ipv4_id)
{
	if (length < VB_BTH_LENGTH + VB_ICRC_LENGTH || length > VB_MAX_PACKET_BYTES || length % 4 != 0)
		return false;
	if (!is_ipv4(flow))
		*ipv4_id = 0;
	uint8_t head[PSEUDO_MAX + VB_BTH_LENGTH];
	size_t n = put_pseudo(head, flow, length, *ipv4_id, df_clear ? 0 : FLAG_DF);
	memcpy(head + n, bytes, VB_BTH_LENGTH);
	head[n + BTH_MASKED] = 0xFF;
	uint32_t crc = vb_crc32(AFTER_ROUTE_HEADER, head, n + VB_BTH_LENGTH);
	crc = vb_icrc_add(crc, bytes + VB_BTH_LENGTH, length - VB_BTH_LENGTH - VB_ICRC_LENGTH);
	uint32_t received;
	memcpy(&received, bytes + length - VB_ICRC_LENGTH, sizeof(received));
	return crc == received || (is_ipv4(flow) && recover_id(crc ^ received, length, ipv4_id));
}
