/* See program.h. Sizes and counts are those of Megatron-LM, and of the papers that plan.h and model.h name. */
#include "steps/program.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "net/grow.h"

#define TREE_BYTES (1u << 20) /* an allreduce of less goes by trees */

struct building {
	const struct step_plan *plan;
	struct step_program *program;
	uint32_t last, also; /* what the next operation waits for; STEP_NONE: nothing */
	double gradients;    /* parameters whose gradients are there, and not sent yet */
	uint32_t *gathers;   /* by layer: the operation that brings its parameters; STEP_NONE: they are there */
	bool is_out_of_memory;
};

uint32_t program_tags(const struct step_plan *plan)
{
	return 2 * plan_micro_batches(plan) * plan_parts(plan);
}

const char *program_algorithm(const struct step_operation *operation)
{
	const bool is_allreduce = operation->kind == STEP_COLLECTIVE && strcmp(operation->collective, "allreduce") == 0;
	return is_allreduce && operation->bytes < TREE_BYTES ? "double-tree" : NULL;
}

/* ---- Operations -------------------------------------------------------------------------------------------------- */

static uint32_t add(struct building *building, struct step_operation operation)
{
	struct step_program *program = building->program;
	if (!grow_by_one(&program->operations, &program->room, program->count, sizeof(*program->operations))) {
		building->is_out_of_memory = true;
		return STEP_NONE;
	}
	program->operations[program->count] = operation;
	return program->count++;
}

/* Beside what comes next, which does not wait for it. */
static uint32_t add_beside(struct building *building, struct step_operation operation)
{
	operation.waits[0] = building->last;
	operation.waits[1] = building->also;
	return add(building, operation);
}

static void add_next(struct building *building, struct step_operation operation)
{
	building->last = add_beside(building, operation);
	building->also = STEP_NONE;
}

/* For this many operations of arithmetic, of one rank. */
static void compute(struct building *building, double work)
{
	const struct step_plan *plan = building->plan;
	const vb_time time = (vb_time)(work / (plan->tflops * plan->mfu) + 0.5); /* 1 TFLOP/s is one a picosecond */
	add_next(building, (struct step_operation){ .kind = STEP_COMPUTE, .stream = STREAM_COMPUTE, .time = time });
}

/* What comes next waits for this one too. */
static void wait_also(struct building *building, uint32_t operation)
{
	if (operation == STEP_NONE)
		return;
	if (building->also != STEP_NONE)
		compute(building, 0);
	building->also = operation;
}

static struct step_operation collective(
	enum step_stream stream, enum step_dimension dimension, const char *kind, double bytes)
{
	return (struct step_operation){ .kind = STEP_COLLECTIVE,
		.stream = (uint8_t)stream,
		.dimension = (uint8_t)dimension,
		.collective = kind,
		.bytes = (uint64_t)(bytes + 0.5) };
}

static void communicate(struct building *building, enum step_dimension dimension, const char *kind, double bytes)
{
	if (step_members(building->plan, dimension) > 1 && bytes >= 1)
		add_next(building, collective(STREAM_LAYERS, dimension, kind, bytes));
}

/* ---- Sizes ------------------------------------------------------------------------------------------------------- */

/* Tokens of a micro-batch that a rank of the tensor-parallel group and its fellows have. */
static double tokens(const struct step_plan *plan)
{
	return (double)plan->micro_batch * plan->sequence / plan->cp;
}

/* Their activations, of two bytes. */
static double activations(const struct step_plan *plan)
{
	return 2 * tokens(plan) * plan->model.hidden;
}

/* Of one token's work a rank has this part. */
static double share(const struct step_plan *plan)
{
	return tokens(plan) / plan->tp;
}

static double attention_work(const struct step_plan *plan)
{
	return share(plan) * (model_attention_work(&plan->model) +
				     model_score_work(&plan->model, plan->sequence, !plan->counts_whole_square));
}

