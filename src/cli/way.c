/* The path to a host: addresses, routes and datagrams. doctor_host.c interprets the outcome. */
#include "cli/way.h"
#include "host/host.h"
#include "os/route.h"
#include "wire/icrc.h"
#include "wire/mad.h"
#include "wire/packet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <time.h> /* for the next one */
#include <linux/errqueue.h>
#include <netdb.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "os/clock.h"

static void set_port(struct sockaddr_storage *address, uint16_t port)
{
	if (address->ss_family == AF_INET)
		((struct sockaddr_in *)address)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)address)->sin6_port = htons(port);
}

static void gid_of(const struct sockaddr_storage *address, struct vb_gid *gid)
{
	if (address->ss_family == AF_INET) {
		const uint8_t *ip = (const uint8_t *)&((const struct sockaddr_in *)address)->sin_addr;
		*gid = vb_gid_from_ipv4(ip[0], ip[1], ip[2], ip[3]);
		return;
	}
	memcpy(gid->raw, &((const struct sockaddr_in6 *)address)->sin6_addr, sizeof(gid->raw));
}

static void address_text(const struct sockaddr_storage *address, char text[INET6_ADDRSTRLEN])
{
	const void *bytes = address->ss_family == AF_INET
				    ? (const void *)&((const struct sockaddr_in *)address)->sin_addr
				    : (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr;
	inet_ntop(address->ss_family, bytes, text, INET6_ADDRSTRLEN);
}

/* A link-local address exists on every link: without an interface the kernel has no route to it. */
static bool lacks_interface(const struct sockaddr_storage *address)
{
	const struct sockaddr_in6 *ipv6 = (const struct sockaddr_in6 *)address;

	return address->ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&ipv6->sin6_addr) && ipv6->sin6_scope_id == 0;
}

/* The peer at "any" address is this host, for programs (rdma_resolve_addr) and so here. */
static void replace_any(struct sockaddr_storage *address)
{
	struct sockaddr_in *ipv4 = (struct sockaddr_in *)address;
	struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)address;

	if (address->ss_family == AF_INET && ipv4->sin_addr.s_addr == htonl(INADDR_ANY))
		ipv4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else if (address->ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&ipv6->sin6_addr))
		ipv6->sin6_addr = in6addr_loopback;
}

static int resolve(struct vb_way *way, const char *host, int family, char *why, size_t why_size)
{
	struct addrinfo hints = { .ai_family = family, .ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICSERV }, *found;

	int error = getaddrinfo(host, "4791", &hints, &found);
	if (error) {
		snprintf(why, why_size, "%s: %s", host, gai_strerror(error));
		return -ENOENT;
	}
	memcpy(&way->address, found->ai_addr, found->ai_addrlen);
	way->address_length = found->ai_addrlen;
	freeaddrinfo(found);
	replace_any(&way->address);
	gid_of(&way->address, &way->dst);
	address_text(&way->address, way->dst_text);
	if (vb_gid_is_multicast(&way->dst))
		snprintf(why, why_size, "%s is a multicast address", way->dst_text);
	else if (lacks_interface(&way->address))
		snprintf(why, why_size,
			"%s is a link-local address: say through which interface, as %%INTERFACE; for example %s%%eth0",
			way->dst_text, way->dst_text);
	else
		return 0;
	return -EINVAL;
}

/* The kernel chooses our source address. */
static int choose_source(struct vb_way *way, char *why, size_t why_size)
{
	struct sockaddr_storage source;
	const int rc = vb_route_source((struct sockaddr *)&way->address, NULL, &source);

	if (rc < 0) {
		snprintf(why, why_size, "no way to %s: %s", way->dst_text, strerror(-rc));
		return rc;
	}
	gid_of(&source, &way->src);
	address_text(&source, way->src_text);
	return 0;
}

static bool device_has(const struct vb_device_info *device, const struct vb_gid *gid)
{
	for (unsigned i = 0; i < device->gid_count; i++)
		if (vb_gid_equal(&device->gids[i].gid, gid))
			return true;
	return false;
}

static void use_device(struct vb_way *way, const struct vb_device_info *device)
{
	snprintf(way->device, sizeof(way->device), "%s", device->name);
	way->netdev_mtu = device->netdev_mtu;
	way->mtu = device->mtu;
}

