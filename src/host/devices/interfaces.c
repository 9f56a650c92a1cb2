/* Interfaces: asks the kernel for links and addresses over rtnetlink, which needs no privilege and, unlike getifaddrs,
 * says whether an IPv6 address may be used yet. */
#include "base/invariant.h"
#include "host/devices/interfaces.h"
#include "host/host.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "os/descriptor.h"
#include "os/route.h"

#define REPLY_BYTES 32768
#define USUAL_MTU   1500
/* A temporary or retiring address would make a GID that goes away; a tentative one cannot send yet. */
#define UNUSABLE (IFA_F_TENTATIVE | IFA_F_DADFAILED | IFA_F_DEPRECATED | IFA_F_TEMPORARY)

struct interface_list {
	struct vb_interface *interfaces;
	size_t count, capacity;
};

static struct vb_interface *add_interface(struct interface_list *list)
{
	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? list->capacity * 2 : 8;
		struct vb_interface *grown = realloc(list->interfaces, capacity * sizeof(*grown));
		if (!grown)
			return NULL;
		list->interfaces = grown;
		list->capacity = capacity;
	}
	assert(list->count < list->capacity);
	struct vb_interface *interface = &list->interfaces[list->count++];
	memset(interface, 0, sizeof(*interface));
	return interface;
}

static int take_link(struct interface_list *list, const struct nlmsghdr *message)
{
	const struct ifinfomsg *link = NLMSG_DATA(message);
	int length = (int)IFLA_PAYLOAD(message);

	if (message->nlmsg_type != RTM_NEWLINK)
		return 0;
	struct vb_interface *interface = add_interface(list);
	if (!interface)
		return -ENOMEM;
	interface->index = (uint32_t)link->ifi_index;
	interface->is_up = link->ifi_flags & IFF_UP;
	interface->is_running = interface->is_up && link->ifi_flags & IFF_RUNNING;
	interface->is_loopback = link->ifi_flags & IFF_LOOPBACK;
	for (const struct rtattr *a = IFLA_RTA(link); RTA_OK(a, length); a = RTA_NEXT(a, length)) {
		if (a->rta_type == IFLA_IFNAME)
			snprintf(interface->name, sizeof(interface->name), "%s", (const char *)RTA_DATA(a));
		else if (a->rta_type == IFLA_MTU && RTA_PAYLOAD(a) >= sizeof(uint32_t))
			memcpy(&interface->mtu, RTA_DATA(a), sizeof(uint32_t));
		else if (a->rta_type == IFLA_ADDRESS && RTA_PAYLOAD(a) == sizeof(interface->mac))
			memcpy(interface->mac, RTA_DATA(a), sizeof(interface->mac));
	}
	if (interface->mtu == 0) /* gVisor on its host's network does not tell */
		interface->mtu = USUAL_MTU;
	return 0;
}

static void add_address(struct interface_list *list, uint32_t index, const struct vb_gid *gid)
{
	for (size_t i = 0; i < list->count; i++) {
		struct vb_interface *interface = &list->interfaces[i];
		assert(interface->address_count <= VB_INTERFACE_ADDRESSES);
		if (interface->index == index && interface->address_count < VB_INTERFACE_ADDRESSES)
			interface->addresses[interface->address_count++] = *gid;
	}
}

static int take_address(struct interface_list *list, const struct nlmsghdr *message)
{
	const struct ifaddrmsg *address = NLMSG_DATA(message);
	int length = (int)IFA_PAYLOAD(message);
	uint32_t flags = address->ifa_flags;
	const void *local = NULL, *peer = NULL;

	if (message->nlmsg_type != RTM_NEWADDR)
		return 0;
	for (const struct rtattr *a = IFA_RTA(address); RTA_OK(a, length); a = RTA_NEXT(a, length)) {
		size_t wanted = address->ifa_family == AF_INET ? 4 : 16;
		if (a->rta_type == IFA_LOCAL && RTA_PAYLOAD(a) == wanted)
			local = RTA_DATA(a);
		else if (a->rta_type == IFA_ADDRESS && RTA_PAYLOAD(a) == wanted)
			peer = RTA_DATA(a);
		else if (a->rta_type == IFA_FLAGS && RTA_PAYLOAD(a) >= sizeof(flags))
			memcpy(&flags, RTA_DATA(a), sizeof(flags));
	}
	const void *bytes = local ? local : peer;
	if (!bytes)
		return 0;
	struct vb_gid gid = vb_gid_from_ipv4(0, 0, 0, 0);
	if (address->ifa_family == AF_INET)
		memcpy(gid.raw + 12, bytes, 4);
	else if (address->ifa_family == AF_INET6 && !(flags & UNUSABLE))
		memcpy(gid.raw, bytes, 16);
	else
		return 0;
	add_address(list, address->ifa_index, &gid);
	return 0;
}

/* ---- rtnetlink --------------------------------------------------------------------------------------------------- */

typedef int (*take_function)(struct interface_list *list, const struct nlmsghdr *message);

/* Takes the messages of one read. 1: the dump goes on, 0: it is over. */
static int take_messages(struct interface_list *list, const void *reply, ssize_t length, take_function take)
{
	unsigned left = (unsigned)length;

	for (const struct nlmsghdr *message = reply; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
		if (message->nlmsg_type == NLMSG_DONE)
			return 0;
		if (message->nlmsg_type == NLMSG_ERROR)
			return ((const struct nlmsgerr *)NLMSG_DATA(message))->error ?: -EPROTO;
		int rc = take(list, message);
		if (rc < 0)
			return rc;
	}
	return 1;
}

