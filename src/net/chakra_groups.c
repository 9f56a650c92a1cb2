/* See chakra_groups.h. */
#include "net/chakra_groups.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "net/grow.h"
#include "net/json_text.h"
#include "net/why.h"

/* A list of ranks while it is read. */
struct ranks {
	uint32_t *list;
	uint32_t count, room;
};

static bool is_named(const struct chakra_group *group, struct span name)
{
	return strlen(group->name) == name.length && memcmp(group->name, name.at, name.length) == 0;
}

static bool has_rank(const struct chakra_group *group, uint32_t rank)
{
	if (!group->ranks)
		return true;
	uint32_t low = 0, high = group->count;
	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		if (group->ranks[middle] == rank)
			return true;
		if (group->ranks[middle] < rank)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

struct chakra_group *chakra_groups_find(const struct chakra_groups *groups, struct span name, uint32_t rank)
{
	struct chakra_group *other = NULL;
	for (uint32_t i = 0; i < groups->count; i++) {
		if (!is_named(&groups->list[i], name))
			continue;
		if (has_rank(&groups->list[i], rank))
			return &groups->list[i];
		other = &groups->list[i];
	}
	return other;
}

void chakra_groups_free(struct chakra_groups *groups)
{
	for (uint32_t i = 0; i < groups->count; i++) {
		free(groups->list[i].name);
		free(groups->list[i].ranks);
	}
	free(groups->list);
	*groups = (struct chakra_groups){ 0 };
}

/* ---- Adding ------------------------------------------------------------------------------------------------------ */

static int by_number(const void *a, const void *b)
{
	const uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
	return one < other ? -1 : one > other;
}

/* Takes over the list. */
static int add(struct chakra_groups *groups, struct span name, struct ranks *ranks, uint32_t from)
{
	char *copy = malloc(name.length + 1);
	if (!copy || !grow_by_one(&groups->list, &groups->room, groups->count, sizeof(*groups->list))) {
		free(copy);
		return -ENOMEM;
	}
	memcpy(copy, name.at, name.length);
	copy[name.length] = 0;
	groups->list[groups->count++] = (struct chakra_group){
		.name = copy, .ranks = ranks->list, .count = ranks->count, .from = from, .number = GRAPH_NONE
	};
	*ranks = (struct ranks){ 0 };
	return 0;
}

/* [0, 1, 2]. 1: read; 0: it is not there, or a rank is there twice; -ENOMEM. */
static int take_ranks(struct json *json, struct ranks *ranks)
{
	uint64_t rank;
	if (!json_take(json, '['))
		return 0;
	if (json_take(json, ']'))
		return 1;
	do {
		if (!json_take_number(json, GRAPH_NONE - 1, &rank))
			return 0;
		if (!grow_by_one(&ranks->list, &ranks->room, ranks->count, sizeof(*ranks->list)))
			return -ENOMEM;
		ranks->list[ranks->count++] = (uint32_t)rank;
	} while (json_take(json, ','));
	qsort(ranks->list, ranks->count, sizeof(*ranks->list), by_number);
	for (uint32_t i = 1; i < ranks->count; i++)
		if (ranks->list[i] == ranks->list[i - 1])
			return 0;
	return json_take(json, ']');
}

/* ---- A groups file ----------------------------------------------------------------------------------------------- */

static int refuse_file(const struct text *text, const struct json *json, const char *what)
{
	return why_not(text->why, text->why_size, "%s: byte %zu: %s: groups are as {\"1\": [0, 1], \"2\": [2, 3]}",
		text->name, (size_t)(json->at - text->owned), what);
}

static int read_one(struct chakra_groups *groups, const struct text *text, struct json *json)
{
	struct ranks ranks = { 0 };
	struct span name;
	if (!json_take_string(json, &name))
		return refuse_file(text, json, "a group's name is missing");
	if (chakra_groups_find(groups, name, 0))
		return refuse_file(text, json, "a group comes twice");
	if (!json_take(json, ':'))
		return refuse_file(text, json, "a colon is missing");
	int error = take_ranks(json, &ranks);
	if (error == 1 && ranks.count > 0)
		error = add(groups, name, &ranks, GRAPH_NONE);
	else if (error >= 0)
		error = refuse_file(text, json, "no list of ranks, each of them once");
	free(ranks.list);
	return error;
}

static int read_all(struct chakra_groups *groups, const struct text *text)
{
	struct json json = { text->at, text->end };
	if (!json_take(&json, '{'))
		return refuse_file(text, &json, "a brace is missing");
	if (!json_take(&json, '}')) {
		do {
			const int error = read_one(groups, text, &json);
			if (error)
				return error;
		} while (json_take(&json, ','));
		if (!json_take(&json, '}'))
			return refuse_file(text, &json, "a comma or brace is missing");
	}
	return json_is_end(&json) ? 0 : refuse_file(text, &json, "something comes behind the groups");
}

int chakra_groups_read_file(struct chakra_groups *groups, const char *path, char *why, unsigned why_size)
{
	struct text text;
	int error = text_open(&text, path, why, why_size);
	if (error)
		return error;
	error = read_all(groups, &text);
	text_close(&text);
	return error;
}

/* ---- PyTorch's --------------------------------------------------------------------------------------------------- */

static bool is_span(struct span span, const char *word)
{
	return span.length == strlen(word) && memcmp(span.at, word, span.length) == 0;
}

/* {"pg_name": "0", ..., "ranks": [...], ...}. As take_ranks. */
static int take_group(struct json *json, struct span *name, struct ranks *ranks)
{
	struct span key;
	bool has_name = false, has_ranks = false;
	if (!json_take(json, '{'))
		return 0;
	do {
		if (!json_take_string(json, &key) || !json_take(json, ':'))
			return 0;
		if (is_span(key, "pg_name") && !has_name) {
			has_name = json_take_string(json, name);
			if (!has_name)
				return 0;
		} else if (is_span(key, "ranks") && !has_ranks) {
			const int is = take_ranks(json, ranks);
			has_ranks = is == 1;
			if (is != 1)
				return is;
		} else if (!json_pass(json))
			return 0;
	} while (json_take(json, ','));
	return has_name && has_ranks && json_take(json, '}');
}

/* A rank that both have, or GRAPH_NONE. */
static uint32_t common_rank(const struct chakra_group *group, const struct ranks *ranks)
{
	if (!ranks->list)
		return group->ranks ? group->ranks[0] : 0;
	for (uint32_t i = 0; i < ranks->count; i++)
		if (has_rank(group, ranks->list[i]))
			return ranks->list[i];
	return GRAPH_NONE;
}

static bool is_same(const struct chakra_group *group, const struct ranks *ranks)
{
	return group->count == ranks->count && !group->ranks == !ranks->list &&
	       (!group->ranks || memcmp(group->ranks, ranks->list, group->count * sizeof(*group->ranks)) == 0);
}

/* Groups are alike in all traces that have them, or have no rank in common. */
static int add_of_rank(struct chakra_groups *groups, struct span name, struct ranks *ranks, uint32_t rank, char *why,
	unsigned why_size)
{
	for (uint32_t i = 0; i < groups->count; i++) {
		const struct chakra_group *group = &groups->list[i];
		if (!is_named(group, name))
			continue;
		if (is_same(group, ranks))
			return 0;
		const uint32_t common = common_rank(group, ranks);
		if (common == GRAPH_NONE)
			continue;
		if (group->from == GRAPH_NONE)
			return why_not(why, why_size,
				"group %.*s has other ranks in the groups file than in the trace of rank %" PRIu32
				", and both have rank %" PRIu32,
				SPAN(name), rank, common);
		return why_not(why, why_size,
			"group %.*s has other ranks in the trace of rank %" PRIu32 " than in that of rank %" PRIu32
			", and both have rank %" PRIu32,
			SPAN(name), group->from, rank, common);
	}
	return add(groups, name, ranks, rank);
}

static int read_list(
	struct chakra_groups *groups, struct json *json, uint32_t rank, bool *is_read, char *why, unsigned why_size)
{
	if (!json_take(json, '['))
		return 0;
	if (json_take(json, ']')) {
		*is_read = json_is_end(json);
		return 0;
	}
	do {
		struct ranks ranks = { 0 };
		struct span name = { 0 };
		int error = take_group(json, &name, &ranks);
		const bool is_there = error == 1;
		if (is_there)
			error = add_of_rank(groups, name, &ranks, rank, why, why_size);
		free(ranks.list);
		if (error || !is_there)
			return error;
	} while (json_take(json, ','));
	*is_read = json_take(json, ']') && json_is_end(json);
	return 0;
}

/* The values are what Python writes of a list with one string: ['...']. */
int chakra_groups_read_values(
	struct chakra_groups *groups, struct span values, uint32_t rank, bool *is_read, char *why, unsigned why_size)
{
	*is_read = false;
	if (values.length < 4)
		return 0;
	struct json json = { values.at + 2, values.at + values.length - 2 };
	return read_list(groups, &json, rank, is_read, why, why_size);
}
