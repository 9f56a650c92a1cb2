/* What an endpoint's NIC and host add, to the picosecond. */
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
static void make_pair(const struct switch_profile *profile, const struct nic_profile *first, const struct nic_profile *second)
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
	struct switch_profile pfc = { .name = "pfc", .class_count = 1, .flow_control = FLOW_PFC, .buffer_bytes = 150000,
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
	make_pair(&ideal, &(struct nic_profile){ .host_latency = 70 * VB_NS }, &(struct nic_profile){ .host_latency = VB_MS });
	add_flow(&flows, 0, 1, 10000, 3 * VB_US);
	flow_list_add(&flows, &(struct flow){ .src = 0, .dst = 1, .bytes = 10000, .start = VB_NS, .after = 0 });
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

/* It waits until it may send, then, for the window is full, for the timeout, then until it may send again: the event for the
 * timeout is there already. */
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
	assert_in_range(result.events, 5 * 1001, 5 * 1001 + 20); /* two arrivals, the ack's two, and one to send the next */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(pcie__bounds_what_is_sent, teardown),
		cmocka_unit_test_teardown(pcie__bounds_what_is_received, teardown),
		cmocka_unit_test_teardown(pcie__faster_than_the_link_is_no_bound, teardown),
		cmocka_unit_test_teardown(nic__delays_each_packet, teardown),
		cmocka_unit_test_teardown(host__delays_each_flow, teardown),
		cmocka_unit_test_teardown(timer__is_not_in_the_calendar_once_a_packet, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
