/* Programs of ours that run beside the program: found beside the library, and started so that the program never
 * notices. */
#ifndef VB_HOST_HELPER_H
#define VB_HOST_HELPER_H

#include <stddef.h>

#define VB_HELPER_PATH 4096 /* bytes of a path */

/* The path of the helper of that name: in the directory libexec if that is given, else beside the library. -ENOENT:
 * why says where it was sought. */
int vb_helper_find(const char *name, const char *libexec, char path[VB_HELPER_PATH], char *why, size_t why_size);
/* Runs it in a session of its own with given as its descriptor 3 and waits until it has left us, which it must do at
 * once. Returns an errno, or 0. */
int vb_helper_run(const char *path, char **arguments, int given);

#endif
