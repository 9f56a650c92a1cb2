/* A carrier of UDP sockets, sending: gives each message a socket, and hands the messages of a socket to the kernel in
 * one system call.
 *
 * A train is one send with UDP_SEGMENT. The kernel numbers the IPv4 identification of its segments from 0. Checksums
 * stay on: UDP_SEGMENT and GRO need them, and the kernel leaves them to the device or, on loopback, to nobody.
 * Holds: messages of one socket leave in their order. A failed one does not hold up those behind it.
 * Not here: making sockets (send_pool.c), what becomes of a refused train (frame_send.c). */
#include "port/sockets.h"

#include <ifaddrs.h>
#include <linux/udp.h>
#include <net/if.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/invariant.h"
#include "wire/packet.h"

#define SEND_FLAGS (MSG_DONTWAIT | MSG_NOSIGNAL)
#define SCOPE_LIFE (1 * VB_S)

/* ---- Which socket ------------------------------------------------------------------------------------------------ */

static uint16_t key_of(const struct vb_carrier *carrier, const struct vb_tx_message *m, bool is_ipv4)
{
	return (uint16_t)(m->steering | is_ipv4 << 8 | (m->flow & carrier->flow_mask) << 9);
}

void vb_sockets_route(struct vb_carrier *carrier, struct vb_tx_message *messages, unsigned count)
{
	struct vb_send_pool *pool = &vb_sockets_of(carrier)->sender.pool;

	for (unsigned i = 0; i < count; i++) {
		struct vb_tx_message *m = &messages[i];
		bool is_ipv4 = vb_gid_is_ipv4(m->dst);
		struct vb_send_socket *socket = vb_send_pool_get(pool, key_of(carrier, m, is_ipv4), is_ipv4, m->flow);
		m->error = socket ? 0 : errno;
		if (!socket)
			continue;
		assert(socket->key == key_of(carrier, m, is_ipv4));
		m->socket = (uint8_t)(socket - pool->sockets);
		m->src_port = socket->port;
	}
}

/* ---- Addresses --------------------------------------------------------------------------------------------------- */

static bool needs_scope(const struct vb_gid *gid)
{
	return gid->raw[0] == 0xff || (gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80);
}

static uint32_t find_interface(const struct vb_gid *address)
{
	struct ifaddrs *all = NULL;
	uint32_t found = 0;

	if (getifaddrs(&all) < 0)
		return 0;
	for (struct ifaddrs *one = all; one && !found; one = one->ifa_next) {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)one->ifa_addr;
		if (in6 && in6->sin6_family == AF_INET6 && memcmp(&in6->sin6_addr, address->raw, 16) == 0)
			found = if_nametoindex(one->ifa_name);
	}
	freeifaddrs(all);
	return found;
}

/* The interface that has an address, as of a second ago at most; 0 when none has. */
static uint32_t interface_of(struct vb_sender *sender, const struct vb_gid *address, vb_time now)
{
	struct vb_scope *scope = NULL;

	for (unsigned i = 0; i < VB_SCOPES && !scope; i++)
		if (vb_gid_equal(&sender->scopes[i].address, address))
			scope = &sender->scopes[i];
	if (scope && vb_time_since(scope->found_at, now) < SCOPE_LIFE)
		return scope->ifindex;
	if (!scope)
		scope = &sender->scopes[sender->scope_next++ % VB_SCOPES];
	*scope = (struct vb_scope){ *address, find_interface(address), now };
	return scope->ifindex;
}

/* ---- One message ------------------------------------------------------------------------------------------------- */

static void put_cmsg(struct msghdr *header, int level, int type, const void *data, size_t length)
{
	struct cmsghdr *cmsg = (struct cmsghdr *)((uint8_t *)header->msg_control + header->msg_controllen);

	cmsg->cmsg_level = level;
	cmsg->cmsg_type = type;
	cmsg->cmsg_len = CMSG_LEN(length);
	memcpy(CMSG_DATA(cmsg), data, length);
	header->msg_controllen += CMSG_SPACE(length);
}

static void put_ipv4_address(struct msghdr *header, struct sockaddr_in *name, const struct vb_tx_message *m)
{
	struct in_pktinfo source = { .ipi_ifindex = 0 };

	*name = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(VB_UDP_PORT) };
	memcpy(&name->sin_addr, m->dst->raw + 12, 4);
	memcpy(&source.ipi_spec_dst, m->src->raw + 12, 4);
	header->msg_name = name;
	header->msg_namelen = sizeof(*name);
	put_cmsg(header, IPPROTO_IP, IP_PKTINFO, &source, sizeof(source));
}

static void put_ipv6_address(struct vb_sender *sender, struct msghdr *header, struct sockaddr_in6 *name,
	const struct vb_tx_message *m, vb_time now)
{
	struct in6_pktinfo source = { .ipi6_ifindex = 0 };

	*name = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(VB_UDP_PORT) };
	memcpy(&name->sin6_addr, m->dst->raw, 16);
	memcpy(&source.ipi6_addr, m->src->raw, 16);
	if (needs_scope(m->dst))
		name->sin6_scope_id = source.ipi6_ifindex = interface_of(sender, m->src, now);
	header->msg_name = name;
	header->msg_namelen = sizeof(*name);
	put_cmsg(header, IPPROTO_IPV6, IPV6_PKTINFO, &source, sizeof(source));
}

