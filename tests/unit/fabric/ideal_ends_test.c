/* Endpoints without engines: they send what engines send, when engines send it, and order is nothing to them. */
#include <errno.h>
#include "nets.h"

static struct network network;
static struct flow_list flows;
static struct fabric_result result;

static const struct switch_profile ideal = { .name = "ideal", .class_count = 1 };

static int teardown(void **state)
{
	network_free(&network);
	flow_list_free(&flows);
	fabric_result_free(&result);
	return 0;
}

static struct fabric_config config_ideal(void)
{
	struct fabric_config config = config_hpcc(&network, &flows);
	config.endpoint = FABRIC_IDEAL;
	return config;
}

static void run_well(const struct fabric_config *config)
{
	fabric_result_free(&result);
	run(config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_failed, 0);
}

/* Packet for packet, with the sizes that RoCEv2 has and with given ones, and however many packets an answer is for. */
static void ideal__alone_is_as_fast_as_an_engine(void **state)
{
	make_tree_320(&network, &ideal);
	add_flow(&flows, 0, 319, 2000000, 0);
	add_flow(&flows, 20, 40, 999, VB_US);
	add_flow(&flows, 21, 41, 1001, VB_US);
	for (unsigned i = 0; i < 4; i++) {
		struct fabric_config config = config_hpcc(&network, &flows);
		if (i & 1)
			config.data_overhead = config.ack_overhead = 0;
		if (i & 2)
			config.ack_every = 16;
		run_well(&config);
		struct fabric_result engines = result;
		result = (struct fabric_result){ 0 };
		config.endpoint = FABRIC_IDEAL;
		run_well(&config);
		for (unsigned flow = 0; flow < flows.count; flow++)
			assert_int_equal(result.flows[flow].fct, engines.flows[flow].fct);
		assert_int_equal(result.data_packets, engines.data_packets);
		assert_int_equal(result.acks, engines.acks);
		assert_int_equal(result.packet_hops, engines.packet_hops);
		assert_int_equal(result.payload_bytes, engines.payload_bytes);
		assert_int_equal(result.links[0].bytes, engines.links[0].bytes);
		fabric_result_free(&engines);
	}
	assert_int_equal(result.acks, 2000 / 16 + 2);
}

static void ideal__fills_the_last_link_of_an_incast(void **state)
{
	struct switch_profile pfc = { .name = "pfc",
		.class_count = 1,
		.flow_control = FLOW_PFC,
		.buffer_bytes = 200000,
		.classes = { { .is_lossless = true } } };
	for (unsigned is_paused = 0; is_paused < 2; is_paused++) {
		make_star(&network, 5, 100 * GBPS, VB_US, is_paused ? &pfc : &ideal);
		for (uint32_t i = 0; i < 4; i++)
			add_flow(&flows, i, 4, 500000, 0);
		struct fabric_config config = config_ideal();
		run_well(&config);
		assert_int_equal(result.last_flow, 2001 * 1048 * 80 + 2 * 60 * 80 + 4 * VB_US);
		assert_true(is_paused ? result.pauses > 0 : result.pauses == 0);
		assert_int_equal(result.drops, 0);
		teardown(NULL);
	}
}

/* Two flows of one source, packet by packet. */
static void ideal__gives_its_flows_turns(void **state)
{
	make_star(&network, 3, 100 * GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 1, 100000, 0);
	add_flow(&flows, 0, 2, 100000, 0);
	struct fabric_config config = config_ideal();
	run_well(&config);
	assert_int_equal(result.flows[1].fct - result.flows[0].fct, 1048 * 80);
	assert_int_equal(result.flows[1].fct, 201 * 1048 * 80 + 2 * 60 * 80 + 4 * VB_US);
}

/* Each packet by a way of its own: an engine takes that for loss. */
static void ideal__ignores_order(void **state)
{
	struct switch_profile profile = ideal;
	for (unsigned routing = ROUTING_SPRAY; routing <= ROUTING_ADAPTIVE; routing++) {
		profile.routing = (enum routing)routing;
		make_tree_320(&network, &profile);
		for (uint32_t i = 0; i < 320; i++)
			add_flow(&flows, i, (i + 160) % 320, 40000, 0);
		struct fabric_config config = config_ideal();
		run_well(&config);
		vb_time last = result.last_flow;
		assert_int_equal(result.data_packets, 320 * 40);
		assert_int_equal(result.resent_packets + result.timeouts + result.naks, 0);
		config.ack_every = 1000000; /* none but the last asks, and it may not be the last to come */
		run_well(&config);
		assert_int_equal(result.resent_packets + result.timeouts, 0);
		config = config_hpcc(&network, &flows);
		run_well(&config);
		assert_true(result.naks > 0 && result.last_flow > last);
		teardown(NULL);
	}
}

static uint64_t hash_with(struct fabric_config config, uint32_t threads)
{
	config.threads = threads;
	run_well(&config);
	assert_int_equal(result.threads, threads);
	return result.hash;
}

