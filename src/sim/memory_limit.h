/* How much memory a run may have. */
#ifndef SIM_MEMORY_LIMIT_H
#define SIM_MEMORY_LIMIT_H

#include <stdint.h>

/* Bytes: the least of what the machine has, what the process's control groups leave it (version 1 or 2, each up to the
 * root), and RLIMIT_AS. root: "" or where a copy of /proc and /sys lies, without a slash at its end. UINT64_MAX: nobody
 * says. */
uint64_t memory_limit(const char *root);

#endif
