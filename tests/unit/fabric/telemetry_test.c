/* What ports tell of themselves, and that it comes back with the ack, to who asks for it. */
#include "cc/telemetry.h"
#include "fabric/port.h"
#include "fabric/telemetry.h"
#include "nets.h"

enum { PACKET = 1048 * 80, ACK = 60 * 80 }; /* at 100 Gb/s */

static struct network network;
static struct flow_list flows;
static struct fabric_result result;

static const struct switch_profile ideal = { .name = "ideal", .class_count = 1 };

/* A congestion control that changes nothing, and writes down what it was told. */
static struct vb_cc_telemetry told[100];
static uint32_t acked[100], told_count;

static void init(struct vb_cc *cc, vb_time now)
{
	cc->window_bytes = VB_CC_UNLIMITED;
}

static void on_signal(struct vb_cc *cc, const struct vb_cc_signal *signal)
{
	assert_in_range(told_count, 0, 99);
	acked[told_count] = signal->acked;
	if (signal->telemetry)
		told[told_count] = *vb_cc_telemetry_of(signal->telemetry);
	told_count++;
}

static const struct vb_cc_algorithm listener = {
	.name = "listener", .goes_by = VB_CC_BY_TELEMETRY, .init = init, .on_signal = on_signal
};

static struct fabric_config config_of(const struct vb_cc_algorithm *algorithm)
{
	struct fabric_config config = config_hpcc(&network, &flows);
	config.cc.algorithm = algorithm;
	return config;
}

static int teardown(void **state)
{
	network_free(&network);
	flow_list_free(&flows);
	fabric_result_free(&result);
	memset(told, 0, sizeof(told));
	told_count = 0;
	return 0;
}

static void expect_hop(uint32_t which, uint32_t hop, vb_time at, uint64_t tx_bytes, uint32_t queue_bytes, uint32_t link)
{
	const struct vb_cc_hop *its = &told[which].hops[hop];
	assert_int_equal(its->at, at);
	assert_int_equal(its->tx_bytes, tx_bytes);
	assert_int_equal(its->queue_bytes, queue_bytes);
	assert_int_equal(its->port, link);
	assert_int_equal(its->rate, network_rate(&network, link) / 8);
}

/* Each is at the switch when all of it has gone over the first link, and leaves at once. */
static void telemetry__of_a_flow_alone_is_its_own_packets(void **state)
{
	make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 1, 5000, 0);
	struct fabric_config config = config_of(&listener);
	run(&config, &result);
	assert_int_equal(told_count, 5);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(told[i].count, 1);
		expect_hop(i, 0, VB_US + (i + 1) * PACKET, i * 1048, 0, network.endpoints[1].link ^ 1);
	}
}

/* Two send at one moment, twice as fast as the port. */
static void telemetry__says_what_stays_behind(void **state)
{
	make_star(&network, 3, 100 * GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 2, 3000, 0);
	add_flow(&flows, 1, 2, 3000, 0);
	struct fabric_config config = config_of(&listener);
	run(&config, &result);
	assert_int_equal(told_count, 6);
	/* The first finds the wire free. From then on two come while one leaves, until the last have come. */
	static const uint32_t behind[] = { 0, 2, 3, 2, 1, 0 };
	for (uint32_t i = 0; i < 6; i++)
		expect_hop(i, 0, VB_US + (i + 1) * PACKET, i * 1048, behind[i] * 1048, network.endpoints[2].link ^ 1);
}

static void telemetry__says_of_a_queue_how_long_it_is_however_long(void **state)
{
	struct port *ports[] = { &(struct port){ .bytes = UINT64_C(5) << 30 } };
	struct link link = { .bytes = 1000 };
	struct packet packet = { .wire_bytes = 1000 };
	struct record record = { 0 };
	struct fabric fabric = { .links = &link, .ports = ports };
	struct shard shard = { .fabric = &fabric, .packets = &packet, .records = &record };
	telemetry_note(&shard, 0, 0, VB_US);
	assert_int_equal(record.hop_count, 1);
	assert_true(record.hops[0].queue_bytes == UINT64_C(5) << 30);
}

static void telemetry__is_that_of_the_newest_packet_acknowledged(void **state)
{
	make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 1, 10000, 0);
	struct fabric_config config = config_of(&listener);
	config.ack_every = 4;
	run(&config, &result);
	uint32_t packets = 0;
	for (uint32_t i = 0; i < told_count; i++) {
		packets += acked[i] / 1000;
		expect_hop(i, 0, VB_US + packets * PACKET, (packets - 1) * 1048, 0, network.endpoints[1].link ^ 1);
	}
	assert_int_equal(packets, 10);
	assert_int_equal(told_count, 3);
}

