/* See plan.h. */
#include "steps/plan.h"
#include <stddef.h>
#include "base/invariant.h"
#include "net/why.h"

enum { MOST_RANKS = 1 << 20, MOST_OPERATIONS = 1 << 25 };

/* Of a layer and micro-batch there are no more. */
#define OPERATIONS_A_LAYER 24

/* So that no sum of bytes or times wraps. */
#define MOST_PARAMETERS 1e16
#define MOST_BYTES      1e15 /* of a micro-batch's activations */
#define MOST_TIME       1e18 /* picoseconds of computing, eleven days */
#define LEAST_TIME      1e3

/* ---- Checks ------------------------------------------------------------------------------------------------------ */

static int check_numbers(const struct step_plan *plan, char *why, unsigned why_size)
{
	const struct {
		const char *key;
		uint32_t value;
	} numbers[] = { { "tp", plan->tp }, { "cp", plan->cp }, { "pp", plan->pp }, { "dp", plan->dp },
		{ "ep", plan->ep }, { "vpp", plan->chunks }, { "micro-batch", plan->micro_batch },
		{ "batch", plan->batch }, { "sequence", plan->sequence } };
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (numbers[i].value == 0)
			return why_not(why, why_size, "%s is 0", numbers[i].key);
	if ((uint64_t)plan->tp * plan->cp > MOST_RANKS || (uint64_t)plan->tp * plan->cp * plan->pp > MOST_RANKS ||
		(uint64_t)plan->tp * plan->cp * plan->pp * plan->dp > MOST_RANKS)
		return why_not(why, why_size, "tp x cp x pp x dp is more than %u ranks", MOST_RANKS);
	return 0;
}

static int check_model(const struct step_plan *plan, char *why, unsigned why_size)
{
	const struct model *model = &plan->model;
	if (!model->layers || !model->hidden || !model->heads || !model->ffn || !model->vocabulary)
		return why_not(why, why_size,
			"a model needs layers, hidden, heads, ffn and vocabulary, or a name that --models lists");
	if (!model->head_dim || !model->kv_heads || model->heads % model->kv_heads)
		return why_not(why, why_size,
			"%u heads of %u elements with %u heads of keys and values: kv-heads divides heads, and "
			"head-dim is not 0",
			model->heads, model->head_dim, model->kv_heads);
	if (model->layers * ((model->experts + 1.0) * 3 * model->hidden * model->ffn +
				    4.0 * model->hidden * model->heads * model->head_dim) >
		MOST_PARAMETERS)
		return why_not(why, why_size, "a model of more than %g parameters", MOST_PARAMETERS);
	if (2.0 * plan->micro_batch * plan->sequence * model->hidden > MOST_BYTES)
		return why_not(why, why_size, "activations of a micro-batch of more than %g bytes: lower micro-batch",
			MOST_BYTES);
	if (model->heads % plan->tp)
		return why_not(why, why_size, "tp %u does not divide the model's %u heads", plan->tp, model->heads);
	if (model->ffn % plan->tp && !model->experts)
		return why_not(why, why_size, "tp %u does not divide the FFN's width of %u", plan->tp, model->ffn);
	if (plan->sequence % plan->cp)
		return why_not(why, why_size, "cp %u does not divide the sequence of %u", plan->cp, plan->sequence);
	if (plan->is_sequence_parallel && plan->sequence / plan->cp % plan->tp)
		return why_not(why, why_size,
			"tp %u does not divide the %u tokens that a rank has of a sequence: sp: no", plan->tp,
			plan->sequence / plan->cp);
	return 0;
}

static int check_experts(const struct step_plan *plan, char *why, unsigned why_size)
{
	const uint32_t of_a_stage = plan->tp * plan->cp * plan->dp;
	if (!plan->model.experts)
		return plan->ep == 1 ? 0 : why_not(why, why_size, "ep is %u, and the model has no experts", plan->ep);
	if (plan->tp > 1 && !plan->is_sequence_parallel)
		return why_not(why, why_size, "experts with tp %u need sp: yes, as in Megatron", plan->tp);
	if (plan->model.experts % plan->ep)
		return why_not(
			why, why_size, "ep %u does not divide the model's %u experts", plan->ep, plan->model.experts);
	if (of_a_stage % plan->ep)
		return why_not(why, why_size, "ep %u does not divide tp x cp x dp, which is %u", plan->ep, of_a_stage);
	return 0;
}

