/* The 24-bit circle of wire/packet.h. */
#include "wire/packet.h"
#include "../unit.h"

static void psn__difference_is_signed(void **state)
{
	assert_int_equal(vb_psn_diff(5, 3), 2);
	assert_int_equal(vb_psn_diff(3, 5), -2);
	assert_int_equal(vb_psn_diff(7, 7), 0);
}

static void psn__difference_crosses_zero(void **state)
{
	assert_int_equal(vb_psn_diff(0, 0xFFFFFF), 1);
	assert_int_equal(vb_psn_diff(0xFFFFFF, 0), -1);
	assert_int_equal(vb_psn_diff(0x000010, 0xFFFFF0), 0x20);
}

static void psn__half_the_circle_is_behind(void **state)
{
	assert_int_equal(vb_psn_diff(0x7FFFFF, 0), 0x7FFFFF);
	assert_int_equal(vb_psn_diff(0x800000, 0), -0x800000);
}

static void psn__difference_ignores_bits_above_24(void **state)
{
	assert_int_equal(vb_psn_diff(0xAB000005, 0xCD000003), 2);
}

static void psn__addition_wraps_at_24_bits(void **state)
{
	assert_int_equal(vb_psn_add(0xFFFFFF, 1), 0);
	assert_int_equal(vb_psn_add(0, (uint32_t)-1), 0xFFFFFF);
	assert_int_equal(vb_psn_diff(vb_psn_add(0xFFFFF0, 0x20), 0xFFFFF0), 0x20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(psn__difference_is_signed),
		cmocka_unit_test(psn__difference_crosses_zero),
		cmocka_unit_test(psn__half_the_circle_is_behind),
		cmocka_unit_test(psn__difference_ignores_bits_above_24),
		cmocka_unit_test(psn__addition_wraps_at_24_bits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
