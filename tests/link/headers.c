/* See headers.h. */
#include "headers.h"

#include <netinet/in.h>

size_t link_find_transport(const uint8_t *packet, size_t length, uint8_t *protocol)
{
	size_t bytes = LINK_IPV6_BYTES;

	if (length < LINK_IPV4_BYTES)
		return 0;
	*protocol = link_protocol(packet);
	if (link_is_ipv4(packet)) {
		bytes = (size_t)(packet[0] & 15) * 4;
		if (bytes < LINK_IPV4_BYTES || link_read16(packet + 6) & 0x1FFF)
			return 0;
	} else if (packet[0] >> 4 != 6) {
		return 0;
	}
	return bytes + LINK_UDP_BYTES <= length ? bytes : 0;
}

static uint32_t add_up(const uint8_t *bytes, size_t length)
{
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < length; i += 2)
		sum += link_read16(bytes + i);
	return sum;
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xFFFF) + (sum >> 16);
	return (uint16_t)sum;
}

void link_write_ip(uint8_t *packet, size_t transport, size_t length, unsigned id_adds)
{
	if (!link_is_ipv4(packet)) {
		link_write16(packet + 4, length - LINK_IPV6_BYTES);
		return;
	}
	link_write16(packet + 2, length);
	link_write16(packet + 4, (uint16_t)(link_read16(packet + 4) + id_adds));
	link_write16(packet + 10, 0);
	link_write16(packet + 10, (uint16_t)~fold(add_up(packet, transport)));
}

void link_write_transport_length(uint8_t *packet, size_t transport, size_t length)
{
	const bool is_udp = link_protocol(packet) == IPPROTO_UDP;
	uint32_t addresses = link_is_ipv4(packet) ? add_up(packet + 12, 8) : add_up(packet + 8, 32);
	uint8_t *header = packet + transport;
	size_t bytes = length - transport;

	if (is_udp)
		link_write16(header + 4, bytes);
	link_write16(header + (is_udp ? LINK_UDP_CHECKSUM : LINK_TCP_CHECKSUM),
		fold(addresses + link_protocol(packet) + (uint32_t)bytes));
}
