/* Finds keys in the table of keys.c. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/words.h"
#include "sim/scenario.h"

/* Whether a path fits a key's. The number of a list's element may be left out if there is only one: workload.bytes. */
static bool fits(const char *pattern, const char *path, uint32_t *index, bool *is_all)
{
	*index = 0;
	*is_all = false;
	while (*pattern) {
		if (*pattern != '*') {
			if (*pattern++ != *path++)
				return false;
			continue;
		}
		pattern++;
		if (strncmp(path, "all.", 4) == 0) {
			*is_all = true;
			path += 3;
		} else if (isdigit((unsigned char)*path)) {
			char *end;
			unsigned long number = strtoul(path, &end, 10);
			*index = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
			path = end;
		} else {
			pattern++; /* also the dot after the number */
		}
	}
	return *path == 0;
}

const struct scenario_key *scenario_key_find(const char *path, uint32_t *index, bool *is_all)
{
	for (const struct scenario_key *key = scenario_keys; key->path; key++)
		if (fits(key->path, path, index, is_all))
			return key;
	return NULL;
}

static bool is_in(const uint64_t *keys, const char *path)
{
	size_t number = 0;

	while (scenario_keys[number].path && strcmp(scenario_keys[number].path, path) != 0)
		number++;
	return keys[number / 64] >> number % 64 & 1;
}

bool scenario_is_given(const struct scenario *scenario, const char *path)
{
	return is_in(scenario->given, path);
}

bool scenario_is_varied(const struct scenario *scenario, const char *path)
{
	return is_in(scenario->varied, path);
}

static const char *last_part(const char *path)
{
	const char *dot = strrchr(path, '.');
	return dot ? dot + 1 : path;
}

/* The numbers of a path become the table's stars. */
static void star_numbers(const char *path, char *starred, size_t size)
{
	size_t used = 0;

	while (*path && used + 1 < size) {
		size_t length = strcspn(path, ".");
		bool is_number = length && strspn(path, "0123456789") == length;
		used += (size_t)snprintf(
			starred + used, size - used, "%.*s", is_number ? 1 : (int)length, is_number ? "*" : path);
		path += length;
		if (*path && used + 1 < size) {
			starred[used++] = *path++;
			starred[used] = 0;
		}
	}
}

const char *scenario_key_nearest(const char *path)
{
	char starred[160] = "";
	const char *nearest = NULL;
	unsigned best = 0;

	star_numbers(path, starred, sizeof(starred));
	for (const struct scenario_key *key = scenario_keys; key->path; key++) {
		unsigned distance = vb_word_distance(key->path, starred);
		if (strcmp(last_part(key->path), last_part(starred)) == 0 && distance > 3)
			distance = 3; /* the right word in the wrong place */
		if (!nearest || distance < best) {
			nearest = key->path;
			best = distance;
		}
	}
	return best <= 3 ? nearest : NULL;
}
