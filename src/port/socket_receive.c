/* A carrier of UDP sockets, receiving: reads several messages in one system call, and tells from where each came.
 *
 * Holds: a read takes one message while little comes, and more while reads come back full, but no more than stay in the
 * core's cache until they are looked at. Bytes are not copied.
 * Not here: what a forwarder's message begins with (channel_carrier.c). */
#include "port/sockets.h"

#include <linux/udp.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/invariant.h"

#ifndef SO_RXQ_OVFL
#define SO_RXQ_OVFL 40
#endif

#define HOT_BYTES 131072

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

/* Says what the kernel may write, and where. The kernel writes the lengths of what it returned over those of what there
 * is room for. A forwarder's message has name and control data inside. */
static void aim(struct vb_receiver *receiver, unsigned i)
{
	struct msghdr *header = &receiver->headers[i].msg_hdr;

	*header = (struct msghdr){ .msg_iov = receiver->iov[i], .msg_iovlen = 2 };
	if (receiver->carried)
		return;
	header->msg_iov = &receiver->iov[i][1];
	header->msg_iovlen = 1;
	header->msg_name = &receiver->names[i];
	header->msg_namelen = sizeof(receiver->names[i]);
	header->msg_control = receiver->control[i];
	header->msg_controllen = VB_RX_CONTROL_BYTES;
}

void vb_receiver_init(struct vb_receiver *receiver)
{
	receiver->want = 1;
	for (unsigned i = 0; i < VB_CARRIER_RX; i++) {
		if (receiver->carried)
			receiver->iov[i][0] = (struct iovec){ &receiver->carried[i], sizeof(receiver->carried[i]) };
		receiver->iov[i][1] =
			(struct iovec){ receiver->buffers + (size_t)i * VB_RX_BUFFER_BYTES, VB_RX_BUFFER_BYTES };
		aim(receiver, i);
	}
}

/* How many messages, or -1 with errno. */
static long ask_kernel(struct vb_receiver *receiver, int fd)
{
	assert(receiver->want >= 1);
	if (receiver->want > 1)
		return syscall(SYS_recvmmsg, fd, receiver->headers, receiver->want, MSG_DONTWAIT, NULL);
	long length = syscall(SYS_recvmsg, fd, &receiver->headers[0].msg_hdr, MSG_DONTWAIT);
	if (length < 0)
		return -1;
	receiver->headers[0].msg_len = (unsigned)length;
	return 1;
}

/* How many messages like these a read may fill so that they are still in the core's cache when they are looked at. */
static unsigned how_many_stay_hot(const struct vb_receiver *receiver)
{
	size_t bytes = 1;

	for (unsigned i = 0; i < receiver->count; i++)
		bytes += receiver->headers[i].msg_len;
	size_t many = (size_t)HOT_BYTES * receiver->count / bytes;
	return many < 2 ? 2 : many < VB_CARRIER_RX ? (unsigned)many : VB_CARRIER_RX;
}

/* One at a time while little comes, for that is the fastest single read; more while reads come back full. */
static void adapt(struct vb_receiver *receiver)
{
	if (receiver->count == 0) {
		receiver->want = 1;
		return;
	}
	unsigned most = how_many_stay_hot(receiver);
	unsigned want = receiver->count == receiver->want ? receiver->want * 2 : receiver->count;
	receiver->want = want < most ? want : most;
	assert(receiver->want >= 1 && receiver->want <= VB_CARRIER_RX);
}

void vb_sockets_read(struct vb_sockets *sockets)
{
	struct vb_receiver *receiver = &sockets->receiver;

	for (unsigned i = 0; i < receiver->count; i++)
		aim(receiver, i);
	long count = ask_kernel(receiver, sockets->receive_fd);
	receiver->count = count > 0 ? (unsigned)count : 0; /* errors of a datagram socket pass */
	if (count < 0)
		vb_sockets_note_errno(sockets, errno);
	assert(receiver->count <= receiver->want);
}

/* ---- From where a message came ----------------------------------------------------------------------------------- */

static void gid_of_ipv4(struct vb_gid *gid, const void *address)
{
	*gid = vb_gid_from_ipv4(0, 0, 0, 0);
	memcpy(gid->raw + 12, address, 4);
}

