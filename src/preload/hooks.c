/* libverbena-preload.so: libc's functions that take a path, in front of libc's own. Each first does what it was asked;
 * only when the path does not exist and stands in redirect.c's table does it ask again, of the tree shown instead. So a
 * machine that has the real thing behaves as if this library were not there. Linked to nothing but libc. Not here:
 * which paths (redirect.c). */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "preload/redirect.h"

/* Built without fortification: these are the functions that its wrappers end in. */
#define HOOK __attribute__((visibility("default")))

/* real: libc's function of that name, looked up at first use. */
#define REAL(type, name, ...)                                                                                          \
	static type (*found)(__VA_ARGS__);                                                                             \
	type (*real)(__VA_ARGS__) = __atomic_load_n(&found, __ATOMIC_RELAXED);                                         \
	if (!real) {                                                                                                   \
		real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name);                                                  \
		__atomic_store_n(&found, real, __ATOMIC_RELAXED);                                                      \
	}

/* result: what libc says of path, or, where path is absent and shown elsewhere, of the other. call names the path "at".
 */
#define ASK(type, result, failed, path, call)                                                                          \
	const char *at = (path);                                                                                       \
	type result = (failed);                                                                                        \
	char other[PATH_MAX];                                                                                          \
	if (!real)                                                                                                     \
		errno = ENOSYS;                                                                                        \
	else                                                                                                           \
		result = call;                                                                                         \
	if (real && result == (type)(failed) && errno == ENOENT && vb_redirect(at, other, sizeof(other))) {            \
		at = other;                                                                                            \
		result = call;                                                                                         \
	}

#define FORWARD(type, failed, path, call)                                                                              \
	ASK(type, result, failed, path, call)                                                                          \
	return result

/* ---- open
 * ------------------------------------------------------------------------------------------------------------ */

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
		REAL(int, name, const char *, int, ...);                                                               \
		FORWARD(int, -1, path, real(at, flags, mode));                                                         \
	}

#define HOOK_OPENAT(name)                                                                                              \
	HOOK int name(int dirfd, const char *path, int flags, ...)                                                     \
	{                                                                                                              \
		va_list rest;                                                                                          \
		va_start(rest, flags);                                                                                 \
		mode_t mode = mode_of(flags, rest);                                                                    \
		va_end(rest);                                                                                          \
		REAL(int, name, int, const char *, int, ...);                                                          \
		FORWARD(int, -1, path, real(dirfd, at, flags, mode));                                                  \
	}

/* What fortified programs call when they pass no mode. */
#define HOOK_OPEN_2(name)                                                                                              \
	int name(const char *path, int flags);                                                                         \
	HOOK int name(const char *path, int flags)                                                                     \
	{                                                                                                              \
		REAL(int, name, const char *, int);                                                                    \
		FORWARD(int, -1, path, real(at, flags));                                                               \
	}

#define HOOK_OPENAT_2(name)                                                                                            \
	int name(int dirfd, const char *path, int flags);                                                              \
	HOOK int name(int dirfd, const char *path, int flags)                                                          \
	{                                                                                                              \
		REAL(int, name, int, const char *, int);                                                               \
		FORWARD(int, -1, path, real(dirfd, at, flags));                                                        \
	}

HOOK_OPEN(open)
HOOK_OPEN(open64)
HOOK_OPENAT(openat)
HOOK_OPENAT(openat64)
HOOK_OPEN_2(__open_2)
HOOK_OPEN_2(__open64_2)
HOOK_OPENAT_2(__openat_2)
HOOK_OPENAT_2(__openat64_2)

#define HOOK_FOPEN(name)                                                                                               \
	HOOK FILE *name(const char *path, const char *mode)                                                            \
	{                                                                                                              \
		REAL(FILE *, name, const char *, const char *);                                                        \
		FORWARD(FILE *, NULL, path, real(at, mode));                                                           \
	}

HOOK_FOPEN(fopen)
HOOK_FOPEN(fopen64)

HOOK DIR *opendir(const char *path)
{
	REAL(DIR *, opendir, const char *);
	FORWARD(DIR *, NULL, path, real(at));
}

/* Inside libc this does not come by our opendir. */
#define HOOK_SCANDIR(name, entry)                                                                                      \
	HOOK int name(const char *path, struct entry ***list, int (*filter)(const struct entry *),                     \
		int (*compare)(const struct entry **, const struct entry **))                                          \
	{                                                                                                              \
		REAL(int, name, const char *, struct entry ***, int (*)(const struct entry *),                         \
			int (*)(const struct entry **, const struct entry **));                                        \
		FORWARD(int, -1, path, real(at, list, filter, compare));                                               \
	}

