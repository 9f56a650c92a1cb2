/* Random numbers for seeds and names. */
#ifndef VB_HOST_RANDOM_H
#define VB_HOST_RANDOM_H

#include <stdint.h>

uint64_t vb_host_random_seed(void); /* any thread; waits for nothing but the kernel's first entropy */

#endif
