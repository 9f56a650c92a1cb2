/* Listings: the names of a directory as of its opening, first the real ones, then those that the tree adds. A program
 * holds a listing in place of libc's DIR, so all open ones are in one list, under a mutex; a program that has none open
 * pays one load for each call. */
#include "preload/listing.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "preload/hook.h"
#include "preload/kernel.h"
#include "preload/shown.h"

_Static_assert(sizeof(struct dirent) == sizeof(struct dirent64), "one answer for both");

struct vb_listing {
	struct vb_listing *next;
	char path[PATH_MAX];
	DIR *real;
	int fd;
	size_t at, count, capacity;
	struct dirent *entries;
	bool is_short_of_memory;
};

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_listing *open_listings;
static atomic_uint open_count;

/* ---- Filling ----------------------------------------------------------------------------------------------------- */

static void add(struct vb_listing *listing, const struct dirent *entry)
{
	if (listing->count == listing->capacity) {
		size_t capacity = listing->capacity ? listing->capacity * 2 : 64;
		struct dirent *grown = realloc(listing->entries, capacity * sizeof(*grown));
		if (!grown) {
			listing->is_short_of_memory = true;
			return;
		}
		listing->entries = grown;
		listing->capacity = capacity;
	}
	struct dirent *copy = &listing->entries[listing->count++];
	memset(copy, 0, sizeof(*copy));
	copy->d_ino = entry->d_ino;
	copy->d_type = entry->d_type;
	copy->d_reclen = sizeof(*copy);
	copy->d_off = (off_t)listing->count;
	snprintf(copy->d_name, sizeof(copy->d_name), "%s", entry->d_name);
}

static bool has(const struct vb_listing *listing, const char *name)
{
	for (size_t i = 0; i < listing->count; i++)
		if (strcmp(listing->entries[i].d_name, name) == 0)
			return true;
	return false;
}

static unsigned char type_of(enum vb_kind kind)
{
	switch (kind) {
	case VB_DIRECTORY:
		return DT_DIR;
	case VB_LINK:
		return DT_LNK;
	case VB_CHARACTER_DEVICE:
		return DT_CHR;
	default:
		return DT_REG;
	}
}

/* A real name hides a shown one. */
static void add_shown(void *user, const char *name, enum vb_kind kind)
{
	struct vb_listing *listing = user;
	struct dirent entry = { .d_type = type_of(kind) };
	char path[PATH_MAX + NAME_MAX + 2];

	if (has(listing, name))
		return;
	snprintf(path, sizeof(path), "%s/%s", listing->path, name);
	entry.d_ino = vb_shown_inode(path);
	snprintf(entry.d_name, sizeof(entry.d_name), "%s", name);
	add(listing, &entry);
}

static void add_real(struct vb_listing *listing)
{
	REAL(struct dirent *, readdir, DIR *)
	struct dirent *entry;

	while (real && (entry = real(listing->real)))
		add(listing, entry);
}

static struct vb_listing *make(const char *path, int fd, DIR *real)
{
	struct vb_listing *listing = calloc(1, sizeof(*listing));
	if (!listing)
		return NULL;
	snprintf(listing->path, sizeof(listing->path), "%s", path);
	listing->fd = fd;
	listing->real = real;
	if (real)
		add_real(listing);
	else {
		add_shown(listing, ".", VB_DIRECTORY);
		add_shown(listing, "..", VB_DIRECTORY);
	}
	return listing;
}

static void enter(struct vb_listing *listing)
{
	pthread_mutex_lock(&open_lock);
	listing->next = open_listings;
	open_listings = listing;
	atomic_fetch_add(&open_count, 1);
	pthread_mutex_unlock(&open_lock);
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

struct vb_listing *vb_listing_of_shown(const char *path, int fd)
{
	struct vb_listing *listing = make(path, fd, NULL);

	if (!listing)
		return NULL;
	vb_shown_list(path, add_shown, listing);
	enter(listing);
	return listing;
}

static void count_one(void *user, const char *name, enum vb_kind kind)
{
	++*(size_t *)user;
}

struct vb_listing *vb_listing_of_real(const char *path, DIR *real, int fd)
{
	char canonical[PATH_MAX];
	size_t shown = 0;
	int error = errno;
	struct vb_listing *listing = NULL;

	if (path && path[0] == '/' && !vb_names_ours(path))
		return NULL;
	if (kernel_path_of(fd, canonical, sizeof(canonical)) && vb_names_ours(canonical))
		vb_shown_list(canonical, count_one, &shown);
	if (shown)
		listing = make(canonical, fd, real);
	if (listing) {
		vb_shown_list(canonical, add_shown, listing);
		enter(listing);
	}
	errno = error;
	return listing;
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

struct vb_listing *vb_listing_find(DIR *directory)
{
	struct vb_listing *listing;

	if (!atomic_load_explicit(&open_count, memory_order_relaxed))
		return NULL;
	pthread_mutex_lock(&open_lock);
	for (listing = open_listings; listing && (DIR *)listing != directory;)
		listing = listing->next;
	pthread_mutex_unlock(&open_lock);
	return listing;
}

struct dirent *vb_listing_read(struct vb_listing *listing)
{
	if (listing->at < listing->count)
		return &listing->entries[listing->at++];
	if (listing->is_short_of_memory)
		errno = ENOMEM;
	return NULL;
}

long vb_listing_tell(const struct vb_listing *listing)
{
	return (long)listing->at;
}

void vb_listing_seek(struct vb_listing *listing, long position)
{
	listing->at = position < 0 ? 0 : (size_t)position;
}

int vb_listing_fd(const struct vb_listing *listing)
{
	return listing->fd;
}

DIR *vb_listing_close(struct vb_listing *listing)
{
	DIR *real = listing->real;

	pthread_mutex_lock(&open_lock);
	struct vb_listing **link = &open_listings;
	while (*link != listing)
		link = &(*link)->next;
	*link = listing->next;
	atomic_fetch_sub(&open_count, 1);
	pthread_mutex_unlock(&open_lock);
	if (!real)
		close(listing->fd);
	free(listing->entries);
	free(listing);
	return real;
}
