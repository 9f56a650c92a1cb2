/* See step.h. */
#include "sim/step.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "net/why.h"
#include "net/unloaded.h"
#include "sim/ideal.h"
#include "sim/memory_limit.h"

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
		return why_not(why, (unsigned)size, "top-k: how many of its experts does a token meet?");
	if (model->top_k > model->experts)
		return why_not(
			why, (unsigned)size, "top-k is %u, and there are %u experts", model->top_k, model->experts);
	return 0;
}

static int find_gpu(const struct simulation *simulation, const struct scenario_step *given, const struct gpu **gpu,
	char *why, size_t size)
{
	*gpu = *given->gpu ? gpu_find(given->gpu) : simulation->scenario->gpu;
	if (*gpu)
		return 0;
	return *given->gpu
		       ? why_not(why, (unsigned)size, "gpu: there is no %s; verbena sim --gpus lists them", given->gpu)
		       : why_not(why, (unsigned)size, "gpu: which GPU computes? Name it here or as hosts.gpu");
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
}

static int check_size(const struct simulation *simulation, const struct step_plan *plan, char *why, size_t size)
{
	const uint32_t ranks = simulation_ranks(simulation);

	if (!plan->dp)
		return why_not(why, (unsigned)size,
			"tp x cp x pp is %u x %u x %u, and the network has %" PRIu32 " ranks", plan->tp, plan->cp,
			plan->pp, ranks);
	return 0;
}

/* ---- The network ------------------------------------------------------------------------------------------------- */

/* The rank of member i of the group of rank 0. */
static uint32_t member_of(const struct step_plan *plan, enum step_dimension dimension, uint32_t i)
{
	switch (dimension) {
	case STEP_PP:
		return plan_rank(plan, 0, i);
	case STEP_ENDS:
		return plan_rank(plan, 0, i ? plan->pp - 1 : 0);
	case STEP_ALL:
		return i;
	default:
		return plan_rank(plan, i * program_group(plan, dimension, 0).stride, 0);
	}
}

/* Payload of a GPU's share of its host's NICs. */
static double nic_bytes_a_second(const struct simulation *simulation)
{
	const struct network *network = &simulation->network;
	const struct scenario *scenario = simulation->scenario;
	const double overhead = scenario->data_overhead ? scenario->data_overhead : FRAMING_ROCE_OVERHEAD;
	const double bits = (double)network->links[network->endpoints[0].link].bits_per_second;
	const double share = simulation->hosts.gpus ? (double)simulation->hosts.nics / simulation->hosts.gpus : 1;

	return bits / 8 * scenario->mtu / (scenario->mtu + overhead) * share;
}

/* Members on one host use the NICs of all: a ring for each. Of an all-to-all only what leaves the host needs NICs. */
static struct formula_way way_of(const struct simulation *simulation, const struct routes *routes, struct step *step,
	enum step_dimension dimension)
{
	const struct hosts *hosts = &simulation->hosts;
	const uint32_t members = program_members(&step->plan, dimension);
	const bool is_message = dimension == STEP_PP;
	uint32_t near = 0, far = 0;

	for (uint32_t i = 0; i < members; i++) {
		const uint32_t rank = member_of(&step->plan, dimension, i);
		if (hosts_host_of(hosts, rank) == hosts_host_of(hosts, member_of(&step->plan, dimension, 0)))
			near++;
		else if (!far || !is_message) /* the last is the farthest; the next stage is the first */
			far = rank;
	}
	step->is_beyond_host[dimension] = far > 0;
	if (!far)
		return (struct formula_way){ (double)hosts->scale_up_time,
			hosts->scale_up ? (double)hosts->scale_up / 8 : nic_bytes_a_second(simulation) };
	struct formula_way way = { .bytes_a_second = nic_bytes_a_second(simulation) };
	way.alpha = (double)ideal_message(
		simulation, routes, hosts_endpoint_of(hosts, 0, 0), hosts_endpoint_of(hosts, far, 0), 1);
	if (dimension == STEP_EP && step->plan.dispatcher == DISPATCH_ALL_TO_ALL)
		way.bytes_a_second *= (members - 1.0) / (members - near);
	else if (!is_message)
		way.bytes_a_second *= near;
	return way;
}

