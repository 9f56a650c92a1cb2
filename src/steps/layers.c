/* See layers.h. */
#include "steps/layers.h"

/* ---- Sizes ------------------------------------------------------------------------------------------------------- */

double layer_tokens(const struct step_plan *plan)
{
	return (double)plan->micro_batch * plan->sequence / plan->cp;
}

double layer_activations(const struct step_plan *plan)
{
	return 2 * layer_tokens(plan) * plan->model.hidden;
}

double layer_share(const struct step_plan *plan)
{
	return layer_tokens(plan) / plan->tp;
}

double layer_work(const struct step_plan *plan, enum step_work work)
{
	const struct model *model = &plan->model;
	switch (work) {
	case WORK_PROJECTIONS:
		return layer_share(plan) * model_attention_work(model);
	case WORK_SCORES:
		return layer_share(plan) * model_score_work(model, plan->sequence, !plan->counts_whole_square);
	case WORK_OUTPUT:
		return layer_share(plan) * model_output_work(model);
	default:
		return layer_share(plan) * model_ffn_work(model, work == WORK_EXPERTS);
	}
}

static double factor_of(const struct step_plan *plan, enum step_work work, enum step_pass pass)
{
	const double factor = plan->factors[work][pass != PASS_FORWARD];
	return factor > 0 ? factor : 1;
}

double layer_timed_work(const struct step_plan *plan, enum step_work work, enum step_pass pass)
{
	return factor_of(plan, work, pass) * layer_work(plan, work);
}

static double ffn_work(const struct step_plan *plan, uint32_t layer, enum step_pass pass)
{
	return layer_timed_work(plan, model_layer_has_experts(&plan->model, layer) ? WORK_EXPERTS : WORK_FFN, pass);
}

/* Heads are cut, and a head of keys is with all that use it; what latent attention compresses is of all heads. */
static double kv_bytes(const struct step_plan *plan)
{
	const struct model *model = &plan->model;
	const uint32_t parts = model->latent.query_rank ? 1 : model->kv_heads < plan->tp ? model->kv_heads : plan->tp;
	return 2.0 * plan->micro_batch * plan->sequence * (double)model_kv_elements(model) / parts;
}

/* ---- Tensor parallelism ------------------------------------------------------------------------------------------ */

void layer_gather(struct building *building)
{
	if (building->plan->is_sequence_parallel)
		communicate(building, STEP_TP, "all-gather", layer_activations(building->plan));
}

static const char *scattering(const struct step_plan *plan)
{
	return plan->is_sequence_parallel ? "reduce-scatter" : "allreduce";
}

void layer_scatter(struct building *building)
{
	communicate(building, STEP_TP, scattering(building->plan), layer_activations(building->plan));
}

/* As Megatron-LM's LinearWithGradAccumulationAndAsyncCommunication: the inputs, which were kept in parts, are gathered
 * again beside the gradient of inputs, and that gradient leaves beside the gradient of weights. */
void layer_column_back(struct building *building, double work, unsigned passes)
{
	const struct step_plan *plan = building->plan;
	uint32_t beside = STEP_NONE;
	if (plan->is_sequence_parallel)
		beside = communicate_beside(building, STEP_TP, "all-gather", layer_activations(plan));
	compute(building, work);
	wait_also(building, beside);
	beside = communicate_beside(building, STEP_TP, scattering(plan), layer_activations(plan));
	if (passes == 2)
		compute(building, work);
	wait_also(building, beside);
}

/* ---- Attention --------------------------------------------------------------------------------------------------- */

/* The blocks of a ring come one by one, beside the scores of the block before; nothing comes beside those of the last.
 */
static void compute_scores(struct building *building, double work, const char *kind, double bytes)
{
	const struct step_plan *plan = building->plan;
	const uint32_t beside =
		plan->context == CONTEXT_RING ? communicate_beside(building, STEP_CP, kind, bytes) : STEP_NONE;
	if (beside == STEP_NONE) {
		compute(building, work);
		return;
	}
	compute(building, work * (plan->cp - 1) / plan->cp);
	wait_also(building, beside);
	compute(building, work / plan->cp);
}