/* ---- Layers ------------------------------------------------------------------------------------------------------ */

/* What a column-parallel matrix needs before it, and what a row-parallel one leaves behind. */
static void gather(struct building *building)
{
	if (building->plan->is_sequence_parallel)
		communicate(building, STEP_TP, "all-gather", activations(building->plan));
}

static void scatter(struct building *building)
{
	communicate(building, STEP_TP, building->plan->is_sequence_parallel ? "reduce-scatter" : "allreduce",
		activations(building->plan));
}

/* Backward: a gradient comes as the output left, and goes as the input came. The inputs, which were kept in parts, are
 * gathered again for the gradient of the weights. */
static void gather_back(struct building *building)
{
	gather(building);
	gather(building);
}

static double kv_bytes(const struct step_plan *plan)
{
	const double tp = plan->model.kv_heads < plan->tp ? plan->model.kv_heads : plan->tp;
	return 2.0 * plan->micro_batch * plan->sequence * (double)model_kv_elements(&plan->model) / tp;
}

/* A ring's steps run beside the attention of the block before. */
static void attend(struct building *building, double work, const char *exchange, double bytes)
{
	const struct step_plan *plan = building->plan;
	uint32_t beside = STEP_NONE;
	if (plan->context == CONTEXT_ALL_GATHER)
		communicate(building, STEP_CP, exchange, bytes);
	else if (plan->cp > 1)
		beside = add_beside(building, collective(STREAM_CONTEXT, STEP_CP, exchange, bytes));
	compute(building, work);
	wait_also(building, beside);
}

/* A token's activations to its experts, or back. */
static void exchange(struct building *building, bool is_back)
{
	const struct step_plan *plan = building->plan;
	const double each = activations(plan) / plan->tp;
	if (plan->dispatcher == DISPATCH_ALL_TO_ALL)
		communicate(building, STEP_EP, "alltoall", each * plan->model.top_k);
	else
		communicate(building, STEP_EP, is_back ? "reduce-scatter" : "all-gather", each * plan->ep);
}

static void forward_layer(struct building *building, uint32_t layer)
{
	const struct step_plan *plan = building->plan;
	const bool has_experts = model_layer_has_experts(&plan->model, layer);
	const double ffn = share(plan) * model_ffn_work(&plan->model, has_experts);
	gather(building);
	attend(building, attention_work(plan), "all-gather", kv_bytes(plan));
	scatter(building);
	if (has_experts)
		exchange(building, false);
	else
		gather(building);
	compute(building, ffn);
	if (has_experts)
		exchange(building, true);
	else
		scatter(building);
}

/* The gradients of inputs and weights take as much work as the forward pass each. */
static void backward_layer(struct building *building, uint32_t layer, double passes)
{
	const struct step_plan *plan = building->plan;
	const bool has_experts = model_layer_has_experts(&plan->model, layer);
	const double scores =
		plan->recompute == RECOMPUTE_SELECTIVE
			? share(plan) * model_score_work(&plan->model, plan->sequence, !plan->counts_whole_square)
			: 0;
	if (plan->recompute == RECOMPUTE_FULL)
		forward_layer(building, layer);
	if (has_experts)
		exchange(building, false);
	else
		gather_back(building);
	compute(building, passes * share(plan) * model_ffn_work(&plan->model, has_experts));
	if (has_experts)
		exchange(building, true);
	else
		scatter(building);
	gather_back(building);
	attend(building, passes * attention_work(plan) + scores, "reduce-scatter", kv_bytes(plan));
	scatter(building);
}

/* ---- Gradients and parameters ------------------------------------------------------------------------------------ */

/* Megatron's distributed_data_parallel.py: parameters of a bucket. */
static double bucket(const struct step_plan *plan)
{
	const double replicas = (double)plan->dp * plan->cp;
	if (plan->bucket)
		return (double)plan->bucket;
	return replicas > 40 ? 1e6 * replicas : 40e6;
}

