/* IP, UDP and TCP headers, as cutting and joining trains need them. */
#ifndef TESTS_LINK_HEADERS_H
#define TESTS_LINK_HEADERS_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

enum {
	LINK_IPV4_BYTES = 20,
	LINK_IPV6_BYTES = 40,
	LINK_UDP_BYTES = 8,
	LINK_UDP_CHECKSUM = 6,
	LINK_TCP_BYTES = 20,
	LINK_TCP_CHECKSUM = 16,
	LINK_TCP_OFFSET = 12,
	LINK_TCP_FLAGS = 13,
	LINK_TCP_FIN = 0x01,
	LINK_TCP_PSH = 0x08,
	LINK_TCP_ACK = 0x10,
	LINK_TCP_CWR = 0x80,
};

static inline uint16_t link_read16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static inline void link_write16(uint8_t *at, size_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline bool link_is_ipv4(const uint8_t *packet)
{
	return packet[0] >> 4 == 4;
}

/* Of a packet of at least LINK_IPV4_BYTES. Extension headers of IPv6 are not looked behind. */
static inline uint8_t link_protocol(const uint8_t *packet)
{
	return packet[link_is_ipv4(packet) ? 9 : 6];
}

/* Where the transport's header begins, and which it is; 0: no IP packet, a later fragment, or nothing behind IP. A
 * header of UDP, or the ports of TCP, lie within length. */
size_t link_find_transport(const uint8_t *packet, size_t length, uint8_t *protocol);
/* Lengths, and IPv4's identification and checksum. length: of the whole packet. */
void link_write_ip(uint8_t *packet, size_t transport, size_t length, unsigned id_adds);
/* UDP's length, and the sum of the pseudo header, to which whoever completes the checksum adds the rest. */
void link_write_transport_length(uint8_t *packet, size_t transport, size_t length);

#endif
