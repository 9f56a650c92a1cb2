/* See program.h. Sizes and counts are those of Megatron-LM, and of the papers that plan.h and model.h name. */
#include "steps/program.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/invariant.h"
#include "steps/building.h"
#include "steps/layers.h"

uint32_t program_tags(const struct step_plan *plan)
{
	return 2 * plan_micro_batches(plan) * plan_parts(plan);
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
		.bytes = (uint64_t)(layer_activations(plan) / plan->tp + 0.5),
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
		communicate(building, STEP_TP, "all-gather", layer_activations(building->plan));
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
	layer_scatter(building);
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
		layer_forward(building, i);
	}
	if (action->part < plan_parts(plan) - 1) {
		send(building, action, action->part + 1);
		return;
	}
	layer_gather(building);
	fetch_end(building, true);
	compute(building, layer_timed_work(plan, WORK_OUTPUT, PASS_FORWARD));
	for (unsigned i = 0; i < 3; i++) /* the largest, the sum, and the one that was right */
		communicate(building, STEP_TP, "allreduce", 4 * layer_tokens(plan));
}

static bool is_last(const struct step_plan *plan, const struct step_action *action)
{
	return action->micro_batch == plan_micro_batches(plan) - 1;
}

/* ZeRO-2 keeps no whole gradients, so they leave in each micro-batch; of ZeRO-0 and 1 they add up until the last. */
static bool gradients_leave(const struct step_plan *plan, const struct step_action *action)
{
	return plan->zero == 2 || is_last(plan, action);
}

/* A layer's gradients are there. */
static void leave_layer(struct building *building, const struct step_action *action, uint32_t layer)
{
	const struct plan_parameters of = plan_layer_parameters(building->plan, layer);
	if (building->plan->zero == 3) {
		send_gradients(building, STEP_DP, of.shared);
		send_gradients(building, STEP_EXPERTS_DP, of.experts);
	} else if (building->plan->overlaps_gradients && gradients_leave(building->plan, action)) {
		leave_gradients(building, layer);
	}
}

/* ZeRO-2: what has not left yet of a micro-batch's part; without overlap all of it, and what comes next waits. */
static void leave_part(struct building *building, const struct step_action *action)
{
	const struct step_plan *plan = building->plan;
	struct plan_parameters rest = { .shared = building->gradients };
	if (plan->zero != 2)
		return;
	building->gradients = 0;
	if (!plan->overlaps_gradients)
		rest = plan_part_parameters(plan, action->part);
	else
		rest.shared += plan_part_ends(plan, action->part).shared;
	send_gradients(building, STEP_DP, rest.shared);
	send_gradients(building, STEP_EXPERTS_DP, rest.experts);
	if (!plan->overlaps_gradients)
		wait_also(building, building->data);
}

static void go_backward(struct building *building, const struct step_action *action)
{
	const struct step_plan *plan = building->plan;
	const struct plan_layers layers = plan_layers(plan, action->part);
	const unsigned passes = plan->schedule == SCHEDULE_ZERO_BUBBLE ? 1 : 2;
	uint32_t began = building->last;
	if (action->part < plan_parts(plan) - 1) {
		receive(building, action, action->part + 1);
	} else {
		fetch_end(building, true);
		layer_column_back(building, layer_timed_work(plan, WORK_OUTPUT, PASS_BACKWARD), passes);
		leave_end(building, true);
	}
	for (uint32_t i = layers.first + layers.count; i-- > layers.first;) {
		fetch_layer(building, i, &began);
		layer_backward(building, i, passes);
		if (passes == 2)
			leave_layer(building, action, i);
	}
	if (action->part > 0)
		send(building, action, action->part - 1);
	else
		leave_end(building, false);
	if (passes == 2)
		leave_part(building, action);
}

static void find_weights(struct building *building, const struct step_action *action)
{
	const struct step_plan *plan = building->plan;
	const struct plan_layers layers = plan_layers(plan, action->part);
	double work = 0;
	for (uint32_t i = layers.first; i < layers.first + layers.count; i++)
		work += layer_weights_work(plan, i);
	if (action->part == plan_parts(plan) - 1)
		work += layer_timed_work(plan, WORK_OUTPUT, PASS_BACKWARD);
	compute(building, work);
	for (uint32_t i = layers.first + layers.count; i-- > layers.first;)
		leave_layer(building, action, i);
	leave_part(building, action);
}

/* ---- The step's end ---------------------------------------------------------------------------------------------- */

static void end_step(struct building *building, uint32_t stage)
{
	const struct step_plan *plan = building->plan;
	const struct plan_parameters all = plan_stage_parameters(plan, stage);
	if (plan->zero >= 2) {
		assert(building->gradients == 0); /* they have left */
	} else if (plan->overlaps_gradients) {
		send_gradients(building, STEP_DP, building->gradients + plan_ends_parameters(plan, stage).shared);
	} else {
		send_gradients(building, STEP_DP, all.shared);
		send_gradients(building, STEP_EXPERTS_DP, all.experts);
	}
	wait_also(building, building->data);
	if (plan->model.kind == MODEL_GPT && (stage == 0 || stage == plan->pp - 1))
		communicate(building, STEP_ENDS, "allreduce",
			(double)plan->gradient_bytes * plan->model.vocabulary * plan->model.hidden / plan->tp);
	communicate(building, STEP_ALL, "allreduce", 4); /* of the gradients' norm */
	if ((plan->zero == 1 || plan->zero == 2) && !plan->overlaps_parameters)
		gather_parameters(building, &all);
}

int program_make(const struct step_plan *plan, uint32_t stage, struct step_program *program)
{
	struct building building = {
		.plan = plan, .program = program, .last = STEP_NONE, .also = STEP_NONE, .data = STEP_NONE
	};
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
