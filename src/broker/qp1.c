/* See qp1.h. */
#include "broker/qp1.h"

#include <errno.h>
#include <time.h> /* for the next one */
#include <linux/errqueue.h>
#include <linux/filter.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "base/invariant.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/packet.h"

#define SOURCE_PORTS 0xC000 /* and above, as RoCEv2 wants them */

#define BATCH    32
#define LOOPBACK 1 /* interface index of lo in every network namespace */

/* The result of one read: a datagram, or several of one flow and length that the kernel merged. Length 0: it is not for
 * us, or its destination is not known. */
struct arrival {
	struct vb_flow flow;
	uint32_t scope, ifindex;
	size_t at, length, segment;
	uint8_t bytes[65536];
};

struct qp1 {
	int send4, send6;
	uint16_t port4, port6;
	uint32_t psn;
	unsigned arrived, next; /* arrivals in the batch; the current one */
	struct arrival arrivals[BATCH];
	uint8_t failed[VB_MAX_HEADER_BYTES + QP1_MAX_LENGTH + VB_ICRC_LENGTH];
};

/* ---- Sending ----------------------------------------------------------------------------------------------------- */

/* An ordinary UDP socket with a source port of the RoCEv2 range; DF set, hence identification 0. */
static int open_sender(sa_family_t family, uint16_t *port)
{
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	int on = 1, probe4 = IP_PMTUDISC_PROBE, probe6 = IPV6_PMTUDISC_PROBE;
	if (family == AF_INET6) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
		setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe6, sizeof(probe6));
		setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof(on));
	} else {
		setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe4, sizeof(probe4));
		setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on));
	}
	/* This socket is never read: datagrams to its port would fill its buffer and leave no room for the network's
	 * errors. */
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &(struct sock_fprog){ .len = 1, .filter = &nothing },
		sizeof(struct sock_fprog));
	for (unsigned attempt = 0; attempt < 32; attempt++) {
		if (getrandom(port, sizeof(*port), 0) != sizeof(*port))
			*port = (uint16_t)random();
		*port |= SOURCE_PORTS;
		struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(*port) };
		struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(*port) };
		if (family == AF_INET6 ? bind(fd, (struct sockaddr *)&six, sizeof(six)) == 0
				       : bind(fd, (struct sockaddr *)&four, sizeof(four)) == 0)
			return fd;
	}
	close(fd);
	return -1;
}

/* The kernel returns the network error of an earlier datagram from the next call, which then sent nothing. */
static int send_datagram(int fd, const struct msghdr *header)
{
	if (sendmsg(fd, header, MSG_NOSIGNAL) >= 0 || sendmsg(fd, header, MSG_NOSIGNAL) >= 0)
		return 0;
	return -errno;
}

int qp1_send(struct qp1 *qp1, const struct vb_gid *from, const struct vb_gid *to, uint32_t scope,
	const uint8_t mad[VB_MAD_LENGTH], uint32_t length)
{
	const bool is_ipv4 = vb_gid_is_ipv4(to);
	if (is_ipv4 != vb_gid_is_ipv4(from) || length < VB_MAD_LENGTH || length > QP1_MAX_LENGTH)
		return -EINVAL;
	const struct vb_flow flow = {
		.src = *from, .dst = *to, .dst_port = VB_UDP_PORT, .src_port = is_ipv4 ? qp1->port4 : qp1->port6
	};
	uint8_t bytes[VB_MAX_HEADER_BYTES + QP1_MAX_LENGTH + VB_ICRC_LENGTH];
	struct iovec io = { bytes, vb_mad_packet(&flow, qp1->psn++, mad, length, bytes) };
	assert(io.iov_len <= sizeof(bytes));
	union {
		char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
		struct cmsghdr align;
	} control = { 0 };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(VB_UDP_PORT) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(VB_UDP_PORT), .sin6_scope_id = scope };
	struct msghdr header = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes };
	if (is_ipv4) {
		struct in_pktinfo info = { 0 };
		memcpy(&info.ipi_spec_dst, from->raw + 12, 4);
		memcpy(&four.sin_addr, to->raw + 12, 4);
		header.msg_name = &four;
		header.msg_namelen = sizeof(four);
		header.msg_controllen = CMSG_SPACE(sizeof(info));
		struct cmsghdr *c = CMSG_FIRSTHDR(&header);
		*c = (struct cmsghdr){
			.cmsg_level = IPPROTO_IP, .cmsg_type = IP_PKTINFO, .cmsg_len = CMSG_LEN(sizeof(info))
		};
		memcpy(CMSG_DATA(c), &info, sizeof(info));
	} else {
		struct in6_pktinfo info = { .ipi6_ifindex = scope };
		memcpy(&info.ipi6_addr, from->raw, 16);
		memcpy(&six.sin6_addr, to->raw, 16);
		header.msg_name = &six;
		header.msg_namelen = sizeof(six);
		header.msg_controllen = CMSG_SPACE(sizeof(info));
		struct cmsghdr *c = CMSG_FIRSTHDR(&header);
		*c = (struct cmsghdr){
			.cmsg_level = IPPROTO_IPV6, .cmsg_type = IPV6_PKTINFO, .cmsg_len = CMSG_LEN(sizeof(info))
		};
		memcpy(CMSG_DATA(c), &info, sizeof(info));
	}
	return send_datagram(is_ipv4 ? qp1->send4 : qp1->send6, &header);
}

