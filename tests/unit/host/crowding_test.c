#include "host/lanes/crowding.h"
#include "../unit.h"
#include <time.h>
#include "host/lanes/timeouts.h"

/* A thread that last polled at 1 s, and polls again after so long, of which it ran for some. */
static void come_back(struct vb_crowding *crowding, vb_time after, vb_time ran, long sleeps)
{
	struct vb_presence presence = crowding->last;

	presence.at = vb_time_add(presence.at, after);
	presence.cpu = vb_time_add(presence.cpu, ran);
	presence.sleeps += sleeps;
	vb_crowding_polled(crowding, &presence);
}

static struct vb_crowding kept_away(void)
{
	struct vb_crowding crowding = { .last = { VB_S, VB_MS, 7 } };

	come_back(&crowding, 300 * VB_US, 10 * VB_US, 0);
	come_back(&crowding, 300 * VB_US, 10 * VB_US, 0);
	return crowding;
}

static void poller__that_comes_late_twice_without_having_run_is_kept_away(void **state)
{
	struct vb_crowding crowding = { .last = { VB_S, VB_MS, 7 } };

	come_back(&crowding, 300 * VB_US, 10 * VB_US, 0);
	assert_false(vb_crowding_is_kept_away(&crowding));
	come_back(&crowding, 300 * VB_US, 10 * VB_US, 0);
	assert_true(vb_crowding_is_kept_away(&crowding));
}

static void poller__that_computed_is_not_kept_away(void **state)
{
	struct vb_crowding crowding = kept_away();

	come_back(&crowding, 300 * VB_US, 160 * VB_US, 0);
	assert_false(vb_crowding_is_kept_away(&crowding));
}

static void poller__that_slept_is_not_kept_away(void **state)
{
	struct vb_crowding crowding = kept_away();

	come_back(&crowding, 300 * VB_US, 10 * VB_US, 1);
	assert_false(vb_crowding_is_kept_away(&crowding));
}

static void poller__in_time_says_nothing(void **state)
{
	struct vb_crowding crowding = kept_away();

	come_back(&crowding, VB_POLLER_LATE - VB_NS, VB_POLLER_LATE - VB_NS, 0);
	assert_true(vb_crowding_is_kept_away(&crowding));
	crowding = (struct vb_crowding){ .last = { VB_S, VB_MS, 7 } };
	for (int i = 0; i < 10; i++)
		come_back(&crowding, VB_POLLER_LATE - VB_NS, 0, 0);
	assert_false(vb_crowding_is_kept_away(&crowding));
}

/* A thread whose polls have found nothing since 1 s. */
static struct vb_crowding idle(void)
{
	struct vb_crowding crowding = { .kept_away = 0 };

	assert_int_equal(vb_crowding_rest(&crowding, VB_S), VB_REST_NOT);
	return crowding;
}

static void rest__is_a_yield_after_a_while_and_sleep_after_a_long_one(void **state)
{
	struct vb_crowding crowding = idle();

	assert_int_equal(vb_crowding_rest(&crowding, VB_S + 40 * VB_US), VB_REST_NOT);
	assert_int_equal(vb_crowding_rest(&crowding, VB_S + 60 * VB_US), VB_REST_YIELD);
	assert_int_equal(vb_crowding_rest(&crowding, VB_S + 11 * VB_MS), VB_REST_SLEEP);
}

static void sleep__is_not_repeated_at_each_poll(void **state)
{
	struct vb_crowding crowding = idle();

	assert_int_equal(vb_crowding_rest(&crowding, VB_S + 11 * VB_MS), VB_REST_SLEEP);
	vb_crowding_slept(&crowding, VB_S + 12 * VB_MS);
	assert_int_not_equal(vb_crowding_rest(&crowding, VB_S + 12 * VB_MS + 90 * VB_US), VB_REST_SLEEP);
	assert_int_equal(vb_crowding_rest(&crowding, VB_S + 12 * VB_MS + 110 * VB_US), VB_REST_SLEEP);
}

static void rest__is_not_for_whoever_has_found_something(void **state)
{
	struct vb_crowding crowding = idle();

	vb_crowding_is_of_use(&crowding);
	assert_int_equal(vb_crowding_rest(&crowding, VB_S + 11 * VB_MS), VB_REST_NOT);
}

static void yield__that_nobody_took_is_not_repeated_for_a_while(void **state)
{
	struct vb_crowding crowding = idle();

	vb_crowding_yielded(&crowding, VB_S + 60 * VB_US, VB_S + 61 * VB_US);
	assert_int_equal(vb_crowding_rest(&crowding, VB_S + 62 * VB_US), VB_REST_NOT);
	assert_int_equal(vb_crowding_rest(&crowding, VB_S + 100 * VB_US), VB_REST_NOT);
	assert_int_equal(vb_crowding_rest(&crowding, VB_S + 120 * VB_US), VB_REST_YIELD);
}

static void yield__that_somebody_took_is_repeated_at_once(void **state)
{
	struct vb_crowding crowding = idle();

	vb_crowding_yielded(&crowding, VB_S + 60 * VB_US, VB_S + 63 * VB_US); /* a peer's turn on one core */
	assert_int_equal(vb_crowding_rest(&crowding, VB_S + 64 * VB_US), VB_REST_YIELD);
	vb_crowding_is_of_use(&crowding);
	assert_int_equal(vb_crowding_rest(&crowding, VB_S + VB_MS), VB_REST_YIELD);
	vb_crowding_is_of_use(&crowding);
	assert_int_equal(vb_crowding_rest(&crowding, VB_S + 20 * VB_MS), VB_REST_NOT);
}

