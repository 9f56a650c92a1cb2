/* Captures of the packets that a process sends and receives. IP and UDP headers, which a socket does not show, are
 * rebuilt. The format is pcapng (draft-ietf-opsawg-pcapng) with nanosecond stamps and LINKTYPE_RAW (101): packets begin
 * with the IP header. Packets of our own, and those that are sent again, have a comment; a second section without
 * packets has that of the whole, for what is known at the end. Holds: each packet is one append in one system call. So
 * lanes may write at once without a lock, and a process that is killed leaves every packet but perhaps the last, which
 * the kernel may cut at a page. Not here: libpcap, because every program that loads the library would then load that
 * too. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include "base/bytes.h"
#include "base/invariant.h"
#include "port/port.h"
#include "wire/icrc.h"
#include "wire/mad.h"

#define PCAP_LINKTYPE_RAW 101
#define PCAP_SNAPLEN      65535

/* Blocks, and the options that are used. */
enum { SECTION_HEADER = 0x0A0D0D0A, INTERFACE = 1, ENHANCED_PACKET = 6 };
enum { MAGIC = 0x1A2B3C4D, NANOSECONDS = 9, OPT_END = 0, OPT_COMMENT = 1, IF_TSRESOL = 9 };

enum { IPV4_LENGTH = 20, IPV6_LENGTH = 40, UDP_LENGTH = 8, PROTOCOL_UDP = 17, FLAG_DF = 0x4000 };
enum { MAD_SOURCE_PORT = 0xC000, MAD_HOP_LIMIT = 64 };

struct vb_pcap {
	int fd;
	atomic_bool is_over; /* the disk is full, and blocks behind a cut one could not be read; or all has been said */
	atomic_uint writers;
	uint32_t comment_bytes;
	char comment[16384]; /* of the whole */
};

struct option {
	uint16_t code, length;
};

struct section {
	uint32_t type, length, byte_order;
	uint16_t major, minor;
	int32_t section_low, section_high; /* -1: its length is not known */
};

struct interface {
	uint32_t type, length;
	uint16_t linktype, reserved;
	uint32_t snaplen;
	struct option resolution;
	uint8_t exponent, pad[3];
	struct option end;
	uint32_t again;
};

struct enhanced {
	uint32_t type, length, interface, time_high, time_low, captured, original;
};

static const struct interface interface = { .type = INTERFACE,
	.length = sizeof(struct interface),
	.linktype = PCAP_LINKTYPE_RAW,
	.snaplen = PCAP_SNAPLEN,
	.resolution = { IF_TSRESOL, 1 },
	.exponent = NANOSECONDS,
	.again = sizeof(struct interface) };

_Static_assert(
	sizeof(struct section) == 24 && sizeof(struct enhanced) == 28 && sizeof(struct interface) == 32, "no holes");

static const uint8_t zeros[4];

static uint32_t padding(uint32_t length)
{
	return -length & 3;
}

/* The end of a block: its comment, if it has one, and its length once more. */
struct tail {
	struct option comment;
	struct {
		struct option end;
		uint32_t length;
	} behind;
};

/* Gives the bytes of it. pieces: four, of which the number used is returned in count. */
static uint32_t end_block(struct tail *tail, const char *text, uint32_t length, struct iovec *pieces, int *count)
{
	if (length == 0) {
		pieces[0] = (struct iovec){ &tail->behind.length, sizeof(uint32_t) };
		*count = 1;
		return sizeof(uint32_t);
	}
	tail->comment = (struct option){ OPT_COMMENT, (uint16_t)length };
	pieces[0] = (struct iovec){ &tail->comment, sizeof(tail->comment) };
	pieces[1] = (struct iovec){ (void *)text, length };
	pieces[2] = (struct iovec){ (void *)zeros, padding(length) };
	pieces[3] = (struct iovec){ &tail->behind, sizeof(tail->behind) };
	*count = 4;
	return (uint32_t)(sizeof(tail->comment) + length + padding(length) + sizeof(tail->behind));
}

static const struct section section = { SECTION_HEADER, 0, MAGIC, 1, 0, -1, -1 };

/* With the interface of its packets; 0 or -errno. */
static int write_first_section(int fd)
{
	struct {
		struct section section;
		uint32_t again;
		struct interface interface;
	} first = { section, sizeof(struct section) + sizeof(uint32_t), interface };
	first.section.length = first.again;
	ssize_t n = write(fd, &first, sizeof(first));
	return n == sizeof(first) ? 0 : n < 0 ? -errno : -ENOSPC;
}

