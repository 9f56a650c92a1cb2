/* Answers for paths of the tree. The kernel is asked by system calls, never through libc's functions of the hooks.
 * The devices are read anew for each answer: it is right in every namespace and at any time, and nothing has to be kept
 * anywhere or cleaned up. Not here: what is in the tree (tree.c), the functions that programs call (hooks.c). */
#include "preload/shown.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "host/devices/devices.h"
#include "host/settings.h"
#include "preload/working.h"

#define LINKS_MAX 40 /* as the kernel */

/* ---- The kernel ------------------------------------------------------------------------------------------------- */

static int kernel_lstat(const char *path, struct stat *status)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

static ssize_t kernel_readlink(const char *path, char *buffer, size_t size)
{
	return syscall(SYS_readlinkat, AT_FDCWD, path, buffer, size);
}

/* ---- The tree --------------------------------------------------------------------------------------------------- */

/* Counters are the process's own, so its library has them; a process that has none loaded shows none. */
static const char *counter(const char *device, unsigned n, uint64_t *value)
{
	const char *(*library_counter)(const char *, unsigned, uint64_t *) = NULL;
	void *library = dlopen("libibverbs.so.1", RTLD_NOLOAD | RTLD_LAZY);
	if (!library)
		return NULL;
	library_counter = (const char *(*)(const char *, unsigned, uint64_t *))dlsym(library, "verbena_port_counter");
	const char *name = library_counter ? library_counter(device, n, value) : NULL;
	dlclose(library);
	return name;
}

static bool read_number(const char *path, unsigned long *number)
{
	char text[32];
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return false;
	ssize_t length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return false;
	text[length] = '\0';
	*number = strtoul(text, NULL, 10);
	return true;
}

/* "0000:00:03.0" */
static bool is_pci_name(const char *name)
{
	static const char form[] = "xxxx:xx:xx.x";
	size_t i = 0;

	for (; form[i] && name[i]; i++)
		if (form[i] == 'x' ? !strchr("0123456789abcdef", name[i]) : name[i] != form[i])
			return false;
	return !form[i] && !name[i];
}

/* Cuts the path behind its last part that is a PCI device: below lies what its driver made, as virtio0. False: none. */
static bool cut_to_pci(char *path)
{
	for (char *slash; (slash = strrchr(path, '/')); *slash = '\0')
		if (is_pci_name(slash + 1))
			return true;
	return false;
}

/* sysfs may be another network namespace's: there the interface of that name is another one. */
static bool hardware(const struct vb_device_info *device, char *text, size_t size)
{
	char path[128], link[VB_NODE_TEXT];
	unsigned long ifindex;

	snprintf(path, sizeof(path), "/sys/class/net/%s/ifindex", device->ifname);
	if (!read_number(path, &ifindex) || ifindex != device->ifindex)
		return false;
	/* /sys/class/net/eth0 -> ../../devices/pci0000:00/0000:00:03.0/net/eth0, whose device is two levels up. */
	snprintf(path, sizeof(path), "/sys/class/net/%s", device->ifname);
	ssize_t length = kernel_readlink(path, link, sizeof(link) - 1);
	if (length <= 0)
		return false;
	link[length] = '\0';
	char *net = strstr(link, "/net/");
	if (strncmp(link, "../../devices/", 14) != 0 || strncmp(link, "../../devices/virtual/", 22) == 0 || !net)
		return false;
	*net = '\0';
	return cut_to_pci(link) && snprintf(text, size, "/sys/%s", link + 6) < (int)size;
}

static bool tree_read(struct vb_tree *tree)
{
	const struct vb_settings *settings = vb_settings_get();

	*tree = (struct vb_tree){ .counter = counter, .hardware = hardware };
	/* Names that are no device are libibverbs.so.1's to complain of. */
	return settings && vb_devices_named(settings->text[VB_SETTING_DEVICES], &tree->devices, &tree->count) == 0;
}

static void tree_free(struct vb_tree *tree)
{
	free(tree->devices);
}

/* ---- Which paths ------------------------------------------------------------------------------------------------ */

/* Every path of the tree contains one of these. */
bool vb_names_ours(const char *path)
{
	return strstr(path, "infiniband") || strstr(path, "/pci");
}

