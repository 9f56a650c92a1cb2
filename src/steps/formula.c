/* See formula.h. */
#include "steps/formula.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "net/collectives.h"

struct stage {
	struct step_program program;
	vb_time *begin, *end;          /* by operation; -1: not yet */
	uint32_t next[STEP_STREAMS];   /* the first operation of the stream that has not begun */
	uint32_t before[STEP_STREAMS]; /* the last that has; STEP_NONE */
	uint32_t met;                  /* collectives with other stages that it has come to */
};

/* Of the n-th collective of several stages: how many have come, and when the last of them did. */
struct meeting {
	uint32_t come;
	vb_time ready;
};

struct going {
	const struct step_plan *plan;
	const struct formula_network *network;
	struct stage *stages;
	vb_time *left, *arrived; /* by tag, of messages; -1: not yet */
	struct meeting ends, all;
};

/* ---- Times ------------------------------------------------------------------------------------------------------- */

static double transfer(const struct formula_link *link, double bytes)
{
	return bytes / link->bytes_a_second * (double)VB_S;
}

/* A share goes once or twice round. Either its way is what takes longest, the sum along all links, or a link of either
 * kind, which sends share after share. */
static double ring_time(const struct formula_way *way, const struct collective_law *law)
{
	const double near = (double)(uint64_t)(law->alphas * way->near_part), far = law->alphas - near;
	const double along = near * way->near.alpha + far * way->link.alpha +
			     transfer(&way->near, law->bytes * near / law->alphas) +
			     transfer(&way->link, law->bytes * far / law->alphas);
	const double at_link = way->link.alpha + transfer(&way->link, law->bytes);
	const double at_near = near > 0 ? way->near.alpha + transfer(&way->near, law->bytes) : 0;
	const double longest = along > at_link ? along : at_link;
	return longest > at_near ? longest : at_near;
}

static double collective_time(const struct going *going, const struct step_operation *operation)
{
	const struct formula_way *way = &going->network->ways[operation->dimension];
	const struct collective of = { .kind = operation->collective,
		.algorithm = program_algorithm(operation),
		.ranks = step_members(going->plan, operation->dimension),
		.bytes = operation->bytes };
	const struct collective_law law = collective_law(&of);
	if (strcmp(collective_find(&of)->name, "ring") == 0)
		return ring_time(way, &law);
	return law.alphas * way->link.alpha + transfer(&way->link, law.bytes);
}

/* Between a stage and the other one of a message. */
static const struct formula_link *boundary(const struct going *going, const struct stage *stage, uint32_t other)
{
	const uint32_t number = (uint32_t)(stage - going->stages);
	return &going->network->boundaries[(number + 1) % going->plan->pp == other ? number : other].link;
}

/* Of a message: until its sender is free. */
static vb_time duration(const struct going *going, const struct stage *stage, const struct step_operation *operation)
{
	switch (operation->kind) {
	case STEP_COMPUTE:
		return operation->time;
	case STEP_COLLECTIVE:
		return (vb_time)(collective_time(going, operation) + 0.5);
	case STEP_SEND:
		return (vb_time)(transfer(boundary(going, stage, operation->peer), (double)operation->bytes) + 0.5);
	default:
		return 0;
	}
}

/* ---- Running ----------------------------------------------------------------------------------------------------- */

/* When it may begin by what is before it at its own stage; -1: not known yet. */
static vb_time ready_at(const struct stage *stage, uint32_t number)
{
	const struct step_operation *operation = &stage->program.operations[number];
	const uint32_t needs[] = { stage->before[operation->stream], operation->waits[0], operation->waits[1] };
	vb_time at = 0;
	for (unsigned i = 0; i < 3; i++) {
		if (needs[i] == STEP_NONE)
			continue;
		if (stage->end[needs[i]] < 0)
			return -1;
		if (stage->end[needs[i]] > at)
			at = stage->end[needs[i]];
	}
	return at;
}

static struct meeting *meeting_of(struct going *going, const struct step_operation *operation)
{
	if (operation->kind != STEP_COLLECTIVE)
		return NULL;
	return operation->dimension == STEP_ALL ? &going->all : operation->dimension == STEP_ENDS ? &going->ends : NULL;
}

/* Both are once in a step: each stage that takes part comes once. False: others have not come. */
static bool meet(const struct going *going, struct meeting *meeting, bool is_all, bool *has_come, vb_time *at)
{
	const uint32_t wanted = is_all || going->plan->pp == 1 ? going->plan->pp : 2;
	meeting->come += !*has_come;
	if (!*has_come && *at > meeting->ready)
		meeting->ready = *at;
	*has_come = true;
	*at = meeting->ready;
	assert(meeting->come <= wanted);
	return meeting->come == wanted;
}

static void start(struct going *going, struct stage *stage, uint32_t number, vb_time at)
{
	const struct step_operation *operation = &stage->program.operations[number];
	stage->begin[number] = at;
	stage->end[number] = at + duration(going, stage, operation);
	stage->before[operation->stream] = number;
	if (operation->kind == STEP_SEND) {
		going->left[operation->tag] = at;
		going->arrived[operation->tag] =
			stage->end[number] + (vb_time)(boundary(going, stage, operation->peer)->alpha + 0.5);
	}
}

