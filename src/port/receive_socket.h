/* The options and groups of a slot's UDP socket, for any process that has it: a port's, a forwarder, the broker. */
#ifndef VB_PORT_RECEIVE_SOCKET_H
#define VB_PORT_RECEIVE_SOCKET_H

#include <errno.h>
#include <linux/sock_diag.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include "base/gid.h"

#ifndef SO_RXQ_OVFL
#define SO_RXQ_OVFL 40
#endif
#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29
#endif

static inline void vb_set_option(int fd, int level, int name, int value)
{
	setsockopt(fd, level, name, &value, sizeof(value));
}

/* gVisor takes filters and steering programs and runs none. It counts no drops either, which every Linux since 4.12
 * does. */
static inline bool vb_counts_drops(int fd)
{
	uint32_t memory[SK_MEMINFO_VARS];
	socklen_t length = sizeof(memory);

	return getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &length) == 0;
}

/* Options may have been set before, by the broker or by another port. Options that an older kernel lacks are done
 * without. */
static inline void vb_prepare_receive_socket(int fd)
{
	int family = AF_INET6;
	socklen_t length = sizeof(family);

	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length);
	if (family == AF_INET6) {
		vb_set_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1); /* tells mapped addresses of IPv4 packets too */
		vb_set_option(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
		vb_set_option(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
		vb_set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
		/* gVisor tells an IPv4 packet's address by IPv4's option alone. */
		vb_set_option(fd, IPPROTO_IP, IP_PKTINFO, !vb_counts_drops(fd));
		vb_set_option(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
	} else {
		vb_set_option(fd, IPPROTO_IP, IP_PKTINFO, 1);
	}
	vb_set_option(fd, IPPROTO_IP, IP_RECVTOS, 1);
	vb_set_option(fd, IPPROTO_IP, IP_RECVTTL, 1);
	vb_set_option(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
	vb_set_option(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
	vb_set_option(fd, IPPROTO_UDP, UDP_GRO, 1);
}

/* The socket joins a multicast group on an interface, or leaves it. -errno. */
static inline int vb_change_membership(int fd, const struct vb_gid *group, uint32_t ifindex, bool join)
{
	struct ip_mreqn four = { .imr_ifindex = (int)ifindex };
	struct ipv6_mreq six = { .ipv6mr_interface = ifindex };
	int rc;

	memcpy(&four.imr_multiaddr, group->raw + 12, 4);
	memcpy(&six.ipv6mr_multiaddr, group->raw, 16);
	if (vb_gid_is_ipv4(group))
		rc = setsockopt(fd, IPPROTO_IP, join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &four, sizeof(four));
	else
		rc = setsockopt(fd, IPPROTO_IPV6, join ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, &six, sizeof(six));
	return rc < 0 ? -errno : 0;
}

#endif