/* ---- Receiving --------------------------------------------------------------------------------------------------- */

static struct vb_gid gid_of_ipv4(const void *address)
{
	const uint8_t *b = address;
	return vb_gid_from_ipv4(b[0], b[1], b[2], b[3]);
}

union sender {
	struct sockaddr_in four;
	struct sockaddr_in6 six;
};

/* Reads the control messages of a datagram. */
static void note_datagram(
	struct arrival *arrival, sa_family_t family, const union sender *from, struct msghdr *header, size_t got)
{
	arrival->at = arrival->length = 0;
	arrival->segment = got;
	arrival->scope = arrival->ifindex = 0;
	bool has_destination = false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo info;
			memcpy(&info, CMSG_DATA(c), sizeof(info));
			memcpy(arrival->flow.dst.raw, &info.ipi6_addr, 16);
			arrival->ifindex = info.ipi6_ifindex;
			arrival->scope = qp1_is_link_local(&arrival->flow.dst) ? info.ipi6_ifindex : 0;
			has_destination = true;
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo info;
			memcpy(&info, CMSG_DATA(c), sizeof(info));
			arrival->ifindex = (uint32_t)info.ipi_ifindex;
			arrival->flow.dst = gid_of_ipv4(&info.ipi_addr);
			has_destination = true;
		} else if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
			int segment;
			memcpy(&segment, CMSG_DATA(c), sizeof(segment));
			if (segment > 0)
				arrival->segment = (size_t)segment;
		}
	}
	if (family == AF_INET6)
		memcpy(arrival->flow.src.raw, &from->six.sin6_addr, 16);
	else
		arrival->flow.src = gid_of_ipv4(&from->four.sin_addr);
	arrival->flow.src_port = ntohs(from->four.sin_port);
	arrival->flow.dst_port = VB_UDP_PORT;
	if (has_destination && !(header->msg_flags & MSG_TRUNC))
		arrival->length = got;
	assert(arrival->length == 0 || arrival->segment > 0); /* next_mad goes forward */
}

/* False: nothing to read. */
static bool read_batch(struct qp1 *qp1, int fd, sa_family_t family)
{
	union {
		char bytes[256];
		struct cmsghdr align;
	} control[BATCH];
	union sender from[BATCH];
	struct iovec io[BATCH];
	struct mmsghdr headers[BATCH];
	for (unsigned i = 0; i < BATCH; i++) {
		io[i] = (struct iovec){ qp1->arrivals[i].bytes, sizeof(qp1->arrivals[i].bytes) };
		headers[i].msg_hdr = (struct msghdr){ .msg_name = &from[i],
			.msg_namelen = sizeof(from[i]),
			.msg_iov = &io[i],
			.msg_iovlen = 1,
			.msg_control = control[i].bytes,
			.msg_controllen = sizeof(control[i].bytes) };
	}
	assert(qp1->next == qp1->arrived);
	qp1->arrived = qp1->next = 0;
	int got;
	do
		got = recvmmsg(fd, headers, BATCH, MSG_DONTWAIT, NULL);
	while (got < 0 && (errno == EINTR || errno == ECONNREFUSED));
	if (got <= 0)
		return false;
	for (int i = 0; i < got; i++)
		note_datagram(&qp1->arrivals[i], family, &from[i], &headers[i].msg_hdr, headers[i].msg_len);
	qp1->arrived = (unsigned)got;
	return true;
}

/* The MAD in a packet, or NULL: not for QP1, damaged, or not a MAD. */
static const uint8_t *find_mad(const struct vb_flow *flow, const uint8_t *bytes, size_t length, uint32_t *mad_length)
{
	struct vb_packet packet;
	uint16_t id = 0;
	if (vb_packet_decode(&packet, bytes, length) != VB_DECODE_OK)
		return NULL;
	if (packet.opcode != VB_UD_SEND_ONLY || packet.dest_qpn != VB_QPN_GSI || packet.qkey != VB_QKEY_GSI ||
		packet.payload_length < VB_MAD_LENGTH || packet.payload_length > QP1_MAX_LENGTH)
		return NULL;
	if (!vb_icrc_verify(flow, bytes, length, false, &id) && !vb_icrc_verify(flow, bytes, length, true, &id))
		return NULL;
	*mad_length = packet.payload_length;
	return packet.payload;
}

