/* See place.h. Namespaces have no name: they go when the last process and descriptor of them does. */
#include "place.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#ifndef TUN_F_USO4
#define TUN_F_USO4 0x20
#define TUN_F_USO6 0x40
#endif

#define DEVICE        "link0"
#define QUEUE_PACKETS 16384 /* trains, where the kernel leaves these whole */

/* ---- Namespaces -------------------------------------------------------------------------------------------------- */

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t written = fd < 0 ? -1 : write(fd, text, strlen(text));
	int error = written < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return error;
}

static int map_user(uid_t user, gid_t group)
{
	char map[64];

	write_text("/proc/self/setgroups", "deny"); /* not there in old kernels, and then not needed */
	snprintf(map, sizeof(map), "0 %u 1", user);
	int error = write_text("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", group);
	return error ? error : write_text("/proc/self/gid_map", map);
}

int link_place_leave(const char **what)
{
	uid_t user = geteuid();
	gid_t group = getegid();

	*what = "unshare (root, or user namespaces, are needed)";
	if (unshare(CLONE_NEWNS | CLONE_NEWPID | (user ? CLONE_NEWUSER : 0)))
		return -errno;
	*what = "the user's map";
	int error = user ? map_user(user, group) : 0;
	if (error)
		return error;
	*what = "mount";
	return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ? -errno : 0;
}

bool link_place_show_processes(void)
{
	return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0;
}

int link_place_enter(const struct link_place *place)
{
	if (setns(place->namespace_fd, CLONE_NEWNET))
		return -errno;
	if (unshare(CLONE_NEWNS))
		return -errno;
	/* Programs that look for interfaces in /sys should see those of here; where that may not be mounted they see
	 * the machine's. */
	mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	return 0;
}

/* ---- Devices ----------------------------------------------------------------------------------------------------- */

static int raise_flags(int fd, struct ifreq *request)
{
	if (ioctl(fd, SIOCGIFFLAGS, request))
		return -errno;
	request->ifr_flags |= IFF_UP | IFF_RUNNING;
	return ioctl(fd, SIOCSIFFLAGS, request) ? -errno : 0;
}

static int raise_loopback(int fd)
{
	struct ifreq request = { .ifr_name = "lo" };

	return raise_flags(fd, &request);
}

static int set_address(int fd, struct ifreq *request, unsigned long what, const char *address)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&request->ifr_addr;

	*in = (struct sockaddr_in){ .sin_family = AF_INET };
	inet_pton(AF_INET, address, &in->sin_addr);
	return ioctl(fd, what, request) ? -errno : 0;
}

/* struct in6_ifreq, which the headers of the C library and of the kernel cannot both give. */
struct ipv6_request {
	struct in6_addr address;
	uint32_t prefix;
	int index;
};

/* A machine may have no IPv6. */
static void set_ipv6_address(unsigned number)
{
	struct ipv6_request request = { .prefix = 64, .index = (int)if_nametoindex(DEVICE) };
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	inet_pton(AF_INET6, number ? "fd78::2" : "fd78::1", &request.address);
	if (ioctl(fd, SIOCSIFADDR, &request))
		fprintf(stderr, "link: no IPv6 address: %s\n", strerror(errno));
	close(fd);
}

/* The device's queue, which holds what comes while the relay is kept from the core. By netlink: the ioctl is refused to
 * the root of a user namespace. 0 or -errno. */
static int lengthen_queue(uint32_t packets)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg link;
		struct rtattr attribute;
		uint32_t packets;
	} request = { .header = { .nlmsg_len = sizeof(request),
			      .nlmsg_type = RTM_NEWLINK,
			      .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.link = { .ifi_index = (int)if_nametoindex(DEVICE) },
		.attribute = { .rta_len = RTA_LENGTH(sizeof(uint32_t)), .rta_type = IFLA_TXQLEN },
		.packets = packets };
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		uint8_t rest[256];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return -errno;
	bool is_answered = send(fd, &request, sizeof(request), 0) == sizeof(request) &&
			   recv(fd, &answer, sizeof(answer), 0) >= (ssize_t)sizeof(answer.header) + 4;
	int error = is_answered ? answer.error.error : -errno;
	close(fd);
	return error;
}

static int configure(int fd, unsigned number, unsigned mtu)
{
	struct ifreq request = { .ifr_name = DEVICE };
	int error = set_address(fd, &request, SIOCSIFADDR, number ? LINK_FAR_IPV4 : LINK_NEAR_IPV4);

	if (!error)
		error = set_address(fd, &request, SIOCSIFNETMASK, "255.255.255.0");
	request.ifr_mtu = (int)mtu;
	if (!error && ioctl(fd, SIOCSIFMTU, &request))
		error = -errno;
	if (!error)
		error = lengthen_queue(QUEUE_PACKETS);
	return error ? error : raise_flags(fd, &request);
}

/* Trains come whole, and their checksums are left to the receiver. Older kernels do not leave UDP's to a device. */
static int open_device(struct link_place *place)
{
	struct ifreq request = { .ifr_name = DEVICE, .ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR };
	const unsigned of_tcp = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	int rc = ioctl(fd, TUNSETIFF, &request);
	if (rc == 0)
		rc = ioctl(fd, TUNSETOFFLOAD, of_tcp | TUN_F_USO4 | TUN_F_USO6);
	place->takes_udp_trains = rc == 0;
	if (rc && errno == EINVAL)
		rc = ioctl(fd, TUNSETOFFLOAD, of_tcp);
	if (rc) {
		int error = -errno;
		close(fd);
		return error;
	}
	place->device_fd = fd;
	return 0;
}

/* So that TCP fills a long link: what is under way lies in its buffers. Where that is not allowed they stay as they
 * are. */
static void widen_tcp_buffers(void)
{
	write_text("/proc/sys/net/ipv4/tcp_rmem", "4096 131072 67108864");
	write_text("/proc/sys/net/ipv4/tcp_wmem", "4096 131072 67108864");
}

int link_place_make(struct link_place *place, unsigned number, unsigned mtu, const char **what)
{
	*what = "unshare of a network namespace";
	if (unshare(CLONE_NEWNET))
		return -errno;
	*what = "/proc/self/ns/net";
	place->namespace_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (place->namespace_fd < 0)
		return -errno;
	*what = "/dev/net/tun";
	int error = open_device(place);
	if (error)
		return error;
	*what = "configuration of " DEVICE;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	error = raise_loopback(fd);
	if (!error)
		error = configure(fd, number, mtu);
	close(fd);
	if (error)
		return error;
	set_ipv6_address(number);
	widen_tcp_buffers();
	return 0;
}

/* ---- What the kernel says of a namespace ------------------------------------------------------------------------- */

static bool is_listed(const char *file, unsigned port)
{
	FILE *lines = fopen(file, "re");
	char line[512];
	unsigned found, state;
	bool is_found = false;

	while (lines && !is_found && fgets(line, sizeof(line), lines))
		is_found = sscanf(line, " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x", &found, &state) == 2 &&
			   found == port && state == 0x0A;
	if (lines)
		fclose(lines);
	return is_found;
}

bool link_place_listens(unsigned port)
{
	return is_listed("/proc/self/net/tcp", port) || is_listed("/proc/self/net/tcp6", port);
}

unsigned long long link_place_dropped(void)
{
	FILE *lines = fopen("/proc/self/net/dev", "re");
	char line[512];
	unsigned long long dropped = 0;

	while (lines && fgets(line, sizeof(line), lines))
		if (sscanf(line, " " DEVICE ": %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %*u %llu", &dropped) == 1)
			break;
	if (lines)
		fclose(lines);
	return dropped;
}
