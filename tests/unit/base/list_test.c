#include "base/list.h"
#include "../unit.h"

struct item {
	int value;
	struct vb_list node;
};

static int pop_value(struct vb_list *list)
{
	return vb_container_of(vb_list_pop(list), struct item, node)->value;
}

static void list__starts_empty(void **state)
{
	struct vb_list list;
	vb_list_init(&list);
	assert_true(vb_list_empty(&list));
	assert_null(vb_list_pop(&list));
}

static void list__pops_in_the_order_of_both_ends(void **state)
{
	struct vb_list list;
	struct item items[] = { { .value = 1 }, { .value = 2 }, { .value = 3 } };
	vb_list_init(&list);
	vb_list_add_tail(&list, &items[1].node);
	vb_list_add_tail(&list, &items[2].node);
	vb_list_add_head(&list, &items[0].node);
	assert_int_equal(pop_value(&list), 1);
	assert_int_equal(pop_value(&list), 2);
	assert_int_equal(pop_value(&list), 3);
	assert_true(vb_list_empty(&list));
}

static void list__popped_node_is_unlinked(void **state)
{
	struct vb_list list;
	struct item item;
	vb_list_init(&list);
	vb_list_add_tail(&list, &item.node);
	assert_true(vb_list_linked(&item.node));
	vb_list_pop(&list);
	assert_false(vb_list_linked(&item.node));
}

static void list__removing_twice_is_harmless(void **state)
{
	struct vb_list list;
	struct item items[2];
	vb_list_init(&list);
	vb_list_add_tail(&list, &items[0].node);
	vb_list_add_tail(&list, &items[1].node);
	vb_list_remove(&items[0].node);
	vb_list_remove(&items[0].node);
	assert_ptr_equal(list.next, &items[1].node);
	assert_ptr_equal(list.prev, &items[1].node);
}

static void list__walk_visits_all_in_order(void **state)
{
	struct vb_list list;
	struct item items[4];
	int next = 0;
	vb_list_init(&list);
	for (int i = 0; i < 4; i++) {
		items[i].value = i;
		vb_list_add_tail(&list, &items[i].node);
	}
	vb_list_for_each (node, &list)
		assert_int_equal(vb_container_of(node, struct item, node)->value, next++);
	assert_int_equal(next, 4);
}

static void list__safe_walk_may_remove(void **state)
{
	struct vb_list list;
	struct item items[5];
	vb_list_init(&list);
	for (int i = 0; i < 5; i++) {
		items[i].value = i;
		vb_list_add_tail(&list, &items[i].node);
	}
	int seen = 0;
	vb_list_for_each_safe (node, &list) {
		seen++;
		if (vb_container_of(node, struct item, node)->value % 2 == 0)
			vb_list_remove(node);
	}
	assert_int_equal(seen, 5);
	assert_int_equal(pop_value(&list), 1);
	assert_int_equal(pop_value(&list), 3);
	assert_true(vb_list_empty(&list));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list__starts_empty),
		cmocka_unit_test(list__pops_in_the_order_of_both_ends),
		cmocka_unit_test(list__popped_node_is_unlinked),
		cmocka_unit_test(list__removing_twice_is_harmless),
		cmocka_unit_test(list__walk_visits_all_in_order),
		cmocka_unit_test(list__safe_walk_may_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
