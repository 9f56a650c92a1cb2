/* See memory.h. */
#include "preload/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "preload/kernel.h"

#define SEALS           (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define DIRECTORY_MAGIC "shown directory "
#define DIRECTORY_MODE  (S_ISVTX | 0555) /* other files in memory are unlikely to have this mode */
#define COUNTER_SEALS   (F_SEAL_SEAL | F_SEAL_SHRINK)

static int create(const char *name, const char *text, mode_t mode, int flags, int seals)
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

int vb_memory_file(const char *text, int flags)
{
	return create("verbena", text, 0444, flags, SEALS);
}

int vb_memory_counter(const char *path, const char *text, int flags)
{
	return create(path, text, 0444, flags, COUNTER_SEALS);
}

int vb_memory_directory(const char *path, int flags)
{
	char text[PATH_MAX + sizeof(DIRECTORY_MAGIC)];

	snprintf(text, sizeof(text), DIRECTORY_MAGIC "%s", path);
	return create("verbena", text, DIRECTORY_MODE, flags, SEALS);
}

bool vb_shown_directory_of(int fd, char path[PATH_MAX])
{
	int error = errno;
	const size_t magic = strlen(DIRECTORY_MAGIC);
	bool is_one = false;
	char text[PATH_MAX + sizeof(DIRECTORY_MAGIC)];

	if (fcntl(fd, F_GET_SEALS) == SEALS) {
		kernel_read_text(fd, text, sizeof(text));
		is_one = strncmp(text, DIRECTORY_MAGIC "/", magic + 1) == 0 && strlen(text + magic) < PATH_MAX;
		if (is_one)
			strcpy(path, text + magic);
	}
	errno = error;
	return is_one;
}

bool vb_memory_may_be_directory(mode_t mode, uint64_t links)
{
	return S_ISREG(mode) && links == 0 && (mode & 07777) == DIRECTORY_MODE;
}

bool vb_memory_counter_of(int fd, char path[PATH_MAX])
{
	static const char before[] = "/memfd:", after[] = " (deleted)";

	if (fcntl(fd, F_GET_SEALS) != COUNTER_SEALS)
		return false;
	if (!kernel_path_of(fd, path, PATH_MAX) || strncmp(path, before, strlen(before)) != 0)
		return false;
	memmove(path, path + strlen(before), strlen(path + strlen(before)) + 1);
	char *end = strstr(path, after);
	if (end)
		*end = '\0';
	return path[0] == '/';
}

/* Padded to its length, because the file is sealed against shrinking. */
void vb_memory_counter_set(int fd, unsigned long long value)
{
	struct stat status;
	char text[64];

	if (syscall(SYS_fstat, fd, &status) < 0 || status.st_size < 2 || status.st_size > 32)
		return;
	int length = snprintf(text, sizeof(text), "%0*llu\n", (int)status.st_size - 1, value);
	if (pwrite(fd, text, (size_t)length, 0) != length)
		return; /* the old value stays */
}