static void send_gradients(struct building *building, enum step_dimension dimension, double parameters)
{
	const struct step_plan *plan = building->plan;
	const double bytes = parameters * plan->gradient_bytes;
	if (step_members(plan, dimension) > 1 && bytes >= 1)
		add_beside(building,
			collective(STREAM_DATA, dimension, plan->zero ? "reduce-scatter" : "allreduce", bytes));
}

/* After a layer's backward pass of the last micro-batch: full buckets leave. */
static void leave_gradients(struct building *building, uint32_t layer)
{
	const struct step_plan *plan = building->plan;
	const struct plan_parameters of = plan_layer_parameters(plan, layer);
	building->gradients += of.shared;
	send_gradients(building, STEP_EXPERTS_DP, of.experts);
	if (building->gradients >= bucket(plan)) {
		send_gradients(building, STEP_DP, building->gradients);
		building->gradients = 0;
	}
}

static void gather_parameters(struct building *building, const struct plan_parameters *of)
{
	if (step_members(building->plan, STEP_DP) > 1 && of->shared >= 1)
		add_beside(building, collective(STREAM_DATA, STEP_DP, "all-gather", 2 * of->shared));
	if (step_members(building->plan, STEP_EXPERTS_DP) > 1 && of->experts >= 1)
		add_beside(building, collective(STREAM_DATA, STEP_EXPERTS_DP, "all-gather", 2 * of->experts));
}

/* ZeRO-3: a layer's parameters come while the layer before computes: the gathering waits for what that began with. */
static void fetch_layer(struct building *building, uint32_t layer, uint32_t *began)
{
	const struct plan_parameters of = plan_layer_parameters(building->plan, layer);
	const uint32_t last = building->last, also = building->also, count = building->program->count;
	if (building->plan->zero < 3)
		return;
	building->last = *began;
	building->also = STEP_NONE;
	gather_parameters(building, &of);
	*began = building->last = last;
	building->also = also;
	if (building->program->count > count)
		wait_also(building, building->program->count - 1);
}

/* ZeRO-1 and 2, overlapped: the first forward pass waits for each layer's parameters. */
static void fetch_all(struct building *building, uint32_t stage)
{
	const struct step_plan *plan = building->plan;
	const struct plan_parameters ends = plan_ends_parameters(plan, stage);
	gather_parameters(building, &ends);
	for (uint32_t chunk = 0; chunk < plan->chunks; chunk++) {
		const struct plan_layers layers = plan_layers(plan, chunk * plan->pp + stage);
		for (uint32_t i = 0; i < layers.count; i++) {
			const struct plan_parameters of = plan_layer_parameters(plan, layers.first + i);
			gather_parameters(building, &of);
			building->gathers[layers.first + i] = building->program->count - 1;
		}
	}
}

static bool gathers_first(const struct step_plan *plan)
{
	return (plan->zero == 1 || plan->zero == 2) && plan->overlaps_parameters &&
	       (step_members(plan, STEP_DP) > 1 || step_members(plan, STEP_EXPERTS_DP) > 1);
}

/* ---- Passes ------------------------------------------------------------------------------------------------------ */

static uint32_t tag_of(const struct step_plan *plan, const struct step_action *action, uint32_t part)
{
	return (action->micro_batch * plan_parts(plan) + part) * 2 + (action->pass != PASS_FORWARD);
}

/* With sequence parallelism, or by Megatron's scatter-gather: each rank of a tensor-parallel group sends its part. */
static struct step_operation message(
	const struct step_plan *plan, enum step_kind kind, const struct step_action *action, uint32_t from, uint32_t to)
{
	return (struct step_operation){ .kind = (uint8_t)kind,
		.stream = kind == STEP_SEND ? STREAM_SEND : STREAM_RECEIVE,
		.dimension = STEP_PP,
		.bytes = (uint64_t)(activations(plan) / plan->tp + 0.5),
		.peer = plan_stage_of(plan, kind == STEP_SEND ? to : from),
		.tag = tag_of(plan, action, to) };
}

