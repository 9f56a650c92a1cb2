/* What people read: text.c, and the rates of rate.c. */
#include "host/devices/identity.h"
#include "host/report/text.h"
#include "../unit.h"

static void text__of_sizes_has_two_digits_or_three(void **state)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} rows[] = { { 0, "0 bytes" }, { 999, "999 bytes" }, { 1000, "1.0 kB" }, { 12345, "12 kB" },
		{ 123456789, "123 MB" }, { 7000000000, "7.0 GB" }, { UINT64_MAX, "18446744 TB" } };
	char text[32];
	for (unsigned i = 0; i < COUNT_OF(rows); i++)
		assert_string_equal(vb_text_bytes(rows[i].bytes, text, sizeof(text)), rows[i].text);
}

static void text__of_spans_is_never_negative(void **state)
{
	char text[32];
	assert_string_equal(vb_text_span(-5 * VB_S, text, sizeof(text)), "0 ns");
	assert_string_equal(vb_text_span(20 * VB_US, text, sizeof(text)), "20 us");
	assert_string_equal(vb_text_span(4100 * VB_MS, text, sizeof(text)), "4.1 s");
	assert_string_equal(vb_text_span(3600 * VB_S, text, sizeof(text)), "3600 s");
}

static void text__of_gids_is_the_address(void **state)
{
	struct vb_gid four = vb_gid_from_ipv4(10, 0, 0, 2), six = { { 0xfe, 0x80, [15] = 1 } };
	char text[VB_TEXT_GID];
	assert_string_equal(vb_text_gid(&four, text), "10.0.0.2");
	assert_string_equal(vb_text_gid(&six, text), "fe80::1");
}

/* In hundreds of Mbit/s, as InfiniBand counts: lanes times the speed of one. */
static unsigned rate(uint64_t mbps)
{
	uint8_t width, speed;
	vb_device_rate(mbps, &width, &speed);
	unsigned lanes = width == 1 ? 1 : width == 2 ? 4 : 8;
	unsigned each = speed == 1    ? 25
			: speed == 2  ? 50
			: speed == 4  ? 100
			: speed == 16 ? 140
			: speed == 32 ? 250
			: speed == 64 ? 500
				      : 1000;
	return lanes * each;
}

static void rate__of_ethernet_is_said_exactly(void **state)
{
	static const unsigned gbps[] = { 5, 10, 20, 25, 40, 50, 56, 100, 200, 400, 800 };
	for (unsigned i = 0; i < COUNT_OF(gbps); i++)
		assert_int_equal(rate(gbps[i] * 1000ull), gbps[i] * 10);
	assert_int_equal(rate(2500), 25);
	assert_int_equal(rate(1000), 25); /* the least there is */
	assert_int_equal(rate(0), 1000);  /* an interface that does not say */
}

static void rate__never_falls_with_speed(void **state)
{
	unsigned last = 0;
	for (uint64_t mbps = 1; mbps < 2000000; mbps += 500) {
		assert_true(rate(mbps) >= last);
		last = rate(mbps);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text__of_sizes_has_two_digits_or_three),
		cmocka_unit_test(text__of_spans_is_never_negative),
		cmocka_unit_test(text__of_gids_is_the_address),
		cmocka_unit_test(rate__of_ethernet_is_said_exactly),
		cmocka_unit_test(rate__never_falls_with_speed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
