/* System calls that the hooks stand in front of, asked of the kernel directly: no answer shall come back here. */
#ifndef VB_PRELOAD_KERNEL_H
#define VB_PRELOAD_KERNEL_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int kernel_lstat(const char *path, struct stat *status)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

static inline ssize_t kernel_readlink(const char *path, char *buffer, size_t size)
{
	return syscall(SYS_readlinkat, AT_FDCWD, path, buffer, size);
}

/* The kernel's path of an open file, into room for size; false: it has none. */
static inline bool kernel_path_of(int fd, char *path, size_t size)
{
	char link[32];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t length = kernel_readlink(link, path, size - 1);
	path[length > 0 ? length : 0] = '\0';
	return length > 0;
}

/* The first bytes of a file, as a text. */
static inline void kernel_read_text(int fd, char *text, size_t size)
{
	ssize_t length = syscall(SYS_pread64, fd, text, size - 1, 0L);
	text[length > 0 ? length : 0] = '\0';
}

#endif