/* The directory that relative paths begin at; of a shown one its path in the tree. */
static bool base_of(int dirfd, char base[PATH_MAX])
{
	char link[32];

	if (dirfd == AT_FDCWD)
		return vb_working_get(base) || (syscall(SYS_getcwd, base, PATH_MAX) > 0 && base[0] == '/');
	if (vb_shown_directory_of(dirfd, base))
		return true;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", dirfd);
	ssize_t length = kernel_readlink(link, base, PATH_MAX - 1);
	if (length <= 0 || base[0] != '/')
		return false;
	base[length] = '\0';
	return true;
}

/* The absolute path, not yet canonical, into whole. */
static bool make_absolute(int dirfd, const char *path, char whole[PATH_MAX])
{
	char base[PATH_MAX];
	int written;

	if (path[0] == '/')
		written = snprintf(whole, PATH_MAX, "%s", path);
	else if (base_of(dirfd, base))
		written = snprintf(whole, PATH_MAX, "%s/%s", base, path);
	else
		return false;
	return written < PATH_MAX;
}

bool vb_may_be_shown(int dirfd, const char *path)
{
	char whole[PATH_MAX];
	int error = errno;

	/* Any other error may mean that the pointer is no good. */
	if ((error != ENOENT && error != ENOTDIR) || !path || !path[0])
		return false;
	if (path[0] == '/')
		return vb_names_ours(path);
	bool may_be = make_absolute(dirfd, path, whole) && vb_names_ours(whole);
	errno = error;
	return may_be;
}

/* ---- Resolution ------------------------------------------------------------------------------------------------- */

struct walk {
	char at[PATH_MAX];   /* canonical so far; "" is the root */
	char rest[PATH_MAX]; /* still to go */
	bool is_real;
	unsigned links;
	struct vb_tree tree;
	bool has_tree;
	struct vb_node *node; /* of at, where that is not real */
};

/* Puts a link's target before the rest. at is where the link lies. */
static bool enter_link(struct walk *walk, const char *target)
{
	char rest[PATH_MAX];

	if (++walk->links > LINKS_MAX || snprintf(rest, sizeof(rest), "%s/%s", target, walk->rest) >= (int)sizeof(rest))
		return false;
	memcpy(walk->rest, rest, sizeof(rest));
	if (target[0] == '/')
		walk->at[0] = '\0';
	return true;
}

static enum vb_kind kind_of_real(const struct stat *status)
{
	return S_ISLNK(status->st_mode) ? VB_LINK : S_ISDIR(status->st_mode) ? VB_DIRECTORY : VB_FILE;
}

/* What lies at walk->at, and the target if it is a link. */
static enum vb_kind look(struct walk *walk, char target[PATH_MAX])
{
	struct stat status;

	walk->is_real = kernel_lstat(walk->at, &status) == 0;
	if (walk->is_real) {
		enum vb_kind kind = kind_of_real(&status);
		if (kind != VB_LINK)
			return kind;
		ssize_t length = kernel_readlink(walk->at, target, PATH_MAX - 1);
		target[length > 0 ? length : 0] = '\0';
		return length > 0 ? VB_LINK : VB_ABSENT;
	}
	if (!walk->has_tree && !(walk->has_tree = tree_read(&walk->tree)))
		return VB_ABSENT;
	vb_tree_find(&walk->tree, walk->at, walk->node);
	snprintf(target, PATH_MAX, "%s", walk->node->text);
	return walk->node->kind;
}

static void leave_last(char *at)
{
	char *slash = strrchr(at, '/');
	if (slash)
		*slash = '\0';
}

/* One component. False: there is nothing. */
static bool step(struct walk *walk, bool follows_last)
{
	char target[PATH_MAX], name[NAME_MAX + 1];
	const char *begin = walk->rest + strspn(walk->rest, "/");
	size_t length = strcspn(begin, "/"), at = strlen(walk->at);

	if (length > NAME_MAX || at + 1 + length >= PATH_MAX)
		return false;
	memcpy(name, begin, length);
	name[length] = '\0';
	memmove(walk->rest, begin + length, strlen(begin + length) + 1);
	bool is_last = !walk->rest[0];
	if (!name[0] || strcmp(name, ".") == 0)
		return true;
	if (strcmp(name, "..") == 0) {
		leave_last(walk->at);
		name[0] = '\0';
	} else {
		sprintf(walk->at + at, "/%s", name);
	}
	enum vb_kind kind = walk->at[0] ? look(walk, target) : VB_DIRECTORY;
	if (kind == VB_LINK && (!is_last || follows_last)) {
		leave_last(walk->at);
		return enter_link(walk, target);
	}
	return kind == VB_DIRECTORY || (kind != VB_ABSENT && is_last);
}

