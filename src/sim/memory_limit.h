/* The memory that a run may use. */
#ifndef SIM_MEMORY_LIMIT_H
#define SIM_MEMORY_LIMIT_H

#include <stdint.h>

/* In bytes: the least of the machine's memory, what the process's control groups allow (version 1 or 2, each up to the
 * root), and RLIMIT_AS. root: "", or the directory of a copy of /proc and /sys, without a final slash. UINT64_MAX:
 * unknown. */
uint64_t memory_limit(const char *root);

#endif
