/* See placement.h. */
#include "net/placement.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "net/digits.h"
#include "net/why.h"

int placement_spread(uint32_t *gpu_of, uint32_t ranks, uint32_t gpus, uint32_t switches, char *why, unsigned why_size)
{
	const uint32_t each = gpus ? gpus : 1, hosts = ranks / each;
	if (hosts == 0 || switches == 0 || hosts % switches)
		return why_not(why, why_size, "%u hosts cannot be dealt out to %u switches evenly", hosts, switches);
	for (uint32_t rank = 0; rank < ranks; rank++) {
		const uint32_t host = rank / each, place = host % switches * (hosts / switches) + host / switches;
		gpu_of[rank] = place * each + rank % each;
	}
	return 0;
}

/* ---- By dimensions ----------------------------------------------------------------------------------------------- */

static int refuse_order(
	const struct dimensions *dimensions, const struct dimensions_named *named, char *why, unsigned why_size)
{
	for (uint32_t i = 0; i < dimensions->count; i++) {
		bool is_named = false;
		for (uint32_t k = 0; k < named->count; k++)
			is_named |= named->number[k] == i;
		if (!is_named)
			return why_not(why, why_size, "%s is missing: an order names all of ranks.dimensions",
				dimensions->of[i].name);
	}
	return 0;
}

int placement_by_order(uint32_t *gpu_of, uint32_t ranks, const struct dimensions *dimensions, const char *order,
	char *why, unsigned why_size)
{
	struct dimensions_named named;
	if (dimensions->count == 0)
		return why_not(why, why_size,
			"'%.20s' is neither packed, spread, nor a list of GPUs; an order of dimensions needs their "
			"sizes: "
			"write ranks.dimensions, such as tp=8, dp=4",
			order);
	int error = dimensions_name(dimensions, order, &named, why, why_size);
	if (!error)
		error = refuse_order(dimensions, &named, why, why_size);
	for (uint32_t rank = 0; !error && rank < ranks; rank++)
		gpu_of[rank] =
			rank < dimensions_ranks(dimensions) ? dimensions_renumber(dimensions, &named, rank) : rank;
	return error;
}

/* ---- By a list --------------------------------------------------------------------------------------------------- */

/* For one list. */
struct listing {
	uint32_t *gpu_of, ranks, count;
	bool *is_taken; /* by GPU */
	char *why;
	unsigned why_size;
};

static int take(struct listing *listing, uint64_t gpu)
{
	if (gpu >= listing->ranks)
		return why_not(listing->why, listing->why_size, "there is no GPU %llu: there are %u, counted from 0",
			(unsigned long long)gpu, listing->ranks);
	if (listing->is_taken[gpu])
		return why_not(
			listing->why, listing->why_size, "GPU %u is there twice: write each once", (uint32_t)gpu);
	listing->is_taken[gpu] = true;
	listing->gpu_of[listing->count++] = (uint32_t)gpu;
	return 0;
}

/* A number, or two with a dash between. */
static int take_range(struct listing *listing, const char **at)
{
	uint64_t first, last;
	int error = 0;
	if (!digits_take(at, UINT32_MAX, &first))
		return why_not(listing->why, listing->why_size,
			"'%.20s' is no GPU: write numbers and ranges, such as [8-15, 0, 2]", *at);
	const char *behind = *at + 1;
	last = first;
	if (**at == '-' && digits_take(&behind, UINT32_MAX, &last))
		*at = behind;
	if (last < first)
		return why_not(listing->why, listing->why_size, "%llu-%llu goes back: write the lower first",
			(unsigned long long)first, (unsigned long long)last);
	for (uint64_t gpu = first; !error && gpu <= last; gpu++)
		error = take(listing, gpu);
	*at += strspn(*at, " ");
	return error;
}

static int take_all(struct listing *listing, const char *at)
{
	for (at += strspn(at, " ");;) {
		const int error = take_range(listing, &at);
		if (error || !*at)
			return error;
		if (*at != ',')
			return why_not(listing->why, listing->why_size,
				"'%.20s' stands behind a GPU: write numbers and ranges, such as [8-15, 0, 2]", at);
		at += 1 + strspn(at + 1, " ");
	}
}

int placement_by_list(uint32_t *gpu_of, uint32_t ranks, const char *list, char *why, unsigned why_size)
{
	struct listing listing = { gpu_of, ranks, 0, calloc((size_t)ranks + 1, sizeof(bool)), why, why_size };
	int error = listing.is_taken ? take_all(&listing, list) : -ENOMEM;
	for (uint32_t gpu = 0; !error && gpu < ranks; gpu++)
		if (!listing.is_taken[gpu])
			gpu_of[listing.count++] = gpu;
	free(listing.is_taken);
	return error;
}
