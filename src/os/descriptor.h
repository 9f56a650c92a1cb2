/* The library's descriptors in a program that may close them and then reuse their numbers. */
#ifndef VB_OS_DESCRIPTOR_H
#define VB_OS_DESCRIPTOR_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define VB_TYPE_ANONYMOUS 0 /* the kernel gives eventfds, timerfds and epoll sets a mode without a type */

/* type: S_IFSOCK, S_IFIFO, VB_TYPE_ANONYMOUS */
static inline bool vb_descriptor_is(int fd, mode_t type)
{
	struct stat status;

	return fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == type;
}

/* socket() of the kernel: librspreload.so, which may stand before the C library, takes other calls for the program's.
 * So does a sanitizer's function that stands before it, for it calls from the program. */
static inline int vb_descriptor_socket(int domain, int type, int protocol)
{
#ifdef __SANITIZE_THREAD__ /* a library built with it: it must see that a number is another file's now */
	return socket(domain, type, protocol);
#else
	return (int)syscall(SYS_socket, domain, type, protocol);
#endif
}

/* Closes fd if it has our type. Another type means that the program closed ours and reused the number. No cancellation
 * point. */
static inline void vb_descriptor_close(int fd, mode_t type)
{
	if (fd >= 0 && vb_descriptor_is(fd, type))
#ifdef __SANITIZE_THREAD__
		close(fd);
#else
		syscall(SYS_close, fd);
#endif
}

/* Adds count to an eventfd. False: the number is another file's by now. No cancellation point. */
static inline bool vb_eventfd_ring(int fd, uint64_t count)
{
	if (!vb_descriptor_is(fd, VB_TYPE_ANONYMOUS))
		return false;
	return syscall(SYS_write, fd, &count, sizeof(count)) == (long)sizeof(count) || errno == EAGAIN;
}

/* Reads the count of an eventfd or timerfd, with the same check. */
static inline bool vb_eventfd_take(int fd)
{
	uint64_t ignored;

	if (!vb_descriptor_is(fd, VB_TYPE_ANONYMOUS))
		return false;
	return syscall(SYS_read, fd, &ignored, sizeof(ignored)) == (long)sizeof(ignored) || errno == EAGAIN;
}

/* poll() without waiting, and not cancelled: how many of them are ready now. */
static inline int vb_descriptors_ready(struct pollfd *fds, unsigned count)
{
	const struct timespec now = { 0 };

	return (int)syscall(SYS_ppoll, fds, count, &now, NULL, 0);
}

#endif
