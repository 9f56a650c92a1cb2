/* See step.h. */
#include "sim/step.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net/why.h"
#include "sim/memory_limit.h"
#include "sim/step_gpus.h"
#include "sim/step_loads.h"
#include "sim/step_network.h"
#include "sim/step_place.h"
#include "sim/step_times.h"
#include "sim/step_workloads.h"
#include "steps/plan_check.h"
#include "steps/speeds.h"

#define GB         1e9
#define NO_LIMIT   1e21       /* bytes a second */
#define GRAPH_MOST (1u << 28) /* operations that a graph can have */

/* ---- The plan ---------------------------------------------------------------------------------------------------- */

static int find_model(const struct scenario_step *given, struct model *model, char *why, size_t size)
{
	const struct model *named = *given->model ? model_find(given->model) : NULL;

	if (*given->model && !named) {
		int used = snprintf(why, size, "model: there is no %s; there are", given->model);
		for (uint32_t i = 0; model_of(i) && used >= 0 && (size_t)used < size; i++)
			used += snprintf(why + used, size - (size_t)used, "%s %s", i ? "," : "", model_of(i)->name);
		return -EINVAL;
	}
	*model = named ? *named : (struct model){ .name = "own" };
	const struct {
		uint32_t *is, given;
	} numbers[] = { { &model->layers, given->layers }, { &model->hidden, given->hidden },
		{ &model->heads, given->heads }, { &model->kv_heads, given->kv_heads },
		{ &model->head_dim, given->head_dim }, { &model->ffn, given->ffn },
		{ &model->vocabulary, given->vocabulary }, { &model->experts, given->experts },
		{ &model->top_k, given->top_k } };
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (numbers[i].given)
			*numbers[i].is = numbers[i].given;
	const bool is_reshaped = given->heads || given->hidden;
	if (!given->kv_heads && (!model->kv_heads || (is_reshaped && named && named->kv_heads == named->heads)))
		model->kv_heads = model->heads;
	if (!given->head_dim && model->heads && (!model->head_dim || is_reshaped))
		model->head_dim = model->hidden / model->heads;
	if (model->experts && !model->top_k)
		return why_not(
			why, (unsigned)size, "top-k: how many of its experts does a token meet? Write 1 or more");
	if (model->top_k > model->experts)
		return why_not(why, (unsigned)size, "top-k: it is %u, and there are %u experts: write %s", model->top_k,
			model->experts, model->experts ? "fewer" : "experts, too");
	return 0;
}

/* What was left out, from the model and the network. */
static void complete(struct step_plan *plan, uint32_t ranks)
{
	const uint64_t each = (uint64_t)plan->tp * plan->cp * plan->pp;

	if (!plan->dp && each && each <= ranks)
		plan->dp = (uint32_t)(ranks / each);
	if (!plan->batch) {
		const uint64_t batch = (uint64_t)8 * plan->micro_batch * plan->dp;
		plan->batch = batch < UINT32_MAX ? (uint32_t)batch : UINT32_MAX;
	}
	if (!plan->sequence)
		plan->sequence = plan->model.sequence;
	if (plan->tp == 1)
		plan->is_sequence_parallel = false;
	if (plan->pp == 1 || plan->schedule != SCHEDULE_INTERLEAVED)
		plan->chunks = 1;
}

/* The key of the largest. */
static const char *largest_of(const struct step_plan *plan)
{
	const struct {
		const char *key;
		uint32_t value;
	} parts[] = { { "tp", plan->tp }, { "cp", plan->cp }, { "pp", plan->pp }, { "dp", plan->dp } };
	unsigned largest = 0;

	for (unsigned i = 1; i < sizeof(parts) / sizeof(*parts); i++)
		largest = parts[i].value > parts[largest].value ? i : largest;
	return parts[largest].key;
}

