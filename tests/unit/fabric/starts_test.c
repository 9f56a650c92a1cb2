/* Flows that are to begin: whatever the order they are added in, the earliest is the next, of several the lowest
 * number. */
#include <stdlib.h>
#include "base/random.h"
#include "fabric/starts.h"
#include "../unit.h"

enum { MANY = 5000 };

static struct flow_state flows[MANY];

static int by_start(const void *a, const void *b)
{
	const uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
	const vb_time at = flows[one].result.start, later = flows[other].result.start;
	return at != later ? (at > later) - (at < later) : (one > other) - (one < other);
}

static void flows__begin_by_start_then_number(void **state)
{
	uint32_t order[MANY], first = FLOW_NONE;
	struct vb_random random;
	vb_random_seed(&random, 7);
	for (uint32_t i = 0; i < MANY; i++) {
		order[i] = i;
		flows[i].result.start = vb_random_below(&random, MANY / 3);
	}
	for (uint32_t i = MANY; i-- > 0;)
		first = starts_add(flows, first, i);
	qsort(order, MANY, sizeof(order[0]), by_start);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(first, order[i]);
		first = starts_remove(flows, first);
	}
	assert_int_equal(first, FLOW_NONE);
}

/* As when the end of one lets another begin. */
static void flows__are_added_while_others_are_removed(void **state)
{
	uint32_t first = FLOW_NONE, added = 0;
	struct vb_random random;
	vb_random_seed(&random, 8);
	vb_time now = 0;
	for (uint32_t removed = 0; removed < MANY; removed++) {
		for (uint32_t more = vb_random_below(&random, 4); added < MANY && (more-- > 0 || first == FLOW_NONE);
			added++) {
			flows[added].result.start = now + vb_random_below(&random, 1000);
			first = starts_add(flows, first, added);
		}
		assert_true(flows[first].result.start >= now);
		now = flows[first].result.start;
		first = starts_remove(flows, first);
	}
	assert_int_equal(first, FLOW_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flows__begin_by_start_then_number),
		cmocka_unit_test(flows__are_added_while_others_are_removed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
