/* See account.h. */
#include "steps/account.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "net/collectives.h"

/* Of the rank that is accounted for: the operation before each on its stream. */
struct accounting {
	const struct step_rank *rank;
	uint32_t *before;
	double count; /* of ranks for which it stands */
	struct step_times *times;
};

/* The operation that ended last of those that this one waited for; STEP_NONE: there is none. */
static uint32_t let_begin(const struct accounting *accounting, uint32_t number)
{
	const struct step_operation *operation = &accounting->rank->program->operations[number];
	const uint32_t needs[] = { accounting->before[number], operation->waits[0], operation->waits[1] };
	const vb_time *end = accounting->rank->end;
	uint32_t last = STEP_NONE;
	for (unsigned i = 0; i < 3; i++)
		if (needs[i] != STEP_NONE && (last == STEP_NONE || end[needs[i]] > end[last]))
			last = needs[i];
	return last;
}

static double part_of(vb_time from, vb_time to, vb_time least)
{
	if (from < least)
		from = least;
	return to > from ? (double)(to - from) : 0;
}

/* The time from `since` to `until`, in which the rank did not compute: by what it waited for, from the end on. */
static void account_wait(const struct accounting *accounting, uint32_t number, vb_time since, vb_time until)
{
	const struct step_rank *rank = accounting->rank;
	struct step_times *times = accounting->times;
	while (number != STEP_NONE && until > since) {
		const struct step_operation *operation = &rank->program->operations[number];
		const vb_time end = rank->end[number] < until ? rank->end[number] : until;
		vb_time begin = rank->begin[number];
		times->bubble += accounting->count * part_of(end, until, since); /* others came later */
		if (operation->kind == STEP_COMPUTE) {
			until = since;
			break;
		}
		if (operation->kind == STEP_RECEIVE)
			begin = rank->left[number];
		times->exposed[operation->dimension] += accounting->count * part_of(begin, end, since);
		until = begin < end ? begin : end;
		number = let_begin(accounting, number);
	}
	times->bubble += accounting->count * part_of(since, until, since);
}

static double sent(const struct step_plan *plan, const struct step_operation *operation)
{
	if (operation->kind == STEP_SEND)
		return (double)operation->bytes;
	if (operation->kind != STEP_COLLECTIVE)
		return 0;
	const struct collective of = { .kind = operation->collective,
		.algorithm = operation->algorithm,
		.ranks = step_members(plan, operation->dimension),
		.bytes = operation->bytes };
	return collective_law(&of).bytes;
}

static double took(const struct step_rank *rank, uint32_t number)
{
	switch ((enum step_kind)rank->program->operations[number].kind) {
	case STEP_COLLECTIVE:
		return (double)(rank->end[number] - rank->begin[number]);
	case STEP_RECEIVE:
		return (double)(rank->end[number] - rank->left[number]);
	default:
		return 0;
	}
}

int account_add(const struct step_plan *plan, const struct step_rank *rank, uint32_t count, struct step_times *times)
{
	const struct step_program *program = rank->program;
	struct accounting accounting = { .rank = rank, .count = count, .times = times };
	uint32_t last[STEP_STREAMS], ended_last = STEP_NONE;
	vb_time computed = 0;
	accounting.before = malloc((program->count + 1) * sizeof(*accounting.before));
	if (!accounting.before)
		return -ENOMEM;
	for (unsigned i = 0; i < STEP_STREAMS; i++)
		last[i] = STEP_NONE;
	for (uint32_t i = 0; i < program->count; i++) {
		const struct step_operation *operation = &program->operations[i];
		assert(rank->begin[i] >= 0 && rank->end[i] >= rank->begin[i]);
		accounting.before[i] = last[operation->stream];
		last[operation->stream] = i;
		times->bytes[operation->dimension] += count * sent(plan, operation);
		times->took[operation->dimension] += count * took(rank, i);
		if (ended_last == STEP_NONE || rank->end[i] > rank->end[ended_last])
			ended_last = i;
		if (operation->kind != STEP_COMPUTE)
			continue;
		account_wait(&accounting, let_begin(&accounting, i), computed, rank->begin[i]);
		times->compute += count * (double)(rank->end[i] - rank->begin[i]);
		computed = rank->end[i];
	}
	account_wait(&accounting, ended_last, computed, times->step);
	free(accounting.before);
	return 0;
}

void account_mean(struct step_times *times, uint32_t ranks)
{
	assert(ranks > 0);
	times->compute /= ranks;
	times->bubble /= ranks;
	for (unsigned i = 0; i < STEP_DIMENSIONS; i++) {
		times->exposed[i] /= ranks;
		times->bytes[i] /= ranks;
		times->took[i] /= ranks;
	}
}
