#include <math.h>
#include "base/random.h"
#include "net/chance.h"
#include "../unit.h"

static void below__is_below(void **state)
{
	assert_int_equal(chance_below(UINT64_MAX, 7), 6);
	assert_int_equal(chance_below(0, 7), 0);
	assert_int_equal(chance_below(UINT64_MAX, UINT64_MAX), UINT64_MAX - 1);
	assert_int_equal(chance_below((uint64_t)1 << 63, 10), 5);
}

/* Frozen: whoever changes one changes every run that draws times. */
static void exponential__is_what_it_always_was(void **state)
{
	assert_int_equal(chance_exponential(UINT64_MAX), 0);
	assert_int_equal(chance_exponential(0), 157783357006);
	assert_int_equal(chance_exponential((uint64_t)1 << 63), 2977044471);
	assert_int_equal(chance_exponential(0x123456789ABCDEF0), 11353796212);
}

static void exponential__is_the_logarithm(void **state)
{
	struct vb_random random;
	vb_random_seed(&random, 1);
	for (int i = 0; i < 100000; i++) {
		uint64_t r = vb_random_u64(&random) >> i % 64;
		double exact = -log((double)((r >> 11) + 1) / 9007199254740992.0);
		assert_true(fabs((double)chance_exponential(r) / 4294967296.0 - exact) < 1e-9);
	}
}

static void exponential__has_mean_and_deviation_1(void **state)
{
	enum { DRAWS = 1000000 };
	struct vb_random random;
	vb_random_seed(&random, 2);
	double sum = 0, squares = 0;
	for (int i = 0; i < DRAWS; i++) {
		double x = (double)chance_exponential(vb_random_u64(&random)) / 4294967296.0;
		sum += x;
		squares += x * x;
	}
	assert_true(fabs(sum / DRAWS - 1) < 0.005);
	assert_true(fabs(squares / DRAWS - 2) < 0.02);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(below__is_below),
		cmocka_unit_test(exponential__is_what_it_always_was),
		cmocka_unit_test(exponential__is_the_logarithm),
		cmocka_unit_test(exponential__has_mean_and_deviation_1),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
