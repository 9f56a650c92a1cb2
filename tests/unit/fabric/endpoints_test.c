/* What an endpoint's NIC and host add, to the picosecond. */
#include <errno.h>
#include "nets.h"

static struct network network;
static struct flow_list flows;
static struct fabric_result result;

static const struct switch_profile ideal = { .name = "ideal", .class_count = 1 };

enum { PACKET = 1048 * 80, ACK = 60 * 80, ROUND = 4 * 1000000 }; /* at 100 Gb/s; four links' delays */

static int teardown(void **state)
{
	network_free(&network);
	flow_list_free(&flows);
	fabric_result_free(&result);
	return 0;
}

/* Two endpoints at 100 Gb/s, each with a NIC of its own. */
static void make_pair(
	const struct switch_profile *profile, const struct nic_profile *first, const struct nic_profile *second)
{
	make_star(&network, 2, 100 * GBPS, VB_US, profile);
	network.endpoints[0].nic = network_add_nic(&network, first);
	network.endpoints[1].nic = network_add_nic(&network, second);
}

/* A packet at a time, though its rate would be two a round trip. */
static void pace(struct vb_cc *cc, vb_time now)
{
	cc->window_bytes = cc->min_window;
	cc->rate = 4 * GBPS / 8;
}

static void run_with(enum fabric_endpoint endpoint)
{
	struct fabric_config config = config_hpcc(&network, &flows);
	config.endpoint = endpoint;
	fabric_result_free(&result);
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_failed, 0);
}

/* Half as fast as the link: what leaves, and the acknowledgements that come. */
static void pcie__bounds_what_is_sent(void **state)
{
	make_pair(&ideal, &(struct nic_profile){ .pcie_bits_per_second = 50 * GBPS }, &(struct nic_profile){ 0 });
	add_flow(&flows, 0, 1, 10000, 0);
	for (enum fabric_endpoint endpoint = FABRIC_ENGINE; endpoint <= FABRIC_IDEAL; endpoint++) {
		run_with(endpoint);
		assert_int_equal(result.flows[0].fct, 10 * 2 * PACKET + PACKET + ACK + 2 * ACK + ROUND);
		assert_int_equal(result.links[network.endpoints[1].link ^ 1].most_queued, 0);
	}
}

/* What does not go through in time waits in the switch, which may have to pause the sender. */
static void pcie__bounds_what_is_received(void **state)
{
	struct switch_profile pfc = { .name = "pfc",
		.class_count = 1,
		.flow_control = FLOW_PFC,
		.buffer_bytes = 150000,
		.classes = { { .is_lossless = true } } };
	for (unsigned is_paused = 0; is_paused < 2; is_paused++) {
		make_pair(is_paused ? &pfc : &ideal, &(struct nic_profile){ 0 },
			&(struct nic_profile){ .pcie_bits_per_second = 50 * GBPS });
		add_flow(&flows, 0, 1, 300000, 0);
		run_with(FABRIC_ENGINE);
		assert_int_equal(result.flows[0].fct, PACKET + 300 * 2 * PACKET + 2 * ACK + ACK + ROUND);
		assert_true(result.links[network.endpoints[1].link ^ 1].most_queued > 20000);
		assert_int_equal(result.pauses > 0, is_paused);
		assert_int_equal(result.drops, 0);
		teardown(NULL);
	}
}

static void pcie__faster_than_the_link_is_no_bound(void **state)
{
	const struct nic_profile nic = { .pcie_bits_per_second = 101 * GBPS };
	make_pair(&ideal, &nic, &nic);
	add_flow(&flows, 0, 1, 10000, 0);
	run_with(FABRIC_ENGINE);
	assert_int_equal(result.flows[0].fct, 11 * PACKET + 2 * ACK + ROUND);
	assert_int_equal(network_rate(&network, 0), 100 * GBPS);
}

/* Each once where it belongs: a packet's way has one NIC that sends and one that receives, and so has its answer's. */
static void nic__delays_each_packet(void **state)
{
	make_pair(&ideal, &(struct nic_profile){ .send_latency = 1, .receive_latency = 10, .pcie_latency = 100 },
		&(struct nic_profile){ .send_latency = 1000, .receive_latency = 10000, .pcie_latency = 100000 });
	add_flow(&flows, 0, 1, 10000, 0);
	run_with(FABRIC_ENGINE);
	assert_int_equal(result.flows[0].fct, 11 * PACKET + 2 * ACK + ROUND + 111 + 111000 + 100 + 100000);
}

