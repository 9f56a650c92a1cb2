/* See plan.h. */
#include "steps/plan.h"
#include <stddef.h>
#include "base/invariant.h"

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
		return plan->first + stage * replica * plan->dp + place;
	return plan->first + (place / replica * plan->pp + stage) * replica + place % replica;
}

uint32_t plan_place(const struct step_plan *plan, uint32_t rank, uint32_t *stage)
{
	const uint32_t replica = plan->tp * plan->cp, of_a_stage = replica * plan->dp;
	rank -= plan->first;
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

/* Of latent attention each rank has all that compresses, since that is of all heads; other matrices are cut. */
struct plan_parameters plan_layer_parameters(const struct step_plan *plan, uint32_t layer)
{
	const struct model *model = &plan->model;
	const double whole = (double)model_compressing_parameters(model);
	struct plan_parameters of = { .shared = (double)model_attention_parameters(model) - whole };
	if (model_layer_has_experts(model, layer)) {
		of.shared += (double)model_router_parameters(model);
		of.experts = (double)model->experts * (double)model_expert_parameters(model) / plan->ep;
	} else {
		of.shared += (double)model_dense_ffn_parameters(model);
	}
	of.shared = of.shared / plan->tp + whole;
	return of;
}

/* GPT has one embedding for both ends: where they are in two stages, the last has a copy of its words. */
struct plan_parameters plan_end_parameters(const struct step_plan *plan, bool output)
{
	const struct model *model = &plan->model;
	const bool is_copy = output && model->kind == MODEL_GPT && plan->pp > 1;
	const uint64_t whole =
		is_copy ? (uint64_t)model->vocabulary * model->hidden : model_embedding_parameters(model, output);
	return (struct plan_parameters){ .shared = (double)whole / plan->tp };
}

static void add_parameters(struct plan_parameters *sum, struct plan_parameters of)
{
	sum->shared += of.shared;
	sum->experts += of.experts;
}

struct plan_parameters plan_part_ends(const struct step_plan *plan, uint32_t part)
{
	struct plan_parameters of = { 0 };
	if (part == 0)
		add_parameters(&of, plan_end_parameters(plan, false));
	if (part == plan_parts(plan) - 1)
		add_parameters(&of, plan_end_parameters(plan, true));
	return of;
}

struct plan_parameters plan_part_parameters(const struct step_plan *plan, uint32_t part)
{
	const struct plan_layers layers = plan_layers(plan, part);
	struct plan_parameters sum = plan_part_ends(plan, part);
	for (uint32_t i = layers.first; i < layers.first + layers.count; i++)
		add_parameters(&sum, plan_layer_parameters(plan, i));
	return sum;
}

struct plan_parameters plan_ends_parameters(const struct step_plan *plan, uint32_t stage)
{
	struct plan_parameters sum = { 0 };
	for (uint32_t chunk = 0; chunk < plan->chunks; chunk++)
		add_parameters(&sum, plan_part_ends(plan, chunk * plan->pp + stage));
	return sum;
}

struct plan_parameters plan_stage_parameters(const struct step_plan *plan, uint32_t stage)
{
	struct plan_parameters sum = { 0 };
	for (uint32_t chunk = 0; chunk < plan->chunks; chunk++)
		add_parameters(&sum, plan_part_parameters(plan, chunk * plan->pp + stage));
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

/* Zero-bubble, of layers alone: (p - 1)(F + B - W) beside m (F + B + W), where a layer's matrices are in each of these,
 * and scores in F and twice in B, which has what is computed again, too. */
static double zero_bubble_part(const struct step_plan *plan)
{
	const double scores =
		plan->model.layers * model_score_work(&plan->model, plan->sequence, !plan->counts_whole_square);
	const double matrices = model_work(&plan->model, plan->sequence, !plan->counts_whole_square) - scores -
				model_output_work(&plan->model);
	const double again = plan->recompute == RECOMPUTE_FULL        ? matrices + scores
			     : plan->recompute == RECOMPUTE_SELECTIVE ? scores
								      : 0;
	const double sum = 3 * (matrices + scores) + again;
	return (sum - 2 * matrices) / sum;
}

double plan_bubble(const struct step_plan *plan)
{
	const double part = plan->schedule == SCHEDULE_ZERO_BUBBLE ? zero_bubble_part(plan) : 1;
	return part * (plan->pp - 1.0) / (plan->chunks * (double)plan_micro_batches(plan));
}
