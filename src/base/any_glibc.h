/* Included before everything, by meson.build. What is built with a newer C library is to run with glibc 2.34 too, so
 * the functions that read numbers are not to be those of C23, which came in 2.38 and differ in binary literals
 * alone. */
#include <features.h>

#undef __GLIBC_USE_C2X_STRTOL /* as glibc 2.38 calls it */
#define __GLIBC_USE_C2X_STRTOL 0
#undef __GLIBC_USE_C23_STRTOL /* as 2.40 does */
#define __GLIBC_USE_C23_STRTOL 0
