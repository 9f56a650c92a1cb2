/* Files that a command writes, opened before a run, which may take long. Errors are reported on standard error. */
#ifndef SIM_OUTPUT_H
#define SIM_OUTPUT_H

#include <stdio.h>

/* Path NULL: none is wanted, and the file is NULL. An exit status; close the file in every case. */
int output_open(const char *path, FILE **file);
int output_close(const char *path, FILE *file);
/* Of this path: -errno. SIM_EXIT_BAD_NEWS. */
int output_complain(const char *path, int error);

#endif
