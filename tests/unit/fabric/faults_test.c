/* Links that double, delay and mark, each on its own; run_test.c has losses and outages, and that threads change
 * nothing. */
#include <errno.h>
#include "net/topologies.h"
#include "nets.h"

enum { PACKETS = 200 };

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

/* Two endpoints and a switch; what the first sends has the fault, what it gets has none. Its link is 0, the last 3. */
static struct fabric_config begin(const struct network_fault *fault)
{
	make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
	network_set_fault(&network, 0, fault);
	network.links[1].fault = NETWORK_NONE;
	return config_hpcc(&network, &flows);
}

/* Between pod 4 and a core switch, from the beginning. Other pods have three more ways to their core switches, and 15
 * to pod 4. */
static void run_with_core_link_down(enum routing routing, vb_time convergence, uint32_t threads)
{
	struct switch_profile profile = ideal;
	profile.routing = routing;
	teardown(NULL);
	make_tree_320(&network, &profile);
	const uint32_t link = 640 + 160 + 2 * 64;
	assert_int_equal(network.links[link].from, network_switch_node(36));
	assert_int_equal(network.links[link].to, network_switch_node(40));
	network_set_fault(&network, link,
		&(struct network_fault){ .up_at = 1000 * VB_S, .detection = VB_US, .convergence = convergence });
	for (uint32_t i = 0; i < 64; i++)
		add_flow(&flows, i, 256 + i, 50000, 2 * VB_US);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.threads = threads;
	config.probe_after = 20 * VB_US;
	config.ack_timeout = 100 * VB_US;
	config.retry_count = 3;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
}

static void ways_that_end_at_a_link_that_is_down__are_not_chosen(void **state)
{
	run_with_core_link_down(ROUTING_ECMP, 1000 * VB_S, 1);
	assert_true(result.flows_failed > 0);
	for (unsigned routing = ROUTING_ECMP; routing <= ROUTING_ADAPTIVE; routing++) {
		run_with_core_link_down((enum routing)routing, 0, 1);
		assert_int_equal(result.flows_failed, 0);
		assert_int_equal(result.lost, 0);
	}
	run_with_core_link_down(ROUTING_ECMP, 40 * VB_US, 1);
	assert_int_equal(result.flows_failed, 0);
	assert_true(result.lost > 0);
	const uint64_t hash = result.hash;
	run_with_core_link_down(ROUTING_ECMP, 40 * VB_US, 4);
	assert_int_equal(result.hash, hash);
}

/* Through a torus there are 17 million ways to it, by 300 switches. */
static void endpoint_that_is_cut_off__is_not_sought_by_every_way(void **state)
{
	struct topology topology = { .kind = "torus",
		.host_bits_per_second = 100 * GBPS,
		.fabric_bits_per_second = 100 * GBPS,
		.dimensions = { 12, 12, 12 },
		.profile = ideal };
	const uint32_t target = 6 * (144 + 12 + 1);
	char why[100];
	assert_int_equal(topology_build(&topology, &network, why, sizeof(why)), 0);
	network_set_fault(&network, 2 * target, &(struct network_fault){ .up_at = 1000 * VB_S, .detection = 1 });
	add_flow(&flows, 0, target, 4000, VB_US);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.ack_timeout = 20 * VB_US;
	config.probe_after = 20 * VB_US;
	config.retry_count = 1;
	run(&config, &result);
	assert_int_equal(result.flows_failed, 1);
	assert_true(result.lost > 0);
}

/* Between leaf 0 and spine 0, or the link of endpoint 0, from 50 us on. There is a second spine. */
static void run_with_link_down_for_good(enum fabric_endpoint endpoint, bool is_only_way)
{
	struct topology topology = { .kind = "leaf-spine",
		.host_bits_per_second = 100 * GBPS,
		.endpoints = 8,
		.leaves = 2,
		.spines = 2,
		.profile = ideal };
	char why[100];
	teardown(NULL);
	assert_int_equal(topology_build(&topology, &network, why, sizeof(why)), 0);
	const uint32_t uplink = network.ports[network.switches[0].first_port + 4];
	assert_true(network_is_switch(network.links[uplink].to));
	network_set_fault(&network, is_only_way ? network.endpoints[0].link : uplink,
		&(struct network_fault){ .down_at = 50 * VB_US });
	for (uint32_t i = 0; i < 4; i++) {
		add_flow(&flows, i, 4 + i, 4000000, 0);
		add_flow(&flows, 4 + i, i, 4000000, 0);
	}
	struct fabric_config config = config_hpcc(&network, &flows);
	config.endpoint = endpoint;
	config.ack_timeout = VB_S; /* all retries take longer than nobody may stand still by itself */
	config.tcp.rto_min = VB_MS;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_done, 8);
	assert_true(result.lost > 0);
}

static void link_that_stays_down__is_gone_round_or_fails_its_flows(void **state)
{
	for (unsigned endpoint = FABRIC_ENGINE; endpoint <= FABRIC_TCP; endpoint++) {
		run_with_link_down_for_good((enum fabric_endpoint)endpoint, false);
		assert_int_equal(result.flows_failed, 0);
		run_with_link_down_for_good((enum fabric_endpoint)endpoint, true);
		assert_int_equal(result.flows_failed, 2);
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(result.flows[i].cause, VB_CAUSE_RETRY_EXCEEDED);
	}
}

