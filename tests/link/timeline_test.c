#include "timeline.h"
#include "base/random.h"
#include "../unit/unit.h"

static struct link_timeline timeline;

static void schedule(vb_time due, uint32_t length)
{
	struct link_packet *packet = link_timeline_new(&timeline);

	assert_non_null(packet);
	packet->length = length;
	link_timeline_schedule(&timeline, packet, due);
}

static void timeline__gives_by_time_and_of_one_time_in_order(void **state)
{
	struct vb_random random;
	const struct link_packet *before = NULL;
	vb_time last = 0;
	uint64_t number = 0;

	vb_random_seed(&random, 3);
	assert_int_equal(link_timeline_init(&timeline, 5000, 100), 0);
	for (unsigned i = 0; i < 5000; i++)
		schedule((vb_time)vb_random_below(&random, 700), i);
	for (unsigned i = 0; i < 5000; i++) {
		struct link_packet *packet = link_timeline_take(&timeline, 700);
		assert_true(!before || last < packet->due || (last == packet->due && number < packet->number));
		last = packet->due;
		number = packet->number;
		before = packet;
		link_timeline_return(&timeline, packet);
	}
	assert_null(link_timeline_take(&timeline, 700));
	link_timeline_deinit(&timeline);
}

static void timeline__gives_nothing_early(void **state)
{
	assert_int_equal(link_timeline_init(&timeline, 4, 100), 0);
	assert_false(link_timeline_next(&timeline).is_set);
	schedule(20, 0);
	schedule(10, 1);
	assert_int_equal(link_timeline_next(&timeline).at, 10);
	assert_null(link_timeline_take(&timeline, 9));
	struct link_packet *packet = link_timeline_take(&timeline, 10);
	assert_int_equal(packet->length, 1);
	link_timeline_return(&timeline, packet);
	assert_null(link_timeline_take(&timeline, 19));
	link_timeline_deinit(&timeline);
}

static void timeline__is_bounded_and_uses_again_what_is_returned(void **state)
{
	assert_int_equal(link_timeline_init(&timeline, 2, 100), 0);
	schedule(1, 0);
	schedule(2, 0);
	assert_null(link_timeline_new(&timeline));
	link_timeline_return(&timeline, link_timeline_take(&timeline, 1));
	schedule(3, 0);
	assert_null(link_timeline_new(&timeline));
	link_timeline_deinit(&timeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timeline__gives_by_time_and_of_one_time_in_order),
		cmocka_unit_test(timeline__gives_nothing_early),
		cmocka_unit_test(timeline__is_bounded_and_uses_again_what_is_returned),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
