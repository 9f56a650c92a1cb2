#include <stdlib.h>
#include "base/random.h"
#include "fabric/events.h"
#include "../unit.h"

static struct events events;

static int setup(void **state)
{
	return events_init(&events, 8);
}

static int teardown(void **state)
{
	events_deinit(&events);
	return 0;
}

static void expect(vb_time at, uint64_t key)
{
	struct event event;
	assert_true(events_next(&events, INT64_MAX, &event));
	assert_int_equal(event.at, at);
	assert_int_equal(event.key, key);
}

static void events__come_by_time_then_kind_then_turn_then_number(void **state)
{
	events_add(&events, 10, event_key(EVENT_TIMER, 0, 1));
	events_add(&events, 10, event_key(EVENT_ARRIVAL, 7, 2));
	events_add(&events, 10, event_key(EVENT_ARRIVAL, 5, 9));
	events_add(&events, 10, event_key(EVENT_ARRIVAL, 5, 3));
	events_add(&events, 9, event_key(EVENT_FLOW, 0, 0));
	expect(9, event_key(EVENT_FLOW, 0, 0));
	expect(10, event_key(EVENT_ARRIVAL, 5, 3));
	expect(10, event_key(EVENT_ARRIVAL, 5, 9));
	expect(10, event_key(EVENT_ARRIVAL, 7, 2));
	expect(10, event_key(EVENT_TIMER, 0, 1));
	assert_int_equal(events.count, 0);
}

static void event__says_what_it_is_of(void **state)
{
	struct event event = { 0, event_key(EVENT_FLOW, 0xFFFFFFFF, 0xDEADBEEF) };
	assert_int_equal(event_kind(&event), EVENT_FLOW);
	assert_int_equal(event_number(&event), 0xDEADBEEF);
}

static void until__is_not_reached(void **state)
{
	struct event event;
	vb_time at;
	events_add(&events, 100, 1);
	assert_false(events_next(&events, 100, &event));
	assert_true(events_peek(&events, &at));
	assert_int_equal(at, 100);
	assert_true(events_next(&events, 101, &event));
	assert_false(events_peek(&events, &at));
}

/* What is put in for earlier than what was already looked at comes first all the same. */
static void earlier__than_what_was_looked_at_comes_first(void **state)
{
	vb_time at;
	events_add(&events, 1000000, 1);
	assert_true(events_peek(&events, &at));
	events_add(&events, 500, 2);
	expect(500, 2);
	expect(1000000, 1);
}

static void far_future__waits_beyond_the_year(void **state)
{
	events_add(&events, 100 * VB_S, 1);
	events_add(&events, 3 * VB_MS, 2);
	events_add(&events, 100 * VB_S + 1, 3);
	events_add(&events, 5, 4);
	expect(5, 4);
	events_add(&events, 4 * VB_MS, 5);
	expect(3 * VB_MS, 2);
	expect(4 * VB_MS, 5);
	expect(100 * VB_S, 1);
	events_add(&events, 100 * VB_S + 2, 6);
	expect(100 * VB_S + 1, 3);
	expect(100 * VB_S + 2, 6);
}

static int by_order(const void *a, const void *b)
{
	const struct event *x = a, *y = b;
	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->key < y->key ? -1 : x->key > y->key;
}

/* Against a sorted array, with what comes while others are taken out. */
static void many__come_in_order_whenever_they_are_put_in(void **state)
{
	enum { COUNT = 20000 };
	static struct event all[COUNT];
	static const vb_time spans[] = { 200, 5000, VB_US, VB_MS, VB_S };
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct vb_random random;
		struct event event;
		vb_time now = 0;
		uint32_t put = 0, taken = 0;
		vb_random_seed(&random, seed);
		while (taken < COUNT) {
			if (put < COUNT && vb_random_below(&random, 2)) {
				vb_time span = spans[vb_random_below(&random, 5)];
				struct event next = {
					now + vb_random_below(&random, (uint32_t)(span / 1000) + 100) * 1000, put
				};
				events_add(&events, next.at, next.key);
				all[put++] = next;
			} else if (events_next(&events, INT64_MAX, &event)) {
				qsort(all + taken, put - taken, sizeof(*all), by_order);
				assert_int_equal(event.at, all[taken].at);
				assert_int_equal(event.key, all[taken].key);
				now = event.at;
				taken++;
			}
			if (put - taken > 200) /* so that sorting stays cheap */
				while (put - taken > 20) {
					assert_true(events_next(&events, INT64_MAX, &event));
					qsort(all + taken, put - taken, sizeof(*all), by_order);
					assert_int_equal(event.key, all[taken++].key);
					now = event.at;
				}
		}
		assert_int_equal(events.count, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(events__come_by_time_then_kind_then_turn_then_number, setup, teardown),
		cmocka_unit_test_setup_teardown(event__says_what_it_is_of, setup, teardown),
		cmocka_unit_test_setup_teardown(until__is_not_reached, setup, teardown),
		cmocka_unit_test_setup_teardown(earlier__than_what_was_looked_at_comes_first, setup, teardown),
		cmocka_unit_test_setup_teardown(far_future__waits_beyond_the_year, setup, teardown),
		cmocka_unit_test_setup_teardown(many__come_in_order_whenever_they_are_put_in, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
