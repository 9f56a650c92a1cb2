/* See step_graph.h. */
#include "steps/step_graph.h"
#include <errno.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "steps/speeds.h"

struct building {
	const struct step_plan *plan;
	struct job_file *file;
	bool is_only;                        /* there is no other plan, and no rank before its own */
	struct step_program *programs;       /* by stage */
	uint32_t *group_of[STEP_DIMENSIONS]; /* by rank of the group's first member; GRAPH_NONE: not made yet */
	/* Of the rank that is being added. */
	uint32_t last[STEP_STREAMS]; /* the last operation of each stream */
	double slowness;
};

static uint32_t places(const struct step_plan *plan)
{
	return plan->tp * plan->cp * plan->dp;
}

/* ---- Programs ---------------------------------------------------------------------------------------------------- */

static void free_programs(const struct step_plan *plan, struct step_program *programs)
{
	for (uint32_t i = 0; programs && i < plan->pp; i++)
		program_free(&programs[i]);
	free(programs);
}

static struct step_program *make_programs(const struct step_plan *plan)
{
	struct step_program *programs = calloc(plan->pp, sizeof(*programs));
	int error = programs ? 0 : -ENOMEM;
	for (uint32_t i = 0; i < plan->pp && !error; i++)
		error = program_make(plan, i, &programs[i]);
	if (!error)
		return programs;
	free_programs(plan, programs);
	return NULL;
}

int step_graph_size(const struct step_plan *plan, uint64_t *operations, uint64_t *bytes)
{
	struct step_program *programs = make_programs(plan);
	if (!programs)
		return -ENOMEM;
	*operations = 0;
	for (uint32_t i = 0; i < plan->pp; i++)
		*operations += (uint64_t)programs[i].count * places(plan);
	*bytes = *operations * STEP_OPERATION_BYTES;
	free_programs(plan, programs);
	return 0;
}

/* ---- Groups ------------------------------------------------------------------------------------------------------ */

static int add_ranks(struct building *building, enum step_dimension dimension, uint32_t place, uint32_t stage)
{
	const struct step_plan *plan = building->plan;
	const uint32_t count = step_members(plan, dimension);
	struct graph *graph = &building->file->graph;
	if (dimension == STEP_ALL && building->is_only)
		return graph_add_group(graph, NULL, graph->ranks);
	uint32_t *ranks = malloc(count * sizeof(*ranks));
	if (!ranks)
		return -ENOMEM;
	step_group_ranks(plan, dimension, place, stage, ranks);
	int error = graph_add_group(graph, ranks, count);
	free(ranks);
	return error;
}

/* The group is made where the first of its ranks comes. */
static int find_group(
	struct building *building, enum step_dimension dimension, uint32_t place, uint32_t stage, uint32_t *group)
{
	const uint32_t ranks = building->file->graph.ranks;
	uint32_t **of = &building->group_of[dimension];
	if (!*of) {
		*of = malloc(ranks * sizeof(**of));
		if (!*of)
			return -ENOMEM;
		for (uint32_t i = 0; i < ranks; i++)
			(*of)[i] = GRAPH_NONE;
	}
	uint32_t *its = &(*of)[step_group_first(building->plan, dimension, place, stage)];
	if (*its == GRAPH_NONE) {
		if (add_ranks(building, dimension, place, stage))
			return -ENOMEM;
		*its = building->file->graph.group_count - 1;
	}
	*group = *its;
	return 0;
}

/* ---- Operations -------------------------------------------------------------------------------------------------- */

