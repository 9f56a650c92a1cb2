/* Answers for paths of the tree. The kernel is asked by system calls (kernel.h), never through libc's functions of the
 * hooks. Not here: the tree and which paths lead into it (resolve.c), the functions that programs call (hooks.c). */
#include "preload/shown.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include "preload/kernel.h"

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static atomic_bool has_live; /* a counter has been opened by this process */

static int fail(int error)
{
	errno = error;
	return -1;
}

static int open_directory(const char *path, int flags)
{
	if ((flags & O_ACCMODE) != O_RDONLY || flags & O_CREAT)
		return fail(EISDIR);
	return vb_memory_directory(path, flags);
}

static int open_shown(const struct vb_found *place, int flags)
{
	if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		return fail(EEXIST);
	if (place->node.kind == VB_DIRECTORY)
		return open_directory(place->path, flags);
	if (flags & O_DIRECTORY)
		return fail(ENOTDIR);
	if (place->node.kind == VB_LINK)
		return fail(ELOOP);
	if (place->node.kind == VB_CHARACTER_DEVICE)
		return (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", flags & ~O_CREAT, 0);
	if ((flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC)
		return fail(EACCES);
	if (!place->node.is_live)
		return vb_memory_file(place->node.text, flags);
	atomic_store(&has_live, true);
	return vb_memory_counter(place->path, place->node.text, flags);
}

bool vb_shown_has_live(void)
{
	return atomic_load_explicit(&has_live, memory_order_relaxed);
}

/* The counter of a device that has been closed keeps its last value. */
void vb_shown_refresh(int fd)
{
	char path[PATH_MAX];
	struct vb_tree tree;
	struct vb_node node;
	int error = errno;

	if (vb_memory_counter_of(fd, path) && syscall(SYS_lseek, fd, 0, SEEK_CUR) == 0 && vb_tree_read(&tree)) {
		vb_tree_find(&tree, path, &node);
		if (node.is_live)
			vb_memory_counter_set(fd, strtoull(node.text, NULL, 10));
		vb_tree_free(&tree);
	}
	errno = error;
}

/* Goes on if the path leads to a shown file, place. Else returns. */
#define RESOLVE(follows_last, real)                                                                                    \
	struct vb_found place;                                                                                         \
	switch (vb_shown_resolve(base_fd, path, follows_last, &place)) {                                               \
	case VB_ELSEWHERE:                                                                                             \
		return -1;                                                                                             \
	case VB_REAL:                                                                                                  \
		return real;                                                                                           \
	case VB_SHOWN:                                                                                                 \
		break;                                                                                                 \
	}

int vb_shown_open(int base_fd, const char *path, int flags)
{
	RESOLVE(!(flags & O_NOFOLLOW), (int)syscall(SYS_openat, AT_FDCWD, place.path, flags & ~(O_CREAT | O_EXCL), 0))
	int error = errno, fd = open_shown(&place, flags);
	if (fd >= 0)
		errno = error;
	return fd;
}

/* ---- Status ------------------------------------------------------------------------------------------------------ */

ino_t vb_shown_inode(const char *path)
{
	uint64_t hash = 0xCBF29CE484222325u;
	for (; *path; path++)
		hash = (hash ^ (uint8_t)*path) * 0x100000001B3u;
	return (ino_t)(hash | (uint64_t)1 << 63); /* above the numbers of the kernel */
}

static mode_t mode_of(enum vb_kind kind)
{
	switch (kind) {
	case VB_DIRECTORY:
		return S_IFDIR | 0755;
	case VB_LINK:
		return S_IFLNK | 0777;
	case VB_CHARACTER_DEVICE:
		return S_IFCHR | 0666;
	default:
		return S_IFREG | 0444;
	}
}

/* The device and the times are those of the null device, which every machine has; a shown character device is the null
 * device. */
static void fill_status(const char *path, const struct vb_node *node, struct stat *status)
{
	struct stat null = { .st_nlink = 1 };

	syscall(SYS_newfstatat, AT_FDCWD, "/dev/null", &null, 0);
	*status = null;
	status->st_mode = mode_of(node->kind);
	status->st_ino = vb_shown_inode(path);
	status->st_uid = status->st_gid = 0;
	if (node->kind == VB_CHARACTER_DEVICE)
		return;
	status->st_rdev = 0;
	status->st_nlink = node->kind == VB_DIRECTORY ? 2 : 1;
	status->st_size = node->kind == VB_FILE ? 4096 : node->kind == VB_LINK ? (off_t)strlen(node->text) : 0;
}

static struct statx_timestamp timestamp(struct timespec at)
{
	return (struct statx_timestamp){ .tv_sec = at.tv_sec, .tv_nsec = (uint32_t)at.tv_nsec };
}

static void to_statx(const struct stat *from, struct statx *to)
{
	*to = (struct statx){
		.stx_mask = STATX_BASIC_STATS,
		.stx_blksize = (uint32_t)from->st_blksize,
		.stx_nlink = (uint32_t)from->st_nlink,
		.stx_uid = from->st_uid,
		.stx_gid = from->st_gid,
		.stx_mode = (uint16_t)from->st_mode,
		.stx_ino = from->st_ino,
		.stx_size = (uint64_t)from->st_size,
		.stx_blocks = (uint64_t)from->st_blocks,
		.stx_atime = timestamp(from->st_atim),
		.stx_ctime = timestamp(from->st_ctim),
		.stx_mtime = timestamp(from->st_mtim),
		.stx_rdev_major = major(from->st_rdev),
		.stx_rdev_minor = minor(from->st_rdev),
		.stx_dev_major = major(from->st_dev),
		.stx_dev_minor = minor(from->st_dev),
	};
}

int vb_shown_stat(int base_fd, const char *path, struct stat *status, int flags)
{
	RESOLVE(!(flags & AT_SYMLINK_NOFOLLOW), (int)syscall(SYS_newfstatat, AT_FDCWD, place.path, status, flags))
	int error = errno;
	fill_status(place.path, &place.node, status);
	errno = error;
	return 0;
}

int vb_shown_statx(int base_fd, const char *path, int flags, unsigned mask, struct statx *status)
{
	RESOLVE(!(flags & AT_SYMLINK_NOFOLLOW), (int)syscall(SYS_statx, AT_FDCWD, place.path, flags, mask, status))
	struct stat plain;
	int error = errno;
	fill_status(place.path, &place.node, &plain);
	to_statx(&plain, status);
	errno = error;
	return 0;
}

static bool directory_status(int fd, struct stat *status)
{
	const struct vb_node node = { .kind = VB_DIRECTORY };
	char path[PATH_MAX];

	if (!vb_shown_directory_of(fd, path))
		return false;
	int error = errno;
	fill_status(path, &node, status);
	errno = error;
	return true;
}

void vb_shown_fstat(int fd, struct stat *status)
{
	if (vb_memory_may_be_directory(status->st_mode, status->st_nlink))
		directory_status(fd, status);
}

void vb_shown_fstatx(int fd, struct statx *status)
{
	struct stat plain;
	if (vb_memory_may_be_directory(status->stx_mode, status->stx_nlink) && directory_status(fd, &plain))
		to_statx(&plain, status);
}

/* ---- Access, links, names ---------------------------------------------------------------------------------------- */

/* As sysfs answers an ordinary user; writing is never allowed. */
static bool is_allowed(enum vb_kind kind, int mode)
{
	switch (kind) {
	case VB_DIRECTORY:
		return !(mode & W_OK);
	case VB_CHARACTER_DEVICE:
		return !(mode & X_OK);
	case VB_LINK:
		return true;
	default:
		return !(mode & (W_OK | X_OK));
	}
}

int vb_shown_access(int base_fd, const char *path, int mode, int flags)
{
	RESOLVE(!(flags & AT_SYMLINK_NOFOLLOW), (int)syscall(SYS_faccessat, AT_FDCWD, place.path, mode))
	return is_allowed(place.node.kind, mode) ? 0 : fail(EACCES);
}

ssize_t vb_shown_readlink(int base_fd, const char *path, char *buffer, size_t size)
{
	RESOLVE(false, kernel_readlink(place.path, buffer, size))
	size_t length = strlen(place.node.text);
	if (place.node.kind != VB_LINK || size == 0)
		return fail(EINVAL);
	memcpy(buffer, place.node.text, length < size ? length : size);
	return (ssize_t)(length < size ? length : size);
}

int vb_shown_attribute(const char *path, bool follows_last)
{
	struct vb_found place;

	if (vb_shown_resolve(AT_FDCWD, path, follows_last, &place) != VB_ELSEWHERE)
		errno = EOPNOTSUPP;
	return -1;
}

void vb_shown_list(const char *path, void (*each)(void *user, const char *name, enum vb_kind kind), void *user)
{
	struct vb_tree tree;
	int error = errno;

	if (vb_tree_read(&tree)) {
		vb_tree_list(&tree, path, each, user);
		vb_tree_free(&tree);
	}
	errno = error;
}