/* Opens a file, empties it, and locks it as long as it is open, so that no two processes write into one capture. */
static int open_alone(const char *file)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
		close(fd);
		return -EBUSY;
	}
	if (ftruncate(fd, 0) && errno != EINVAL) { /* a pipe has nothing to empty */
		int error = -errno;
		close(fd);
		return error;
	}
	return fd;
}

int vb_pcap_open(const char *file, struct vb_pcap **pcap)
{
	struct vb_pcap *made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	made->fd = open_alone(file);
	if (made->fd < 0) {
		int error = made->fd;
		free(made);
		return error;
	}
	int error = write_first_section(made->fd);
	if (error) {
		vb_pcap_close(made);
		return error;
	}
	assert(made->fd >= 0 && !made->is_over);
	*pcap = made;
	return 0;
}

void vb_pcap_close(struct vb_pcap *pcap)
{
	if (!pcap)
		return;
	close(pcap->fd);
	free(pcap);
}

static void append(struct vb_pcap *pcap, const struct iovec *pieces, int count, uint32_t length)
{
	atomic_fetch_add(&pcap->writers, 1);
	if (!atomic_load(&pcap->is_over) && syscall(SYS_writev, pcap->fd, pieces, count) != (long)length)
		atomic_store(&pcap->is_over, true);
	atomic_fetch_sub(&pcap->writers, 1);
}

/* Ones' complement sum of 16-bit words, RFC 1071; an odd last byte counts as the high one. */
static uint32_t sum16(uint32_t sum, const uint8_t *b, size_t length)
{
	for (; length >= 2; b += 2, length -= 2)
		sum += vb_load_be16(b);
	return length ? sum + ((uint32_t)b[0] << 8) : sum;
}

static uint16_t checksum(uint32_t sum)
{
	sum = (sum & 0xFFFF) + (sum >> 16);
	sum = (sum & 0xFFFF) + (sum >> 16);
	return (uint16_t)~sum;
}

struct ends {
	const struct vb_gid *src, *dst;
	uint16_t src_port;
	uint8_t traffic_class, hop_limit;
};

/* The UDP checksum stays 0, "none", as it may over IPv4. */
static size_t put_ipv4(uint8_t *b, const struct ends *ends, uint16_t id, size_t udp_length)
{
	b[0] = 0x45;
	b[1] = ends->traffic_class;
	vb_store_be16(b + 2, (uint16_t)(IPV4_LENGTH + udp_length));
	vb_store_be16(b + 4, id);
	vb_store_be16(b + 6, FLAG_DF);
	b[8] = ends->hop_limit;
	b[9] = PROTOCOL_UDP;
	vb_store_be16(b + 10, 0);
	memcpy(b + 12, ends->src->raw + 12, 4);
	memcpy(b + 16, ends->dst->raw + 12, 4);
	vb_store_be16(b + 10, checksum(sum16(0, b, IPV4_LENGTH)));
	return IPV4_LENGTH;
}

static size_t put_ipv6(uint8_t *b, const struct ends *ends, size_t udp_length)
{
	vb_store_be32(b, 0x60000000u | (uint32_t)ends->traffic_class << 20);
	vb_store_be16(b + 4, (uint16_t)udp_length);
	b[6] = PROTOCOL_UDP;
	b[7] = ends->hop_limit;
	memcpy(b + 8, ends->src->raw, 16);
	memcpy(b + 24, ends->dst->raw, 16);
	return IPV6_LENGTH;
}

/* Over IPv6 the UDP checksum is not optional: sockets send it, so the capture has it. RFC 8200, 8.1. */
static uint16_t ipv6_checksum(const uint8_t *ip, const uint8_t *udp, const uint8_t *payload, size_t payload_length)
{
	uint32_t sum = sum16(0, ip + 8, 32);
	sum += (uint32_t)(UDP_LENGTH + payload_length) + PROTOCOL_UDP;
	sum = sum16(sum, udp, UDP_LENGTH);
	uint16_t result = checksum(sum16(sum, payload, payload_length));
	return result ? result : 0xFFFF;
}

