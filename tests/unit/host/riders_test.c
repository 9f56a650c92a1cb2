/* Who may wait for the next poll, and how long it is looked at that nobody waited for nothing. */
#include "../unit.h"
#include "host/lanes/riders.h"

/* So many of the next posts leave at once. */
static unsigned count_barred(struct vb_riders *riders)
{
	unsigned count = 0;

	while (!vb_riders_board(riders, 0))
		count++;
	return count;
}

static void leave_after(struct vb_riders *riders, vb_time wait, bool by_program)
{
	vb_riders_leave(riders, by_program, wait);
	assert_int_equal(riders->count, 0);
}

static void riders__are_no_more_than_a_batch(void **state)
{
	struct vb_riders riders = { 0 };

	for (unsigned i = 0; i < 64; i++)
		assert_true(vb_riders_board(&riders, i));
	assert_false(vb_riders_board(&riders, 64));
	assert_int_equal(riders.newest_at, 63);
	assert_true(riders.were_there);
	leave_after(&riders, 64, true);
	assert_int_equal(count_barred(&riders), 0);
}

static void riders__who_waited_too_long_have_fewer_after_them(void **state)
{
	struct vb_riders riders = { 0 };
	unsigned barred = 0;

	assert_true(vb_riders_board(&riders, 0));
	for (unsigned expected = 64; expected < 65536; expected *= 2) {
		leave_after(&riders, VB_MS, true);
		barred = count_barred(&riders);
		assert_int_equal(barred, expected);
	}
	for (unsigned i = 0; i < 3; i++) {
		leave_after(&riders, VB_MS, true);
		barred = count_barred(&riders);
		assert_int_equal(barred, 65536);
	}
	for (unsigned i = 0; i < 10; i++) { /* it polls now */
		leave_after(&riders, VB_US, true);
		assert_int_equal(count_barred(&riders), 0);
	}
	leave_after(&riders, VB_MS, true);
	assert_int_equal(count_barred(&riders), 128);
}

/* Without the program each microsecond is one for nothing; with it, it may have been kept from its core. */
static void riders__are_judged_by_who_took_them_along(void **state)
{
	struct vb_riders riders = { 0 };

	assert_true(vb_riders_board(&riders, 0));
	leave_after(&riders, 10 * VB_US, true);
	assert_int_equal(count_barred(&riders), 0);
	leave_after(&riders, 10 * VB_US, false);
	assert_int_equal(count_barred(&riders), 64);
	leave_after(&riders, 2 * VB_US, false);
	assert_int_equal(count_barred(&riders), 0);
}

/* Each came just behind the other: the program is at it. */
static void riders__of_who_goes_on_posting_are_not_late(void **state)
{
	struct vb_riders riders = { 0 };

	for (unsigned i = 0; i < 40; i++)
		assert_true(vb_riders_board(&riders, i * VB_US));
	leave_after(&riders, 41 * VB_US, false);
	assert_int_equal(count_barred(&riders), 0);
}

static void riders__who_are_none_leave_nothing(void **state)
{
	struct vb_riders riders = { 0 };

	leave_after(&riders, VB_S, false);
	assert_int_equal(count_barred(&riders), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(riders__are_no_more_than_a_batch),
		cmocka_unit_test(riders__who_waited_too_long_have_fewer_after_them),
		cmocka_unit_test(riders__are_judged_by_who_took_them_along),
		cmocka_unit_test(riders__of_who_goes_on_posting_are_not_late),
		cmocka_unit_test(riders__who_are_none_leave_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