/* dp that was left out may be 0 still. */
static int check_cut(const struct step_plan *plan, const char *whose, uint32_t ranks, char *why, size_t size)
{
	if (!plan->dp)
		return why_not(why, (unsigned)size,
			"%s: tp x cp x pp is %u x %u x %u, and %s has %" PRIu32 " ranks: lower one", largest_of(plan),
			plan->tp, plan->cp, plan->pp, whose, ranks);
	int rc = plan_check(plan, why, (unsigned)size);
	if (rc || plan_ranks(plan) <= ranks)
		return rc;
	return why_not(why, (unsigned)size,
		"%s: tp x cp x pp x dp is %u x %u x %u x %u, and %s has %" PRIu32 " ranks: lower one, or leave dp out",
		largest_of(plan), plan->tp, plan->cp, plan->pp, plan->dp, whose, ranks);
}

/* ---- The step ---------------------------------------------------------------------------------------------------- */

/* Completes the plan, and refuses one of which no step can be made; why begins with the workload's key. */
static int make_plan(const struct simulation *simulation, struct step *step, char *why, size_t size)
{
	const struct scenario_step *given = &simulation->scenario->workloads[step->workload].step;

	struct step_place place;

	step->plan = given->plan;
	int rc = find_model(given, &step->plan.model, why, size);
	if (!rc)
		rc = step_gpus_find(simulation, given, step, why, size);
	if (rc)
		return rc;
	rc = step_place_find(simulation, step->workload, &place, why, size);
	if (rc)
		return rc;
	step->plan.first = place.first;
	complete(&step->plan, place.room);
	const bool is_all = place.room == simulation_ranks(simulation);
	rc = check_cut(&step->plan, is_all ? "the network" : "its part of the network", place.room, why, size);
	if (!rc)
		rc = step_gpus_spread(given, step, why, size);
	return rc ? rc : step_times_use(simulation, step->workload, &step->plan, why, size);
}

/* The scenario's path of the key that why begins with. */
static int about_key(const struct step *step, int rc, char *why, size_t size)
{
	char said[320];

	if (rc != -EINVAL)
		return rc;
	snprintf(said, sizeof(said), "%s", why);
	return why_not(why, (unsigned)size, "workload.%" PRIu32 ".%s", step->workload, said);
}

int step_open(const struct simulation *simulation, uint32_t workload, struct step *step, char *why, size_t size)
{
	const char *table = simulation->scenario->workloads[workload].step.compute_times;

	*step = (struct step){ .workload = workload, .compute_times = *table ? table : NULL };
	int rc = make_plan(simulation, step, why, size);
	if (rc)
		return about_key(step, rc, why, size);
	step->memory = plan_memory(&step->plan);
	return 0;
}

void step_close(struct step *step)
{
	free(step->network.boundaries);
	step->network.boundaries = NULL;
}

int step_check_memory(const struct simulation *simulation, const struct step *step, char *why, size_t size)
{
	const struct plan_memory *memory = &step->memory;
	const struct gpu *gpu = step_gpus_smallest(step);
	const char *helps = "tp or pp";

	if (memory->sum <= gpu->memory_gb * GB ||
		simulation->scenario->workloads[step->workload].step.memory == MEMORY_UNCHECKED)
		return 0;
	if (memory->state < memory->activations)
		helps = step->plan.recompute == RECOMPUTE_FULL ? "tp, cp or pp" : "recompute or tp";
	else if (step->plan.zero < 3 && step->plan.dp > 1)
		helps = "zero, tp or pp";
	return why_not(why, (unsigned)size,
		"workload.%" PRIu32 ".memory: it needs %.1f GB of %s's %u (state %.1f, activations %.1f): raise %s, "
		"or say memory: unchecked",
		step->workload, memory->sum / GB, step->plan.kinds.count ? gpu->name : "a GPU", gpu->memory_gb,
		memory->state / GB, (memory->activations + memory->ends) / GB, helps);
}

static void forget_time(struct step_way *way)
{
	if (way->leaves_hosts)
		way->link = (struct step_link){ .alpha = 0, .bytes_a_second = NO_LIMIT };
}

