/* The UDP sockets that a carrier sends from.
 * Holds: a socket serves one key, which is a destination's steering number, an IP version and, where the carrier's
 * flow_mask has bits, these of the flow. GRO at the receiver merges by addresses and ports, and the steering program
 * there sees the first packet of a merged train only: so two slots of one peer never share a source port. Each source
 * port is in 0xC000-0xFFFF.
 * Not here: which key a message has (socket_send.c). */
#include "port/sockets.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/invariant.h"
#include "port/receive_socket.h"

#define PORT_FIRST  0xC000
#define PORT_COUNT  0x4000
#define PORT_TRIES  256
#define SEND_BUFFER (4 << 20) /* asked for; the kernel gives what wmem_max allows */
#define KEY_IPV4    0x100

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
	for (unsigned i = 0; i < PORT_TRIES; i++) {
		uint16_t udp_port = (uint16_t)(PORT_FIRST + (first + i * 0x9E5u) % PORT_COUNT);
		if (bind_to(fd, is_ipv4, udp_port) == 0)
			return udp_port;
		if (errno != EADDRINUSE && errno != EACCES)
			return 0;
	}
	return 0;
}

static void prepare(int fd, bool is_ipv4)
{
	vb_set_option(fd, SOL_SOCKET, SO_SNDBUF, SEND_BUFFER);
	/* Nothing is read here; a stray datagram must not sit in a large buffer. */
	vb_set_option(fd, SOL_SOCKET, SO_RCVBUF, 0);
	if (is_ipv4) {
		vb_set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
		vb_set_option(fd, IPPROTO_IP, IP_TTL, VB_CARRIER_HOPS);
		vb_set_option(fd, IPPROTO_IP, IP_MULTICAST_TTL, VB_CARRIER_HOPS);
	} else {
		vb_set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
		vb_set_option(fd, IPPROTO_IPV6, IPV6_DONTFRAG, 1);
		vb_set_option(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, VB_CARRIER_HOPS);
		vb_set_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, VB_CARRIER_HOPS);
	}
}

static int open_socket(bool is_ipv4, uint16_t flow, uint16_t *udp_port)
{
	/* As vb_descriptor_socket() of os. */
	int fd = (int)syscall(
		SYS_socket, is_ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP);

	if (fd < 0)
		return -1;
	if (!is_ipv4)
		vb_set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	prepare(fd, is_ipv4);
	*udp_port = bind_in_range(fd, is_ipv4, (uint16_t)(flow - PORT_FIRST));
	assert(!*udp_port || *udp_port >= PORT_FIRST); /* else a peer would take it for a receiver's */
	if (*udp_port)
		return fd;
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}

static bool is_of_ipv4(uint16_t key)
{
	return key & KEY_IPV4;
}

/* One more socket; NULL with errno. */
static struct vb_send_socket *add_socket(struct vb_send_pool *pool, bool is_ipv4, uint16_t flow)
{
	uint16_t udp_port = 0;
	int fd = open_socket(is_ipv4, flow, &udp_port);

	if (fd < 0)
		return NULL;
	struct vb_send_socket *socket = &pool->sockets[pool->count];
	*socket = (struct vb_send_socket){ .fd = fd, .port = udp_port };
	/* A child that is forked now closes those that are counted. */
	atomic_signal_fence(memory_order_release);
	pool->count++;
	assert(pool->count <= VB_SEND_SOCKETS_MAX);
	return socket;
}

/* The socket of that IP version that was not used for the longest time, which loses its key; NULL: there is none. */
static struct vb_send_socket *take_longest_unused(struct vb_send_pool *pool, bool is_ipv4)
{
	struct vb_send_socket *oldest = NULL;

	for (unsigned i = 0; i < pool->count; i++) {
		struct vb_send_socket *socket = &pool->sockets[i];
		if (is_of_ipv4(socket->key) == is_ipv4 && (!oldest || socket->used_at < oldest->used_at))
			oldest = socket;
	}
	if (oldest)
		pool->socket_of_key[oldest->key] = 0;
	return oldest;
}

/* An eighth of the descriptors that the process may have. */
void vb_send_pool_init(struct vb_send_pool *pool, bool has_flows)
{
	struct rlimit limit;
	pool->most = VB_SEND_SOCKETS;
	if (!has_flows || getrlimit(RLIMIT_NOFILE, &limit))
		return;
	rlim_t share = limit.rlim_cur / 8;
	if (share > VB_SEND_SOCKETS)
		pool->most = share < VB_SEND_SOCKETS_MAX ? (unsigned)share : VB_SEND_SOCKETS_MAX;
}

struct vb_send_socket *vb_send_pool_get(struct vb_send_pool *pool, uint16_t key, bool is_ipv4, uint16_t flow)
{
	struct vb_send_socket *socket = NULL;

	assert(key < VB_SOCKET_KEYS && is_of_ipv4(key) == is_ipv4);
	if (pool->socket_of_key[key]) {
		socket = &pool->sockets[pool->socket_of_key[key] - 1];
		assert(socket->key == key);
		socket->used_at = ++pool->uses;
		return socket;
	}
	if (pool->count < pool->most)
		socket = add_socket(pool, is_ipv4, flow);
	if (!socket) /* as many as there may be, or no descriptor left */
		socket = take_longest_unused(pool, is_ipv4);
	if (!socket)
		return NULL;
	socket->key = key;
	socket->used_at = ++pool->uses;
	pool->socket_of_key[key] = (uint8_t)(socket - pool->sockets + 1);
	return socket;
}

void vb_send_pool_check(const struct vb_send_pool *pool)
{
	unsigned keys = 0;

	for (unsigned i = 0; i < VB_SOCKET_KEYS; i++)
		keys += pool->socket_of_key[i] != 0;
	assert(keys == pool->count);
	for (unsigned i = 0; i < pool->count; i++) {
		assert(pool->socket_of_key[pool->sockets[i].key] == i + 1);
		assert(pool->sockets[i].port >= PORT_FIRST);
	}
}