/* Before the first packet and behind the last answer, and again for the flow that begins then. */
static void host__delays_each_flow(void **state)
{
	make_pair(&ideal, &(struct nic_profile){ .host_latency = 70 * VB_NS },
		&(struct nic_profile){ .host_latency = VB_MS });
	add_flow(&flows, 0, 1, 10000, 3 * VB_US);
	flow_list_add(&flows, &(struct flow){ .src = 0, .dst = 1, .bytes = 10000, .start = VB_NS });
	flow_list_add_wait(&flows, flows.count - 1, 0, FLOW_ENDED);
	const vb_time takes = 70 * VB_NS + 11 * PACKET + 2 * ACK + ROUND + 70 * VB_NS;
	for (enum fabric_endpoint endpoint = FABRIC_ENGINE; endpoint <= FABRIC_IDEAL; endpoint++) {
		run_with(endpoint);
		assert_int_equal(result.flows[0].start, 3 * VB_US);
		assert_int_equal(result.flows[0].fct, takes);
		assert_int_equal(result.flows[1].start, 3 * VB_US + takes + VB_NS);
		assert_int_equal(result.flows[1].fct, takes);
		assert_int_equal(result.last_flow, result.flows[1].start + takes);
	}
}

/* It waits until it may send, then, for the window is full, for the timeout, then until it may send again: the event
 * for the timeout is there already. */
static void timer__is_not_in_the_calendar_once_a_packet(void **state)
{
	static const struct vb_cc_algorithm slow = { .name = "slow", .init = pace };
	make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 1, 1000000, 0);
	add_flow(&flows, 0, 1, 1000, 200 * VB_MS); /* timeouts of the first have come up by then */
	struct fabric_config config = config_hpcc(&network, &flows);
	config.cc.algorithm = &slow;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_in_range(result.flows[0].fct, 4 * VB_MS, 5 * VB_MS);
	assert_in_range(
		result.events, 5 * 1001, 5 * 1001 + 20); /* two arrivals, the ack's two, and one to send the next */
}

/* 52 packets are a first window of 64 KiB, where each counts 256 bytes more, and leave as one train, whose last asks.
 * The 53rd waits for its ack, and its own is held back for a while. */
static void sockets__send_trains_and_are_asked_for_acks_seldom(void **state)
{
	const vb_time a_train = 53 * PACKET + 2 * ACK + ROUND, another = 2 * PACKET + 20 * VB_US + 2 * ACK + ROUND;
	make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
	for (unsigned packets = 52; packets <= 53; packets++) {
		add_flow(&flows, 0, 1, packets * 1000, 0);
		struct fabric_config config = config_hpcc(&network, &flows);
		config.receive_buffer = 1 << 23;
		config.cc.algorithm = &vb_cc_window;
		fabric_result_free(&result);
		run(&config, &result);
		assert_int_equal(result.flows[0].fct, packets == 52 ? a_train : a_train + another);
		assert_int_equal(result.acks, packets - 51);
		flow_list_free(&flows);
	}
}

/* All flows to an address together use half of its buffer: here ten packets, and so a round trip for each ten. */
static void sockets__bound_what_is_under_way_by_the_receive_buffer(void **state)
{
	make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
	for (unsigned i = 0; i < 4; i++)
		add_flow(&flows, 0, 1, 40000, 0);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.cc.algorithm = &vb_cc_window;
	config.receive_buffer = 1 << 20;
	run(&config, &result);
	assert_in_range(result.last_flow, 160 * PACKET, 160 * PACKET + 10 * ROUND);
	fabric_result_free(&result);
	config.receive_buffer = 2 * 10 * 1256;
	run(&config, &result);
	assert_in_range(result.last_flow, 160 * PACKET + 15 * ROUND, 160 * PACKET + 25 * ROUND);
}