HOOK_SCANDIR(scandir, dirent)
HOOK_SCANDIR(scandir64, dirent64)

/* ---- stat
 * ------------------------------------------------------------------------------------------------------------ */

#define HOOK_STAT(name, buffer)                                                                                        \
	HOOK int name(const char *path, struct buffer *status)                                                         \
	{                                                                                                              \
		REAL(int, name, const char *, struct buffer *);                                                        \
		FORWARD(int, -1, path, real(at, status));                                                              \
	}

#define HOOK_FSTATAT(name, buffer)                                                                                     \
	HOOK int name(int dirfd, const char *path, struct buffer *status, int flags)                                   \
	{                                                                                                              \
		REAL(int, name, int, const char *, struct buffer *, int);                                              \
		FORWARD(int, -1, path, real(dirfd, at, status, flags));                                                \
	}

HOOK_STAT(stat, stat)
HOOK_STAT(stat64, stat64)
HOOK_STAT(lstat, stat)
HOOK_STAT(lstat64, stat64)
HOOK_FSTATAT(fstatat, stat)
HOOK_FSTATAT(fstatat64, stat64)

/* Programs linked before glibc 2.33 call these. */
#define HOOK_XSTAT(name, buffer)                                                                                       \
	int name(int version, const char *path, struct buffer *status);                                                \
	HOOK int name(int version, const char *path, struct buffer *status)                                            \
	{                                                                                                              \
		REAL(int, name, int, const char *, struct buffer *);                                                   \
		FORWARD(int, -1, path, real(version, at, status));                                                     \
	}

#define HOOK_FXSTATAT(name, buffer)                                                                                    \
	int name(int version, int dirfd, const char *path, struct buffer *status, int flags);                          \
	HOOK int name(int version, int dirfd, const char *path, struct buffer *status, int flags)                      \
	{                                                                                                              \
		REAL(int, name, int, int, const char *, struct buffer *, int);                                         \
		FORWARD(int, -1, path, real(version, dirfd, at, status, flags));                                       \
	}

HOOK_XSTAT(__xstat, stat)
HOOK_XSTAT(__xstat64, stat64)
HOOK_XSTAT(__lxstat, stat)
HOOK_XSTAT(__lxstat64, stat64)
HOOK_FXSTATAT(__fxstatat, stat)
HOOK_FXSTATAT(__fxstatat64, stat64)

HOOK int statx(int dirfd, const char *path, int flags, unsigned int mask, struct statx *status)
{
	REAL(int, statx, int, const char *, int, unsigned int, struct statx *);
	FORWARD(int, -1, path, real(dirfd, at, flags, mask, status));
}

/* ---- access, links
 * ------------------------------------------------------------------------------------------------------ */

HOOK int access(const char *path, int mode)
{
	REAL(int, access, const char *, int);
	FORWARD(int, -1, path, real(at, mode));
}

HOOK int faccessat(int dirfd, const char *path, int mode, int flags)
{
	REAL(int, faccessat, int, const char *, int, int);
	FORWARD(int, -1, path, real(dirfd, at, mode, flags));
}

HOOK ssize_t readlink(const char *path, char *buffer, size_t size)
{
	REAL(ssize_t, readlink, const char *, char *, size_t);
	FORWARD(ssize_t, -1, path, real(at, buffer, size));
}

HOOK ssize_t readlinkat(int dirfd, const char *path, char *buffer, size_t size)
{
	REAL(ssize_t, readlinkat, int, const char *, char *, size_t);
	FORWARD(ssize_t, -1, path, real(dirfd, at, buffer, size));
}

ssize_t __readlink_chk(const char *path, char *buffer, size_t size, size_t room);
HOOK ssize_t __readlink_chk(const char *path, char *buffer, size_t size, size_t room)
{
	REAL(ssize_t, __readlink_chk, const char *, char *, size_t, size_t);
	FORWARD(ssize_t, -1, path, real(at, buffer, size, room));
}

HOOK char *realpath(const char *path, char *resolved)
{
	REAL(char *, realpath, const char *, char *);
	FORWARD(char *, NULL, path, real(at, resolved));
}

char *__realpath_chk(const char *path, char *resolved, size_t room);
HOOK char *__realpath_chk(const char *path, char *resolved, size_t room)
{
	REAL(char *, __realpath_chk, const char *, char *, size_t);
	FORWARD(char *, NULL, path, real(at, resolved, room));
}