void vb_pcap_write(struct vb_pcap *pcap, const struct vb_gid *src, uint16_t src_port, const struct vb_gid *dst,
	uint8_t traffic_class, uint8_t hop_limit, uint16_t ipv4_id, const uint8_t *udp_payload, uint32_t length,
	const char *note)
{
	if (length > PCAP_SNAPLEN - IPV6_LENGTH - UDP_LENGTH ||
		atomic_load_explicit(&pcap->is_over, memory_order_relaxed))
		return;
	uint8_t ip[IPV6_LENGTH + UDP_LENGTH];
	struct ends ends = { src, dst, src_port, traffic_class, hop_limit };
	bool is_ipv4 = vb_gid_is_ipv4(src) && vb_gid_is_ipv4(dst);
	size_t udp_length = UDP_LENGTH + length;
	size_t n = is_ipv4 ? put_ipv4(ip, &ends, ipv4_id, udp_length) : put_ipv6(ip, &ends, udp_length);
	uint8_t *udp = ip + n;
	assert(n + UDP_LENGTH <= sizeof(ip));
	vb_store_be16(udp, src_port);
	vb_store_be16(udp + 2, VB_UDP_PORT);
	vb_store_be16(udp + 4, (uint16_t)udp_length);
	vb_store_be16(udp + 6, 0);
	if (!is_ipv4)
		vb_store_be16(udp + 6, ipv6_checksum(ip, udp, udp_payload, length));

	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	uint64_t ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	uint32_t captured = (uint32_t)(n + udp_length);
	struct enhanced block = { ENHANCED_PACKET, 0, 0, (uint32_t)(ns >> 32), (uint32_t)ns, captured, captured };
	struct tail tail = { 0 };
	struct iovec pieces[8] = { { &block, sizeof(block) }, { ip, n + UDP_LENGTH }, { (void *)udp_payload, length },
		{ (void *)zeros, padding(captured) } };
	int count;
	uint32_t rest = end_block(&tail, note, note ? (uint32_t)strlen(note) : 0, pieces + 4, &count);
	tail.behind.length = block.length = (uint32_t)sizeof(block) + captured + padding(captured) + rest;
	append(pcap, pieces, 4 + count, block.length);
}

void vb_pcap_add_line(struct vb_pcap *pcap, const char *line)
{
	size_t length = strlen(line);
	assert(pcap->comment_bytes <= sizeof(pcap->comment));
	if (pcap->comment_bytes + length + 1 > sizeof(pcap->comment))
		return;
	memcpy(pcap->comment + pcap->comment_bytes, line, length);
	pcap->comment[pcap->comment_bytes + length] = '\n';
	pcap->comment_bytes += (uint32_t)length + 1;
}

/* The section has no interface, and so no packets: libpcap takes no second one of LINKTYPE_RAW. */
void vb_pcap_end(struct vb_pcap *pcap)
{
	const struct timespec moment = { .tv_nsec = 100000 };
	if (atomic_exchange(&pcap->is_over, true) || !pcap->comment_bytes)
		return;
	for (unsigned i = 0; i < 100 && atomic_load(&pcap->writers) > 0; i++)
		clock_nanosleep(
			CLOCK_MONOTONIC, 0, &moment, NULL); /* a write goes on, perhaps of a thread without a core */
	struct section last = section;
	struct tail tail = { 0 };
	struct iovec pieces[5] = { { &last, sizeof(last) } };
	int count;
	uint32_t rest = end_block(&tail, pcap->comment, pcap->comment_bytes - 1, pieces + 1, &count);
	tail.behind.length = last.length = (uint32_t)sizeof(last) + rest;
	long n = syscall(SYS_writev, pcap->fd, pieces, 1 + count);
	assert(n <= (long)last.length);
	(void)n; /* nobody is left to be told */
}

void vb_pcap_write_mad(struct vb_pcap *pcap, const struct vb_gid *src, const struct vb_gid *dst, const uint8_t mad[256])
{
	const struct vb_flow flow = { .src = *src, .dst = *dst, .src_port = MAD_SOURCE_PORT, .dst_port = VB_UDP_PORT };
	uint8_t bytes[VB_MAD_PACKET_BYTES];
	uint32_t length = (uint32_t)vb_mad_packet(&flow, 0, mad, VB_MAD_LENGTH, bytes);
	assert(length == VB_MAD_PACKET_BYTES);

	vb_pcap_write(pcap, src, flow.src_port, dst, 0, MAD_HOP_LIMIT, 0, bytes, length, NULL);
}
