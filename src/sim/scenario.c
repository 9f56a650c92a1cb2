/* Entries become a scenario: each value is parsed as its key's kind, checked against the key's bounds, and stored where
 * the table says. */
#include "sim/scenario.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/utf8.h"
#include "sim/variants.h"

_Static_assert(SCENARIO_FAULTS <= 64, "each has a bit of downs_given");

struct filling {
	struct scenario *scenario;
	const struct document *document;
	const char *directory;
	struct document_error *error;
	const struct document_entry *entry; /* NULL: a default */
	const char *path;                   /* of the entry's key, even inside a variant */
	bool is_checking;                   /* only checks variants, not all of which are applied */
};

/* Lists that a file may write as a map, and whose numbers may be left out, if they have one element. */
static const char *const lists[] = { "workload.", "network.faults." };

/* Later layers override earlier ones. */
enum layer { LAYER_FILE, LAYER_VARIANT, LAYER_COMMAND_LINE };

/* Reports what is wrong with the current value. */
static int refuse_value(
	const struct filling *filling, const struct scenario_key *key, const char *text, const char *what)
{
	const struct document_entry *entry = filling->entry;

	return document_refuse(filling->error, entry ? entry->value_at : (struct document_mark){ 0 },
		"%s: '%.*s': %.300s", entry ? entry->path : key->path, vb_utf8_fitting(text, 60), text, what);
}

static void put_integer(void *field, uint32_t size, uint64_t value)
{
	uint8_t u8 = (uint8_t)value;
	uint32_t u32 = (uint32_t)value;

	memcpy(field, size == 1 ? (void *)&u8 : size == 4 ? (void *)&u32 : (void *)&value, size);
}

/* In the key's own units: "1us", not 1000000. */
static const char *bound_text(const struct scenario_key *key, double bound, char *text, size_t size)
{
	switch (key->kind) {
	case VALUE_TIME:
		return value_time_text((vb_time)bound, text, size);
	case VALUE_BYTES:
		return value_bytes_text((uint64_t)bound, text, size);
	case VALUE_RATE:
		return value_rate_text((uint64_t)bound, text, size);
	case VALUE_SHARE:
		snprintf(text, size, "%g%%", bound / 10000);
		return text;
	default:
		snprintf(text, size, "%.15g", bound);
		return text;
	}
}

static int put_number(struct filling *filling, const struct scenario_key *key, const char *text, void *field)
{
	char what[200], least[40], largest[40];
	double real = 0;
	uint64_t integer = 0;

	if (!(key->kind == VALUE_REAL ? value_real(text, &real) : value_integer(key->kind, text, &integer))) {
		snprintf(what, sizeof(what), "write %s", value_form(key->kind));
		return refuse_value(filling, key, text, what);
	}
	double compared = key->kind == VALUE_REAL ? real : (double)integer;
	bool is_full = key->kind != VALUE_REAL && key->size < 8 && integer >> (8 * key->size);
	if (compared < key->least || compared > key->largest || is_full) {
		snprintf(what, sizeof(what), "write one from %s to %s",
			bound_text(key, key->least, least, sizeof(least)),
			bound_text(key, key->largest, largest, sizeof(largest)));
		return refuse_value(filling, key, text, what);
	}
	if (key->kind == VALUE_REAL)
		memcpy(field, &real, sizeof(real));
	else
		put_integer(field, key->size, integer);
	return 0;
}

/* Names of files beside a scenario file; a distribution may also be a built-in one, whose name is no path. */
static int put_text(struct filling *filling, const struct scenario_key *key, const char *text, char *field)
{
	const char *directory = "", *slash = "";

	if (key->is_path && *text && *text != '/' && filling->entry && filling->entry->value_at.line &&
		*filling->directory && strpbrk(text, "./")) {
		directory = filling->directory;
		slash = "/";
	}
	if (snprintf(field, key->size, "%s%s%s", directory, slash, text) >= (int)key->size)
		return refuse_value(filling, key, text, "this is too long");
	return 0;
}

static int refuse_word(struct filling *filling, const struct scenario_key *key, const char *text)
{
	char what[200];

	snprintf(what, sizeof(what), "write one of %s", key->words);
	return refuse_value(filling, key, text, what);
}

