/* See chakra_files.h. */
#include "net/chakra_files.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "net/grow.h"
#include "net/job_formats.h"
#include "net/why.h"

enum { LOOK_BEYOND = 256 };

static bool ends_with(const char *text, const char *end)
{
	const size_t length = strlen(text), its = strlen(end);
	return length >= its && memcmp(text + length - its, end, its) == 0;
}

bool job_chakra_is_file_name(const char *path)
{
	return ends_with(path, ".et") || ends_with(path, ".et.gz");
}

bool chakra_find_file(const char *prefix, int length, uint32_t rank, char path[CHAKRA_PATH])
{
	static const char *const ends[] = { "et", "et.gz" };
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		const int written = snprintf(path, CHAKRA_PATH, "%.*s.%" PRIu32 ".%s", length, prefix, rank, ends[i]);
		if (written > 0 && written < CHAKRA_PATH && text_can_open(path))
			return true;
	}
	return false;
}

bool job_chakra_is_prefix(const char *path)
{
	char file[CHAKRA_PATH];
	const size_t length = strlen(path);
	return length < CHAKRA_PATH && chakra_find_file(path, (int)length, 0, file);
}

int chakra_find_prefix(const struct text *text, int *length)
{
	static const char *const ends[] = { ".0.et", ".0.et.gz" };
	const size_t whole = strlen(text->name);
	if (whole >= CHAKRA_PATH)
		return why_not(text->why, text->why_size, "%.40s...: the path is too long", text->name);
	*length = (int)whole;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (ends_with(text->name, ends[i]))
			*length = (int)(whole - strlen(ends[i]));
	if (*length == (int)whole && !job_chakra_is_prefix(text->name))
		return why_not(text->why, text->why_size,
			"%s: a Chakra trace is PREFIX.RANK.et, a file for each rank from 0: name PREFIX, or "
			"PREFIX.0.et",
			text->name);
	return 0;
}

int chakra_count_ranks(const struct text *text, int prefix, uint32_t *ranks)
{
	char path[CHAKRA_PATH], absent[100] = "";
	const char *const name = text->name;
	uint32_t last = 0, gaps = 0;
	*ranks = 0;
	while (*ranks < GROW_MOST && chakra_find_file(name, prefix, *ranks, path))
		++*ranks;
	for (uint32_t rank = *ranks; rank < *ranks + LOOK_BEYOND; rank++)
		last = chakra_find_file(name, prefix, rank, path) ? rank : last;
	for (uint32_t rank = *ranks; rank < last; rank++)
		if (!chakra_find_file(name, prefix, rank, path)) {
			const size_t length = strlen(absent);
			if (gaps++ < 8)
				snprintf(absent + length, sizeof(absent) - length, "%s%" PRIu32, length ? ", " : "",
					rank);
		}
	if (gaps > 0)
		return why_not(text->why, text->why_size,
			"%.*s.RANK.et: of ranks 0 to %" PRIu32 " the files of %" PRIu32 " are missing: %s%s", prefix,
			name, last, gaps, absent, gaps > 8 ? ", ..." : "");
	if (*ranks == 0)
		return why_not(text->why, text->why_size, "%s: there is no such file", name);
	return 0;
}
