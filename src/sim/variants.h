/* Variants of a scenario: what a file has as variants.NAME.KEY is laid over its KEY where NAME is chosen. */
#ifndef SIM_VARIANTS_H
#define SIM_VARIANTS_H

#include <stdbool.h>
#include <stddef.h>
#include "sim/document.h"

/* What is behind the variant's name in an entry's path, or "". NULL: it is no variant's. */
const char *variant_key(const char *path);
bool variant_owns(const char *path, const char *name);
bool variant_exists(const struct document *document, const char *name);
/* Which there are, and the one that may have been meant: "there are a, b; did you mean a?" False: there is none. */
bool variants_say(const struct document *document, const char *name, char *text, size_t size);

#endif
