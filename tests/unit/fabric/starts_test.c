/* Operations that are to begin: whatever the order they are added in, the earliest is the next, of several the one of
 * the lowest job, then of the lowest tag. */
#include <stdlib.h>
#include "base/random.h"
#include "fabric/starts.h"
#include "../unit.h"

enum { MANY = 5000 };

static struct fabric fabric;

/* Their numbers are 0 to MANY - 1. */
static int setup(void **state)
{
	struct pool_list list = pool_empty_list();
	fabric = (struct fabric){ 0 };
	pool_open(&fabric.flows, flow_stride(0));
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(pool_take(&fabric.flows, &list), i);
		flow_at(&fabric, i)->job = i % 3 == 0;
		flow_at(&fabric, i)->tag = i / 2 * 2 + !(i & 1); /* not in the order of numbers */
	}
	return 0;
}

static int teardown(void **state)
{
	pool_close(&fabric.flows);
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
	const struct flow_state *a_flow = flow_at(&fabric, one), *b_flow = flow_at(&fabric, other);
	const vb_time at = a_flow->due, later = b_flow->due;
	if (at != later)
		return at > later ? 1 : -1;
	if (a_flow->job != b_flow->job)
		return a_flow->job > b_flow->job ? 1 : -1;
	return a_flow->tag > b_flow->tag ? 1 : -1;
}

static void operations__begin_by_start_then_job_then_tag(void **state)
{
	uint32_t order[MANY], first = FLOW_NONE;
	struct vb_random random;
	vb_random_seed(&random, 7);
	for (uint32_t i = 0; i < MANY; i++) {
		order[i] = i;
		flow_at(&fabric, i)->due = vb_random_below(&random, MANY / 3);
	}
	for (uint32_t i = MANY; i-- > 0;)
		first = starts_add(&fabric, first, i);
	qsort(order, MANY, sizeof(order[0]), by_start);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_int_equal(first, order[i]);
		first = starts_remove(&fabric, first);
	}
	assert_int_equal(first, FLOW_NONE);
}

/* As when the end of one lets another begin. */
static void operations__are_added_while_others_are_removed(void **state)
{
	uint32_t first = FLOW_NONE, added = 0;
	struct vb_random random;
	vb_random_seed(&random, 8);
	vb_time now = 0;
	for (uint32_t removed = 0; removed < MANY; removed++) {
		for (uint32_t more = vb_random_below(&random, 4); added < MANY && (more-- > 0 || first == FLOW_NONE);
			added++) {
			flow_at(&fabric, added)->due = now + vb_random_below(&random, 1000);
			first = starts_add(&fabric, first, added);
		}
		assert_true(flow_at(&fabric, first)->due >= now);
		now = flow_at(&fabric, first)->due;
		first = starts_remove(&fabric, first);
	}
	assert_int_equal(first, FLOW_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(operations__begin_by_start_then_job_then_tag, setup, teardown),
		cmocka_unit_test_setup_teardown(operations__are_added_while_others_are_removed, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
