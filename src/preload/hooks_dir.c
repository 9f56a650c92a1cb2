/* libverbena-preload.so: libc's functions that list directories. A directory that only the tree has, or to which the
 * tree adds something, becomes a listing (listing.h); every other one stays libc's. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "preload/hook.h"
#include "preload/listing.h"
#include "preload/shown.h"

/* ---- Opening and closing ----------------------------------------------------------------------------------------- */

/* The listing takes fd, if the directory is shown. */
static DIR *list_shown(int fd, const char *path)
{
	return (DIR *)vb_listing_of_shown(path, fd);
}

static DIR *open_shown(int base_fd, const char *path)
{
	char canonical[PATH_MAX];
	int fd = vb_shown_open(base_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return NULL;
	DIR *directory = vb_shown_directory_of(fd, canonical) ? list_shown(fd, canonical) : fdopendir(fd);
	if (!directory)
		close(fd);
	return directory;
}

static DIR *with_additions(const char *path, DIR *real)
{
	DIR *listing = (DIR *)vb_listing_of_real(path, real, dirfd(real));
	return listing ? listing : real;
}

HOOK DIR *opendir(const char *path)
{
	REAL(DIR *, opendir, const char *)
	int before = errno;
	bool is_within = vb_working_has(AT_FDCWD, path);
	DIR *directory = real && !is_within ? real(path) : NULL;
	if (directory)
		return with_additions(path, directory);
	if (is_within)
		errno = ENOENT;
	else if (!vb_may_be_shown(AT_FDCWD, path))
		return NULL;
	directory = open_shown(AT_FDCWD, path);
	if (directory)
		errno = before;
	return directory;
}

HOOK DIR *fdopendir(int fd)
{
	char path[PATH_MAX];
	REAL(DIR *, fdopendir, int)
	int before = errno;
	DIR *directory = real ? real(fd) : NULL;
	if (directory)
		return with_additions(NULL, directory);
	if (errno != ENOTDIR || !vb_shown_directory_of(fd, path))
		return NULL;
	directory = list_shown(fd, path);
	if (directory)
		errno = before;
	return directory;
}

HOOK int closedir(DIR *directory)
{
	REAL(int, closedir, DIR *)
	struct vb_listing *listing = vb_listing_find(directory);
	if (listing && !(directory = vb_listing_close(listing)))
		return 0;
	return real(directory);
}

HOOK int dirfd(DIR *directory)
{
	REAL(int, dirfd, DIR *)
	struct vb_listing *listing = vb_listing_find(directory);
	return listing ? vb_listing_fd(listing) : real(directory);
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

#define HOOK_READDIR(name, entry)                                                                                      \
	HOOK struct entry *name(DIR *directory)                                                                        \
	{                                                                                                              \
		REAL(struct entry *, name, DIR *)                                                                      \
		struct vb_listing *listing = vb_listing_find(directory);                                               \
		return listing ? (struct entry *)vb_listing_read(listing) : real(directory);                           \
	}

/* libc marks these as obsolete, but programs still call them. */
#define HOOK_READDIR_R(name, entry)                                                                                    \
	int name(DIR *directory, struct entry *buffer, struct entry **result);                                         \
	HOOK int name(DIR *directory, struct entry *buffer, struct entry **result)                                     \
	{                                                                                                              \
		REAL(int, name, DIR *, struct entry *, struct entry **)                                                \
		struct vb_listing *listing = vb_listing_find(directory);                                               \
		if (!listing)                                                                                          \
			return real(directory, buffer, result);                                                        \
		const struct dirent *next = vb_listing_read(listing);                                                  \
		if (next)                                                                                              \
			memcpy(buffer, next, sizeof(*buffer));                                                         \
		*result = next ? buffer : NULL;                                                                        \
		return 0;                                                                                              \
	}

HOOK_READDIR(readdir, dirent)
HOOK_READDIR(readdir64, dirent64)
HOOK_READDIR_R(readdir_r, dirent)
HOOK_READDIR_R(readdir64_r, dirent64)

HOOK void rewinddir(DIR *directory)
{
	REAL(void, rewinddir, DIR *)
	struct vb_listing *listing = vb_listing_find(directory);
	if (listing)
		vb_listing_seek(listing, 0);
	else
		real(directory);
}

HOOK long telldir(DIR *directory)
{
	REAL(long, telldir, DIR *)
	struct vb_listing *listing = vb_listing_find(directory);
	return listing ? vb_listing_tell(listing) : real(directory);
}

HOOK void seekdir(DIR *directory, long position)
{
	REAL(void, seekdir, DIR *, long)
	struct vb_listing *listing = vb_listing_find(directory);
	if (listing)
		vb_listing_seek(listing, position);
	else
		real(directory, position);
}

/* ---- Scanning: inside libc these do not come by our opendir ------------------------------------------------------ */

typedef int (*filter_function)(const struct dirent *);
typedef int (*compare_function)(const struct dirent **, const struct dirent **);

static int compare_by(const void *a, const void *b, void *compare)
{
	return ((compare_function)compare)((const struct dirent **)a, (const struct dirent **)b);
}

struct scan {
	struct dirent **names;
	size_t count, capacity;
};

static bool scan_add(struct scan *scan, const struct dirent *entry)
{
	if (scan->count == scan->capacity) {
		size_t capacity = scan->capacity ? scan->capacity * 2 : 32;
		struct dirent **grown = realloc(scan->names, capacity * sizeof(*grown));
		if (!grown)
			return false;
		scan->names = grown;
		scan->capacity = capacity;
	}
	struct dirent *copy = malloc(sizeof(*copy));
	if (!copy)
		return false;
	*copy = *entry;
	scan->names[scan->count++] = copy;
	return true;
}

static int scan_listing(
	struct vb_listing *listing, struct dirent ***list, filter_function filter, compare_function compare)
{
	struct scan scan = { .names = malloc(sizeof(struct dirent *)), .capacity = 1 };
	const struct dirent *entry;
	bool is_whole = scan.names;

	while (is_whole && (entry = vb_listing_read(listing)))
		is_whole = (filter && !filter(entry)) || scan_add(&scan, entry);
	if (!is_whole) {
		while (scan.count)
			free(scan.names[--scan.count]);
		free(scan.names);
		errno = ENOMEM;
		return -1;
	}
	if (compare)
		qsort_r(scan.names, scan.count, sizeof(*scan.names), compare_by, (void *)compare);
	*list = scan.names;
	return (int)scan.count;
}

/* True: it was a listing, so libc must not be asked. */
static bool scan_ours(int base_fd, const char *path, struct dirent ***list, filter_function filter,
	compare_function compare, int *result)
{
	int error = errno;
	if (path && path[0] == '/' && !vb_names_ours(path))
		return false;
	int fd = openat(base_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	if (fd >= 0 && !directory)
		close(fd);
	errno = error;
	if (!directory)
		return false;
	struct vb_listing *listing = vb_listing_find(directory);
	if (listing)
		*result = scan_listing(listing, list, filter, compare);
	error = errno;
	closedir(directory);
	errno = error;
	return listing;
}

#define HOOK_SCANDIR(name, entry)                                                                                      \
	HOOK int name(const char *path, struct entry ***list, int (*filter)(const struct entry *),                     \
		int (*compare)(const struct entry **, const struct entry **))                                          \
	{                                                                                                              \
		REAL(int, name, const char *, struct entry ***, int (*)(const struct entry *),                         \
			int (*)(const struct entry **, const struct entry **))                                         \
		int result;                                                                                            \
		if (scan_ours(AT_FDCWD, path, (struct dirent ***)list, (filter_function)filter,                        \
			    (compare_function)compare, &result))                                                       \
			return result;                                                                                 \
		return real(path, list, filter, compare);                                                              \
	}

#define HOOK_SCANDIRAT(name, entry)                                                                                    \
	HOOK int name(int base_fd, const char *path, struct entry ***list, int (*filter)(const struct entry *),        \
		int (*compare)(const struct entry **, const struct entry **))                                          \
	{                                                                                                              \
		REAL(int, name, int, const char *, struct entry ***, int (*)(const struct entry *),                    \
			int (*)(const struct entry **, const struct entry **))                                         \
		int result;                                                                                            \
		if (scan_ours(base_fd, path, (struct dirent ***)list, (filter_function)filter,                         \
			    (compare_function)compare, &result))                                                       \
			return result;                                                                                 \
		return real(base_fd, path, list, filter, compare);                                                     \
	}

HOOK_SCANDIR(scandir, dirent)
HOOK_SCANDIR(scandir64, dirent64)
HOOK_SCANDIRAT(scandirat, dirent)
HOOK_SCANDIRAT(scandirat64, dirent64)

/* On request, libc's glob looks with functions that the caller gives: these. */
static void *glob_opendir(const char *path)
{
	return opendir(path);
}

static struct dirent *glob_readdir(void *directory)
{
	return readdir(directory);
}

static struct dirent64 *glob_readdir64(void *directory)
{
	return readdir64(directory);
}

static void glob_closedir(void *directory)
{
	closedir(directory);
}

static bool is_looked_for(const char *pattern)
{
	return vb_names_ours(pattern) || vb_working_has(AT_FDCWD, pattern);
}

#define HOOK_GLOB(name, result, read, status_of, link_status_of)                                                       \
	HOOK int name(const char *pattern, int flags, int (*on_error)(const char *, int), result *matches)             \
	{                                                                                                              \
		REAL(int, name, const char *, int, int (*)(const char *, int), result *)                               \
		if (!(flags & GLOB_ALTDIRFUNC) && pattern && is_looked_for(pattern)) {                                 \
			flags |= GLOB_ALTDIRFUNC;                                                                      \
			matches->gl_opendir = glob_opendir;                                                            \
			matches->gl_readdir = read;                                                                    \
			matches->gl_closedir = glob_closedir;                                                          \
			matches->gl_stat = status_of;                                                                  \
			matches->gl_lstat = link_status_of;                                                            \
		}                                                                                                      \
		return real(pattern, flags, on_error, matches);                                                        \
	}

HOOK_GLOB(glob, glob_t, glob_readdir, stat, lstat)
HOOK_GLOB(glob64, glob64_t, glob_readdir64, stat64, lstat64)
