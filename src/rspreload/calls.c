/* The calls about one socket. */
#include "rspreload/rspreload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <unistd.h>
#include "os/borrower.h"

/* ---- Edge-triggered waiters -------------------------------------------------------------------------------------- */

static void expect(int rs, short events)
{
	int error = errno;
	vb_epoll_expect(rs, events);
	errno = error;
}

/* After a call that changes the rsocket as a whole. */
static int turned(int rs, int result)
{
	expect(rs, POLLIN | POLLOUT | POLLRDHUP | POLLHUP | POLLERR);
	return result;
}

/* After a read, which leaves the end in place if it found that. */
static ssize_t taken(int rs, ssize_t received)
{
	if (received)
		expect(rs, POLLIN | POLLRDHUP | POLLHUP | POLLERR);
	return received;
}

/* After a send, which is a reason to expect room only if it found none. */
static ssize_t given(int rs, ssize_t sent, size_t wanted)
{
	if (sent < 0 || (size_t)sent < wanted)
		expect(rs, POLLOUT);
	return sent;
}

/* ---- Making ------------------------------------------------------------------------------------------------------ */

static int make_rsocket(int domain, int type, int protocol)
{
	vb_enter();
	int fd = rsocket(domain, type, protocol);
	if (fd >= 0)
		vb_config_set_sizes(fd);
	vb_leave();
	if (fd >= 0)
		vb_table_add(fd, fd);
	return fd;
}

VB_HOOK int socket(int domain, int type, int protocol)
{
	int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);

	if ((domain != AF_INET && domain != AF_INET6) || vb_is_inside())
		return vb_real()->socket(domain, type, protocol);
	if (kind != SOCK_STREAM && kind != SOCK_DGRAM) {
		vb_count_ordinary(domain, kind, "rsockets have no such type");
		return vb_real()->socket(domain, type, protocol);
	}
	if (!vb_config_wants(domain, kind, protocol)) {
		vb_count_ordinary(domain, kind, "not listed in /etc/rdma/rsocket/preload_config");
		return vb_real()->socket(domain, type, protocol);
	}
	int fd = make_rsocket(domain, type, protocol);
	if (fd >= 0) {
		vb_count_rsocket();
		return fd;
	}
	vb_count_ordinary(domain, kind, strerror(errno));
	return vb_real()->socket(domain, type, protocol);
}

static int set_flags(int fd, int flags)
{
	if (flags & SOCK_NONBLOCK && rfcntl(fd, F_SETFL, O_NONBLOCK))
		return -1;
	return flags & SOCK_CLOEXEC ? rfcntl(fd, F_SETFD, FD_CLOEXEC) : 0;
}

static int accept_rsocket(int rs, struct sockaddr *addr, socklen_t *length, int flags)
{
	vb_enter();
	int fd = raccept(rs, addr, length);
	if (fd >= 0 && set_flags(fd, flags)) {
		rclose(fd);
		fd = -1;
	}
	vb_leave();
	if (fd < 0)
		return fd;
	vb_table_add(fd, fd);
	vb_count_rsocket();
	return fd;
}

VB_HOOK int accept(int fd, struct sockaddr *addr, socklen_t *length)
{
	int rs = vb_rsocket_of(fd);
	return rs < 0 ? vb_real()->accept(fd, addr, length) : accept_rsocket(rs, addr, length, 0);
}

VB_HOOK int accept4(int fd, struct sockaddr *addr, socklen_t *length, int flags)
{
	int rs = vb_rsocket_of(fd);
	return rs < 0 ? vb_real()->accept4(fd, addr, length, flags) : accept_rsocket(rs, addr, length, flags);
}

/* ---- Descriptors ------------------------------------------------------------------------------------------------- */

static int own_rsocket_of(int fd)
{
	int rs = vb_rsocket_of(fd);
	return rs >= 0 && vb_is_borrower() ? -1 : rs;
}

/* The rsocket's own descriptor stays open until its last duplicate is closed, because its number is the rsocket's name.
 */
VB_HOOK int close(int fd)
{
	int rs = own_rsocket_of(fd);
	if (rs < 0) {
		vb_epoll_close(fd);
		return vb_real()->close(fd);
	}
	vb_epoll_forget(fd);
	bool is_last = vb_table_remove(fd);
	int result = fd != rs ? vb_real()->close(fd) : 0;
	return is_last ? VB_INSIDE(rclose(rs)) : result;
}

static int duplicated(int fd, int rs)
{
	if (fd >= 0)
		vb_table_add(fd, rs);
	return fd;
}

VB_HOOK int dup(int fd)
{
	int rs = own_rsocket_of(fd), copy = vb_real()->dup(rs < 0 ? fd : rs);
	return rs < 0 ? copy : duplicated(copy, rs);
}