static int fill(struct building *building, const struct step_operation *from, uint32_t place, uint32_t stage,
	struct graph_operation *to)
{
	switch (from->kind) {
	case STEP_COMPUTE:
		to->kind = GRAPH_COMPUTE;
		to->time = speeds_slowed(from->time, building->slowness);
		return 0;
	case STEP_COLLECTIVE: {
		to->kind = GRAPH_COLLECTIVE;
		to->bytes = from->bytes;
		int error = graph_find_collective(
			&building->file->graph, from->collective, from->algorithm, &to->collective);
		return error ? error
			     : find_group(building, (enum step_dimension)from->dimension, place, stage, &to->group);
	}
	default:
		to->kind = from->kind == STEP_SEND ? GRAPH_SEND : GRAPH_RECEIVE;
		to->bytes = from->bytes;
		to->peer = plan_rank(building->plan, place, from->peer);
		to->tag = from->tag;
		return 0;
	}
}

static int add_waits(struct building *building, const struct step_operation *operation, uint32_t first, uint32_t number)
{
	const uint32_t needs[] = { building->last[operation->stream],
		operation->waits[0] == STEP_NONE ? GRAPH_NONE : first + operation->waits[0],
		operation->waits[1] == STEP_NONE ? GRAPH_NONE : first + operation->waits[1] };
	int error = 0;
	for (unsigned i = 0; i < 3 && !error; i++) {
		bool is_new = needs[i] != GRAPH_NONE;
		for (unsigned k = 0; k < i; k++)
			is_new &= needs[k] != needs[i];
		if (is_new)
			error = graph_add_wait(&building->file->graph, number, needs[i], GRAPH_ENDED);
	}
	return error;
}

static int add_rank(struct building *building, uint32_t rank)
{
	uint32_t stage;
	const uint32_t place = plan_place(building->plan, rank, &stage);
	const struct step_program *program = &building->programs[stage];
	const uint32_t first = building->file->graph.count;
	int error = 0;
	building->slowness = speeds_of_rank(building->plan, rank);
	for (unsigned i = 0; i < STEP_STREAMS; i++)
		building->last[i] = GRAPH_NONE;
	for (uint32_t i = 0; i < program->count && !error; i++) {
		const struct step_operation *from = &program->operations[i];
		struct graph_operation to = { .rank = rank, .stream = from->stream };
		error = fill(building, from, place, stage, &to);
		if (!error)
			error = job_file_add(building->file, &to, i);
		if (!error)
			error = add_waits(building, from, first, first + i);
		building->last[from->stream] = first + i;
	}
	return error;
}

static int add_plan(struct building *building, const struct step_plan *plan)
{
	building->plan = plan;
	building->programs = make_programs(plan);
	int error = building->programs ? 0 : -ENOMEM;
	for (uint32_t i = 0; i < plan_ranks(plan) && !error; i++)
		error = add_rank(building, plan->first + i);
	free_programs(plan, building->programs);
	return error;
}

/* The plan whose ranks follow this one; NULL: there is none. */
static const struct step_plan *next_of(const struct step_plan *const *plans, uint32_t count, uint32_t rank)
{
	const struct step_plan *next = NULL;
	for (uint32_t i = 0; i < count; i++)
		if (plans[i]->first >= rank && (!next || plans[i]->first < next->first))
			next = plans[i];
	return next;
}

int step_graph_make(
	const struct step_plan *const *plans, uint32_t count, struct job_file *file, char *why, unsigned why_size)
{
	struct building building = { .file = file, .is_only = count == 1 && plans[0]->first == 0 };
	const struct step_plan *plan;
	int error = 0;
	assert(file->graph.count == 0);
	file->format = "step";
	file->where_is = "operation";
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t ranks = plans[i]->first + plan_ranks(plans[i]);
		file->graph.ranks = ranks > file->graph.ranks ? ranks : file->graph.ranks;
	}
	for (uint32_t rank = 0; !error && (plan = next_of(plans, count, rank)); rank = plan->first + plan_ranks(plan))
		error = add_plan(&building, plan);
	if (!error)
		error = graph_finish(&file->graph, NULL, why, why_size);
	for (unsigned i = 0; i < STEP_DIMENSIONS; i++)
		free(building.group_of[i]);
	return error;
}

/* ---- What it went to --------------------------------------------------------------------------------------------- */

/* The plan's operations. */
struct part {
	uint32_t first, end;
};

