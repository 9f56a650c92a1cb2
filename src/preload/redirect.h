/* Which paths are shown elsewhere, and where. */
#ifndef VB_PRELOAD_REDIRECT_H
#define VB_PRELOAD_REDIRECT_H

#include <stdbool.h>
#include <stddef.h>

/* Writes into other where path is to be looked for when it does not exist. False, with errno as it was, when path is
 * none of ours or does not fit. */
bool vb_redirect(const char *path, char *other, size_t size);

#endif