static enum vb_where resolve(struct walk *walk, bool follows_last)
{
	if (!vb_names_ours(walk->rest))
		return VB_ELSEWHERE;
	while (walk->rest[0])
		if (!step(walk, follows_last))
			return VB_ELSEWHERE;
	return walk->is_real ? VB_REAL : VB_SHOWN;
}

enum vb_where vb_shown_resolve(int dirfd, const char *path, bool follows_last, struct vb_found *place)
{
	struct walk walk = { .is_real = true, .node = &place->node };
	int error = errno;
	enum vb_where where = VB_ELSEWHERE;

	if (path && path[0] && make_absolute(dirfd, path, walk.rest))
		where = resolve(&walk, follows_last);
	if (walk.has_tree)
		tree_free(&walk.tree);
	snprintf(place->path, sizeof(place->path), "%s", walk.at[0] ? walk.at : "/");
	errno = error;
	return where;
}

/* ---- Opening ---------------------------------------------------------------------------------------------------- */

#define SEALS           (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define DIRECTORY_MAGIC "shown directory "
#define DIRECTORY_MODE  (S_ISVTX | 0555) /* no other file in memory is likely to have this */

#define LIVE_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK) /* and by these a counter's is known */

static atomic_bool has_live; /* a counter has been opened by this process */

/* A file in memory with this content. */
static int memory_file(const char *name, const char *text, mode_t mode, int flags, int seals)
{
	int fd = memfd_create(name, MFD_ALLOW_SEALING | (flags & O_CLOEXEC ? MFD_CLOEXEC : 0));
	size_t length = strlen(text);

	if (fd < 0)
		return -1;
	if (pwrite(fd, text, length, 0) == (ssize_t)length && fchmod(fd, mode) == 0 &&
		fcntl(fd, F_ADD_SEALS, seals) == 0)
		return fd;
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}

static int fail(int error)
{
	errno = error;
	return -1;
}

static int open_directory(const char *path, int flags)
{
	char text[PATH_MAX + sizeof(DIRECTORY_MAGIC)];

	if ((flags & O_ACCMODE) != O_RDONLY || flags & O_CREAT)
		return fail(EISDIR);
	snprintf(text, sizeof(text), DIRECTORY_MAGIC "%s", path);
	return memory_file("verbena", text, DIRECTORY_MODE, flags, SEALS);
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
		return memory_file("verbena", place->node.text, 0444, flags, SEALS);
	atomic_store(&has_live, true);
	return memory_file(place->path, place->node.text, 0444, flags, LIVE_SEALS);
}

/* The path of a counter's file, which is its name. */
static bool live_path(int fd, char path[PATH_MAX])
{
	static const char before[] = "/memfd:", after[] = " (deleted)";
	char link[32];

	if (fcntl(fd, F_GET_SEALS) != LIVE_SEALS)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t length = kernel_readlink(link, path, PATH_MAX - 1), rest = length - (ssize_t)strlen(before);
	if (rest <= 0 || memcmp(path, before, strlen(before)) != 0)
		return false;
	path[length] = '\0';
	memmove(path, path + strlen(before), (size_t)rest + 1);
	char *end = strstr(path, after);
	if (end)
		*end = '\0';
	return path[0] == '/';
}

/* Never shorter than it was, for that is sealed. */
static void write_number(int fd, unsigned long long number)
{
	struct stat status;
	char text[64];

	if (syscall(SYS_fstat, fd, &status) < 0 || status.st_size < 2 || status.st_size > 32)
		return;
	int length = snprintf(text, sizeof(text), "%0*llu\n", (int)status.st_size - 1, number);
	if (pwrite(fd, text, (size_t)length, 0) != length)
		return; /* the old value stays */
}

bool vb_shown_has_live(void)
{
	return atomic_load_explicit(&has_live, memory_order_relaxed);
}

/* Of a device that has been closed the last value stays. */
void vb_shown_refresh(int fd)
{
	char path[PATH_MAX];
	struct vb_tree tree;
	struct vb_node node;
	int error = errno;

	if (live_path(fd, path) && syscall(SYS_lseek, fd, 0, SEEK_CUR) == 0 && tree_read(&tree)) {
		vb_tree_find(&tree, path, &node);
		if (node.is_live)
			write_number(fd, strtoull(node.text, NULL, 10));
		tree_free(&tree);
	}
	errno = error;
}

