/* Lists of flows, and which flows wait for which. */
#include <errno.h>
#include "net/flows.h"
#include "../unit.h"

static struct flow_list list;
static char why[200];

static int teardown(void **state)
{
	flow_list_free(&list);
	return 0;
}

static void add(uint32_t src, uint32_t dst)
{
	assert_int_equal(flow_list_add(&list, &(struct flow){ .src = src, .dst = dst, .bytes = 1 }), 0);
}

static void wait_for(uint32_t flow, uint32_t before, enum flow_event event)
{
	assert_int_equal(flow_list_add_wait(&list, flow, before, event), 0);
}

static void refused(const char *says)
{
	assert_int_equal(flow_list_check(&list, 4, why, sizeof(why)), -EINVAL);
	if (!strstr(why, says))
		fail_msg("\"%s\" does not say \"%s\"", why, says);
}

static void list__keeps_what_is_added_in_order(void **state)
{
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(flow_list_add(&list, &(struct flow){ .src = i, .dst = i + 1, .bytes = i + 7 }), 0);
	assert_int_equal(list.count, 1000);
	for (uint32_t i = 0; i < 1000; i++) {
		assert_int_equal(list.flows[i].src, i);
		assert_int_equal(list.flows[i].bytes, i + 7);
	}
	assert_null(list.waits);
	flow_list_free(&list);
	assert_null(list.flows);
	assert_int_equal(list.count, 0);
}

static void waits__are_those_of_the_flow_that_waits(void **state)
{
	for (uint32_t i = 0; i < 3; i++)
		add(0, 1);
	wait_for(2, 0, FLOW_ENDED);
	wait_for(2, 1, FLOW_ENDED);
	assert_int_equal(list.flows[0].waits, 0);
	assert_int_equal(list.flows[2].waits, 2);
	assert_int_equal(flow_list_check(&list, 2, why, sizeof(why)), 0);
	flow_list_add(&list, &list.flows[2]); /* a copy waits for nothing */
	assert_int_equal(list.flows[3].waits, 0);
}

static void cut__leaves_no_wait_for_what_is_gone(void **state)
{
	for (uint32_t i = 0; i < 4; i++)
		add(0, 1);
	wait_for(1, 0, FLOW_ENDED);
	wait_for(1, 2, FLOW_ENDED);
	wait_for(3, 0, FLOW_ENDED);
	flow_list_cut(&list, 2);
	assert_int_equal(list.count, 2);
	assert_int_equal(list.wait_count, 1);
	assert_int_equal(list.waits[0].before, 0);
	assert_int_equal(list.flows[1].waits, 1);
}

static void followers__are_sorted_by_what_they_wait_for(void **state)
{
	struct flow_followers followers;
	for (uint32_t i = 0; i < 4; i++)
		add(i % 2, (i + 1) % 2);
	assert_int_equal(flow_followers_make(&followers, &list), 0);
	assert_null(followers.first);
	wait_for(3, 2, FLOW_ARRIVED);
	wait_for(2, 0, FLOW_ENDED);
	wait_for(3, 0, FLOW_ARRIVED);
	assert_int_equal(flow_followers_make(&followers, &list), 0);
	const uint32_t first[] = { 0, 2, 2, 3, 3 }, flows[] = { 2, 3, 3 };
	const enum flow_event events[] = { FLOW_ENDED, FLOW_ARRIVED, FLOW_ARRIVED };
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(followers.first[i], first[i]);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(followers.followers[i].flow, flows[i]);
		assert_int_equal(followers.followers[i].event, events[i]);
	}
	flow_followers_free(&followers);
}

/* Endpoint 1 hears of the arrival of a flow from 0 to 1, and 0 of its end: a flow of either may wait for what it hears
 * of, a flow of another endpoint for neither. */
static void waits__are_for_what_the_source_hears_of(void **state)
{
	add(0, 1);
	add(1, 2);
	wait_for(1, 0, FLOW_ARRIVED);
	add(0, 2);
	wait_for(2, 0, FLOW_ENDED);
	assert_int_equal(flow_list_check(&list, 4, why, sizeof(why)), 0);
	add(1, 2);
	wait_for(3, 0, FLOW_ENDED);
	refused("flow 3 of endpoint 1 waits for the end of flow 0, which only endpoint 0 hears of");
	flow_list_cut(&list, 3);
	add(0, 2);
	wait_for(3, 0, FLOW_ARRIVED);
	refused("waits for the arrival of flow 0, which only endpoint 1 hears of");
	flow_list_cut(&list, 3);
	add(3, 2);
	wait_for(3, 0, FLOW_ARRIVED);
	refused("send endpoint 3 a flow");
}

static void unknown_flows__are_refused(void **state)
{
	add(0, 1);
	wait_for(0, 1, FLOW_ENDED);
	refused("flow 0 waits for flow 1, yet the last is 0");
	flow_list_cut(&list, 0);
	add(0, 1);
	wait_for(0, FLOW_NONE, FLOW_ENDED);
	refused("flow 0 waits for flow");
}

static void cycles__are_refused(void **state)
{
	uint32_t stuck;
	add(0, 1);
	wait_for(0, 0, FLOW_ENDED);
	refused("flow 0 waits for itself");
	flow_list_cut(&list, 0);
	add(0, 1); /* begins */
	add(0, 1); /* waits for what waits for each other */
	add(0, 1);
	add(1, 0);
	add(0, 1);
	wait_for(1, 2, FLOW_ENDED);
	wait_for(2, 3, FLOW_ARRIVED);
	wait_for(3, 4, FLOW_ARRIVED);
	wait_for(4, 0, FLOW_ENDED);
	assert_int_equal(flow_list_find_stuck(&list, &stuck), 0);
	assert_int_equal(stuck, FLOW_NONE);
	assert_int_equal(flow_list_check(&list, 4, why, sizeof(why)), 0);
	wait_for(4, 3, FLOW_ARRIVED);
	assert_int_equal(flow_list_find_stuck(&list, &stuck), 0);
	assert_int_equal(stuck, 1);
	refused("flow 1 never begins");
}

/* Flow 3 begins after two of three, of which the last waits for it. */
static void spare_waits__need_not_be_over(void **state)
{
	for (uint32_t i = 0; i < 5; i++)
		add(0, 1);
	for (uint32_t i = 0; i < 2; i++)
		wait_for(3, i, FLOW_ENDED);
	wait_for(3, 4, FLOW_ENDED);
	wait_for(4, 3, FLOW_ENDED);
	refused("flow 3 never begins");
	list.flows[3].spare = 1;
	assert_int_equal(flow_list_check(&list, 4, why, sizeof(why)), 0);
	list.flows[3].spare = 3;
	refused("flow 3: 3 of its 3 waits are spare");
	list.flows[3].spare = 1;
	flow_list_cut(&list, 4);
	assert_int_equal(list.flows[3].spare, 0);
	assert_int_equal(list.flows[3].waits, 2);
	assert_int_equal(flow_list_check(&list, 4, why, sizeof(why)), 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(list__keeps_what_is_added_in_order),
		TEST(waits__are_those_of_the_flow_that_waits),
		TEST(cut__leaves_no_wait_for_what_is_gone),
		TEST(followers__are_sorted_by_what_they_wait_for),
		TEST(waits__are_for_what_the_source_hears_of),
		TEST(unknown_flows__are_refused),
		TEST(cycles__are_refused),
		TEST(spare_waits__need_not_be_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
