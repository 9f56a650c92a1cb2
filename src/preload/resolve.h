/* The way of a path through the real directories and the tree (tree.h). */
#ifndef VB_PRELOAD_RESOLVE_H
#define VB_PRELOAD_RESOLVE_H

#include <limits.h>
#include <stdbool.h>
#include "preload/tree.h"

/* Is errno that of a missing file, and could the path be a shown one? */
bool vb_may_be_shown(int base_fd, const char *path);
/* Could this absolute path be a shown one? */
bool vb_names_ours(const char *path);

enum vb_where { VB_ELSEWHERE, VB_REAL, VB_SHOWN };

struct vb_found {
	char path[PATH_MAX]; /* canonical */
	struct vb_node node; /* VB_SHOWN */
};

/* The file that the path leads to. VB_ELSEWHERE, with errno unchanged: nothing of the tree. VB_REAL: through the tree
 * to an existing file; place->path is its path. */
enum vb_where vb_shown_resolve(int base_fd, const char *path, bool follows_last, struct vb_found *place);

/* The tree of the devices that there are now; false: it cannot be read. The caller frees it. */
bool vb_tree_read(struct vb_tree *tree);
void vb_tree_free(struct vb_tree *tree);

#endif
