/* A ring of switches, each of whose packets go two links on in the same sense: what no lossless network must do. */
#include "net/topologies.h"
#include "nets.h"

enum { SWITCHES = 5 };

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

static const struct switch_profile pausing = { .name = "pausing",
	.buffer_bytes = 4 << 20,
	.flow_control = FLOW_PFC,
	.class_count = 1,
	.classes = { { .is_lossless = true, .limit_bytes = 30000 } } };
static const struct switch_profile crediting = {
	.name = "crediting", .flow_control = FLOW_CREDITS, .class_count = 1, .credit_bytes = 30000
};

static void make_ring(const struct switch_profile *profile, vb_time delay)
{
	struct topology topology = { .kind = "ring",
		.leaves = SWITCHES,
		.endpoints = SWITCHES,
		.host_bits_per_second = 100 * GBPS,
		.host_delay = VB_US,
		.fabric_delay = delay,
		.profile = *profile };
	char why[100];
	assert_int_equal(topology_build(&topology, &network, why, sizeof(why)), 0);
}

static void run_ring(const struct switch_profile *profile, uint32_t senders)
{
	make_ring(profile, VB_US);
	for (uint32_t i = 0; i < senders; i++)
		add_flow(&flows, i, (i + 2) % SWITCHES, 1000000, 0);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.probe_after = 100 * VB_US;
	run(&config, &result);
}

static void expect_cycle(void)
{
	assert_int_equal(result.end, FABRIC_DEADLOCK);
	assert_int_equal(result.cycle_count, SWITCHES);
	for (uint32_t i = 0; i < SWITCHES; i++) {
		const struct network_link *link = &network.links[result.cycle[i]];
		assert_true(network_is_switch(link->from) && network_is_switch(link->to));
		assert_int_equal(link->to, network.links[result.cycle[(i + 1) % SWITCHES]].from);
	}
	assert_true(result.flows_done < SWITCHES && result.drops == 0);
	assert_true(result.ended_at < 10 * VB_MS);
}

static void pauses__in_a_ring_are_a_deadlock(void **state)
{
	run_ring(&pausing, SWITCHES);
	expect_cycle();
}

static void credits__in_a_ring_are_a_deadlock(void **state)
{
	run_ring(&crediting, SWITCHES);
	expect_cycle();
}

/* Found when it is there, though nothing is to happen for long. */
static void silence__does_not_hide_it(void **state)
{
	make_ring(&pausing, VB_US);
	for (uint32_t i = 0; i < SWITCHES; i++)
		add_flow(&flows, i, (i + 2) % SWITCHES, 1000000, 0);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.ack_timeout = 500 * VB_MS;
	run(&config, &result);
	expect_cycle();
}

/* Nor what goes by the same links in another class. */
static void another_class__does_not_hide_it(void **state)
{
	struct switch_profile profile = pausing;
	profile.class_count = 2;
	profile.classes[1] = (struct class_profile){ .is_strict = true };
	make_ring(&profile, VB_US);
	for (uint32_t i = 0; i < SWITCHES; i++) {
		add_flow(&flows, i, (i + 2) % SWITCHES, 1000000, 0);
		for (uint32_t k = 0; k < 5000; k++) /* a packet of this one every 4 us */
			flow_list_add(&flows, &(struct flow){ .src = (i + k) % SWITCHES,
						      .dst = (i + k + 1) % SWITCHES,
						      .bytes = 1000,
						      .start = k * 4 * VB_US,
						      .traffic_class = 1 });
	}
	struct fabric_config config = config_hpcc(&network, &flows);
	config.ack_class = 1;
	config.probe_after = 100 * VB_US;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DEADLOCK);
	assert_int_equal(result.cycle_count, SWITCHES);
	assert_true(result.ended_at < 10 * VB_MS);
}

/* Links so long that word to go on is under way for many looks. */
static void word_under_way__is_no_deadlock(void **state)
{
	static const uint32_t kilobytes[] = { 800, 400, 200, 100, 200, 100, 1500, 400, 400, 200 };
	static const vb_time starts[] = { 16542089, 0, 0, 0, 6737206, 0, 5726983, 1795035, 0, 0 };
	struct switch_profile profile = crediting;
	profile.credit_bytes = 200000;
	profile.is_cut_through = true;
	make_ring(&profile, 10 * VB_MS);
	for (uint32_t i = 0; i < 2 * SWITCHES; i++)
		add_flow(&flows, i / 2, (i / 2 + 1 + i % 2) % SWITCHES, kilobytes[i] * 1000, starts[i] * VB_NS);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.mtu = 4096;
	config.data_overhead = config.ack_overhead = 0;
	config.ack_timeout = 10 * VB_S;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_failed, 0);
}

/* One who does not send, and there is no cycle. */
static void chain__is_none(void **state)
{
	run_ring(&pausing, SWITCHES - 1);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_true(result.pauses > 0 && result.flows_failed == 0 && result.drops == 0);
}

static void watchdog__frees_it_and_says_what_was_lost(void **state)
{
	struct switch_profile profile = pausing;
	profile.watchdog = 200 * VB_US;
	run_ring(&profile, SWITCHES);
	uint32_t fired = 0;
	for (uint32_t i = 0; i < network.link_count; i++)
		fired += result.links[i].watchdog_fired;
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_failed, 0);
	assert_true(fired > 0 && result.lossless_drops > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(pauses__in_a_ring_are_a_deadlock, teardown),
		cmocka_unit_test_teardown(credits__in_a_ring_are_a_deadlock, teardown),
		cmocka_unit_test_teardown(silence__does_not_hide_it, teardown),
		cmocka_unit_test_teardown(another_class__does_not_hide_it, teardown),
		cmocka_unit_test_teardown(word_under_way__is_no_deadlock, teardown),
		cmocka_unit_test_teardown(chain__is_none, teardown),
		cmocka_unit_test_teardown(watchdog__frees_it_and_says_what_was_lost, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
