#include "base/random.h"
#include "base/timers.h"
#include "../unit.h"

enum { TIMERS = 60 };

static void timers__idle_ones_have_no_deadline(void **state)
{
	struct vb_timers timers;
	vb_timers_init(&timers);
	assert_false(vb_timers_next(&timers).is_set);
	assert_null(vb_timers_expire(&timers, 0));
	vb_timers_deinit(&timers);
}

static void timers__come_in_the_order_of_their_deadlines(void **state)
{
	struct vb_timers timers;
	struct vb_timer timer[TIMERS];
	vb_timers_init(&timers);
	assert_int_equal(vb_timers_reserve(&timers, TIMERS), 0);
	for (int i = 0; i < TIMERS; i++) {
		vb_timer_init(&timer[i]);
		vb_timer_set(&timers, &timer[i], 1000 + i * 37 % TIMERS);
	}
	assert_null(vb_timers_expire(&timers, 999));
	vb_time last = 1000;
	for (int i = 0; i < TIMERS; i++) {
		struct vb_timer *due = vb_timers_expire(&timers, 1000 + TIMERS);
		assert_non_null(due);
		assert_true(due->deadline.at >= last);
		assert_int_equal(due->index, -1);
		assert_false(due->deadline.is_set);
		last = due->deadline.at;
	}
	assert_null(vb_timers_expire(&timers, 1000 + TIMERS));
	vb_timers_deinit(&timers);
}

static void timers__setting_one_later_leaves_the_heap_alone(void **state)
{
	struct vb_timers timers;
	struct vb_timer timer;
	vb_timers_init(&timers);
	assert_int_equal(vb_timers_reserve(&timers, 1), 0);
	vb_timer_init(&timer);
	vb_timer_set(&timers, &timer, 100);
	vb_timer_set(&timers, &timer, 300);
	assert_int_equal(vb_timers_next(&timers).at, 100);
	assert_null(vb_timers_expire(&timers, 299));
	assert_int_equal(vb_timers_next(&timers).at, 300);
	assert_ptr_equal(vb_timers_expire(&timers, 300), &timer);
	vb_timers_deinit(&timers);
}

static void timers__setting_one_earlier_is_seen_at_once(void **state)
{
	struct vb_timers timers;
	struct vb_timer timer;
	vb_timers_init(&timers);
	assert_int_equal(vb_timers_reserve(&timers, 1), 0);
	vb_timer_init(&timer);
	vb_timer_set(&timers, &timer, 300);
	vb_timer_set(&timers, &timer, 100);
	assert_int_equal(vb_timers_next(&timers).at, 100);
	assert_ptr_equal(vb_timers_expire(&timers, 100), &timer);
	vb_timers_deinit(&timers);
}

static void timers__a_cancelled_one_never_comes(void **state)
{
	struct vb_timers timers;
	struct vb_timer timer;
	vb_timers_init(&timers);
	assert_int_equal(vb_timers_reserve(&timers, 1), 0);
	vb_timer_init(&timer);
	vb_timer_set(&timers, &timer, 100);
	vb_timer_cancel(&timer);
	assert_null(vb_timers_expire(&timers, 1000));
	assert_false(vb_timers_next(&timers).is_set);
	vb_timer_set(&timers, &timer, 2000);
	vb_timer_cancel(&timer);
	vb_timer_set(&timers, &timer, 1500);
	assert_ptr_equal(vb_timers_expire(&timers, 2000), &timer);
	vb_timers_deinit(&timers);
}

static void timers__removing_twice_is_harmless(void **state)
{
	struct vb_timers timers;
	struct vb_timer timer;
	vb_timers_init(&timers);
	assert_int_equal(vb_timers_reserve(&timers, 1), 0);
	vb_timer_init(&timer);
	vb_timer_remove(&timers, &timer);
	vb_timer_set(&timers, &timer, 100);
	vb_timer_remove(&timers, &timer);
	vb_timer_remove(&timers, &timer);
	assert_false(vb_timers_next(&timers).is_set);
	assert_null(vb_timers_expire(&timers, 1000));
	vb_timers_deinit(&timers);
}

static void timers__room_grows_and_keeps_what_is_armed(void **state)
{
	enum { MANY = 1000 };
	struct vb_timers timers;
	struct vb_timer *timer = calloc(MANY, sizeof(*timer));
	vb_timers_init(&timers);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(vb_timers_reserve(&timers, i + 1), 0);
		vb_timer_init(&timer[i]);
		vb_timer_set(&timers, &timer[i], MANY - i);
	}
	for (uint32_t i = 0; i < MANY; i++)
		assert_ptr_equal(vb_timers_expire(&timers, MANY), &timer[MANY - 1 - i]);
	vb_timers_deinit(&timers);
	free(timer);
}

/* A process may be frozen for months; the difference of times has turned over by then. */
static void timers__are_due_after_110_quiet_days(void **state)
{
	struct vb_timers timers;
	struct vb_timer timer;
	const vb_time start = 5 * VB_S, day = 24 * 3600 * VB_S;
	vb_timers_init(&timers);
	vb_timer_init(&timer);
	assert_int_equal(vb_timers_reserve(&timers, 1), 0);
	vb_timer_set(&timers, &timer, start);
	assert_null(vb_timers_expire(&timers, start - 1));
	assert_ptr_equal(vb_timers_expire(&timers, vb_time_add(vb_time_add(start, 55 * day), 55 * day)), &timer);
	vb_timers_deinit(&timers);
}

