#include <stdlib.h>
#include "base/random.h"
#include "fabric/wakes.h"
#include "../unit.h"

enum { MANY = 3000 };

static void wakes__come_in_order_and_are_dropped_when_they_have(void **state)
{
	static uint8_t left[MANY];
	struct wakes wakes = { 0 };
	struct vb_random random;
	uint32_t count = 0;
	vb_random_seed(&random, 4);
	for (uint32_t i = 0; i < MANY; i++) {
		const uint32_t at = vb_random_below(&random, MANY);
		assert_true(wakes_add(&wakes, at));
		left[at]++;
	}
	for (uint32_t now = 0; now < MANY; now++) {
		if (left[now])
			assert_int_equal(wakes_next(&wakes).at, now);
		wakes_drop(&wakes, now);
		count += left[now];
		assert_int_equal(wakes.count, MANY - count);
		assert_true(!wakes_next(&wakes).is_set || wakes_next(&wakes).at > now);
	}
	free(wakes.heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wakes__come_in_order_and_are_dropped_when_they_have),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
