/* Flows that wait for others, of any endpoint, by end and by arrival: when each begins, with every kind of endpoint and
 * any number of threads. */
#include "nets.h"

static struct network network;
static struct flow_list flows;
static struct fabric_result result;

static const struct switch_profile ideal = { .name = "ideal", .class_count = 1 };

static int teardown(void **state)
{
	fabric_result_free(&result);
	flow_list_free(&flows);
	network_free(&network);
	return 0;
}

static void wait_for(uint32_t flow, uint32_t before, enum flow_event event)
{
	assert_int_equal(flow_list_add_wait(&flows, flow, before, event), 0);
}

static vb_time end_of(uint32_t flow)
{
	return result.flows[flow].start + result.flows[flow].fct;
}

static struct fabric_config config_of(enum fabric_endpoint endpoint)
{
	struct fabric_config config = config_hpcc(&network, &flows);
	config.endpoint = endpoint;
	return config;
}

/* An arrival is heard of where it is, before its sender hears of it: by the time of the ack's way back. */
static void is_just_before_the_end(vb_time at, uint32_t flow)
{
	assert_true(at < end_of(flow));
	assert_true(at > end_of(flow) - 5 * VB_US);
}

static void chain_by_end(enum fabric_endpoint endpoint)
{
	make_star(&network, 3, 100 * GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 1, 5000, 3 * VB_US);
	add_flow(&flows, 0, 2, 50000, 10 * VB_US);
	add_flow(&flows, 0, 1, 1000, 0);
	wait_for(1, 0, FLOW_ENDED);
	wait_for(2, 1, FLOW_ENDED);
	const struct fabric_config config = config_of(endpoint);
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows[0].start, 3 * VB_US);
	assert_int_equal(result.flows[1].start, end_of(0) + 10 * VB_US);
	assert_int_equal(result.flows[2].start, end_of(1));
	teardown(NULL);
}

/* A message goes round a ring, each hop of it when the last has arrived. */
static void chain_by_arrival(enum fabric_endpoint endpoint)
{
	make_star(&network, 4, 100 * GBPS, VB_US, &ideal);
	for (uint32_t i = 0; i < 8; i++) {
		add_flow(&flows, i % 4, (i + 1) % 4, 10000, i ? 0 : VB_US);
		if (i > 0)
			wait_for(i, i - 1, FLOW_ARRIVED);
	}
	const struct fabric_config config = config_of(endpoint);
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	for (uint32_t i = 1; i < 8; i++)
		is_just_before_the_end(result.flows[i].start, i - 1);
	teardown(NULL);
}

/* Three senders to one: that answers when all three are there, so after the last. */
static void fan_in(enum fabric_endpoint endpoint)
{
	make_star(&network, 5, 100 * GBPS, VB_US, &ideal);
	add_flow(&flows, 3, 4, 1000, 7 * VB_US); /* the answer */
	for (uint32_t i = 0; i < 3; i++) {
		add_flow(&flows, i, 3, 20000 * (i + 1), 5 * VB_US * (3 - i));
		wait_for(0, i + 1, FLOW_ARRIVED);
	}
	const struct fabric_config config = config_of(endpoint);
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	uint32_t last = 1;
	for (uint32_t i = 2; i <= 3; i++)
		if (end_of(i) > end_of(last))
			last = i;
	is_just_before_the_end(result.flows[0].start - 7 * VB_US, last);
	teardown(NULL);
}

/* One flow waits for an end and for an arrival; another for the same end alone. */
static void mixed(enum fabric_endpoint endpoint)
{
	make_star(&network, 4, 100 * GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 1, 5000, 0);
	add_flow(&flows, 2, 0, 5000, 100 * VB_US);
	add_flow(&flows, 0, 3, 1000, 0);
	add_flow(&flows, 0, 3, 1000, 0);
	wait_for(2, 0, FLOW_ENDED);
	wait_for(2, 1, FLOW_ARRIVED);
	wait_for(3, 0, FLOW_ENDED);
	const struct fabric_config config = config_of(endpoint);
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows[3].start, end_of(0));
	is_just_before_the_end(result.flows[2].start, 1);
	teardown(NULL);
}

/* As many at a time as there were at first: each end lets the next of two begin. */
static void spare_ones(enum fabric_endpoint endpoint)
{
	make_star(&network, 6, 100 * GBPS, VB_US, &ideal);
	for (uint32_t i = 0; i < 5; i++)
		add_flow(&flows, 0, i + 1, 20000 * (1 + (i + 1) % 3), i < 3 ? VB_US : 0);
	for (uint32_t i = 3; i < 5; i++) {
		for (uint32_t k = 0; k < 3; k++)
			wait_for(i, k, FLOW_ENDED);
		flows.flows[i].spare = (uint16_t)(5 - i); /* the first of three, the second of three */
	}
	const struct fabric_config config = config_of(endpoint);
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_true(end_of(2) < end_of(0) && end_of(0) < end_of(1)); /* by their sizes */
	assert_int_equal(result.flows[3].start, end_of(2));
	assert_int_equal(result.flows[4].start, end_of(0));
	teardown(NULL);
}

static const enum fabric_endpoint endpoints[] = { FABRIC_ENGINE, FABRIC_IDEAL, FABRIC_TCP };

static void with_all(void (*test)(enum fabric_endpoint endpoint))
{
	for (unsigned i = 0; i < sizeof(endpoints) / sizeof(endpoints[0]); i++)
		test(endpoints[i]);
}