/* Type of service and hop limit, where they differ from the socket's. */
static void put_ip_fields(struct msghdr *header, const struct vb_tx_message *m, bool is_ipv4)
{
	int traffic_class = m->traffic_class, limit = m->hop_limit;

	if (traffic_class)
		put_cmsg(header, is_ipv4 ? IPPROTO_IP : IPPROTO_IPV6, is_ipv4 ? IP_TOS : IPV6_TCLASS, &traffic_class,
			sizeof(traffic_class));
	if (limit != VB_CARRIER_HOPS)
		put_cmsg(header, is_ipv4 ? IPPROTO_IP : IPPROTO_IPV6, is_ipv4 ? IP_TTL : IPV6_HOPLIMIT, &limit,
			sizeof(limit));
}

static void put_header(struct vb_sender *sender, unsigned index, const struct vb_tx_message *m, vb_time now)
{
	struct msghdr *header = &sender->headers[index].msg_hdr;
	bool is_ipv4 = vb_gid_is_ipv4(m->dst);

	assert(m->iov_count <= VB_CARRIER_IOV);
	*header = (struct msghdr){
		.msg_iov = (struct iovec *)m->iov, .msg_iovlen = m->iov_count, .msg_control = sender->control[index]
	};
	if (is_ipv4)
		put_ipv4_address(header, &sender->names[index].ipv4, m);
	else
		put_ipv6_address(sender, header, &sender->names[index].ipv6, m, now);
	put_ip_fields(header, m, is_ipv4);
	if (m->segment)
		put_cmsg(header, IPPROTO_UDP, UDP_SEGMENT, &m->segment, sizeof(m->segment));
	assert(header->msg_controllen <= VB_TX_CONTROL_BYTES);
}

/* ---- To the kernel ----------------------------------------------------------------------------------------------- */

/* Sends headers [first, first + count) from one socket. Returns how many the kernel took; on 0, errno says why the
 * first was not. These are system calls of our own, here and in socket_receive.c: the C library's functions are
 * cancellation points, and a thread that is cancelled here would take the lane's mutex with it. */
static unsigned send_some(struct vb_sender *sender, int fd, unsigned first, unsigned count)
{
	long sent;

	do {
		if (count == 1)
			sent = syscall(SYS_sendmsg, fd, &sender->headers[first].msg_hdr, SEND_FLAGS) < 0 ? -1 : 1;
		else
			sent = syscall(SYS_sendmmsg, fd, &sender->headers[first], count, SEND_FLAGS);
	} while (sent < 0 && errno == EINTR);
	return sent > 0 ? (unsigned)sent : 0;
}

/* Sends messages order[first, first + count), all of one socket. */
static void send_run(struct vb_sockets *sockets, struct vb_tx_message *messages, unsigned first, unsigned count)
{
	struct vb_sender *sender = &sockets->sender;
	int fd = sender->pool.sockets[messages[sender->order[first]].socket].fd;

	while (count) {
		unsigned sent = send_some(sender, fd, first, count);
		if (sent == 0) {
			int error = errno;
			vb_sockets_note_errno(sockets, error);
			messages[sender->order[first]].error = error;
			sent = 1;
		}
		assert(sent <= count);
		first += sent;
		count -= sent;
	}
}

/* Orders messages by socket and keeps the order within each: one system call a socket. Returns how many there are. */
static unsigned order_by_socket(struct vb_sender *sender, const struct vb_tx_message *messages, unsigned count)
{
	unsigned ordered = 0;

	for (unsigned i = 0; i < count; i++) {
		unsigned at = ordered;
		if (messages[i].error)
			continue;
		for (; at > 0 && messages[sender->order[at - 1]].socket > messages[i].socket; at--)
			sender->order[at] = sender->order[at - 1];
		sender->order[at] = (uint8_t)i;
		ordered++;
	}
	assert(ordered <= VB_CARRIER_TX);
	return ordered;
}

void vb_sockets_send(struct vb_carrier *carrier, struct vb_tx_message *messages, unsigned count, vb_time now)
{
	struct vb_sockets *sockets = vb_sockets_of(carrier);
	struct vb_sender *sender = &sockets->sender;

	assert(count <= VB_CARRIER_TX);
	unsigned ordered = order_by_socket(sender, messages, count);
	for (unsigned i = 0; i < ordered; i++)
		put_header(sender, i, &messages[sender->order[i]], now);
	for (unsigned first = 0, end; first < ordered; first = end) {
		for (end = first + 1; end < ordered; end++)
			if (messages[sender->order[end]].socket != messages[sender->order[first]].socket)
				break;
		send_run(sockets, messages, first, end - first);
	}
}