/* A loopback address that no device has is reached over the first device. */
static int find_device(struct vb_way *way, char *why, size_t why_size)
{
	struct vb_device_info *devices = NULL;
	size_t count = 0;

	int error = vb_devices_list(&devices, &count);
	for (size_t i = 0; i < count; i++)
		if (!way->device[0] && device_has(&devices[i], &way->src))
			use_device(way, &devices[i]);
	if (count && !way->device[0] && vb_gid_is_loopback(&way->src))
		use_device(way, &devices[0]);
	free(devices);
	if (error || way->device[0])
		return error;
	snprintf(why, why_size, "the way to %s starts at %s, which no device of Verbena has (see verbena devices)",
		way->dst_text, way->src_text);
	return -ENODEV;
}

int vb_way_find(struct vb_way *way, const char *host, int family, char *why, size_t why_size)
{
	memset(way, 0, sizeof(*way));
	int error = resolve(way, host, family, why, why_size);
	if (!error)
		error = choose_source(way, why, why_size);
	return error ? error : find_device(way, why, why_size);
}

/* ---- Knocking ---------------------------------------------------------------------------------------------------- */

/* A discovery as a whole RoCEv2 packet: to any listener, an ordinary management datagram. */
static size_t build_packet(const struct vb_way *way, uint16_t src_port, uint8_t out[VB_MAD_PACKET_BYTES])
{
	struct vb_discovery discovery = { .transaction_id = 1,
		.version = VB_DISCOVERY_VERSION,
		.receive_buffer = way->receive_buffer,
		.features = VB_FEATURE_TRAINS };
	struct vb_flow flow = { .src = way->src, .dst = way->dst, .src_port = src_port, .dst_port = VB_UDP_PORT };
	uint8_t mad[VB_MAD_LENGTH];

	vb_discovery_encode(&discovery, mad);
	return vb_mad_packet(&flow, 0, mad, sizeof(mad), out);
}

/* Makes an unconnected socket bound to our source address; *port is its port. */
static int knocking_socket(const struct vb_way *way, uint16_t *port)
{
	struct sockaddr_storage source = way->address;
	socklen_t length = way->address_length;
	int one = 1, probe = IP_PMTUDISC_PROBE;

	bool is_ipv4 = source.ss_family == AF_INET;
	if (is_ipv4)
		memcpy(&((struct sockaddr_in *)&source)->sin_addr, way->src.raw + 12, 4);
	else
		memcpy(&((struct sockaddr_in6 *)&source)->sin6_addr, way->src.raw, 16);
	set_port(&source, 0);
	int fd = socket(source.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if (is_ipv4) {
		setsockopt(fd, IPPROTO_IP, IP_RECVERR, &one, sizeof(one));
		setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe));
	} else {
		setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &one, sizeof(one));
	}
	if (bind(fd, (struct sockaddr *)&source, length) != 0 ||
		getsockname(fd, (struct sockaddr *)&source, &length) != 0) {
		close(fd);
		return -1;
	}
	*port = ntohs(
		is_ipv4 ? ((struct sockaddr_in *)&source)->sin_port : ((struct sockaddr_in6 *)&source)->sin6_port);
	return fd;
}

static enum vb_knock meaning(const struct sock_extended_err *error)
{
	bool is_icmp4 = error->ee_origin == SO_EE_ORIGIN_ICMP && error->ee_type == ICMP_DEST_UNREACH;
	bool is_icmp6 = error->ee_origin == SO_EE_ORIGIN_ICMP6 && error->ee_type == ICMP6_DST_UNREACH;

	if ((is_icmp4 && error->ee_code == ICMP_PORT_UNREACH) ||
		(is_icmp6 && error->ee_code == ICMP6_DST_UNREACH_NOPORT))
		return VB_KNOCK_CLOSED;
	if ((is_icmp4 && (error->ee_code == ICMP_PKT_FILTERED || error->ee_code == ICMP_HOST_ANO ||
				 error->ee_code == ICMP_NET_ANO)) ||
		(is_icmp6 && error->ee_code == ICMP6_DST_UNREACH_ADMIN))
		return VB_KNOCK_PROHIBITED;
	return VB_KNOCK_UNREACHABLE;
}

/* Reads one entry of the socket's error queue. */
static bool read_error(struct vb_knocker *knocker)
{
	char control[512], byte;
	struct iovec io = { &byte, 1 };
	struct msghdr header = {
		.msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
	};

	if (recvmsg(knocker->fd, &header, MSG_ERRQUEUE) < 0)
		return false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
		if (!(c->cmsg_level == SOL_IP && c->cmsg_type == IP_RECVERR) &&
			!(c->cmsg_level == SOL_IPV6 && c->cmsg_type == IPV6_RECVERR))
			continue;
		const struct sock_extended_err *error = (const struct sock_extended_err *)CMSG_DATA(c);
		const struct sockaddr_storage *offender = (const struct sockaddr_storage *)SO_EE_OFFENDER(error);
		knocker->heard = meaning(error);
		if (offender->ss_family == AF_INET || offender->ss_family == AF_INET6)
			address_text(offender, knocker->who);
		return true;
	}
	return false;
}