int step_find_network(const struct simulation *simulation, struct step *step)
{
	struct routes *routes = routes_make(&simulation->network);

	if (!routes)
		return -ENOMEM;
	for (unsigned i = 0; i < STEP_DIMENSIONS; i++)
		step->network.ways[i] = way_of(simulation, routes, step, (enum step_dimension)i);
	routes_free(routes);
	return 0;
}

int step_open(const struct simulation *simulation, uint32_t workload, struct step *step, char *why, size_t size)
{
	const struct scenario_step *given = &simulation->scenario->workloads[workload].step;
	const uint32_t ranks = simulation_ranks(simulation);

	*step = (struct step){ .workload = workload, .plan = given->plan };
	int rc = find_model(given, &step->plan.model, why, size);
	if (!rc)
		rc = find_gpu(simulation, given, &step->gpu, why, size);
	if (rc)
		return rc;
	step->plan.tflops = step->gpu->tflops;
	complete(&step->plan, ranks);
	rc = check_size(simulation, &step->plan, why, size);
	if (!rc)
		rc = plan_check(&step->plan, why, (unsigned)size);
	if (!rc && plan_ranks(&step->plan) > ranks)
		rc = why_not(why, (unsigned)size, "it has %" PRIu32 " ranks, and the network %" PRIu32,
			plan_ranks(&step->plan), ranks);
	if (rc)
		return rc;
	step->memory = plan_memory(&step->plan);
	return 0;
}

int step_check_memory(const struct simulation *simulation, const struct step *step, char *why, size_t size)
{
	const struct plan_memory *memory = &step->memory;
	const char *helps = "tp or pp";

	if (memory->sum <= step->gpu->memory_gb * GB ||
		simulation->scenario->workloads[step->workload].step.memory == MEMORY_UNCHECKED)
		return 0;
	if (memory->state < memory->activations)
		helps = step->plan.recompute == RECOMPUTE_FULL ? "tp, cp or pp" : "recompute or tp";
	else if (step->plan.zero < 3 && step->plan.dp > 1)
		helps = "zero, tp or pp";
	return why_not(why, (unsigned)size,
		"memory: it needs %.1f GB of a GPU's %u (state %.1f, activations %.1f): raise %s, or say memory: "
		"unchecked",
		memory->sum / GB, step->gpu->memory_gb, memory->state / GB, (memory->activations + memory->ends) / GB,
		helps);
}

/* The step without the time of what leaves hosts, by formula: no network makes it faster than that. */
static int find_bound(struct step *step)
{
	struct formula_network network = step->network;
	struct step_times times;

	for (unsigned i = 0; i < STEP_DIMENSIONS; i++)
		if (step->is_beyond_host[i])
			network.ways[i] = (struct formula_way){ .alpha = 0, .bytes_a_second = NO_LIMIT };
	int rc = formula_run(&step->plan, &network, &times);
	step->bound = rc || times.step >= step->times.step ? 0 : 1 - (double)times.step / (double)step->times.step;
	return rc;
}

int step_run(struct step *step)
{
	int rc = formula_run(&step->plan, &step->network, &step->times);
	return rc ? rc : find_bound(step);
}

/* ---- By packets -------------------------------------------------------------------------------------------------- */

static int check_operations(const struct step *step, char *why, size_t size)
{
	const uint64_t limit = memory_limit("");
	uint64_t operations, bytes;
	int rc = step_graph_size(&step->plan, &operations, &bytes);

	if (rc || (bytes <= limit && operations < GRAPH_MOST))
		return rc;
	return why_not(why, (unsigned)size,
		"by packets it is %.3g M operations, which need %.1f GB of memory: run.mode: formula, or fewer ranks, "
		"layers or micro-batches",
		(double)operations / 1e6, (double)bytes / GB);
}

int step_make_graph(struct simulation *simulation, uint32_t workload, char *why, size_t size)
{
	struct step step;
	int rc = step_open(simulation, workload, &step, why, size);

	if (!rc)
		rc = step_check_memory(simulation, &step, why, size);
	if (!rc)
		rc = check_operations(&step, why, size);
	return rc ? rc : step_graph_make(&step.plan, &simulation->job_file, why, (unsigned)size);
}

int step_take_times(const struct simulation *simulation, struct step *step)
{
	char why[400]; /* it was opened before the run */
	int rc = step_open(simulation, 0, step, why, sizeof(why));

	if (!rc)
		rc = step_find_network(simulation, step);
	if (!rc)
		rc = step_graph_account(&step->plan, &simulation->graph_job, &step->times);
	return rc ? rc : find_bound(step);
}
