/* rsockets, non-blocking: opened, connected to each other, written, read and closed in any order. */
#include "fuzz.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>

#define SOCKET_ERRORS                                                                                                  \
	EINVAL, ENOMEM, EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, ENODEV, EACCES, EAGAIN, EOPNOTSUPP, ENETUNREACH,      \
		EHOSTUNREACH, ECONNREFUSED, ECONNRESET, EPIPE, EINPROGRESS, EALREADY, EISCONN, ENOTCONN, ENOPROTOOPT,  \
		EPROTONOSUPPORT, ETIMEDOUT, EDESTADDRREQ, EMSGSIZE, ENOTSUP, EMFILE, ESHUTDOWN, EPROTO, EPROTOTYPE,    \
		ESOCKTNOSUPPORT, ENXIO, ENOSYS, ECONNABORTED

enum { PORTS = 3, FIRST_PORT = 7700 };

static struct sockaddr_in address_of_port(struct worker *worker)
{
	return (struct sockaddr_in){ .sin_family = one_in(worker, 20) ? (sa_family_t)boundary(worker) : AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)(FIRST_PORT + below(worker, PORTS))) };
}

/* The slot's object is the socket's descriptor, which may be 0. */
static void keep(struct worker *worker, struct slot *slot, int fd)
{
	slot->fd = fd;
	adopt(worker, slot, slot, NULL, 0);
	REQUIRE_EQUAL(rfcntl(fd, F_SETFL, O_NONBLOCK), 0);
}

static void open_socket(struct worker *worker)
{
	struct slot *slot = vacant(worker, RSOCKET);
	if (!slot)
		return;
	int domain = one_in(worker, 10) ? (int)boundary(worker) : AF_INET;
	int type = one_in(worker, 10) ? (int)boundary(worker) : one_in(worker, 4) ? SOCK_DGRAM : SOCK_STREAM;
	int fd = rsocket(domain, type, one_in(worker, 10) ? (int)boundary(worker) : 0);
	if (EXPECT_RC(worker, fd, SOCKET_ERRORS))
		keep(worker, slot, fd);
}

static void close_socket(struct worker *worker)
{
	struct slot *slot = own(worker, RSOCKET);
	if (!slot)
		return;
	EXPECT_RC(worker, rclose(slot->fd), ENOTCONN);
	vacate(slot);
}

static void name_socket(struct worker *worker)
{
	struct slot *slot = use(worker, RSOCKET);
	struct sockaddr_in name = address_of_port(worker);
	socklen_t length = one_in(worker, 8) ? (socklen_t)below(worker, sizeof(name)) : sizeof(name);
	if (!slot)
		return;
	switch (below(worker, 5)) {
	case 0:
		EXPECT_RC(worker, rbind(slot->fd, (struct sockaddr *)&name, length), SOCKET_ERRORS);
		break;
	case 1:
		EXPECT_RC(worker, rlisten(slot->fd, (int)below(worker, 10)), SOCKET_ERRORS);
		break;
	case 2:
		EXPECT_RC(worker, rconnect(slot->fd, (struct sockaddr *)&name, length), SOCKET_ERRORS);
		break;
	case 3:
		EXPECT_RC(worker, rgetpeername(slot->fd, (struct sockaddr *)&name, &length), SOCKET_ERRORS);
		break;
	default:
		EXPECT_RC(worker, rgetsockname(slot->fd, (struct sockaddr *)&name, &length), SOCKET_ERRORS);
	}
}

