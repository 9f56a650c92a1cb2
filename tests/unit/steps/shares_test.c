/* Communication of stages that shares limits, worked by hand. */
#include "steps/shares.h"
#include <stdlib.h>
#include <string.h>
#include "../unit.h"

enum { CLASSES = 4, LIMITS = 3, MOST_HOPS = 2 };

/* Class 0 and 1 share limit 0, which each rank of class 1 loads twice; 1 has limit 1 for itself; 2 is alone on limit 2;
 * 3 loads nothing. */
static const struct max_min_hop hops[CLASSES][MOST_HOPS] = { { { 0, MAX_MIN_WHOLE } },
	{ { 0, 2 * MAX_MIN_WHOLE }, { 1, MAX_MIN_WHOLE } }, { { 2, MAX_MIN_WHOLE } } };
static const uint32_t hop_counts[CLASSES] = { 1, 2, 1, 0 };
static const uint64_t limits[LIMITS] = { 3000, 1000, 500 };

static struct step_loads loads;

static int make(struct step_loads *its)
{
	*its = (struct step_loads){ .classes = calloc(CLASSES, sizeof(*its->classes)),
		.class_count = CLASSES,
		.limits = malloc(sizeof(limits)),
		.limit_count = LIMITS };
	memcpy(its->limits, limits, sizeof(limits));
	for (uint32_t i = 0; i < CLASSES; i++) {
		its->classes[i].hop_count = hop_counts[i];
		its->classes[i].hops = malloc(sizeof(hops[i]));
		memcpy(its->classes[i].hops, hops[i], sizeof(hops[i]));
	}
	return step_loads_finish(its);
}

static int setup(void **state)
{
	return make(&loads);
}

static int teardown(void **state)
{
	step_loads_free(&loads);
	return 0;
}

static void expect_end(struct shares *shares, uint32_t slot, vb_time at)
{
	vb_time ends;
	uint32_t next;
	assert_true(shares_next(shares, &ends, &next));
	assert_int_equal(next, slot);
	assert_int_equal(ends, at);
	shares_end(shares, slot);
	assert_int_equal(shares_settle(shares, at), 0);
}

static void classes__that_share_a_limit_are_a_component(void **state)
{
	assert_int_equal(loads.classes[0].component, loads.classes[1].component);
	assert_int_not_equal(loads.classes[0].component, loads.classes[2].component);
	assert_int_equal(loads.classes[0].alone, 3000);
	assert_int_equal(loads.classes[1].alone, 1000);
	assert_int_equal(loads.classes[2].alone, 500);
}

/* Both have 1,000 bytes a second while both are there: 0 has sent 3,000 of its 4,000 in the second before, and ends
 * after two. 1 is held by its own limit, before and after. */
static void rates__follow_what_begins_and_ends(void **state)
{
	struct shares *shares = shares_open(&loads, 3);
	vb_time at;
	uint32_t slot;
	assert_non_null(shares);
	shares_begin(shares, 0, 0, 4000, 4000, 0);
	shares_begin(shares, 2, 2, 5000, 5000, 0);
	assert_int_equal(shares_settle(shares, 0), 0);
	shares_begin(shares, 1, 1, 1500, 1500, VB_S);
	assert_int_equal(shares_settle(shares, VB_S), 0);
	expect_end(shares, 0, 2 * VB_S);
	expect_end(shares, 1, 2 * VB_S + VB_S / 2);
	expect_end(shares, 2, 10 * VB_S);
	assert_false(shares_next(shares, &at, &slot));
	shares_close(shares);
}

/* Two of one class share as two. */
static void slots__of_one_class_share(void **state)
{
	struct shares *shares = shares_open(&loads, 2);
	assert_non_null(shares);
	shares_begin(shares, 0, 2, 500, 500, 0);
	shares_begin(shares, 1, 2, 1000, 1000, 0);
	assert_int_equal(shares_settle(shares, 0), 0);
	expect_end(shares, 0, 2 * VB_S);
	expect_end(shares, 1, 3 * VB_S);
	shares_close(shares);
}

/* From 1 s to 3 s class 0 has no way; the time in which nothing is heard is 5 s. */
static struct shares *open_with_outage(void)
{
	struct step_loads *down = calloc(1, sizeof(*down)), *up = calloc(1, sizeof(*up));
	assert_int_equal(make(down) | make(up), 0);
	down->classes[0].is_down = true;
	loads.next = down;
	down->next = up;
	loads.until = VB_S;
	down->until = 3 * VB_S;
	up->until = -1;
	up->resending = (struct resending){ .timeout = 5 * VB_S, .retries = 1, .finds_gaps = true };
	return shares_open(&loads, 3);
}

static void change(struct shares *shares, vb_time now, vb_time expected)
{
	vb_time at;
	assert_true(shares_change_next(shares, now, &at));
	assert_int_equal(at, expected);
	assert_int_equal(shares_change(shares, at), 0);
	assert_int_equal(shares_settle(shares, at), 0);
}

/* 12,000 bytes take 4 s, and are sent still when the way is up; 1,000 of class 1 have all of the limit meanwhile. */
static void slot__waits_while_its_way_is_down(void **state)
{
	struct shares *shares = open_with_outage();
	shares_begin(shares, 0, 0, 12000, 12000, 0);
	assert_int_equal(shares_settle(shares, 0), 0);
	change(shares, 0, VB_S);
	shares_begin(shares, 1, 1, 1000, 1000, VB_S);
	assert_int_equal(shares_settle(shares, VB_S), 0);
	expect_end(shares, 1, 2 * VB_S);
	change(shares, 2 * VB_S, 3 * VB_S);
	expect_end(shares, 0, 6 * VB_S);
	shares_close(shares);
}

/* What it has sent is gone after 100 ms: it waits for the timeout, at 6 s. */
static void slot__whose_sender_has_sent_waits_for_the_timeout(void **state)
{
	struct shares *shares = open_with_outage();
	shares_begin(shares, 0, 0, 9000, 300, 0);
	assert_int_equal(shares_settle(shares, 0), 0);
	change(shares, 0, VB_S);
	change(shares, VB_S, 3 * VB_S);
	change(shares, 3 * VB_S, 6 * VB_S);
	expect_end(shares, 0, 8 * VB_S);
	assert_false(shares_wait(shares));
	shares_close(shares);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(classes__that_share_a_limit_are_a_component, setup, teardown),
		cmocka_unit_test_setup_teardown(rates__follow_what_begins_and_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(slots__of_one_class_share, setup, teardown),
		cmocka_unit_test_setup_teardown(slot__waits_while_its_way_is_down, setup, teardown),
		cmocka_unit_test_setup_teardown(slot__whose_sender_has_sent_waits_for_the_timeout, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
