/* Making rsockets. What they are is in objects.h; how they end, in close.c. */
#include "rsocket/objects.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

int vb_rs_watch(struct rsocket *rs, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };
	return epoll_ctl(rs->fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int open_channel(struct rsocket *rs)
{
	rs->channel = rdma_create_event_channel();
	if (!rs->channel)
		return -errno;
	int flags = fcntl(rs->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(rs->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return vb_rs_watch(rs, rs->channel->fd);
}

static void init_locks(struct rsocket *rs)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&rs->sending, NULL);
	pthread_mutex_init(&rs->receiving, NULL);
	pthread_mutex_init(&rs->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&rs->changed, &attr);
	pthread_condattr_destroy(&attr);
}

struct rsocket *vb_rs_create(int domain, int type, const struct vb_rs_options *options)
{
	struct rsocket *rs = calloc(1, sizeof(*rs));
	if (!rs)
		return NULL;
	rs->domain = domain;
	rs->type = type;
	rs->generation = vb_rs_generation();
	rs->options = *options;
	rs->references = 1;
	init_locks(rs);
	vb_list_init(&rs->requests);
	vb_list_init(&rs->made);
	vb_list_init(&rs->mappings);
	vb_list_init(&rs->keepalive);
	rs->fd = epoll_create1(0);
	int error = rs->fd < 0 ? -errno : 0;
	if (!error && type == SOCK_STREAM)
		error = open_channel(rs);
	if (!error)
		return rs;
	vb_rs_destroy(rs);
	errno = -error;
	return NULL;
}

static int check_kind(int domain, int type, int protocol)
{
	if (domain != AF_INET && domain != AF_INET6)
		return -EAFNOSUPPORT;
	if (type != SOCK_STREAM && type != SOCK_DGRAM)
		return -ESOCKTNOSUPPORT;
	if (protocol && protocol != (type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP))
		return -EPROTONOSUPPORT;
	return 0;
}

static int open_rsocket(struct rsocket *rs)
{
	if (rs->type == SOCK_DGRAM)
		return vb_rs_datagram_open(rs);
	return rdma_create_id(rs->channel, &rs->id, rs, RDMA_PS_TCP) ? -errno : 0;
}

VB_RS_EXPORT int rsocket(int domain, int type, int protocol)
{
	int flags = type & (SOCK_NONBLOCK | SOCK_CLOEXEC);

	type &= ~flags;
	int error = check_kind(domain, type, protocol);
	if (error)
		return vb_rs_result(error);
	struct rsocket *rs = vb_rs_create(domain, type, &vb_rs_defaults()->options);
	if (!rs)
		return -1;
	rs->options.is_nonblocking = flags & SOCK_NONBLOCK;
	if (flags & SOCK_CLOEXEC && fcntl(rs->fd, F_SETFD, FD_CLOEXEC) < 0)
		error = -errno;
	if (!error)
		error = open_rsocket(rs);
	if (!error)
		error = vb_rs_enter(rs);
	if (!error)
		return rs->fd;
	vb_rs_put(rs);
	return vb_rs_result(error);
}
