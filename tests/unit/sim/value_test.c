/* Values as people write them. */
#include "../unit.h"
#include "sim/value.h"

static void value__integers_are_quantities(void **state)
{
	uint64_t value;
	assert_true(value_integer(VALUE_TIME, "1us", &value) && value == 1000000);
	assert_true(value_integer(VALUE_RATE, "1G", &value) && value == 1000000000);
	assert_true(value_integer(VALUE_BYTES, "1kB", &value) && value == 1000);
	assert_true(value_integer(VALUE_SHARE, "1%", &value) && value == 10000);
	assert_true(value_integer(VALUE_COUNT, "1", &value) && value == 1);
	assert_false(value_integer(VALUE_COUNT, "1kB", &value));
}

static void value__reals_are_finite_and_not_negative(void **state)
{
	double value;
	assert_true(value_real("30%", &value) && value > 0.299 && value < 0.301);
	assert_true(value_real("1e-9", &value) && value == 1e-9);
	static const char *const wrong[] = { "nan", "inf", "-1", "1e999", "", "0x1p3", "1 2", "one" };
	for (size_t i = 0; i < COUNT_OF(wrong); i++)
		assert_false(value_real(wrong[i], &value));
}

static void value__words_are_whole(void **state)
{
	uint32_t index;
	bool flag;
	assert_true(value_word("drops|pfc|credits", "pfc", &index) && index == 1);
	assert_true(value_word("drops|pfc|credits", "credits", &index) && index == 2);
	assert_false(value_word("drops|pfc|credits", "pf", &index));
	assert_false(value_word("drops|pfc|credits", "drops|pfc", &index));
	assert_true(value_flag("yes", &flag) && flag);
	assert_true(value_flag("off", &flag) && !flag);
	assert_false(value_flag("1", &flag));
}

static void value__text_has_the_unit_that_fits(void **state)
{
	char text[32];
	assert_string_equal(value_time_text(179862080, text, sizeof(text)), "179.9 us");
	assert_string_equal(value_time_text(0, text, sizeof(text)), "0 ps");
	assert_string_equal(value_bytes_text(2000000, text, sizeof(text)), "2 MB");
	assert_string_equal(value_rate_text(400000000000, text, sizeof(text)), "400 Gb/s");
	assert_string_equal(value_count_text(2345678, text, sizeof(text)), "2.346 M");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(value__integers_are_quantities),
		cmocka_unit_test(value__reals_are_finite_and_not_negative),
		cmocka_unit_test(value__words_are_whole),
		cmocka_unit_test(value__text_has_the_unit_that_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
