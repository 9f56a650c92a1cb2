/* Paths of Verbena's files, found from the executable itself, so that a build tree and an installed prefix work after
 * they are moved. */
#include "cli/cli.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* In the build tree the executable is src/cli/verbena, and src/rdmacm/ has both libraries. Installed, it is
 * bin/verbena, and the build was configured with VB_LIBDIR and VB_LIBEXECDIR. Paths are relative to the executable's
 * directory. */
struct layout {
	const char *libraries, *preload, *rsockets, *broker;
};
static const struct layout build_tree = { "../rdmacm", "../preload/libverbena-preload.so",
	"../rspreload/librspreload.so", "../broker/verbena-broker" };
static const struct layout installed = { "../" VB_LIBDIR "/verbena", "../" VB_LIBDIR "/verbena/libverbena-preload.so",
	"../" VB_LIBDIR "/verbena/rsocket/librspreload.so", "../" VB_LIBEXECDIR "/verbena/verbena-broker" };

/* Joins directory and relative and resolves leading "../", so that messages show a plain path. */
static bool join(char out[PATH_MAX], const char *directory, const char *relative)
{
	int parent = (int)(strrchr(directory, '/') - directory);
	return snprintf(out, PATH_MAX, "%.*s/%s", parent, directory, relative + strlen("../")) < PATH_MAX;
}

static bool fill(struct vb_places *places, const char *directory, const struct layout *layout)
{
	return join(places->libraries, directory, layout->libraries) &&
	       join(places->preload, directory, layout->preload) &&
	       join(places->rsockets, directory, layout->rsockets) && join(places->broker, directory, layout->broker);
}

const char *vb_places_fault(int error)
{
	if (access("/proc/self", F_OK) < 0)
		return "/proc is not mounted; cure: mount -t proc proc /proc";
	return strerror(-error);
}

int vb_places_find(struct vb_places *places)
{
	char directory[PATH_MAX];

	ssize_t length = readlink("/proc/self/exe", directory, sizeof(directory) - 1);
	if (length < 0)
		return -errno;
	directory[length] = '\0';
	*strrchr(directory, '/') = '\0';
	const char *name = strrchr(directory, '/');
	if (!name)
		return -ENOENT; /* "/verbena" has no parent to look in */
	places->is_installed = strcmp(name, "/cli") != 0;
	return fill(places, directory, places->is_installed ? &installed : &build_tree) ? 0 : -ENAMETOOLONG;
}
