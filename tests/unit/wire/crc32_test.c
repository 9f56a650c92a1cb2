/* Every way of computing a CRC-32 against single bits, at lengths around every step of theirs. */
#include "base/random.h"
#include "wire/crc32.h"
#include "wire/gf32.h"
#include "../unit.h"

#define LENGTH_MAX 1200

static uint8_t bytes[LENGTH_MAX + 8];

static uint32_t bit_by_bit(uint32_t crc, const uint8_t *b, size_t length)
{
	crc = ~crc;
	for (size_t i = 0; i < length; i++) {
		crc ^= b[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? VB_GF32_POLYNOMIAL : 0);
	}
	return ~crc;
}

static void crc32__is_the_published_one(void **state)
{
	assert_int_equal(vb_crc32(0, "123456789", 9), 0xCBF43926);
	assert_int_equal(vb_crc32_portable(0, "123456789", 9), 0xCBF43926);
	assert_int_equal(vb_crc32(7, NULL, 0), 7);
}

static void crc32__is_right_at_every_length_and_alignment(void **state)
{
	struct vb_random random;
	vb_random_seed(&random, 5);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)vb_random_u64(&random);
	for (size_t length = 0; length <= LENGTH_MAX; length++) {
		uint32_t before = (uint32_t)vb_random_u64(&random);
		const uint8_t *from = bytes + length % 8;
		uint32_t right = bit_by_bit(before, from, length);
		assert_int_equal(vb_crc32(before, from, length), right);
		assert_int_equal(vb_crc32_portable(before, from, length), right);
		vb_crc32_way *way;
		for (unsigned i = 0; (way = vb_crc32_way_of(i)); i++)
			assert_int_equal(way(before, from, length), right);
	}
}

static void crc32__goes_on_where_it_was(void **state)
{
	for (size_t cut = 0; cut <= LENGTH_MAX; cut++)
		assert_int_equal(vb_crc32(vb_crc32(0, bytes, cut), bytes + cut, LENGTH_MAX - cut),
			bit_by_bit(0, bytes, LENGTH_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc32__is_the_published_one),
		cmocka_unit_test(crc32__is_right_at_every_length_and_alignment),
		cmocka_unit_test(crc32__goes_on_where_it_was),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
