#include "channel.h"
#include "../unit/unit.h"

static struct link_counts counts;

static struct link_channel channel_of(struct link_faults faults, uint64_t seed)
{
	struct link_channel channel;

	counts = (struct link_counts){ 0 };
	faults.queue = faults.queue ? faults.queue : 1000000;
	link_channel_init(&channel, &faults, seed, 0, &counts);
	return channel;
}

static struct link_queue no_line;

/* Of 100,000 packets, a microsecond apart, those that are not delivered; and the last is 0. */
static unsigned lose(struct link_channel *channel, bool lost[100000])
{
	unsigned sum = 0;
	vb_time due[LINK_COPIES];

	for (unsigned i = 0; i < 100000; i++)
		sum += lost[i] = link_channel_admit(channel, &no_line, 1500, i * VB_US, due) == 0;
	return sum;
}

static bool lost[100000], lost_again[100000];

static void queue__sends_one_after_the_other_at_its_rate(void **state)
{
	struct link_queue queue = { .rate = 1000000000, .length = 4000 };
	vb_time leaves_at;

	for (unsigned i = 1; i <= 3; i++) { /* 1,250 bytes take 10 us */
		assert_true(link_queue_admit(&queue, 1250, VB_S, &leaves_at));
		assert_int_equal(leaves_at, VB_S + i * 10 * VB_US);
	}
	assert_false(link_queue_admit(&queue, 1250, VB_S, &leaves_at));
	assert_int_equal(queue.most, 3750);
	assert_true(link_queue_admit(&queue, 1250, VB_S + 10 * VB_US, &leaves_at)); /* one has left */
	assert_int_equal(leaves_at, VB_S + 40 * VB_US);
	assert_true(link_queue_admit(&queue, 1250, VB_S + VB_MS, &leaves_at));
	assert_int_equal(leaves_at, VB_S + VB_MS + 10 * VB_US);
}

static void channel__adds_its_delay_behind_line_and_queue(void **state)
{
	struct link_channel channel = channel_of((struct link_faults){ .rate = 100000000, .delay = 5 * VB_MS }, 1);
	struct link_queue line = { .rate = 1000000000, .length = 100000 };
	vb_time due[LINK_COPIES];

	assert_int_equal(link_channel_admit(&channel, &line, 1250, VB_S, due), 1);
	assert_int_equal(due[0], VB_S + 10 * VB_US + 100 * VB_US + 5 * VB_MS);
	assert_int_equal(link_channel_admit(&channel, &line, 1250, VB_S, due), 1);
	assert_int_equal(due[0], VB_S + 10 * VB_US + 200 * VB_US + 5 * VB_MS);
}

static void channel__drops_what_its_queue_has_no_room_for(void **state)
{
	struct link_channel channel = channel_of((struct link_faults){ .rate = 100000000, .queue = 3000 }, 1);
	vb_time due[LINK_COPIES];

	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(link_channel_admit(&channel, &no_line, 1500, 0, due), i < 2);
	assert_int_equal(counts.came, 4);
	assert_int_equal(counts.came_bytes, 6000);
	assert_int_equal(counts.overflowed, 2);
}

static void channel__loses_its_share_and_the_same_by_the_same_seed(void **state)
{
	struct link_channel channel = channel_of((struct link_faults){ .loss = 10000 }, 7);
	unsigned sum = lose(&channel, lost);

	assert_in_range(sum, 850, 1150);
	assert_int_equal(counts.lost, sum);
	channel = channel_of(
		(struct link_faults){ .loss = 10000, .reorder = 500000, .reorder_by = 1, .duplicate = 500000 }, 7);
	assert_int_equal(lose(&channel, lost_again), sum);
	assert_memory_equal(lost, lost_again, sizeof(lost));
	channel = channel_of((struct link_faults){ .loss = 10000 }, 8);
	lose(&channel, lost_again);
	assert_memory_not_equal(lost, lost_again, sizeof(lost));
}

static void channel__loses_in_runs(void **state)
{
	struct link_channel channel = channel_of((struct link_faults){ .loss = 10000, .burst = 5 }, 7);
	unsigned sum = lose(&channel, lost), runs = 0;

	for (unsigned i = 0; i < 100000; i++)
		runs += lost[i] && (i == 0 || !lost[i - 1]);
	assert_in_range(sum, 700, 1300);
	assert_in_range(10 * sum / runs, 40, 60);
}

static void channel__reorders_and_doubles(void **state)
{
	struct link_channel channel = channel_of(
		(struct link_faults){
			.delay = VB_MS, .reorder = 1000000, .reorder_by = 300 * VB_US, .duplicate = 1000000 },
		1);
	vb_time due[LINK_COPIES];

	assert_int_equal(link_channel_admit(&channel, &no_line, 100, 0, due), 2);
	assert_int_equal(due[0], VB_MS + 300 * VB_US);
	assert_int_equal(due[1], VB_MS);
	assert_int_equal(counts.under_way_ns, 2300000);
	assert_int_equal(counts.reordered, 1);
	assert_int_equal(counts.duplicated, 1);
}

static void channel__is_dead_from_when_to_when_it_was_said(void **state)
{
	struct link_channel channel =
		channel_of((struct link_faults){ .dead_after = VB_S, .alive_after = 2 * VB_S }, 1);
	vb_time due[LINK_COPIES];
	static const struct {
		vb_time at;
		unsigned copies;
	} cases[] = { { -1, 1 }, { VB_S - 1, 1 }, { VB_S, 0 }, { 2 * VB_S - 1, 0 }, { 2 * VB_S, 1 } };

	for (size_t i = 0; i < COUNT_OF(cases); i++)
		assert_int_equal(link_channel_admit(&channel, &no_line, 100, cases[i].at, due), cases[i].copies);
	assert_int_equal(counts.dead, 2);
	channel = channel_of((struct link_faults){ .dead_after = VB_S }, 1);
	assert_int_equal(link_channel_admit(&channel, &no_line, 100, 1000 * VB_S, due), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queue__sends_one_after_the_other_at_its_rate),
		cmocka_unit_test(channel__adds_its_delay_behind_line_and_queue),
		cmocka_unit_test(channel__drops_what_its_queue_has_no_room_for),
		cmocka_unit_test(channel__loses_its_share_and_the_same_by_the_same_seed),
		cmocka_unit_test(channel__loses_in_runs),
		cmocka_unit_test(channel__reorders_and_doubles),
		cmocka_unit_test(channel__is_dead_from_when_to_when_it_was_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
