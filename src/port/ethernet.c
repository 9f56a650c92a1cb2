/* Packet sockets (packet(7)).
 * Holds: a socket is bound to its interface before it receives anything, so that no frame of another interface is seen.
 * Not here: which frames a QP wants (host/frames.c, roce/steering.c). */
#include "port/ethernet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/ethernet.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "base/invariant.h"

#define RECEIVE_BUFFER (4 << 20)
#define MAC_BYTES      (2 * VB_MAC_LENGTH) /* the bytes before a VLAN tag */

_Static_assert(sizeof(struct vb_iov) == sizeof(struct iovec) &&
		       offsetof(struct vb_iov, base) == offsetof(struct iovec, iov_base) &&
		       offsetof(struct vb_iov, length) == offsetof(struct iovec, iov_len),
	"scatter lists are passed through");

int vb_ethernet_open_sender(void)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return fd < 0 ? -errno : fd;
}

static int bind_to(int fd, uint32_t ifindex)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)ifindex
	};
	int one = 1, bytes = RECEIVE_BUFFER;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof(one)) < 0 ||
		bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return 0;
}

int vb_ethernet_open_receiver(uint32_t ifindex)
{
	int fd = vb_ethernet_open_sender();
	int rc = fd < 0 ? fd : bind_to(fd, ifindex);

	if (rc < 0 && fd >= 0)
		close(fd);
	return rc < 0 ? rc : fd;
}

int vb_ethernet_send(int fd, uint32_t ifindex, const struct vb_iov *iov, unsigned iov_count)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET, .sll_ifindex = (int)ifindex, .sll_halen = VB_MAC_LENGTH
	};
	struct msghdr message = { .msg_name = &address,
		.msg_namelen = sizeof(address),
		.msg_iov = (struct iovec *)iov,
		.msg_iovlen = iov_count };

	return syscall(SYS_sendmsg, fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? errno : 0;
}

/* The tag that was taken off the frame, from the ancillary data. */
static bool find_vlan(struct msghdr *message, uint16_t tag[2])
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		struct tpacket_auxdata aux;
		if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA ||
			c->cmsg_len < CMSG_LEN(sizeof(aux)))
			continue;
		memcpy(&aux, CMSG_DATA(c), sizeof(aux));
		if (!(aux.tp_status & TP_STATUS_VLAN_VALID))
			return false;
		tag[0] = htons(aux.tp_status & TP_STATUS_VLAN_TPID_VALID ? aux.tp_vlan_tpid : ETHERTYPE_VLAN);
		tag[1] = htons(aux.tp_vlan_tci);
		return true;
	}
	return false;
}

bool vb_ethernet_receive(int fd, uint8_t *buffer, size_t size, struct vb_ethernet_frame *frame)
{
	struct sockaddr_ll from = { .sll_pkttype = 0 };
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	struct iovec iov = { buffer + VB_VLAN_LENGTH, size - VB_VLAN_LENGTH };
	struct msghdr message = { .msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control) };
	uint16_t tag[2];

	assert(size > VB_VLAN_LENGTH + VB_ETHERNET_LENGTH);
	ssize_t length = syscall(SYS_recvmsg, fd, &message, MSG_DONTWAIT);
	if (length < VB_ETHERNET_LENGTH || (message.msg_flags & MSG_TRUNC))
		return false;
	*frame = (struct vb_ethernet_frame){ buffer + VB_VLAN_LENGTH, (uint32_t)length,
		from.sll_pkttype == PACKET_OUTGOING };
	if (find_vlan(&message, tag)) {
		memmove(buffer, buffer + VB_VLAN_LENGTH, MAC_BYTES);
		memcpy(buffer + MAC_BYTES, tag, sizeof(tag));
		frame->bytes = buffer;
		frame->length += VB_VLAN_LENGTH;
	}
	assert(frame->length <= size);
	return true;
}

static int change_membership(int fd, int option, uint32_t ifindex, const struct vb_ethernet_filter *filter)
{
	struct packet_mreq request = { .mr_ifindex = (int)ifindex, .mr_alen = VB_MAC_LENGTH };

	switch (filter->interest) {
	case VB_ETHERNET_OWN:
		return 0;
	case VB_ETHERNET_ADDRESS:
		request.mr_type = filter->mac[0] & 1 ? PACKET_MR_MULTICAST : PACKET_MR_UNICAST;
		memcpy(request.mr_address, filter->mac, VB_MAC_LENGTH);
		break;
	case VB_ETHERNET_ALL_MULTICAST:
		request.mr_type = PACKET_MR_ALLMULTI;
		break;
	case VB_ETHERNET_EVERYTHING:
		request.mr_type = PACKET_MR_PROMISC;
		break;
	}
	return setsockopt(fd, SOL_PACKET, option, &request, sizeof(request)) < 0 ? -errno : 0;
}

int vb_ethernet_listen(int fd, uint32_t ifindex, const struct vb_ethernet_filter *filter)
{
	return change_membership(fd, PACKET_ADD_MEMBERSHIP, ifindex, filter);
}

void vb_ethernet_ignore(int fd, uint32_t ifindex, const struct vb_ethernet_filter *filter)
{
	change_membership(fd, PACKET_DROP_MEMBERSHIP, ifindex, filter);
}

void vb_ethernet_address(int fd, const char *ifname, uint8_t mac[VB_MAC_LENGTH])
{
	struct ifreq request = { .ifr_flags = 0 };

	memset(mac, 0, VB_MAC_LENGTH);
	strncpy(request.ifr_name, ifname, sizeof(request.ifr_name) - 1);
	if (ioctl(fd, SIOCGIFHWADDR, &request) == 0)
		memcpy(mac, request.ifr_hwaddr.sa_data, VB_MAC_LENGTH);
}
