/* Credits: what goes by a link is bounded by its rate, and by the room at its end for each round trip. */
#include "nets.h"

static struct network network;
static struct flow_list flows;
static struct fabric_result result;

enum { BLOCKS = 17, PACKETS = 1200 }; /* of 64 bytes, of a packet */

static int teardown(void **state)
{
	network_free(&network);
	flow_list_free(&flows);
	fabric_result_free(&result);
	return 0;
}

/* Room for so many packets. The credit of a packet that leaves at once is back after its time, its message's, and twice
 * the way. */
static void throughput__is_a_straight_line_then_a_plateau(void **state)
{
	const vb_time packet = 1048 * 80, ack = 60 * 80, round = packet + 8 * 80 + 2 * VB_US;
	for (uint32_t room = 1; room <= 30; room++) {
		struct switch_profile profile = { .name = "lanes",
			.class_count = 1,
			.flow_control = FLOW_CREDITS,
			.credit_bytes = room * BLOCKS * 64 + (room == 1 ? 63 : 0) };
		make_star(&network, 2, 100 * GBPS, VB_US, &profile);
		add_flow(&flows, 0, 1, PACKETS * 1000, 0);
		struct fabric_config config = config_hpcc(&network, &flows);
		config.ack_every = 100000;
		run(&config, &result);
		vb_time last = room * packet < round ? (PACKETS - 1) / room * round + (PACKETS - 1) % room * packet
						     : (PACKETS - 1) * packet;
		assert_int_equal(result.flows[0].fct, last + 2 * packet + 2 * ack + 4 * VB_US);
		assert_int_equal(result.drops, 0);
		teardown(NULL);
	}
}

/* Sixteen to one: all wait where there is no room, nothing is dropped, and the last port never rests, but for the
 * credits that it gives back for acks. */
static void incast__drops_nothing(void **state)
{
	struct switch_profile profile = {
		.name = "lanes", .class_count = 1, .flow_control = FLOW_CREDITS, .credit_bytes = 256 << 10
	};
	make_tree_320(&network, &profile);
	for (uint32_t i = 0; i < 16; i++)
		add_flow(&flows, i, 319, 500000, 0);
	struct fabric_config config = config_hpcc(&network, &flows);
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.drops, 0);
	vb_time round = 4 * 1048 * 20 + 1048 * 80 + 2 * 60 * 80 + 4 * 60 * 20 + 12 * VB_US;
	assert_in_range(result.last_flow, 8000 * 1048 * 80 + round, 8000 * 1048 * 80 + round + 8000 * 8 * 80);
	for (uint32_t i = 0; i < network.link_count; i++)
		assert_true(result.links[i].most_queued <= 16 * (256 << 10));
}

/* Lanes have their own room: one that is full does not hold up another. */
static void lanes__wait_each_for_themselves(void **state)
{
	struct switch_profile profile = {
		.name = "lanes", .class_count = 2, .flow_control = FLOW_CREDITS, .credit_bytes = 64 << 10
	};
	char why[100];
	make_star(&network, 2, 100 * GBPS, VB_US, &profile);
	network_add_endpoint(&network, 2, 0);
	network_connect(&network, 2, network_switch_node(0), 1 * GBPS, VB_US);
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
	for (unsigned i = 0; i < 2; i++)
		flow_list_add(&flows, &(struct flow){ .src = 0,
					      .dst = i ? 1 : 2,
					      .bytes = 1000000,
					      .start = i * 50 * VB_US,
					      .traffic_class = (uint8_t)i });
	flow_list_add(&flows, &(struct flow){ .src = 1, .dst = 0, .bytes = 1000000, .traffic_class = 0 });
	struct fabric_config config = config_hpcc(&network, &flows);
	config.ack_class = 1;
	run(&config, &result);
	assert_int_equal(result.drops, 0);
	assert_true(result.flows[0].fct > 8 * VB_MS);
	assert_true(result.flows[2].fct < 100 * VB_US); /* its acks pass what waits */
}

/* Whoever sends, whichever way it goes, with little room and much of it. */
static void nothing__is_ever_dropped(void **state)
{
	for (unsigned i = 0; i < 18; i++) {
		struct switch_profile profile = { .name = "lanes",
			.class_count = 1 + i % 2,
			.flow_control = FLOW_CREDITS,
			.credit_bytes = 1500u << 2 * (i % 3),
			.routing = (enum routing)(i / 2 % 3),
			.is_cut_through = i % 2 };
		make_tree_320(&network, &profile);
		for (uint32_t k = 0; k < 120; k++)
			flow_list_add(&flows, &(struct flow){ .src = k,
						      .dst = k % 3 ? 319 - k % 2 : 160 + k,
						      .bytes = 10000 + 100 * k,
						      .traffic_class = (uint8_t)(k % profile.class_count) });
		struct fabric_config config = config_hpcc(&network, &flows);
		config.endpoint = (enum fabric_endpoint)(i / 6);
		config.seed = i + 1;
		run(&config, &result);
		assert_int_equal(result.end, FABRIC_DONE);
		assert_int_equal(result.flows_failed, 0);
		assert_int_equal(result.drops + result.lossless_drops, 0);
		for (uint32_t k = 0; k < network.link_count; k++)
			assert_int_equal(result.links[k].drops, 0);
		teardown(NULL);
	}
}

static void threads__change_nothing(void **state)
{
	struct switch_profile profile = { .name = "lanes",
		.class_count = 2,
		.flow_control = FLOW_CREDITS,
		.credit_bytes = 20000,
		.routing = ROUTING_ADAPTIVE,
		.is_cut_through = true };
	make_tree_320(&network, &profile);
	network_set_fault(&network, 4, &(struct network_fault){ .loss_ppm = 20000 });
	for (uint32_t i = 0; i < 160; i++)
		add_flow(&flows, i, i % 4 ? 319 : 160 + i, 20000 + i, i % 3 * 500 * VB_NS);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.ack_class = 1;
	config.probe_after = 50 * VB_US;
	uint64_t hash = 0;
	for (uint32_t threads = 1; threads <= 4; threads *= 2) {
		config.threads = threads;
		fabric_result_free(&result);
		run(&config, &result);
		assert_int_equal(result.end, FABRIC_DONE);
		assert_true(result.lost > 0 && result.drops == 0);
		assert_true(threads == 1 || result.hash == hash);
		hash = result.hash;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(throughput__is_a_straight_line_then_a_plateau, teardown),
		cmocka_unit_test_teardown(incast__drops_nothing, teardown),
		cmocka_unit_test_teardown(lanes__wait_each_for_themselves, teardown),
		cmocka_unit_test_teardown(nothing__is_ever_dropped, teardown),
		cmocka_unit_test_teardown(threads__change_nothing, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