/* Dropped, lost, doubled, late: all arrives once, and the same with however many threads. */
static void ideal__sends_again_after_the_timeout(void **state)
{
	struct switch_profile profile = ideal;
	profile.port_bytes = 30000;
	profile.routing = ROUTING_SPRAY;
	make_tree_320(&network, &profile);
	network_set_fault(&network, 4, &(struct network_fault){ .loss_ppm = 10000, .duplicate_ppm = 50000 });
	network_set_fault(&network, 650, &(struct network_fault){ .jitter = 5 * VB_US });
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < 320; i++) {
		add_flow(&flows, i, (i + 160) % 320 / 5 * 5, 20000 + i, i % 3 * 500 * VB_NS);
		bytes += 20000 + i;
	}
	struct fabric_config config = config_ideal();
	config.ack_timeout = 100 * VB_US;
	uint64_t one = hash_with(config, 1);
	assert_int_equal(result.payload_bytes, bytes);
	assert_true(result.drops > 0 && result.lost > 0 && result.timeouts > 0);
	assert_true(result.resent_packets >= result.timeouts);
	assert_int_equal(hash_with(config, 2), one);
	assert_int_equal(hash_with(config, 4), one);
	config.seed++;
	assert_int_not_equal(hash_with(config, 2), one);
}

/* Some 48,000 packets under way from one shard to the other, of which each is passed by a few. A walk along all of them
 * for each would take a hundred times as long. */
static void packets__overtake_a_few_of_many_between_parts(void **state)
{
	const double one_s = 0.05; /* what is small is measured badly */
	char why[100];
	network = (struct network){ 0 };
	network_add_profile(&network, &ideal);
	network_add_nic(&network, &(struct nic_profile){ .name = "ideal" });
	for (uint32_t i = 0; i < 2; i++) {
		network_add_endpoint(&network, i, 0);
		network_add_switch(&network, 0, 0, NETWORK_NONE);
	}
	for (uint32_t i = 0; i < 2; i++)
		network_connect(&network, i, network_switch_node(i), 400 * GBPS, 100 * VB_US);
	network_connect(&network, network_switch_node(0), network_switch_node(1), 400 * GBPS, VB_MS);
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
	network_set_fault(&network, 4, &(struct network_fault){ .jitter = 200 * VB_NS });
	add_flow(&flows, 0, 1, 60000000, 0);
	struct fabric_config config = config_ideal();
	config.ack_timeout = 100 * VB_MS;
	uint64_t one = hash_with(config, 1);
	const double least = result.cpu_s > one_s ? result.cpu_s : one_s;
	assert_int_equal(hash_with(config, 2), one);
	assert_true(result.cpu_s < least * 8);
}

/* Far beyond a window, on all links between switches. */
static void threads__change_nothing_where_delays_are_long(void **state)
{
	make_tree_320(&network, &ideal);
	for (uint32_t link = 640; link < 960; link++)
		network_set_fault(&network, link,
			&(struct network_fault){ .jitter = 20 * VB_US,
				.late_ppm = 1000,
				.late_by = 200 * VB_US,
				.duplicate_ppm = 1000 });
	for (uint32_t i = 0; i < 320; i++)
		add_flow(&flows, i, (i + 160) % 320, 40000 + i, 0);
	struct fabric_config config = config_ideal();
	config.ack_timeout = VB_MS;
	uint64_t one = hash_with(config, 1);
	assert_int_equal(hash_with(config, 2), one);
	assert_int_equal(hash_with(config, 4), one);
}

static void ideal__gives_up_when_nothing_is_heard(void **state)
{
	make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
	network_set_fault(&network, 0, &(struct network_fault){ .down_at = 10 * VB_US, .up_at = VB_S * 1000 });
	add_flow(&flows, 0, 1, 1000000, 0);
	flow_list_add(&flows, &(struct flow){ .src = 0, .dst = 1, .bytes = 1000 });
	flow_list_add_wait(&flows, flows.count - 1, 0, FLOW_ENDED);
	struct fabric_config config = config_ideal();
	config.ack_timeout = VB_MS;
	config.retry_count = 2;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_failed, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(result.flows[i].error, VB_WC_RETRY_EXC_ERR);
		assert_int_equal(result.flows[i].cause, VB_CAUSE_RETRY_EXCEEDED);
	}
	assert_int_equal(result.timeouts, 6);
	assert_int_equal(result.payload_bytes, 0);
	assert_true(result.flows[1].start >= 3 * VB_MS);
}

static void refuse(const struct fabric_config *config)
{
	char why[200] = "";
	assert_int_equal(fabric_run(config, &result, why, sizeof(why)), -EINVAL);
	if (!strstr(why, "ideal endpoints have no"))
		fail_msg("\"%s\" does not say what they have not", why);
}

static void what_it_has_not__is_refused(void **state)
{
	make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 1, 1000, 0);
	struct fabric_config config = config_ideal();
	config.cc.algorithm = &vb_cc_window;
	refuse(&config);
	config = config_ideal();
	config.probe_after = VB_US;
	refuse(&config);
	config = config_ideal();
	config.captured_links = (uint32_t[]){ 0 };
	config.captured_count = 1;
	refuse(&config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(ideal__alone_is_as_fast_as_an_engine, teardown),
		cmocka_unit_test_teardown(ideal__fills_the_last_link_of_an_incast, teardown),
		cmocka_unit_test_teardown(ideal__gives_its_flows_turns, teardown),
		cmocka_unit_test_teardown(ideal__ignores_order, teardown),
		cmocka_unit_test_teardown(ideal__sends_again_after_the_timeout, teardown),
		cmocka_unit_test_teardown(packets__overtake_a_few_of_many_between_parts, teardown),
		cmocka_unit_test_teardown(threads__change_nothing_where_delays_are_long, teardown),
		cmocka_unit_test_teardown(ideal__gives_up_when_nothing_is_heard, teardown),
		cmocka_unit_test_teardown(what_it_has_not__is_refused, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
