/* See speeds.h. */
#include "steps/speeds.h"
#include <string.h>
#include "net/why.h"

/* ---- Speeds ------------------------------------------------------------------------------------------------------ */

static double factor_at(const struct plan_ranges *ranges, uint32_t rank)
{
	for (uint32_t i = 0; i < ranges->count; i++)
		if (rank >= ranges->list[i].first && rank <= ranges->list[i].last)
			return ranges->list[i].factor;
	return 1;
}

double speeds_of_rank(const struct step_plan *plan, uint32_t rank)
{
	const uint32_t of_step = rank - plan->first;
	return factor_at(&plan->slow, of_step) * factor_at(&plan->kinds, of_step);
}

static double slowest_of(const struct step_plan *plan, uint32_t stage, uint32_t first, uint32_t count)
{
	double slowest = 0;
	for (uint32_t i = 0; i < count; i++) {
		const double its = speeds_of_rank(plan, plan_rank(plan, first + i, stage));
		slowest = its > slowest ? its : slowest;
	}
	return slowest;
}

static bool are_alike(const struct step_plan *plan)
{
	return plan->slow.count == 0 && plan->kinds.count == 0;
}

double speeds_of_stage(const struct step_plan *plan, uint32_t stage)
{
	return are_alike(plan) ? 1 : slowest_of(plan, stage, 0, plan->tp * plan->cp * plan->dp);
}

double speeds_most(const struct step_plan *plan)
{
	const struct plan_ranges *lists[] = { &plan->slow, &plan->kinds };
	double product = 1;
	for (unsigned i = 0; i < 2; i++) {
		double most = 1;
		for (uint32_t k = 0; k < lists[i]->count; k++)
			most = lists[i]->list[k].factor > most ? lists[i]->list[k].factor : most;
		product *= most;
	}
	return product;
}

vb_time speeds_slowed(vb_time time, double slowness)
{
	return slowness == 1 ? time : (vb_time)((double)time * slowness + 0.5);
}

static bool has_the_slowest(const struct step_plan *plan, uint32_t replica)
{
	const uint32_t ranks = plan->tp * plan->cp;
	for (uint32_t stage = 0; stage < plan->pp; stage++)
		if (slowest_of(plan, stage, replica * ranks, ranks) < speeds_of_stage(plan, stage))
			return false;
	return true;
}

bool speeds_are_spread(const struct step_plan *plan)
{
	if (are_alike(plan))
		return false;
	for (uint32_t replica = 0; replica < plan->dp; replica++)
		if (has_the_slowest(plan, replica))
			return false;
	return true;
}

/* ---- Lists ------------------------------------------------------------------------------------------------------- */

/* Up to the first of this character, which goes too; all of it where there is none. */
static struct span take_until(struct span *rest, char end)
{
	const char *found = rest->length ? memchr(rest->at, end, rest->length) : NULL;
	const struct span part = { rest->at, found ? (size_t)(found - rest->at) : rest->length };
	const size_t taken = part.length + (found != NULL);
	rest->at += taken;
	rest->length -= taken;
	return part;
}

static bool read_range(struct span text, struct plan_range *range)
{
	const bool is_one = !memchr(text.at, '-', text.length);
	struct span first = take_until(&text, '-');
	uint64_t from, to;
	if (!span_number(first, UINT32_MAX, &from))
		return false;
	to = from;
	if (!is_one && (!span_number(text, UINT32_MAX, &to) || to < from))
		return false;
	*range = (struct plan_range){ (uint32_t)from, (uint32_t)to, 1 };
	return true;
}

static int add_range(struct plan_ranges *ranges, struct plan_range range, char *why, unsigned why_size)
{
	for (uint32_t i = 0; i < ranges->count; i++)
		if (range.first <= ranges->list[i].last && ranges->list[i].first <= range.last)
			return why_not(why, why_size, "rank %u is in it twice: take it out of one",
				range.first > ranges->list[i].first ? range.first : ranges->list[i].first);
	if (ranges->count == PLAN_RANGES)
		return why_not(why, why_size, "it has more than %u parts: write neighbours as FIRST-LAST", PLAN_RANGES);
	ranges->list[ranges->count++] = range;
	return 1;
}

int speeds_take(
	struct span *list, uint32_t ranks, struct plan_ranges *ranges, struct span *value, char *why, unsigned why_size)
{
	struct span part;
	struct plan_range range;
	if (!span_take(list, ',', &part))
		return 0;
	*value = part;
	const struct span named = take_until(value, '=');
	if (named.length == 0 || value->length == 0 || !read_range(named, &range))
		return why_not(
			why, why_size, "%.*s: write RANK=... or FIRST-LAST=..., separated by commas", SPAN(part));
	if (range.last >= ranks)
		return why_not(why, why_size, "%.*s: the step has ranks 0 to %u", SPAN(part), ranks - 1);
	return add_range(ranges, range, why, why_size);
}
