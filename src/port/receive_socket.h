/* The options of a slot's UDP socket, for whoever reads from it: a port, or a courier. */
#ifndef VB_PORT_RECEIVE_SOCKET_H
#define VB_PORT_RECEIVE_SOCKET_H

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif
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

/* All of it may have been set before, by the broker or by another port. What an older kernel lacks is done without. */
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
		vb_set_option(fd, IPPROTO_IP, IP_PKTINFO, 0);
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

#endif
