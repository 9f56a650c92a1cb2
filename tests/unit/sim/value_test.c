/* Values as people write them. */
#include "../unit.h"
#include "sim/value.h"

static void read(enum value_kind kind, const char *text, uint64_t wanted)
{
	uint64_t value = 0;
	if (!value_integer(kind, text, &value) || value != wanted)
		fail_msg("'%s' is %llu", text, (unsigned long long)value);
}

static void refused(enum value_kind kind, const char *text)
{
	uint64_t value;
	if (value_integer(kind, text, &value))
		fail_msg("'%s' was read, as %llu", text, (unsigned long long)value);
}

static void value__times_are_picoseconds(void **state)
{
	read(VALUE_TIME, "500ns", 500000);
	read(VALUE_TIME, "1us", 1000000);
	read(VALUE_TIME, "1 \xc2\xb5s", 1000000);
	read(VALUE_TIME, "2.5 ms", 2500000000u);
	read(VALUE_TIME, "1s", 1000000000000u);
	read(VALUE_TIME, "0.001ns", 1);
	read(VALUE_TIME, "0", 0);
	refused(VALUE_TIME, "5"); /* of what? */
	refused(VALUE_TIME, "0.3ps");
	refused(VALUE_TIME, "-1us");
	refused(VALUE_TIME, "1 hour");
	refused(VALUE_TIME, "99999999999999999999s");
}

static void value__rates_are_bits_a_second(void **state)
{
	read(VALUE_RATE, "400G", 400000000000u);
	read(VALUE_RATE, "100Gb/s", 100000000000u);
	read(VALUE_RATE, "1.6 Tbps", 1600000000000u);
	read(VALUE_RATE, "25 Gbit/s", 25000000000u);
	refused(VALUE_RATE, "400");
	refused(VALUE_RATE, "400GB/s");
}

static void value__bytes_know_both_thousands(void **state)
{
	read(VALUE_BYTES, "4096", 4096);
	read(VALUE_BYTES, "2 MB", 2000000);
	read(VALUE_BYTES, "2MB", 2000000);
	read(VALUE_BYTES, "64KiB", 65536);
	read(VALUE_BYTES, "1.5kB", 1500);
	read(VALUE_BYTES, "500 B", 500);
	refused(VALUE_BYTES, "1.5");
	refused(VALUE_BYTES, "64Kib");
	refused(VALUE_BYTES, "");
	refused(VALUE_BYTES, "B");
	refused(VALUE_BYTES, "0x10");
	refused(VALUE_BYTES, "1.MB");
}

static void value__shares_are_parts_in_a_million(void **state)
{
	read(VALUE_SHARE, "1%", 10000);
	read(VALUE_SHARE, "0.5 %", 5000);
	read(VALUE_SHARE, "50ppm", 50);
	read(VALUE_SHARE, "0.2", 200000);
	refused(VALUE_SHARE, "0.0000001");
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
		cmocka_unit_test(value__times_are_picoseconds),
		cmocka_unit_test(value__rates_are_bits_a_second),
		cmocka_unit_test(value__bytes_know_both_thousands),
		cmocka_unit_test(value__shares_are_parts_in_a_million),
		cmocka_unit_test(value__reals_are_finite_and_not_negative),
		cmocka_unit_test(value__words_are_whole),
		cmocka_unit_test(value__text_has_the_unit_that_fits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
