/* Reading sysfs for programs. Our devices have no entries there unless the preload library shows them. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "verbs/objects.h"

const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

const char *verbena_port_counter(const char *device, unsigned n, uint64_t *value);

static char sysfs_path[IBV_SYSFS_PATH_MAX];
static pthread_once_t sysfs_path_once = PTHREAD_ONCE_INIT;

static void find_sysfs_path(void)
{
	const char *given = secure_getenv("SYSFS_PATH");
	snprintf(sysfs_path, sizeof(sysfs_path), "%s", given ? given : "/sys");
	for (size_t length = strlen(sysfs_path); length && sysfs_path[length - 1] == '/'; length--)
		sysfs_path[length - 1] = '\0';
}

VB_EXPORT const char *ibv_get_sysfs_path(void)
{
	pthread_once(&sysfs_path_once, find_sysfs_path);
	return sysfs_path;
}

/* The length without the newline, or -1; a content that does not fit with its terminator is an error. */
VB_EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[PATH_MAX];
	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t length = read(fd, buf, size);
	close(fd);
	if (length <= 0)
		return (int)length;
	if (buf[length - 1] == '\n')
		length--;
	if ((size_t)length == size)
		return -1;
	buf[length] = '\0';
	return (int)length;
}

/* For our preload library, which shows the counters of this process (src/preload/shown.c). */
VB_EXPORT const char *verbena_port_counter(const char *device, unsigned n, uint64_t *value)
{
	return vb_device_counter(device, n, value);
}
