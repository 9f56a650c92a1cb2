/* The headers of datagrams between rsockets (datagram.h). */
#include "rsocket/datagram.h"

#include <string.h>

enum { TAG = 0x55555555, OP_DATA = 0, OP_ANSWER = 7, QPN_LIMIT = 1 << 24 };

static void put32(uint8_t *to, uint32_t value)
{
	uint32_t ordered = htobe32(value);
	memcpy(to, &ordered, sizeof(ordered));
}

static uint32_t get32(const uint8_t *from)
{
	uint32_t ordered;
	memcpy(&ordered, from, sizeof(ordered));
	return be32toh(ordered);
}

size_t vb_rs_udp_header_encode(const struct vb_rs_udp_header *header, uint8_t to[VB_RS_HEADER_MAX])
{
	union vb_rs_address target = header->target;
	bool is_ipv4 = vb_rs_address_convert(&target, AF_INET);
	size_t length = is_ipv4 ? VB_RS_UDP_HEADER_IPV4 : VB_RS_UDP_HEADER_IPV6;

	memset(to, 0, length);
	put32(to, TAG);
	to[4] = is_ipv4 ? 4 : 6;
	to[5] = header->is_data ? OP_DATA : OP_ANSWER;
	to[6] = (uint8_t)length;
	put32(to + 8, header->qpn << 8);
	if (is_ipv4)
		memcpy(to + 12, &target.ipv4.sin_addr, 4);
	else
		memcpy(to + 12, &target.ipv6.sin6_addr, 16);
	return length;
}

size_t vb_rs_udp_header_decode(struct vb_rs_udp_header *header, const uint8_t *from, size_t length)
{
	if (length < VB_RS_UDP_HEADER_IPV4 || get32(from) != TAG || (from[5] != OP_DATA && from[5] != OP_ANSWER))
		return 0;
	bool is_ipv4 = from[4] == 4;
	size_t own = is_ipv4 ? VB_RS_UDP_HEADER_IPV4 : VB_RS_UDP_HEADER_IPV6;
	if ((!is_ipv4 && from[4] != 6) || from[6] != own || length < own)
		return 0;
	*header = (struct vb_rs_udp_header){ .is_data = from[5] == OP_DATA, .qpn = get32(from + 8) >> 8 };
	if (is_ipv4) {
		header->target.any.sa_family = AF_INET;
		memcpy(&header->target.ipv4.sin_addr, from + 12, 4);
	} else {
		header->target.any.sa_family = AF_INET6;
		memcpy(&header->target.ipv6.sin6_addr, from + 12, 16);
	}
	return own;
}

size_t vb_rs_ud_header_encode(const union vb_rs_address *address, uint8_t to[VB_RS_HEADER_MAX])
{
	union vb_rs_address sender = *address;
	bool is_ipv4 = vb_rs_address_convert(&sender, AF_INET);
	size_t length = is_ipv4 ? VB_RS_UD_HEADER_IPV4 : VB_RS_UD_HEADER_IPV6;

	memset(to, 0, length);
	to[0] = is_ipv4 ? 4 : 6;
	to[1] = (uint8_t)length;
	memcpy(to + 2, &sender.ipv4.sin_port, 2);
	if (is_ipv4) {
		memcpy(to + 4, &sender.ipv4.sin_addr, 4);
	} else {
		memcpy(to + 4, &sender.ipv6.sin6_flowinfo, 4);
		memcpy(to + 8, &sender.ipv6.sin6_addr, 16);
	}
	return length;
}

size_t vb_rs_ud_header_decode(union vb_rs_address *sender, const uint8_t *from, size_t length)
{
	if (length < VB_RS_UD_HEADER_IPV4)
		return 0;
	bool is_ipv4 = from[0] == 4;
	size_t own = is_ipv4 ? VB_RS_UD_HEADER_IPV4 : VB_RS_UD_HEADER_IPV6;
	if ((!is_ipv4 && from[0] != 6) || from[1] != own || length < own)
		return 0;
	memset(sender, 0, sizeof(*sender));
	sender->any.sa_family = is_ipv4 ? AF_INET : AF_INET6;
	memcpy(&sender->ipv4.sin_port, from + 2, 2);
	if (is_ipv4) {
		memcpy(&sender->ipv4.sin_addr, from + 4, 4);
	} else {
		memcpy(&sender->ipv6.sin6_flowinfo, from + 4, 4);
		memcpy(&sender->ipv6.sin6_addr, from + 8, 16);
	}
	return own;
}
