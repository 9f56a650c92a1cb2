/* When links are down, and when that changes. */
#include "net/outages.h"
#include "../unit.h"

/* All changes after one moment, one after the other. */
static void expect_changes(const struct network_fault *fault, const vb_time *times, unsigned count)
{
	vb_time at = -1;
	for (unsigned i = 0; i < count; i++) {
		at = fault_next_change(fault, at);
		assert_int_equal(at, times[i]);
		if (at < 0)
			return;
		assert_true(fault_is_down(fault, at) != fault_is_down(fault, at - 1) || fault->detection);
	}
}

static void changes__come_one_after_the_other(void **state)
{
	expect_changes(&(struct network_fault){ .loss_ppm = 1 }, (vb_time[]){ -1 }, 1);
	expect_changes(&(struct network_fault){ .down_at = 10 }, (vb_time[]){ 10, -1 }, 2);
	expect_changes(&(struct network_fault){ .down_at = 10, .up_at = 15 }, (vb_time[]){ 10, 15, -1 }, 3);
	expect_changes(&(struct network_fault){ .up_at = 15 }, (vb_time[]){ 0, 15, -1 }, 3);
	expect_changes(&(struct network_fault){ .down_at = 10, .up_at = 15, .flap_period = 20 },
		(vb_time[]){ 10, 15, 30, 35, 50, 55 }, 6);
	expect_changes(&(struct network_fault){ .down_at = 10, .up_at = 15, .detection = 2, .convergence = 20 },
		(vb_time[]){ 10, 12, 15, 17, 32, 37, -1 }, 7);
}

static void switches__learn_of_it_later(void **state)
{
	struct network_fault fault = { .down_at = 10, .up_at = 15, .detection = 2, .convergence = 20 };
	struct network_link links[] = { { .fault = 0 }, { .fault = NETWORK_NONE } };
	const struct network network = { .links = links, .faults = &fault, .fault_count = 1, .link_count = 2 };
	for (vb_time at = 0; at < 50; at++) {
		assert_int_equal(link_is_down(&network, 0, at), at >= 10 && at < 15);
		assert_int_equal(link_is_known_down(&network, 0, at, false), at >= 12 && at < 17);
		assert_int_equal(link_is_known_down(&network, 0, at, true), at >= 32 && at < 37);
		assert_false(link_is_down(&network, 1, at));
	}
	assert_true(network_has_outages(&network));
	fault = (struct network_fault){ .loss_ppm = 1 };
	assert_false(network_has_outages(&network));
	assert_true(fault_is_of_packets(&fault));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes__come_one_after_the_other),
		cmocka_unit_test(switches__learn_of_it_later),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
