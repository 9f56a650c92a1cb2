/* The queue of a bottleneck, worked out by hand. */
#include "port/bottleneck.h"
#include "../unit.h"

enum { BYTES = 1250 }; /* 10 us at 1 Gb/s */

static struct vb_random random_numbers;

static struct vb_bottleneck neck_of(uint64_t queue, uint64_t kmin, uint64_t kmax, uint32_t pmax_ppm)
{
	vb_random_seed(&random_numbers, 1);
	return (struct vb_bottleneck){
		.rate = 1000000000, .queue = queue, .kmin = kmin, .kmax = kmax, .pmax_ppm = pmax_ppm
	};
}

static enum vb_bottleneck_fate admit(struct vb_bottleneck *neck, bool takes_marks, vb_time now, vb_time *leaves_at)
{
	return vb_bottleneck_admit(neck, BYTES, takes_marks, &random_numbers, now, leaves_at);
}

static void packets__leave_one_behind_the_other(void **state)
{
	struct vb_bottleneck neck = neck_of(100 * BYTES, 0, 0, 0);
	vb_time at, now = 5 * VB_S;
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(admit(&neck, false, now, &at), VB_BOTTLENECK_PASSES);
		assert_int_equal(at - now, i * 10 * VB_US);
	}
	now += 25 * VB_US; /* half of the third is left */
	assert_int_equal(admit(&neck, false, now, &at), VB_BOTTLENECK_PASSES);
	assert_int_equal(at - now, 15 * VB_US);
	now += VB_S; /* nothing was saved up */
	assert_int_equal(admit(&neck, false, now, &at), VB_BOTTLENECK_PASSES);
	assert_int_equal(at - now, 10 * VB_US);
	assert_int_equal(neck.most, 3 * BYTES);
	assert_int_equal(neck.drops + neck.marks, 0);
}

static void queue__that_is_full_drops(void **state)
{
	struct vb_bottleneck neck = neck_of(4 * BYTES, 0, 0, 0);
	vb_time at;
	for (int i = 0; i < 4; i++)
		assert_int_equal(admit(&neck, true, 0, &at), VB_BOTTLENECK_PASSES);
	assert_int_equal(admit(&neck, true, 0, &at), VB_BOTTLENECK_DROPS);
	assert_int_equal(admit(&neck, true, 9 * VB_US, &at), VB_BOTTLENECK_DROPS);
	assert_int_equal(admit(&neck, true, 10 * VB_US, &at), VB_BOTTLENECK_PASSES);
	assert_int_equal(neck.drops, 2);
	assert_int_equal(neck.most, 4 * BYTES);
}

/* 0 .. 4 packets wait. */
static void marks__begin_above_kmin_and_are_all_above_kmax(void **state)
{
	struct vb_bottleneck neck = neck_of(100 * BYTES, 2 * BYTES, 2 * BYTES, 1000000);
	vb_time at;
	for (int i = 0; i < 5; i++)
		assert_int_equal(admit(&neck, true, 0, &at), i <= 2 ? VB_BOTTLENECK_PASSES : VB_BOTTLENECK_MARKS);
	assert_int_equal(neck.marks, 2);
}

/* The queue is held in the middle between kmin and kmax. */
static void marks__between_are_by_chance(void **state)
{
	struct vb_bottleneck neck = neck_of(100 * BYTES, 10 * BYTES, 30 * BYTES, 500000);
	vb_time at, now = 0;
	for (int i = 0; i < 20; i++) {
		enum vb_bottleneck_fate fate = admit(&neck, true, now, &at);
		assert_true(fate != VB_BOTTLENECK_DROPS);
	}
	neck.marks = 0;
	for (int i = 0; i < 10000; i++) {
		assert_true(admit(&neck, true, now, &at) != VB_BOTTLENECK_DROPS);
		now += 10 * VB_US;
	}
	assert_in_range(neck.marks, 2350, 2650); /* half of half */
}

static void packets__that_take_no_marks_are_dropped_instead(void **state)
{
	struct vb_bottleneck neck = neck_of(100 * BYTES, BYTES, BYTES, 1000000);
	vb_time at;
	assert_int_equal(admit(&neck, false, 0, &at), VB_BOTTLENECK_PASSES);
	assert_int_equal(admit(&neck, false, 0, &at), VB_BOTTLENECK_PASSES);
	assert_int_equal(admit(&neck, false, 0, &at), VB_BOTTLENECK_DROPS);
	assert_int_equal(neck.marks, 0);
	assert_int_equal(neck.drops, 1);
}

/* Two packets at 0: 20 us of queue that falls to nothing, then nothing for as long. */
static void mean__is_of_time(void **state)
{
	struct vb_bottleneck neck = neck_of(100 * BYTES, 0, 0, 0);
	vb_time at;
	assert_int_equal(vb_bottleneck_mean(&neck), 0);
	admit(&neck, false, VB_S, &at);
	admit(&neck, false, VB_S, &at);
	admit(&neck, false, VB_S + 40 * VB_US, &at);
	assert_in_range(vb_bottleneck_mean(&neck), BYTES / 2 - 1, BYTES / 2 + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets__leave_one_behind_the_other),
		cmocka_unit_test(queue__that_is_full_drops),
		cmocka_unit_test(marks__begin_above_kmin_and_are_all_above_kmax),
		cmocka_unit_test(marks__between_are_by_chance),
		cmocka_unit_test(packets__that_take_no_marks_are_dropped_instead),
		cmocka_unit_test(mean__is_of_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