static int dump(int fd, uint16_t type, take_function take, struct interface_list *list)
{
	struct {
		struct nlmsghdr header;
		struct rtgenmsg body;
	} request = { .header = { .nlmsg_len = sizeof(request),
			      .nlmsg_type = type,
			      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP } };
	_Alignas(struct nlmsghdr) char reply[REPLY_BYTES];

	if (send(fd, &request, sizeof(request), 0) < 0)
		return -errno;
	for (int rc = 1; rc > 0;) {
		ssize_t length = recv(fd, reply, sizeof(reply), 0);
		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0)
			return -errno;
		rc = take_messages(list, reply, length, take);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int vb_interfaces_read(struct vb_interface **interfaces, size_t *count)
{
	struct interface_list list = { .count = 0 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return -errno;
	int rc = dump(fd, RTM_GETLINK, take_link, &list);
	if (rc == 0)
		rc = dump(fd, RTM_GETADDR, take_address, &list);
	close(fd);
	if (rc < 0) {
		free(list.interfaces);
		return rc;
	}
	assert(list.count <= list.capacity);
	*interfaces = list.interfaces;
	*count = list.count;
	return 0;
}

int vb_interfaces_watch(void)
{
	struct sockaddr_nl groups = { .nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&groups, sizeof(groups)) < 0) {
		int error = errno;
		close(fd);
		return -error;
	}
	return fd;
}

void vb_interfaces_drain(int fd)
{
	char notice[REPLY_BYTES];

	/* An overrun (ENOBUFS) means that notices were lost; all interfaces are read anew anyway. */
	while (recv(fd, notice, sizeof(notice), MSG_DONTWAIT) > 0 || errno == ENOBUFS || errno == EINTR)
		errno = 0;
}

/* ---- Routes, speed ----------------------------------------------------------------------------------------------- */

static struct sockaddr_storage address_of(const struct vb_gid *gid)
{
	struct sockaddr_storage address = { 0 };

	if (vb_gid_is_ipv4(gid)) {
		address.ss_family = AF_INET;
		memcpy(&((struct sockaddr_in *)&address)->sin_addr, gid->raw + 12, 4);
	} else {
		address.ss_family = AF_INET6;
		memcpy(&((struct sockaddr_in6 *)&address)->sin6_addr, gid->raw, 16);
	}
	return address;
}

/* From our address `from`, or, when that is NULL, from the one that the kernel chooses, which becomes *source. 0 or
 * -errno. */
static int look_up_route(const struct vb_gid *from, const struct vb_gid *to, struct sockaddr_storage *source)
{
	const struct sockaddr_storage target = address_of(to), own = from ? address_of(from) : target;

	if (own.ss_family != target.ss_family)
		return -EAFNOSUPPORT;
	return vb_route_source((const struct sockaddr *)&target, from ? (const struct sockaddr *)&own : NULL, source);
}

/* The interface whose address the kernel would send from. */
static uint32_t interface_towards(const struct vb_gid *to)
{
	struct vb_gid gid = vb_gid_from_ipv4(0, 0, 0, 0);
	struct sockaddr_storage source;
	struct vb_interface *list;
	size_t count;
	uint32_t found = 0;

	if (look_up_route(NULL, to, &source) < 0 || vb_interfaces_read(&list, &count) < 0)
		return 0;
	if (source.ss_family == AF_INET)
		memcpy(gid.raw + 12, &((struct sockaddr_in *)&source)->sin_addr, 4);
	else
		memcpy(gid.raw, &((struct sockaddr_in6 *)&source)->sin6_addr, 16);
	for (size_t i = 0; i < count && !found; i++)
		for (unsigned k = 0; k < list[i].address_count; k++)
			if (vb_gid_equal(&list[i].addresses[k], &gid))
				found = list[i].index;
	free(list);
	return found;
}

uint32_t vb_interfaces_default(void)
{
	/* Addresses reserved for documentation: only a default route leads to them. */
	const struct vb_gid ipv4 = vb_gid_from_ipv4(192, 0, 2, 1), ipv6 = { { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 } };
	uint32_t index = interface_towards(&ipv4);

	return index ? index : interface_towards(&ipv6);
}

static bool is_link_local(const struct vb_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

int vb_host_check_route(const struct vb_gid *from, const struct vb_gid *to)
{
	struct sockaddr_storage source;

	if (vb_gid_is_multicast(to) || is_link_local(to))
		return 0;
	int rc = look_up_route(from, to, &source);
	return rc == -ENETUNREACH || rc == -EHOSTUNREACH ? rc : 0;
}

static int ask_ethtool(int fd, const char *name, void *command)
{
	struct ifreq request = { .ifr_data = command };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	return ioctl(fd, SIOCETHTOOL, &request);
}

/* veth devices claim 10 Gb/s, and TUN devices 10 Mb/s, whatever they carry. */
static bool makes_it_up(int fd, const char *name)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };

	return ask_ethtool(fd, name, &info) == 0 && (!strcmp(info.driver, "veth") || !strcmp(info.driver, "tun"));
}

uint64_t vb_interface_speed(const char *name)
{
	struct ethtool_cmd command = { .cmd = ETHTOOL_GSET };
	int fd = vb_descriptor_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return 0;
	int rc = makes_it_up(fd, name) ? -1 : ask_ethtool(fd, name, &command);
	close(fd);
	uint32_t speed = (uint32_t)command.speed_hi << 16 | command.speed; /* the header's own shifts into the sign */
	return rc < 0 || speed == (uint32_t)SPEED_UNKNOWN ? 0 : speed;
}
