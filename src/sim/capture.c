/* Captures of simulated links, in the format of draft-ietf-opsawg-pcapng, with blocks in the machine's own byte order.
 * Packets are in Ethernet frames whose addresses name the nodes at both ends of the link, since pause frames (802.1Qbb)
 * have no other addresses. */
#include "sim/capture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/bytes.h"
#include "sim/link_name.h"
#include "wire/icrc.h"

enum { SECTION_HEADER = 0x0A0D0D0A, INTERFACE = 1, ENHANCED_PACKET = 6, ORDER_MAGIC = 0x1A2B3C4D };
enum { OPTION_END = 0, OPTION_IF_NAME = 2, OPTION_IF_SPEED = 8, OPTION_IF_TSRESOL = 9, PICOSECONDS = 12 };
enum { LINKTYPE_ETHERNET = 1 };
enum { ETHERNET_LENGTH = 14, IPV4_LENGTH = 20, UDP_LENGTH = 8, PROTOCOL_UDP = 17, FLAG_DF = 0x4000 };
enum { ETHERTYPE_IPV4 = 0x0800, ETHERTYPE_CONTROL = 0x8808, PFC = 0x0101, PAUSE_FRAME_LENGTH = 60 };
enum { MAX_FRAME = ETHERNET_LENGTH + IPV4_LENGTH + UDP_LENGTH + VB_MAX_PACKET_BYTES };

struct capture {
	FILE *file;
	const struct network *network;
	const uint32_t *links;
	uint32_t count;
	int error;
};

/* A block that is being written. */
struct block {
	uint8_t bytes[MAX_FRAME + 64];
	uint32_t length;
};

static void put(struct block *block, const void *bytes, uint32_t length)
{
	if (length)
		memcpy(block->bytes + block->length, bytes, length);
	block->length += length;
}

static void put16(struct block *block, uint16_t value)
{
	put(block, &value, sizeof(value));
}

static void put32(struct block *block, uint32_t value)
{
	put(block, &value, sizeof(value));
}

static void pad(struct block *block)
{
	static const uint8_t zeros[4];
	put(block, zeros, -block->length & 3);
}

static void begin(struct block *block, uint32_t type)
{
	block->length = 0;
	put32(block, type);
	put32(block, 0); /* its length, filled in at the end */
}

static void put_option(struct block *block, uint16_t code, const void *value, uint16_t length)
{
	put16(block, code);
	put16(block, length);
	put(block, value, length);
	pad(block);
}

/* The length is at both ends. */
static void finish(struct capture *capture, struct block *block)
{
	uint32_t whole = block->length + 4;

	put32(block, whole);
	memcpy(block->bytes + 4, &whole, sizeof(whole));
	if (!capture->error && fwrite(block->bytes, block->length, 1, capture->file) != 1)
		capture->error = errno ? -errno : -EIO;
}

static void put_section(struct capture *capture)
{
	struct block block;
	uint64_t unknown = UINT64_MAX;

	begin(&block, SECTION_HEADER);
	put32(&block, ORDER_MAGIC);
	put16(&block, 1);
	put16(&block, 0);
	put(&block, &unknown, sizeof(unknown));
	finish(capture, &block);
}

static void put_interface(struct capture *capture, uint32_t link)
{
	struct block block;
	char name[64];
	uint8_t resolution = PICOSECONDS;
	uint64_t speed = capture->network->links[link].bits_per_second;

	begin(&block, INTERFACE);
	put16(&block, LINKTYPE_ETHERNET);
	put16(&block, 0);
	put32(&block, 0); /* no limit on the bytes kept of a packet */
	link_text(capture->network, link, name, sizeof(name));
	put_option(&block, OPTION_IF_NAME, name, (uint16_t)strlen(name));
	put_option(&block, OPTION_IF_SPEED, &speed, sizeof(speed));
	put_option(&block, OPTION_IF_TSRESOL, &resolution, sizeof(resolution));
	put_option(&block, OPTION_END, NULL, 0);
	finish(capture, &block);
}

int capture_open(const char *path, const struct network *network, const uint32_t *links, uint32_t count,
	struct capture **capture)
{
	struct capture *made = calloc(1, sizeof(*made));

	if (!made)
		return -ENOMEM;
	*made = (struct capture){ fopen(path, "we"), network, links, count, 0 };
	if (!made->file) {
		int error = -errno;
		free(made);
		return error;
	}
	put_section(made);
	for (uint32_t i = 0; i < count; i++)
		put_interface(made, links[i]);
	*capture = made;
	return 0;
}

int capture_close(struct capture *capture)
{
	int error = capture->error;

	if (fclose(capture->file) && !error)
		error = -errno;
	free(capture);
	return error;
}

/* ---- Frames ------------------------------------------------------------------------------------------------------ */