VB_HOOK int dup3(int fd, int to, int flags)
{
	int rs = own_rsocket_of(fd);

	if (fd == to || (rs < 0 && own_rsocket_of(to) < 0))
		return vb_real()->dup3(fd, to, flags);
	if (own_rsocket_of(to) >= 0)
		close(to);
	/* An rsocket's own number is in use as long as a duplicate is open. */
	if (rs >= 0 && to == rs)
		return duplicated(to, rs);
	int copy = vb_real()->dup3(rs < 0 ? fd : rs, to, flags);
	return rs < 0 ? copy : duplicated(copy, rs);
}

VB_HOOK int dup2(int fd, int to)
{
	return fd == to || (own_rsocket_of(fd) < 0 && own_rsocket_of(to) < 0) ? vb_real()->dup2(fd, to)
									      : dup3(fd, to, 0);
}

static int control(int fd, int command, void *argument)
{
	int rs = own_rsocket_of(fd), number = (int)(intptr_t)argument;

	if (rs < 0)
		return vb_real()->fcntl(fd, command, argument);
	if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
		return duplicated(vb_real()->fcntl(rs, command, number), rs);
	if (command == F_GETFD || command == F_SETFD)
		return vb_real()->fcntl(fd, command, number);
	return VB_INSIDE(rfcntl(rs, command, number));
}

VB_HOOK int fcntl(int fd, int command, ...)
{
	va_list arguments;
	va_start(arguments, command);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
	return control(fd, command, argument);
}

VB_HOOK int fcntl64(int fd, int command, ...);
VB_HOOK int fcntl64(int fd, int command, ...)
{
	va_list arguments;
	va_start(arguments, command);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
	return control(fd, command, argument);
}

static int set_nonblocking(int rs, bool is_on)
{
	int flags = rfcntl(rs, F_GETFL);
	return flags < 0 ? flags : rfcntl(rs, F_SETFL, is_on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

VB_HOOK int ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;
	va_start(arguments, request);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
	int rs = vb_rsocket_of(fd);
	if (rs < 0)
		return vb_real()->ioctl(fd, request, argument);
	if (request == FIONBIO)
		return VB_INSIDE(set_nonblocking(rs, *(int *)argument));
	errno = ENOTTY;
	return -1;
}

/* ---- Connections ------------------------------------------------------------------------------------------------- */

VB_HOOK int bind(int fd, const struct sockaddr *addr, socklen_t length)
{
	int rs = vb_rsocket_of(fd);
	return rs < 0 ? vb_real()->bind(fd, addr, length) : turned(rs, VB_INSIDE(rbind(rs, addr, length)));
}

VB_HOOK int listen(int fd, int backlog)
{
	int rs = vb_rsocket_of(fd);
	return rs < 0 ? vb_real()->listen(fd, backlog) : turned(rs, VB_INSIDE(rlisten(rs, backlog)));
}

VB_HOOK int connect(int fd, const struct sockaddr *addr, socklen_t length)
{
	int rs = vb_rsocket_of(fd);
	return rs < 0 ? vb_real()->connect(fd, addr, length) : turned(rs, VB_INSIDE(rconnect(rs, addr, length)));
}

VB_HOOK int shutdown(int fd, int how)
{
	int rs = vb_rsocket_of(fd);
	return rs < 0 ? vb_real()->shutdown(fd, how) : turned(rs, VB_INSIDE(rshutdown(rs, how)));
}

VB_HOOK int getpeername(int fd, struct sockaddr *addr, socklen_t *length)
{
	int rs = vb_rsocket_of(fd);
	return rs < 0 ? vb_real()->getpeername(fd, addr, length) : VB_INSIDE(rgetpeername(rs, addr, length));
}

VB_HOOK int getsockname(int fd, struct sockaddr *addr, socklen_t *length)
{
	int rs = vb_rsocket_of(fd);
	return rs < 0 ? vb_real()->getsockname(fd, addr, length) : VB_INSIDE(rgetsockname(rs, addr, length));
}

VB_HOOK int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
	int rs = vb_rsocket_of(fd);
	return rs < 0 ? vb_real()->setsockopt(fd, level, name, value, length)
		      : VB_INSIDE(rsetsockopt(rs, level, name, value, length));
}

VB_HOOK int getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
	int rs = vb_rsocket_of(fd);
	return rs < 0 ? vb_real()->getsockopt(fd, level, name, value, length)
		      : VB_INSIDE(rgetsockopt(rs, level, name, value, length));
}

/* ---- Receiving --------------------------------------------------------------------------------------------------- */

VB_HOOK ssize_t recvfrom(int fd, void *buf, size_t size, int flags, struct sockaddr *from, socklen_t *length)
{
	int rs = vb_rsocket_of(fd);
	return rs < 0 ? vb_real()->recvfrom(fd, buf, size, flags, from, length)
		      : taken(rs, VB_INSIDE(rrecvfrom(rs, buf, size, flags, from, length)));
}

VB_HOOK ssize_t recv(int fd, void *buf, size_t size, int flags)
{
	int rs = vb_rsocket_of(fd);
	return rs < 0 ? vb_real()->recv(fd, buf, size, flags) : taken(rs, VB_INSIDE(rrecv(rs, buf, size, flags)));
}