static void serve(struct worker *worker)
{
	static const int on = 1;
	struct slot *slot = own(worker, RSOCKET);
	struct sockaddr_in name = address_of_port(worker);
	if (!slot)
		return;
	rsetsockopt(slot->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (EXPECT_RC(worker, rbind(slot->fd, (struct sockaddr *)&name, sizeof(name)), SOCKET_ERRORS))
		EXPECT_RC(worker, rlisten(slot->fd, 4), SOCKET_ERRORS);
}

static void accept_socket(struct worker *worker)
{
	struct slot *listener = use(worker, RSOCKET), *slot = listener ? vacant(worker, RSOCKET) : NULL;
	if (!slot)
		return;
	int fd = raccept(listener->fd, NULL, NULL);
	if (EXPECT_RC(worker, fd, SOCKET_ERRORS))
		keep(worker, slot, fd);
}

static void transfer(struct worker *worker)
{
	struct slot *slot = use(worker, RSOCKET);
	struct sockaddr_in to = address_of_port(worker);
	char bytes[8192] = { 0 };
	size_t length = one_in(worker, 6) ? 0 : below(worker, sizeof(bytes));
	int flags = MSG_DONTWAIT | (one_in(worker, 12) ? (int)boundary(worker) & ~MSG_WAITALL : 0);
	struct iovec parts[2] = { { bytes, length / 2 }, { bytes + length / 2, length - length / 2 } };
	if (!slot)
		return;
	switch (below(worker, 6)) {
	case 0:
		EXPECT_RC(worker, rsendto(slot->fd, bytes, length, flags, (struct sockaddr *)&to, sizeof(to)),
			SOCKET_ERRORS);
		break;
	case 1:
		EXPECT_RC(worker, rwritev(slot->fd, parts, (int)below(worker, 3)), SOCKET_ERRORS);
		break;
	case 2:
		EXPECT_RC(worker, rsend(slot->fd, bytes, length, flags), SOCKET_ERRORS);
		break;
	case 3:
		EXPECT_RC(worker, rreadv(slot->fd, parts, (int)below(worker, 3)), SOCKET_ERRORS);
		break;
	default:
		EXPECT_RC(worker, rrecv(slot->fd, bytes, length, flags), SOCKET_ERRORS);
	}
}

static void poll_sockets(struct worker *worker)
{
	struct pollfd fds[3];
	unsigned count = 0;
	while (count < 3) {
		struct slot *slot = use(worker, RSOCKET);
		if (!slot)
			break;
		fds[count++] = (struct pollfd){ slot->fd, (short)boundary(worker), 0 };
	}
	EXPECT_RC(worker, rpoll(fds, count, (int)below(worker, 3)), SOCKET_ERRORS);
}

static void set_option(struct worker *worker)
{
	static const int levels[] = { SOL_SOCKET, IPPROTO_TCP, IPPROTO_IPV6, SOL_RDMA };
	struct slot *slot = use(worker, RSOCKET);
	uint64_t value[4] = { boundary(worker) % (1 << 20) };
	socklen_t length = below(worker, 9);
	if (!slot)
		return;
	int level = one_in(worker, 8) ? (int)boundary(worker) : PICK(worker, levels);
	int name = one_in(worker, 8) ? (int)boundary(worker) : (int)below(worker, 30);
	EXPECT_RC(worker, rsetsockopt(slot->fd, level, name, value, length), SOCKET_ERRORS);
	EXPECT_RC(worker, rgetsockopt(slot->fd, level, name, value, &length), SOCKET_ERRORS);
	EXPECT_RC(worker, rfcntl(slot->fd, F_GETFL), SOCKET_ERRORS);
}

static void shut_down(struct worker *worker)
{
	struct slot *slot = use(worker, RSOCKET);
	if (slot)
		EXPECT_RC(worker,
			rshutdown(slot->fd, one_in(worker, 8) ? (int)boundary(worker) : (int)below(worker, 3)),
			SOCKET_ERRORS);
}

/* A descriptor that is no rsocket: the kernel's, or nobody's. */
static void ask_no_socket(struct worker *worker)
{
	int fd = -1 - (int)below(worker, 3);
	char byte;
	EXPECT_RC(worker, rrecv(fd, &byte, 1, MSG_DONTWAIT), EBADF, ENOTSOCK);
	EXPECT_RC(worker, rclose(fd), EBADF);
	EXPECT_RC(worker, rlisten(fd, 1), EBADF, ENOTSOCK);
}

static const struct call calls[] = {
	{ "rsocket", open_socket, 6 },
	{ "rclose", close_socket, 3 },
	{ "rbind and its like", name_socket, 6 },
	{ "rlisten", serve, 3 },
	{ "raccept", accept_socket, 8 },
	{ "rsend and rrecv", transfer, 20 },
	{ "rpoll", poll_sockets, 4 },
	{ "rsetsockopt", set_option, 3 },
	{ "rshutdown", shut_down, 2 },
	{ "rsockets of nobody", ask_no_socket, 1 },
};
const struct calls socket_calls = { calls, sizeof(calls) / sizeof(calls[0]) };
