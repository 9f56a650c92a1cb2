/* See step_place.h. */
#include "sim/step_place.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "net/text.h"
#include "net/why.h"

/* Ranks, as a workload wants them. */
struct wanted {
	bool is_step, has_first, has_last;
	uint64_t first, end; /* end: behind its last rank */
	uint64_t least;      /* ranks of its plan, with one replica where their number is left out */
	bool takes_all;      /* it has as many replicas as there is room for */
};

struct placing {
	const struct simulation *simulation;
	struct wanted of[SCENARIO_WORKLOADS];
	uint64_t ranks;
};

/* More than a network has ranks is as bad as any number. */
static uint64_t product(uint64_t a, uint64_t b)
{
	return a * b < UINT32_MAX ? a * b : UINT32_MAX;
}

static bool read_number(struct span text, uint64_t *number)
{
	return text.length > 0 && span_number(text, UINT32_MAX - 1, number);
}

/* "FIRST" or "FIRST-LAST". */
static bool read_ranks(const char *text, struct wanted *wanted)
{
	const char *dash = strchr(text, '-');
	uint64_t last = 0;

	wanted->has_first = true;
	wanted->has_last = dash != NULL;
	const struct span first = { text, dash ? (size_t)(dash - text) : strlen(text) };
	if (!read_number(first, &wanted->first))
		return false;
	if (dash && (!read_number((struct span){ dash + 1, strlen(dash + 1) }, &last) || last < wanted->first))
		return false;
	wanted->end = last + 1;
	return true;
}

static int read_wanted(struct placing *placing, uint32_t workload, char *why, size_t size)
{
	const struct scenario_step *given = &placing->simulation->scenario->workloads[workload].step;
	struct wanted *wanted = &placing->of[workload];

	wanted->is_step = scenario_has_step(placing->simulation->scenario, workload);
	wanted->least = product(product(given->plan.tp, given->plan.cp), given->plan.pp);
	wanted->takes_all = given->plan.dp == 0;
	if (!wanted->takes_all)
		wanted->least = product(wanted->least, given->plan.dp);
	if (!*given->ranks || !wanted->is_step)
		return 0;
	if (!read_ranks(given->ranks, wanted))
		return why_not(why, (unsigned)size, "ranks: %s: write FIRST or FIRST-LAST", given->ranks);
	if (wanted->first >= placing->ranks || wanted->end > placing->ranks)
		return why_not(why, (unsigned)size, "ranks: %s: the network has ranks 0 to %" PRIu64, given->ranks,
			placing->ranks - 1);
	if (wanted->has_last && !wanted->takes_all && wanted->end - wanted->first != wanted->least)
		return why_not(why, (unsigned)size,
			"ranks: they are %" PRIu64 ", and tp x cp x pp x dp is %" PRIu64 ": write %" PRIu64 "-%" PRIu64,
			wanted->end - wanted->first, wanted->least, wanted->first, wanted->first + wanted->least - 1);
	return 0;
}

/* ---- Places ------------------------------------------------------------------------------------------------------ */

/* Of the ranges that begin behind this rank the first. */
static uint64_t next_first(const struct placing *placing, uint64_t rank)
{
	uint64_t next = placing->ranks;

	for (uint32_t i = 0; i < SCENARIO_WORKLOADS; i++)
		if (placing->of[i].has_first && placing->of[i].first > rank && placing->of[i].first < next)
			next = placing->of[i].first;
	return next;
}

static void find_end(const struct placing *placing, struct wanted *wanted)
{
	if (wanted->has_last)
		return;
	wanted->end = wanted->takes_all ? next_first(placing, wanted->first) : wanted->first + wanted->least;
}

/* Some other that has one of these ranks; NULL: all are free. */
static const struct wanted *in_the_way(const struct placing *placing, uint64_t first, uint64_t end)
{
	for (uint32_t i = 0; i < SCENARIO_WORKLOADS; i++) {
		const struct wanted *other = &placing->of[i];
		if (other->has_first && first < other->end && other->first < end)
			return other;
	}
	return NULL;
}

static void find_free(const struct placing *placing, struct wanted *wanted)
{
	const struct wanted *other;
	uint64_t first = 0;

	if (placing->simulation->scenario->mode != MODE_FORMULA)
		while ((other = in_the_way(placing, first, first + (wanted->least ? wanted->least : 1))))
			first = other->end;
	wanted->first = first;
	wanted->has_first = true;
}

/* Those that say where they are, then the others in their order. */
static int place_all(struct placing *placing, uint32_t workload, char *why, size_t size)
{
	const uint32_t count = placing->simulation->scenario->workload_count;

	for (uint32_t i = 0; i < count; i++) {
		int rc = read_wanted(placing, i, why, size);
		if (rc && i == workload)
			return rc;
		if (rc)
			placing->of[i].has_first = false; /* it is refused in its turn */
	}
	for (uint32_t i = 0; i < count; i++)
		if (placing->of[i].has_first)
			find_end(placing, &placing->of[i]);
	for (uint32_t i = 0; i < count; i++)
		if (placing->of[i].is_step && !placing->of[i].has_first) {
			find_free(placing, &placing->of[i]);
			if (placing->simulation->scenario->mode == MODE_FORMULA)
				placing->of[i].end = placing->ranks;
			else
				find_end(placing, &placing->of[i]);
		}
	return 0;
}

static int check_overlap(const struct placing *placing, uint32_t workload, char *why, size_t size)
{
	const struct wanted *its = &placing->of[workload];

	for (uint32_t i = 0; i < workload && placing->simulation->scenario->mode != MODE_FORMULA; i++) {
		const struct wanted *other = &placing->of[i];
		if (!other->is_step || its->first >= other->end || other->first >= its->end)
			continue;
		return why_not(why, (unsigned)size,
			"ranks: it has %" PRIu64 " to %" PRIu64 ", and workload.%" PRIu32 " has %" PRIu64 " to %" PRIu64
			": leave ranks out, or begin at another",
			its->first, its->end - 1, i, other->first, other->end - 1);
	}
	return 0;
}

int step_place_find(
	const struct simulation *simulation, uint32_t workload, struct step_place *place, char *why, size_t size)
{
	struct placing placing = { .simulation = simulation, .ranks = simulation_ranks(simulation) };
	const struct wanted *its = &placing.of[workload];
	int rc = place_all(&placing, workload, why, size);

	if (!rc)
		rc = check_overlap(&placing, workload, why, size);
	if (rc)
		return rc;
	if (its->first >= placing.ranks)
		return why_not(why, (unsigned)size,
			"ranks: no rank of the network's %" PRIu64
			" is free for it: give the steps before it a dp, or all of them ranks",
			placing.ranks);
	const uint64_t end = its->has_last || its->takes_all ? its->end : placing.ranks;
	*place = (struct step_place){ (uint32_t)its->first,
		(uint32_t)((end < placing.ranks ? end : placing.ranks) - its->first) };
	return 0;
}
