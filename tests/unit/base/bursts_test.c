#include "base/bursts.h"
#include "../unit.h"

struct runs {
	unsigned struck, count, longest;
};

static struct runs run(uint32_t ppm, uint64_t length, uint64_t seed, unsigned packets)
{
	struct runs runs = { 0 };
	struct vb_bursts bursts;
	struct vb_random random;
	unsigned now = 0;

	vb_bursts_init(&bursts, ppm, length);
	vb_random_seed(&random, seed);
	for (unsigned i = 0; i < packets; i++) {
		bool strikes = vb_bursts_strikes(&bursts, &random);
		runs.struck += strikes;
		runs.count += strikes && now == 0;
		now = strikes ? now + 1 : 0;
		runs.longest = now > runs.longest ? now : runs.longest;
	}
	return runs;
}

/* A million packets: the share within a tenth of itself, the mean run too. */
static void bursts__strike_their_share_in_runs_of_their_length(void **state)
{
	static const struct {
		uint32_t ppm;
		unsigned length;
	} cases[] = { { 10000, 1 }, { 10000, 8 }, { 1000, 4 }, { 50000, 20 }, { 500000, 8 } };

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct runs runs = run(cases[i].ppm, cases[i].length, 7, 1000000);
		assert_in_range(runs.struck, cases[i].ppm * 9 / 10, cases[i].ppm * 11 / 10);
		assert_in_range(runs.struck * 100 / runs.count, cases[i].length * 90, cases[i].length * 110);
	}
}

/* The chance of a run to go on does not depend on how long it is: many are short, and some are several times the mean.
 */
static void bursts__differ_in_length(void **state)
{
	struct runs runs = run(10000, 8, 3, 1000000);
	assert_in_range(runs.longest, 3 * 8, 20 * 8);
	assert_int_equal(run(10000, 1, 3, 1000000).longest, 1);
}

static void bursts__of_no_packet_and_of_all_are_exact(void **state)
{
	assert_int_equal(run(0, 8, 1, 100000).struck, 0);
	assert_int_equal(run(1000000, 8, 1, 100000).struck, 100000);
}

static void bursts__follow_from_their_seed(void **state)
{
	struct runs one = run(10000, 4, 5, 10000), two = run(10000, 4, 5, 10000);
	assert_memory_equal(&one, &two, sizeof(one));
	assert_int_not_equal(run(10000, 4, 6, 10000).struck, one.struck);
}

static void bursts__need_runs_long_enough_for_their_share(void **state)
{
	assert_true(vb_bursts_are_possible(500000, 1)); /* every other packet */
	assert_false(vb_bursts_are_possible(500001, 1));
	assert_true(vb_bursts_are_possible(800000, 4));
	assert_false(vb_bursts_are_possible(800001, 4));
	assert_true(vb_bursts_are_possible(1000000, 1));
	assert_in_range(run(500000, 1, 1, 1000).struck, 500, 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bursts__strike_their_share_in_runs_of_their_length),
		cmocka_unit_test(bursts__differ_in_length),
		cmocka_unit_test(bursts__of_no_packet_and_of_all_are_exact),
		cmocka_unit_test(bursts__follow_from_their_seed),
		cmocka_unit_test(bursts__need_runs_long_enough_for_their_share),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