static void receive(struct building *building, const struct step_action *action, uint32_t from)
{
	struct step_operation operation = message(building->plan, STEP_RECEIVE, action, from, action->part);
	if (plan_stage_of(building->plan, from) == plan_stage_of(building->plan, action->part))
		return;
	operation.waits[0] = operation.waits[1] = STEP_NONE;
	wait_also(building, add(building, operation));
	if (!building->plan->is_sequence_parallel) /* each rank has received its part */
		communicate(building, STEP_TP, "all-gather", activations(building->plan));
}

/* 1F1B waits until its message has left. */
static void send(struct building *building, const struct step_action *action, uint32_t to)
{
	const struct step_operation operation = message(building->plan, STEP_SEND, action, action->part, to);
	if (plan_stage_of(building->plan, to) == plan_stage_of(building->plan, action->part))
		return;
	if (building->plan->schedule == SCHEDULE_1F1B)
		add_next(building, operation);
	else
		add_beside(building, operation);
}

static void wait_for_parameters(struct building *building, uint32_t layer)
{
	wait_also(building, building->gathers[layer]);
	building->gathers[layer] = STEP_NONE;
}

/* ZeRO-3: parameters of the embedding, or of the output, come; and their gradients leave. */
static void fetch_end(struct building *building, bool output)
{
	const struct plan_parameters of = plan_end_parameters(building->plan, output);
	const uint32_t count = building->program->count;
	if (building->plan->zero < 3)
		return;
	gather_parameters(building, &of);
	if (building->program->count > count)
		wait_also(building, building->program->count - 1);
}

static void leave_end(struct building *building, bool output)
{
	const struct step_plan *plan = building->plan;
	if (plan->zero == 3)
		send_gradients(building, STEP_DP, plan_end_parameters(plan, output).shared);
}

/* The embedding is cut by words. */
static void embed(struct building *building)
{
	fetch_end(building, false);
	scatter(building);
}

static void go_forward(struct building *building, const struct step_action *action)
{
	const struct step_plan *plan = building->plan;
	const struct plan_layers layers = plan_layers(plan, action->part);
	uint32_t began = building->last;
	if (action->part > 0)
		receive(building, action, action->part - 1);
	else
		embed(building);
	for (uint32_t i = layers.first; i < layers.first + layers.count; i++) {
		wait_for_parameters(building, i);
		fetch_layer(building, i, &began);
		forward_layer(building, i);
	}
	if (action->part < plan_parts(plan) - 1) {
		send(building, action, action->part + 1);
		return;
	}
	gather(building);
	fetch_end(building, true);
	compute(building, share(plan) * model_output_work(&plan->model));
	for (unsigned i = 0; i < 3; i++) /* the largest, the sum, and the one that was right */
		communicate(building, STEP_TP, "allreduce", 4 * tokens(plan));
}

static bool is_last(const struct step_plan *plan, const struct step_action *action)
{
	return action->micro_batch == plan_micro_batches(plan) - 1;
}

/* A layer's gradients are there. */
static void leave_layer(struct building *building, const struct step_action *action, uint32_t layer)
{
	const struct plan_parameters of = plan_layer_parameters(building->plan, layer);
	if (building->plan->zero == 3) {
		send_gradients(building, STEP_DP, of.shared);
		send_gradients(building, STEP_EXPERTS_DP, of.experts);
	} else if (building->plan->overlaps_gradients && is_last(building->plan, action)) {
		leave_gradients(building, layer);
	}
}

