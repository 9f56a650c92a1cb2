/* UDP port: opening and closing, socket options, the sockets to send from, counters.
 * Sending is udp_send.c, receiving udp_receive.c. */
#include "port/udp_state.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/sock_diag.h>
#include <linux/udp.h>
#include <net/if.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/invariant.h"
#include "port/receive_socket.h"

#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

#define TX_PORT_FIRST 0xC000
#define TX_PORT_COUNT 0x4000
#define TX_PORT_TRIES 256
#define TX_BUFFER     (4 << 20) /* asked for; the kernel gives what wmem_max allows */
#define DEFAULT_HOPS  64
#define SCOPE_LIFE    (1 * VB_S)

const char *const vb_port_counter_name[VB_PORT_COUNTER_COUNT] = {
#define X(name, text, meaning) text,
	VB_PORT_COUNTERS(X)
#undef X
};

/* How many datagrams the kernel has dropped at this socket since it was made, by whoever held it. */
static bool kernel_drops(int fd, uint32_t *drops)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t length = sizeof(info);

	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &length) < 0 || length <= SK_MEMINFO_DROPS * sizeof(info[0]))
		return false;
	*drops = info[SK_MEMINFO_DROPS];
	return true;
}

/* ---- A port ----------------------------------------------------------------------------------------------------- */

static void abandon(struct vb_port *port, bool closes)
{
	struct vb_udp *udp = vb_udp_of(port);
	struct sender *sender = &udp->sender;

	for (unsigned i = 0; closes && i < sender->socket_count; i++)
		close(sender->sockets[i].fd);
	sender->socket_count = 0;
	memset(sender->socket_of_key, 0, sizeof(sender->socket_of_key));
	udp->config.receive_fd = -1;
	udp->config.pcap = NULL;
	port->room = 0;
}

void vb_udp_note_errno(struct vb_udp *udp, int error)
{
	if ((error != EBADF && error != ENOTSOCK) || udp->port.is_lost)
		return;
	udp->port.is_lost = true;
	udp->port.fds_version++;
}

static void close_port(struct vb_port *port)
{
	struct vb_udp *udp = vb_udp_of(port);

	abandon(port, true);
	munmap(udp->receiver.buffers, RX_BUFFERS * RX_BUFFER_BYTES);
	free(udp->receiver.carried);
	free(udp);
}

static unsigned list_fds(const struct vb_port *port, int fds[VB_PORT_FDS])
{
	fds[0] = vb_udp_of_const(port)->config.receive_fd;
	return 1;
}

static const struct vb_receipt *take_receipts(struct vb_port *port, unsigned *count)
{
	struct vb_udp *udp = vb_udp_of(port);

	*count = udp->receipt_count;
	udp->receipt_count = 0;
	return udp->receipts;
}

static struct vb_deadline next_deadline(const struct vb_port *port)
{
	const struct vb_faults *faults = vb_udp_of_const(port)->config.faults;

	return faults ? vb_faults_deadline(faults) : (struct vb_deadline){ 0 };
}

static_assert(VB_PORT_FAULT_CORRUPTED - VB_PORT_FAULT_DROPPED == VB_FAULT_CORRUPTED, "one counter for each kind");

static void count_faults(const struct vb_faults *faults, uint64_t values[VB_PORT_COUNTER_COUNT])
{
	const struct vb_bottleneck *neck = vb_faults_bottleneck(faults);

	for (unsigned kind = 0; kind < VB_FAULTS; kind++)
		values[VB_PORT_FAULT_DROPPED + kind] = vb_faults_count(faults, kind);
	values[VB_PORT_NECK_DROPS] = neck->drops;
	values[VB_PORT_NECK_MARKS] = neck->marks;
	values[VB_PORT_NECK_MEAN] = vb_bottleneck_mean(neck);
	values[VB_PORT_NECK_MOST] = neck->most;
}