/* What a heap must do, done the slow way. */
struct reference {
	struct vb_deadline deadline[TIMERS];
};

static bool is_due(const struct reference *reference, int i, vb_time now)
{
	return vb_deadline_due(reference->deadline[i], now);
}

static void check_next(const struct reference *reference, const struct vb_timers *timers)
{
	struct vb_deadline earliest = { .is_set = false }, next = vb_timers_next(timers);
	for (int i = 0; i < TIMERS; i++)
		earliest = vb_deadline_earlier(earliest, reference->deadline[i]);
	if (earliest.is_set) {
		assert_true(next.is_set);
		assert_false(vb_time_before(earliest.at, next.at));
	}
}

static void check_expiry(struct reference *reference, struct vb_timers *timers, struct vb_timer *timer, vb_time now)
{
	for (struct vb_timer *due; (due = vb_timers_expire(timers, now));) {
		assert_true(is_due(reference, (int)(due - timer), now));
		reference->deadline[due - timer].is_set = false;
	}
	for (int i = 0; i < TIMERS; i++)
		assert_false(is_due(reference, i, now));
	struct vb_deadline next = vb_timers_next(timers);
	if (next.is_set)
		assert_true(vb_time_before(now, next.at));
}

static void agree_from(vb_time start, uint64_t seed)
{
	struct vb_timers timers;
	struct vb_timer timer[TIMERS];
	struct reference reference = { 0 };
	struct vb_random random;
	vb_random_seed(&random, seed);
	vb_timers_init(&timers);
	assert_int_equal(vb_timers_reserve(&timers, TIMERS), 0);
	for (int i = 0; i < TIMERS; i++)
		vb_timer_init(&timer[i]);
	vb_time now = start;
	for (int step = 0; step < 20000; step++) {
		uint32_t i = vb_random_below(&random, TIMERS), what = vb_random_below(&random, 10);
		vb_time at = vb_time_add(now, (vb_time)vb_random_below(&random, 2000) - 100);
		if (what < 6) {
			vb_timer_set(&timers, &timer[i], at);
			reference.deadline[i] = (struct vb_deadline){ .at = at, .is_set = true };
		} else if (what == 6) {
			vb_timer_cancel(&timer[i]);
			reference.deadline[i].is_set = false;
		} else if (what == 7) {
			vb_timer_remove(&timers, &timer[i]);
			reference.deadline[i].is_set = false;
		} else {
			now = vb_time_add(now, vb_random_below(&random, 300));
			check_expiry(&reference, &timers, timer, now);
		}
		check_next(&reference, &timers);
		vb_timers_check(&timers);
	}
	vb_timers_deinit(&timers);
}

static void timers__agree_with_a_naive_reference(void **state)
{
	for (uint64_t seed = 1; seed <= 5; seed++)
		agree_from(0, seed);
}

static void timers__agree_while_time_wraps(void **state)
{
	for (uint64_t seed = 1; seed <= 5; seed++)
		agree_from(INT64_MAX - 100000, seed);
}

static void timers__an_heir_is_where_the_timer_was(void **state)
{
	struct vb_timers timers;
	struct vb_timer timer[3], heir;
	vb_timers_init(&timers);
	assert_int_equal(vb_timers_reserve(&timers, 3), 0);
	for (unsigned i = 0; i < 3; i++) {
		vb_timer_init(&timer[i]);
		vb_timer_set(&timers, &timer[i], 100 + i);
	}
	vb_timer_replace(&timers, &timer[0], &heir);
	vb_timers_check(&timers);
	assert_int_equal(timer[0].index, -1);
	assert_int_equal(vb_timers_next(&timers).at, 100);
	assert_ptr_equal(vb_timers_expire(&timers, 102), &heir);
	assert_ptr_equal(vb_timers_expire(&timers, 102), &timer[1]);
	vb_timer_replace(&timers, &timer[1], &heir); /* it is in no heap */
	assert_int_equal(heir.index, -1);
	assert_ptr_equal(vb_timers_expire(&timers, 102), &timer[2]);
	vb_timers_deinit(&timers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timers__idle_ones_have_no_deadline),
		cmocka_unit_test(timers__come_in_the_order_of_their_deadlines),
		cmocka_unit_test(timers__setting_one_later_leaves_the_heap_alone),
		cmocka_unit_test(timers__setting_one_earlier_is_seen_at_once),
		cmocka_unit_test(timers__a_cancelled_one_never_comes),
		cmocka_unit_test(timers__removing_twice_is_harmless),
		cmocka_unit_test(timers__an_heir_is_where_the_timer_was),
		cmocka_unit_test(timers__room_grows_and_keeps_what_is_armed),
		cmocka_unit_test(timers__are_due_after_110_quiet_days),
		cmocka_unit_test(timers__agree_with_a_naive_reference),
		cmocka_unit_test(timers__agree_while_time_wraps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
