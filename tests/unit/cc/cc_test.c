/* How an algorithm begins and ends, whichever it is. */
#include "cc/cc.h"
#include "../unit.h"

static void *seen;

static void look(struct vb_cc *cc, vb_time now)
{
	seen = vb_cc_state(cc);
	assert_int_equal(now, 7);
	assert_int_equal(cc->rate, 0);
	assert_false(cc->timer.is_set);
}

static struct vb_cc started(uint32_t state_bytes, uint32_t first, uint32_t max)
{
	static struct vb_cc_algorithm algorithm;
	algorithm = (struct vb_cc_algorithm){ .state_bytes = state_bytes, .init = look };
	struct vb_cc_config config = {
		.algorithm = &algorithm, .parameters = &seen, .first_window = first, .max_window = max
	};
	struct vb_cc cc;
	memset(&cc, 0xEE, sizeof(cc));
	cc.large_state = NULL;
	assert_int_equal(vb_cc_start(&cc, &config, 4096, 7), 0);
	assert_ptr_equal(cc.parameters, &seen);
	return cc;
}

static void first_window__lies_between_the_smallest_and_the_largest(void **state)
{
	assert_int_equal(started(0, 0, 1 << 20).window_bytes, 65536);
	assert_int_equal(started(0, 20000, 1 << 20).window_bytes, 20000);
	assert_int_equal(started(0, 20000, 10000).window_bytes, 10000);
	assert_int_equal(started(0, 1, 10000).window_bytes, 4096);
}

static void state__that_is_small_takes_no_memory_of_its_own(void **state)
{
	struct vb_cc cc = started(sizeof(cc.state), 0, 1 << 20);
	assert_null(cc.large_state);
	for (size_t i = 0; i < sizeof(cc.state); i++)
		assert_int_equal(((unsigned char *)vb_cc_state(&cc))[i], 0);
}

static void state__that_is_large_is_made_and_freed(void **state)
{
	struct vb_cc cc = started(4096, 0, 1 << 20);
	assert_non_null(cc.large_state);
	assert_ptr_equal(seen, cc.large_state);
	for (int i = 0; i < 4096; i++)
		assert_int_equal(((unsigned char *)vb_cc_state(&cc))[i], 0);
	vb_cc_stop(&cc);
	assert_null(cc.algorithm);
	assert_null(cc.large_state);
	vb_cc_stop(&cc);
}

static void none__has_no_window_and_wants_to_know_nothing(void **state)
{
	struct vb_cc cc = { 0 };
	assert_int_equal(
		vb_cc_start(&cc, &(struct vb_cc_config){ .algorithm = &vb_cc_none, .max_window = 65536 }, 4096, 0), 0);
	assert_int_equal(cc.window_bytes, VB_CC_UNLIMITED);
	assert_int_equal(cc.rate, 0);
	assert_false(cc.timer.is_set);
	assert_null(vb_cc_none.on_signal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_window__lies_between_the_smallest_and_the_largest),
		cmocka_unit_test(state__that_is_small_takes_no_memory_of_its_own),
		cmocka_unit_test(state__that_is_large_is_made_and_freed),
		cmocka_unit_test(none__has_no_window_and_wants_to_know_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