static void knock(struct vb_knocker *knocker, const struct vb_way *way)
{
	uint8_t bytes[VB_MAD_PACKET_BYTES];
	struct sockaddr_storage to = way->address;

	size_t length = build_packet(way, knocker->src_port, bytes);
	set_port(&to, knocker->port);
	if (sendto(knocker->fd, bytes, length, 0, (struct sockaddr *)&to, way->address_length) >= 0)
		return;
	int error = errno;
	if (!read_error(knocker))
		knocker->heard = error == EPERM || error == EACCES ? VB_KNOCK_PROHIBITED : VB_KNOCK_UNREACHABLE;
}

void vb_knock_begin(struct vb_knocker *knocker, const struct vb_way *way, uint16_t port)
{
	*knocker = (struct vb_knocker){ .port = port };
	knocker->fd = knocking_socket(way, &knocker->src_port);
	if (knocker->fd < 0)
		knocker->heard = VB_KNOCK_UNREACHABLE;
	else
		knock(knocker, way);
}

enum vb_knock vb_knock_end(struct vb_knocker *knocker, const struct vb_way *way, unsigned timeout_ms)
{
	enum { AGAIN = 2 };
	struct pollfd wait = { .fd = knocker->fd };

	for (int i = 0; i <= AGAIN && knocker->heard == VB_KNOCK_SILENCE; i++) {
		if (vb_clock_poll(&wait, 1, (int)timeout_ms / (AGAIN + 1)) > 0)
			read_error(knocker);
		else if (i < AGAIN)
			knock(knocker, way);
	}
	return knocker->heard;
}

void vb_knock_close(struct vb_knocker *knocker)
{
	if (knocker->fd >= 0)
		close(knocker->fd);
}

/* ---- MADs -------------------------------------------------------------------------------------------------------- */

static void hear(void *user, const struct vb_broker_notice *notice)
{
	const struct vb_way *way = user;
	struct vb_answer answer = { .length = notice->length, .at_ns = vb_clock_ns() };

	if (notice->kind != VB_BROKER_MAD || !vb_gid_equal(&notice->gid, &way->dst))
		return;
	memcpy(answer.mad, notice->mad, sizeof(answer.mad));
	if (write(way->answers[1], &answer, sizeof(answer)) < 0)
		return; /* full: like a lost packet */
}

int vb_way_open(struct vb_way *way, const struct vb_settings *settings, char *why, size_t why_size)
{
	const struct vb_broker_config config = { .accepts_any = settings->broker_any,
		.libexec = settings->text[VB_SETTING_LIBEXEC],
		.hear = hear,
		.user = way };

	if (pipe2(way->answers, O_CLOEXEC | O_NONBLOCK)) {
		snprintf(why, why_size, "cannot make a pipe: %s", strerror(errno));
		return -errno;
	}
	int error = vb_broker_connect(&config, &way->broker, why, why_size);
	if (!error) {
		error = vb_broker_get_slot(way->broker, settings->receive_buffer, false, &way->slot, why, why_size);
		way->receive_buffer = way->slot.receive_buffer;
		if (error)
			vb_broker_disconnect(way->broker);
	}
	if (error) {
		close(way->answers[0]);
		close(way->answers[1]);
	}
	return error;
}

void vb_way_close(struct vb_way *way)
{
	vb_broker_release_slot(way->broker, &way->slot);
	close(way->slot.fd);
	vb_broker_disconnect(way->broker);
	close(way->answers[0]);
	close(way->answers[1]);
}

int vb_way_send(const struct vb_way *way, const uint8_t mad[256], uint32_t length)
{
	struct vb_mad_header header;

	vb_mad_header_decode(&header, mad);
	if (header.mgmt_class != VB_MAD_CLASS_CM)
		return vb_broker_send_mad(way->broker, &way->src, &way->dst, mad, length);
	vb_broker_post_mad(way->broker, &way->src, &way->dst, mad);
	return 0;
}

bool vb_way_receive(const struct vb_way *way, struct vb_answer *answer, int64_t deadline_ns)
{
	struct pollfd wait = { .fd = way->answers[0], .events = POLLIN };

	for (;;) {
		if (read(way->answers[0], answer, sizeof(*answer)) == sizeof(*answer))
			return true;
		int left_ms = vb_clock_left_ms(deadline_ns);
		if (left_ms == 0)
			return false;
		vb_clock_poll(&wait, 1, left_ms);
	}
}
