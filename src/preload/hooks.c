/* libverbena-preload.so: libc's functions that take a path, in front of libc's own. Each first calls libc's; only if
 * the path does not exist and is shown (shown.h), it answers differently. So a machine that has the real files behaves
 * as without this library, and other paths cost a comparison.
 * Not here: directories (hooks_dir.c). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "preload/hook.h"
#include "preload/shown.h"

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one answer for both");

/* ---- open -------------------------------------------------------------------------------------------------------- */

static mode_t mode_of(int flags, va_list rest)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
}

#define HOOK_OPEN(name)                                                                                                \
	HOOK int name(const char *path, int flags, ...)                                                                \
	{                                                                                                              \
		va_list rest;                                                                                          \
		va_start(rest, flags);                                                                                 \
		mode_t mode = mode_of(flags, rest);                                                                    \
		va_end(rest);                                                                                          \
		REAL(int, name, const char *, int, ...)                                                                \
		ASK(int, -1, AT_FDCWD, path, real(path, flags, mode), vb_shown_open(AT_FDCWD, path, flags));           \
	}

#define HOOK_OPENAT(name)                                                                                              \
	HOOK int name(int base_fd, const char *path, int flags, ...)                                                   \
	{                                                                                                              \
		va_list rest;                                                                                          \
		va_start(rest, flags);                                                                                 \
		mode_t mode = mode_of(flags, rest);                                                                    \
		va_end(rest);                                                                                          \
		REAL(int, name, int, const char *, int, ...)                                                           \
		ASK(int, -1, base_fd, path, real(base_fd, path, flags, mode), vb_shown_open(base_fd, path, flags));    \
	}

/* Fortified programs call these when they pass no mode. */
#define HOOK_OPEN_2(name)                                                                                              \
	int name(const char *path, int flags);                                                                         \
	HOOK int name(const char *path, int flags)                                                                     \
	{                                                                                                              \
		REAL(int, name, const char *, int)                                                                     \
		ASK(int, -1, AT_FDCWD, path, real(path, flags), vb_shown_open(AT_FDCWD, path, flags));                 \
	}

#define HOOK_OPENAT_2(name)                                                                                            \
	int name(int base_fd, const char *path, int flags);                                                            \
	HOOK int name(int base_fd, const char *path, int flags)                                                        \
	{                                                                                                              \
		REAL(int, name, int, const char *, int)                                                                \
		ASK(int, -1, base_fd, path, real(base_fd, path, flags), vb_shown_open(base_fd, path, flags));          \
	}

HOOK_OPEN(open)
HOOK_OPEN(open64)
HOOK_OPENAT(openat)
HOOK_OPENAT(openat64)
HOOK_OPEN_2(__open_2)
HOOK_OPEN_2(__open64_2)
HOOK_OPENAT_2(__openat_2)
HOOK_OPENAT_2(__openat64_2)

static FILE *shown_stream(const char *path, const char *mode)
{
	bool reads_only = mode[0] == 'r' && !strchr(mode, '+');
	int fd = vb_shown_open(AT_FDCWD, path, (reads_only ? O_RDONLY : O_RDWR) | (strchr(mode, 'e') ? O_CLOEXEC : 0));
	if (fd < 0)
		return NULL;
	FILE *stream = fdopen(fd, mode);
	if (!stream)
		close(fd);
	return stream;
}

#define HOOK_FOPEN(name)                                                                                               \
	HOOK FILE *name(const char *path, const char *mode)                                                            \
	{                                                                                                              \
		REAL(FILE *, name, const char *, const char *)                                                         \
		ASK(FILE *, NULL, AT_FDCWD, path, real(path, mode), shown_stream(path, mode));                         \
	}

HOOK_FOPEN(fopen)
HOOK_FOPEN(fopen64)

/* Programs open a counter once and read it repeatedly from the beginning, as sysfs allows: its file follows. Streams
 * (fopen) read through libc's internal functions, and are opened again instead. */
HOOK ssize_t read(int fd, void *buffer, size_t size)
{
	REAL(ssize_t, read, int, void *, size_t)
	if (vb_shown_has_live())
		vb_shown_refresh(fd);
	return real(fd, buffer, size);
}

ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room);
HOOK ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room)
{
	REAL(ssize_t, __read_chk, int, void *, size_t, size_t)
	if (vb_shown_has_live())
		vb_shown_refresh(fd);
	return real(fd, buffer, size, room);
}

#define HOOK_PREAD(name, offset_type)                                                                                  \
	HOOK ssize_t name(int fd, void *buffer, size_t size, offset_type offset)                                       \
	{                                                                                                              \
		REAL(ssize_t, name, int, void *, size_t, offset_type)                                                  \
		if (vb_shown_has_live() && offset == 0)                                                                \
			vb_shown_refresh(fd);                                                                          \
		return real(fd, buffer, size, offset);                                                                 \
	}

HOOK_PREAD(pread, off_t)
HOOK_PREAD(pread64, off64_t)

