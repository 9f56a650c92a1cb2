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

static void expect_within_1_percent(double is, double law, const char *what)
{
	if (fabs(is / law - 1) > 0.01)
		fail_msg("%.4f %s on average, not %.4f", is, what, law);
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

/* As ns-3 has it, which counts whole nanoseconds: HPCC's authors' simulator gives 178,175. */
static void uncontended__transfer_in_whole_ns_takes_what_ns3_says(void **state)
{
	make_tree_320(&network, &ideal);
	network.is_whole_ns = true;
	add_flow(&flows, 0, 319, 2000000, 0);
	run_hpcc();
	assert_int_equal(result.flows[0].fct, 178175 * VB_NS);
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
		assert_int_equal(
			result.flows[0].fct, there + 2 * ack + 2 * way); /* an ack is shorter than what is waited for */
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

/* Leaves with eight endpoints and eight ways up each, and a flow from everybody to somebody behind another leaf. */
static void make_leaves(uint32_t leaves)
{
	char why[100];
	network_add_profile(&network, &ideal);
	network_add_nic(&network, &(struct nic_profile){ .name = "ideal" });
	for (uint32_t i = 0; i < 8 * leaves; i++)
		network_add_endpoint(&network, i, 0);
	for (uint32_t i = 0; i < leaves + 8; i++)
		network_add_switch(&network, 0, i >= leaves, NETWORK_NONE);
	for (uint32_t i = 0; i < 8 * leaves; i++)
		network_connect(&network, i, network_switch_node(i / 8), 100 * GBPS, VB_US);
	for (uint32_t i = 0; i < 8 * leaves; i++)
		network_connect(
			&network, network_switch_node(i / 8), network_switch_node(leaves + i % 8), 100 * GBPS, VB_US);
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
	for (uint32_t i = 0; i < 8 * leaves; i++)
		add_flow(&flows, i, (i + 8 + i % 7 * 8) % (8 * leaves), 1000, 0);
}

/* Eight flows of a leaf on eight ways up: as balls in bins, the fullest has 2.5971 on average. */
static void ecmp__throws_balls_into_bins(void **state)
{
	enum { LEAVES = 512 };
	double sum = 0;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		make_leaves(LEAVES);
		struct fabric_config config = config_hpcc(&network, &flows);
		config.seed = seed;
		run(&config, &result);
		for (uint32_t leaf = 0; leaf < LEAVES; leaf++) {
			uint64_t most = 0;
			for (uint32_t k = 0; k < 8; k++) {
				/* Acks go up as well: data alone is counted, by its bytes. */
				const struct fabric_link_counts *counts = &result.links[2 * (8 * (LEAVES + leaf) + k)];
				uint64_t data = (counts->bytes - 60 * counts->packets) / (1048 - 60);
				if (data > most)
					most = data;
			}
			sum += (double)most;
		}
		teardown(NULL);
	}
	expect_within_1_percent(sum / (10 * LEAVES), 2.5971, "flows on the fullest of eight ways");
}

/* Poisson arrivals at one port of single packets: queueing as Pollaczek and Khinchine have it, rho / (2 (1 - rho)). */
static double mean_wait(uint64_t seed)
{
	enum { SENDERS = 500, PACKETS = 100000 };
	const vb_time service = 1048 * 80;
	const double rho = 0.5;
	double at = 0, waited = 0;
	struct vb_random random;
	vb_random_seed(&random, seed);
	make_star(&network, SENDERS + 1, 100 * GBPS, VB_US, &ideal);
	for (uint32_t i = 0; i < PACKETS; i++) {
		double u = ((double)(vb_random_u64(&random) >> 11) + 1) / 9007199254740993.0;
		at += -log(u) * (double)service / rho;
		add_flow(&flows, vb_random_below(&random, SENDERS), SENDERS, 1000, (vb_time)at);
	}
	struct fabric_config config = config_hpcc(&network, &flows);
	config.endpoint = FABRIC_IDEAL; /* what each flow is by itself does not matter */
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	/* Without a queue: two links there, two back. A sender's own packets that meet are too few to matter. */
	vb_time alone = 2 * service + 2 * 60 * 80 + 4 * VB_US;
	for (uint32_t i = 0; i < PACKETS; i++)
		waited += (double)(result.flows[i].fct - alone) / (double)service;
	teardown(NULL);
	return waited / PACKETS;
}

static void poisson__queues_as_m_d_1(void **state)
{
	double sum = 0;
	for (uint64_t seed = 1; seed <= 10; seed++)
		sum += mean_wait(seed);
	expect_within_1_percent(sum / 10, 0.5, "service times that a packet waits");
}

/* ---- Max-min fair shares ----------------------------------------------------------------------------------------- */

enum { SWITCHES = 5, FLOWS = FABRIC_CLASSES };

struct sharing {
	uint64_t rates[SWITCHES]; /* from switch i to i + 1 */
	uint32_t from[FLOWS], to[FLOWS], weights[FLOWS];
};

static bool goes_over(const struct sharing *sharing, uint32_t flow, uint32_t link)
{
	return sharing->from[flow] <= link && link < sharing->to[flow];
}

/* By weight, level by level: what is left of the link that gives least is shared out, and whoever goes over it has
 * his. */
static void fill_with_water(const struct sharing *sharing, double shares[FLOWS])
{
	double left[SWITCHES];
	bool has_his[FLOWS] = { false };
	for (uint32_t i = 0; i + 1 < SWITCHES; i++)
		left[i] = (double)sharing->rates[i];
	for (;;) {
		double least = INFINITY;
		uint32_t tightest = 0;
		for (uint32_t i = 0; i + 1 < SWITCHES; i++) {
			uint32_t weight = 0;
			for (uint32_t k = 0; k < FLOWS; k++)
				weight += has_his[k] || !goes_over(sharing, k, i) ? 0 : sharing->weights[k];
			if (weight && left[i] / weight < least) {
				least = left[i] / weight;
				tightest = i;
			}
		}
		if (least == INFINITY)
			return;
		for (uint32_t k = 0; k < FLOWS; k++) {
			if (has_his[k] || !goes_over(sharing, k, tightest))
				continue;
			has_his[k] = true;
			shares[k] = least * sharing->weights[k];
			for (uint32_t i = 0; i + 1 < SWITCHES; i++)
				left[i] -= goes_over(sharing, k, i) ? shares[k] : 0;
		}
	}
}

/* Switches in a row, a flow in each class, from an endpoint of its own to one further on. What goes back, acks, pauses
 * and credits, meets none of them. */
static void draw_sharing(struct sharing *sharing, const struct switch_profile *like, uint64_t seed)
{
	struct switch_profile profile = *like;
	struct vb_random random;
	char why[100];
	vb_random_seed(&random, seed);
	for (uint32_t i = 0; i < FLOWS; i++) {
		sharing->from[i] = vb_random_below(&random, SWITCHES - 1);
		sharing->to[i] = sharing->from[i] + 1 + vb_random_below(&random, SWITCHES - 1 - sharing->from[i]);
		sharing->weights[i] = 1 + vb_random_below(&random, 3);
		profile.classes[i].weight = (uint8_t)sharing->weights[i];
	}
	network_add_profile(&network, &profile);
	network_add_nic(&network, &(struct nic_profile){ .name = "ideal" });
	for (uint32_t i = 0; i < 2 * FLOWS; i++)
		network_add_endpoint(&network, i, 0);
	for (uint32_t i = 0; i < SWITCHES; i++)
		network_add_switch(&network, 0, 0, NETWORK_NONE);
	for (uint32_t i = 0; i < FLOWS; i++) {
		network_connect(&network, 2 * i, network_switch_node(sharing->from[i]), 400 * GBPS, 100 * VB_NS);
		network_connect(&network, 2 * i + 1, network_switch_node(sharing->to[i]), 400 * GBPS, 100 * VB_NS);
		add_flow(&flows, 2 * i, 2 * i + 1, 1 << 30, 0);
		flows.flows[i].traffic_class = (uint8_t)i;
	}
	for (uint32_t i = 0; i + 1 < SWITCHES; i++) {
		sharing->rates[i] = (20 + vb_random_below(&random, 80)) * GBPS;
		network_connect(
			&network, network_switch_node(i), network_switch_node(i + 1), sharing->rates[i], 100 * VB_NS);
	}
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
}

static const vb_time settled = VB_MS / 2, until = 2 * VB_MS; /* buffers are full of who has to wait, and the end */

static void weigh(void *user, const struct fabric_capture *seen)
{
	uint64_t *bytes = user;
	if (seen->at >= settled)
		bytes[seen->link / 4] += seen->wire_bytes;
}

/* Where each flow has a queue of its own everywhere, and who is stopped is stopped alone, weighted turns give each flow
 * what max-min fairness does, with credits and with pauses. */
static void turns__are_fair_from_end_to_end(void **state)
{
	struct switch_profile profile = ideal;
	profile.class_count = FABRIC_CLASSES;
	profile.credit_bytes = 32 << 10;
	profile.resume_offset = 8 << 10;
	for (uint32_t i = 0; i < FABRIC_CLASSES; i++)
		profile.classes[i] = (struct class_profile){ .is_lossless = true, .limit_bytes = 32 << 10 };
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct sharing sharing;
		double shares[FLOWS];
		uint64_t bytes[FLOWS] = { 0 };
		uint32_t last_links[FLOWS];
		profile.flow_control = seed % 2 ? FLOW_CREDITS : FLOW_PFC;
		draw_sharing(&sharing, &profile, (seed + 1) / 2);
		fill_with_water(&sharing, shares);
		struct fabric_config config = config_hpcc(&network, &flows);
		config.ack_every = 1 << 30;
		config.limit = until;
		for (uint32_t i = 0; i < FLOWS; i++)
			last_links[i] = 4 * i + 3;
		config.captured_links = last_links;
		config.captured_count = FLOWS;
		config.on_packet = weigh;
		config.user = bytes;
		run(&config, &result);
		assert_int_equal(result.end, FABRIC_LIMIT);
		assert_int_equal(result.drops, 0);
		for (uint32_t i = 0; i < FLOWS; i++) {
			double has = (double)bytes[i] * 8 / ((double)(until - settled) / VB_S);
			if (fabs(has / shares[i] - 1) > 0.01)
				fail_msg("seed %u, flow %u has %.3f Gb/s of %.3f", (unsigned)seed, i, has / 1e9,
					shares[i] / 1e9);
		}
		teardown(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(uncontended__transfer_takes_what_arithmetic_says, teardown),
		cmocka_unit_test_teardown(uncontended__transfer_in_whole_ns_takes_what_ns3_says, teardown),
		cmocka_unit_test_teardown(incast__keeps_the_last_port_busy, teardown),
		cmocka_unit_test_teardown(switch__adds_a_packets_time_or_a_headers, teardown),
		cmocka_unit_test_teardown(cut_through__never_runs_dry, teardown),
		cmocka_unit_test_teardown(two_senders__share_a_port_alike, teardown),
		cmocka_unit_test_teardown(drop_tail__drops_what_has_no_room_and_all_arrives, teardown),
		cmocka_unit_test_teardown(drop_tail__has_the_room_that_was_said_at_any_rate, teardown),
		cmocka_unit_test_teardown(ecmp__throws_balls_into_bins, teardown),
		cmocka_unit_test_teardown(poisson__queues_as_m_d_1, teardown),
		cmocka_unit_test_teardown(turns__are_fair_from_end_to_end, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