/* Locally administered addresses: 02:00 and an endpoint's number, or 06:00 and a switch's. */
static void put_mac(uint8_t *mac, network_node node)
{
	mac[0] = network_is_switch(node) ? 6 : 2;
	mac[1] = 0;
	vb_store_be32(mac + 2, network_index(node));
}

static uint16_t ipv4_checksum(const uint8_t *header)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < IPV4_LENGTH; i += 2)
		sum += vb_load_be16(header + i);
	sum = (sum & 0xFFFF) + (sum >> 16);
	return (uint16_t) ~((sum & 0xFFFF) + (sum >> 16));
}

static void put_ipv4(uint8_t *b, const struct vb_path *path, uint32_t udp_length)
{
	memset(b, 0, IPV4_LENGTH);
	b[0] = 0x45;
	b[1] = path->traffic_class;
	vb_store_be16(b + 2, (uint16_t)(IPV4_LENGTH + udp_length));
	vb_store_be16(b + 6, FLAG_DF);
	b[8] = path->hop_limit;
	b[9] = PROTOCOL_UDP;
	memcpy(b + 12, path->src.raw + 12, 4);
	memcpy(b + 16, path->dst.raw + 12, 4);
	vb_store_be16(b + 10, ipv4_checksum(b));
}

/* Returns the frame's length, without its check sequence. Payload is zeros. */
static uint32_t make_packet(uint8_t *frame, const struct fabric_capture *seen)
{
	const struct vb_path *path = &seen->path;
	uint32_t length = vb_packet_wire_length(seen->packet), udp_length = UDP_LENGTH + length;
	uint8_t *ip = frame + ETHERNET_LENGTH, *udp = ip + IPV4_LENGTH, *transport = udp + UDP_LENGTH;

	vb_store_be16(frame + 12, ETHERTYPE_IPV4);
	put_ipv4(ip, path, udp_length);
	vb_store_be16(udp, path->src_port);
	vb_store_be16(udp + 2, VB_UDP_PORT);
	vb_store_be16(udp + 4, (uint16_t)udp_length);
	vb_store_be16(udp + 6, 0);
	size_t headers = vb_packet_encode_headers(seen->packet, transport), rest = length - headers - VB_ICRC_LENGTH;
	memset(transport + headers, 0, rest);
	struct vb_flow flow = { path->src, path->dst, path->src_port, VB_UDP_PORT };
	uint32_t crc = vb_icrc_headers(vb_icrc_begin(&flow, length, 0), transport, headers);
	crc = vb_icrc_end(vb_icrc_add(crc, transport + headers, rest));
	for (unsigned i = 0; i < VB_ICRC_LENGTH; i++)
		transport[headers + rest + i] = (uint8_t)(crc >> (8 * i));
	return ETHERNET_LENGTH + IPV4_LENGTH + udp_length;
}

static uint32_t make_pause(uint8_t *frame, const struct fabric_capture *seen)
{
	static const uint8_t to_whoever_is_there[6] = { 0x01, 0x80, 0xC2, 0x00, 0x00, 0x01 };
	uint8_t *b = frame + ETHERNET_LENGTH;

	memset(b, 0, PAUSE_FRAME_LENGTH - ETHERNET_LENGTH);
	memcpy(frame, to_whoever_is_there, sizeof(to_whoever_is_there));
	vb_store_be16(frame + 12, ETHERTYPE_CONTROL);
	vb_store_be16(b, PFC);
	vb_store_be16(b + 2, seen->paused_classes | seen->resumed_classes);
	for (unsigned i = 0; i < FABRIC_CLASSES; i++)
		vb_store_be16(b + 4 + 2 * i, seen->paused_classes >> i & 1 ? 0xFFFF : 0);
	return PAUSE_FRAME_LENGTH;
}

static uint32_t interface_of(const struct capture *capture, uint32_t link)
{
	uint32_t at = 0;
	while (at + 1 < capture->count && capture->links[at] != link)
		at++;
	return at;
}

/* Of a packet that was cut, the headers. */
static uint32_t kept_of(const struct fabric_capture *seen, uint32_t length)
{
	return seen->is_cut ? length - VB_ICRC_LENGTH - (seen->packet->payload_length + 3) / 4 * 4 : length;
}

void capture_packet(struct capture *capture, const struct fabric_capture *seen)
{
	const struct network_link *link = &capture->network->links[seen->link];
	uint8_t frame[MAX_FRAME];
	struct block block;

	put_mac(frame, link->to);
	put_mac(frame + 6, link->from);
	uint32_t length = seen->packet ? make_packet(frame, seen) : make_pause(frame, seen);
	begin(&block, ENHANCED_PACKET);
	put32(&block, interface_of(capture, seen->link));
	put32(&block, (uint32_t)((uint64_t)seen->at >> 32));
	put32(&block, (uint32_t)seen->at);
	put32(&block, kept_of(seen, length)); /* bytes that are kept */
	put32(&block, length);                /* bytes that there were */
	put(&block, frame, kept_of(seen, length));
	pad(&block);
	finish(capture, &block);
}