/* Signal handlers may read, but must not look a function up: that is done before any handler can run. */
__attribute__((constructor)) static void look_up_read(void)
{
	int error = errno, file = (int)syscall(SYS_memfd_create, "verbena", MFD_CLOEXEC);
	read(file, NULL, 0); /* of a file that is there: valgrind warns of -1 */
	if (file >= 0)
		syscall(SYS_close, file);
	errno = error;
}

/* ---- stat -------------------------------------------------------------------------------------------------------- */

#define HOOK_STAT(name, buffer, flags)                                                                                 \
	HOOK int name(const char *path, struct buffer *status)                                                         \
	{                                                                                                              \
		REAL(int, name, const char *, struct buffer *)                                                         \
		ASK(int, -1, AT_FDCWD, path, real(path, status),                                                       \
			vb_shown_stat(AT_FDCWD, path, (struct stat *)status, flags));                                  \
	}

HOOK_STAT(stat, stat, 0)
HOOK_STAT(stat64, stat64, 0)
HOOK_STAT(lstat, stat, AT_SYMLINK_NOFOLLOW)
HOOK_STAT(lstat64, stat64, AT_SYMLINK_NOFOLLOW)

/* By descriptor: a shown directory's is a file in memory. */
#define HOOK_FSTAT(name, buffer)                                                                                       \
	HOOK int name(int fd, struct buffer *status)                                                                   \
	{                                                                                                              \
		REAL(int, name, int, struct buffer *)                                                                  \
		int result = real(fd, status);                                                                         \
		if (result == 0)                                                                                       \
			vb_shown_fstat(fd, (struct stat *)status);                                                     \
		return result;                                                                                         \
	}

HOOK_FSTAT(fstat, stat)
HOOK_FSTAT(fstat64, stat64)

static bool is_of_descriptor(const char *path, int flags)
{
	return flags & AT_EMPTY_PATH && path && !path[0];
}

#define HOOK_FSTATAT(name, buffer)                                                                                     \
	HOOK int name(int base_fd, const char *path, struct buffer *status, int flags)                                 \
	{                                                                                                              \
		REAL(int, name, int, const char *, struct buffer *, int)                                               \
		if (is_of_descriptor(path, flags)) {                                                                   \
			int result = real(base_fd, path, status, flags);                                               \
			if (result == 0)                                                                               \
				vb_shown_fstat(base_fd, (struct stat *)status);                                        \
			return result;                                                                                 \
		}                                                                                                      \
		ASK(int, -1, base_fd, path, real(base_fd, path, status, flags),                                        \
			vb_shown_stat(base_fd, path, (struct stat *)status, flags));                                   \
	}

HOOK_FSTATAT(fstatat, stat)
HOOK_FSTATAT(fstatat64, stat64)

/* Programs linked before glibc 2.33 call these. */
#define HOOK_XSTAT(name, buffer, flags)                                                                                \
	int name(int version, const char *path, struct buffer *status);                                                \
	HOOK int name(int version, const char *path, struct buffer *status)                                            \
	{                                                                                                              \
		REAL(int, name, int, const char *, struct buffer *)                                                    \
		ASK(int, -1, AT_FDCWD, path, real(version, path, status),                                              \
			vb_shown_stat(AT_FDCWD, path, (struct stat *)status, flags));                                  \
	}

#define HOOK_FXSTAT(name, buffer)                                                                                      \
	int name(int version, int fd, struct buffer *status);                                                          \
	HOOK int name(int version, int fd, struct buffer *status)                                                      \
	{                                                                                                              \
		REAL(int, name, int, int, struct buffer *)                                                             \
		int result = real(version, fd, status);                                                                \
		if (result == 0)                                                                                       \
			vb_shown_fstat(fd, (struct stat *)status);                                                     \
		return result;                                                                                         \
	}

#define HOOK_FXSTATAT(name, buffer)                                                                                    \
	int name(int version, int base_fd, const char *path, struct buffer *status, int flags);                        \
	HOOK int name(int version, int base_fd, const char *path, struct buffer *status, int flags)                    \
	{                                                                                                              \
		REAL(int, name, int, int, const char *, struct buffer *, int)                                          \
		ASK(int, -1, base_fd, path, real(version, base_fd, path, status, flags),                               \
			vb_shown_stat(base_fd, path, (struct stat *)status, flags));                                   \
	}

HOOK_XSTAT(__xstat, stat, 0)
HOOK_XSTAT(__xstat64, stat64, 0)
HOOK_XSTAT(__lxstat, stat, AT_SYMLINK_NOFOLLOW)
HOOK_XSTAT(__lxstat64, stat64, AT_SYMLINK_NOFOLLOW)
HOOK_FXSTAT(__fxstat, stat)
HOOK_FXSTAT(__fxstat64, stat64)
HOOK_FXSTATAT(__fxstatat, stat)
HOOK_FXSTATAT(__fxstatat64, stat64)

