/* The first and the last calls about an rsocket: rsocket, rshutdown, rclose. */
#include "rsocket/datagram.h"

#include <fcntl.h>
#include <unistd.h>

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

static int open_rsocket(struct vb_rsocket *rs)
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
	struct vb_rsocket *rs = vb_rs_create(domain, type, &vb_rs_defaults()->options);
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

VB_RS_EXPORT int rshutdown(int fd, int how)
{
	struct vb_rsocket *rs = vb_rs_get(fd);
	if (!rs)
		return -1;
	pthread_mutex_lock(&rs->lock);
	int error = vb_rs_shut(rs, how);
	pthread_mutex_unlock(&rs->lock);
	vb_rs_put(rs);
	return vb_rs_result(error);
}

/* In a child, only the descriptors are ours: the parent's NIC goes on. */
static int close_inherited(struct vb_rsocket *rs)
{
	vb_rs_close_copies(rs);
	return close(rs->fd) ? -errno : 0;
}

VB_RS_EXPORT int rclose(int fd)
{
	struct vb_rsocket *rs = vb_rs_remove(fd);
	if (!rs)
		return vb_repoll_close(fd) ? 0 : vb_rs_result(-EBADF);
	vb_repoll_forget(fd);
	if (!vb_rs_is_ours(rs))
		return vb_rs_result(close_inherited(rs));
	vb_rs_close(rs);
	return 0;
}
