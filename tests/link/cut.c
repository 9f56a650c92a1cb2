/* See cut.h. */
#include "cut.h"

#include <netinet/in.h>
#include <string.h>
#include "base/invariant.h"
#include "headers.h"

static bool has_ports(uint8_t protocol)
{
	return protocol == IPPROTO_UDP || protocol == IPPROTO_TCP;
}

/* The bytes before the payload of a train; 0: it is none. */
static size_t headers_of_train(const struct link_cut *cut, uint8_t gso_type, size_t transport, uint8_t protocol)
{
	const bool is_udp = gso_type == VIRTIO_NET_HDR_GSO_UDP_L4;
	const bool is_tcp = gso_type == VIRTIO_NET_HDR_GSO_TCPV4 || gso_type == VIRTIO_NET_HDR_GSO_TCPV6;

	if (is_udp && protocol == IPPROTO_UDP && transport + LINK_UDP_BYTES < cut->length)
		return transport + LINK_UDP_BYTES;
	if (!is_tcp || protocol != IPPROTO_TCP || transport + LINK_TCP_BYTES > cut->length)
		return 0;
	size_t bytes = (size_t)(cut->packet[transport + LINK_TCP_OFFSET] >> 4) * 4;
	return bytes >= LINK_TCP_BYTES && transport + bytes < cut->length ? transport + bytes : 0;
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
		.csum_offset = protocol == IPPROTO_UDP ? LINK_UDP_CHECKSUM : LINK_TCP_CHECKSUM };
	return true;
}

bool link_cut_begin(struct link_cut *cut, const uint8_t *bytes, size_t length)
{
	uint8_t protocol = 0;

	if (length <= sizeof(cut->header))
		return false;
	*cut = (struct link_cut){ .packet = bytes + sizeof(cut->header), .length = length - sizeof(cut->header) };
	memcpy(&cut->header, bytes, sizeof(cut->header));
	size_t transport = link_find_transport(cut->packet, cut->length, &protocol);
	if (transport && has_ports(protocol))
		cut->source_port = link_read16(cut->packet + transport);
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

static void write_tcp(const struct link_cut *cut, unsigned i, uint8_t *tcp)
{
	uint32_t sequence = (uint32_t)link_read16(tcp + 4) << 16 | link_read16(tcp + 6);

	sequence += (uint32_t)(i * cut->segment);
	link_write16(tcp + 4, sequence >> 16);
	link_write16(tcp + 6, sequence & 0xFFFF);
	if (i > 0)
		tcp[LINK_TCP_FLAGS] &= (uint8_t)~LINK_TCP_CWR;
	if (i + 1 < cut->count)
		tcp[LINK_TCP_FLAGS] &= (uint8_t) ~(LINK_TCP_PSH | LINK_TCP_FIN);
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
	link_write_ip(packet, cut->header.csum_start, cut->headers + payload, i);
	if (cut->header.csum_offset == LINK_TCP_CHECKSUM)
		write_tcp(cut, i, packet + cut->header.csum_start);
	link_write_transport_length(packet, cut->header.csum_start, cut->headers + payload);
}
