/* Captures of the packets that a process sends and receives. IP and UDP headers, which a socket does not show, are
 * rebuilt. The format is classic pcap with nanosecond stamps and LINKTYPE_RAW (101): packets begin with the IP header.
 * Holds: each packet is one append in one system call. So lanes may write at once without a lock, and a process that is
 * killed leaves every packet but perhaps the last, which the kernel may cut at a page.
 * Not here: libpcap, because every program that loads the library would then load that too. */
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

#define PCAP_MAGIC_NANOSECONDS 0xA1B23C4Du
#define PCAP_LINKTYPE_RAW      101
#define PCAP_SNAPLEN           65535

enum { IPV4_LENGTH = 20, IPV6_LENGTH = 40, UDP_LENGTH = 8, PROTOCOL_UDP = 17, FLAG_DF = 0x4000 };
enum { MAD_SOURCE_PORT = 0xC000, MAD_HOP_LIMIT = 64 };

struct vb_pcap {
	int fd;
	atomic_bool has_failed; /* the disk is full: records behind a cut one could not be read */
};

struct file_header {
	uint32_t magic;
	uint16_t major, minor;
	int32_t zone;
	uint32_t accuracy, snaplen, linktype;
};

struct record_header {
	uint32_t seconds, nanoseconds, captured, original;
};

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
	struct file_header header = { .magic = PCAP_MAGIC_NANOSECONDS,
		.major = 2,
		.minor = 4,
		.snaplen = PCAP_SNAPLEN,
		.linktype = PCAP_LINKTYPE_RAW };
	ssize_t n = write(made->fd, &header, sizeof(header));
	if (n != sizeof(header)) {
		int error = n < 0 ? -errno : -ENOSPC;
		vb_pcap_close(made);
		return error;
	}
	assert(made->fd >= 0 && !made->has_failed);
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
	uint8_t traffic_class, uint8_t hop_limit, uint16_t ipv4_id, const uint8_t *udp_payload, uint32_t length)
{
	if (length > PCAP_SNAPLEN - IPV6_LENGTH - UDP_LENGTH ||
		atomic_load_explicit(&pcap->has_failed, memory_order_relaxed))
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
	uint32_t captured = (uint32_t)(n + udp_length);
	struct record_header record = { (uint32_t)now.tv_sec, (uint32_t)now.tv_nsec, captured, captured };
	struct iovec pieces[] = { { &record, sizeof(record) }, { ip, n + UDP_LENGTH },
		{ (void *)udp_payload, length } };
	if (syscall(SYS_writev, pcap->fd, pieces, 3) != (long)(sizeof(record) + captured))
		atomic_store_explicit(&pcap->has_failed, true, memory_order_relaxed);
}

void vb_pcap_write_mad(struct vb_pcap *pcap, const struct vb_gid *src, const struct vb_gid *dst, const uint8_t mad[256])
{
	const struct vb_flow flow = { .src = *src, .dst = *dst, .src_port = MAD_SOURCE_PORT, .dst_port = VB_UDP_PORT };
	uint8_t bytes[VB_MAD_PACKET_BYTES];
	uint32_t length = (uint32_t)vb_mad_packet(&flow, 0, mad, VB_MAD_LENGTH, bytes);
	assert(length == VB_MAD_PACKET_BYTES);

	vb_pcap_write(pcap, src, flow.src_port, dst, 0, MAD_HOP_LIMIT, 0, bytes, length);
}
