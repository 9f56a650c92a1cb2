/* See resolve.h. The devices are read anew for each path: so the answer is right in every namespace and at any time,
 * and nothing has to be kept or cleaned up. Not here: the content of the tree (tree.c). */
#include "preload/resolve.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "host/devices/devices.h"
#include "host/settings.h"
#include "preload/kernel.h"
#include "preload/memory.h"
#include "preload/working.h"

#define LINKS_MAX 40 /* as in the kernel */

/* ---- The tree ---------------------------------------------------------------------------------------------------- */

/* Counters belong to the process, so its libibverbs.so.1 has them; a process without that library shows none. */
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
	kernel_read_text(fd, text, sizeof(text));
	close(fd);
	*number = strtoul(text, NULL, 10);
	return text[0];
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

/* Cuts the path behind its last component that is a PCI device: the rest was made by its driver, such as virtio0.
 * False: there is none. */
static bool cut_to_pci(char *path)
{
	for (char *slash; (slash = strrchr(path, '/')); *slash = '\0')
		if (is_pci_name(slash + 1))
			return true;
	return false;
}

/* sysfs may belong to another network namespace, where the interface of that name is a different one. */
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

bool vb_tree_read(struct vb_tree *tree)
{
	const struct vb_settings *settings = vb_settings_get();

	*tree = (struct vb_tree){ .counter = counter, .hardware = hardware };
	/* libibverbs.so.1 complains of names that are no device. */
	return settings && vb_devices_named(settings->text[VB_SETTING_DEVICES], &tree->devices, &tree->count) == 0;
}

void vb_tree_free(struct vb_tree *tree)
{
	free(tree->devices);
}

/* ---- Which paths ------------------------------------------------------------------------------------------------- */

/* Every path of the tree contains one of these. */
bool vb_names_ours(const char *path)
{
	return strstr(path, "infiniband") || strstr(path, "/pci");
}

/* The directory that relative paths begin at; the path in the tree of a shown one. */
static bool base_of(int base_fd, char base[PATH_MAX])
{
	if (base_fd == AT_FDCWD)
		return vb_working_get(base) || (syscall(SYS_getcwd, base, PATH_MAX) > 0 && base[0] == '/');
	if (vb_shown_directory_of(base_fd, base))
		return true;
	return kernel_path_of(base_fd, base, PATH_MAX) && base[0] == '/';
}

/* Makes the path absolute, but not canonical. */
static bool make_absolute(int base_fd, const char *path, char whole[PATH_MAX])
{
	char base[PATH_MAX];
	int written;

	if (path[0] == '/')
		written = snprintf(whole, PATH_MAX, "%s", path);
	else if (base_of(base_fd, base))
		written = snprintf(whole, PATH_MAX, "%s/%s", base, path);
	else
		return false;
	return written < PATH_MAX;
}

bool vb_may_be_shown(int base_fd, const char *path)
{
	char whole[PATH_MAX];
	int error = errno;

	/* After any other error the pointer may be invalid. */
	if ((error != ENOENT && error != ENOTDIR) || !path || !path[0])
		return false;
	if (path[0] == '/')
		return vb_names_ours(path);
	bool may_be = make_absolute(base_fd, path, whole) && vb_names_ours(whole);
	errno = error;
	return may_be;
}

/* ---- Resolution -------------------------------------------------------------------------------------------------- */

struct walk {
	char at[PATH_MAX];   /* canonical so far; "" is the root */
	char rest[PATH_MAX]; /* still to go */
	bool is_real;
	unsigned links;
	struct vb_tree tree;
	bool has_tree;
	struct vb_node *node; /* of at, unless that is real */
};

/* Puts a link's target before the rest. at is the directory of the link. */
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

/* The kind of the file at walk->at, and its target if it is a link. */
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
	if (!walk->has_tree && !(walk->has_tree = vb_tree_read(&walk->tree)))
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

/* Walks one component. False: there is no such file. */
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

enum vb_where vb_shown_resolve(int base_fd, const char *path, bool follows_last, struct vb_found *place)
{
	struct walk walk = { .is_real = true, .node = &place->node };
	int error = errno;
	enum vb_where where = VB_ELSEWHERE;

	if (path && path[0] && make_absolute(base_fd, path, walk.rest))
		where = resolve(&walk, follows_last);
	if (walk.has_tree)
		vb_tree_free(&walk.tree);
	snprintf(place->path, sizeof(place->path), "%s", walk.at[0] ? walk.at : "/");
	errno = error;
	return where;
}
