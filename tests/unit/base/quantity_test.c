/* Quantities as people write them. */
#include "base/quantity.h"
#include "../unit.h"

static void read(enum vb_quantity kind, const char *text, uint64_t wanted)
{
	uint64_t value = 0;
	if (!vb_quantity_read(kind, text, &value) || value != wanted)
		fail_msg("'%s' is %llu", text, (unsigned long long)value);
}

static void refused(enum vb_quantity kind, const char *text)
{
	uint64_t value;
	if (vb_quantity_read(kind, text, &value))
		fail_msg("'%s' was read, as %llu", text, (unsigned long long)value);
}

static void quantity__times_are_picoseconds(void **state)
{
	read(VB_QUANTITY_TIME, "500ns", 500000);
	read(VB_QUANTITY_TIME, "1us", 1000000);
	read(VB_QUANTITY_TIME, "1 \xc2\xb5s", 1000000);
	read(VB_QUANTITY_TIME, "2.5 ms", 2500000000u);
	read(VB_QUANTITY_TIME, "1s", 1000000000000u);
	read(VB_QUANTITY_TIME, "0.001ns", 1);
	read(VB_QUANTITY_TIME, "0", 0);
	refused(VB_QUANTITY_TIME, "5"); /* of what? */
	refused(VB_QUANTITY_TIME, "0.3ps");
	refused(VB_QUANTITY_TIME, "-1us");
	refused(VB_QUANTITY_TIME, "1 hour");
	refused(VB_QUANTITY_TIME, "99999999999999999999s");
}

static void quantity__rates_are_bits_a_second(void **state)
{
	read(VB_QUANTITY_RATE, "400G", 400000000000u);
	read(VB_QUANTITY_RATE, "100Gb/s", 100000000000u);
	read(VB_QUANTITY_RATE, "1.6 Tbps", 1600000000000u);
	read(VB_QUANTITY_RATE, "25 Gbit/s", 25000000000u);
	refused(VB_QUANTITY_RATE, "400");
	refused(VB_QUANTITY_RATE, "400GB/s");
}

static void quantity__bytes_know_both_thousands(void **state)
{
	read(VB_QUANTITY_BYTES, "4096", 4096);
	read(VB_QUANTITY_BYTES, "2 MB", 2000000);
	read(VB_QUANTITY_BYTES, "2MB", 2000000);
	read(VB_QUANTITY_BYTES, "64KiB", 65536);
	read(VB_QUANTITY_BYTES, "1.5kB", 1500);
	read(VB_QUANTITY_BYTES, "500 B", 500);
	refused(VB_QUANTITY_BYTES, "1.5");
	refused(VB_QUANTITY_BYTES, "64Kib");
	refused(VB_QUANTITY_BYTES, "");
	refused(VB_QUANTITY_BYTES, "B");
	refused(VB_QUANTITY_BYTES, "0x10");
	refused(VB_QUANTITY_BYTES, "1.MB");
}

static void quantity__shares_are_parts_in_a_million(void **state)
{
	read(VB_QUANTITY_SHARE, "1%", 10000);
	read(VB_QUANTITY_SHARE, "0.5 %", 5000);
	read(VB_QUANTITY_SHARE, "50ppm", 50);
	read(VB_QUANTITY_SHARE, "0.2", 200000);
	refused(VB_QUANTITY_SHARE, "0.0000001");
}

static void quantity__gains_are_parts_of_two_to_the_32nd(void **state)
{
	read(VB_QUANTITY_GAIN, "1/256", UINT64_C(1) << 24);
	read(VB_QUANTITY_GAIN, "0.00390625", UINT64_C(1) << 24);
	read(VB_QUANTITY_GAIN, "1", VB_GAIN_ONE);
	read(VB_QUANTITY_GAIN, "0", 0);
	read(VB_QUANTITY_GAIN, "0.1", 429496730);
	static const char *const wrong[] = { "1.1", "2/1", "1/0", "1/0.5", "1/", "/2", "1/2/3", "", "1/256 ", "5%",
		"-1", "1/99999999999", "0.1234567890123456789012" };
	for (size_t i = 0; i < COUNT_OF(wrong); i++)
		refused(VB_QUANTITY_GAIN, wrong[i]);
}

static void quantity__forms_are_quantities(void **state)
{
	for (enum vb_quantity kind = VB_QUANTITY_BYTES; kind <= VB_QUANTITY_GAIN; kind++) {
		char example[64];
		const char *from = strstr(vb_quantity_form(kind), ": ") + 2;
		snprintf(example, sizeof(example), "%.*s", (int)strcspn(from, ","), from);
		uint64_t value;
		assert_true(vb_quantity_read(kind, example, &value));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantity__times_are_picoseconds),
		cmocka_unit_test(quantity__rates_are_bits_a_second),
		cmocka_unit_test(quantity__bytes_know_both_thousands),
		cmocka_unit_test(quantity__shares_are_parts_in_a_million),
		cmocka_unit_test(quantity__gains_are_parts_of_two_to_the_32nd),
		cmocka_unit_test(quantity__forms_are_quantities),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