static int check_stages(const struct step_plan *plan, char *why, unsigned why_size)
{
	const uint32_t layers = plan->model.layers + (plan->ends_count_as_layers ? 2 : 0);
	const uint64_t parts = (uint64_t)plan->pp * plan->chunks;
	if (parts > plan->model.layers + 2)
		return why_not(why, why_size, "pp x vpp is %llu, and there are %u layers to share out: lower pp or vpp",
			(unsigned long long)parts, layers);
	if (plan->chunks > 1 && plan->schedule != SCHEDULE_INTERLEAVED)
		return why_not(why, why_size, "vpp is %u: schedule: interleaved", plan->chunks);
	if (plan->chunks > 1 && plan->pp == 1)
		return why_not(why, why_size, "vpp is %u, and there is one stage: raise pp", plan->chunks);
	if (layers % parts)
		return why_not(why, why_size,
			"pp x vpp is %llu, which does not divide %u layers%s; ends-count-as-layers: %s would make it "
			"%u",
			(unsigned long long)parts, layers,
			plan->ends_count_as_layers ? ", embedding and output included" : "",
			plan->ends_count_as_layers ? "no" : "yes",
			plan->ends_count_as_layers ? layers - 2 : layers + 2);
	return 0;
}

static int check_batch(const struct step_plan *plan, char *why, unsigned why_size)
{
	const uint64_t each = (uint64_t)plan->micro_batch * plan->dp;
	if (plan->batch % each)
		return why_not(why, why_size, "micro-batch x dp is %llu, which does not divide the batch of %u",
			(unsigned long long)each, plan->batch);
	const double operations = (double)(plan->batch / each) *
				  (plan->model.layers + (double)plan->pp * plan->chunks) * OPERATIONS_A_LAYER;
	if (operations > MOST_OPERATIONS)
		return why_not(why, why_size,
			"%llu micro-batches of %u layers are more operations than a run takes: raise micro-batch or "
			"dp, or lower batch",
			(unsigned long long)(plan->batch / each), plan->model.layers);
	if (plan->chunks > 1 && plan->batch / each % plan->pp)
		return why_not(why, why_size,
			"an interleaved schedule needs a multiple of pp %u as micro-batches, and there are %llu: "
			"change batch",
			plan->pp, (unsigned long long)(plan->batch / each));
	return 0;
}

static int check_time(const struct step_plan *plan, char *why, unsigned why_size)
{
	const double time = plan_work(plan) / plan_ranks(plan) / (plan->tflops * plan->mfu);
	if (time > MOST_TIME)
		return why_not(why, why_size, "each rank computes for %.3g days: raise mfu or ranks, or lower batch",
			time / MOST_TIME * 11.574);
	return time >= LEAST_TIME ? 0 : why_not(why, why_size, "a step of less than a nanosecond is none");
}

int plan_check(const struct step_plan *plan, char *why, unsigned why_size)
{
	int error = check_numbers(plan, why, why_size);
	if (!error)
		error = check_model(plan, why, why_size);
	if (!error)
		error = check_experts(plan, why, why_size);
	if (!error)
		error = check_stages(plan, why, why_size);
	if (!error)
		error = check_batch(plan, why, why_size);
	if (!error && plan->zero > 3)
		error = why_not(why, why_size, "zero is 0 to 3");
	if (!error && plan->gradient_bytes != 2 && plan->gradient_bytes != 4)
		error = why_not(why, why_size, "gradient-bytes is 2 or 4");
	if (!error && (!(plan->tflops > 0) || !(plan->mfu > 0) || plan->mfu > 1))
		error = why_not(why, why_size, "mfu is above 0 and at most 1, of a GPU's peak above 0");
	return error ? error : check_time(plan, why, why_size);
}

