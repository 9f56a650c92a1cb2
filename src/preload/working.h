/* The working directory, where that is a shown one. The kernel's cannot be: it is the nearest real directory above, and
 * what was asked for lies in a sealed file in memory whose descriptor stays open, so that forked children and programs
 * that they execute find it. It counts as long as the kernel's directory is the one that was chosen for it.
 *
 * Not served: who closes descriptors that he does not know, and then executes a program that uses relative paths. */
#ifndef VB_PRELOAD_WORKING_H
#define VB_PRELOAD_WORKING_H

#include <limits.h>
#include <stdbool.h>

/* The canonical path of the shown directory that this process works in; false: in a real one. errno is left alone. */
bool vb_working_get(char path[PATH_MAX]);
/* Does this path begin there? */
bool vb_working_has(int dirfd, const char *path);
/* path is a shown directory's, canonical. 0, or -1 with errno. */
int vb_working_enter(const char *path);
/* The kernel's is meant from now on. */
void vb_working_leave(void);

#endif