VB_HOOK ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	int rs = vb_rsocket_of(fd);
	return rs < 0 ? vb_real()->recvmsg(fd, msg, flags) : taken(rs, VB_INSIDE(rrecvmsg(rs, msg, flags)));
}

VB_HOOK ssize_t read(int fd, void *buf, size_t size)
{
	int rs = vb_rsocket_of(fd);
	return rs < 0 ? vb_real()->read(fd, buf, size) : taken(rs, VB_INSIDE(rread(rs, buf, size)));
}

VB_HOOK ssize_t readv(int fd, const struct iovec *iov, int count)
{
	int rs = vb_rsocket_of(fd);
	return rs < 0 ? vb_real()->readv(fd, iov, count) : taken(rs, VB_INSIDE(rreadv(rs, iov, count)));
}

/* Programs built with _FORTIFY_SOURCE call these. */
VB_HOOK ssize_t __read_chk(int fd, void *buf, size_t size, size_t room);
VB_HOOK ssize_t __read_chk(int fd, void *buf, size_t size, size_t room)
{
	if (size > room)
		abort();
	return read(fd, buf, size);
}

VB_HOOK ssize_t __recv_chk(int fd, void *buf, size_t size, size_t room, int flags);
VB_HOOK ssize_t __recv_chk(int fd, void *buf, size_t size, size_t room, int flags)
{
	if (size > room)
		abort();
	return recv(fd, buf, size, flags);
}

VB_HOOK ssize_t __recvfrom_chk(
	int fd, void *buf, size_t size, size_t room, int flags, struct sockaddr *from, socklen_t *length);
VB_HOOK ssize_t __recvfrom_chk(
	int fd, void *buf, size_t size, size_t room, int flags, struct sockaddr *from, socklen_t *length)
{
	if (size > room)
		abort();
	return recvfrom(fd, buf, size, flags, from, length);
}

/* ---- Sending ----------------------------------------------------------------------------------------------------- */

VB_HOOK ssize_t sendto(int fd, const void *buf, size_t size, int flags, const struct sockaddr *to, socklen_t length)
{
	int rs = vb_rsocket_of(fd);
	return rs < 0 ? vb_real()->sendto(fd, buf, size, flags, to, length)
		      : given(rs, VB_INSIDE(rsendto(rs, buf, size, flags, to, length)), size);
}

VB_HOOK ssize_t send(int fd, const void *buf, size_t size, int flags)
{
	int rs = vb_rsocket_of(fd);
	return rs < 0 ? vb_real()->send(fd, buf, size, flags) : given(rs, VB_INSIDE(rsend(rs, buf, size, flags)), size);
}

VB_HOOK ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	int rs = vb_rsocket_of(fd);
	return rs < 0 ? vb_real()->sendmsg(fd, msg, flags) : given(rs, VB_INSIDE(rsendmsg(rs, msg, flags)), SIZE_MAX);
}

VB_HOOK ssize_t write(int fd, const void *buf, size_t size)
{
	int rs = vb_rsocket_of(fd);
	return rs < 0 ? vb_real()->write(fd, buf, size) : given(rs, VB_INSIDE(rwrite(rs, buf, size)), size);
}

VB_HOOK ssize_t writev(int fd, const struct iovec *iov, int count)
{
	int rs = vb_rsocket_of(fd);
	return rs < 0 ? vb_real()->writev(fd, iov, count) : given(rs, VB_INSIDE(rwritev(rs, iov, count)), SIZE_MAX);
}

/* Copies from a file through a buffer. The file's position shows how much was sent, so bytes read but not sent are read
 * again. */
static ssize_t send_file(int rs, int from, off_t *offset, size_t count)
{
	enum { PIECE = 65536 };
	off_t at = offset ? *offset : lseek(from, 0, SEEK_CUR);
	size_t sent = 0;
	char *buffer = malloc(PIECE);
	ssize_t n = buffer && at >= 0 ? 1 : -1;

	while (n > 0 && sent < count) {
		size_t wanted = count - sent < PIECE ? count - sent : PIECE;
		n = pread(from, buffer, wanted, at);
		if (n > 0)
			n = rwrite(rs, buffer, (size_t)n);
		if (n > 0) {
			at += n;
			sent += (size_t)n;
		}
	}
	int error = errno;
	free(buffer);
	if (offset)
		*offset = at;
	else if (sent && lseek(from, at, SEEK_SET) < 0)
		return -1;
	errno = error;
	return sent || n >= 0 ? (ssize_t)sent : -1;
}

VB_HOOK ssize_t sendfile(int to, int from, off_t *offset, size_t count)
{
	int rs = vb_rsocket_of(to);
	if (rs < 0)
		return vb_real()->sendfile(to, from, offset, count);
	return given(rs, VB_INSIDE(send_file(rs, from, offset, count)), count);
}

VB_HOOK ssize_t sendfile64(int to, int from, off_t *offset, size_t count);
VB_HOOK ssize_t sendfile64(int to, int from, off_t *offset, size_t count)
{
	return sendfile(to, from, offset, count);
}
