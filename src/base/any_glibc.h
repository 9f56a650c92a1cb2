/* meson.build includes this before everything. A library built with a newer C library must also run with glibc 2.34. So
 * this keeps out C23's functions that read numbers: they came in 2.38 and differ only in binary literals. */
#include <features.h>

#undef __GLIBC_USE_C2X_STRTOL /* as glibc 2.38 calls it */
#define __GLIBC_USE_C2X_STRTOL 0
#undef __GLIBC_USE_C23_STRTOL /* as 2.40 does */
#define __GLIBC_USE_C23_STRTOL 0