static void attend(struct building *building)
{
	const struct step_plan *plan = building->plan;
	const double projections = layer_timed_work(plan, WORK_PROJECTIONS, PASS_FORWARD);
	const double scores = layer_timed_work(plan, WORK_SCORES, PASS_FORWARD);
	if (plan->cp == 1) {
		compute(building, projections + scores);
		return;
	}
	compute(building, projections);
	if (plan->context == CONTEXT_ALL_GATHER)
		communicate(building, STEP_CP, "all-gather", kv_bytes(plan));
	compute_scores(building, scores, "all-gather", kv_bytes(plan));
}

/* Scores have no weights, so both of their gradients are those of inputs. In a ring keys and values come round again,
 * and their gradients with them. */
static void attend_back(struct building *building, unsigned passes)
{
	const struct step_plan *plan = building->plan;
	const double output = factor_of(plan, WORK_PROJECTIONS, PASS_BACKWARD) * layer_share(plan) *
			      model_attention_last_work(&plan->model);
	double work = 2 * layer_timed_work(plan, WORK_SCORES, PASS_BACKWARD);
	if (plan->recompute == RECOMPUTE_SELECTIVE)
		work += layer_timed_work(plan, WORK_SCORES, PASS_FORWARD);
	compute(building, passes * output);
	compute_scores(building, work, "reduce-scatter", 2 * kv_bytes(plan));
	if (plan->context == CONTEXT_ALL_GATHER)
		communicate(building, STEP_CP, "reduce-scatter", kv_bytes(plan));
	layer_column_back(building, layer_timed_work(plan, WORK_PROJECTIONS, PASS_BACKWARD) - output, passes);
}

/* ---- The feed-forward network ------------------------------------------------------------------------------------ */

/* A token's activations to its experts, or back. */
static void exchange(struct building *building, bool is_back)
{
	const struct step_plan *plan = building->plan;
	const double each = layer_activations(plan) / plan->tp;
	if (plan->dispatcher == DISPATCH_ALL_TO_ALL)
		communicate(building, STEP_EP, "alltoall", each * plan->model.top_k);
	else
		communicate(building, STEP_EP, is_back ? "reduce-scatter" : "all-gather", each * plan->ep);
}

static void feed_experts(struct building *building, double work)
{
	exchange(building, false);
	compute(building, work);
	exchange(building, true);
}

static void feed_back(struct building *building, uint32_t layer, unsigned passes)
{
	const struct step_plan *plan = building->plan;
	const double last =
		factor_of(plan, WORK_FFN, PASS_BACKWARD) * layer_share(plan) * model_ffn_last_work(&plan->model);
	layer_gather(building);
	compute(building, passes * last);
	layer_column_back(building, ffn_work(plan, layer, PASS_BACKWARD) - last, passes);
}

/* ---- Passes ------------------------------------------------------------------------------------------------------ */

void layer_forward(struct building *building, uint32_t layer)
{
	const struct step_plan *plan = building->plan;
	layer_gather(building);
	attend(building);
	layer_scatter(building);
	if (model_layer_has_experts(&plan->model, layer)) {
		feed_experts(building, ffn_work(plan, layer, PASS_FORWARD));
		return;
	}
	layer_gather(building);
	compute(building, ffn_work(plan, layer, PASS_FORWARD));
	layer_scatter(building);
}

/* A gradient comes as the output left, and goes as the input came. The gradients of inputs and weights take as much
 * work as the forward pass each. */
void layer_backward(struct building *building, uint32_t layer, unsigned passes)
{
	const struct step_plan *plan = building->plan;
	if (plan->recompute == RECOMPUTE_FULL)
		layer_forward(building, layer);
	if (model_layer_has_experts(&plan->model, layer))
		feed_experts(building, passes * ffn_work(plan, layer, PASS_BACKWARD));
	else
		feed_back(building, layer, passes);
	layer_gather(building);
	attend_back(building, passes);
}

double layer_weights_work(const struct step_plan *plan, uint32_t layer)
{
	return layer_timed_work(plan, WORK_PROJECTIONS, PASS_BACKWARD) + ffn_work(plan, layer, PASS_BACKWARD);
}