static void read_name(struct vb_path *path, const struct sockaddr_storage *name)
{
	if (name->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)name;
		memcpy(path->src.raw, &in6->sin6_addr, 16);
		path->src_port = ntohs(in6->sin6_port);
	} else {
		const struct sockaddr_in *in = (const struct sockaddr_in *)name;
		gid_of_ipv4(&path->src, &in->sin_addr);
		path->src_port = ntohs(in->sin_port);
	}
}

/* Type of service comes as a byte, traffic class and hop limits as an int; all are little-endian and below 256. */
static void read_ip_cmsg(struct vb_path *path, const struct cmsghdr *cmsg)
{
	const uint8_t *data = CMSG_DATA(cmsg);

	if (cmsg->cmsg_type == IP_PKTINFO) {
		struct in_pktinfo info;
		memcpy(&info, data, sizeof(info));
		gid_of_ipv4(&path->dst, &info.ipi_addr);
		path->ifindex = (uint32_t)info.ipi_ifindex;
	} else if (cmsg->cmsg_type == IP_TOS) {
		path->traffic_class = data[0];
	} else if (cmsg->cmsg_type == IP_TTL) {
		path->hop_limit = data[0];
	}
}

static void read_ipv6_cmsg(struct vb_path *path, const struct cmsghdr *cmsg)
{
	const uint8_t *data = CMSG_DATA(cmsg);

	if (cmsg->cmsg_type == IPV6_PKTINFO) {
		struct in6_pktinfo info;
		memcpy(&info, data, sizeof(info));
		memcpy(path->dst.raw, &info.ipi6_addr, 16);
		path->ifindex = info.ipi6_ifindex;
	} else if (cmsg->cmsg_type == IPV6_TCLASS) {
		path->traffic_class = data[0];
	} else if (cmsg->cmsg_type == IPV6_HOPLIMIT) {
		path->hop_limit = data[0];
	}
}

static void note_overflow(struct vb_receiver *receiver, const void *data)
{
	uint32_t drops;

	memcpy(&drops, data, sizeof(drops));
	if (!receiver->knows_overflow)
		receiver->overflow_seen = drops; /* of a forwarder's socket: dropped before we had it */
	receiver->knows_overflow = true;
	/* Reads are in order, but the count may have been read ahead when the carrier was opened. */
	if ((int32_t)(drops - receiver->overflow_seen) <= 0)
		return;
	receiver->overflow += drops - receiver->overflow_seen;
	receiver->overflow_seen = drops;
}

static uint32_t segment_of(const struct cmsghdr *cmsg, uint32_t length)
{
	int segment;

	memcpy(&segment, CMSG_DATA(cmsg), sizeof(segment));
	return segment > 0 ? (uint32_t)segment : length;
}

static void describe(struct vb_receiver *receiver, struct mmsghdr *header, struct vb_rx_message *m)
{
	struct msghdr *message = &header->msg_hdr;

	m->path = (struct vb_path){ .hop_limit = 0 };
	m->length = m->segment = header->msg_len;
	if (!message->msg_name || message->msg_namelen == 0 || message->msg_flags & MSG_TRUNC) {
		m->length = 0;
		return;
	}
	read_name(&m->path, message->msg_name);
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(message); cmsg; cmsg = CMSG_NXTHDR(message, cmsg)) {
		if (cmsg->cmsg_level == IPPROTO_IPV6)
			read_ipv6_cmsg(&m->path, cmsg);
		else if (cmsg->cmsg_level == IPPROTO_IP)
			read_ip_cmsg(&m->path, cmsg);
		else if (cmsg->cmsg_level == IPPROTO_UDP && cmsg->cmsg_type == UDP_GRO)
			m->segment = segment_of(cmsg, m->length);
		else if (cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SO_RXQ_OVFL)
			note_overflow(receiver, CMSG_DATA(cmsg));
	}
	m->overflow = (uint32_t)receiver->overflow;
}

void vb_receiver_describe(struct vb_receiver *receiver, struct vb_rx_message messages[VB_CARRIER_RX])
{
	adapt(receiver);
	for (unsigned i = 0; i < receiver->count; i++) {
		messages[i].bytes = receiver->iov[i][1].iov_base;
		describe(receiver, &receiver->headers[i], &messages[i]);
		assert(messages[i].length <= VB_RX_BUFFER_BYTES);
		assert(messages[i].segment > 0 || messages[i].length == 0);
	}
}