/* As live: only a congestion control that is chosen makes packets that may be marked. */
static void sockets__take_marks_where_they_are_listened_to(void **state)
{
	const struct vb_cc_algorithm *const algorithms[] = { &vb_cc_window, &vb_cc_dcqcn };
	make_star(&network, 3, 100 * GBPS, VB_US,
		&(struct switch_profile){ .name = "marks",
			.class_count = 1,
			.classes = { { .mark_min = 1000, .mark_max = 2000, .mark_ppm = 1000000 } } });
	add_flow(&flows, 0, 2, 100000, 0);
	add_flow(&flows, 1, 2, 100000, 0);
	for (unsigned i = 0; i < 2; i++) {
		struct fabric_config config = config_hpcc(&network, &flows);
		config.cc.algorithm = algorithms[i];
		config.receive_buffer = 1 << 23;
		fabric_result_free(&result);
		run(&config, &result);
		assert_int_equal(result.marked_packets > 0, i);
	}
}

static void sockets__are_of_engines_alone(void **state)
{
	char why[200] = "";
	make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 1, 1000, 0);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.receive_buffer = 1 << 23;
	config.endpoint = FABRIC_IDEAL;
	assert_int_equal(fabric_run(&config, &result, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "sockets"));
}

/* Each end wakes up once, 10 us after what wakes it on average and never before half of that, and takes what has come:
 * ten packets get one ack, though each asks. */
static void process__sleeps_until_something_comes(void **state)
{
	const struct nic_profile nic = { .wake_latency = 10 * VB_US };
	const vb_time awake = 11 * PACKET + 2 * ACK + ROUND;
	vb_time least = INT64_MAX, sum = 0;
	enum { RUNS = 400 };
	make_pair(&ideal, &nic, &nic);
	add_flow(&flows, 0, 1, 10000, 0);
	for (unsigned seed = 0; seed < RUNS; seed++) {
		struct fabric_config config = config_hpcc(&network, &flows);
		config.seed = seed;
		fabric_result_free(&result);
		run(&config, &result);
		assert_int_equal(result.acks, 1);
		const vb_time slept = result.flows[0].fct - awake;
		least = slept < least ? slept : least;
		sum += slept;
	}
	assert_in_range(least, 9 * VB_US, 13 * VB_US); /* the first packet, not the last, wakes the receiver */
	assert_in_range(sum / RUNS, 17 * VB_US, 21 * VB_US);
}

/* Two come each time that one leaves: the k-th pair finds k packets, and one more each other. Behind a port of
 * classes, too. */
static void queue__is_told_on_average(void **state)
{
	struct switch_profile profile = ideal;
	for (profile.class_count = 1; profile.class_count <= 2; profile.class_count++) {
		make_star(&network, 3, 100 * GBPS, VB_US, &profile);
		add_flow(&flows, 0, 2, 10000, 0);
		add_flow(&flows, 1, 2, 10000, 0);
		struct fabric_config config = config_hpcc(&network, &flows);
		run(&config, &result);
		assert_true(result.links[5].queued_area == 0);
		fabric_result_free(&result);
		config.tells_queues = true;
		run(&config, &result);
		assert_true(result.links[5].queued_area == (100 + 10) * 1048.0 * PACKET);
		teardown(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(pcie__bounds_what_is_sent, teardown),
		cmocka_unit_test_teardown(pcie__bounds_what_is_received, teardown),
		cmocka_unit_test_teardown(pcie__faster_than_the_link_is_no_bound, teardown),
		cmocka_unit_test_teardown(nic__delays_each_packet, teardown),
		cmocka_unit_test_teardown(host__delays_each_flow, teardown),
		cmocka_unit_test_teardown(sockets__send_trains_and_are_asked_for_acks_seldom, teardown),
		cmocka_unit_test_teardown(sockets__bound_what_is_under_way_by_the_receive_buffer, teardown),
		cmocka_unit_test_teardown(sockets__take_marks_where_they_are_listened_to, teardown),
		cmocka_unit_test_teardown(sockets__are_of_engines_alone, teardown),
		cmocka_unit_test_teardown(process__sleeps_until_something_comes, teardown),
		cmocka_unit_test_teardown(queue__is_told_on_average, teardown),
		cmocka_unit_test_teardown(timer__is_not_in_the_calendar_once_a_packet, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