/* Uses the key's own function. On a command line, a variant's name may take the place of an algorithm's. */
static int put_by_function(struct filling *filling, const struct scenario_key *key, const char *text)
{
	char what[300], variants[200];

	if (!key->set(filling->scenario, text, what, sizeof(what)))
		return 0;
	if (strcmp(key->path, "transport.cc") == 0 && filling->entry && filling->entry->value_at.line == 0 &&
		variants_say(filling->document, text, variants, sizeof(variants)))
		snprintf(what + strlen(what), sizeof(what) - strlen(what), "; of variants %s", variants);
	return refuse_value(filling, key, text, what);
}

static int put_value(struct filling *filling, const struct scenario_key *key, const char *text, char *field)
{
	uint32_t word;
	bool flag;

	if (key->set)
		return put_by_function(filling, key, text);
	if (key->words && !value_word(key->words, text, &word))
		return refuse_word(filling, key, text);
	switch (key->kind) {
	case VALUE_TEXT:
	case VALUE_NAME:
		return put_text(filling, key, text, field);
	case VALUE_WORD:
		put_integer(field, key->size, word);
		return 0;
	case VALUE_FLAG:
		if (!value_flag(text, &flag))
			return refuse_value(filling, key, text, "write yes or no");
		memcpy(field, &flag, sizeof(flag));
		return 0;
	default:
		return put_number(filling, key, text, field);
	}
}

static int put_into_all(struct filling *filling, const struct scenario_key *key, const char *text)
{
	int error = 0;

	for (uint32_t i = 0; !error && i < (key->stride ? key->most : 1); i++)
		error = put_value(filling, key, text, (char *)filling->scenario + key->offset + i * key->stride);
	return error;
}

static int put_defaults(struct filling *filling)
{
	int error = 0;

	for (const struct scenario_key *key = scenario_keys; !error && key->path; key++)
		if (key->preset)
			error = put_into_all(filling, key, key->preset);
	return error;
}

/* Whether a key's path continues this one. Numbers, and "all", match its stars. */
static bool goes_on_behind(const char *pattern, const char *path)
{
	while (*path) {
		size_t digits = strspn(path, "0123456789");
		if (*pattern == '*' && (digits || strncmp(path, "all", 3) == 0)) {
			path += digits ? digits : 3;
			pattern++;
		} else if (*pattern++ != *path++) {
			return false;
		}
	}
	return *pattern == '.';
}

/* Whether keys begin with this path. */
static bool is_section(const char *path)
{
	if (!*path || strcmp(path, "variants") == 0)
		return true;
	for (const struct scenario_key *key = scenario_keys; key->path; key++)
		if (goes_on_behind(key->path, path))
			return true;
	return false;
}

static int refuse_unknown(struct filling *filling)
{
	const struct document_entry *entry = filling->entry;
	const char *nearest = scenario_key_nearest(filling->path);

	if (is_section(filling->path))
		return document_refuse(filling->error, entry->value_at,
			"%s: '%.*s': keys belong here (verbena sim --keys)", entry->path,
			vb_utf8_fitting(entry->value, 60), entry->value);
	return document_refuse(filling->error, entry->key_at, "%s: there is no such key; %s%s%s", entry->path,
		nearest ? "did you mean " : "verbena sim --keys lists all", nearest ? nearest : "", nearest ? "?" : "");
}

/* The number of elements in a list so far; a command line may add one. */
static uint32_t *count_of(struct scenario *scenario, const char *path)
{
	if (strncmp(path, "workload.", 9) == 0)
		return &scenario->workload_count;
	return strncmp(path, "network.faults.", 15) == 0 ? &scenario->fault_count : NULL;
}

/* The rest of a path after a list's name, if that is a key, and neither a number nor "all"; NULL. */
static const char *behind_list(const char *path, const char *list)
{
	const char *behind = path + strlen(list);

	if (strncmp(path, list, strlen(list)) != 0 || (*behind >= '0' && *behind <= '9') ||
		strncmp(behind, "all.", 4) == 0)
		return NULL;
	return behind;
}

/* With several elements a path without a number is ambiguous. */
static int refuse_unnumbered(struct filling *filling, uint32_t count)
{
	const struct document_entry *entry = filling->entry;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		const char *behind = behind_list(filling->path, lists[i]);
		if (!behind)
			continue;
		return document_refuse(filling->error, entry->key_at,
			"%s: there are %u of these: write %s0.%s, or the number of another", entry->path, count,
			lists[i], behind);
	}
	return 0;
}

