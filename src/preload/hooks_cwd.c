/* libverbena-preload.so: libc's functions that change or name the working directory. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "preload/hook.h"
#include "preload/shown.h"
#include "preload/working.h"

/* Calls the kernel: libc's chdir is ours, and would come back here. */
static int enter_real(const char *path)
{
	if (syscall(SYS_chdir, path))
		return -1;
	vb_working_leave();
	return 0;
}

/* Enters a shown directory, or through the tree a real one. errno is libc's. */
static int enter(const char *path)
{
	struct vb_found place;

	switch (vb_shown_resolve(AT_FDCWD, path, true, &place)) {
	case VB_REAL:
		return enter_real(place.path);
	case VB_SHOWN:
		if (place.node.kind == VB_DIRECTORY)
			return vb_working_enter(place.path);
		errno = ENOTDIR;
		return -1;
	default:
		return -1;
	}
}

HOOK int chdir(const char *path)
{
	REAL(int, chdir, const char *)
	int before = errno, result = -1;

	if (vb_working_has(AT_FDCWD, path)) {
		errno = ENOENT;
		result = enter(path);
	} else {
		result = real(path);
		if (result == 0)
			vb_working_leave();
		else if (vb_may_be_shown(AT_FDCWD, path))
			result = enter(path);
	}
	if (result == 0)
		errno = before;
	return result;
}

HOOK int fchdir(int fd)
{
	char path[PATH_MAX];
	REAL(int, fchdir, int)

	if (vb_shown_directory_of(fd, path))
		return vb_working_enter(path);
	int result = real(fd);
	if (result == 0)
		vb_working_leave();
	return result;
}

/* As in libc, a missing buffer is allocated: of the given size, or as large as needed. */
static char *put(const char *path, char *buffer, size_t size)
{
	size_t needed = strlen(path) + 1;

	if (buffer && size == 0) {
		errno = EINVAL;
		return NULL;
	}
	if (size != 0 && needed > size) {
		errno = ERANGE;
		return NULL;
	}
	if (!buffer)
		buffer = malloc(size ? size : needed);
	return buffer ? memcpy(buffer, path, needed) : NULL;
}

HOOK char *getcwd(char *buffer, size_t size)
{
	char path[PATH_MAX];
	REAL(char *, getcwd, char *, size_t)
	return vb_working_get(path) ? put(path, buffer, size) : real(buffer, size);
}

char *__getcwd_chk(char *buffer, size_t size, size_t room);
HOOK char *__getcwd_chk(char *buffer, size_t size, size_t room)
{
	char path[PATH_MAX];
	REAL(char *, __getcwd_chk, char *, size_t, size_t)
	return vb_working_get(path) && size <= room ? put(path, buffer, size) : real(buffer, size, room);
}

HOOK char *get_current_dir_name(void)
{
	char path[PATH_MAX];
	REAL(char *, get_current_dir_name, void)
	return vb_working_get(path) ? strdup(path) : real();
}