static struct part part_of(const struct step_plan *plan, const struct graph *graph)
{
	return (struct part){ graph->first[plan->first], graph->first[plan->first + plan_ranks(plan)] };
}

/* By tag and receiving place: when the message was sent. Sends of one tag are of one stage. */
static vb_time *sending_times(const struct step_plan *plan, const struct graph_job *job)
{
	const struct graph *graph = job->graph;
	const struct part part = part_of(plan, graph);
	vb_time *left = malloc((size_t)program_tags(plan) * places(plan) * sizeof(*left));
	uint32_t stage;
	for (uint32_t i = part.first; left && i < part.end; i++) {
		const struct graph_operation *operation = &graph->operations[i];
		if (operation->kind == GRAPH_SEND)
			left[(size_t)operation->tag * places(plan) + plan_place(plan, operation->rank, &stage)] =
				job->records[i].begin;
	}
	return left;
}

/* A collective of all begins when the last has come to it: until then others wait for that one. It is once in a step.
 */
static vb_time all_have_come(
	const struct step_plan *plan, const struct step_program *programs, const struct graph_job *job)
{
	vb_time last = 0;
	uint32_t stage;
	for (uint32_t rank = plan->first; rank < plan->first + plan_ranks(plan); rank++) {
		plan_place(plan, rank, &stage);
		for (uint32_t i = 0; i < programs[stage].count; i++) {
			const struct step_operation *operation = &programs[stage].operations[i];
			const vb_time begin = job->records[job->graph->first[rank] + i].begin;
			if (operation->kind == STEP_COLLECTIVE && operation->dimension == STEP_ALL && begin > last)
				last = begin;
		}
	}
	return last;
}

/* Of the run: when messages were sent, and when all have come to what is of all. */
struct meetings {
	const vb_time *sent;
	vb_time all;
};

static int account_rank(const struct step_plan *plan, const struct graph_job *job, const struct step_program *program,
	const struct meetings *meetings, uint32_t rank, struct step_times *times)
{
	uint32_t stage;
	const uint32_t count = program->count, first = job->graph->first[rank], place = plan_place(plan, rank, &stage);
	vb_time *of = malloc(3 * ((size_t)count + 1) * sizeof(*of));
	if (!of)
		return -ENOMEM;
	vb_time *end = of + count, *left = end + count;
	for (uint32_t i = 0; i < count; i++) {
		const struct step_operation *operation = &program->operations[i];
		of[i] = job->records[first + i].begin;
		end[i] = job->records[first + i].end;
		left[i] = operation->kind == STEP_RECEIVE
				  ? meetings->sent[(size_t)operation->tag * places(plan) + place]
				  : 0;
		if (operation->kind == STEP_COLLECTIVE && operation->dimension == STEP_ALL)
			of[i] = meetings->all < end[i] ? meetings->all : end[i];
	}
	const struct step_rank accounted = { program, of, end, left };
	int error = account_add(plan, &accounted, 1, times);
	free(of);
	return error;
}

int step_graph_account(const struct step_plan *plan, const struct graph_job *job, struct step_times *times)
{
	struct step_program *programs = make_programs(plan);
	vb_time *sent = sending_times(plan, job);
	int error = programs && sent ? 0 : -ENOMEM;
	const struct meetings meetings = { sent, error ? 0 : all_have_come(plan, programs, job) };
	const struct part part = part_of(plan, job->graph);
	*times = (struct step_times){ 0 };
	for (uint32_t i = part.first; i < part.end; i++)
		if (job->records[i].end > times->step)
			times->step = job->records[i].end;
	for (uint32_t i = 0; i < plan_ranks(plan) && !error; i++) {
		uint32_t stage;
		plan_place(plan, plan->first + i, &stage);
		error = account_rank(plan, job, &programs[stage], &meetings, plan->first + i, times);
	}
	account_mean(times, plan_ranks(plan));
	free(sent);
	free_programs(plan, programs);
	return error;
}
