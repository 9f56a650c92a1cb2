/* See cut.h. */
#include "cut.h"

#include <netinet/in.h>
#include <string.h>
#include "base/invariant.h"

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

enum {
	IPV4_BYTES = 20,
	IPV6_BYTES = 40,
	UDP_BYTES = 8,
	TCP_BYTES = 20,
	UDP_CHECKSUM = 6,
	TCP_CHECKSUM = 16,
	TCP_OFFSET = 12,
	TCP_FLAGS = 13,
	CWR = 0x80,
	PSH_FIN = 0x09,
};

static uint16_t read16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static void write16(uint8_t *at, size_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static bool is_ipv4(const uint8_t *packet)
{
	return packet[0] >> 4 == 4;
}

/* Where the transport's header begins, and which it is; 0: no IP packet, or a later fragment. */
static size_t find_transport(const uint8_t *packet, size_t length, uint8_t *protocol)
{
	if (length >= IPV4_BYTES && is_ipv4(packet)) {
		size_t bytes = (size_t)(packet[0] & 15) * 4;
		*protocol = packet[9];
		return bytes >= IPV4_BYTES && bytes <= length && !(read16(packet + 6) & 0x1FFF) ? bytes : 0;
	}
	if (length < IPV6_BYTES || packet[0] >> 4 != 6)
		return 0;
	*protocol = packet[6];
	return IPV6_BYTES;
}

static bool has_ports(uint8_t protocol)
{
	return protocol == IPPROTO_UDP || protocol == IPPROTO_TCP;
}

/* The bytes before the payload of a train; 0: it is none. */
static size_t headers_of_train(const struct link_cut *cut, uint8_t gso_type, size_t transport, uint8_t protocol)
{
	const bool is_udp = gso_type == VIRTIO_NET_HDR_GSO_UDP_L4;
	const bool is_tcp = gso_type == VIRTIO_NET_HDR_GSO_TCPV4 || gso_type == VIRTIO_NET_HDR_GSO_TCPV6;

	if (is_udp && protocol == IPPROTO_UDP && transport + UDP_BYTES < cut->length)
		return transport + UDP_BYTES;
	if (!is_tcp || protocol != IPPROTO_TCP || transport + TCP_BYTES > cut->length)
		return 0;
	size_t bytes = (size_t)(cut->packet[transport + TCP_OFFSET] >> 4) * 4;
	return bytes >= TCP_BYTES && transport + bytes < cut->length ? transport + bytes : 0;
}

/* Of a train, each packet's checksum is left open: the header says where it is. */
static bool begin_train(struct link_cut *cut, uint8_t gso_type, size_t transport, uint8_t protocol)
{
	size_t segment = cut->header.gso_size;

	cut->headers = transport ? headers_of_train(cut, gso_type, transport, protocol) : 0;
	if (!cut->headers || !segment)
		return false;
	cut->segment = segment;
	cut->count = (unsigned)((cut->length - cut->headers + segment - 1) / segment);
	cut->header = (struct virtio_net_hdr){ .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.csum_start = (uint16_t)transport,
		.csum_offset = protocol == IPPROTO_UDP ? UDP_CHECKSUM : TCP_CHECKSUM };
	return true;
}

bool link_cut_begin(struct link_cut *cut, const uint8_t *bytes, size_t length)
{
	uint8_t protocol = 0;

	if (length <= sizeof(cut->header))
		return false;
	*cut = (struct link_cut){ .packet = bytes + sizeof(cut->header), .length = length - sizeof(cut->header) };
	memcpy(&cut->header, bytes, sizeof(cut->header));
	size_t transport = find_transport(cut->packet, cut->length, &protocol);
	if (transport && has_ports(protocol) && transport + 2 <= cut->length)
		cut->source_port = read16(cut->packet + transport);
	uint8_t gso_type = cut->header.gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
	if (gso_type != VIRTIO_NET_HDR_GSO_NONE)
		return begin_train(cut, gso_type, transport, protocol);
	cut->headers = 0;
	cut->segment = cut->length;
	cut->count = 1;
	return true;
}

static size_t payload_of(const struct link_cut *cut, unsigned i)
{
	size_t left = cut->length - cut->headers - i * cut->segment;

	assert(i < cut->count);
	return left < cut->segment ? left : cut->segment;
}

size_t link_cut_length(const struct link_cut *cut, unsigned i)
{
	return sizeof(cut->header) + cut->headers + payload_of(cut, i);
}

/* ---- Headers of a packet of a train ------------------------------------------------------------------------------ */

static uint32_t add_up(const uint8_t *bytes, size_t length, uint32_t sum)
{
	for (size_t i = 0; i + 1 < length; i += 2)
		sum += read16(bytes + i);
	return sum;
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xFFFF) + (sum >> 16);
	return (uint16_t)sum;
}

static void write_ip(const struct link_cut *cut, unsigned i, uint8_t *packet, size_t length)
{
	size_t header = cut->header.csum_start;

	if (!is_ipv4(packet)) {
		write16(packet + 4, length - IPV6_BYTES);
		return;
	}
	write16(packet + 2, length);
	write16(packet + 4, (uint16_t)(read16(cut->packet + 4) + i));
	write16(packet + 10, 0);
	write16(packet + 10, (uint16_t)~fold(add_up(packet, header, 0)));
}

/* The sum of the pseudo header, to which whoever completes the checksum adds the rest. */
static uint16_t pseudo_sum(const uint8_t *packet, uint8_t protocol, size_t transport_bytes)
{
	uint32_t sum = is_ipv4(packet) ? add_up(packet + 12, 8, 0) : add_up(packet + 8, 32, 0);

	return fold(sum + protocol + (uint32_t)transport_bytes);
}

static void write_tcp(const struct link_cut *cut, unsigned i, uint8_t *tcp)
{
	uint32_t sequence = (uint32_t)read16(tcp + 4) << 16 | read16(tcp + 6);

	sequence += (uint32_t)(i * cut->segment);
	write16(tcp + 4, sequence >> 16);
	write16(tcp + 6, sequence & 0xFFFF);
	if (i > 0)
		tcp[TCP_FLAGS] &= (uint8_t)~CWR;
	if (i + 1 < cut->count)
		tcp[TCP_FLAGS] &= (uint8_t)~PSH_FIN;
}

static void write_transport(const struct link_cut *cut, unsigned i, uint8_t *packet, size_t length)
{
	const bool is_udp = cut->header.csum_offset == UDP_CHECKSUM;
	uint8_t *transport = packet + cut->header.csum_start;
	size_t bytes = length - cut->header.csum_start;

	if (is_udp)
		write16(transport + 4, bytes);
	else
		write_tcp(cut, i, transport);
	write16(transport + cut->header.csum_offset, pseudo_sum(packet, is_udp ? IPPROTO_UDP : IPPROTO_TCP, bytes));
}

void link_cut_write(const struct link_cut *cut, unsigned i, uint8_t *bytes)
{
	size_t payload = payload_of(cut, i);
	uint8_t *packet = bytes + sizeof(cut->header);

	memcpy(bytes, &cut->header, sizeof(cut->header));
	memcpy(packet, cut->packet, cut->headers);
	memcpy(packet + cut->headers, cut->packet + cut->headers + i * cut->segment, payload);
	if (!cut->headers)
		return;
	write_ip(cut, i, packet, cut->headers + payload);
	write_transport(cut, i, packet, cut->headers + payload);
}