/* ---- Cuts -------------------------------------------------------------------------------------------------------- */

uint32_t plan_ranks(const struct step_plan *plan)
{
	return plan->tp * plan->cp * plan->pp * plan->dp;
}

uint32_t plan_rank(const struct step_plan *plan, uint32_t place, uint32_t stage)
{
	const uint32_t replica = plan->tp * plan->cp;
	assert(place < replica * plan->dp && stage < plan->pp);
	if (plan->order == ORDER_TP_CP_DP_PP)
		return stage * replica * plan->dp + place;
	return (place / replica * plan->pp + stage) * replica + place % replica;
}

uint32_t plan_place(const struct step_plan *plan, uint32_t rank, uint32_t *stage)
{
	const uint32_t replica = plan->tp * plan->cp, of_a_stage = replica * plan->dp;
	assert(rank < of_a_stage * plan->pp);
	if (plan->order == ORDER_TP_CP_DP_PP) {
		*stage = rank / of_a_stage;
		return rank % of_a_stage;
	}
	*stage = rank / replica % plan->pp;
	return rank / (replica * plan->pp) * replica + rank % replica;
}

uint32_t plan_micro_batches(const struct step_plan *plan)
{
	return plan->batch / plan->micro_batch / plan->dp;
}

uint32_t plan_parts(const struct step_plan *plan)
{
	return plan->pp * plan->chunks;
}

uint32_t plan_stage_of(const struct step_plan *plan, uint32_t part)
{
	return part % plan->pp;
}

struct plan_layers plan_layers(const struct step_plan *plan, uint32_t part)
{
	const uint32_t parts = plan_parts(plan), ends = plan->ends_count_as_layers;
	const uint32_t each = (plan->model.layers + 2 * ends) / parts;
	assert(part < parts && each * parts == plan->model.layers + 2 * ends);
	struct plan_layers of = { part * each - (part > 0 ? ends : 0), each };
	of.count -= ends * ((part == 0) + (part == parts - 1));
	return of;
}

uint32_t plan_expert_replicas(const struct step_plan *plan)
{
	return plan->tp * plan->cp * plan->dp / plan->ep;
}

struct plan_parameters plan_layer_parameters(const struct step_plan *plan, uint32_t layer)
{
	const struct model *model = &plan->model;
	struct plan_parameters of = { .shared = (double)model_attention_parameters(model) };
	if (model_layer_has_experts(model, layer)) {
		of.shared += (double)model_router_parameters(model);
		of.experts = (double)model->experts * (double)model_expert_parameters(model) / plan->ep;
	} else {
		of.shared += (double)model_dense_ffn_parameters(model);
	}
	of.shared /= plan->tp;
	return of;
}

struct plan_parameters plan_end_parameters(const struct step_plan *plan, bool output)
{
	return (struct plan_parameters){ .shared =
						 (double)model_embedding_parameters(&plan->model, output) / plan->tp };
}

struct plan_parameters plan_ends_parameters(const struct step_plan *plan, uint32_t stage)
{
	struct plan_parameters of = { 0 };
	if (stage == 0)
		of.shared += plan_end_parameters(plan, false).shared;
	if (stage == plan->pp - 1)
		of.shared += plan_end_parameters(plan, true).shared;
	return of;
}