static int put_entry(struct filling *filling, bool is_first)
{
	const struct document_entry *entry = filling->entry;
	uint32_t index;
	bool is_all;
	const struct scenario_key *key = scenario_key_find(filling->path, &index, &is_all);

	if (!key && !*entry->value && is_section(filling->path))
		return 0; /* "capture:" with nothing below it */
	if (!key)
		return refuse_unknown(filling);
	if (key->is_first != is_first)
		return 0;
	if (!*entry->value)
		return document_refuse(
			filling->error, entry->value_at, "%s: a value is missing: %s", entry->path, key->help);
	filling->scenario->given[(key - scenario_keys) / 64] |= (uint64_t)1 << (key - scenario_keys) % 64;
	uint32_t *count = count_of(filling->scenario, key->path);
	if (count && *count > 1 && !is_all && !filling->is_checking && refuse_unnumbered(filling, *count))
		return -EINVAL;
	if (is_all && !count)
		return put_into_all(filling, key, entry->value);
	if (key->stride && (is_all || index >= key->most || (count && index > *count)))
		return document_refuse(filling->error, entry->key_at, "%s: there are only %u, counted from 0",
			entry->path, count ? *count : key->most);
	if (count && index == *count)
		++*count;
	if (strncmp(key->path, "network.switch.classes.", 23) == 0)
		filling->scenario->classes_given |= (uint8_t)(1u << index);
	if (strcmp(key->path, "network.faults.*.down") == 0)
		filling->scenario->downs_given |= (uint64_t)1 << index;
	return put_value(filling, key, entry->value, (char *)filling->scenario + key->offset + index * key->stride);
}

/* The path of an entry's key if the entry is in that layer; NULL. A value that the command line replaces in the file is
 * in both layers: elements of a list are counted in the file's order. */
static const char *path_in(const struct document_entry *entry, enum layer layer, const char *variant)
{
	const char *key = variant_key(entry->path);

	if (layer == LAYER_VARIANT)
		return key && variant_owns(entry->path, variant) ? key : NULL;
	bool is_there = layer == LAYER_FILE ? entry->key_at.line != 0 : entry->value_at.line == 0;
	return is_there && !key ? entry->path : NULL;
}

static int put_layer(struct filling *filling, enum layer layer, const char *variant, bool is_first)
{
	const struct document *document = filling->document;
	int rc = 0;

	for (unsigned i = 0; !rc && i < document->count; i++) {
		filling->entry = &document->entries[i];
		filling->path = path_in(filling->entry, layer, variant);
		rc = filling->path ? put_entry(filling, is_first) : 0;
	}
	return rc;
}

static int put_layers(struct filling *filling, enum layer last, const char *variant)
{
	*filling->scenario = (struct scenario){ 0 };
	filling->entry = NULL;
	int rc = put_defaults(filling);
	for (int is_first = 1; !rc && is_first >= 0; is_first--)
		for (enum layer layer = 0; !rc && layer <= last; layer++)
			rc = put_layer(filling, layer, variant, is_first);
	return rc;
}

/* Refuses a key without a number if there are several of its kind. Covers the command line too, since only when all is
 * read is the count known. */
static int refuse_unnumbered_settings(struct filling *filling)
{
	const struct document *document = filling->document;
	char path[200];

	for (unsigned i = 0; i < document->count; i++) {
		const char *numbered = document->entries[i].path;
		uint32_t *count = document->entries[i].is_unnumbered ? count_of(filling->scenario, numbered) : NULL;
		if (!count || *count <= 1)
			continue;
		const char *number = strstr(numbered, ".0.");
		snprintf(path, sizeof(path), "%.*s%s", (int)(number - numbered), numbered, number + 2);
		return document_refuse(filling->error, document->entries[i].value_at,
			"%s: there are %u of these: write %s, or the number of another", path, *count, numbered);
	}
	return 0;
}

/* Checks each entry of all variants on its own, even those that are not chosen. */
static int check_variants(struct filling *filling)
{
	const struct document *document = filling->document;
	int rc = put_layers(filling, LAYER_FILE, NULL);

	memset(filling->scenario->given, 0, sizeof(filling->scenario->given));
	filling->is_checking = true;
	for (unsigned i = 0; !rc && i < document->count; i++) {
		filling->entry = &document->entries[i];
		filling->path = variant_key(filling->entry->path);
		if (!filling->path)
			continue;
		if (strcmp(filling->path, "variant") == 0)
			return document_refuse(filling->error, filling->entry->key_at,
				"%s: a variant cannot choose another", filling->entry->path);
		rc = put_entry(filling, true);
		if (!rc)
			rc = put_entry(filling, false);
	}
	filling->is_checking = false;
	return rc;
}