/* 1 when the caller is done: place is a shown one. Else *result is what to return. */
#define RESOLVE(follows_last, real)                                                                                    \
	struct vb_found place;                                                                                         \
	switch (vb_shown_resolve(dirfd, path, follows_last, &place)) {                                                 \
	case VB_ELSEWHERE:                                                                                             \
		return -1;                                                                                             \
	case VB_REAL:                                                                                                  \
		return real;                                                                                           \
	case VB_SHOWN:                                                                                                 \
		break;                                                                                                 \
	}

int vb_shown_open(int dirfd, const char *path, int flags)
{
	RESOLVE(!(flags & O_NOFOLLOW), (int)syscall(SYS_openat, AT_FDCWD, place.path, flags & ~(O_CREAT | O_EXCL), 0))
	int error = errno, fd = open_shown(&place, flags);
	if (fd >= 0)
		errno = error;
	return fd;
}

bool vb_shown_directory_of(int fd, char path[PATH_MAX])
{
	int error = errno;
	const size_t magic = strlen(DIRECTORY_MAGIC);
	bool is_one = false;
	char text[PATH_MAX + sizeof(DIRECTORY_MAGIC)];

	if (fcntl(fd, F_GET_SEALS) == SEALS) {
		ssize_t length = pread(fd, text, sizeof(text) - 1, 0);
		text[length > 0 ? length : 0] = '\0';
		is_one = strncmp(text, DIRECTORY_MAGIC "/", magic + 1) == 0 && strlen(text + magic) < PATH_MAX;
		if (is_one)
			strcpy(path, text + magic);
	}
	errno = error;
	return is_one;
}

/* ---- Status ----------------------------------------------------------------------------------------------------- */

ino_t vb_shown_inode(const char *path)
{
	uint64_t hash = 0xCBF29CE484222325u;
	for (; *path; path++)
		hash = (hash ^ (uint8_t)*path) * 0x100000001B3u;
	return (ino_t)(hash | (uint64_t)1 << 63); /* beyond what the kernel hands out */
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

/* Device and times are the null device's, which every machine has; the character device shown is that one. */
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

int vb_shown_stat(int dirfd, const char *path, struct stat *status, int flags)
{
	RESOLVE(!(flags & AT_SYMLINK_NOFOLLOW), (int)syscall(SYS_newfstatat, AT_FDCWD, place.path, status, flags))
	int error = errno;
	fill_status(place.path, &place.node, status);
	errno = error;
	return 0;
}

int vb_shown_statx(int dirfd, const char *path, int flags, unsigned mask, struct statx *status)
{
	RESOLVE(!(flags & AT_SYMLINK_NOFOLLOW), (int)syscall(SYS_statx, AT_FDCWD, place.path, flags, mask, status))
	struct stat plain;
	int error = errno;
	fill_status(place.path, &place.node, &plain);
	to_statx(&plain, status);
	errno = error;
	return 0;
}

static bool is_like_directory(mode_t mode, uint64_t links)
{
	return S_ISREG(mode) && links == 0 && (mode & 07777) == DIRECTORY_MODE;
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
	if (is_like_directory(status->st_mode, status->st_nlink))
		directory_status(fd, status);
}

void vb_shown_fstatx(int fd, struct statx *status)
{
	struct stat plain;
	if (is_like_directory(status->stx_mode, status->stx_nlink) && directory_status(fd, &plain))
		to_statx(&plain, status);
}

/* ---- Access, links, names --------------------------------------------------------------------------------------- */

/* As sysfs answers an ordinary user; nobody writes there. */
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

int vb_shown_access(int dirfd, const char *path, int mode, int flags)
{
	RESOLVE(!(flags & AT_SYMLINK_NOFOLLOW), (int)syscall(SYS_faccessat, AT_FDCWD, place.path, mode))
	return is_allowed(place.node.kind, mode) ? 0 : fail(EACCES);
}

ssize_t vb_shown_readlink(int dirfd, const char *path, char *buffer, size_t size)
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

	if (tree_read(&tree)) {
		vb_tree_list(&tree, path, each, user);
		tree_free(&tree);
	}
	errno = error;
}
