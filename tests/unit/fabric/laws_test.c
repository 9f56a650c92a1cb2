/* What can be told without a simulation, to the picosecond or within what chance allows. */
#include <math.h>
#include <stdlib.h>
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

static void run_hpcc(void)
{
	struct fabric_config config = config_hpcc(&network, &flows);
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_failed, 0);
}

/* 2,000 packets on the slowest link, the last on five more; then its ack; a microsecond for each of twelve links. */
static void uncontended__transfer_takes_what_arithmetic_says(void **state)
{
	make_tree_320(&network, &ideal);
	add_flow(&flows, 0, 319, 2000000, 0);
	run_hpcc();
	vb_time packet = 1048 * 80, fast = 1048 * 20, ack = 60 * 80, fast_ack = 60 * 20;
	assert_int_equal(result.flows[0].fct, 2000 * packet + 4 * fast + packet + 2 * ack + 4 * fast_ack + 12 * VB_US);
	assert_int_equal(result.flows[0].fct, 179862080); /* 179,862.08 ns */
	assert_int_equal(result.data_packets, 2000);
	assert_int_equal(result.acks, 2000);
	assert_int_equal(result.packet_hops, 2000 * 6 * 2);
}

/* A port that never rests: the last flow ends when all bytes have passed, and one round trip. */
static void incast__keeps_the_last_port_busy(void **state)
{
	make_tree_320(&network, &ideal);
	for (uint32_t i = 0; i < 16; i++)
		add_flow(&flows, i, 319, 500000, 0);
	run_hpcc();
	vb_time round = 4 * 1048 * 20 + 1048 * 80 + 2 * 60 * 80 + 4 * 60 * 20 + 12 * VB_US;
	assert_int_equal(result.last_flow, 8000 * 1048 * 80 + round);
	assert_int_equal(result.last_flow / VB_NS, 682902);
}

/* Two links, one packet: twice its time, or once and twice its header's. */
static void switch__adds_a_packets_time_or_a_headers(void **state)
{
	const vb_time time = 1048 * 80, ack = 60 * 80;
	for (unsigned is_cut_through = 0; is_cut_through < 2; is_cut_through++) {
		struct switch_profile profile = ideal;
		profile.is_cut_through = is_cut_through;
		profile.latency = 300 * VB_NS;
		make_star(&network, 2, 100 * GBPS, VB_US, &profile);
		add_flow(&flows, 0, 1, 1000, 0);
		run_hpcc();
		vb_time way = 2 * VB_US + 300 * VB_NS;
		vb_time there = is_cut_through ? time + 64 * 80 : 2 * time;
		assert_int_equal(result.flows[0].fct, there + 2 * ack + 2 * way); /* an ack is shorter than what is waited for */
		teardown(NULL);
	}
}

/* Where the way on is faster, a packet waits so long that its end is not late. */
static void cut_through__never_runs_dry(void **state)
{
	struct switch_profile profile = ideal;
	char why[100];
	profile.is_cut_through = true;
	make_star(&network, 1, 100 * GBPS, VB_US, &profile);
	network_add_endpoint(&network, 1, 0);
	network_connect(&network, 1, network_switch_node(0), 400 * GBPS, VB_US);
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
	add_flow(&flows, 0, 1, 1000, 0);
	run_hpcc();
	/* The last bit leaves the switch when it has come, and the ack's as well. */
	assert_int_equal(result.flows[0].fct, 1048 * 80 + VB_US + VB_US + 60 * 20 + VB_US + 60 * 80 + VB_US);
}

static void two_senders__share_a_port_alike(void **state)
{
	make_star(&network, 3, 100 * GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 2, 10000000, 0);
	add_flow(&flows, 1, 2, 10000000, 0);
	run_hpcc();
	double first = (double)result.flows[0].fct, second = (double)result.flows[1].fct;
	assert_true(fabs(first - second) / second < 0.001);
}

/* A queue that has no room drops; what is dropped is sent again, and counted. */
static void drop_tail__drops_what_has_no_room_and_all_arrives(void **state)
{
	struct switch_profile profile = ideal;
	profile.port_bytes = 50000;
	make_star(&network, 5, 100 * GBPS, VB_US, &profile);
	for (uint32_t i = 0; i < 4; i++)
		add_flow(&flows, i, 4, 300000, 0);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.probe_after = 50 * VB_US;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_failed, 0);
	assert_true(result.drops > 0 && result.resent_packets >= result.drops);
	assert_int_equal(result.payload_bytes, 1200000);
}

