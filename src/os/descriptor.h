/* Descriptors of ours in a program that may close them, and have files of its own under their numbers. */
#ifndef VB_OS_DESCRIPTOR_H
#define VB_OS_DESCRIPTOR_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define VB_TYPE_ANONYMOUS 0 /* the kernel gives eventfds, timerfds and epoll sets a mode without a type */

/* type: S_IFSOCK, S_IFIFO, VB_TYPE_ANONYMOUS */
static inline bool vb_descriptor_is(int fd, mode_t type)
{
	struct stat status;

	return fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == type;
}

/* Closes what is ours by its type; any other file is the program's, which has closed ours. Not cancelled. */
static inline void vb_descriptor_close(int fd, mode_t type)
{
	if (fd >= 0 && vb_descriptor_is(fd, type))
		syscall(SYS_close, fd);
}

/* Counts an eventfd up, unless the number is another file's by now: false. Not cancelled. */
static inline bool vb_eventfd_ring(int fd, uint64_t count)
{
	if (!vb_descriptor_is(fd, VB_TYPE_ANONYMOUS))
		return false;
	return syscall(SYS_write, fd, &count, sizeof(count)) == (long)sizeof(count) || errno == EAGAIN;
}

/* Takes what an eventfd or a timerfd has counted, with the same care. */
static inline bool vb_eventfd_take(int fd)
{
	uint64_t ignored;

	if (!vb_descriptor_is(fd, VB_TYPE_ANONYMOUS))
		return false;
	return syscall(SYS_read, fd, &ignored, sizeof(ignored)) == (long)sizeof(ignored) || errno == EAGAIN;
}

#endif