static void link__loses_each_so_many_th(void **state)
{
	struct fabric_config config = begin(&(struct network_fault){ .loss_every = 7 });
	add_flow(&flows, 0, 1, PACKETS * 1000, 0);
	config.probe_after = 20 * VB_US;
	run(&config, &result);
	assert_int_equal(result.flows_done - result.flows_failed, 1);
	assert_int_equal(result.lost, result.links[0].packets / 7);
}

static void link__doubles_packets(void **state)
{
	struct fabric_config config = begin(&(struct network_fault){ .duplicate_ppm = 1000000 });
	add_flow(&flows, 0, 1, PACKETS * 1000, 0);
	run(&config, &result);
	assert_int_equal(result.flows_done - result.flows_failed, 1);
	assert_int_equal(result.links[0].packets, PACKETS);
	assert_int_equal(result.links[3].packets, 2 * PACKETS);
	assert_int_equal(result.resent_packets, 0);
}

static void link_with_credits__doubles_nothing(void **state)
{
	struct switch_profile credits = {
		.name = "credits", .class_count = 1, .flow_control = FLOW_CREDITS, .credit_bytes = 64 << 10
	};
	char why[100];
	make_star(&network, 2, 100 * GBPS, VB_US, &credits);
	network_set_fault(&network, 0, &(struct network_fault){ .duplicate_ppm = 1 });
	add_flow(&flows, 0, 1, 1000, 0);
	struct fabric_config config = config_hpcc(&network, &flows);
	assert_int_equal(fabric_run(&config, &result, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "link 0: doubles packets, of which only one has credits");
}

static vb_time fct_of(const struct network_fault *fault, uint64_t seed)
{
	struct fabric_config config = begin(fault);
	config.seed = seed;
	add_flow(&flows, 0, 1, 1000, 0);
	run(&config, &result);
	vb_time fct = result.flows[0].fct;
	teardown(NULL);
	return fct;
}

/* Uniform: the mean of 400 is within 3% of the span but by one chance in millions. */
static void link__delays_by_up_to_its_jitter(void **state)
{
	vb_time least = fct_of(&(struct network_fault){ 0 }, 1), sum = 0;
	for (uint64_t seed = 1; seed <= 400; seed++) {
		vb_time later = fct_of(&(struct network_fault){ .jitter = VB_US }, seed) - least;
		assert_in_range(later, 0, VB_US);
		sum += later;
	}
	assert_in_range(sum / 400, VB_US * 42 / 100, VB_US * 58 / 100);
}

static void link__delays_some_beyond_their_jitter(void **state)
{
	vb_time least = fct_of(&(struct network_fault){ 0 }, 1);
	unsigned late = 0;
	for (uint64_t seed = 1; seed <= 400; seed++) {
		vb_time later = fct_of(&(struct network_fault){ .late_ppm = 250000, .late_by = VB_MS }, seed) - least;
		assert_in_range(later, 0, VB_MS);
		late += later > 0;
	}
	assert_in_range(late, 60, 140);
}

/* A packet takes 84 ns: a jitter of 400 lets several pass, which go-back-N takes for losses. */
static void packets__overtake_each_other(void **state)
{
	struct fabric_config config = begin(&(struct network_fault){ .jitter = 400 * VB_NS });
	add_flow(&flows, 0, 1, PACKETS * 1000, 0);
	run(&config, &result);
	assert_int_equal(result.flows_done - result.flows_failed, 1);
	assert_int_equal(result.lost, 0);
	assert_true(result.naks > 0 && result.resent_packets > 0);
}

static void link__marks_what_takes_marks(void **state)
{
	struct fabric_config config = begin(&(struct network_fault){ .mark_ppm = 1000000 });
	add_flow(&flows, 0, 1, PACKETS * 1000, 0);
	add_flow(&flows, 1, 0, PACKETS * 1000, 0);
	run(&config, &result);
	assert_int_equal(result.links[0].marks, PACKETS); /* of its acks none */
	assert_int_equal(result.marked_packets, PACKETS);
	assert_true(result.links[0].packets > PACKETS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(ways_that_end_at_a_link_that_is_down__are_not_chosen, teardown),
		cmocka_unit_test_teardown(endpoint_that_is_cut_off__is_not_sought_by_every_way, teardown),
		cmocka_unit_test_teardown(link_that_stays_down__is_gone_round_or_fails_its_flows, teardown),
		cmocka_unit_test_teardown(link__loses_each_so_many_th, teardown),
		cmocka_unit_test_teardown(link__doubles_packets, teardown),
		cmocka_unit_test_teardown(link_with_credits__doubles_nothing, teardown),
		cmocka_unit_test_teardown(link__delays_by_up_to_its_jitter, teardown),
		cmocka_unit_test_teardown(link__delays_some_beyond_their_jitter, teardown),
		cmocka_unit_test_teardown(packets__overtake_each_other, teardown),
		cmocka_unit_test_teardown(link__marks_what_takes_marks, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
