/* rsocket.h over the kernel's sockets, for tests of the preload library: what it asks of an rsocket, a socket does. */
#include "rspreload/rspreload.h"

#include <errno.h>
#include <stdarg.h>

int rsocket(int domain, int type, int protocol)
{
	return vb_real()->socket(domain, type, protocol);
}

int rbind(int rs, const struct sockaddr *addr, socklen_t length)
{
	return vb_real()->bind(rs, addr, length);
}

int rlisten(int rs, int backlog)
{
	return vb_real()->listen(rs, backlog);
}

int raccept(int rs, struct sockaddr *addr, socklen_t *length)
{
	return vb_real()->accept(rs, addr, length);
}

int rconnect(int rs, const struct sockaddr *addr, socklen_t length)
{
	return vb_real()->connect(rs, addr, length);
}

int rshutdown(int rs, int how)
{
	return vb_real()->shutdown(rs, how);
}

int rclose(int rs)
{
	return vb_real()->close(rs);
}

ssize_t rrecv(int rs, void *buf, size_t length, int flags)
{
	return vb_real()->recv(rs, buf, length, flags);
}

ssize_t rrecvfrom(int rs, void *buf, size_t size, int flags, struct sockaddr *from, socklen_t *length)
{
	return vb_real()->recvfrom(rs, buf, size, flags, from, length);
}

ssize_t rrecvmsg(int rs, struct msghdr *msg, int flags)
{
	return vb_real()->recvmsg(rs, msg, flags);
}

ssize_t rsend(int rs, const void *buf, size_t length, int flags)
{
	return vb_real()->send(rs, buf, length, flags);
}

ssize_t rsendto(int rs, const void *buf, size_t size, int flags, const struct sockaddr *to, socklen_t length)
{
	return vb_real()->sendto(rs, buf, size, flags, to, length);
}

ssize_t rsendmsg(int rs, const struct msghdr *msg, int flags)
{
	return vb_real()->sendmsg(rs, msg, flags);
}

ssize_t rread(int rs, void *buf, size_t count)
{
	return vb_real()->read(rs, buf, count);
}

ssize_t rreadv(int rs, const struct iovec *iov, int count)
{
	return vb_real()->readv(rs, iov, count);
}

ssize_t rwrite(int rs, const void *buf, size_t count)
{
	return vb_real()->write(rs, buf, count);
}

ssize_t rwritev(int rs, const struct iovec *iov, int count)
{
	return vb_real()->writev(rs, iov, count);
}

int rpoll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	return vb_real()->poll(fds, count, timeout_ms);
}

int rgetpeername(int rs, struct sockaddr *addr, socklen_t *length)
{
	return vb_real()->getpeername(rs, addr, length);
}

int rgetsockname(int rs, struct sockaddr *addr, socklen_t *length)
{
	return vb_real()->getsockname(rs, addr, length);
}

int rsetsockopt(int rs, int level, int name, const void *value, socklen_t length)
{
	return vb_real()->setsockopt(rs, level, name, value, length);
}

int rgetsockopt(int rs, int level, int name, void *value, socklen_t *length)
{
	return vb_real()->getsockopt(rs, level, name, value, length);
}

int rfcntl(int rs, int command, ...)
{
	va_list arguments;
	va_start(arguments, command);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
	return vb_real()->fcntl(rs, command, argument);
}
