/* Open directories of which the tree shows all or a part: what a DIR is for hooks_dir.c. */
#ifndef VB_PRELOAD_LISTING_H
#define VB_PRELOAD_LISTING_H

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>

struct vb_listing;

/* Of a shown directory, with a descriptor of it that becomes the listing's. NULL with errno. */
struct vb_listing *vb_listing_of_shown(const char *path, int fd);
/* Of a real one, which becomes the listing's, when the tree has something to add to it; else NULL, errno left alone.
 * path: as the program said it, or NULL. */
struct vb_listing *vb_listing_of_real(const char *path, DIR *real);

/* What was opened as a listing; NULL: it is libc's. */
struct vb_listing *vb_listing_find(DIR *directory);

struct dirent *vb_listing_read(struct vb_listing *listing); /* NULL at the end */
long vb_listing_tell(const struct vb_listing *listing);
void vb_listing_seek(struct vb_listing *listing, long position);
int vb_listing_fd(const struct vb_listing *listing);
/* The real directory behind it, which the caller closes, or NULL. */
DIR *vb_listing_close(struct vb_listing *listing);

#endif
