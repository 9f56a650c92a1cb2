/* See dimensions.h. */
#include "net/dimensions.h"
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include "base/invariant.h"
#include "net/digits.h"
#include "net/why.h"

enum { MOST_RANKS = 1 << 30 };

/* ---- Text -------------------------------------------------------------------------------------------------------- */

static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";

static const char *skip_spaces(const char *text)
{
	return text + strspn(text, " ");
}

static int find(const struct dimensions *dimensions, const char *name, size_t length)
{
	for (uint32_t i = 0; i < dimensions->count; i++)
		if (strlen(dimensions->of[i].name) == length && memcmp(dimensions->of[i].name, name, length) == 0)
			return (int)i;
	return -1;
}

static int parse_size(const char **text, struct rank_dimension *dimension, char *why, unsigned why_size)
{
	const char *at = skip_spaces(*text);
	if (*at != '=')
		return 0;
	at = skip_spaces(at + 1);
	uint64_t size;
	if (!digits_take(&at, MOST_RANKS, &size) || size == 0 || size > MOST_RANKS)
		return why_not(why, why_size, "%s has no size: write it as a number from 1 on, such as %s=8",
			dimension->name, dimension->name);
	dimension->size = (uint32_t)size;
	*text = at;
	return 0;
}

static int parse_one(struct dimensions *dimensions, const char **text, char *why, unsigned why_size)
{
	const size_t length = strspn(*text, letters);
	if (length == 0 || length >= DIMENSIONS_NAME)
		return why_not(why, why_size,
			"a dimension has a name of 1 to %d small letters and digits: write tp=8, dp=4",
			DIMENSIONS_NAME - 1);
	if (find(dimensions, *text, length) >= 0)
		return why_not(why, why_size, "%.*s is there twice: write each dimension once", (int)length, *text);
	if (dimensions->count == DIMENSIONS_MOST)
		return why_not(why, why_size, "more than %d dimensions", DIMENSIONS_MOST);
	struct rank_dimension *added = &dimensions->of[dimensions->count++];
	memcpy(added->name, *text, length);
	*text += length;
	return parse_size(text, added, why, why_size);
}

static uint32_t without_size(const struct dimensions *dimensions)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < dimensions->count; i++)
		count += dimensions->of[i].size == 0;
	return count;
}

int dimensions_parse(struct dimensions *dimensions, const char *text, char *why, unsigned why_size)
{
	struct dimensions made = { 0 };
	for (const char *at = skip_spaces(text);; at = skip_spaces(at + 1)) {
		const int error = parse_one(&made, &at, why, why_size);
		if (error)
			return error;
		at = skip_spaces(at);
		if (!*at)
			break;
		if (*at != ',')
			return why_not(why, why_size, "'%c' stands behind a dimension: write tp=8, dp=4", *at);
	}
	if (without_size(&made) > 1)
		return why_not(why, why_size, "only one dimension may have no size, which is what the others leave");
	*dimensions = made;
	return 0;
}

int dimensions_name(const struct dimensions *dimensions, const char *text, struct dimensions_named *named, char *why,
	unsigned why_size)
{
	bool is_named[DIMENSIONS_MOST] = { false };
	*named = (struct dimensions_named){ 0 };
	for (const char *at = text;; at++) {
		const size_t length = strcspn(at, "-");
		const int number = find(dimensions, at, length);
		if (number < 0)
			return why_not(why, why_size,
				"'%.*s' is no dimension of ranks.dimensions: give it a size there, 1 if it has none",
				length < 20 ? (int)length : 20, at);
		if (is_named[number])
			return why_not(
				why, why_size, "%.*s is there twice: write each dimension once", (int)length, at);
		is_named[number] = true;
		named->number[named->count++] = (uint32_t)number;
		at += length;
		if (!*at)
			return 0;
	}
}

/* ---- Sizes ------------------------------------------------------------------------------------------------------- */

uint32_t dimensions_ranks(const struct dimensions *dimensions)
{
	uint64_t ranks = 1;
	for (uint32_t i = 0; i < dimensions->count; i++)
		ranks *= dimensions->of[i].size;
	return (uint32_t)ranks;
}

/* The product of the sizes that are given, of which none is 0; more than MOST_RANKS if it is. */
static uint64_t given_ranks(const struct dimensions *dimensions)
{
	uint64_t ranks = 1;
	for (uint32_t i = 0; i < dimensions->count && ranks <= MOST_RANKS; i++)
		ranks *= dimensions->of[i].size ? dimensions->of[i].size : 1;
	return ranks;
}

int dimensions_complete(struct dimensions *dimensions, uint32_t ranks, char *why, unsigned why_size)
{
	const uint64_t given = given_ranks(dimensions);
	if (given > ranks)
		return why_not(why, why_size,
			"the sizes make %llu ranks, and the network has %u: make them smaller, or the network larger",
			(unsigned long long)given, ranks);
	for (uint32_t i = 0; i < dimensions->count; i++) {
		struct rank_dimension *its = &dimensions->of[i];
		if (its->size == 0 && ranks % given)
			return why_not(why, why_size,
				"%u ranks leave no whole number for %s: the other sizes make %llu, which does not "
				"divide them; write %s=%u to leave %u ranks idle, or other sizes",
				ranks, its->name, (unsigned long long)given, its->name, (uint32_t)(ranks / given),
				(uint32_t)(ranks % given));
		its->size = its->size ? its->size : (uint32_t)(ranks / given);
	}
	return 0;
}

uint32_t dimensions_size(const struct dimensions *dimensions, const struct dimensions_named *named)
{
	uint32_t size = 1;
	for (uint32_t i = 0; i < named->count; i++)
		size *= dimensions->of[named->number[i]].size;
	return size;
}

/* ---- Ranks ------------------------------------------------------------------------------------------------------- */

/* Where a rank is in each dimension. */
static void find_coordinates(const struct dimensions *dimensions, uint32_t rank, uint32_t coordinates[DIMENSIONS_MOST])
{
	for (uint32_t i = 0; i < dimensions->count; i++) {
		coordinates[i] = rank % dimensions->of[i].size;
		rank /= dimensions->of[i].size;
	}
}

uint32_t dimensions_renumber(const struct dimensions *dimensions, const struct dimensions_named *order, uint32_t rank)
{
	uint32_t coordinates[DIMENSIONS_MOST] = { 0 }, number = 0, stride = 1;
	find_coordinates(dimensions, rank, coordinates);
	for (uint32_t i = 0; i < order->count; i++) {
		number += coordinates[order->number[i]] * stride;
		stride *= dimensions->of[order->number[i]].size;
	}
	return number;
}

/* The dimensions that are named, in the order of ranks, and then the others: along them groups are one behind the
 * other.
 */
static struct dimensions_named groups_order(const struct dimensions *dimensions, const struct dimensions_named *named)
{
	struct dimensions_named order = { 0 };
	for (int others = 0; others < 2; others++)
		for (uint32_t i = 0; i < dimensions->count; i++) {
			bool is_named = false;
			for (uint32_t k = 0; k < named->count; k++)
				is_named |= named->number[k] == i;
			if (is_named == (others == 0))
				order.number[order.count++] = i;
		}
	return order;
}

void dimensions_list_groups(const struct dimensions *dimensions, const struct dimensions_named *named, uint32_t *lists)
{
	const struct dimensions_named order = groups_order(dimensions, named);
	for (uint32_t rank = 0; rank < dimensions_ranks(dimensions); rank++) {
		const uint32_t at = dimensions_renumber(dimensions, &order, rank);
		assert(at < dimensions_ranks(dimensions));
		lists[at] = rank;
	}
}
