/* Workloads: the flows of each kind. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/random.h"
#include "net/chance.h"
#include "net/flow_text.h"
#include "net/sizes.h"
#include "net/why.h"
#include "net/workloads.h"

/* The state while flows of a kind are added. */
struct work {
	struct flow_list *list;
	const struct workload *workload;
	uint32_t endpoints; /* that take part */
	uint64_t expected;  /* flows, if a kind is only asked how many it would add */
	struct vb_random random;
	char *why;
	unsigned why_size;
};

enum { MOST_FLOWS = 1 << 26 };

#define WRONG(work, ...) why_not((work)->why, (work)->why_size, __VA_ARGS__)

static vb_time draw_start(struct work *work)
{
	uint64_t spread = (uint64_t)work->workload->spread;
	return work->workload->start + (spread ? (vb_time)chance_below(vb_random_u64(&work->random), spread) : 0);
}

/* A flow of the workload that begins at a time of its own. */
static struct flow new_flow(struct work *work, uint32_t src, uint32_t dst)
{
	return (struct flow){ .src = src,
		.dst = dst,
		.bytes = work->workload->bytes,
		.start = draw_start(work),
		.traffic_class = work->workload->traffic_class };
}

static int add(struct work *work, uint32_t src, uint32_t dst)
{
	struct flow flow = new_flow(work, src, dst);
	return flow_list_add(work->list, &flow);
}

static int add_incast(struct work *work)
{
	uint32_t senders = work->workload->senders ? work->workload->senders : work->endpoints - 1;
	uint32_t target = work->workload->target;
	if (target >= work->endpoints || senders >= work->endpoints)
		return WRONG(work, "incast of %u senders to endpoint %u, of endpoints 0 to %u", senders, target,
			work->endpoints - 1);
	int error = 0;
	for (uint32_t i = 0; i < senders && !error; i++)
		error = add(work, i < target ? i : i + 1, target);
	return error;
}

/* Shuffles until no endpoint sends to itself, which takes e attempts on average; every such permutation is equally
 * likely. */
static void derange(struct vb_random *random, uint32_t *to, uint32_t count)
{
	bool has_own;
	do {
		for (uint32_t i = 0; i < count; i++)
			to[i] = i;
		has_own = false;
		for (uint32_t i = count; i-- > 0;) {
			uint32_t other = vb_random_below(random, i + 1), was = to[i];
			to[i] = to[other];
			to[other] = was;
			has_own |= to[i] == i;
		}
	} while (has_own);
}

static int add_permutation(struct work *work)
{
	uint32_t *to = calloc(work->endpoints, sizeof(*to));
	int error = to ? 0 : -ENOMEM;
	if (!error)
		derange(&work->random, to, work->endpoints);
	for (uint32_t i = 0; i < work->endpoints && !error; i++)
		error = add(work, i, to[i]);
	free(to);
	return error;
}

/* In round r every endpoint sends to the one r further on, so none is sent to twice at once. */
static int add_all_to_all(struct work *work)
{
	uint32_t count = work->endpoints, first = work->list->count, at_once = work->workload->at_once;
	if ((uint64_t)count * (count - 1) > MOST_FLOWS)
		return WRONG(work, "all-to-all of %u endpoints has more than %d flows", count, MOST_FLOWS);
	int error = 0;
	for (uint32_t round = 1; round < count && !error; round++)
		for (uint32_t i = 0; i < count && !error; i++) {
			struct flow flow = new_flow(work, i, (i + round) % count);
			const bool waits = at_once && round > at_once;
			if (waits)
				flow.start = 0;
			error = flow_list_add(work->list, &flow);
			if (!error && waits)
				error = flow_list_add_wait(work->list, work->list->count - 1,
					first + (round - at_once - 1) * count + i, FLOW_ENDED);
		}
	return error;
}

/* ---- Poisson ----------------------------------------------------------------------------------------------------- */

/* The mean time between two flows of a sender, in ps; 0: there is none. */
static uint64_t mean_gap(const struct workload *workload, const struct sizes *sizes)
{
	enum { BILLION = 1000000000 };
	if (!(workload->load > 0 && workload->load <= 1) || workload->bits_per_second == 0)
		return 0;
	uint64_t load = (uint64_t)(workload->load * BILLION);
	unsigned __int128 bits = (unsigned __int128)sizes_mean_millibytes(sizes) * 8 / 1000 * VB_S;
	unsigned __int128 gap = load ? bits * BILLION / ((unsigned __int128)workload->bits_per_second * load) : 0;
	return gap < VB_HORIZON ? (uint64_t)gap : 0;
}

static int by_start(const void *a, const void *b)
{
	const struct flow *x = a, *y = b;
	return x->start != y->start ? (x->start > y->start) - (x->start < y->start)
				    : (x->src > y->src) - (x->src < y->src);
}

static int add_of_sender(struct work *work, uint32_t src, uint64_t gap, const struct sizes *sizes)
{
	uint64_t at = 0, end = (uint64_t)work->workload->duration;
	for (;;) {
		uint64_t factor = chance_exponential(vb_random_u64(&work->random));
		uint64_t step = (uint64_t)((unsigned __int128)gap * factor >> 32);
		at += step ? step
			   : 1; /* two flows of a sender never begin at once, so the order below is unambiguous */
		if (at >= end)
			return 0;
		uint32_t dst = vb_random_below(&work->random, work->endpoints - 1);
		struct flow flow = new_flow(work, src, dst < src ? dst : dst + 1);
		flow.bytes = sizes_draw(sizes, vb_random_u64(&work->random));
		flow.start = work->workload->start + (vb_time)at;
		int error = flow_list_add(work->list, &flow);
		if (error)
			return error;
	}
}