/* Each at its place, with its own rate; the way of the ack is not told of. Of ten the first eight. */
static void telemetry__has_the_hops_in_their_order(void **state)
{
	enum { SWITCHES = 10 };
	char why[100];
	network_add_profile(&network, &ideal);
	network_add_nic(&network, &(struct nic_profile){ .name = "ideal" });
	for (uint32_t i = 0; i < SWITCHES; i++)
		network_add_switch(&network, 0, 0, NETWORK_NONE);
	for (uint32_t i = 0; i < 3; i++)
		network_add_endpoint(&network, i, 0);
	network_connect(&network, 0, network_switch_node(0), 100 * GBPS, VB_US);
	network_connect(&network, 1, network_switch_node(1), 100 * GBPS, VB_US);
	network_connect(&network, 2, network_switch_node(SWITCHES - 1), 100 * GBPS, VB_US);
	for (uint32_t i = 1; i < SWITCHES; i++)
		network_connect(&network, network_switch_node(i - 1), network_switch_node(i), 200 * GBPS, VB_US);
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
	add_flow(&flows, 0, 1, 2000, 0);
	add_flow(&flows, 2, 0, 1000, VB_MS);
	struct fabric_config config = config_of(&listener);
	run(&config, &result);
	assert_int_equal(told_count, 3);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(told[i].count, 2);
		expect_hop(i, 0, VB_US + (i + 1) * PACKET, i * 1048, 0, 6);
		expect_hop(i, 1, 2 * VB_US + (i + 1) * PACKET + PACKET / 2, i * 1048, 0, 3);
	}
	assert_int_equal(told[2].count, VB_CC_HOPS);
	for (uint32_t i = 0; i < VB_CC_HOPS; i++)
		assert_int_equal(told[2].hops[i].port, 6 + 2 * (SWITCHES - 2 - i) + 1);
}

static void telemetry__is_none_for_who_does_not_go_by_it(void **state)
{
	struct vb_cc_algorithm deaf = listener;
	deaf.goes_by = VB_CC_BY_LOSSES;
	make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 1, 3000, 0);
	struct fabric_config config = config_of(&deaf);
	run(&config, &result);
	assert_int_equal(told_count, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(told[i].count, 0);
}

static uint64_t hash_with(struct fabric_config config, uint32_t threads)
{
	config.threads = threads;
	fabric_result_free(&result);
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_failed, 0);
	return result.hash;
}

/* Of packets that are dropped, lost, late and doubled, and on ways that change: what is told goes with them into other
 * parts. */
static void telemetry__is_the_same_with_any_number_of_threads(void **state)
{
	for (unsigned routing = ROUTING_ECMP; routing <= ROUTING_SPRAY; routing++) {
		struct switch_profile profile = ideal;
		profile.port_bytes = 60000;
		profile.routing = (enum routing)routing;
		make_tree_320(&network, &profile);
		for (uint32_t link = 642; link < 960; link += 10)
			network_set_fault(&network, link,
				&(struct network_fault){ .loss_ppm = 1000,
					.duplicate_ppm = 20000,
					.late_ppm = 10000,
					.late_by = 2 * VB_US });
		for (uint32_t i = 0; i < 320; i += 2)
			add_flow(&flows, i, (i + 160) % 320 / 10 * 10 + 1, 60000 + i, i % 3 * 500 * VB_NS);
		struct fabric_config config = config_of(&vb_cc_hpcc);
		config.probe_after = 50 * VB_US;
		uint64_t one = hash_with(config, 1);
		assert_true(result.drops > 0 && result.lost > 0 && result.resent_packets > 0);
		assert_int_equal(hash_with(config, 2), one);
		assert_int_equal(hash_with(config, 4), one);
		config.cc.algorithm = &vb_cc_none;
		assert_int_not_equal(hash_with(config, 2), one);
		teardown(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(telemetry__of_a_flow_alone_is_its_own_packets, teardown),
		cmocka_unit_test_teardown(telemetry__says_what_stays_behind, teardown),
		cmocka_unit_test(telemetry__says_of_a_queue_how_long_it_is_however_long),
		cmocka_unit_test_teardown(telemetry__is_that_of_the_newest_packet_acknowledged, teardown),
		cmocka_unit_test_teardown(telemetry__has_the_hops_in_their_order, teardown),
		cmocka_unit_test_teardown(telemetry__is_none_for_who_does_not_go_by_it, teardown),
		cmocka_unit_test_teardown(telemetry__is_the_same_with_any_number_of_threads, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
