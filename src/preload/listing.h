/* Open directories that the tree shows in whole or in part: a DIR of hooks_dir.c. */
#ifndef VB_PRELOAD_LISTING_H
#define VB_PRELOAD_LISTING_H

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>

struct vb_listing;

/* For a shown directory; the listing takes fd, a descriptor of it. NULL with errno. */
struct vb_listing *vb_listing_of_shown(const char *path, int fd);
/* For a real directory with descriptor fd; the listing takes it if the tree has something to add. Else NULL, with errno
 * unchanged. path: as the program gave it, or NULL. */
struct vb_listing *vb_listing_of_real(const char *path, DIR *real, int fd);

/* The listing behind a DIR; NULL: the DIR is libc's. */
struct vb_listing *vb_listing_find(DIR *directory);

struct dirent *vb_listing_read(struct vb_listing *listing); /* NULL at the end */
long vb_listing_tell(const struct vb_listing *listing);
void vb_listing_seek(struct vb_listing *listing, long position);
int vb_listing_fd(const struct vb_listing *listing);
/* The real directory behind it, which the caller closes, or NULL. */
DIR *vb_listing_close(struct vb_listing *listing);

#endif