/* Such as one that spins on memory: it would have the core for another slice. */
static void yield__that_took_a_slice_is_followed_by_sleeps(void **state)
{
	struct vb_crowding crowding = idle();

	vb_crowding_yielded(&crowding, VB_S + 60 * VB_US, VB_S + 4 * VB_MS);
	assert_int_equal(vb_crowding_rest(&crowding, VB_S + 4 * VB_MS), VB_REST_SLEEP);
	vb_crowding_slept(&crowding, VB_S + 4 * VB_MS + 60 * VB_US);
	assert_int_equal(vb_crowding_rest(&crowding, VB_S + 4 * VB_MS + 61 * VB_US), VB_REST_SLEEP);
	vb_crowding_is_of_use(&crowding);
	assert_int_equal(vb_crowding_rest(&crowding, VB_S + 5 * VB_MS), VB_REST_SLEEP);
}

/* Yields at a time, which another thread takes for 4 ms. Gives for how many milliseconds it sleeps thereafter. */
static unsigned sleeps_after_a_slice(struct vb_crowding *crowding, vb_time *now)
{
	unsigned ms = 0;

	vb_crowding_yielded(crowding, *now, vb_time_add(*now, 4 * VB_MS));
	*now = vb_time_add(*now, 4 * VB_MS);
	for (;; ms++) {
		vb_crowding_slept(crowding, *now); /* so that it does not sleep for another reason */
		if (vb_crowding_rest(crowding, vb_time_add(*now, VB_US)) != VB_REST_SLEEP)
			return ms;
		*now = vb_time_add(*now, VB_MS);
	}
}

static void sleeps__go_on_twice_as_long_each_time_that_a_yield_costs_a_slice(void **state)
{
	struct vb_crowding crowding = idle();
	vb_time now = VB_S + 60 * VB_US;

	for (unsigned ms = 8; ms <= 64; ms *= 2)
		assert_int_equal(sleeps_after_a_slice(&crowding, &now), ms);
	assert_int_equal(sleeps_after_a_slice(&crowding, &now), 64);
}

static void sleeps__are_short_again_after_a_yield_that_nobody_took(void **state)
{
	struct vb_crowding crowding = idle();
	vb_time now = VB_S + 60 * VB_US;

	assert_int_equal(sleeps_after_a_slice(&crowding, &now), 8);
	vb_crowding_yielded(&crowding, now, vb_time_add(now, VB_US));
	assert_int_equal(vb_crowding_rest(&crowding, vb_time_add(now, 2 * VB_US)), VB_REST_NOT);
	assert_int_equal(sleeps_after_a_slice(&crowding, &now), 8);
}

static void sleeps__are_short_again_after_a_long_while(void **state)
{
	struct vb_crowding crowding = idle();
	vb_time now = VB_S + 60 * VB_US;

	assert_int_equal(sleeps_after_a_slice(&crowding, &now), 8);
	now = vb_time_add(now, VB_S);
	assert_int_equal(sleeps_after_a_slice(&crowding, &now), 8);
}

static void yield__that_nobody_takes_ends_the_sharing(void **state)
{
	struct vb_crowding crowding = idle();

	vb_crowding_yielded(&crowding, VB_S + 60 * VB_US, VB_S + 80 * VB_US);
	vb_crowding_yielded(&crowding, VB_S + 81 * VB_US, VB_S + 82 * VB_US);
	assert_int_equal(vb_crowding_rest(&crowding, VB_S + 83 * VB_US), VB_REST_NOT);
}

/* Runs for longer than the kernel's count is coarse. */
static void presence__counts_what_the_caller_ran_and_slept(void **state)
{
	const struct timespec a_moment = { .tv_nsec = 1000000 };
	struct vb_presence before = vb_presence_of_caller(VB_S), after = before;

	while (vb_time_diff(after.cpu, before.cpu) < VB_MS)
		after = vb_presence_of_caller(VB_S);
	nanosleep(&a_moment, NULL);
	after = vb_presence_of_caller(VB_S);
	assert_true(after.sleeps > before.sleeps);
	assert_true(after.at == VB_S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(poller__that_comes_late_twice_without_having_run_is_kept_away),
		cmocka_unit_test(poller__that_computed_is_not_kept_away),
		cmocka_unit_test(poller__that_slept_is_not_kept_away),
		cmocka_unit_test(poller__in_time_says_nothing),
		cmocka_unit_test(rest__is_a_yield_after_a_while_and_sleep_after_a_long_one),
		cmocka_unit_test(sleep__is_not_repeated_at_each_poll),
		cmocka_unit_test(sleeps__go_on_twice_as_long_each_time_that_a_yield_costs_a_slice),
		cmocka_unit_test(sleeps__are_short_again_after_a_yield_that_nobody_took),
		cmocka_unit_test(sleeps__are_short_again_after_a_long_while),
		cmocka_unit_test(yield__that_nobody_takes_ends_the_sharing),
		cmocka_unit_test(rest__is_not_for_whoever_has_found_something),
		cmocka_unit_test(yield__that_nobody_took_is_not_repeated_for_a_while),
		cmocka_unit_test(yield__that_somebody_took_is_repeated_at_once),
		cmocka_unit_test(yield__that_took_a_slice_is_followed_by_sleeps),
		cmocka_unit_test(presence__counts_what_the_caller_ran_and_slept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
