/* Who may wait for the next poll, and how long it is looked at that nobody waited for nothing. */
#include "../unit.h"
#include "host/lanes/held_posts.h"

/* So many of the next posts leave at once. */
static unsigned count_barred(struct vb_held_posts *held_posts)
{
	unsigned count = 0;

	while (!vb_held_posts_add(held_posts, 0))
		count++;
	return count;
}

static void leave_after(struct vb_held_posts *held_posts, vb_time wait, bool by_program)
{
	vb_held_posts_release(held_posts, by_program, wait);
	assert_int_equal(held_posts->count, 0);
}

static void held_posts__are_no_more_than_a_batch(void **state)
{
	struct vb_held_posts held_posts = { 0 };

	for (unsigned i = 0; i < 64; i++)
		assert_true(vb_held_posts_add(&held_posts, i));
	assert_false(vb_held_posts_add(&held_posts, 64));
	assert_int_equal(held_posts.newest_at, 63);
	assert_true(held_posts.were_there);
	leave_after(&held_posts, 64, true);
	assert_int_equal(count_barred(&held_posts), 0);
}

static void held_posts__that_waited_too_long_have_fewer_after_them(void **state)
{
	struct vb_held_posts held_posts = { 0 };
	unsigned barred = 0;

	assert_true(vb_held_posts_add(&held_posts, 0));
	for (unsigned expected = 64; expected < 65536; expected *= 2) {
		leave_after(&held_posts, VB_MS, true);
		barred = count_barred(&held_posts);
		assert_int_equal(barred, expected);
	}
	for (unsigned i = 0; i < 3; i++) {
		leave_after(&held_posts, VB_MS, true);
		barred = count_barred(&held_posts);
		assert_int_equal(barred, 65536);
	}
	for (unsigned i = 0; i < 10; i++) { /* it polls now */
		leave_after(&held_posts, VB_US, true);
		assert_int_equal(count_barred(&held_posts), 0);
	}
	leave_after(&held_posts, VB_MS, true);
	assert_int_equal(count_barred(&held_posts), 128);
}

/* Without the program each microsecond is one for nothing; with it, it may have been kept from its core. */
static void held_posts__are_judged_by_what_released_them(void **state)
{
	struct vb_held_posts held_posts = { 0 };

	assert_true(vb_held_posts_add(&held_posts, 0));
	leave_after(&held_posts, 10 * VB_US, true);
	assert_int_equal(count_barred(&held_posts), 0);
	leave_after(&held_posts, 10 * VB_US, false);
	assert_int_equal(count_barred(&held_posts), 64);
	leave_after(&held_posts, 2 * VB_US, false);
	assert_int_equal(count_barred(&held_posts), 0);
}

/* Each came just behind the other: the program is at it. */
static void held_posts__of_a_program_that_goes_on_posting_are_not_late(void **state)
{
	struct vb_held_posts held_posts = { 0 };

	for (unsigned i = 0; i < 40; i++)
		assert_true(vb_held_posts_add(&held_posts, i * VB_US));
	leave_after(&held_posts, 41 * VB_US, false);
	assert_int_equal(count_barred(&held_posts), 0);
}

static void held_posts__that_are_none_leave_nothing(void **state)
{
	struct vb_held_posts held_posts = { 0 };

	leave_after(&held_posts, VB_S, false);
	assert_int_equal(count_barred(&held_posts), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(held_posts__are_no_more_than_a_batch),
		cmocka_unit_test(held_posts__that_waited_too_long_have_fewer_after_them),
		cmocka_unit_test(held_posts__are_judged_by_what_released_them),
		cmocka_unit_test(held_posts__of_a_program_that_goes_on_posting_are_not_late),
		cmocka_unit_test(held_posts__that_are_none_leave_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
