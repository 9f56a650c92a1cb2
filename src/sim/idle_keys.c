/* See idle_keys.h. */
#include "sim/idle_keys.h"

#include <stdio.h>
#include <string.h>

static bool is_among(const char *words, const char *word, size_t length)
{
	for (const char *at = words; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
		if (strcspn(at, "|") == length && memcmp(at, word, length) == 0)
			return true;
	return false;
}

/* A VALUE_WORD, by its number. */
static const char *word_at(const char *words, uint32_t number)
{
	while (number-- && strchr(words, '|'))
		words = strchr(words, '|') + 1;
	return words;
}

/* The key of the path before the "=". */
static const struct scenario_key *key_of(const char *of)
{
	const size_t length = strcspn(of, "=");
	const struct scenario_key *key = scenario_keys;

	while (strncmp(key->path, of, length) != 0 || key->path[length])
		key++; /* a test checks that there is one */
	return key;
}

/* A file takes the place of a kind. */
static const char *word_of(const struct scenario *scenario, const struct scenario_key *key, uint32_t index)
{
	const char *field = (const char *)scenario + key->offset + index * key->stride;
	const bool is_network = strcmp(key->path, "network.topology") == 0;
	uint32_t number;

	if (strcmp(key->path, "transport.cc") == 0)
		return scenario->cc.algorithm->name;
	if ((is_network && *scenario->topology_file) || (key->stride && *scenario->workloads[index].file))
		return "";
	if (key->kind == VALUE_NAME)
		return field;
	memcpy(&number, field, sizeof(number));
	return word_at(key->words, number);
}

static bool is_met(const struct scenario *scenario, const char *of)
{
	const struct scenario_key *key = key_of(of);
	const char *words = of + strcspn(of, "=") + 1;

	for (uint32_t i = 0; i < (key->stride ? scenario->workload_count : 1); i++) {
		const char *word = word_of(scenario, key, i);
		if (is_among(words, word, strcspn(word, "|")))
			return true;
	}
	return false;
}

/* A profile determines all of a switch. */
static bool is_varied(const struct scenario *scenario, const char *path)
{
	return scenario_is_varied(scenario, path) ||
	       (strncmp(path, "network.switch.", 15) == 0 && scenario_is_varied(scenario, "network.switch.profile"));
}

/* The condition that is missing, directly or further up; NULL. */
static const char *lacks(const struct scenario *scenario, const struct scenario_key *key)
{
	if (!key->of)
		return NULL;
	if (is_varied(scenario, key_of(key->of)->path))
		return NULL;
	const char *before = lacks(scenario, key_of(key->of));
	return before ? before : is_met(scenario, key->of) ? NULL : key->of;
}

const struct scenario_key *idle_keys_next(const struct scenario *scenario, size_t *place, const char **of)
{
	for (; scenario_keys[*place].path; ++*place) {
		const struct scenario_key *key = &scenario_keys[*place];
		if (!scenario_is_given(scenario, key->path))
			continue;
		*of = lacks(scenario, key);
		if (!*of)
			continue;
		++*place;
		return key;
	}
	return NULL;
}

const char *idle_keys_instead(const struct scenario *scenario, const char *of, char *text, size_t size)
{
	const struct scenario_key *key = key_of(of);
	const char *word = key->stride ? "" : word_of(scenario, key, 0);

	snprintf(text, size, "%.*s", (int)strcspn(word, "|"), word);
	if (!*text)
		snprintf(text, size, "%s", key->stride ? "another" : "a file");
	return text;
}
