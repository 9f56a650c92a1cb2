/* See plan_check.h. */
#include "steps/plan_check.h"
#include <stddef.h>
#include "net/why.h"
#include "steps/speeds.h"

enum { MOST_RANKS = 1 << 20, MOST_OPERATIONS = 1 << 25 };

/* Of a layer and micro-batch there are no more. */
#define OPERATIONS_A_LAYER 64

/* So that no sum of bytes or times wraps. */
#define MOST_PARAMETERS 1e16
#define MOST_BYTES      1e15 /* of a micro-batch's activations */
#define MOST_TIME       1e18 /* picoseconds of computing, eleven days */
#define LEAST_TIME      1e3

/* ---- Cures ------------------------------------------------------------------------------------------------------- */

struct cure {
	char text[48];
};

/* The divisors on both sides of a number that is none: "4 or 8". */
static struct cure divisors_beside(uint64_t of, uint64_t number)
{
	uint64_t below = 0, above = 0;
	struct cure cure = { "" };
	for (uint64_t d = 1; d * d <= of; d++)
		for (unsigned i = 0; of % d == 0 && i < 2; i++) {
			const uint64_t divisor = i ? of / d : d;
			if (divisor < number && divisor > below)
				below = divisor;
			if (divisor > number && (!above || divisor < above))
				above = divisor;
		}
	if (below && above)
		why_not(cure.text, sizeof(cure.text), "%llu or %llu", (unsigned long long)below,
			(unsigned long long)above);
	else
		why_not(cure.text, sizeof(cure.text), "%llu", (unsigned long long)(below ? below : above));
	return cure;
}

