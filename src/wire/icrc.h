/* The invariant CRC (IBA vol. 1, 7.8.1; RoCEv2 annex A17). It covers an IP and UDP header that a socket does not show,
 * so both are rebuilt from the addresses. The one thing that cannot be rebuilt is the IPv4 identification: sending, it
 * is 0 (or the segment's number in a GSO train); receiving, it is recovered, since the CRC is linear: the difference
 * between expected and received ICRC must lie in the 16-bit image of the identification. IPv6 has no such field. */
#ifndef VB_WIRE_ICRC_H
#define VB_WIRE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/gid.h"

/* What the ICRC needs of the encapsulation. Both GIDs IPv4-mapped means IPv4, else IPv6. */
struct vb_flow {
	struct vb_gid src, dst;
	uint16_t src_port, dst_port; /* UDP, host order */
};

/* A running ICRC over one packet's pieces:
 *   crc = vb_icrc_begin(flow, udp_payload_length, ipv4_id);
 *   crc = vb_icrc_headers(crc, headers, n);     BTH first, at least 12 bytes; BTH byte 4 is masked here
 *   crc = vb_icrc_add(crc, payload, n); ...     any number of pieces, in order; then the pad
 *   vb_icrc_end(crc) is the value to store least significant byte first.
 * udp_payload_length includes the ICRC. ipv4_id is ignored for IPv6. DF is taken as set. */
uint32_t vb_icrc_begin(const struct vb_flow *flow, size_t udp_payload_length, uint16_t ipv4_id);
uint32_t vb_icrc_headers(uint32_t crc, const uint8_t *headers, size_t length);
uint32_t vb_icrc_add(uint32_t crc, const void *bytes, size_t length);
static inline uint32_t vb_icrc_end(uint32_t crc)
{
	return crc;
}

/* What changes in the ICRC of an IPv4 packet whose identification is id instead of 0: xor it in. The same for all
 * packets of one udp_payload_length (a multiple of 4, at most VB_MAX_PACKET_BYTES), so a train's ICRCs need no second
 * pass over the packets. */
uint32_t vb_icrc_id_image(size_t udp_payload_length, uint16_t id);

/* Verify a received UDP payload (ICRC included). True when it is right for some IPv4 identification, which is then
 * stored in *ipv4_id (0 for IPv6). What *ipv4_id was before is tried first, and then nothing has to be recovered: the
 * packets of a train are numbered in order. df_clear tells a packet sent with DF clear (learned per peer; normally
 * false). */
bool vb_icrc_verify(const struct vb_flow *flow, const uint8_t *bytes, size_t length, bool df_clear, uint16_t *ipv4_id);

#endif