/* The name of the chosen variant, or "". */
static int find_variant(const struct document *document, const char **name, struct document_error *error)
{
	const struct document_entry *entry = document_find(document, "variant");
	char there[300];

	*name = entry ? entry->value : "";
	if (!**name || variant_exists(document, *name))
		return 0;
	variants_say(document, *name, there, sizeof(there));
	return document_refuse(error, entry->value_at, "variant: '%.*s': there is no such variant; %s",
		vb_utf8_fitting(*name, 60), *name, there);
}

const struct document_entry *scenario_entry(const struct document *document, const char *variant, const char *path)
{
	const struct document_entry *found = NULL;

	for (enum layer layer = 0; layer <= LAYER_COMMAND_LINE; layer++)
		for (unsigned i = 0; i < document->count; i++) {
			const char *its = path_in(&document->entries[i], layer, variant);
			if (its && strcmp(its, path) == 0)
				found = &document->entries[i];
		}
	return found;
}

/* A file of a network may say how fast its GPUs are: then this is known when it is read. */
static int check_gpus(const struct filling *filling, const char *variant)
{
	const struct hosts *hosts = &filling->scenario->hosts;
	const struct document_entry *entry = scenario_entry(filling->document, variant, "hosts.gpus");

	if (!hosts->gpus || hosts->scale_up || *filling->scenario->topology_file)
		return 0;
	return document_refuse(filling->error, entry ? entry->value_at : (struct document_mark){ 0 },
		"%s: %u GPUs of a host need the rate of their ports to each other: set hosts.scale-up, as 3600G, or "
		"name "
		"the GPU, as hosts.gpu H100 (verbena sim --gpus lists them)",
		entry ? entry->path : "hosts.gpus", hosts->gpus);
}

int scenario_fill(
	struct scenario *scenario, const struct document *document, const char *directory, struct document_error *error)
{
	struct filling filling = { scenario, document, directory, error, NULL, NULL, false };
	uint64_t varied[SCENARIO_KEYS / 64];
	const char *variant;

	int rc = check_variants(&filling);
	memcpy(varied, scenario->given, sizeof(varied));
	if (!rc)
		rc = find_variant(document, &variant, error);
	if (!rc)
		rc = put_layers(&filling, LAYER_COMMAND_LINE, variant);
	if (!rc)
		rc = refuse_unnumbered_settings(&filling);
	memcpy(scenario->varied, varied, sizeof(varied));
	if (!rc)
		rc = check_gpus(&filling, variant);
	if (!rc && !*scenario->topology.kind && !*scenario->topology_file)
		return document_refuse(
			error, (struct document_mark){ 0 }, "network.topology or network.file is missing");
	return rc;
}

int scenario_set(struct document *document, const char *path, const char *value, struct document_error *error)
{
	char numbered[200];

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		const char *behind = behind_list(path, lists[i]);
		if (!behind)
			continue;
		snprintf(numbered, sizeof(numbered), "%s0.%s", lists[i], behind);
		int rc = document_set(document, numbered, value, error);
		if (!rc)
			document->entries[document_find(document, numbered) - document->entries].is_unnumbered = true;
		return rc;
	}
	return document_set(document, path, value, error);
}

int scenario_read_file(struct document *document, const char *path, struct document_error *error)
{
	FILE *file = fopen(path, "re");
	if (!file)
		return -errno;
	char *text = malloc(DOCUMENT_MAX_BYTES + 1);
	int rc = -ENOMEM;
	if (text) {
		errno = 0;
		size_t length = fread(text, 1, DOCUMENT_MAX_BYTES + 1, file);
		rc = ferror(file) ? (errno ? -errno : -EIO) : document_read(document, text, length, error);
	}
	free(text);
	fclose(file);
	return rc;
}

bool scenario_has_step(const struct scenario *scenario, uint32_t workload)
{
	return strcmp(scenario->workloads[workload].workload.kind, "step") == 0;
}
