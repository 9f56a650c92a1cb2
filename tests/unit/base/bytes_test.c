#include "base/bytes.h"
#include "../unit.h"

static const uint8_t bytes[] = { 0xFF, 0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF };

static void bytes__loads_are_big_endian_at_any_address(void **state)
{
	assert_int_equal(vb_load_be16(bytes + 1), 0x0123);
	assert_int_equal(vb_load_be24(bytes + 1), 0x012345);
	assert_int_equal(vb_load_be32(bytes + 1), 0x01234567);
	assert_true(vb_load_be64(bytes + 1) == 0x0123456789ABCDEFu);
}

static void bytes__loads_of_high_bits_are_unsigned(void **state)
{
	static const uint8_t high[8] = { 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF };
	assert_true(vb_load_be16(high) == 0xFFFFu);
	assert_true(vb_load_be24(high) == 0xFFFFFFu);
	assert_true(vb_load_be32(high) == 0xFFFFFFFFu);
	assert_true(vb_load_be64(high) == UINT64_MAX);
}

static void bytes__stores_write_exactly_their_width(void **state)
{
	uint8_t out[10];
	memset(out, 0xEE, sizeof(out));
	vb_store_be16(out + 1, 0x0123);
	assert_memory_equal(out, "\xEE\x01\x23\xEE", 4);
	vb_store_be24(out + 1, 0x012345);
	assert_memory_equal(out, "\xEE\x01\x23\x45\xEE", 5);
	vb_store_be32(out + 1, 0x01234567);
	assert_memory_equal(out, "\xEE\x01\x23\x45\x67\xEE", 6);
	vb_store_be64(out + 1, 0x0123456789ABCDEF);
	assert_memory_equal(out, "\xEE\x01\x23\x45\x67\x89\xAB\xCD\xEF\xEE", 10);
}

static void bytes__store_of_24_ignores_the_top_byte(void **state)
{
	uint8_t out[3];
	vb_store_be24(out, 0xAA123456);
	assert_memory_equal(out, "\x12\x34\x56", 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes__loads_are_big_endian_at_any_address),
		cmocka_unit_test(bytes__loads_of_high_bits_are_unsigned),
		cmocka_unit_test(bytes__stores_write_exactly_their_width),
		cmocka_unit_test(bytes__store_of_24_ignores_the_top_byte),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
