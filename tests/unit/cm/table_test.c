/* The hash table under many nodes. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table__finds_what_it_holds_and_nothing_else),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