static void chain__by_end_begins_each_at_the_end_before(void **state)
{
	with_all(chain_by_end);
}

static void chain__by_arrival_goes_from_endpoint_to_endpoint(void **state)
{
	with_all(chain_by_arrival);
}

static void fan_in__begins_after_the_last_arrival(void **state)
{
	with_all(fan_in);
}

static void waits__may_be_mixed(void **state)
{
	with_all(mixed);
}

static void spare_waits__are_not_waited_for(void **state)
{
	with_all(spare_ones);
}

/* As a program that takes some time to see what its NIC has, and to post. */
static void arrival__is_heard_of_by_the_program(void **state)
{
	const vb_time latency = 3 * VB_US;
	make_star(&network, 3, 100 * GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 1, 1000, 0);
	add_flow(&flows, 1, 2, 1000, 0);
	wait_for(1, 0, FLOW_ARRIVED);
	const struct fabric_config config = config_of(FABRIC_ENGINE);
	run(&config, &result);
	const vb_time without = result.flows[1].start;
	fabric_result_free(&result);
	network.nics[0].host_latency = latency;
	run(&config, &result);
	assert_int_equal(result.flows[1].start, without + 2 * latency); /* to post the first, and to hear of it */
}

/* A flow of several work requests arrives with the last of them. */
static void arrival__is_that_of_the_last_byte(void **state)
{
	make_star(&network, 3, 4000 * GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 1, (1ull << 30) + 5000, 0);
	add_flow(&flows, 1, 2, 1000, 0);
	wait_for(1, 0, FLOW_ARRIVED);
	struct fabric_config config = config_of(FABRIC_ENGINE);
	config.mtu = 4096;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	is_just_before_the_end(result.flows[1].start, 0);
}

/* What is lost is sent again, and arrives once. */
static void arrival__is_heard_of_once_though_packets_are_lost(void **state)
{
	for (unsigned kind = 0; kind < 3; kind++) {
		make_star(&network, 8, 100 * GBPS, VB_US, &ideal);
		for (uint32_t i = 0; i < network.link_count; i++)
			network_set_fault(&network, i, &(struct network_fault){ .loss_ppm = 20000 });
		for (uint32_t i = 0; i < 64; i++) {
			add_flow(&flows, i % 8, (i + 3) % 8, 20000, 0);
			if (i >= 8)
				for (uint32_t k = 0; k < 8; k++) /* of the round before, the one that comes here */
					if ((i / 8 * 8 - 8 + k + 3) % 8 == i % 8)
						wait_for(i, i / 8 * 8 - 8 + k, FLOW_ARRIVED);
		}
		struct fabric_config config = config_of(endpoints[kind]);
		config.ack_timeout = 100 * VB_US;
		config.tcp.rto_min = 100 * VB_US;
		run(&config, &result);
		assert_int_equal(result.end, FABRIC_DONE);
		assert_int_equal(result.flows_failed, 0);
		teardown(NULL);
	}
}

static uint64_t hash_with(const struct fabric_config *config, uint32_t threads)
{
	struct fabric_config with = *config;
	with.threads = threads;
	run(&with, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.threads, threads);
	const uint64_t hash = result.hash;
	fabric_result_free(&result);
	return hash;
}

/* Each endpoint of a tree passes on what has come, over pods; and waits for its own end before. */
static void threads__change_nothing(void **state)
{
	enum { ENDS = 320, ROUNDS = 4, STEP = 37 };
	for (unsigned kind = 0; kind < 3; kind++) {
		make_tree_320(&network, &ideal);
		for (uint32_t i = 0; i < ENDS * ROUNDS; i++) {
			const uint32_t at = i % ENDS;
			add_flow(&flows, at, (at + STEP) % ENDS, 3000 + at, at % 7 * VB_NS);
			if (i < ENDS)
				continue;
			wait_for(i, i - ENDS, FLOW_ENDED);
			wait_for(i, i / ENDS * ENDS - ENDS + (at + ENDS - STEP) % ENDS, FLOW_ARRIVED);
		}
		const struct fabric_config config = config_of(endpoints[kind]);
		const uint64_t hash = hash_with(&config, 1);
		assert_int_equal(hash_with(&config, 2), hash);
		assert_int_equal(hash_with(&config, 4), hash);
		teardown(NULL);
	}
}

/* Behind sockets connections are open from the beginning, and the order holds as well. */
static void waits__hold_behind_sockets(void **state)
{
	make_star(&network, 3, 10 * GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 1, 100000, 0);
	add_flow(&flows, 1, 2, 1000, 0);
	wait_for(1, 0, FLOW_ARRIVED);
	struct fabric_config config = config_of(FABRIC_ENGINE);
	config.receive_buffer = 1 << 20;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_true(result.flows[1].start > 80 * VB_US);
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(chain__by_end_begins_each_at_the_end_before),
		TEST(chain__by_arrival_goes_from_endpoint_to_endpoint),
		TEST(fan_in__begins_after_the_last_arrival),
		TEST(waits__may_be_mixed),
		TEST(spare_waits__are_not_waited_for),
		TEST(arrival__is_heard_of_by_the_program),
		TEST(arrival__is_that_of_the_last_byte),
		TEST(arrival__is_heard_of_once_though_packets_are_lost),
		TEST(threads__change_nothing),
		TEST(waits__hold_behind_sockets),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
