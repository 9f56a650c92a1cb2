/* Memory, cuts, and what is refused. */
#include "steps/plan_check.h"
#include <errno.h>
#include <math.h>
#include <string.h>
#include "plans.h"
#include "../unit.h"

static void expect_near(double is, double wanted, double tolerance)
{
	if (fabs(is / wanted - 1) > tolerance)
		fail_msg("%.4g instead of %.4g", is, wanted);
}

/* Llama 3 70B on 1,024 H100: with a distributed optimizer it fits into 80 GB, without it does not. */
static void memory__decides_what_fits(void **state)
{
	char why[200];
	struct step_plan plan = plan_of("llama3-70b", 8, 1, 128, 1024);
	assert_int_equal(plan_check(&plan, why, sizeof(why)), 0);
	expect_near(plan_memory(&plan).state, 53.7e9, 0.002);
	expect_near(plan_memory(&plan).activations, 21.5e9, 0.002);
	expect_near(plan_memory(&plan).sum, 75.8e9, 0.002);
	plan.zero = 0;
	expect_near(plan_memory(&plan).state, 158.7e9, 0.002);
	plan.zero = 3;
	assert_true(plan_memory(&plan).state < 3e9);
	plan.zero = 1;
	plan.recompute = RECOMPUTE_FULL;
	expect_near(plan_memory(&plan).activations, 80.0 * 8192 * 8192 * 2 / 8, 0.001);
}

/* Llama 3 405B as its paper cut it: a layer less at each end. */
static void layers__are_cut_into_parts(void **state)
{
	char why[200];
	uint32_t sum = 0;
	struct step_plan plan = plan_of("llama3-405b", 8, 16, 64, 2048);
	plan.schedule = SCHEDULE_INTERLEAVED;
	plan.chunks = 8;
	assert_int_equal(plan_check(&plan, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "ends-count-as-layers: yes"));
	plan.ends_count_as_layers = true;
	assert_int_equal(plan_check(&plan, why, sizeof(why)), 0);
	assert_int_equal(plan_micro_batches(&plan), 32);
	for (uint32_t part = 0; part < 128; part++) {
		const struct plan_layers layers = plan_layers(&plan, part);
		assert_int_equal(layers.count, part > 0 && part < 127);
		assert_int_equal(layers.count ? layers.first : sum, sum);
		sum += layers.count;
	}
	assert_int_equal(sum, 126);
	expect_near(plan_memory(&plan).sum, 93e9, 0.01);
	expect_near(plan_bubble(&plan), 15.0 / (8 * 32), 1e-9);
}

/* All parameters are on some rank. */
static void parameters__are_shared_out(void **state)
{
	static const char *const names[] = { "llama3-70b", "gpt3-175b", "mixtral-8x7b", "deepseek-v3" };
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct step_plan plan = plan_of(names[i], 1, 1, 16, 256);
		plan.ep = plan.model.experts ? 8 : 1;
		const struct plan_parameters of = plan_stage_parameters(&plan, 0);
		const double last_norm = plan.model.kind == MODEL_GPT ? 0 : plan.model.hidden;
		expect_near(of.shared + of.experts * plan.ep + last_norm, (double)model_parameters(&plan.model), 1e-12);
		assert_int_equal(of.experts > 0, plan.model.experts > 0);
	}
}

/* GPT's last stage has the embedding's words once more; Llama's has its own output. */
static void tied_embedding__is_at_both_ends(void **state)
{
	struct step_plan plan = plan_of("gpt3-175b", 8, 4, 1, 8);
	const double words = 50257.0 * 12288 / 8, layers = plan_stage_parameters(&plan, 1).shared;
	expect_near(plan_stage_parameters(&plan, 3).shared, layers + words, 1e-12);
	expect_near(plan_stage_parameters(&plan, 0).shared, layers + words + 2048.0 * 12288 / 8, 1e-12);
	plan.pp = 1;
	expect_near(plan_stage_parameters(&plan, 0).shared, 4 * layers + words + 2048.0 * 12288 / 8, 1e-12);
}

/* Latent attention's compressing matrices are of all heads: each tensor parallel rank has them whole. */
static void compressing_matrices__are_whole(void **state)
{
	const struct step_plan one = plan_of("deepseek-v3", 1, 1, 1, 1), eight = plan_of("deepseek-v3", 8, 1, 1, 1);
	const double whole = 7168.0 * (1536 + 512 + 64) + 1536 + 512;
	expect_near(plan_layer_parameters(&eight, 0).shared,
		(plan_layer_parameters(&one, 0).shared - whole) / 8 + whole, 1e-12);
}

static void wrong_plans__name_the_key(void **state)
{
	static const struct {
		const char *model;
		struct step_plan change;
		const char *says;
	} wrong[] = {
		{ "llama3-70b", { .tp = 3 }, "tp: 3 does not divide the model's 64 heads: write 2 or 4" },
		{ "llama3-70b", { .cp = 3 }, "cp: 3 does not divide the sequence of 8192: write 2 or 4" },
		{ "llama3-70b", { .pp = 7 }, "pp: pp x vpp is 7, which does not divide 80 layers: write 5 or 8" },
		{ "llama3-70b", { .chunks = 2 }, "vpp: it is 2: write schedule: interleaved" },
		{ "llama3-70b", { .pp = 2, .chunks = 2, .schedule = SCHEDULE_INTERLEAVED, .batch = 3 * 128 },
			"batch: an interleaved schedule needs a multiple of pp 2 as micro-batches, and there are 3: "
			"write 512" },
		{ "llama3-70b", { .batch = 100 },
			"batch: micro-batch x dp is 128, which does not divide the batch of 100: write 128" },
		{ "llama3-70b", { .ep = 2 }, "ep: it is 2, and the model has no experts: leave it out" },
		{ "mixtral-8x7b", { .ep = 3 }, "ep: 3 does not divide the model's 8 experts: write 2 or 4" },
		{ "mixtral-8x7b", { .ep = 8, .dp = 12, .batch = 12, .tp = 1 },
			"ep: 8 does not divide tp x cp x dp, which is 12: write 4" },
		{ "llama3-70b", { .dp = 1u << 31 }, "dp: tp x cp x pp x dp is" },
		{ "llama3-70b", { .mfu = 1.5 }, "mfu: it is above 0 and at most 1" },
		{ "llama3-70b", { .zero = 4 }, "zero: it is 4: write 0 to 3" },
		{ "llama3-70b", { .gradient_bytes = 3 }, "gradient-bytes: it is 3: write 2 or 4" },
	};
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		const struct step_plan *change = &wrong[i].change;
		struct step_plan plan = plan_of(wrong[i].model, 8, 1, 128, 1024);
		char why[200] = "";
#define TAKE(key) plan.key = change->key ? change->key : plan.key
		TAKE(tp);
		TAKE(cp);
		TAKE(pp);
		TAKE(dp);
		TAKE(ep);
		TAKE(chunks);
		TAKE(schedule);
		TAKE(batch);
		TAKE(mfu);
		TAKE(zero);
		TAKE(gradient_bytes);
#undef TAKE
		assert_int_equal(plan_check(&plan, why, sizeof(why)), -EINVAL);
		if (strncmp(why, wrong[i].says, strlen(wrong[i].says)) != 0)
			fail_msg("case %u: %s", i, why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory__decides_what_fits),
		cmocka_unit_test(layers__are_cut_into_parts),
		cmocka_unit_test(parameters__are_shared_out),
		cmocka_unit_test(tied_embedding__is_at_both_ends),
		cmocka_unit_test(compressing_matrices__are_whole),
		cmocka_unit_test(wrong_plans__name_the_key),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