static int add_poisson_of(struct work *work, const struct sizes *sizes)
{
	uint32_t first = work->list->count;
	uint64_t gap = mean_gap(work->workload, sizes);
	if (gap == 0)
		return WRONG(work, "poisson needs a load above 0 and at most 1, and a rate");
	if ((uint64_t)work->workload->duration / gap > MOST_FLOWS / work->endpoints)
		return WRONG(work, "poisson of more than %d flows", MOST_FLOWS);
	int error = 0;
	for (uint32_t i = 0; i < work->endpoints && !error; i++)
		error = add_of_sender(work, i, gap, sizes);
	if (!error && work->list->count > first)
		qsort(work->list->flows + first, work->list->count - first, sizeof(*work->list->flows), by_start);
	return error;
}

/* Calls use with the sizes of a Poisson workload. */
static int with_sizes(struct work *work, int (*use)(struct work *work, const struct sizes *sizes))
{
	const struct workload *workload = work->workload;
	const struct size_point all = { .bytes = workload->bytes, .share = SIZES_ALL };
	struct sizes sizes = { .points = &all, .count = 1 };
	if (workload->sizes[0]) {
		int error = sizes_find(workload->sizes, &sizes, work->why, work->why_size);
		if (error)
			return error;
	}
	int error = use(work, &sizes);
	sizes_free(&sizes);
	return error;
}

static int add_poisson(struct work *work)
{
	return with_sizes(work, add_poisson_of);
}

static int expect_poisson_of(struct work *work, const struct sizes *sizes)
{
	uint64_t gap = mean_gap(work->workload, sizes);
	work->expected = gap ? (uint64_t)work->workload->duration / gap * work->endpoints : 0;
	return 0;
}

/* ---- How many flows ---------------------------------------------------------------------------------------------- */

static void expect_incast(struct work *work)
{
	work->expected = work->workload->senders ? work->workload->senders : work->endpoints - 1;
}

static void expect_permutation(struct work *work)
{
	work->expected = work->endpoints;
}

static void expect_all_to_all(struct work *work)
{
	work->expected = (uint64_t)work->endpoints * (work->endpoints - 1);
}

static void expect_poisson(struct work *work)
{
	with_sizes(work, expect_poisson_of);
}

/* ---- Kinds ------------------------------------------------------------------------------------------------------- */

static const struct kind {
	const char *name;
	int (*add)(struct work *work);
	void (*expect)(struct work *work);
} kinds[] = {
	{ "incast", add_incast, expect_incast },
	{ "permutation", add_permutation, expect_permutation },
	{ "all-to-all", add_all_to_all, expect_all_to_all },
	{ "poisson", add_poisson, expect_poisson },
};

static const struct kind *find_kind(const char *name)
{
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strncmp(name, kinds[i].name, sizeof(((struct workload *)0)->kind)) == 0)
			return &kinds[i];
	return NULL;
}

static int check(const struct work *work, uint32_t endpoints)
{
	const struct workload *workload = work->workload;
	if (work->endpoints > endpoints || work->endpoints < 2)
		return WRONG(work, "a workload of %u endpoints in a network of %u", work->endpoints, endpoints);
	if ((workload->bytes == 0 && !workload->sizes[0]) || workload->bytes > FLOW_MOST_BYTES)
		return WRONG(work, "flows of %llu bytes", (unsigned long long)workload->bytes);
	if (workload->start < 0 || workload->start > VB_HORIZON || workload->spread < 0 ||
		workload->spread > VB_HORIZON || workload->duration < 0 || workload->duration > VB_HORIZON)
		return WRONG(work, "a start, spread or duration below 0 or above a day");
	return 0;
}

bool workload_collective(const struct workload *workload, uint32_t ranks, struct collective *collective)
{
	if (!collective_is_kind(workload->kind))
		return false;
	*collective = (struct collective){ .kind = workload->kind,
		.algorithm = workload->algorithm,
		.ranks = workload->endpoints       ? workload->endpoints
			 : workload->first < ranks ? ranks - workload->first
						   : 0,
		.bytes = workload->bytes,
		.nccl = workload->nccl,
		.start = workload->start,
		.traffic_class = workload->traffic_class };
	return true;
}

int workload_add(struct flow_list *list, const struct workload *workload, uint32_t endpoints, uint64_t seed, char *why,
	unsigned why_size)
{
	struct work work = { .list = list,
		.workload = workload,
		.why = why,
		.why_size = why_size,
		.endpoints = workload->endpoints ? workload->endpoints : endpoints };
	uint32_t before = list->count;
	int error = check(&work, endpoints);
	if (error)
		return error;
	vb_random_seed(&work.random, seed);
	const struct kind *kind = find_kind(workload->kind);
	if (!kind)
		return why_not(why, why_size,
			"no workload is called %.*s: incast, permutation, all-to-all, poisson, allreduce, all-gather, "
			"reduce-scatter or barrier",
			(int)sizeof(workload->kind), workload->kind);
	error = kind->add(&work);
	if (error)
		flow_list_cut(list, before);
	return error;
}

uint64_t workload_flows(const struct workload *workload, uint32_t endpoints)
{
	char why[200];
	struct work work = { .workload = workload,
		.why = why,
		.why_size = sizeof(why),
		.endpoints = workload->endpoints ? workload->endpoints : endpoints };
	const struct kind *kind = find_kind(workload->kind);
	if (kind && !check(&work, endpoints))
		kind->expect(&work);
	return work.expected;
}
