/* Files in memory that stand for the files and directories shown: they are sealed, and known by their seals. A shown
 * directory's file holds its path; a counter's is named by its path, and can be written again. */
#ifndef VB_PRELOAD_MEMORY_H
#define VB_PRELOAD_MEMORY_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A descriptor of a new file, or -1 with errno. flags: open()'s, of which O_CLOEXEC counts. */
int vb_memory_file(const char *text, int flags);
int vb_memory_counter(const char *path, const char *text, int flags);
int vb_memory_directory(const char *path, int flags);

/* True, with the path, if fd is a shown directory's. errno is left alone. */
bool vb_shown_directory_of(int fd, char path[PATH_MAX]);
/* May a file of this mode and number of links be a shown directory's? */
bool vb_memory_may_be_directory(mode_t mode, uint64_t links);
/* True, with the path, if fd is a counter's. */
bool vb_memory_counter_of(int fd, char path[PATH_MAX]);
void vb_memory_counter_set(int fd, unsigned long long value);

#endif
