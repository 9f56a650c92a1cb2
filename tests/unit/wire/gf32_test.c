/* The tables and the multiplications against single steps and the figures of the specification's arithmetic. */
#include "base/random.h"
#include "wire/gf32.h"
#include "../unit.h"

static uint32_t times_x(uint32_t a)
{
	return a >> 1 ^ (a & 1 ? VB_GF32_POLYNOMIAL : 0);
}

static uint32_t over_x(uint32_t a)
{
	return a & 0x80000000u ? (a ^ VB_GF32_POLYNOMIAL) << 1 | 1 : a << 1;
}

static uint32_t step_words(uint32_t a, uint32_t words, uint32_t (*step)(uint32_t))
{
	for (uint32_t i = 0; i < 32 * words; i++)
		a = step(a);
	return a;
}

static void gf32__multiplications_agree(void **state)
{
	struct vb_random random;
	vb_random_seed(&random, 3);
	for (int i = 0; i < 10000; i++) {
		uint32_t a = (uint32_t)vb_random_u64(&random), b = (uint32_t)vb_random_u64(&random);
		assert_int_equal(vb_gf32_multiply(a, b), vb_gf32_multiply_portable(a, b));
	}
	assert_int_equal(vb_gf32_multiply(0xFFFFFFFF, 0xFFFFFFFF), vb_gf32_multiply_portable(0xFFFFFFFF, 0xFFFFFFFF));
}

static void gf32__one_and_x_multiply_as_they_should(void **state)
{
	assert_int_equal(vb_gf32_multiply(0x12345678, VB_GF32_ONE), 0x12345678);
	assert_int_equal(vb_gf32_multiply(0, 0x12345678), 0);
	assert_int_equal(vb_gf32_multiply_portable(0x12345679, VB_GF32_ONE >> 1), times_x(0x12345679));
	assert_int_equal(vb_gf32_multiply(0x12345679, VB_GF32_ONE >> 1), times_x(0x12345679));
}

static void gf32__shifts_are_single_steps_of_every_count(void **state)
{
	uint32_t ahead = 0x9ABCDEF1, behind = 0x9ABCDEF1;
	for (uint32_t words = 0; words <= VB_GF32_WORDS_MAX; words++) {
		assert_int_equal(vb_gf32_forward(0x9ABCDEF1, words), ahead);
		assert_int_equal(vb_gf32_back(0x9ABCDEF1, words), behind);
		ahead = step_words(ahead, 1, times_x);
		behind = step_words(behind, 1, over_x);
	}
}

/* K(P) = x^-(8(P + 16) + 32), figures worked out apart from this code. */
static void gf32__constants_of_the_icrc_are_the_published_ones(void **state)
{
	static const struct {
		uint32_t payload, k;
	} known[] = { { 16, 0xd50cbcf7 }, { 20, 0xebd369b3 }, { 32, 0x4cc54c19 }, { 36, 0xe364fe50 },
		{ 40, 0x6fef6bf6 }, { 48, 0xbb26d682 }, { 76, 0xdb1c4863 }, { 92, 0xc31ec6b9 }, { 272, 0x30a8f578 },
		{ 280, 0x8d11ea66 }, { 1040, 0xb871db31 }, { 1056, 0xccf87f2e }, { 4112, 0x2d1024aa },
		{ 4128, 0xb6c39c82 } };
	for (size_t i = 0; i < COUNT_OF(known); i++)
		assert_int_equal(vb_gf32_back(VB_GF32_ONE, (known[i].payload + 20) / 4), known[i].k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gf32__multiplications_agree),
		cmocka_unit_test(gf32__one_and_x_multiply_as_they_should),
		cmocka_unit_test(gf32__shifts_are_single_steps_of_every_count),
		cmocka_unit_test(gf32__constants_of_the_icrc_are_the_published_ones),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
