/* What is said of thresholds before a run is what a run then does. */
#include "fabric/buffer.h"
#include "fabric/thresholds.h"
#include "nets.h"

static struct network network;
static struct flow_list flows;
static struct fabric_result result;

static const struct switch_profile lossless = { .name = "lossless",
	.buffer_bytes = 4 << 20,
	.flow_control = FLOW_PFC,
	.class_count = 1,
	.classes = { { .is_lossless = true, .alpha = 0.125, .mark_min = 100000, .mark_max = 300000 } },
	.reserved_bytes = 4096,
	.alpha_bits_per_second = 100 * GBPS,
	.resume_offset = 3072 };

static int teardown(void **state)
{
	network_free(&network);
	flow_list_free(&flows);
	fabric_result_free(&result);
	return 0;
}

static uint32_t down(uint32_t endpoint)
{
	return network.links[network.endpoints[endpoint].link].reverse;
}

static void run_incast(uint32_t senders, uint64_t bytes)
{
	flow_list_free(&flows);
	fabric_result_free(&result);
	for (uint32_t i = 1; i <= senders; i++)
		add_flow(&flows, i, 0, bytes, 0);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.ack_every = 1000000;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
}

static void marks__are_for_the_rate_of_the_port(void **state)
{
	struct switch_profile profile = lossless;
	for (uint64_t rate = 0; rate <= 200 * GBPS; rate += 100 * GBPS) {
		profile.mark_bits_per_second = rate;
		make_star(&network, 3, 400 * GBPS, VB_US, &profile);
		assert_int_equal(
			threshold_mark_min(&network, down(0), 0), 100000 * 400 * GBPS / (rate ? rate : 100 * GBPS));
		assert_int_equal(
			threshold_mark_max(&network, down(0), 0), 300000 * 400 * GBPS / (rate ? rate : 100 * GBPS));
		teardown(NULL);
	}
}

/* Of 1 MiB four ports keep 4 KiB and their headroom, and room for a packet that is too late: of two classes each, or
 * once. */
static void kept__is_of_each_class_or_once_a_port(void **state)
{
	struct switch_profile profile = lossless;
	profile.buffer_bytes = 1 << 20;
	profile.headroom_bytes = 50000;
	profile.class_count = 3;
	profile.classes[1] = profile.classes[0]; /* the third is not lossless */
	make_star(&network, 4, 100 * GBPS, VB_US, &profile);
	struct fabric_config config = config_hpcc(&network, &flows);
	assert_int_equal(buffer_shared(&config, 0), (1 << 20) - 4 * (3 * 4096 + 2 * (50000 + 1048)));
	network.profiles[0].keeps = KEEPS_PORTS;
	assert_int_equal(buffer_shared(&config, 0), (1 << 20) - 4 * (4096 + 50000 + 1048));
}

/* Two make the queue grow, each as fast as it empties: then it holds as much as each has sent. */
static void pause__begins_when_it_is_said_to(void **state)
{
	make_star(&network, 9, 100 * GBPS, VB_US, &lossless);
	struct fabric_config config = config_hpcc(&network, &flows);
	const uint64_t queue = threshold_pause(&config, down(0), 0, false);
	assert_in_range(queue, 500000, 900000);
	run_incast(2, (queue / 1048 - 3) * 1000);
	assert_int_equal(result.pauses, 0);
	assert_in_range(result.links[down(0)].most_queued, queue - 6 * 1048, queue);
	run_incast(2, (queue / 1048 + 3) * 1000);
	assert_true(result.pauses > 0);
	const uint64_t busy = threshold_pause(&config, down(0), 0, true);
	assert_in_range(
		busy, queue * 5 / 8, queue * 2 / 3); /* of eight shares two: 1 + 2/8 by 1 + 8/8, and what is reserved */
}

static void queue__holds_no_more_than_is_said(void **state)
{
	make_star(&network, 9, 100 * GBPS, VB_US, &lossless);
	struct fabric_config config = config_hpcc(&network, &flows);
	const uint64_t most = threshold_queue_most(&config, down(0), 0);
	run_incast(8, 3000000);
	assert_true(result.pauses > 0);
	assert_in_range(result.links[down(0)].most_queued, most * 9 / 10, most);
	network_free(&network);

	struct switch_profile lossy = lossless;
	lossy.flow_control = FLOW_DROPS;
	lossy.classes[0].alpha = 0.5;
	make_star(&network, 9, 100 * GBPS, VB_US, &lossy);
	const uint64_t most_lossy = threshold_queue_most(&config, down(0), 0);
	run_incast(8, 1000000);
	assert_true(result.drops > 0);
	assert_in_range(result.links[down(0)].most_queued, most_lossy * 9 / 10, most_lossy);
	network_free(&network);

	lossy.port_bytes = 100000;
	make_star(&network, 3, 100 * GBPS, VB_US, &lossy);
	assert_int_equal(threshold_queue_most(&config, down(0), 0), 100000);
}

static void bounds__that_there_are_not_are_never_reached(void **state)
{
	struct switch_profile endless = lossless;
	endless.buffer_bytes = 0;
	make_star(&network, 3, 100 * GBPS, VB_US, &endless);
	struct fabric_config config = config_hpcc(&network, &flows);
	assert_true(threshold_queue_most(&config, down(0), 0) == UINT64_MAX);
	assert_true(threshold_pause(&config, down(0), 0, false) == UINT64_MAX);
	assert_int_equal(threshold_headroom(&config, 0), 0);
	network_free(&network);
	make_star(&network, 2, 100 * GBPS, VB_US, &lossless); /* one sends as fast as the other receives */
	assert_true(threshold_pause(&config, down(0), 0, false) == UINT64_MAX);
	network_free(&network);
	endless.flow_control = FLOW_DROPS;
	make_star(&network, 3, 100 * GBPS, VB_US, &endless);
	assert_true(threshold_queue_most(&config, down(0), 0) == UINT64_MAX);
	assert_true(threshold_pause(&config, down(0), 0, false) == UINT64_MAX);
}

static void headroom__is_what_a_link_needs(void **state)
{
	make_star(&network, 3, 100 * GBPS, VB_US, &lossless);
	struct fabric_config config = config_hpcc(&network, &flows);
	/* 2 us at 100 Gb/s, a packet that leaves at either end, and the frame. */
	assert_int_equal(threshold_headroom(&config, network.endpoints[1].link), 25000 + 2 * 1048 + 84);
	assert_int_equal(threshold_headroom(&config, down(1)), 0); /* an endpoint pauses nobody */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(kept__is_of_each_class_or_once_a_port, teardown),
		cmocka_unit_test_teardown(marks__are_for_the_rate_of_the_port, teardown),
		cmocka_unit_test_teardown(pause__begins_when_it_is_said_to, teardown),
		cmocka_unit_test_teardown(queue__holds_no_more_than_is_said, teardown),
		cmocka_unit_test_teardown(bounds__that_there_are_not_are_never_reached, teardown),
		cmocka_unit_test_teardown(headroom__is_what_a_link_needs, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
