/* What a way takes there and back is what a packet takes that meets nobody, to the picosecond; congestion controls
 * that are told so use the line whatever its length. */
#include "cc/choice.h"
#include "fabric/round_trips.h"
#include "nets.h"

static struct network network;
static struct flow_list flows;
static struct fabric_result result;
static struct vb_cc_choice choice;

static const struct switch_profile ideal = { .name = "ideal", .class_count = 1 };

static int teardown(void **state)
{
	network_free(&network);
	flow_list_free(&flows);
	fabric_result_free(&result);
	return 0;
}

static void choose(struct fabric_config *config, const char *text)
{
	char why[300];
	if (vb_cc_choose(text, &choice, why, sizeof(why)))
		fail_msg("%s", why);
	config->cc.algorithm = choice.algorithm;
	config->cc.parameters = choice.values;
}

static vb_time trip_of(const struct fabric_config *config, uint32_t flow)
{
	struct routes *routes = routes_make(&network);
	const vb_time time = round_trip_time(config, routes, flows.flows[flow].src, flows.flows[flow].dst);
	routes_free(routes);
	return time;
}

static void round_trip__is_what_a_packet_takes_alone(void **state)
{
	for (unsigned cut = 0; cut < 2; cut++)
		for (unsigned whole = 0; whole < 2; whole++) {
			struct switch_profile profile = ideal;
			profile.is_cut_through = cut;
			profile.latency = 300 * VB_NS;
			make_tree_320(&network, &profile);
			network.is_whole_ns = whole;
			network.nics[0].send_latency = 100 * VB_NS;
			network.nics[0].pcie_latency = 70 * VB_NS;
			static const uint32_t to[] = { 1, 20, 319 };
			for (uint32_t i = 0; i < 3; i++)
				add_flow(&flows, 0, to[i], 1000, i * VB_MS);
			struct fabric_config config = config_hpcc(&network, &flows);
			run(&config, &result);
			for (uint32_t i = 0; i < 3; i++)
				assert_int_equal(result.flows[i].fct, trip_of(&config, i));
			teardown(NULL);
		}
}

/* Of each sixteenth packet: the first of them waits for fifteen more. */
static void round_trip__is_longer_where_several_packets_have_one_ack(void **state)
{
	make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 1, 16000, 0);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.ack_every = 16;
	run(&config, &result);
	assert_int_equal(result.flows[0].fct, trip_of(&config, 0));
}

/* 100 MB over the tree, and beside it over one switch: of what the line would take. */
static void control_that_knows_its_ways__uses_the_line(void **state)
{
	static const struct {
		const char *cc;
		double most;
	} controls[] = { { "hpcc, rtt=path", 1.06 }, { "dctcp, rtt=path", 1.01 }, { "swift, base-target=path", 1.03 },
		{ "swift, base-target=path, fs-range=0", 1.03 } };
	for (unsigned i = 0; i < sizeof(controls) / sizeof(controls[0]); i++) {
		make_tree_320(&network, &ideal);
		for (uint32_t link = 640; link < network.link_count; link++)
			network.links[link].delay = 5 * VB_US;
		add_flow(&flows, 0, 319, 100000000, 0);
		add_flow(&flows, 1, 2, 100000000, 0);
		struct fabric_config config = config_hpcc(&network, &flows);
		config.mtu = 4000;
		config.cc.first_window = 1000000; /* Swift grows by a packet a round trip */
		choose(&config, controls[i].cc);
		run(&config, &result);
		for (unsigned flow = 0; flow < 2; flow++) {
			const double due = 25000 * 4048 * 80.0;
			if ((double)result.flows[flow].fct > due * controls[i].most)
				fail_msg("%s: flow %u took %.3f of what the line takes", controls[i].cc, flow,
					(double)result.flows[flow].fct / due);
		}
		teardown(NULL);
	}
}

/* Its own round trip is 4.3 us. Two others cut it at first; after that the line is its own. */
static void dctcp__uses_the_line_again_whatever_its_rtt(void **state)
{
	static const char *const controls[] = { "dctcp, rtt=5us", "dctcp", "dctcp, rtt=50us", "dctcp, rtt=100us",
		"dctcp, rtt=path" };
	struct switch_profile marks = ideal;
	marks.classes[0] = (struct class_profile){ .mark_min = 100000, .mark_max = 100000, .mark_ppm = 1000000 };
	for (unsigned i = 0; i < sizeof(controls) / sizeof(controls[0]); i++) {
		make_star(&network, 4, 100 * GBPS, VB_US, &marks);
		add_flow(&flows, 0, 3, 200000000, 0);
		add_flow(&flows, 1, 3, 200000, VB_MS);
		add_flow(&flows, 2, 3, 200000, VB_MS);
		struct fabric_config config = config_hpcc(&network, &flows);
		config.mtu = 4000;
		config.acks_tell_marks = true;
		choose(&config, controls[i]);
		run(&config, &result);
		assert_true(result.marked_packets > 0);
		const double due = 50100 * 4048 * 80.0;
		if ((double)result.flows[0].fct > 1.1 * due)
			fail_msg("%s: it took %.3f of what the line takes", controls[i],
				(double)result.flows[0].fct / due);
		teardown(NULL);
	}
}

static void threads__change_nothing_of_ways_that_are_known(void **state)
{
	uint64_t hashes[2];
	for (unsigned i = 0; i < 2; i++) {
		make_tree_320(&network, &ideal);
		for (uint32_t from = 0; from < 320; from++)
			add_flow(&flows, from, (from + 100) % 320 / 8 * 8 + from % 2 + 1, 50000, 0);
		for (uint32_t flow = 0; flow < flows.count; flow++)
			flows.flows[flow].dst += flows.flows[flow].dst == flows.flows[flow].src;
		struct fabric_config config = config_hpcc(&network, &flows);
		config.threads = i ? 3 : 1;
		choose(&config, "hpcc, rtt=path");
		run(&config, &result);
		hashes[i] = result.hash;
		teardown(NULL);
	}
	assert_int_equal(hashes[0], hashes[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(round_trip__is_what_a_packet_takes_alone, teardown),
		cmocka_unit_test_teardown(round_trip__is_longer_where_several_packets_have_one_ack, teardown),
		cmocka_unit_test_teardown(control_that_knows_its_ways__uses_the_line, teardown),
		cmocka_unit_test_teardown(dctcp__uses_the_line_again_whatever_its_rtt, teardown),
		cmocka_unit_test_teardown(threads__change_nothing_of_ways_that_are_known, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