/* The step without the time of what leaves hosts, by formula: no network makes it faster than that. */
static int find_bound(struct step *step)
{
	struct step_network network = step->network;
	struct step_times times;

	network.loads = NULL;
	network.boundaries = malloc(step->plan.pp * sizeof(*network.boundaries));
	if (!network.boundaries)
		return -ENOMEM;
	memcpy(network.boundaries, step->network.boundaries, step->plan.pp * sizeof(*network.boundaries));
	for (unsigned i = 0; i < STEP_DIMENSIONS; i++)
		forget_time(&network.ways[i]);
	for (uint32_t i = 0; i < step->plan.pp; i++)
		forget_time(&network.boundaries[i]);
	int rc = timing_run(&step->plan, &network, &times);
	step->bound = rc || times.step >= step->times.step ? 0 : 1 - (double)times.step / (double)step->times.step;
	free(network.boundaries);
	return rc;
}

/* All at once: without loads each is alone anyway. */
static int run_at_once(struct step *steps, uint32_t count)
{
	struct timing_step *runs = calloc(count, sizeof(*runs));
	int rc = runs ? 0 : -ENOMEM;

	for (uint32_t i = 0; !rc && i < count; i++)
		runs[i] = (struct timing_step){ .plan = &steps[i].plan, .network = &steps[i].network };
	if (!rc)
		rc = timing_run_all(runs, count);
	for (uint32_t i = 0; !rc && i < count; i++)
		steps[i].times = runs[i].times;
	free(runs);
	return rc;
}

static int run_alone(struct step *step)
{
	struct step_times times;
	int rc = timing_run(&step->plan, &step->network, &times);

	step->alone = times.step;
	return rc;
}

static int find_loads(const struct simulation *simulation, struct step *steps, uint32_t count, struct step_loads *loads)
{
	const struct step_plan *plans[SCENARIO_WORKLOADS] = { 0 };

	if (simulation->scenario->mode != MODE_FLOWS)
		return 0;
	for (uint32_t i = 0; i < count; i++)
		plans[i] = &steps[i].plan;
	int rc = step_loads_make(simulation, plans, count, loads);
	for (uint32_t i = 0; !rc && i < count; i++) {
		steps[i].network.loads = loads;
		steps[i].network.lanes = &loads->lanes[i];
	}
	return rc;
}

static int check_times(const struct step *steps, uint32_t count, char *why, size_t size)
{
	for (uint32_t i = 0; i < count; i++)
		if (steps[i].times.step >= STEP_MOST_TIME)
			return why_not(why, (unsigned)size,
				"workload.%" PRIu32 ": the step takes longer than 46 days: lower the delays of the "
				"network and of hosts.scale-up-delay, or the batch",
				steps[i].workload);
	return 0;
}

int steps_run(const struct simulation *simulation, struct step *steps, uint32_t count, struct step_loads *loads,
	bool tries_alone, char *why, size_t size)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < count; i++)
		rc = step_network_find(simulation, &steps[i].plan, &steps[i].network);
	if (!rc)
		rc = find_loads(simulation, steps, count, loads);
	if (!rc)
		rc = run_at_once(steps, count);
	if (rc == -EHOSTUNREACH)
		return why_not(why, (unsigned)size,
			"network.faults: the step has no end: a link is down for longer than messages are sent again "
			"(transport.retries), and there is no other way");
	if (!rc)
		rc = check_times(steps, count, why, size);
	for (uint32_t i = 0; !rc && i < count; i++) {
		steps[i].is_upper_bound = speeds_are_spread(&steps[i].plan);
		rc = find_bound(&steps[i]);
		if (!rc && count > 1 && tries_alone && loads->class_count)
			rc = run_alone(&steps[i]);
	}
	return rc;
}

/* From the CPU time and the memory of steps by formula, which run twice: with the network, and for the bound. */
#define FORMULA_NS    130 /* of an operation */
#define FORMULA_BYTES 56  /* likewise */
#define PROCESS_BYTES 2.8e6
#define LINK_BYTES    50

