/* Reads the headers of an Ethernet frame.
 * Holds: no byte beyond length is read.
 * Not here: what a flow wants of them (roce/steering.c). IEEE 802.3 and 802.1Q, RFC 791, RFC 8200. */
#include "wire/frame.h"
#include <string.h>
#include "base/bytes.h"
#include "base/invariant.h"

#define TYPE_IPV4 0x0800
#define TYPE_IPV6 0x86DD
#define TYPE_VLAN 0x8100

#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17

struct rest {
	const uint8_t *bytes;
	uint32_t length;
};

static void skip(struct rest *rest, uint32_t length)
{
	assert(length <= rest->length);
	rest->bytes += length;
	rest->length -= length;
}

/* TCP and UDP begin with the two ports. */
static uint32_t parse_ports(struct vb_frame_headers *headers, struct rest rest)
{
	bool is_tcp = headers->ip_protocol == PROTOCOL_TCP;
	if ((!is_tcp && headers->ip_protocol != PROTOCOL_UDP) || rest.length < (is_tcp ? 20u : 8u))
		return 0;
	memcpy(&headers->src_port, rest.bytes, 2);
	memcpy(&headers->dst_port, rest.bytes + 2, 2);
	return is_tcp ? VB_FRAME_TCP : VB_FRAME_UDP;
}

static uint32_t parse_ipv4(struct vb_frame_headers *headers, struct rest rest)
{
	uint32_t length = rest.length >= 20 ? (rest.bytes[0] & 0xfu) * 4 : 0;
	if (length < 20 || rest.bytes[0] >> 4 != 4 || rest.length < length)
		return 0;
	headers->traffic_class = rest.bytes[1];
	headers->ip_flags = rest.bytes[6] >> 5;
	headers->hop_limit = rest.bytes[8];
	headers->ip_protocol = rest.bytes[9];
	memcpy(headers->src_ip, rest.bytes + 12, 4);
	memcpy(headers->dst_ip, rest.bytes + 16, 4);
	bool is_later_fragment = (vb_load_be16(rest.bytes + 6) & 0x1fff) != 0;
	skip(&rest, length);
	return VB_FRAME_IPV4 | (is_later_fragment ? 0 : parse_ports(headers, rest));
}

/* Extension headers are not followed: the protocol is that of the first. */
static uint32_t parse_ipv6(struct vb_frame_headers *headers, struct rest rest)
{
	if (rest.length < 40 || rest.bytes[0] >> 4 != 6)
		return 0;
	uint32_t first = vb_load_be32(rest.bytes);
	headers->traffic_class = (uint8_t)(first >> 20);
	vb_store_be32(&headers->flow_label, first & 0xfffff);
	headers->ip_protocol = rest.bytes[6];
	headers->hop_limit = rest.bytes[7];
	memcpy(headers->src_ip, rest.bytes + 8, 16);
	memcpy(headers->dst_ip, rest.bytes + 24, 16);
	skip(&rest, 40);
	return VB_FRAME_IPV6 | parse_ports(headers, rest);
}

uint32_t vb_frame_parse(struct vb_frame_headers *headers, const uint8_t *frame, uint32_t length)
{
	struct rest rest = { frame, length };
	uint32_t found = 0;

	memset(headers, 0, sizeof(*headers));
	if (length < VB_ETHERNET_LENGTH)
		return 0;
	memcpy(headers->dst_mac, frame, VB_MAC_LENGTH);
	memcpy(headers->src_mac, frame + VB_MAC_LENGTH, VB_MAC_LENGTH);
	uint16_t type = vb_load_be16(frame + 12);
	skip(&rest, VB_ETHERNET_LENGTH);
	if (type == TYPE_VLAN && rest.length >= VB_VLAN_LENGTH) {
		found = VB_FRAME_VLAN;
		memcpy(&headers->vlan_tag, rest.bytes, 2);
		type = vb_load_be16(rest.bytes + 2);
		skip(&rest, VB_VLAN_LENGTH);
	}
	vb_store_be16(&headers->ether_type, type);
	if (type == TYPE_IPV4)
		found |= parse_ipv4(headers, rest);
	else if (type == TYPE_IPV6)
		found |= parse_ipv6(headers, rest);
	return found;
}
