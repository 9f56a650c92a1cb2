#include "cc/cc.h"
#include "../unit.h"

enum { KIB = 1024 };

static struct vb_cc started(uint32_t min, uint32_t max)
{
	struct vb_cc cc = { 0 };
	assert_int_equal(
		vb_cc_start(&cc, &(struct vb_cc_config){ .algorithm = &vb_cc_window, .max_window = max }, min, 0), 0);
	return cc;
}

static void tell(struct vb_cc *cc, enum vb_cc_event event)
{
	vb_cc_window.on_signal(cc, &(struct vb_cc_signal){ .event = event });
}

static void ack_of(struct vb_cc *cc, uint32_t bytes, uint32_t flight)
{
	vb_cc_window.on_signal(cc, &(struct vb_cc_signal){ .event = VB_CC_ACKED, .acked = bytes, .flight = flight });
}

/* A full window is acknowledged. */
static void ack(struct vb_cc *cc, uint32_t bytes)
{
	ack_of(cc, bytes, cc->window_bytes);
}

static void window__starts_at_64_kib(void **state)
{
	struct vb_cc cc = started(4 * KIB, 1024 * KIB);
	assert_int_equal(cc.window_bytes, 64 * KIB);
	assert_int_equal(cc.rate, 0);
	assert_false(cc.timer.is_set);
}

static void window__starts_at_the_largest_when_that_is_smaller(void **state)
{
	struct vb_cc cc = started(4 * KIB, 20 * KIB);
	assert_int_equal(cc.window_bytes, 20 * KIB);
}

static void window__slow_start_doubles_a_round_up_to_the_largest(void **state)
{
	struct vb_cc cc = started(4 * KIB, 200 * KIB);
	ack(&cc, 64 * KIB);
	assert_int_equal(cc.window_bytes, 128 * KIB);
	ack(&cc, 128 * KIB);
	assert_int_equal(cc.window_bytes, 200 * KIB);
}

static void window__does_not_grow_while_it_is_not_used(void **state)
{
	struct vb_cc cc = started(4 * KIB, 200 * KIB);
	for (int i = 0; i < 100; i++)
		ack_of(&cc, 8 * KIB, 8 * KIB);
	assert_int_equal(cc.window_bytes, 64 * KIB);
}

static void window__loss_halves_it_but_never_below_the_smallest(void **state)
{
	struct vb_cc cc = started(20 * KIB, 200 * KIB);
	tell(&cc, VB_CC_LOST);
	assert_int_equal(cc.window_bytes, 32 * KIB);
	tell(&cc, VB_CC_LOST);
	assert_int_equal(cc.window_bytes, 20 * KIB);
	tell(&cc, VB_CC_LOST);
	assert_int_equal(cc.window_bytes, 20 * KIB);
}

static void window__grows_4_kib_a_round_after_a_loss(void **state)
{
	struct vb_cc cc = started(4 * KIB, 40 * KIB);
	tell(&cc, VB_CC_LOST);
	assert_int_equal(cc.window_bytes, 20 * KIB);
	ack(&cc, 20 * KIB - 1);
	assert_int_equal(cc.window_bytes, 20 * KIB);
	ack(&cc, 1);
	assert_int_equal(cc.window_bytes, 24 * KIB);
	for (int i = 0; i < 1000; i++)
		ack(&cc, 4 * KIB);
	assert_int_equal(cc.window_bytes, 40 * KIB);
}

static void window__cnps_of_one_round_halve_it_once(void **state)
{
	struct vb_cc cc = started(4 * KIB, 200 * KIB);
	tell(&cc, VB_CC_CNP);
	tell(&cc, VB_CC_CNP);
	assert_int_equal(cc.window_bytes, 32 * KIB);
	ack(&cc, 16 * KIB);
	tell(&cc, VB_CC_CNP);
	assert_true(cc.window_bytes >= 32 * KIB);
	ack(&cc, 48 * KIB);
	uint32_t before = cc.window_bytes;
	tell(&cc, VB_CC_CNP);
	assert_int_equal(cc.window_bytes, before / 2);
}

static void window__follows_the_holder_when_the_largest_changes(void **state)
{
	struct vb_cc cc = started(4 * KIB, 64 * KIB);
	cc.max_window = 256 * KIB;
	ack(&cc, 64 * KIB);
	assert_int_equal(cc.window_bytes, 128 * KIB);
	cc.max_window = 48 * KIB;
	ack_of(&cc, 1, 0);
	assert_int_equal(cc.window_bytes, 48 * KIB);
}

static void window__huge_acknowledgements_do_not_overflow(void **state)
{
	struct vb_cc cc = started(4 * KIB, UINT32_MAX);
	for (int i = 0; i < 8; i++)
		ack(&cc, UINT32_MAX);
	assert_true(cc.window_bytes == UINT32_MAX);
	tell(&cc, VB_CC_LOST);
	for (int i = 0; i < 8; i++)
		ack(&cc, UINT32_MAX);
	assert_true(cc.window_bytes > UINT32_MAX / 2 && cc.window_bytes < UINT32_MAX);
}

static void window__stays_within_its_bounds_whatever_happens(void **state)
{
	struct vb_cc cc = started(4 * KIB, 96 * KIB);
	uint64_t random = 1;
	for (int i = 0; i < 100000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		uint32_t what = random >> 60, bytes = random >> 40 & 0xFFFF;
		if (what == 0)
			tell(&cc, VB_CC_LOST);
		else if (what == 1)
			tell(&cc, VB_CC_CNP);
		else
			ack(&cc, bytes);
		assert_in_range(cc.window_bytes, 4 * KIB, 96 * KIB);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window__starts_at_64_kib),
		cmocka_unit_test(window__starts_at_the_largest_when_that_is_smaller),
		cmocka_unit_test(window__slow_start_doubles_a_round_up_to_the_largest),
		cmocka_unit_test(window__does_not_grow_while_it_is_not_used),
		cmocka_unit_test(window__loss_halves_it_but_never_below_the_smallest),
		cmocka_unit_test(window__grows_4_kib_a_round_after_a_loss),
		cmocka_unit_test(window__cnps_of_one_round_halve_it_once),
		cmocka_unit_test(window__follows_the_holder_when_the_largest_changes),
		cmocka_unit_test(window__huge_acknowledgements_do_not_overflow),
		cmocka_unit_test(window__stays_within_its_bounds_whatever_happens),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
