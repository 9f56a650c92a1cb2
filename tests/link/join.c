/* See join.h. */
#include "join.h"

#include <netinet/in.h>
#include <string.h>
#include "base/invariant.h"
#include "headers.h"

enum { VNET = sizeof(struct virtio_net_hdr), TRAIN_BYTES = 65535 /* of IP */ };

static size_t headers_of(const uint8_t *ip, size_t length, size_t transport, uint8_t protocol, bool takes_udp)
{
	if (protocol == IPPROTO_UDP && takes_udp)
		return transport + LINK_UDP_BYTES;
	if (protocol != IPPROTO_TCP || transport + LINK_TCP_BYTES > length ||
		(ip[transport + LINK_TCP_FLAGS] & (uint8_t)~LINK_TCP_PSH) != LINK_TCP_ACK)
		return 0;
	size_t bytes = (size_t)(ip[transport + LINK_TCP_OFFSET] >> 4) * 4;
	return bytes >= LINK_TCP_BYTES ? transport + bytes : 0;
}

/* Only packets whose checksum is still open: for a train it has to be. */
static void begin(struct link_train *train, const uint8_t *packet, size_t length, bool takes_udp)
{
	struct virtio_net_hdr header;
	uint8_t protocol = 0;
	const uint8_t *ip = packet + VNET;

	memcpy(&header, packet, VNET);
	memcpy(train->bytes, packet, length);
	train->count = 1;
	train->length = length;
	train->headers = 0;
	train->transport = link_find_transport(ip, length - VNET, &protocol);
	if (!train->transport || header.flags != VIRTIO_NET_HDR_F_NEEDS_CSUM || header.csum_start != train->transport)
		return;
	train->headers = headers_of(ip, length - VNET, train->transport, protocol, takes_udp);
	if (train->headers >= length - VNET)
		train->headers = 0; /* no payload, as an acknowledgement of TCP */
	train->segment = length - VNET - train->headers;
}

static bool are_equal(const uint8_t *a, const uint8_t *b, size_t from, size_t to)
{
	return memcmp(a + from, b + from, to - from) == 0;
}

static bool ip_follows(const struct link_train *train, const uint8_t *ip)
{
	const uint8_t *first = train->bytes + VNET;

	if (!link_is_ipv4(first))
		return are_equal(first, ip, 0, 4) && are_equal(first, ip, 6, train->transport);
	return are_equal(first, ip, 0, 2) && link_read16(ip + 4) == (uint16_t)(link_read16(first + 4) + train->count) &&
	       are_equal(first, ip, 6, 10) && are_equal(first, ip, 12, train->transport);
}

static uint32_t sequence_of(const uint8_t *tcp)
{
	return (uint32_t)link_read16(tcp + 4) << 16 | link_read16(tcp + 6);
}

/* PSH ends a train, so the packets before it have none. */
static bool tcp_follows(const struct link_train *train, const uint8_t *tcp)
{
	const uint8_t *first = train->bytes + VNET + train->transport;
	const size_t bytes = train->headers - train->transport;
	const uint32_t next = sequence_of(first) + (uint32_t)(train->count * train->segment); /* wraps */

	return are_equal(first, tcp, 0, 4) && sequence_of(tcp) == next && are_equal(first, tcp, 8, LINK_TCP_FLAGS) &&
	       !(first[LINK_TCP_FLAGS] & LINK_TCP_PSH) &&
	       (tcp[LINK_TCP_FLAGS] & (uint8_t)~LINK_TCP_PSH) == LINK_TCP_ACK && are_equal(first, tcp, 14, 16) &&
	       are_equal(first, tcp, 18, bytes);
}

static bool is_of_udp(const struct link_train *train)
{
	return link_protocol(train->bytes + VNET) == IPPROTO_UDP;
}

static bool follows(const struct link_train *train, const uint8_t *packet, size_t length)
{
	const uint8_t *ip = packet + VNET, *transport = ip + train->transport;

	if (!train->headers || train->count == LINK_TRAIN_PACKETS || length <= VNET + train->headers)
		return false;
	size_t payload = length - VNET - train->headers;
	if (payload > train->segment || train->length - VNET + payload > TRAIN_BYTES ||
		memcmp(packet, train->bytes, VNET) != 0 || !ip_follows(train, ip))
		return false;
	return is_of_udp(train) ? are_equal(train->bytes + VNET + train->transport, transport, 0, 4)
				: tcp_follows(train, transport);
}

bool link_train_add(struct link_train *train, const uint8_t *packet, size_t length, bool takes_udp)
{
	if (train->count == 0) {
		begin(train, packet, length, takes_udp);
		return true;
	}
	if (!follows(train, packet, length))
		return false;
	size_t payload = length - VNET - train->headers;
	const uint8_t *transport = packet + VNET + train->transport;
	uint8_t *flags = train->bytes + VNET + train->transport + LINK_TCP_FLAGS;

	memcpy(train->bytes + train->length, packet + VNET + train->headers, payload);
	train->length += payload;
	train->count++;
	if (!is_of_udp(train))
		*flags |= transport[LINK_TCP_FLAGS] & LINK_TCP_PSH;
	if (payload < train->segment)
		train->headers = 0;
	assert(train->length <= VNET + TRAIN_BYTES);
	return true;
}

void link_train_end(struct link_train *train)
{
	struct virtio_net_hdr header;
	uint8_t *ip = train->bytes + VNET;
	size_t length = train->length - VNET;

	if (train->count < 2)
		return;
	bool is_udp = is_of_udp(train);
	size_t headers = is_udp ? train->transport + LINK_UDP_BYTES
				: train->transport + (size_t)(ip[train->transport + LINK_TCP_OFFSET] >> 4) * 4;
	memcpy(&header, train->bytes, VNET);
	header.gso_type = is_udp             ? VIRTIO_NET_HDR_GSO_UDP_L4
			  : link_is_ipv4(ip) ? VIRTIO_NET_HDR_GSO_TCPV4
					     : VIRTIO_NET_HDR_GSO_TCPV6;
	header.gso_size = (uint16_t)train->segment;
	header.hdr_len = (uint16_t)headers;
	memcpy(train->bytes, &header, VNET);
	link_write_ip(ip, train->transport, length, 0);
	link_write_transport_length(ip, train->transport, length);
}
