/* What is answered for a path that the machine does not have and the tree (tree.h) does. hooks.c and hooks_dir.c ask
 * libc first, and these only when libc found nothing and vb_may_be_shown says that asking is worth it.
 *
 * Each returns what libc's function of that name would, with errno. A path that is not shown fails with the errno that
 * was set before; one that leads through the tree to a real file (a device's link to its bus) is answered by the real
 * one. errno is otherwise left alone. Nothing here keeps state, holds a lock or is slow for other paths. */
#ifndef VB_PRELOAD_SHOWN_H
#define VB_PRELOAD_SHOWN_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>
#include "preload/tree.h"

/* Is errno that of a missing file, and could the path be one of ours? */
bool vb_may_be_shown(int dirfd, const char *path);
/* Could this absolute path be one of ours? */
bool vb_names_ours(const char *path);

enum vb_where { VB_ELSEWHERE, VB_REAL, VB_SHOWN };

struct vb_found {
	char path[PATH_MAX]; /* canonical */
	struct vb_node node; /* VB_SHOWN */
};

/* Where the path leads. VB_ELSEWHERE, with errno as it was: to nothing of ours. VB_REAL: through ours to something that
 * exists; place->path is its path. */
enum vb_where vb_shown_resolve(int dirfd, const char *path, bool follows_last, struct vb_found *place);

int vb_shown_open(int dirfd, const char *path, int flags);
int vb_shown_stat(int dirfd, const char *path, struct stat *status, int flags);
int vb_shown_statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *status);
int vb_shown_access(int dirfd, const char *path, int mode, int flags);
ssize_t vb_shown_readlink(int dirfd, const char *path, char *buffer, size_t size);
/* Extended attributes: no shown file has them. */
int vb_shown_attribute(const char *path, bool follows_last);

/* A descriptor of a shown directory is a sealed file in memory that holds its path. True, with the path, when fd is
 * such; errno is left alone. */
bool vb_shown_directory_of(int fd, char path[PATH_MAX]);
/* status is what fstat said of fd; corrected when it is a shown directory. */
void vb_shown_fstat(int fd, struct stat *status);
void vb_shown_fstatx(int fd, struct statx *status);

/* Has this process opened a counter? */
bool vb_shown_has_live(void);
/* fd is about to be read: if it is a counter's, and at its beginning, its file is made to say the present value. */
void vb_shown_refresh(int fd);

/* Calls each for what the tree has in the directory of this canonical path. */
void vb_shown_list(const char *path, void (*each)(void *user, const char *name, enum vb_kind kind), void *user);
ino_t vb_shown_inode(const char *path);

#endif
