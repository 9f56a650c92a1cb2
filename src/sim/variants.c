/* Variants of a scenario. */
#include "sim/variants.h"

#include <stdio.h>
#include <string.h>
#include "base/words.h"

static const char prefix[] = "variants.";
enum { PREFIX = sizeof(prefix) - 1 };

/* The end of the name in a variant's path; NULL: not a variant's. */
static const char *name_end(const char *path)
{
	return strncmp(path, prefix, PREFIX) == 0 ? strchrnul(path + PREFIX, '.') : NULL;
}

const char *variant_key(const char *path)
{
	const char *end = name_end(path);
	return end && *end ? end + 1 : end;
}

bool variant_owns(const char *path, const char *name)
{
	const char *end = name_end(path);
	size_t length = strlen(name);
	return end && (size_t)(end - path) == PREFIX + length && memcmp(path + PREFIX, name, length) == 0;
}

bool variant_exists(const struct document *document, const char *name)
{
	for (unsigned i = 0; i < document->count; i++)
		if (variant_owns(document->entries[i].path, name))
			return true;
	return false;
}

/* Whether this is the first entry of its variant; then also the name. */
static bool is_first_of(const struct document *document, unsigned number, char *name, size_t size)
{
	const char *path = document->entries[number].path, *end = name_end(path);

	if (!end)
		return false;
	snprintf(name, size, "%.*s", (int)(end - path - PREFIX), path + PREFIX);
	for (unsigned i = 0; i < number; i++)
		if (variant_owns(document->entries[i].path, name))
			return false;
	return true;
}

bool variants_say(const struct document *document, const char *name, char *text, size_t size)
{
	char its[160], nearest[160] = "";
	unsigned best = 4, count = 0;
	size_t used = (size_t)snprintf(text, size, "there are");

	for (unsigned i = 0; i < document->count && used < size; i++) {
		if (!is_first_of(document, i, its, sizeof(its)))
			continue;
		used += (size_t)snprintf(text + used, size - used, "%s %s", count++ ? "," : "", its);
		unsigned distance = vb_word_distance(its, name);
		if (distance < best) {
			best = distance;
			snprintf(nearest, sizeof(nearest), "%s", its);
		}
	}
	if (used < size)
		snprintf(text + used, size - used, "%s%s%s%s", count ? "" : " none", *nearest ? "; did you mean " : "",
			nearest, *nearest ? "?" : "");
	return count > 0;
}
