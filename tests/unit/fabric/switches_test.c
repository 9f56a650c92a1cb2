/* What a switch does with a packet: by which of several ways it goes on, and whether it is marked. */
#include <math.h>
#include "nets.h"

enum { WAYS = 4, SENDERS = 8 };

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

/* Two switches, `WAYS` others between them, the last way slower than the rest. Senders on one, receivers on the
 * other. */
static void make_ways(enum routing routing, uint32_t class_count)
{
	const struct switch_profile profile = { .name = "ways", .class_count = class_count, .routing = routing };
	char why[100];
	network_add_profile(&network, &profile);
	network_add_nic(&network, &(struct nic_profile){ .name = "ideal" });
	for (uint32_t i = 0; i < 2 * SENDERS; i++)
		network_add_endpoint(&network, i, 0);
	for (uint32_t i = 0; i < 2 + WAYS; i++)
		network_add_switch(&network, 0, i >= 2, NETWORK_NONE);
	for (uint32_t i = 0; i < 2 * SENDERS; i++)
		network_connect(&network, i, network_switch_node(i / SENDERS), 100 * GBPS, VB_US);
	for (uint32_t i = 0; i < 2 * WAYS; i++)
		network_connect(&network, network_switch_node(i / WAYS), network_switch_node(2 + i % WAYS),
			i % WAYS == WAYS - 1 ? 25 * GBPS : 100 * GBPS, VB_US);
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
}

static void run_ways(uint64_t sent[WAYS])
{
	struct fabric_config config = config_hpcc(&network, &flows);
	config.ack_every = 1000000;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	for (uint32_t i = 0; i < WAYS; i++)
		sent[i] = result.links[2 * (2 * SENDERS + i)].packets;
}

static void ecmp__keeps_a_flow_to_one_way(void **state)
{
	uint64_t sent[WAYS];
	make_ways(ROUTING_ECMP, 1);
	add_flow(&flows, 0, SENDERS, 1000000, 0);
	run_ways(sent);
	uint32_t used = 0;
	for (uint32_t i = 0; i < WAYS; i++)
		used += sent[i] > 0;
	assert_int_equal(used, 1);
	assert_int_equal(result.resent_packets, 0);
}

static void spray__sends_each_packet_by_a_way_of_its_own(void **state)
{
	for (uint32_t class_count = 1; class_count <= 2; class_count++) {
		uint64_t sent[WAYS];
		make_ways(ROUTING_SPRAY, class_count);
		for (uint32_t i = 0; i < 4000; i++)
			add_flow(&flows, i % SENDERS, SENDERS + i % SENDERS, 1000, 0);
		run_ways(sent);
		for (uint32_t i = 0; i < WAYS; i++)
			assert_in_range(sent[i], 1000 - 120, 1000 + 120);
		teardown(NULL);
		make_ways(ROUTING_SPRAY, class_count);
		add_flow(&flows, 0, SENDERS, 1000000, 0); /* the packets of one overtake each other */
		struct fabric_config config = config_hpcc(&network, &flows);
		config.limit = VB_MS;
		run(&config, &result);
		for (uint32_t i = 0; i < WAYS; i++)
			assert_true(result.links[2 * (2 * SENDERS + i)].packets > 100);
		assert_true(result.naks > 0 && result.resent_packets > 0);
		teardown(NULL);
	}
}

/* Each way has of the packets what it has of the rate, though nobody told the switch which. */
static void adaptive__goes_where_the_queue_is_shortest(void **state)
{
	for (uint32_t class_count = 1; class_count <= 2; class_count++) {
		uint64_t sent[WAYS];
		make_ways(ROUTING_ADAPTIVE, class_count);
		for (uint32_t i = 0; i < 3250; i++)
			add_flow(&flows, i % SENDERS, SENDERS + i % SENDERS, 1000, 0);
		run_ways(sent);
		for (uint32_t i = 0; i + 1 < WAYS; i++)
			assert_in_range(sent[i], 1000 - 5, 1000 + 5);
		assert_in_range(sent[WAYS - 1], 250 - 10, 250 + 10);
		teardown(NULL);
	}
}

/* RED: none up to mark_min, then by chance that grows with the queue. Two send to one: the queue grows by a packet for
 * each two that come. */
static void marks__are_as_likely_as_the_queue_is_long(void **state)
{
	enum { PACKETS = 4000, SEEDS = 10, MIN = 500 * 1048, MAX = 3000 * 1048 };
	for (uint32_t class_count = 1; class_count <= 2; class_count++) {
		const struct switch_profile profile = { .name = "marks",
			.class_count = class_count,
			.classes = { { .mark_min = MIN, .mark_max = MAX, .mark_ppm = 200000 } } };
		double expected = 0, marked = 0;
		for (uint32_t i = 0; i < PACKETS; i++)
			expected += SEEDS * 0.2 * fmax(0, i * 524.0 - MIN) / (MAX - MIN);
		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			make_star(&network, 3, 100 * GBPS, VB_US, &profile);
			add_flow(&flows, 0, 2, PACKETS / 2 * 1000, 0);
			add_flow(&flows, 1, 2, PACKETS / 2 * 1000, 0);
			struct fabric_config config = config_hpcc(&network, &flows);
			config.seed = seed;
			run(&config, &result);
			marked += (double)result.marked_packets;
			teardown(NULL);
		}
		if (fabs(marked / expected - 1) > 0.05) /* three times the deviation of so many throws */
			fail_msg("%.0f packets are marked, where chance has %.0f", marked, expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(ecmp__keeps_a_flow_to_one_way, teardown),
		cmocka_unit_test_teardown(spray__sends_each_packet_by_a_way_of_its_own, teardown),
		cmocka_unit_test_teardown(adaptive__goes_where_the_queue_is_shortest, teardown),
		cmocka_unit_test_teardown(marks__are_as_likely_as_the_queue_is_long, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
