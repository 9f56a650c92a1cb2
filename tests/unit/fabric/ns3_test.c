/* The hash is MurmurHash3's, as its reference gives it; flows take the ways that follow from it, and telemetry keeps
 * what its few bits hold. That published runs come out so, flow by flow: tests/validation/golden.py. */
#include "fabric/ns3.h"
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

static uint32_t hash_of(uint32_t seed, const char *twelve)
{
	uint32_t words[3];
	for (unsigned i = 0; i < 3; i++)
		words[i] = (uint32_t)(uint8_t)twelve[4 * i] | (uint32_t)(uint8_t)twelve[4 * i + 1] << 8 |
			   (uint32_t)(uint8_t)twelve[4 * i + 2] << 16 | (uint32_t)(uint8_t)twelve[4 * i + 3] << 24;
	return ns3_hash(seed, words);
}

static void hash__is_that_of_its_reference(void **state)
{
	assert_int_equal(hash_of(0, "hello, world"), 0x149bbb7f);
	assert_int_equal(hash_of(1, "hello, world"), 0x6f5cb2e9);
	assert_int_equal(hash_of(0x9747b28c, "abcdefghijkl"), 0x0ca38ed3);
}

static void address__has_a_nodes_number_in_its_middle(void **state)
{
	assert_int_equal(ns3_address(0), 0x0b000001);
	assert_int_equal(ns3_address(3), 0x0b000301);
	assert_int_equal(ns3_address(319), 0x0b013f01);
}

/* Which of the four uplinks of a rack a run went by: the only one. */
static uint32_t uplink_of(uint32_t rack)
{
	uint32_t used = 4;
	for (uint32_t k = 0; k < 4; k++)
		if (result.links[640 + 2 * (4 * rack + k)].packets > 0) {
			assert_int_equal(used, 4);
			used = k;
		}
	return used;
}

/* By hand: host 0 is 11.0.0.1, 319 is 11.1.63.1, racks 0 and 19 are nodes 320 and 339; the hash modulo 4, from the
 * last uplink on. */
static void flows__go_by_their_hash_there_and_back(void **state)
{
	static const struct switch_profile ns3 = { .name = "ns3", .class_count = 1, .hash = HASH_NS3 };
	static const uint32_t there[] = { 2, 1, 1, 2 }, back[] = { 1, 2, 2, 0 };
	for (unsigned endpoint = FABRIC_ENGINE; endpoint <= FABRIC_TCP; endpoint++)
		for (uint32_t host = 0; host < 4; host++) {
			make_tree_320(&network, &ns3);
			add_flow(&flows, host, 319, 20000, 0);
			struct fabric_config config = config_hpcc(&network, &flows);
			config.endpoint = (enum fabric_endpoint)endpoint;
			config.seed = host + 1; /* draws nothing */
			run(&config, &result);
			assert_int_equal(uplink_of(0), there[host]);
			assert_int_equal(uplink_of(19), back[host]);
			teardown(NULL);
		}
}

/* From host 0 the first four flows to 319 go up by 2, 1, 1, 2: the order is that of their starts, whatever that of the
 * list. */
static void source_ports__count_flows_between_the_same_two(void **state)
{
	static const struct switch_profile ns3 = { .name = "ns3", .class_count = 1, .hash = HASH_NS3 };
	make_tree_320(&network, &ns3);
	add_flow(&flows, 0, 319, 3000, 2 * VB_US);
	add_flow(&flows, 0, 318, 5000, 0);
	add_flow(&flows, 0, 319, 1000, 0);
	add_flow(&flows, 0, 319, 2000, VB_US);
	struct fabric fabric = { .config = &(struct fabric_config){ .flows = &flows, .network = &network },
		.network = &network };
	assert_int_equal(ns3_open(&fabric), 0);
	static const uint16_t ports[] = { 10002, 10000, 10000, 10001 };
	assert_memory_equal(fabric.source_ports, ports, sizeof(ports));
	ns3_close(&fabric);
}

static void telemetry__keeps_what_its_bits_hold(void **state)
{
	const struct vb_cc_hop exact = {
		.at = 1234567, .tx_bytes = 1000000, .rate = 12500000000, .queue_bytes = 4799, .port = 7
	};
	const struct vb_cc_hop told = ns3_told(exact);
	assert_int_equal(told.at, 1234000);
	assert_int_equal(told.tx_bytes, 7812 * 128);
	assert_int_equal(told.queue_bytes, 59 * 80);
	assert_int_equal(told.rate, exact.rate);
	assert_int_equal(told.port, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hash__is_that_of_its_reference),
		cmocka_unit_test(address__has_a_nodes_number_in_its_middle),
		cmocka_unit_test_teardown(flows__go_by_their_hash_there_and_back, teardown),
		cmocka_unit_test_teardown(source_ports__count_flows_between_the_same_two, teardown),
		cmocka_unit_test(telemetry__keeps_what_its_bits_hold),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
