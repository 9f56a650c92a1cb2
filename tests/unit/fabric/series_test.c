/* What links did over time comes to what is counted of them, and lies where it happened. */
#include "nets.h"

static struct network network;
static struct flow_list flows;
static struct fabric_result result;

static const struct switch_profile plain = { .name = "plain", .class_count = 1 };
static const struct switch_profile short_buffer = { .name = "short", .class_count = 1, .port_bytes = 20000 };
static const struct switch_profile lossless = { .name = "lossless",
	.buffer_bytes = 4 << 20,
	.flow_control = FLOW_PFC,
	.class_count = 1,
	.classes = { { .is_lossless = true, .limit_bytes = 50000 } },
	.reserved_bytes = 4096,
	.resume_offset = 3072 };

static int teardown(void **state)
{
	network_free(&network);
	flow_list_free(&flows);
	fabric_result_free(&result);
	return 0;
}

static void run_sampled(bool tells, uint32_t threads)
{
	struct fabric_config config = config_hpcc(&network, &flows);
	config.tells_series = config.tells_queues = tells;
	config.threads = threads;
	config.ack_timeout = VB_MS;
	fabric_result_free(&result);
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
}

static struct fabric_sample sum_of(uint32_t link)
{
	struct fabric_sample sum = { 0 };
	for (uint32_t i = 0; result.samples[link] && i < FABRIC_SAMPLES; i++) {
		sum.bytes += result.samples[link][i].bytes;
		sum.queued_area += result.samples[link][i].queued_area;
		sum.paused += result.samples[link][i].paused;
		sum.missing += result.samples[link][i].missing;
	}
	return sum;
}

/* Of queues the counts have the half of each packet's time on the wire, too: at most, as all packets are data. */
static void expect_counts(void)
{
	for (uint32_t i = 0; i < network.link_count; i++) {
		const struct fabric_link_counts *counts = &result.links[i];
		const struct fabric_sample sum = sum_of(i);
		const double ps_per_byte = 8e12 / (double)network_rate(&network, i);
		assert_true(sum.bytes == counts->bytes);
		assert_true(sum.paused == counts->paused);
		assert_true(sum.missing == counts->drops + counts->lost);
		assert_true(sum.queued_area <= counts->queued_area * 1.000001);
		assert_true(sum.queued_area * 1.000001 + (double)counts->bytes * 1048 * ps_per_byte / 2 >=
			    counts->queued_area);
	}
}

static void samples__come_to_the_counts(void **state)
{
	const struct switch_profile *const profiles[] = { &plain, &short_buffer, &lossless };
	for (uint32_t i = 0; i < 3; i++) {
		teardown(NULL);
		make_star(&network, 4, 100 * GBPS, VB_US, profiles[i]);
		for (uint32_t src = 0; src < 3; src++)
			add_flow(&flows, src, 3, 300000, src * 5 * VB_US);
		run_sampled(true, 1);
		expect_counts();
		assert_true(profiles[i] != &short_buffer || result.drops > 0);
		assert_true(profiles[i] != &lossless || result.pauses > 0);
	}
}

/* 100 packets from each of two: the queue grows to 100 of them while they come, for 8.4 us, and is gone after another
 * 8.4. The first is there at 2 us and one packet. */
static void queue__lies_where_it_was(void **state)
{
	make_star(&network, 3, 100 * GBPS, VB_US, &plain);
	add_flow(&flows, 0, 2, 100000, 0);
	add_flow(&flows, 1, 2, 100000, 0);
	run_sampled(true, 1);
	const uint32_t down = network.links[network.endpoints[2].link].reverse;
	const vb_time width = result.sample_width, first = VB_US + 84 * VB_NS, comes = 8384 * VB_NS;
	for (uint32_t i = 0; i < FABRIC_SAMPLES; i++) {
		const double mean = result.samples[down][i].queued_area / (double)width;
		const vb_time middle = i * width + width / 2 - first;
		const vb_time from_peak = middle < comes ? comes - middle : middle - comes;
		const double expected = from_peak < comes ? 104800.0 * (double)(comes - from_peak) / (double)comes : 0;
		assert_true(mean > expected - 4000 && mean < expected + 4000);
	}
	const struct fabric_sample *busy = &result.samples[down][(first + comes) / width];
	assert_in_range(busy->bytes, (uint64_t)width / 80 - 1048, (uint64_t)width / 80 + 1048); /* 80 ps a byte */
}

/* However long the run is. */
static void samples__become_wider(void **state)
{
	make_star(&network, 3, 100 * GBPS, VB_US, &plain);
	add_flow(&flows, 0, 2, 100000, 0);
	add_flow(&flows, 1, 2, 100000, 50 * VB_MS);
	run_sampled(true, 1);
	expect_counts();
	assert_in_range(result.sample_width * FABRIC_SAMPLES, 50 * VB_MS, 101 * VB_MS);
	const uint32_t down = network.links[network.endpoints[2].link].reverse;
	assert_int_equal(result.samples[down][0].bytes, 104800);
	assert_int_equal(result.samples[down][50 * VB_MS / result.sample_width].bytes, 104800);
}

static void sampling__changes_nothing(void **state)
{
	make_star(&network, 4, 100 * GBPS, VB_US, &lossless);
	for (uint32_t src = 0; src < 3; src++)
		add_flow(&flows, src, 3, 300000, 0);
	run_sampled(false, 1);
	const uint64_t hash = result.hash;
	assert_null(result.samples);
	run_sampled(true, 1);
	assert_true(result.hash == hash);
	const uint32_t down = network.links[network.endpoints[3].link].reverse;
	static struct fabric_sample one[FABRIC_SAMPLES];
	memcpy(one, result.samples[down], sizeof(one));
	run_sampled(true, 2);
	assert_true(result.hash == hash);
	assert_memory_equal(one, result.samples[down], sizeof(one));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(samples__come_to_the_counts, teardown),
		cmocka_unit_test_teardown(queue__lies_where_it_was, teardown),
		cmocka_unit_test_teardown(samples__become_wider, teardown),
		cmocka_unit_test_teardown(sampling__changes_nothing, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
