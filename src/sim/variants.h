/* Variants of a scenario: where NAME is chosen, variants.NAME.KEY of the file overrides its KEY. */
#ifndef SIM_VARIANTS_H
#define SIM_VARIANTS_H

#include <stdbool.h>
#include <stddef.h>
#include "sim/document.h"

/* The rest of an entry's path after the variant's name, or "". NULL: not a variant's. */
const char *variant_key(const char *path);
bool variant_owns(const char *path, const char *name);
bool variant_exists(const struct document *document, const char *name);
/* The list of variants, and a guess at what was meant: "there are a, b; did you mean a?" False: there are none. */
bool variants_say(const struct document *document, const char *name, char *text, size_t size);

#endif