static void get_counters(const struct vb_port *port, uint64_t values[VB_PORT_COUNTER_COUNT])
{
	const struct vb_udp *udp = vb_udp_of_const(port);
	uint32_t drops;

	memcpy(values, udp->counters, sizeof(udp->counters));
	/* Drops are told with the next datagram that is received; there may not have been one since. */
	if (!udp->config.is_carried && kernel_drops(udp->config.receive_fd, &drops))
		values[VB_PORT_RX_OVERFLOW] += drops - udp->receiver.overflow_seen;
	if (udp->config.faults)
		count_faults(udp->config.faults, values);
}

static const struct vb_port_ops operations = {
	.receive = vb_udp_receive,
	.next_train = vb_udp_next_train,
	.send = vb_udp_send,
	.finished = take_receipts,
	.fds = list_fds,
	.next_deadline = next_deadline,
	.counters = get_counters,
	.abandon = abandon,
	.close = close_port,
};

static int make_buffers(struct receiver *receiver, bool is_carried)
{
	/* Pages of buffers that are never filled are never touched. */
	receiver->buffers =
		mmap(NULL, RX_BUFFERS * RX_BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (receiver->buffers == MAP_FAILED)
		return -ENOMEM;
	receiver->carried = is_carried ? calloc(RX_BUFFERS, sizeof(*receiver->carried)) : NULL;
	if (!is_carried || receiver->carried)
		return 0;
	munmap(receiver->buffers, RX_BUFFERS * RX_BUFFER_BYTES);
	return -ENOMEM;
}

static void prepare_socket(struct vb_udp *udp)
{
	vb_prepare_receive_socket(udp->config.receive_fd);
	udp->receiver.knows_overflow = true;
	kernel_drops(udp->config.receive_fd, &udp->receiver.overflow_seen);
}

int vb_udp_open(const struct vb_udp_config *config, struct vb_port **port)
{
	struct vb_udp *udp = calloc(1, sizeof(*udp));

	if (!udp)
		return -ENOMEM;
	int rc = make_buffers(&udp->receiver, config->is_carried);
	if (rc < 0) {
		free(udp);
		return rc;
	}
	udp->port = (struct vb_port){ .ops = &operations,
		.room = VB_BATCH_PACKETS,
		.largest_segment = config->single_datagrams ? 0 : VB_TRAIN_BYTES };
	udp->config = *config;
	vb_udp_receiver_init(&udp->receiver);
	if (!config->is_carried) /* else the socket is its courier's to prepare */
		prepare_socket(udp);
	*port = &udp->port;
	return 0;
}

void vb_udp_renew_channel(struct vb_port *port)
{
	struct vb_udp *udp = vb_udp_of(port);

	port->fds_version++;
	udp->receiver.is_cut = udp->receiver.knows_overflow = false;
}

/* ---- Sockets to send from --------------------------------------------------------------------------------------- */

static int bind_to(int fd, bool is_ipv4, uint16_t udp_port)
{
	struct sockaddr_in ipv4 = { .sin_family = AF_INET, .sin_port = htons(udp_port) };
	struct sockaddr_in6 ipv6 = { .sin6_family = AF_INET6, .sin6_port = htons(udp_port) };

	return is_ipv4 ? bind(fd, (struct sockaddr *)&ipv4, sizeof(ipv4))
		       : bind(fd, (struct sockaddr *)&ipv6, sizeof(ipv6));
}

/* Binds to a free port of the range, from first on by steps of an odd number. Returns it, or 0 with errno. */
static uint16_t bind_in_range(int fd, bool is_ipv4, uint16_t first)
{
	for (unsigned i = 0; i < TX_PORT_TRIES; i++) {
		uint16_t udp_port = (uint16_t)(TX_PORT_FIRST + (first + i * 0x9E5u) % TX_PORT_COUNT);
		if (bind_to(fd, is_ipv4, udp_port) == 0)
			return udp_port;
		if (errno != EADDRINUSE && errno != EACCES)
			return 0;
	}
	return 0;
}

static void prepare_send_socket(int fd, bool is_ipv4)
{
	vb_set_option(fd, SOL_SOCKET, SO_SNDBUF, TX_BUFFER);
	/* Nothing is read here; a stray datagram must not sit in a large buffer. */
	vb_set_option(fd, SOL_SOCKET, SO_RCVBUF, 0);
	if (is_ipv4) {
		vb_set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
		vb_set_option(fd, IPPROTO_IP, IP_TTL, DEFAULT_HOPS);
		vb_set_option(fd, IPPROTO_IP, IP_MULTICAST_TTL, DEFAULT_HOPS);
	} else {
		vb_set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
		vb_set_option(fd, IPPROTO_IPV6, IPV6_DONTFRAG, 1);
		vb_set_option(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, DEFAULT_HOPS);
		vb_set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, DEFAULT_HOPS);
	}
}