struct plan_parameters plan_stage_parameters(const struct step_plan *plan, uint32_t stage)
{
	struct plan_parameters sum = plan_ends_parameters(plan, stage);
	for (uint32_t chunk = 0; chunk < plan->chunks; chunk++) {
		const struct plan_layers layers = plan_layers(plan, chunk * plan->pp + stage);
		for (uint32_t i = layers.first; i < layers.first + layers.count; i++) {
			const struct plan_parameters of = plan_layer_parameters(plan, i);
			sum.shared += of.shared;
			sum.experts += of.experts;
		}
	}
	return sum;
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* A parameter's weight of two bytes, its gradient, and Adam's two moments and a weight of four bytes. */
static double bytes_of_parameter(const struct step_plan *plan, double replicas)
{
	const double weight = 2, gradient = plan->gradient_bytes, optimizer = 12;
	switch (plan->zero) {
	case 0:
		return weight + gradient + optimizer;
	case 1:
		return weight + gradient + optimizer / replicas;
	case 2:
		return weight + (gradient + optimizer) / replicas;
	default:
		return (weight + gradient + optimizer) / replicas;
	}
}

/* ZeRO-3: a layer's parameters are gathered at a time; the last has experts, where there are any. */
static double gathered_unit(const struct step_plan *plan)
{
	const struct plan_parameters of = plan_layer_parameters(plan, plan->model.layers - 1);
	return of.shared + of.experts;
}

static double state_of_stage(const struct step_plan *plan, uint32_t stage)
{
	const struct plan_parameters sum = plan_stage_parameters(plan, stage);
	double bytes = sum.shared * bytes_of_parameter(plan, (double)plan->dp * plan->cp) +
		       sum.experts * bytes_of_parameter(plan, plan_expert_replicas(plan));
	if (plan->zero == 3)
		bytes += 2 * gathered_unit(plan);
	return bytes;
}

/* arXiv 2205.05198, section 4: of a layer and micro-batch, in bytes of a token and hidden element. */
static double activations_of_layer(const struct step_plan *plan)
{
	const struct model *model = &plan->model;
	const double tp = plan->tp,
		     width = model->experts ? (double)model->ffn * (model->top_k + model->shared) : model->ffn;
	const double by_heads = 8 + 4 * width / model->hidden;
	const double scores =
		plan->recompute == RECOMPUTE_NONE ? 5.0 * model->heads * plan->sequence / model->hidden : 0;
	if (plan->recompute == RECOMPUTE_FULL)
		return 2 / (plan->is_sequence_parallel ? tp : 1);
	if (plan->is_sequence_parallel)
		return (10 + by_heads + scores) / tp;
	return 1.05 * (10 + (by_heads + scores) / tp);
}

/* The first stage has as many micro-batches under way as there are stages. */
struct plan_memory plan_memory(const struct step_plan *plan)
{
	const struct model *model = &plan->model;
	const double elements = (double)plan->sequence / plan->cp * plan->micro_batch * model->hidden;
	const double layers = (double)model->layers / plan->pp;
	const uint32_t batches = plan_micro_batches(plan);
	const double under_way = batches < plan->pp ? batches : plan->pp;
	const double interleaved = plan->chunks > 1 ? 1 + (plan->pp - 1.0) / (plan->pp * (double)plan->chunks) : 1;
	struct plan_memory memory = { 0 };
	for (uint32_t stage = 0; stage < plan->pp; stage++) {
		const double state = state_of_stage(plan, stage);
		memory.state = state > memory.state ? state : memory.state;
	}
	memory.activations = elements * activations_of_layer(plan) * layers * under_way * interleaved;
	memory.ends = elements * under_way * (1 + 8.0 / model->hidden) / plan->tp;
	if (plan->pp == 1)
		memory.ends += 4 * elements * (1 + (double)model->vocabulary / model->hidden) / plan->tp;
	memory.sum = memory.state + memory.activations + memory.ends;
	return memory;
}

/* ---- Work -------------------------------------------------------------------------------------------------------- */

double plan_tokens(const struct step_plan *plan)
{
	return (double)plan->batch * plan->sequence;
}

double plan_work(const struct step_plan *plan)
{
	return 3 * plan_tokens(plan) * model_work(&plan->model, plan->sequence, !plan->counts_whole_square);
}

double plan_bubble(const struct step_plan *plan)
{
	const double of_passes = plan->schedule == SCHEDULE_ZERO_BUBBLE ? 3 : 1; /* of three equal ones, one */
	return (plan->pp - 1.0) / (of_passes * plan->chunks * plan_micro_batches(plan));
}
