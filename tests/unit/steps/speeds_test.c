/* Lists of ranks that are slow, and what they make of a plan. */
#include "steps/speeds.h"
#include <errno.h>
#include "plans.h"
#include "../unit.h"

static char why[200];

/* Each part's value is its factor. */
static int read_into(struct plan_ranges *ranges, const char *text)
{
	struct span list = { text, strlen(text) }, value;
	int rc;
	*ranges = (struct plan_ranges){ 0 };
	while ((rc = speeds_take(&list, 16, ranges, &value, why, sizeof(why))) > 0)
		ranges->list[ranges->count - 1].factor = strtod(value.at, NULL);
	return rc;
}

static void lists__have_ranges(void **state)
{
	struct step_plan plan = plan_of("llama3-8b", 2, 2, 4, 8);
	assert_int_equal(read_into(&plan.slow, "0-3=1.5, 9=2,10-11=4"), 0);
	assert_int_equal(plan.slow.count, 3);
	static const double wanted[] = { 1.5, 1.5, 1.5, 1.5, 1, 1, 1, 1, 1, 2, 4, 4, 1, 1, 1, 1 };
	for (uint32_t i = 0; i < COUNT_OF(wanted); i++)
		assert_true(speeds_of_rank(&plan, i) == wanted[i]);
	plan.kinds = (struct plan_ranges){ { { 8, 15, 3 } }, 1 };
	assert_true(speeds_of_rank(&plan, 11) == 12 && speeds_of_rank(&plan, 12) == 3);
	assert_true(speeds_of_stage(&plan, 0) == 1.5 && speeds_of_stage(&plan, 1) == 12);
	assert_true(speeds_most(&plan) == 12);
	assert_int_equal(speeds_slowed(1000, 1.5), 1500);
	assert_int_equal(speeds_slowed(((vb_time)1 << 60) + 1, 1), ((vb_time)1 << 60) + 1);
}

static void wrong_lists__are_refused(void **state)
{
	static const struct {
		const char *text, *wanted;
	} cases[] = {
		{ "1", "1: write RANK=" },
		{ "=2", "=2: write" },
		{ "1=", "1=: write" },
		{ "3-1=2", "3-1=2: write" },
		{ "1-=2", "1-=2: write" },
		{ "-1=2", "-1=2: write" },
		{ "1-2-3=2", "1-2-3=2: write" },
		{ "99999999999999999999=2", ": write" },
		{ "all=2", "all=2: write" },
		{ "16=2", "16=2: the step has ranks 0 to 15" },
		{ "0-4294967295=2", "the step has ranks 0 to 15" },
		{ "1-5=2,5=3", "rank 5 is in it twice" },
		{ "5=2,1-8=3", "rank 5 is in it twice" },
	};
	struct plan_ranges ranges;
	for (unsigned i = 0; i < COUNT_OF(cases); i++)
		if (read_into(&ranges, cases[i].text) != -EINVAL || !strstr(why, cases[i].wanted))
			fail_msg("%s: %s", cases[i].text, why);
}

static void parts__are_so_many_at_most(void **state)
{
	struct plan_ranges ranges = { .count = PLAN_RANGES };
	struct span list = { "15=2", 4 }, value;
	for (uint32_t i = 0; i < PLAN_RANGES; i++)
		ranges.list[i] = (struct plan_range){ 100 + i, 100 + i, 1 };
	assert_int_equal(speeds_take(&list, 16, &ranges, &value, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "more than 64 parts"));
}

/* Ranks 0 to 7 are the first stage: 0 and 1 its first replica, whose second stage is 8 and 9. */
static void slow_ranks__may_be_of_one_replica(void **state)
{
	struct step_plan plan = plan_of("llama3-8b", 2, 2, 4, 8);
	static const struct {
		const char *text;
		bool is_spread;
	} cases[] = { { "", false }, { "3=2", false }, { "0=2,9=2", false }, { "0-7=2", false }, { "0-7=2,9=2", false },
		{ "0=2,10=2", true }, { "0=2,2=3,8=2", true }, { "0=2,2=3,10=2", false } };
	for (unsigned i = 0; i < COUNT_OF(cases); i++) {
		assert_int_equal(read_into(&plan.slow, cases[i].text), 0);
		if (speeds_are_spread(&plan) != cases[i].is_spread)
			fail_msg("%s", cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists__have_ranges),
		cmocka_unit_test(wrong_lists__are_refused),
		cmocka_unit_test(parts__are_so_many_at_most),
		cmocka_unit_test(slow_ranks__may_be_of_one_replica),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
