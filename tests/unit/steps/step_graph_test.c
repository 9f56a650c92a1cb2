/* Programs as a graph: whose rank is with whom, for every way to cut a model. */
#include "steps/step_graph.h"
#include <string.h>
#include "steps/plan_check.h"
#include "plans.h"
#include "../unit.h"

static struct job_file file;

static int teardown(void **state)
{
	job_file_free(&file);
	return 0;
}

static void make(const struct step_plan *plan)
{
	char why[200] = "";
	uint64_t operations, bytes;
	file = (struct job_file){ 0 };
	if (plan_check(plan, why, sizeof(why)) || step_graph_make(&plan, 1, &file, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(step_graph_size(plan, &operations, &bytes), 0);
	assert_int_equal(operations, file.graph.count);
}

static void places__are_ranks_in_both_orders(void **state)
{
	struct step_plan plan = plan_of("llama3-8b", 2, 4, 3, 12);
	plan.cp = 2;
	for (uint32_t order = ORDER_TP_CP_DP_PP; order <= ORDER_TP_CP_PP_DP; order++) {
		plan.order = (uint8_t)order;
		for (uint32_t rank = 0; rank < 48; rank++) {
			uint32_t stage;
			const uint32_t place = plan_place(&plan, rank, &stage);
			assert_int_equal(plan_rank(&plan, place, stage), rank);
		}
	}
	/* The rank behind the first replica's first stage: of the next replica, or of the next stage. */
	assert_int_equal(plan_rank(&plan, 0, 1), 4);
	plan.order = ORDER_TP_CP_DP_PP;
	assert_int_equal(plan_rank(&plan, 4, 0), 4);
	assert_int_equal(plan_rank(&plan, 0, 1), 12);
}

static bool has_group(const uint32_t *ranks, uint32_t count)
{
	for (uint32_t i = 0; i < file.graph.group_count; i++) {
		const struct graph_group *group = &file.graph.groups[i];
		if (group->count == count && group->ranks && memcmp(group->ranks, ranks, count * sizeof(*ranks)) == 0)
			return true;
	}
	return false;
}

/* tp 2, cp 2, dp 2, pp 2: 16 ranks; experts over 4 of a stage's 8. */
static void groups__have_their_ranks(void **state)
{
	struct step_plan plan = plan_of("mixtral-8x7b", 2, 2, 2, 4);
	plan.cp = 2;
	plan.ep = 4;
	plan.model.layers = 2;
	make(&plan);
	static const uint32_t tp[] = { 10, 11 }, cp[] = { 5, 7 }, dp[] = { 9, 11, 13, 15 }, ep[] = { 4, 5, 6, 7 },
			      experts[] = { 2, 6 };
	assert_true(has_group(tp, 2));
	assert_true(has_group(cp, 2));
	assert_true(has_group(dp, 4));
	assert_true(has_group(ep, 4));
	assert_true(has_group(experts, 2));
	for (uint32_t i = 0; i < file.graph.count; i++)
		if (file.graph.operations[i].kind == GRAPH_SEND)
			assert_int_equal((file.graph.operations[i].peer + 8) % 16, file.graph.operations[i].rank);
}

/* A step of each schedule has its sends and receives in pairs, and no cycle: graph_finish would refuse it. */
static void every_schedule__makes_a_graph(void **state)
{
	static const struct {
		uint8_t schedule, chunks, zero, recompute, order, context;
	} cases[] = { { SCHEDULE_1F1B, 1, 0, RECOMPUTE_NONE, ORDER_TP_CP_DP_PP, CONTEXT_RING },
		{ SCHEDULE_INTERLEAVED, 2, 1, RECOMPUTE_SELECTIVE, ORDER_TP_CP_PP_DP, CONTEXT_ALL_GATHER },
		{ SCHEDULE_ZERO_BUBBLE, 1, 2, RECOMPUTE_SELECTIVE, ORDER_TP_CP_DP_PP, CONTEXT_RING },
		{ SCHEDULE_1F1B, 1, 3, RECOMPUTE_FULL, ORDER_TP_CP_PP_DP, CONTEXT_RING } };
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct step_plan plan = plan_of("gpt-13b", 2, 2, 2, 8);
		plan.cp = 2;
		plan.model.layers = 4;
		plan.schedule = cases[i].schedule;
		plan.chunks = cases[i].chunks;
		plan.zero = cases[i].zero;
		plan.recompute = cases[i].recompute;
		plan.order = cases[i].order;
		plan.context = cases[i].context;
		plan.overlaps_gradients = plan.overlaps_parameters = i & 1;
		make(&plan);
		assert_int_equal(file.graph.ranks, 16);
		job_file_free(&file);
	}
	file = (struct job_file){ 0 };
}

/* Two steps, of which the second has the lower ranks, and one rank between them is free. */
static void plans__have_ranks_of_their_own(void **state)
{
	struct step_plan one = plan_of("llama3-8b", 2, 2, 2, 4), other = plan_of("mixtral-8x7b", 1, 1, 4, 4);
	const struct step_plan *plans[] = { &one, &other };
	char why[200] = "";
	one.first = 5;
	file = (struct job_file){ 0 };
	assert_int_equal(step_graph_make(plans, 2, &file, why, sizeof(why)), 0);
	assert_int_equal(file.graph.ranks, 13);
	assert_int_equal(file.graph.first[4], file.graph.first[5]); /* the free one has nothing */
	static const uint32_t all[] = { 0, 1, 2, 3 }, others[] = { 5, 6, 7, 8, 9, 10, 11, 12 }, dp[] = { 10, 12 };
	assert_true(has_group(all, 4));
	assert_true(has_group(others, 8));
	assert_true(has_group(dp, 2));
	for (uint32_t i = 0; i < file.graph.count; i++) {
		const struct graph_operation *its = &file.graph.operations[i];
		if (its->kind == GRAPH_SEND)
			assert_int_equal((its->peer - 5 + 4) % 8, its->rank - 5);
	}
	for (uint32_t rank = 5; rank < 13; rank++) {
		uint32_t stage;
		const uint32_t place = plan_place(&one, rank, &stage);
		assert_int_equal(plan_rank(&one, place, stage), rank);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places__are_ranks_in_both_orders),
		cmocka_unit_test_teardown(groups__have_their_ranks, teardown),
		cmocka_unit_test_teardown(every_schedule__makes_a_graph, teardown),
		cmocka_unit_test_teardown(plans__have_ranks_of_their_own, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
