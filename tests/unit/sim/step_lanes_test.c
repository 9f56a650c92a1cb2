/* Which replicas are one lane. */
#include "sim/step_lanes.h"
#include <stdlib.h>
#include "../steps/plans.h"
#include "../unit.h"

static struct step_lanes divide(const struct step_plan *plan, const double *contend)
{
	struct lane_signs signs;
	struct step_lanes lanes = { 0 };
	assert_int_equal(lane_signs_open(&signs, plan), 0);
	for (uint32_t i = 0; i < signs.count; i++) {
		lane_signs_note(&signs, i * signs.unit, contend[i]);
		lane_signs_note(&signs, i * signs.unit, 1);
	}
	assert_int_equal(lane_signs_divide(&signs, &lanes), 0);
	lane_signs_close(&signs);
	return lanes;
}

static void replicas__that_contend_alike_are_one_lane(void **state)
{
	const struct step_plan plan = plan_of("llama3-8b", 2, 4, 6, 6);
	const double alike[] = { 2, 2, 2, 2, 2, 2 }, mixed[] = { 1, 2, 1, 3, 2, 1 };
	struct step_lanes lanes = divide(&plan, alike);
	assert_int_equal(lanes.count, 1);
	assert_int_equal(lanes.sizes[0], 6);
	free(lanes.of);
	lanes = divide(&plan, mixed);
	const uint32_t expected[] = { 0, 1, 0, 2, 1, 0 };
	assert_int_equal(lanes.count, 3);
	for (uint32_t place = 0; place < 12; place++)
		assert_int_equal(step_lane_of(&lanes, place), expected[place / 2]);
	free(lanes.of);
}

static void replicas__that_share_experts_are_one_unit(void **state)
{
	static const struct {
		uint32_t tp, ep, unit;
	} all[] = { { 1, 1, 1 }, { 2, 1, 2 }, { 2, 4, 4 }, { 8, 4, 8 }, { 2, 16, 16 }, { 6, 4, 12 } };
	for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct step_plan plan = plan_of("llama3-8b", all[i].tp, 4, 48 / all[i].tp, 48);
		struct lane_signs signs;
		plan.ep = all[i].ep;
		assert_int_equal(lane_signs_open(&signs, &plan), 0);
		assert_int_equal(signs.unit, all[i].unit);
		assert_int_equal(signs.count, 48 / all[i].unit);
		lane_signs_close(&signs);
	}
}

/* Of 64 that all differ, four a lane, by how much they contend. */
static void lanes__are_bounded(void **state)
{
	const struct step_plan plan = plan_of("llama3-8b", 1, 4, 64, 64);
	double contend[64];
	for (unsigned i = 0; i < 64; i++)
		contend[i] = 1 + i * 5 % 64;
	struct step_lanes lanes = divide(&plan, contend);
	assert_int_equal(lanes.count, STEP_MOST_LANES);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(lanes.of[i], i * 5 % 64 / 4);
	for (unsigned i = 0; i < STEP_MOST_LANES; i++)
		assert_int_equal(lanes.sizes[i], 4);
	free(lanes.of);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replicas__that_contend_alike_are_one_lane),
		cmocka_unit_test(replicas__that_share_experts_are_one_unit),
		cmocka_unit_test(lanes__are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
