/* The working directory, if that is a shown one. The kernel cannot have it: the kernel's is the nearest real directory
 * above. The path lies in a sealed file in memory whose descriptor stays open, so that forked children and programs
 * that they execute find it. It counts as long as the kernel's directory is the one that was chosen for it. Not served:
 * a program that closes descriptors that it did not open, and then executes a program that uses relative paths. */
#ifndef VB_PRELOAD_WORKING_H
#define VB_PRELOAD_WORKING_H

#include <limits.h>
#include <stdbool.h>

/* The canonical path of the shown directory that this process works in; false: it works in a real one. errno is
 * unchanged. */
bool vb_working_get(char path[PATH_MAX]);
/* Does this path begin in that directory? */
bool vb_working_has(int base_fd, const char *path);
/* path: of a shown directory, canonical. 0, or -1 with errno. */
int vb_working_enter(const char *path);
/* The kernel's directory counts from now on. */
void vb_working_leave(void);

#endif
