/* The answers for a path that exists in the tree (tree.h) but not on the machine. hooks.c and hooks_dir.c ask libc
 * first, and call these only if libc found nothing and vb_may_be_shown says that a shown file is possible. Each returns
 * what libc's function of that name would, with errno. A path that is not shown fails with the errno that was set
 * before; a path that leads through the tree to a real file (a device's link to its bus) gets the real answer. errno is
 * otherwise unchanged. These functions keep no state but a flag, hold no lock, and are not slow for other paths. */
#ifndef VB_PRELOAD_SHOWN_H
#define VB_PRELOAD_SHOWN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>
#include "preload/memory.h"
#include "preload/resolve.h"

int vb_shown_open(int base_fd, const char *path, int flags);
int vb_shown_stat(int base_fd, const char *path, struct stat *status, int flags);
int vb_shown_statx(int base_fd, const char *path, int flags, unsigned mask, struct statx *status);
int vb_shown_access(int base_fd, const char *path, int mode, int flags);
ssize_t vb_shown_readlink(int base_fd, const char *path, char *buffer, size_t size);
/* Extended attributes: no shown file has them. */
int vb_shown_attribute(const char *path, bool follows_last);

/* status is fstat's answer for fd; it is corrected if fd is a shown directory. */
void vb_shown_fstat(int fd, struct stat *status);
void vb_shown_fstatx(int fd, struct statx *status);

/* Has this process opened a counter? */
bool vb_shown_has_live(void);
/* fd is about to be read: if it is a counter's and at its beginning, its file gets the present value. */
void vb_shown_refresh(int fd);

/* Calls each for every entry that the tree has in the directory of this canonical path. */
void vb_shown_list(const char *path, void (*each)(void *user, const char *name, enum vb_kind kind), void *user);
ino_t vb_shown_inode(const char *path);

#endif
