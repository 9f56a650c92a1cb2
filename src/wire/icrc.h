/* The invariant CRC (IBA vol. 1, 7.8.1; RoCEv2 annex A17). It covers an IP and UDP header that a socket does not show,
 * so both are rebuilt from the addresses. Only the IPv4 identification cannot be rebuilt. A sent packet has 0 there, or
 * its number in a train. That of a received packet is recovered, since the CRC is linear: the difference between
 * expected and received ICRC must lie in the 16-bit image of the identification. IPv6 has no such field. */
#ifndef VB_WIRE_ICRC_H
#define VB_WIRE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/gid.h"

/* Fields of the encapsulation that the ICRC covers. Both GIDs IPv4-mapped: IPv4, else IPv6. */
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

/* The change in the ICRC of an IPv4 packet whose identification is id instead of 0, to be xored in. It is the same for
 * all packets of one udp_payload_length (a multiple of 4, at most VB_MAX_PACKET_BYTES), so a train's ICRCs need no
 * second pass over the packets. */
uint32_t vb_icrc_id_image(size_t udp_payload_length, uint16_t id);

/* Verifies a received UDP payload, ICRC included. True when it is right for some IPv4 identification, which is then
 * stored in *ipv4_id (0 for IPv6). The former value of *ipv4_id is tried first, and if it is right, nothing has to be
 * recovered: the packets of a train are numbered in order. df_clear: the packet was sent with DF clear (learned of each
 * peer; normally false). */
bool vb_icrc_verify(const struct vb_flow *flow, const uint8_t *bytes, size_t length, bool df_clear, uint16_t *ipv4_id);

#endif