static int open_send_socket(bool is_ipv4, uint16_t flow, uint16_t *udp_port)
{
	int fd = socket(is_ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP);

	if (fd < 0)
		return -1;
	if (!is_ipv4)
		vb_set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	prepare_send_socket(fd, is_ipv4);
	*udp_port = bind_in_range(fd, is_ipv4, (uint16_t)(flow - TX_PORT_FIRST));
	assert(!*udp_port || *udp_port >= TX_PORT_FIRST); /* or a peer would take what we send from for a receiver */
	if (*udp_port)
		return fd;
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* The socket of that IP version that was not used for the longest time. */
static struct tx_socket *longest_unused(struct sender *sender, bool is_ipv4)
{
	struct tx_socket *oldest = NULL;

	for (unsigned i = 0; i < sender->socket_count; i++) {
		struct tx_socket *socket = &sender->sockets[i];
		if (socket->key >> 8 == is_ipv4 && (!oldest || socket->used_at < oldest->used_at))
			oldest = socket;
	}
	return oldest;
}

struct tx_socket *vb_udp_tx_socket(struct sender *sender, uint8_t slot, bool is_ipv4, uint16_t flow)
{
	uint16_t key = (uint16_t)(slot | is_ipv4 << 8);
	struct tx_socket *socket = NULL;

	if (sender->socket_of_key[key]) {
		socket = &sender->sockets[sender->socket_of_key[key] - 1];
		socket->used_at = ++sender->sends;
		return socket;
	}
	if (sender->socket_count < TX_SOCKETS) {
		uint16_t udp_port = 0;
		int fd = open_send_socket(is_ipv4, flow, &udp_port);
		if (fd >= 0) {
			socket = &sender->sockets[sender->socket_count];
			*socket = (struct tx_socket){ .fd = fd, .port = udp_port };
			atomic_signal_fence(
				memory_order_release); /* a child of that moment closes those that are counted */
			sender->socket_count++;
		}
	}
	if (!socket) { /* as many as there may be, or no descriptor left */
		socket = longest_unused(sender, is_ipv4);
		if (!socket)
			return NULL;
		sender->socket_of_key[socket->key] = 0;
	}
	socket->key = key;
	socket->used_at = ++sender->sends;
	sender->socket_of_key[key] = (uint8_t)(socket - sender->sockets + 1);
	return socket;
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

uint32_t vb_udp_interface_of(struct sender *sender, const struct vb_gid *address, vb_time now)
{
	struct scope *scope = NULL;

	for (unsigned i = 0; i < SCOPES && !scope; i++)
		if (vb_gid_equal(&sender->scopes[i].address, address))
			scope = &sender->scopes[i];
	if (scope && vb_time_since(scope->found_at, now) < SCOPE_LIFE)
		return scope->ifindex;
	if (!scope)
		scope = &sender->scopes[sender->scope_next++ % SCOPES];
	*scope = (struct scope){ *address, find_interface(address), now };
	return scope->ifindex;
}
