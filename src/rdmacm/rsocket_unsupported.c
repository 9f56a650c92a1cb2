/* Sockets over RDMA are not offered: each call fails with ENOSYS. Programs that merely link them load. */
#include <rdma/rsocket.h>
#include "rdmacm/objects.h"

static int refuse(void)
{
	return vb_result(-ENOSYS);
}

#define REFUSED(type, name, ...)                                                                                       \
	VB_EXPORT type name(__VA_ARGS__)                                                                               \
	{                                                                                                              \
		return (type)refuse();                                                                                 \
	}

REFUSED(int, rsocket, int domain, int type, int protocol)
REFUSED(int, rbind, int socket, const struct sockaddr *addr, socklen_t length)
REFUSED(int, rlisten, int socket, int backlog)
REFUSED(int, raccept, int socket, struct sockaddr *addr, socklen_t *length)
REFUSED(int, rconnect, int socket, const struct sockaddr *addr, socklen_t length)
REFUSED(int, rshutdown, int socket, int how)
REFUSED(int, rclose, int socket)
REFUSED(ssize_t, rrecv, int socket, void *buffer, size_t length, int flags)
REFUSED(ssize_t, rrecvfrom, int socket, void *buffer, size_t length, int flags, struct sockaddr *addr,
	socklen_t *addr_length)
REFUSED(ssize_t, rrecvmsg, int socket, struct msghdr *message, int flags)
REFUSED(ssize_t, rsend, int socket, const void *buffer, size_t length, int flags)
REFUSED(ssize_t, rsendto, int socket, const void *buffer, size_t length, int flags, const struct sockaddr *addr,
	socklen_t addr_length)
REFUSED(ssize_t, rsendmsg, int socket, const struct msghdr *message, int flags)
REFUSED(ssize_t, rread, int socket, void *buffer, size_t count)
REFUSED(ssize_t, rreadv, int socket, const struct iovec *iov, int count)
REFUSED(ssize_t, rwrite, int socket, const void *buffer, size_t count)
REFUSED(ssize_t, rwritev, int socket, const struct iovec *iov, int count)
REFUSED(int, rpoll, struct pollfd *fds, nfds_t count, int timeout)
REFUSED(int, rselect, int count, fd_set *readable, fd_set *writable, fd_set *exceptional, struct timeval *timeout)
REFUSED(int, rgetpeername, int socket, struct sockaddr *addr, socklen_t *length)
REFUSED(int, rgetsockname, int socket, struct sockaddr *addr, socklen_t *length)
REFUSED(int, rsetsockopt, int socket, int level, int name, const void *value, socklen_t length)
REFUSED(int, rgetsockopt, int socket, int level, int name, void *value, socklen_t *length)
REFUSED(int, rfcntl, int socket, int command, ...)
REFUSED(off_t, riomap, int socket, void *buffer, size_t length, int protection, int flags, off_t offset)
REFUSED(int, riounmap, int socket, void *buffer, size_t length)
REFUSED(size_t, riowrite, int socket, const void *buffer, size_t count, off_t offset, int flags)