HOOK int statx(int base_fd, const char *path, int flags, unsigned int mask, struct statx *status)
{
	REAL(int, statx, int, const char *, int, unsigned int, struct statx *)
	if (is_of_descriptor(path, flags)) {
		int result = real(base_fd, path, flags, mask, status);
		if (result == 0)
			vb_shown_fstatx(base_fd, status);
		return result;
	}
	ASK(int, -1, base_fd, path, real(base_fd, path, flags, mask, status),
		vb_shown_statx(base_fd, path, flags, mask, status));
}

/* ---- access, links ----------------------------------------------------------------------------------------------- */

#define HOOK_ACCESS(name)                                                                                              \
	HOOK int name(const char *path, int mode)                                                                      \
	{                                                                                                              \
		REAL(int, name, const char *, int)                                                                     \
		ASK(int, -1, AT_FDCWD, path, real(path, mode), vb_shown_access(AT_FDCWD, path, mode, 0));              \
	}

HOOK_ACCESS(access)
HOOK_ACCESS(eaccess)
HOOK_ACCESS(euidaccess)

HOOK int faccessat(int base_fd, const char *path, int mode, int flags)
{
	REAL(int, faccessat, int, const char *, int, int)
	ASK(int, -1, base_fd, path, real(base_fd, path, mode, flags), vb_shown_access(base_fd, path, mode, flags));
}

HOOK ssize_t readlink(const char *path, char *buffer, size_t size)
{
	REAL(ssize_t, readlink, const char *, char *, size_t)
	ASK(ssize_t, -1, AT_FDCWD, path, real(path, buffer, size), vb_shown_readlink(AT_FDCWD, path, buffer, size));
}

HOOK ssize_t readlinkat(int base_fd, const char *path, char *buffer, size_t size)
{
	REAL(ssize_t, readlinkat, int, const char *, char *, size_t)
	ASK(ssize_t, -1, base_fd, path, real(base_fd, path, buffer, size),
		vb_shown_readlink(base_fd, path, buffer, size));
}

ssize_t __readlink_chk(const char *path, char *buffer, size_t size, size_t room);
HOOK ssize_t __readlink_chk(const char *path, char *buffer, size_t size, size_t room)
{
	REAL(ssize_t, __readlink_chk, const char *, char *, size_t, size_t)
	ASK(ssize_t, -1, AT_FDCWD, path, real(path, buffer, size, room),
		vb_shown_readlink(AT_FDCWD, path, buffer, size));
}

ssize_t __readlinkat_chk(int base_fd, const char *path, char *buffer, size_t size, size_t room);
HOOK ssize_t __readlinkat_chk(int base_fd, const char *path, char *buffer, size_t size, size_t room)
{
	REAL(ssize_t, __readlinkat_chk, int, const char *, char *, size_t, size_t)
	ASK(ssize_t, -1, base_fd, path, real(base_fd, path, buffer, size, room),
		vb_shown_readlink(base_fd, path, buffer, size));
}

/* resolved has room for PATH_MAX, unless it is NULL. */
static char *shown_realpath(const char *path, char *resolved)
{
	struct vb_found place;

	if (vb_shown_resolve(AT_FDCWD, path, true, &place) == VB_ELSEWHERE)
		return NULL;
	return resolved ? strcpy(resolved, place.path) : strdup(place.path);
}

HOOK char *realpath(const char *path, char *resolved)
{
	REAL(char *, realpath, const char *, char *)
	ASK(char *, NULL, AT_FDCWD, path, real(path, resolved), shown_realpath(path, resolved));
}

char *__realpath_chk(const char *path, char *resolved, size_t room);
HOOK char *__realpath_chk(const char *path, char *resolved, size_t room)
{
	REAL(char *, __realpath_chk, const char *, char *, size_t)
	ASK(char *, NULL, AT_FDCWD, path, real(path, resolved, room), shown_realpath(path, resolved));
}

HOOK char *canonicalize_file_name(const char *path)
{
	REAL(char *, canonicalize_file_name, const char *)
	ASK(char *, NULL, AT_FDCWD, path, real(path), shown_realpath(path, NULL));
}

/* ---- Extended attributes: ls asks for them ----------------------------------------------------------------------- */

#define HOOK_GETXATTR(name, follows_last)                                                                              \
	HOOK ssize_t name(const char *path, const char *attribute, void *value, size_t size)                           \
	{                                                                                                              \
		REAL(ssize_t, name, const char *, const char *, void *, size_t)                                        \
		ASK(ssize_t, -1, AT_FDCWD, path, real(path, attribute, value, size),                                   \
			vb_shown_attribute(path, follows_last));                                                       \
	}

#define HOOK_LISTXATTR(name, follows_last)                                                                             \
	HOOK ssize_t name(const char *path, char *list, size_t size)                                                   \
	{                                                                                                              \
		REAL(ssize_t, name, const char *, char *, size_t)                                                      \
		ASK(ssize_t, -1, AT_FDCWD, path, real(path, list, size), vb_shown_attribute(path, follows_last));      \
	}

HOOK_GETXATTR(getxattr, true)
HOOK_GETXATTR(lgetxattr, false)
HOOK_LISTXATTR(listxattr, true)
HOOK_LISTXATTR(llistxattr, false)
