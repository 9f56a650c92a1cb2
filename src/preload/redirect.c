/* The table of paths that programs look at themselves and that machines without RDMA hardware may lack. Each is shown
 * from a tree beside this library. perftest's libpci ends the program when there is no PCI tree; an empty one is fine.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "preload/redirect.h"

static const struct shown {
	const char *prefix; /* whole components of an absolute path */
	const char *beside; /* what stands for it, beside this library */
} table[] = {
	{ "/sys/bus/pci", "sysfs/bus/pci" },
};

static const char *below(const char *path, const char *prefix)
{
	size_t length = strlen(prefix);
	if (strncmp(path, prefix, length) != 0 || (path[length] != '\0' && path[length] != '/'))
		return NULL;
	return path + length;
}

/* The length of this library's directory within its path. */
static size_t own_directory(const char **path)
{
	Dl_info info;
	if (!dladdr((void *)own_directory, &info) || !info.dli_fname)
		return 0;
	const char *slash = strrchr(info.dli_fname, '/');
	*path = info.dli_fname;
	return slash ? (size_t)(slash - info.dli_fname) : 0;
}

bool vb_redirect(const char *path, char *other, size_t size)
{
	if (!path || path[0] != '/')
		return false;
	int error = errno;
	bool is_ours = false;
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const char *rest = below(path, table[i].prefix), *library = "";
		size_t length = rest ? own_directory(&library) : 0;
		if (!length || length > PATH_MAX)
			continue;
		int written = snprintf(other, size, "%.*s/%s%s", (int)length, library, table[i].beside, rest);
		is_ours = written > 0 && (size_t)written < size;
		break;
	}
	errno = error;
	return is_ours;
}