/* Rates that do not divide, where bytes times 8e12 is more than 64 bits: 56 Gb/s, and room for all. */
static void drop_tail__has_the_room_that_was_said_at_any_rate(void **state)
{
	static const uint64_t rooms[] = { 2306000, 4000000, 1ull << 32 };
	for (unsigned i = 0; i < 3; i++) {
		struct switch_profile profile = ideal;
		profile.port_bytes = rooms[i];
		make_star(&network, 5, 56 * GBPS, VB_US, &profile);
		for (uint32_t k = 0; k < 4; k++)
			add_flow(&flows, k, 4, 500000, 0);
		run_hpcc();
		assert_int_equal(result.drops, 0);
		teardown(NULL);
	}
}

/* Eight flows of a switch on eight ways up: the fullest has 2.60 on average. */
static void ecmp__throws_balls_into_bins(void **state)
{
	enum { TREES = 40 };
	double sum = 0;
	unsigned groups = 0;
	for (uint64_t seed = 1; seed <= TREES; seed++) {
		char why[100];
		network_add_profile(&network, &ideal);
		network_add_nic(&network, &(struct nic_profile){ .name = "ideal" });
		for (uint32_t i = 0; i < 128; i++)
			network_add_endpoint(&network, i, 0);
		for (uint32_t i = 0; i < 24; i++)
			network_add_switch(&network, 0, i >= 16, NETWORK_NONE);
		for (uint32_t i = 0; i < 128; i++)
			network_connect(&network, i, network_switch_node(i / 8), 100 * GBPS, VB_US);
		uint32_t up = network.link_count;
		for (uint32_t i = 0; i < 16 * 8; i++)
			network_connect(&network, network_switch_node(i / 8), network_switch_node(16 + i % 8), 100 * GBPS, VB_US);
		assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
		for (uint32_t i = 0; i < 128; i++)
			add_flow(&flows, i, (i + 8 + i % 7 * 8) % 128, 1000, 0);
		struct fabric_config config = config_hpcc(&network, &flows);
		config.seed = seed;
		run(&config, &result);
		for (uint32_t leaf = 0; leaf < 16; leaf++, groups++) {
			uint64_t most = 0;
			for (uint32_t k = 0; k < 8; k++) {
				/* Acks go up as well: data alone is counted, by its bytes. */
				const struct fabric_link_counts *counts = &result.links[up + (leaf * 8 + k) * 2];
				uint64_t data = (counts->bytes - 60 * counts->packets) / (1048 - 60);
				if (data > most)
					most = data;
			}
			sum += (double)most;
		}
		teardown(NULL);
	}
	double mean = sum / groups;
	if (fabs(mean - 2.60) > 0.10)
		fail_msg("the fullest of eight ways has %.3f of eight flows on average, not 2.60", mean);
}

/* Poisson arrivals at one port of single packets: queueing as Pollaczek and Khinchine have it, rho / (2 (1 - rho)). */
static void poisson__queues_as_m_d_1(void **state)
{
	enum { SENDERS = 64, PACKETS = 500 };
	const vb_time service = 1048 * 80;
	double waited = 0;
	unsigned count = 0;
	const double rho = 0.5;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct vb_random random;
		vb_random_seed(&random, seed);
		make_star(&network, SENDERS + 1, 100 * GBPS, VB_US, &ideal);
		for (uint32_t i = 0; i < SENDERS; i++) {
			double at = 0;
			for (uint32_t k = 0; k < PACKETS; k++) {
				double u = ((double)(vb_random_u64(&random) >> 11) + 1) / 9007199254740993.0;
				at += -log(u) * (double)service * SENDERS / rho;
				add_flow(&flows, i, SENDERS, 1000, (vb_time)at);
			}
		}
		run_hpcc();
		/* Without a queue: two links there, two back. A sender's own packets that meet are too few to matter. */
		vb_time alone = 2 * service + 2 * 60 * 80 + 4 * VB_US;
		for (uint32_t i = 0; i < SENDERS * PACKETS; i++, count++)
			waited += (double)(result.flows[i].fct - alone) / (double)service;
		teardown(NULL);
	}
	double mean = waited / count;
	if (fabs(mean - 0.5) > 0.025)
		fail_msg("a packet waits %.4f service times on average, not 0.5", mean);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(uncontended__transfer_takes_what_arithmetic_says, teardown),
		cmocka_unit_test_teardown(incast__keeps_the_last_port_busy, teardown),
		cmocka_unit_test_teardown(switch__adds_a_packets_time_or_a_headers, teardown),
		cmocka_unit_test_teardown(cut_through__never_runs_dry, teardown),
		cmocka_unit_test_teardown(two_senders__share_a_port_alike, teardown),
		cmocka_unit_test_teardown(drop_tail__drops_what_has_no_room_and_all_arrives, teardown),
		cmocka_unit_test_teardown(drop_tail__has_the_room_that_was_said_at_any_rate, teardown),
		cmocka_unit_test_teardown(ecmp__throws_balls_into_bins, teardown),
		cmocka_unit_test_teardown(poisson__queues_as_m_d_1, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
