/* What NSCC must come to where switches mark as it supposes: from 0.2 of what a way holds on, all from 0.8. */
#include "cc/choice.h"
#include "nets.h"

static struct network network;
static struct flow_list flows;
static struct fabric_result result;

static int teardown(void **state)
{
	network_free(&network);
	flow_list_free(&flows);
	fabric_result_free(&result);
	return 0;
}

/* Four times 5 us, and packets of 1,048 bytes and acks of 60 at 100 Gb/s: 20.177 us and 252,216 bytes. */
enum { HOLDS = 252216, SENDERS = 8, BYTES = 8000000 };

static void run_senders(uint32_t threads)
{
	static struct vb_cc_choice choice;
	char why[200];
	const struct switch_profile profile = { .name = "marking",
		.class_count = 1,
		.marks = MARKS_LEAVING,
		.classes = { { .mark_min = HOLDS / 5, .mark_max = HOLDS * 4 / 5, .mark_ppm = 1000000 } } };
	make_star(&network, SENDERS + 1, 100 * GBPS, 5 * VB_US, &profile);
	for (uint32_t i = 0; i < SENDERS; i++)
		add_flow(&flows, i, SENDERS, BYTES, i * 40 * VB_US);
	assert_int_equal(vb_cc_choose("nscc, rtt=path", &choice, why, sizeof(why)), 0);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.cc = (struct vb_cc_config){ .algorithm = choice.algorithm, .parameters = choice.values };
	config.acks_tell_marks = true;
	config.threads = threads;
	config.tells_queues = true;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_failed, 0);
}

/* Each begins with the largest window, and later than the one before. They come to equal shares in many round trips: of
 * fifteen senders in htsim the first ends after half of the time of the last. */
static void senders__share_a_port_that_never_rests(void **state)
{
	const vb_time busy = (vb_time)SENDERS * (BYTES / 1000) * 1048 * 80;
	double sum = 0, squares = 0;
	run_senders(1);
	assert_int_equal(result.drops, 0);
	assert_in_range(result.last_flow, busy, busy + busy / 100);
	for (uint32_t i = 0; i < SENDERS; i++) {
		const double rate = 1 / (double)result.flows[i].fct;
		sum += rate;
		squares += rate * rate;
	}
	if (sum * sum / (SENDERS * squares) < 0.9)
		fail_msg("Jain %.4f", sum * sum / (SENDERS * squares));
}

/* The target is three quarters of the round trip: packets wait about so long, and no longer than two. */
static void senders__hold_the_queue_near_the_target(void **state)
{
	run_senders(1);
	const double mean = result.links[2 * SENDERS + 1].queued_area / (double)result.ended_at;
	assert_true(mean > HOLDS / 4.0);
	assert_true(mean < HOLDS * 3 / 2.0);
}

static void senders__are_the_same_with_two_threads(void **state)
{
	run_senders(1);
	const uint64_t hash = result.hash;
	teardown(NULL);
	run_senders(2);
	assert_true(result.hash == hash);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(senders__share_a_port_that_never_rests, teardown),
		cmocka_unit_test_teardown(senders__hold_the_queue_near_the_target, teardown),
		cmocka_unit_test_teardown(senders__are_the_same_with_two_threads, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