static uint64_t common(uint64_t a, uint64_t b)
{
	while (b) {
		const uint64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* ---- Checks ------------------------------------------------------------------------------------------------------ */

static int check_ranks(const struct step_plan *plan, char *why, unsigned why_size)
{
	const struct {
		const char *key;
		uint32_t value;
	} parts[] = { { "tp", plan->tp }, { "cp", plan->cp }, { "pp", plan->pp }, { "dp", plan->dp } };
	uint64_t ranks = 1;
	unsigned largest = 0;
	for (unsigned i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		ranks = ranks > MOST_RANKS ? ranks : ranks * parts[i].value;
		largest = parts[i].value > parts[largest].value ? i : largest;
	}
	if (ranks <= MOST_RANKS)
		return 0;
	return why_not(why, why_size, "%s: tp x cp x pp x dp is %u x %u x %u x %u, more than %u ranks: lower one",
		parts[largest].key, plan->tp, plan->cp, plan->pp, plan->dp, MOST_RANKS);
}

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
			return why_not(why, why_size, "%s: it is 0: write 1 or more", numbers[i].key);
	return check_ranks(plan, why, why_size);
}

static int check_shape(const struct model *model, char *why, unsigned why_size)
{
	const struct {
		const char *key;
		uint32_t value;
	} numbers[] = { { "layers", model->layers }, { "hidden", model->hidden }, { "heads", model->heads },
		{ "ffn", model->ffn }, { "vocabulary", model->vocabulary } };
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (!numbers[i].value)
			return why_not(why, why_size,
				"%s: it is missing: a model needs layers, hidden, heads, ffn and vocabulary, or a name "
				"that --models lists",
				numbers[i].key);
	if (!model->head_dim)
		return why_not(why, why_size, "head-dim: hidden %u is less than one for each of %u heads: lower heads",
			model->hidden, model->heads);
	if (!model->kv_heads || model->heads % model->kv_heads)
		return why_not(why, why_size,
			"kv-heads: %u does not divide the model's %u heads, and each of them needs keys and values: "
			"write %s",
			model->kv_heads, model->heads, divisors_beside(model->heads, model->kv_heads).text);
	if (model->layers * ((model->experts + 1.0) * 3 * model->hidden * model->ffn +
				    4.0 * model->hidden * model->heads * model->head_dim) >
		MOST_PARAMETERS)
		return why_not(why, why_size,
			"layers: a model of more than %g parameters: lower layers, hidden, ffn or experts",
			MOST_PARAMETERS);
	return 0;
}

static int check_tensors(const struct step_plan *plan, char *why, unsigned why_size)
{
	const struct model *model = &plan->model;
	const uint64_t widths = model->experts ? model->heads : common(model->heads, model->ffn);
	const uint32_t tokens = plan->sequence / plan->cp;
	const struct cure cure = divisors_beside(widths, plan->tp);
	if (model->heads % plan->tp)
		return why_not(why, why_size, "tp: %u does not divide the model's %u heads: write %s", plan->tp,
			model->heads, cure.text);
	if (widths % plan->tp)
		return why_not(why, why_size, "tp: %u does not divide the FFN's width of %u: write %s", plan->tp,
			model->ffn, cure.text);
	if (plan->is_sequence_parallel && tokens % plan->tp)
		return why_not(why, why_size,
			"tp: %u does not divide the %u tokens that a rank has of a sequence: write %s, or sp: no",
			plan->tp, tokens, divisors_beside(common(widths, tokens), plan->tp).text);
	return 0;
}

static int check_model(const struct step_plan *plan, char *why, unsigned why_size)
{
	int error = check_shape(&plan->model, why, why_size);
	if (error)
		return error;
	if (2.0 * plan->micro_batch * plan->sequence * plan->model.hidden > MOST_BYTES)
		return why_not(why, why_size,
			"micro-batch: its activations are more than %g bytes: lower micro-batch or sequence",
			MOST_BYTES);
	if (plan->sequence % plan->cp)
		return why_not(why, why_size, "cp: %u does not divide the sequence of %u: write %s", plan->cp,
			plan->sequence, divisors_beside(plan->sequence, plan->cp).text);
	return check_tensors(plan, why, why_size);
}

static int check_experts(const struct step_plan *plan, char *why, unsigned why_size)
{
	const uint32_t of_a_stage = plan->tp * plan->cp * plan->dp, experts = plan->model.experts;
	if (!experts)
		return plan->ep == 1 ? 0
				     : why_not(why, why_size,
					       "ep: it is %u, and the model has no experts: leave it out", plan->ep);
	const uint64_t both = common(experts, of_a_stage);
	if (plan->tp > 1 && !plan->is_sequence_parallel)
		return why_not(why, why_size, "sp: experts with tp %u need sp: yes, as in Megatron", plan->tp);
	if (experts % plan->ep)
		return why_not(why, why_size, "ep: %u does not divide the model's %u experts: write %s", plan->ep,
			experts, divisors_beside(both, plan->ep).text);
	if (of_a_stage % plan->ep)
		return why_not(why, why_size, "ep: %u does not divide tp x cp x dp, which is %u: write %s", plan->ep,
			of_a_stage, divisors_beside(both, plan->ep).text);
	return 0;
}

/* Parts that do not divide the layers: would embedding and output as layers help? */
static int refuse_parts(const struct step_plan *plan, uint32_t layers, char *why, unsigned why_size)
{
	const uint32_t parts = plan->pp * plan->chunks;
	const uint32_t other = plan->ends_count_as_layers ? layers - 2 : layers + 2;
	char cure[120];
	if (other % parts == 0)
		why_not(cure, sizeof(cure), "ends-count-as-layers: %s makes it %u",
			plan->ends_count_as_layers ? "no" : "yes", other);
	else if (layers % plan->chunks == 0)
		why_not(cure, sizeof(cure), "write %s", divisors_beside(layers / plan->chunks, plan->pp).text);
	else
		why_not(cure, sizeof(cure), "and vpp %u alone does not: write a vpp that does", plan->chunks);
	return why_not(why, why_size, "pp: pp x vpp is %u, which does not divide %u layers%s: %s", parts, layers,
		plan->ends_count_as_layers ? ", embedding and output included" : "", cure);
}

static int check_stages(const struct step_plan *plan, char *why, unsigned why_size)
{
	const uint32_t layers = plan->model.layers + (plan->ends_count_as_layers ? 2 : 0);
	const uint64_t parts = (uint64_t)plan->pp * plan->chunks;
	if (parts > plan->model.layers + 2)
		return why_not(why, why_size,
			"pp: pp x vpp is %llu, and there are %u layers to share out: lower pp or vpp",
			(unsigned long long)parts, layers);
	if (plan->chunks > 1 && plan->schedule != SCHEDULE_INTERLEAVED)
		return why_not(why, why_size, "vpp: it is %u: write schedule: interleaved", plan->chunks);
	if (plan->chunks > 1 && plan->pp == 1)
		return why_not(why, why_size, "vpp: it is %u, and there is one stage: raise pp", plan->chunks);
	return layers % parts ? refuse_parts(plan, layers, why, why_size) : 0;
}

static int check_batch(const struct step_plan *plan, char *why, unsigned why_size)
{
	const uint64_t each = (uint64_t)plan->micro_batch * plan->dp, batches = plan->batch / each;
	if (plan->batch % each)
		return why_not(why, why_size,
			"batch: micro-batch x dp is %llu, which does not divide the batch of %u: write %llu",
			(unsigned long long)each, plan->batch, (unsigned long long)(each * (batches + 1)));
	const double operations =
		(double)batches * (plan->model.layers + (double)plan->pp * plan->chunks) * OPERATIONS_A_LAYER;
	if (operations > MOST_OPERATIONS)
		return why_not(why, why_size,
			"batch: %llu micro-batches of %u layers are more operations than a run takes: raise "
			"micro-batch or dp, or lower batch",
			(unsigned long long)batches, plan->model.layers);
	if (plan->chunks > 1 && batches % plan->pp)
		return why_not(why, why_size,
			"batch: an interleaved schedule needs a multiple of pp %u as micro-batches, and there are "
			"%llu: write %llu",
			plan->pp, (unsigned long long)batches,
			(unsigned long long)(each * (batches / plan->pp + 1) * plan->pp));
	return 0;
}

static int check_rest(const struct step_plan *plan, char *why, unsigned why_size)
{
	if (plan->zero > 3)
		return why_not(why, why_size, "zero: it is %u: write 0 to 3", plan->zero);
	if (plan->gradient_bytes != 2 && plan->gradient_bytes != 4)
		return why_not(why, why_size, "gradient-bytes: it is %u: write 2 or 4", plan->gradient_bytes);
	if (!(plan->tflops > 0) || !(plan->mfu > 0) || plan->mfu > 1)
		return why_not(why, why_size, "mfu: it is above 0 and at most 1, of a GPU's peak above 0");
	return 0;
}

static double largest_factor(const struct step_plan *plan)
{
	double largest = 0;
	for (unsigned i = 0; i < STEP_WORKS; i++)
		for (unsigned k = 0; k < 2; k++)
			largest = plan->factors[i][k] > largest ? plan->factors[i][k] : largest;
	return largest > 0 ? largest : 1;
}

static int check_time(const struct step_plan *plan, char *why, unsigned why_size)
{
	const double time = plan_work(plan) / plan_ranks(plan) / (plan->tflops * plan->mfu) * largest_factor(plan) *
			    speeds_most(plan);
	if (time > MOST_TIME)
		return why_not(why, why_size,
			"batch: each rank computes for %.3g days: raise its speed or ranks, or lower batch",
			time / MOST_TIME * 11.574);
	return time >= LEAST_TIME ? 0
				  : why_not(why, why_size, "batch: a step of less than a nanosecond is none: raise it");
}

int plan_check(const struct step_plan *plan, char *why, unsigned why_size)
{
	static int (*const checks[])(const struct step_plan *, char *, unsigned) = { check_numbers, check_model,
		check_experts, check_stages, check_batch, check_rest, check_time };
	int error = 0;
	for (unsigned i = 0; i < sizeof(checks) / sizeof(*checks) && !error; i++)
		error = checks[i](plan, why, why_size);
	return error;
}
