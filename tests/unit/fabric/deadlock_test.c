/* A ring of switches, each of whose packets go two links on in the same sense: what no lossless network must do. */
#include "fabric/topologies.h"
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

static const struct switch_profile pausing = { .name = "pausing", .buffer_bytes = 4 << 20, .flow_control = FLOW_PFC,
	.class_count = 1, .classes = { { .is_lossless = true, .limit_bytes = 30000 } } };
static const struct switch_profile crediting = { .name = "crediting", .flow_control = FLOW_CREDITS, .class_count = 1,
	.credit_bytes = 30000 };

static void run_ring(const struct switch_profile *profile, uint32_t senders)
{
	struct topology topology = { .kind = "ring", .leaves = SWITCHES, .endpoints = SWITCHES,
		.host_bits_per_second = 100 * GBPS, .host_delay = VB_US, .fabric_delay = VB_US, .profile = *profile };
	char why[100];
	assert_int_equal(topology_build(&topology, &network, why, sizeof(why)), 0);
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
		cmocka_unit_test_teardown(chain__is_none, teardown),
		cmocka_unit_test_teardown(watchdog__frees_it_and_says_what_was_lost, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
