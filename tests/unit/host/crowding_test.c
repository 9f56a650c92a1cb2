#include "host/crowding.h"
#include "../unit.h"
#include <time.h>

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

	come_back(&crowding, VB_LATE - VB_NS, VB_LATE - VB_NS, 0);
	assert_true(vb_crowding_is_kept_away(&crowding));
	crowding = (struct vb_crowding){ .last = { VB_S, VB_MS, 7 } };
	for (int i = 0; i < 10; i++)
		come_back(&crowding, VB_LATE - VB_NS, 0, 0);
	assert_false(vb_crowding_is_kept_away(&crowding));
}

static void yield__that_nobody_took_shares_nothing(void **state)
{
	struct vb_crowding crowding = { .shares_until = { 0 } };

	vb_crowding_yielded(&crowding, VB_S, VB_S + VB_US);
	assert_false(vb_crowding_shares(&crowding, VB_S + VB_US));
}

static void yield__that_somebody_took_shares_for_a_while(void **state)
{
	struct vb_crowding crowding = { .shares_until = { 0 } };

	vb_crowding_yielded(&crowding, VB_S, VB_S + 20 * VB_US);
	assert_true(vb_crowding_shares(&crowding, VB_S + VB_MS));
	assert_false(vb_crowding_shares(&crowding, VB_S + 20 * VB_MS));
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
		cmocka_unit_test(yield__that_nobody_took_shares_nothing),
		cmocka_unit_test(yield__that_somebody_took_shares_for_a_while),
		cmocka_unit_test(presence__counts_what_the_caller_ran_and_slept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
