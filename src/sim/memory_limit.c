/* See memory_limit.h. */
#include "sim/memory_limit.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t machine_has(const char *root)
{
	char path[PATH_MAX], line[200];
	uint64_t kilobytes = 0;

	snprintf(path, sizeof(path), "%s/proc/meminfo", root);
	FILE *file = fopen(path, "re");
	while (file && !kilobytes && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemTotal: %" SCNu64 " kB", &kilobytes) != 1)
			kilobytes = 0;
	if (file)
		fclose(file);
	return kilobytes ? kilobytes * 1024 : UINT64_MAX;
}

/* "max", and a file that does not exist, are no limit. */
static uint64_t number_in(const char *path)
{
	uint64_t number = UINT64_MAX;
	FILE *file = fopen(path, "re");

	if (!file)
		return UINT64_MAX;
	if (fscanf(file, "%" SCNu64, &number) != 1)
		number = UINT64_MAX;
	fclose(file);
	return number;
}

/* For a group and all above it. If the group's path belongs to another namespace, its files do not exist, and those of
 * the mount hold. */
static uint64_t groups_leave(const char *root, const char *mount, char *group, const char *name)
{
	char path[2 * PATH_MAX];
	uint64_t least = UINT64_MAX;

	for (char *slash = group + strlen(group);; slash = strrchr(group, '/')) {
		if (!slash)
			return least;
		*slash = 0;
		snprintf(path, sizeof(path), "%s%s%s/%s", root, mount, group, name);
		least = smaller(least, number_in(path));
	}
}

/* Reads lines such as "4:memory:/a/b", in version 2 "0::/a/b". */
static uint64_t all_groups_leave(const char *root)
{
	char path[PATH_MAX], line[PATH_MAX];
	uint64_t least = UINT64_MAX;

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		char *kinds = strchr(line, ':'), *group = kinds ? strchr(kinds + 1, ':') : NULL;
		if (!group)
			continue;
		*group++ = 0;
		if (kinds[1] == 0)
			least = smaller(least, groups_leave(root, "/sys/fs/cgroup", group, "memory.max"));
		else if (strcmp(kinds + 1, "memory") == 0)
			least = smaller(
				least, groups_leave(root, "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
	}
	if (file)
		fclose(file);
	return least;
}

uint64_t memory_limit(const char *root)
{
	struct rlimit limit;
	uint64_t address_space = UINT64_MAX;

	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		address_space = limit.rlim_cur;
	return smaller(address_space, smaller(machine_has(root), all_groups_leave(root)));
}
