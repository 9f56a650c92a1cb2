/* See rank_groups.h. */
#include "net/rank_groups.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"

/* ---- One group --------------------------------------------------------------------------------------------------- */

/* A member of the group: which host it is on, and which member it is. */
struct member {
	uint32_t host, number;
};

static int by_host(const void *a, const void *b)
{
	const struct member *one = a, *other = b;
	if (one->host != other->host)
		return one->host < other->host ? -1 : 1;
	return one->number < other->number ? -1 : one->number > other->number;
}

/* Sorted by host, each host gets the number of its first member. */
static void name_hosts_by_first(struct member *members, uint32_t count)
{
	uint32_t host = members[0].host, first = members[0].number;
	for (uint32_t i = 0; i < count; i++) {
		if (members[i].host != host) {
			host = members[i].host;
			first = members[i].number;
		}
		members[i].host = first;
	}
}

/* How many members each host has; 0: not equally many. */
static uint32_t members_of_each(const struct member *members, uint32_t count)
{
	uint32_t each = 0;
	for (uint32_t from = 0, to = 0; from < count; from = to) {
		while (to < count && members[to].host == members[from].host)
			to++;
		if (each && to - from != each)
			return 0;
		each = to - from;
	}
	return each;
}

int rank_groups_gather(
	const struct hosts *hosts, const uint32_t *ranks, uint32_t count, uint32_t *order, uint32_t *gpus)
{
	struct member *members = malloc(((size_t)count + 1) * sizeof(*members));
	if (!members)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		members[i] = (struct member){ hosts_host_of(hosts, ranks ? ranks[i] : i), i };
	qsort(members, count, sizeof(*members), by_host);
	if (count)
		name_hosts_by_first(members, count);
	qsort(members, count, sizeof(*members), by_host);
	for (uint32_t i = 0; i < count; i++)
		order[i] = members[i].number;
	*gpus = members_of_each(members, count);
	free(members);
	return 0;
}

/* ---- All of them ------------------------------------------------------------------------------------------------- */

static int gather_all(struct rank_groups *groups, const struct hosts *hosts, const uint32_t *lists)
{
	uint32_t *order = malloc(((size_t)groups->size + 1) * sizeof(*order)), gpus = 0;
	int error = order ? 0 : -ENOMEM;
	for (uint32_t group = 0; !error && group < groups->count; group++) {
		const uint32_t *ranks = &lists[(size_t)group * groups->size];
		error = rank_groups_gather(hosts, ranks, groups->size, order, &gpus);
		groups->gpus = group == 0 || gpus == groups->gpus ? gpus : 0;
		for (uint32_t place = 0; !error && place < groups->size; place++)
			groups->rank_at[(size_t)group * groups->size + place] = ranks[order[place]];
	}
	free(order);
	return error;
}

static int index_ranks(struct rank_groups *groups)
{
	const size_t count = (size_t)groups->count * groups->size;
	for (size_t i = 0; i < count; i++)
		if (groups->ranks <= groups->rank_at[i])
			groups->ranks = groups->rank_at[i] + 1;
	groups->index_of = malloc(((size_t)groups->ranks + 1) * sizeof(*groups->index_of));
	if (!groups->index_of)
		return -ENOMEM;
	for (uint32_t rank = 0; rank < groups->ranks; rank++)
		groups->index_of[rank] = RANK_GROUPS_NONE;
	for (size_t i = 0; i < count; i++) {
		assert(groups->index_of[groups->rank_at[i]] == RANK_GROUPS_NONE);
		groups->index_of[groups->rank_at[i]] = (uint32_t)i;
	}
	return 0;
}

int rank_groups_open_lists(
	struct rank_groups *groups, const struct hosts *hosts, const uint32_t *lists, uint32_t count, uint32_t size)
{
	*groups = (struct rank_groups){ .count = count, .size = size };
	groups->rank_at = malloc(((size_t)count * size + 1) * sizeof(*groups->rank_at));
	int error = groups->rank_at ? gather_all(groups, hosts, lists) : -ENOMEM;
	if (!error)
		error = index_ranks(groups);
	if (error)
		rank_groups_close(groups);
	return error;
}

int rank_groups_open(struct rank_groups *groups, const struct hosts *hosts, uint32_t first, uint32_t size)
{
	uint32_t *list = malloc(((size_t)size + 1) * sizeof(*list));
	*groups = (struct rank_groups){ 0 };
	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < size; i++)
		list[i] = first + i;
	int error = rank_groups_open_lists(groups, hosts, list, 1, size);
	free(list);
	return error;
}

void rank_groups_close(struct rank_groups *groups)
{
	free(groups->rank_at);
	free(groups->index_of);
	*groups = (struct rank_groups){ 0 };
}