/* The next MAD of an arrival; false: none is left. */
static bool next_mad(struct arrival *arrival, struct qp1_mad *mad)
{
	while (arrival->at < arrival->length) {
		size_t left = arrival->length - arrival->at;
		const uint8_t *bytes = arrival->bytes + arrival->at;
		arrival->at += arrival->segment;
		mad->bytes = find_mad(
			&arrival->flow, bytes, left < arrival->segment ? left : arrival->segment, &mad->length);
		if (!mad->bytes)
			continue;
		assert(mad->length >= VB_MAD_LENGTH && mad->length <= QP1_MAX_LENGTH);
		mad->from = arrival->flow.src;
		mad->to = arrival->flow.dst;
		mad->scope = arrival->scope;
		mad->is_local = arrival->ifindex == LOOPBACK;
		mad->cm = NULL;
		vb_mad_header_decode(&mad->header, mad->bytes);
		return true;
	}
	return false;
}

bool qp1_receive(struct qp1 *qp1, int socket, sa_family_t family, struct qp1_mad *mad)
{
	do
		for (; qp1->next < qp1->arrived; qp1->next++)
			if (next_mad(&qp1->arrivals[qp1->next], mad))
				return true;
	while (read_batch(qp1, socket, family));
	return false;
}

bool qp1_has_more(const struct qp1 *qp1)
{
	return qp1->next < qp1->arrived;
}

/* ---- Failures ---------------------------------------------------------------------------------------------------- */

void qp1_sockets(const struct qp1 *qp1, int fds[2])
{
	fds[0] = qp1->send4;
	fds[1] = qp1->send6;
}

static int error_of(struct msghdr *header)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		bool is_ours = (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
			       (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR);
		struct sock_extended_err error;
		if (is_ours && c->cmsg_len >= CMSG_LEN(sizeof(error))) {
			memcpy(&error, CMSG_DATA(c), sizeof(error));
			return (int)error.ee_errno;
		}
	}
	return 0;
}

/* Reads one error; false: none is left. A failure that names no MAD has no bytes. */
static bool read_failure(struct qp1 *qp1, sa_family_t family, struct qp1_failure *failure)
{
	union {
		char bytes[256];
		struct cmsghdr align;
	} control;
	union {
		struct sockaddr_in four;
		struct sockaddr_in6 six;
	} to = { 0 };
	struct iovec io = { qp1->failed, sizeof(qp1->failed) };
	struct msghdr header = { .msg_name = &to,
		.msg_namelen = sizeof(to),
		.msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };
	ssize_t got = recvmsg(family == AF_INET ? qp1->send4 : qp1->send6, &header, MSG_ERRQUEUE | MSG_DONTWAIT);
	if (got < 0)
		return false;
	struct vb_packet packet;
	bool is_mad = vb_packet_decode(&packet, qp1->failed, (size_t)got) == VB_DECODE_OK &&
		      packet.dest_qpn == VB_QPN_GSI && packet.payload_length >= VB_MAD_LENGTH;
	failure->bytes = is_mad ? packet.payload : NULL;
	failure->error = error_of(&header);
	if (family == AF_INET)
		failure->to = gid_of_ipv4(&to.four.sin_addr);
	else
		memcpy(failure->to.raw, &to.six.sin6_addr, sizeof(failure->to.raw));
	return true;
}

/* The kernel may set the socket's error after its queue was read; clear it, or POLLERR stays. */
static void forget_error(int fd)
{
	int error;
	socklen_t length = sizeof(error);
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
}

bool qp1_is_final(int error)
{
	return error == EHOSTUNREACH || error == ENETUNREACH || error == EACCES || error == ECONNREFUSED;
}

bool qp1_next_failure(struct qp1 *qp1, struct qp1_failure *failure)
{
	while (read_failure(qp1, AF_INET, failure) || read_failure(qp1, AF_INET6, failure))
		if (failure->bytes && qp1_is_final(failure->error))
			return true;
	forget_error(qp1->send4);
	forget_error(qp1->send6);
	return false;
}

struct qp1 *qp1_create(void)
{
	struct qp1 *qp1 = calloc(1, sizeof(*qp1));
	if (!qp1)
		return NULL;
	qp1->send4 = open_sender(AF_INET, &qp1->port4);
	qp1->send6 = open_sender(AF_INET6, &qp1->port6);
	return qp1;
}

void qp1_destroy(struct qp1 *qp1)
{
	if (qp1->send4 >= 0)
		close(qp1->send4);
	if (qp1->send6 >= 0)
		close(qp1->send6);
	free(qp1);
}
