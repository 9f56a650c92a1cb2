/* Steps beside the closed forms of the papers. */
#include "steps/timing.h"
#include <math.h>
#include "steps/plan_check.h"
#include "plans.h"
#include "../unit.h"

static struct step_way way_of(double alpha, double rate)
{
	return (struct step_way){ .link = { alpha, rate }, .near = { alpha, rate } };
}

static struct step_way boundaries[64];

static void set_boundaries(double alpha, double rate)
{
	for (unsigned i = 0; i < sizeof(boundaries) / sizeof(*boundaries); i++)
		boundaries[i] = way_of(alpha, rate);
}

static struct step_network network_of(double tp, double others, double alpha)
{
	struct step_network network = { .boundaries = boundaries };
	for (unsigned i = 0; i < STEP_DIMENSIONS; i++)
		network.ways[i] = way_of(alpha, i == STEP_TP ? tp : others);
	set_boundaries(alpha, others);
	return network;
}

static const double fast = 1e21; /* bytes a second */

static void expect_near(const char *what, double is, double wanted, double tolerance)
{
	if (fabs(is - wanted) > tolerance * fabs(wanted))
		fail_msg("%s: %.6g instead of %.6g", what, is, wanted);
}

static struct step_times run(const struct step_plan *plan, const struct step_network *network)
{
	struct step_times times;
	char why[200];
	if (plan_check(plan, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(timing_run(plan, network, &times), 0);
	double sum = times.compute + times.bubble;
	for (unsigned i = 0; i < STEP_DIMENSIONS; i++)
		sum += times.exposed[i];
	expect_near("the sum", sum, (double)times.step, 1e-9);
	return times;
}

/* A model whose last stage is as long as the others, nearly. */
static struct step_plan even_plan(uint32_t pp, uint32_t batch)
{
	struct step_plan plan = plan_of("llama3-70b", 1, pp, 1, batch);
	plan.model.vocabulary = 1;
	plan.recompute = RECOMPUTE_FULL;
	return plan;
}

/* arXiv 2104.04473, section 2.2: (m + p - 1)(tf + tb), and with v chunks a bubble of (p - 1)/v of these. */
static void bubble__is_that_of_the_papers(void **state)
{
	const struct step_network network = network_of(fast, fast, 0);
	static const struct {
		uint32_t pp, batch, chunks;
	} cases[] = { { 1, 8, 1 }, { 4, 8, 1 }, { 8, 8, 1 }, { 8, 3, 1 }, { 16, 64, 1 }, { 4, 8, 2 }, { 8, 64, 5 },
		{ 8, 8, 10 }, { 2, 4, 4 } };
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct step_plan plan = even_plan(cases[i].pp, cases[i].batch);
		plan.chunks = cases[i].chunks;
		plan.schedule = plan.chunks > 1 ? SCHEDULE_INTERLEAVED : SCHEDULE_1F1B;
		const struct step_times times = run(&plan, &network);
		expect_near("bubble over compute", times.bubble / times.compute, plan_bubble(&plan), 1e-3);
	}
}

/* ZB-H1 (arXiv 2401.10241, table 2): (p - 1)(F + B - W), which is a third of 1F1B's with passes of equal length. Scores
 * have no weights: B has twice their work, and W nothing of it. */
static void zero_bubble__is_that_of_its_paper(void **state)
{
	const struct step_network network = network_of(fast, fast, 0);
	struct step_plan plan = even_plan(8, 32);
	plan.recompute = RECOMPUTE_NONE;
	plan.schedule = SCHEDULE_ZERO_BUBBLE;
	const struct step_times times = run(&plan, &network);
	expect_near("bubble", times.bubble / times.compute, plan_bubble(&plan), 2e-3);
	const double scores = 8192.0 * 64 * 256;
	const double matrices = model_attention_work(&plan.model) + model_ffn_work(&plan.model, false);
	expect_near(
		"its form", plan_bubble(&plan), 7.0 / 32 * (matrices + 3 * scores) / (3 * (matrices + scores)), 1e-6);
}

/* Worked by hand: Llama 3 70B, tp 8 with sequence parallelism, ZeRO-1, 16 micro-batches of 8,192 tokens, H100 at 0.6,
 * 450 GB/s in a host and 50 GB/s beyond. A layer moves 10 x 7/8 A within the host, of which 4 hide behind the gradients
 * of inputs and of weights. The rule 6 P T (1 + s a d L / P), which counts the input's embedding as work, gives 12.58 s
 * of computing. */
static void llama_70b__is_as_worked_by_hand(void **state)
{
	const struct step_network network = network_of(450e9, 50e9, 0);
	struct step_plan plan = plan_of("llama3-70b", 8, 1, 128, 16 * 128);
	plan.recompute = RECOMPUTE_NONE;
	const struct step_times times = run(&plan, &network);
	const double second = VB_S, a = 2.0 * 8192 * 8192;
	const double ends = 4 * a + 3 * 2 * 4 * 8192.0; /* embedding, output; the loss is a ring's allreduces */
	const double embedding = 6 * 16 * 8192.0 * 128256 * 8192 / 8 / (989e12 * 0.6);
	expect_near("compute", times.compute / second + embedding, 12.58, 0.001);
	expect_near("work", plan_work(&plan) / (1024 * 989e12 * 0.6), times.compute / second, 1e-6);
	expect_near("tensor", times.bytes[STEP_TP], 16 * 7.0 / 8 * (80 * 10 * a + ends), 1e-4);
	expect_near("tensor's time", times.exposed[STEP_TP] / second, 16 * 7.0 / 8 * (80 * 6 + 2) * a / 450e9, 0.001);
	expect_near("data", times.exposed[STEP_DP] / second, 1.05, 0.005);
	expect_near("step", (double)times.step / second + embedding, 15.65, 0.002);
	assert_true(times.bubble < 1e-6 * (double)times.step);
}

/* Gradients of all but the first layer's bucket hide behind the last backward pass, parameters behind the first forward
 * one. */
static void overlap__hides_what_it_may(void **state)
{
	const struct step_network network = network_of(450e9, 50e9, 0);
	struct step_plan plan = plan_of("llama3-70b", 8, 1, 128, 16 * 128);
	const struct step_times plain = run(&plan, &network);
	plan.overlaps_gradients = true;
	const struct step_times gradients = run(&plan, &network);
	plan.overlaps_parameters = true;
	const struct step_times both = run(&plan, &network);
	assert_true(gradients.step < plain.step && both.step < gradients.step);
	for (unsigned i = 0; i < STEP_DIMENSIONS; i++)
		expect_near("bytes", both.bytes[i], plain.bytes[i], 1e-6);
	expect_near("compute", both.compute, plain.compute, 1e-9);
	/* Nothing can be faster than its computing and its tensor-parallel communication. */
	assert_true((double)both.step >= both.compute + both.exposed[STEP_TP]);
}

/* 2 (n-1)/n of the gradients of ZeRO-0 are what ZeRO-1 sends in two parts; ZeRO-2 sends gradients in each micro-batch
 * (DeepSpeed's stage 2), and ZeRO-3 parameters twice, too. */
static void zero__moves_what_it_says(void **state)
{
	const struct step_network network = network_of(450e9, 50e9, 1e6);
	struct step_plan plan = plan_of("llama3-8b", 1, 1, 64, 128);
	const double n = 63.0 / 64, all = plan_stage_parameters(&plan, 0).shared;
	const double ends = (double)(model_embedding_parameters(&plan.model, false) +
				     model_embedding_parameters(&plan.model, true));
	plan.zero = 0;
	expect_near("ZeRO-0", run(&plan, &network).bytes[STEP_DP], 2 * n * 4 * all, 1e-6);
	plan.zero = 1;
	expect_near("ZeRO-1", run(&plan, &network).bytes[STEP_DP], n * (4 + 2) * all, 1e-6);
	for (unsigned overlaps = 0; overlaps < 2; overlaps++) {
		plan.zero = 2;
		plan.overlaps_gradients = overlaps;
		expect_near("ZeRO-2", run(&plan, &network).bytes[STEP_DP], n * (2 * 4 + 2) * all, 1e-6);
	}
	plan.overlaps_gradients = false;
	plan.zero = 3;
	/* The input's embedding needs no parameters backward. */
	expect_near("ZeRO-3", run(&plan, &network).bytes[STEP_DP], n * 2 * ((2 + 2 + 4) * all - 2 * ends / 2), 1e-6);
}

/* A rank sends what the tables say: a share of its activations to each expert's rank, forward and backward, twice. */
static void experts__exchange_tokens(void **state)
{
	const struct step_network network = network_of(450e9, 50e9, 0);
	struct step_plan plan = plan_of("qwen3-30b-a3b", 1, 1, 16, 32);
	plan.ep = 8;
	const double a = 2.0 * plan.sequence * plan.model.hidden, layers = plan.model.layers, batches = 2;
	expect_near("all-to-all", run(&plan, &network).bytes[STEP_EP], batches * layers * 4 * 7.0 / 8 * a * 8, 1e-6);
	plan.dispatcher = DISPATCH_ALL_GATHER;
	expect_near("all-gather", run(&plan, &network).bytes[STEP_EP], batches * layers * 4 * 7.0 / 8 * a * 8, 1e-6);
}

/* GPT's words are in the first and the last stage, which add up their gradients. */
static void tied_embedding__is_added_up(void **state)
{
	const struct step_network network = network_of(450e9, 50e9, 0);
	struct step_plan plan = plan_of("gpt-13b", 8, 4, 2, 16);
	expect_near("bytes", run(&plan, &network).bytes[STEP_ENDS], 2.0 / 4 * 4 * 50257 * 5120 / 8, 1e-6);
	plan.pp = 1;
	assert_true(run(&plan, &network).bytes[STEP_ENDS] == 0);
}

/* Keys and values go round once forward, and backward again with their gradients. Only scores hide them, but for those
 * of the last block. */
static void ring__hides_behind_scores(void **state)
{
	struct step_network network = network_of(fast, fast, 0);
	struct step_plan plan = plan_of("llama3-8b", 1, 1, 1, 1);
	plan.cp = 4;
	plan.context = CONTEXT_RING;
	plan.recompute = RECOMPUTE_NONE;
	const vb_time without = run(&plan, &network).step;
	const double kv = 2 * 8192.0 * 2 * 8 * 128 * 3 / 4, flops = 989e12 * 0.6;
	const double scores = 8192.0 / 4 * model_score_work(&plan.model, 8192, true) * 3 / 4 / flops;
	network.ways[STEP_CP] =
		way_of(0, kv / scores); /* forward all of it hides, and as many bytes as work backward */
	struct step_times times = run(&plan, &network);
	expect_near("bytes", times.bytes[STEP_CP], 32 * 3 * kv, 1e-6);
	expect_near("hidden", (double)times.step, (double)without, 1e-6);
	network.ways[STEP_CP] = way_of(0, kv / scores / 2);
	times = run(&plan, &network);
	expect_near("exposed", times.exposed[STEP_CP] / VB_S, 32 * 3 * scores, 1e-4);
}

/* Activations cross each boundary once each way; a message's way is exposed where nothing else is to be done. */
static void pipeline__sends_activations(void **state)
{
	const struct step_network network = network_of(fast, fast, 0);
	struct step_plan plan = even_plan(4, 16);
	const vb_time without = run(&plan, &network).step;
	set_boundaries(1e9, 50e9);
	const struct step_times times = run(&plan, &network);
	const double a = 2.0 * 8192 * 8192;
	expect_near("bytes", times.bytes[STEP_PP], 16 * a * 3 * 2 / 4, 1e-9);
	assert_true(times.exposed[STEP_PP] > 0);
	assert_true(times.step > without);
	/* First forward and last backward pass along the pipeline. */
	assert_true((double)(times.step - without) >= 2 * 3 * (1e9 + a / 50e9 * VB_S) * 0.999);
}

/* Of three boundaries the one that is slow counts, for what crosses it. */
static void boundaries__have_their_own_ways(void **state)
{
	const struct step_network network = network_of(fast, fast, 0);
	struct step_plan plan = even_plan(4, 16);
	const vb_time without = run(&plan, &network).step;
	const double message = 1e9 + 2.0 * 8192 * 8192 / 50e9 * VB_S;
	boundaries[3] = way_of(1e9, 50e9); /* from the last stage to the first nothing goes */
	assert_int_equal(run(&plan, &network).step, without);
	boundaries[1] = way_of(1e9, 50e9);
	const double one = (double)(run(&plan, &network).step - without);
	set_boundaries(1e9, 50e9);
	const double all = (double)(run(&plan, &network).step - without);
	assert_true(one >= 2 * message * 0.999 && all >= 6 * message * 0.999);
	if (one >= 0.7 * all)
		fail_msg("%g of %g", one, all);
}

/* A ring over hosts of eight: its latency is the sum along the way, and its rate the slowest link's. */
static void rings__have_steps_of_two_kinds(void **state)
{
	struct step_network network = network_of(fast, fast, 0);
	struct step_plan plan = plan_of("llama3-8b", 1, 1, 64, 64);
	const vb_time without = run(&plan, &network).step;
	network.ways[STEP_DP] = (struct step_way){ { 1e6, 50e9 }, { 1e5, fast }, 7.0 / 8, 1, true };
	const double gradients = 4 * plan_stage_parameters(&plan, 0).shared, steps = 63;
	/* Of 63 steps 55 stay in hosts. The slowest link sends all of a rank's bytes, and that takes longer than the
	 * way. */
	expect_near("rate", (double)(run(&plan, &network).step - without),
		2 * 1e6 + (gradients + gradients / 2) * steps / 64 / 50e9 * VB_S, 1e-4);
	network.ways[STEP_DP].link.bytes_a_second = fast;
	expect_near("latency", (double)(run(&plan, &network).step - without), 2 * (8 * 1e6 + 55 * 1e5), 1e-3);
}

/* Two steps at once: their gradients share one limit and take twice as long, from when both have computed. */
static void steps__share_one_network(void **state)
{
	const struct step_plan plan = plan_of("llama3-8b", 1, 1, 8, 8);
	struct max_min_hop hop = { 0, MAX_MIN_WHOLE };
	struct step_load classes[2 * STEP_CLASSES] = { 0 };
	uint64_t limit = 50000000000;
	struct step_loads loads = {
		.classes = classes, .class_count = COUNT_OF(classes), .limits = &limit, .limit_count = 1
	};
	classes[STEP_DP] = classes[STEP_CLASSES + STEP_DP] = (struct step_load){ .hops = &hop, .hop_count = 1 };
	assert_int_equal(step_loads_finish(&loads), 0);
	struct step_network network = network_of(fast, 50e9, 0), second;
	network.loads = &loads;
	second = network;
	second.lanes = &(struct step_lanes){ .count = 1, .first_class = STEP_CLASSES };
	struct timing_step steps[] = { { .plan = &plan, .network = &network }, { .plan = &plan, .network = &second } };
	const struct step_times alone = run(&plan, &network);
	assert_int_equal(timing_run_all(steps, 2), 0);
	for (unsigned i = 0; i < 2; i++) {
		expect_near("computing", steps[i].times.compute, alone.compute, 1e-9);
		expect_near("gradients", steps[i].times.exposed[STEP_DP], 2 * alone.exposed[STEP_DP], 1e-6);
	}
	/* One that computes much longer meets nothing: the other has sent all by then. */
	struct step_plan slow = plan;
	slow.mfu = 0.001;
	steps[1].plan = &slow;
	const struct step_times slow_alone = run(&slow, &second);
	assert_int_equal(timing_run_all(steps, 2), 0);
	assert_int_equal(steps[0].times.step, alone.step);
	assert_int_equal(steps[1].times.step, slow_alone.step);
}

/* Limits 1 and 2 are slow; limit 0 takes no time. */
struct lane_rates {
	uint32_t forward, backward; /* limits of the messages between the two stages */
};

static vb_time run_lanes(const struct step_plan *plan, const struct lane_rates *rates, uint32_t count)
{
	struct max_min_hop hops[] = { { 0, MAX_MIN_WHOLE }, { 1, MAX_MIN_WHOLE }, { 2, MAX_MIN_WHOLE } };
	struct step_load classes[2 * 2 * STEP_CLASSES] = { 0 };
	uint64_t limits[] = { 50000000000000, 500000000, 500000000 };
	struct step_loads loads = {
		.classes = classes, .class_count = COUNT_OF(classes), .limits = limits, .limit_count = 3
	};
	struct step_lanes lanes = { .count = count, .unit = 1, .units = count, .sizes = { 1, 1 } };
	for (uint32_t i = 0; i < count; i++) { /* of two stages each is the next of the other */
		classes[i * STEP_CLASSES + STEP_PP] =
			(struct step_load){ .hops = &hops[rates[i].forward], .hop_count = 1 };
		classes[(count + i) * STEP_CLASSES + STEP_PP] =
			(struct step_load){ .hops = &hops[rates[i].backward], .hop_count = 1 };
	}
	assert_int_equal(step_loads_finish(&loads), 0);
	struct step_network network = network_of(fast, 50e9, 0);
	network.loads = &loads;
	network.lanes = &lanes;
	return run(plan, &network).step;
}

/* A lane whose forward messages are slow, and one whose backward messages are: their step takes as long as the longer
 * of both, and not as long as one that has both. Gradients begin when both are there. */
static void lanes__are_not_held_up_by_each_other(void **state)
{
	struct step_plan plan = even_plan(2, 16);
	plan.dp = 2;
	const struct lane_rates mixed[] = { { 1, 0 }, { 0, 2 } }, forward = { 1, 0 }, backward = { 0, 2 },
				both = { 1, 2 }, none = { 0, 0 };
	const vb_time one = run_lanes(&plan, &forward, 1), other = run_lanes(&plan, &backward, 1);
	assert_true(run_lanes(&plan, &none, 1) < (one < other ? one : other));
	assert_true(run_lanes(&plan, &both, 1) > (one > other ? one : other) * 201 / 200);
	assert_int_equal(run_lanes(&plan, mixed, 2), one > other ? one : other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bubble__is_that_of_the_papers),
		cmocka_unit_test(zero_bubble__is_that_of_its_paper),
		cmocka_unit_test(llama_70b__is_as_worked_by_hand),
		cmocka_unit_test(overlap__hides_what_it_may),
		cmocka_unit_test(zero__moves_what_it_says),
		cmocka_unit_test(experts__exchange_tokens),
		cmocka_unit_test(tied_embedding__is_added_up),
		cmocka_unit_test(ring__hides_behind_scores),
		cmocka_unit_test(pipeline__sends_activations),
		cmocka_unit_test(boundaries__have_their_own_ways),
		cmocka_unit_test(rings__have_steps_of_two_kinds),
		cmocka_unit_test(steps__share_one_network),
		cmocka_unit_test(lanes__are_not_held_up_by_each_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
