/* Ethernet frames, as far as flow steering and receive hashing look into them: the first VLAN tag, IPv4 or IPv6, and
 * the ports of TCP and UDP. A frame that ends early, or holds something else, has fewer headers. */
#ifndef VB_WIRE_FRAME_H
#define VB_WIRE_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#define VB_ETHERNET_LENGTH 14
#define VB_VLAN_LENGTH     4
#define VB_MAC_LENGTH      6
#define VB_FRAME_MAX       65550 /* the largest IP packet in an Ethernet header */

enum vb_frame_protocol { /* bits */
	VB_FRAME_VLAN = 1,
	VB_FRAME_IPV4 = 2,
	VB_FRAME_IPV6 = 4,
	VB_FRAME_TCP = 8,
	VB_FRAME_UDP = 16,
};

/* Fields in network order; zero where the frame has no such header. Without padding: compared as bytes. */
struct vb_frame_headers {
	uint8_t dst_mac[VB_MAC_LENGTH], src_mac[VB_MAC_LENGTH];
	uint16_t ether_type; /* behind the VLAN tag, if there is one */
	uint16_t vlan_tag;
	uint8_t src_ip[16], dst_ip[16]; /* IPv4: the first four bytes */
	uint32_t flow_label;
	uint8_t ip_protocol, traffic_class, hop_limit;
	uint8_t ip_flags; /* IPv4: reserved, DF and MF, as the low three bits */
	uint16_t src_port, dst_port;
};

_Static_assert(sizeof(struct vb_frame_headers) == 60, "no padding");

/* Returns the protocols found; 0 also if there is no Ethernet header, and then *headers is all zero. */
uint32_t vb_frame_parse(struct vb_frame_headers *headers, const uint8_t *frame, uint32_t length);

#endif
