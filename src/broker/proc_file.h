/* Small files of /proc. */
#ifndef VB_BROKER_PROC_FILE_H
#define VB_BROKER_PROC_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Reads as much as fits, and adds a zero; false: it cannot be read, or is empty. */
bool proc_file_read(const char *path, char *text, size_t size);

#endif
