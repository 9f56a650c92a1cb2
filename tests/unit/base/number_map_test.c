/* A map from numbers to numbers, against an array. */
#include "base/random.h"
#include "base/number_map.h"
#include "../unit.h"

enum { KEYS = 300, STEPS = 200000 };

/* Keys that share their home, and others. */
static uint64_t key_of(uint32_t i)
{
	return i % 2 ? (uint64_t)i << 40 : i;
}

static void map__has_what_was_put_in_and_not_taken_out(void **state)
{
	static uint32_t values[KEYS];
	struct number_map map = { 0 };
	struct vb_random random;
	uint32_t most = 0;

	vb_random_seed(&random, 5);
	for (uint32_t step = 0; step < STEPS; step++) {
		const uint32_t i = vb_random_below(&random, step % 1000 < 500 ? KEYS : 8);
		if (vb_random_below(&random, 2)) {
			uint32_t *value = number_map_make(&map, key_of(i));
			assert_non_null(value);
			assert_int_equal(*value, values[i]);
			*value = values[i] = step + 1;
		} else {
			number_map_remove(&map, key_of(i));
			values[i] = 0;
		}
		most = map.count > most ? map.count : most;
		for (uint32_t k = step % 7; k < KEYS; k += 7) {
			const uint32_t *value = number_map_find(&map, key_of(k));
			assert_int_equal(value ? *value : 0, values[k]);
		}
	}
	assert_true(most > KEYS / 3);
	number_map_free(&map);
	assert_null(number_map_find(&map, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(map__has_what_was_put_in_and_not_taken_out) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
