#include "base/time.h"
#include "../unit.h"

static void time__units_are_picoseconds(void **state)
{
	assert_int_equal(VB_NS, 1000);
	assert_true(VB_S == (vb_time)1000000000000);
}

static void time__comparison_survives_the_wrap(void **state)
{
	vb_time before = INT64_MAX - 5, after = vb_time_add(before, 10);
	assert_true(after < 0);
	assert_true(vb_time_before(before, after));
	assert_false(vb_time_before(after, before));
	assert_true(vb_time_diff(after, before) == 10);
	assert_true(vb_time_diff(before, after) == -10);
}

static void time__is_not_before_itself(void **state)
{
	assert_false(vb_time_before(7, 7));
}

static void deadline__is_due_from_its_instant_on(void **state)
{
	struct vb_deadline deadline = { INT64_MAX, true };
	assert_false(vb_deadline_due(deadline, INT64_MAX - 1));
	assert_true(vb_deadline_due(deadline, INT64_MAX));
	assert_true(vb_deadline_due(deadline, vb_time_add(INT64_MAX, 1)));
}

#define DAY (86400 * VB_S)

static void since__is_right_for_half_the_circle_and_stays_there(void **state)
{
	vb_time past = INT64_MAX - 5;
	assert_true(vb_time_since(past, past) == 0);
	assert_true(vb_time_since(past, vb_time_add(past, 10)) == 10);
	assert_true(vb_time_since(past, vb_time_add(past, 106 * DAY)) == 106 * DAY);
	assert_true(vb_time_since(past, vb_time_add(vb_time_add(past, 55 * DAY), 55 * DAY)) == INT64_MAX);
	assert_true(vb_time_since(past, vb_time_add(vb_time_add(past, 100 * DAY), 100 * DAY)) == INT64_MAX);
}

static void deadline__stays_due_when_nobody_asks_for_months(void **state)
{
	struct vb_deadline deadline = { 5, true };
	assert_true(vb_deadline_due(deadline, vb_time_add(5, 105 * DAY)));
	assert_true(vb_deadline_due(deadline, vb_time_add(vb_time_add(5, 55 * DAY), 55 * DAY)));
	assert_true(vb_deadline_due(deadline, vb_time_add(vb_time_add(5, 100 * DAY), 100 * DAY)));
	assert_false(vb_deadline_due(deadline, vb_time_add(5, -VB_HORIZON)));
}

static void deadline__that_is_absent_is_never_due(void **state)
{
	struct vb_deadline none = { 0 };
	assert_false(vb_deadline_due(none, INT64_MAX));
	assert_false(vb_deadline_due(none, 0));
}

static void deadline__earlier_prefers_the_one_that_exists(void **state)
{
	struct vb_deadline none = { 0 }, set = { 5, true };
	assert_true(vb_deadline_earlier(none, set).is_set);
	assert_true(vb_deadline_earlier(set, none).at == 5);
	assert_false(vb_deadline_earlier(none, none).is_set);
}

static void deadline__earlier_sees_across_the_wrap(void **state)
{
	struct vb_deadline first = { INT64_MAX, true }, second = { INT64_MIN + 3, true };
	assert_true(vb_deadline_earlier(first, second).at == INT64_MAX);
	assert_true(vb_deadline_earlier(second, first).at == INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time__units_are_picoseconds),
		cmocka_unit_test(time__comparison_survives_the_wrap),
		cmocka_unit_test(time__is_not_before_itself),
		cmocka_unit_test(since__is_right_for_half_the_circle_and_stays_there),
		cmocka_unit_test(deadline__stays_due_when_nobody_asks_for_months),
		cmocka_unit_test(deadline__is_due_from_its_instant_on),
		cmocka_unit_test(deadline__that_is_absent_is_never_due),
		cmocka_unit_test(deadline__earlier_prefers_the_one_that_exists),
		cmocka_unit_test(deadline__earlier_sees_across_the_wrap),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