static void go_backward(struct building *building, const struct step_action *action)
{
	const struct step_plan *plan = building->plan;
	const struct plan_layers layers = plan_layers(plan, action->part);
	const double passes = plan->schedule == SCHEDULE_ZERO_BUBBLE ? 1 : 2;
	uint32_t began = building->last;
	if (action->part < plan_parts(plan) - 1) {
		receive(building, action, action->part + 1);
	} else {
		fetch_end(building, true);
		compute(building, passes * share(plan) * model_output_work(&plan->model));
		scatter(building);
		leave_end(building, true);
	}
	for (uint32_t i = layers.first + layers.count; i-- > layers.first;) {
		fetch_layer(building, i, &began);
		backward_layer(building, i, passes);
		if (passes == 2)
			leave_layer(building, action, i);
	}
	if (action->part > 0)
		send(building, action, action->part - 1);
	else
		leave_end(building, false);
}

static void find_weights(struct building *building, const struct step_action *action)
{
	const struct step_plan *plan = building->plan;
	const struct plan_layers layers = plan_layers(plan, action->part);
	double work = 0;
	for (uint32_t i = layers.first; i < layers.first + layers.count; i++)
		work += attention_work(plan) +
			share(plan) * model_ffn_work(&plan->model, model_layer_has_experts(&plan->model, i));
	if (action->part == plan_parts(plan) - 1)
		work += share(plan) * model_output_work(&plan->model);
	compute(building, work);
	for (uint32_t i = layers.first + layers.count; i-- > layers.first;)
		leave_layer(building, action, i);
}

/* ---- The step's end ---------------------------------------------------------------------------------------------- */

/* What comes after everything on the stream of data, too. */
static void wait_for_data(struct building *building)
{
	const struct step_program *program = building->program;
	for (uint32_t i = program->count; i-- > 0;)
		if (program->operations[i].stream == STREAM_DATA) {
			wait_also(building, i);
			return;
		}
}

static void end_step(struct building *building, uint32_t stage)
{
	const struct step_plan *plan = building->plan;
	const struct plan_parameters all = plan_stage_parameters(plan, stage);
	if (plan->zero == 3) {
		assert(building->gradients == 0); /* they have left */
	} else if (plan->overlaps_gradients) {
		send_gradients(building, STEP_DP, building->gradients + plan_ends_parameters(plan, stage).shared);
	} else {
		send_gradients(building, STEP_DP, all.shared);
		send_gradients(building, STEP_EXPERTS_DP, all.experts);
	}
	wait_for_data(building);
	if (plan->model.kind == MODEL_GPT && (stage == 0 || stage == plan->pp - 1))
		communicate(building, STEP_ENDS, "allreduce",
			(double)plan->gradient_bytes * plan->model.vocabulary * plan->model.hidden / plan->tp);
	communicate(building, STEP_ALL, "allreduce", 4); /* of the gradients' norm */
	if ((plan->zero == 1 || plan->zero == 2) && !plan->overlaps_parameters)
		gather_parameters(building, &all);
}

int program_make(const struct step_plan *plan, uint32_t stage, struct step_program *program)
{
	struct building building = { .plan = plan, .program = program, .last = STEP_NONE, .also = STEP_NONE };
	const uint32_t count = schedule_count(plan);
	struct step_action *actions = malloc(count * sizeof(*actions));
	*program = (struct step_program){ 0 };
	building.gathers = malloc(plan->model.layers * sizeof(*building.gathers));
	if (!actions || !building.gathers) {
		free(actions);
		free(building.gathers);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < plan->model.layers; i++)
		building.gathers[i] = STEP_NONE;
	if (gathers_first(plan))
		fetch_all(&building, stage);
	schedule_fill(plan, stage, actions);
	for (uint32_t i = 0; i < count; i++)
		switch (actions[i].pass) {
		case PASS_FORWARD:
			go_forward(&building, &actions[i]);
			break;
		case PASS_BACKWARD:
			go_backward(&building, &actions[i]);
			break;
		default:
			find_weights(&building, &actions[i]);
		}
	end_step(&building, stage);
	free(building.gathers);
	free(actions);
	return building.is_out_of_memory ? -ENOMEM : 0;
}

void program_free(struct step_program *program)
{
	free(program->operations);
	*program = (struct step_program){ 0 };
}
