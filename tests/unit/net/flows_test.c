#include "net/flows.h"
#include "../unit.h"

static void list__keeps_what_is_added_in_order(void **state)
{
	struct flow_list list = { 0 };
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(flow_list_add(&list,
					 &(struct flow){ .src = i, .dst = i + 1, .bytes = i + 7, .after = FLOW_NONE }),
			0);
	assert_int_equal(list.count, 1000);
	for (uint32_t i = 0; i < 1000; i++) {
		assert_int_equal(list.flows[i].src, i);
		assert_int_equal(list.flows[i].bytes, i + 7);
	}
	flow_list_free(&list);
	assert_null(list.flows);
	assert_int_equal(list.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list__keeps_what_is_added_in_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
