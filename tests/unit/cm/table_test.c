/* The hash table and the timers under many nodes. */
#include "base/random.h"
#include "cm/table.h"
#include "../unit.h"

enum { NODES = 1000 };

static void table__finds_what_it_holds_and_nothing_else(void **state)
{
	static struct vb_cm_node nodes[NODES];
	struct vb_cm_table table;
	assert_int_equal(vb_cm_table_init(&table), 0);
	for (unsigned i = 0; i < NODES; i++)
		vb_cm_table_add(&table, &nodes[i], i / 2 * 64); /* two of each hash */
	for (unsigned i = 0; i < NODES; i += 2) {
		struct vb_cm_node *node = vb_cm_table_find(&table, nodes[i].hash), *other;
		assert_non_null(node);
		other = vb_cm_table_next(node);
		assert_true(
			(node == &nodes[i] && other == &nodes[i + 1]) || (other == &nodes[i] && node == &nodes[i + 1]));
		assert_null(vb_cm_table_next(other));
	}
	assert_null(vb_cm_table_find(&table, 1));
	for (unsigned i = 0; i < NODES; i += 2) {
		vb_cm_table_remove(&table, &nodes[i]);
		vb_cm_table_remove(&table, &nodes[i]);
		assert_ptr_equal(vb_cm_table_find(&table, nodes[i].hash), &nodes[i + 1]);
	}
	assert_int_equal(table.count, NODES / 2);
	vb_cm_table_deinit(&table);
}

static void timers__come_up_in_order_whatever_is_moved_or_cancelled(void **state)
{
	static struct vb_cm_timer timers[NODES];
	struct vb_cm_timers heap = { 0 };
	struct vb_random random;
	vb_time start = INT64_MAX - 500, last = start; /* times wrap on the way */
	unsigned expected = 0, seen = 0;
	vb_random_seed(&random, 3);
	for (unsigned i = 0; i < NODES; i++) {
		assert_int_equal(vb_cm_timers_reserve(&heap, i + 1), 0);
		vb_cm_timer_init(&timers[i]);
		vb_cm_timer_set(&heap, &timers[i], vb_time_add(start, vb_random_below(&random, 1000)));
	}
	for (unsigned i = 0; i < NODES; i += 3)
		vb_cm_timer_set(&heap, &timers[i], vb_time_add(start, vb_random_below(&random, 1000)));
	for (unsigned i = 0; i < NODES; i += 5)
		vb_cm_timer_cancel(&heap, &timers[i]);
	for (unsigned i = 0; i < NODES; i++)
		expected += timers[i].index >= 0;
	assert_int_equal(expected, NODES - NODES / 5);
	assert_null(vb_cm_timers_expire(&heap, vb_time_add(start, -1)));
	for (struct vb_deadline next; (next = vb_cm_timers_next(&heap)).is_set; last = next.at, seen++) {
		assert_false(vb_time_before(next.at, last));
		assert_null(vb_cm_timers_expire(&heap, vb_time_add(next.at, -1)));
		assert_true(vb_cm_timers_expire(&heap, next.at)->at == next.at);
	}
	assert_int_equal(seen, expected);
	vb_cm_timers_deinit(&heap);
}

/* A process may be frozen for months; the difference of times has turned over by then. */
static void timers__are_due_after_110_quiet_days(void **state)
{
	struct vb_cm_timers heap = { 0 };
	struct vb_cm_timer timer;
	const vb_time start = 5 * VB_S, day = 24 * 3600 * VB_S;
	vb_cm_timer_init(&timer);
	assert_int_equal(vb_cm_timers_reserve(&heap, 1), 0);
	vb_cm_timer_set(&heap, &timer, start);
	assert_null(vb_cm_timers_expire(&heap, start - 1));
	assert_ptr_equal(vb_cm_timers_expire(&heap, vb_time_add(vb_time_add(start, 55 * day), 55 * day)), &timer);
	vb_cm_timers_deinit(&heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timers__are_due_after_110_quiet_days),
		cmocka_unit_test(table__finds_what_it_holds_and_nothing_else),
		cmocka_unit_test(timers__come_up_in_order_whatever_is_moved_or_cancelled),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