/* True: it has begun. */
static bool try_to_start(struct going *going, struct stage *stage, uint32_t number)
{
	const struct step_operation *operation = &stage->program.operations[number];
	struct meeting *meeting = meeting_of(going, operation);
	vb_time at = ready_at(stage, number);
	if (at < 0)
		return false;
	if (operation->kind == STEP_RECEIVE) {
		if (going->arrived[operation->tag] < 0)
			return false;
		if (going->arrived[operation->tag] > at)
			at = going->arrived[operation->tag];
	}
	if (meeting) {
		const bool is_all = meeting == &going->all;
		bool has_come = stage->met >> is_all & 1;
		const bool have_all = meet(going, meeting, is_all, &has_come, &at);
		stage->met |= 1u << is_all;
		if (!have_all)
			return false;
	}
	start(going, stage, number, at);
	return true;
}

static void find_next(struct stage *stage, unsigned stream)
{
	while (stage->next[stream] < stage->program.count &&
		stage->program.operations[stage->next[stream]].stream != stream)
		stage->next[stream]++;
}

/* As far as it goes without the others; false: no operation has begun. */
static bool go_on(struct going *going, struct stage *stage)
{
	bool has_begun = false, goes = true;
	while (goes) {
		goes = false;
		for (unsigned stream = 0; stream < STEP_STREAMS; stream++) {
			find_next(stage, stream);
			while (stage->next[stream] < stage->program.count &&
				try_to_start(going, stage, stage->next[stream])) {
				stage->next[stream]++;
				find_next(stage, stream);
				goes = has_begun = true;
			}
		}
	}
	return has_begun;
}

/* ---- What was exposed -------------------------------------------------------------------------------------------- */

static int account_stage(const struct going *going, const struct stage *stage, struct step_times *times)
{
	vb_time *left = malloc((stage->program.count + 1) * sizeof(*left));
	if (!left)
		return -ENOMEM;
	for (uint32_t i = 0; i < stage->program.count; i++)
		if (stage->program.operations[i].kind == STEP_RECEIVE)
			left[i] = going->left[stage->program.operations[i].tag];
	const struct step_rank rank = { &stage->program, stage->begin, stage->end, left };
	int error = account_add(going->plan, &rank, times);
	free(left);
	return error;
}

/* ---- A run ------------------------------------------------------------------------------------------------------- */

static int open_stage(struct going *going, uint32_t number)
{
	struct stage *stage = &going->stages[number];
	int error = program_make(going->plan, number, &stage->program);
	const uint32_t count = stage->program.count;
	stage->begin = malloc((count + 1) * sizeof(*stage->begin));
	stage->end = malloc((count + 1) * sizeof(*stage->end));
	if (error || !stage->begin || !stage->end)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		stage->begin[i] = stage->end[i] = -1;
	for (unsigned i = 0; i < STEP_STREAMS; i++)
		stage->before[i] = STEP_NONE;
	return 0;
}

static int open_run(struct going *going)
{
	const uint32_t tags = program_tags(going->plan);
	int error = 0;
	going->stages = calloc(going->plan->pp, sizeof(*going->stages));
	going->left = malloc(tags * sizeof(*going->left));
	going->arrived = malloc(tags * sizeof(*going->arrived));
	if (!going->stages || !going->left || !going->arrived)
		return -ENOMEM;
	for (uint32_t i = 0; i < tags; i++)
		going->left[i] = going->arrived[i] = -1;
	for (uint32_t i = 0; i < going->plan->pp && !error; i++)
		error = open_stage(going, i);
	return error;
}

static void close_run(struct going *going)
{
	for (uint32_t i = 0; going->stages && i < going->plan->pp; i++) {
		program_free(&going->stages[i].program);
		free(going->stages[i].begin);
		free(going->stages[i].end);
	}
	free(going->stages);
	free(going->left);
	free(going->arrived);
}

int formula_run(const struct step_plan *plan, const struct formula_network *network, struct step_times *times)
{
	struct going going = { .plan = plan, .network = network };
	bool goes = true;
	*times = (struct step_times){ 0 };
	int error = open_run(&going);
	while (!error && goes) {
		goes = false;
		for (uint32_t i = 0; i < plan->pp; i++)
			goes |= go_on(&going, &going.stages[i]);
	}
	for (uint32_t i = 0; !error && i < plan->pp; i++)
		for (uint32_t k = 0; k < going.stages[i].program.count; k++) {
			assert(going.stages[i].end[k] >= 0); /* schedules have no cycle */
			if (going.stages[i].end[k] > times->step)
				times->step = going.stages[i].end[k];
		}
	for (uint32_t i = 0; !error && i < plan->pp; i++)
		error = account_stage(&going, &going.stages[i], times);
	account_mean(times, plan->pp);
	close_run(&going);
	return error;
}