int step_cost_by_formula(const struct simulation *simulation, const struct step *step, struct step_cost *cost)
{
	uint64_t operations, bytes;
	int rc = step_graph_size(&step->plan, &operations, &bytes);

	if (rc)
		return rc;
	const double of_a_stage = (double)step->plan.tp * step->plan.cp * step->plan.dp;
	cost->operations = (double)operations / of_a_stage; /* one rank stands for those of its stage */
	cost->cpu_s = cost->operations * FORMULA_NS * 1e-9;
	cost->bytes = cost->operations * FORMULA_BYTES + PROCESS_BYTES + LINK_BYTES * simulation->network.link_count;
	return 0;
}

/* ---- What it is bound by ----------------------------------------------------------------------------------------- */

static bool leaves_hosts(const struct step *step, unsigned dimension)
{
	bool leaves = step->network.ways[dimension].leaves_hosts;

	for (uint32_t i = 0; dimension == STEP_PP && i < step->plan.pp; i++)
		leaves |= step->network.boundaries[i].leaves_hosts;
	return leaves;
}

static double exposed(const struct step *step, bool between_hosts)
{
	double sum = 0;

	for (unsigned i = 0; i < STEP_DIMENSIONS; i++)
		if (leaves_hosts(step, i) == between_hosts)
			sum += step->times.exposed[i];
	return sum / (double)step->times.step;
}

double step_exposed_between_hosts(const struct step *step)
{
	return exposed(step, true);
}

const char *step_bound_by(const struct step *step)
{
	const double all = (double)step->times.step;
	const struct {
		const char *name;
		double part;
	} parts[] = { { "computing", step->times.compute / all }, { "communication in hosts", exposed(step, false) },
		{ "communication between hosts", exposed(step, true) }, { "the bubble", step->times.bubble / all } };
	unsigned largest = 0;

	for (unsigned i = 1; i < sizeof(parts) / sizeof(*parts); i++)
		largest = parts[i].part > parts[largest].part ? i : largest;
	return parts[largest].name;
}

/* ---- By packets -------------------------------------------------------------------------------------------------- */

static int check_operations(const struct step *steps, uint32_t count, char *why, size_t size)
{
	const uint64_t limit = memory_limit("");
	uint64_t all = 0, operations, bytes;

	for (uint32_t i = 0; i < count; i++) {
		int rc = step_graph_size(&steps[i].plan, &operations, &bytes);
		if (rc)
			return rc;
		all += operations;
	}
	if (all < GRAPH_MOST && all * STEP_OPERATION_BYTES <= limit)
		return 0;
	return why_not(why, (unsigned)size,
		"run.mode: by packets it is %.3g M operations, which need %.1f GB of memory: run.mode: formula, or "
		"fewer "
		"ranks, layers or micro-batches",
		(double)all / 1e6, (double)all * STEP_OPERATION_BYTES / GB);
}

static int open_all(struct simulation *simulation, struct step *steps, char *why, size_t size)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < simulation->step_count; i++) {
		rc = step_open(simulation, step_workload(simulation, i), &steps[i], why, size);
		if (!rc)
			rc = step_check_memory(simulation, &steps[i], why, size);
	}
	return rc;
}

int steps_make_graph(struct simulation *simulation, char *why, size_t size)
{
	const struct step_plan *plans[SCENARIO_WORKLOADS] = { 0 };
	struct step *steps = calloc(simulation->step_count, sizeof(*steps));
	int rc = steps ? open_all(simulation, steps, why, size) : -ENOMEM;

	if (!rc)
		rc = check_operations(steps, simulation->step_count, why, size);
	for (uint32_t i = 0; !rc && i < simulation->step_count; i++)
		plans[i] = &steps[i].plan;
	if (!rc)
		rc = step_graph_make(plans, simulation->step_count, &simulation->job_file, why, (unsigned)size);
	free(steps);
	return rc;
}

int step_take_times(const struct simulation *simulation, uint32_t workload, struct step *step)
{
	char why[400]; /* it was opened before the run */
	int rc = step_open(simulation, workload, step, why, sizeof(why));

	if (!rc)
		rc = step_network_find(simulation, &step->plan, &step->network);
	if (!rc)
		rc = step_graph_account(&step->plan, &simulation->graph_job, &step->times);
	step->alone = simulation->alone ? simulation->alone[workload] : 0;
	return rc ? rc : find_bound(step);
}
