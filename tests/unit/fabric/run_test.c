/* A run: the same with however many threads, and an end that says why. */
#include <errno.h>
#include <stdlib.h>
#include "net/topologies.h"
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

static uint64_t hash_with(const struct fabric_config *config, uint32_t threads)
{
	struct fabric_config threaded = *config;
	threaded.threads = threads;
	fabric_result_free(&result);
	run(&threaded, &result);
	assert_int_equal(result.threads, threads);
	return result.hash;
}

/* Everything that draws by chance: drops, marks, losses, bit errors, late and doubled packets, sprayed ones. */
static void threads__change_nothing(void **state)
{
	for (unsigned routing = ROUTING_ECMP; routing <= ROUTING_ADAPTIVE; routing++) {
		struct switch_profile profile = ideal;
		profile.port_bytes = 100000;
		profile.routing = (enum routing)routing;
		profile.classes[0] = (struct class_profile){ .mark_min = 5000, .mark_max = 50000, .mark_ppm = 100000 };
		make_tree_320(&network, &profile);
		network_set_fault(&network, 4, &(struct network_fault){ .loss_ppm = 10000 });
		network_set_fault(&network, 650, &(struct network_fault){ .bit_error_rate = 1e-7 });
		for (uint32_t link = 642; link < 960; link += 10) /* between switches of one shard, and of two */
			network_set_fault(&network, link,
				&(struct network_fault){ .duplicate_ppm = 20000,
					.mark_ppm = 1000,
					.jitter = 200 * VB_NS,
					.late_ppm = 10000,
					.late_by = 2 * VB_US });
		for (uint32_t i = 0; i < 320; i++)
			add_flow(&flows, i, (i + 160) % 320 / 5 * 5, 40000 + i, i % 3 * 500 * VB_NS);
		struct fabric_config config = config_hpcc(&network, &flows);
		config.probe_after = 50 * VB_US;
		uint64_t one = hash_with(&config, 1);
		assert_int_equal(result.end, FABRIC_DONE);
		assert_true(result.drops > 0 && result.marked_packets > 0 && result.lost > 0);
		assert_int_equal(hash_with(&config, 2), one);
		assert_int_equal(hash_with(&config, 4), one);
		config.seed++;
		assert_int_not_equal(hash_with(&config, 2), one);
		teardown(NULL);
	}
}

/* Many short runs: what waits for whom at their ends. */
static void threads__begin_and_end_together(void **state)
{
	make_tree_320(&network, &ideal);
	add_flow(&flows, 0, 319, 1000, 0);
	struct fabric_config config = config_hpcc(&network, &flows);
	for (unsigned i = 0; i < 50; i++)
		hash_with(&config, 2 + i % 4);
}

static void flow__begins_when_another_ends(void **state)
{
	make_star(&network, 3, 100 * GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 1, 5000, 3 * VB_US);
	flow_list_add(&flows, &(struct flow){ .src = 0, .dst = 2, .bytes = 1000, .start = 10 * VB_US });
	flow_list_add_wait(&flows, 1, 0, FLOW_ENDED);
	flow_list_add(&flows, &(struct flow){ .src = 0, .dst = 1, .bytes = 1000, .start = 0 });
	flow_list_add_wait(&flows, 2, 1, FLOW_ENDED);
	struct fabric_config config = config_hpcc(&network, &flows);
	run(&config, &result);
	assert_int_equal(result.flows[0].start, 3 * VB_US);
	assert_int_equal(result.flows[1].start, 3 * VB_US + result.flows[0].fct + 10 * VB_US);
	assert_int_equal(result.flows[2].start, result.flows[1].start + result.flows[1].fct);
	assert_int_equal(result.last_flow, result.flows[2].start + result.flows[2].fct);
}

static void flow__of_many_gigabytes_is_one_flow(void **state)
{
	make_star(&network, 2, 400 * GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 1, (5ull << 30) + 7, 0);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.mtu = 4096;
	config.limit = 2 * VB_MS;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_LIMIT);
	assert_int_equal(result.ended_at, 2 * VB_MS);
	assert_int_equal(result.flows[0].fct, -1);
	assert_true(result.data_packets > 20000);
}

static void link__that_is_down_ends_its_flow_with_the_reason(void **state)
{
	make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
	network_set_fault(&network, 0, &(struct network_fault){ .down_at = 10 * VB_US, .up_at = VB_S * 1000 });
	add_flow(&flows, 0, 1, 1000000, 0);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.ack_timeout = VB_MS;
	config.retry_count = 2;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_failed, 1);
	assert_int_equal(result.flows[0].error, VB_WC_RETRY_EXC_ERR);
	assert_int_equal(result.flows[0].cause, VB_CAUSE_RETRY_EXCEEDED);
	assert_true(result.lost > 0 && result.timeouts > 0);
}

/* Each piece of a flow completes, all at one moment. */
static void flow__of_many_parts_ends_once_when_it_fails(void **state)
{
	make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
	network_set_fault(&network, 0, &(struct network_fault){ .down_at = 10 * VB_US, .up_at = VB_S * 1000 });
	for (unsigned i = 0; i < 3; i++)
		add_flow(&flows, 0, 1, 40ull << 30, 0);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.ack_timeout = VB_MS;
	config.retry_count = 1;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_failed, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(result.flows[i].cause, VB_CAUSE_RETRY_EXCEEDED);
}

/* Nobody stands still while no flow is open; one that has begun and gets nowhere does. */
static void stall__is_of_flows_that_have_begun(void **state)
{
	make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
	network_set_fault(&network, 0, &(struct network_fault){ .down_at = VB_S, .up_at = VB_S * 1000 });
	for (unsigned i = 0; i < 4; i++)
		add_flow(&flows, 0, 1, 100000, i * 100 * VB_MS);
	add_flow(&flows, 0, 1, 1000, VB_S); /* which is lost */
	struct fabric_config config = config_hpcc(&network, &flows);
	config.stall = 20 * VB_MS;
	config.ack_timeout = 10 * VB_MS;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_LIVELOCK);
	assert_int_equal(result.flows_done, 4);
	assert_in_range(result.ended_at, VB_S + 20 * VB_MS, VB_S + 60 * VB_MS);
}

static void init_slowly(struct vb_cc *cc, vb_time now)
{
	cc->window_bytes = VB_CC_UNLIMITED;
	cc->rate = 100;
}

/* Who is slow gets on: a packet takes ten times as long as nobody may stand still. Also where one is lost. */
static void stall__is_not_of_who_is_slow(void **state)
{
	static const struct vb_cc_algorithm slow = { .name = "slow", .init = init_slowly };
	for (unsigned loses = 0; loses < 2; loses++) {
		make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
		network_set_fault(&network, 0, &(struct network_fault){ .loss_every = loses ? 2 : 0 });
		add_flow(&flows, 0, 1, 4000, 0);
		struct fabric_config config = config_hpcc(&network, &flows);
		config.cc.algorithm = &slow;
		run(&config, &result);
		assert_int_equal(result.end, FABRIC_DONE);
		assert_int_equal(result.flows_failed, 0);
		assert_true(result.flows[0].fct > 30 * VB_S && result.timeouts >= loses);
		teardown(NULL);
	}
}

static void stall__is_not_of_who_waits_for_his_timeout(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
		network_set_fault(&network, 0, &(struct network_fault){ .loss_every = 2 });
		add_flow(&flows, 0, 1, 2000, 0);
		struct fabric_config config = config_hpcc(&network, &flows);
		config.endpoint = i ? FABRIC_IDEAL : FABRIC_ENGINE;
		config.ack_timeout = 3 * VB_S;
		run(&config, &result);
		assert_int_equal(result.end, FABRIC_DONE);
		assert_in_range(result.flows[0].fct, 3 * VB_S, 10 * VB_S);
		teardown(NULL);
	}
}

/* A paced flow that loses all: only its rate is waited for, and not for ever. */
static void stall__is_of_who_is_paced_in_vain(void **state)
{
	static const struct vb_cc_algorithm slow = { .name = "slow", .init = init_slowly };
	make_star(&network, 3, 100 * GBPS, VB_US, &ideal);
	network_set_fault(&network, 0, &(struct network_fault){ .down_at = VB_US, .up_at = VB_S * 100000 });
	add_flow(&flows, 0, 1, 4000, 2 * VB_US);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.cc.algorithm = &slow;
	config.ack_timeout = 1000 * VB_S;
	config.stall = 1500 * VB_S;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_LIVELOCK);
	assert_in_range(result.ended_at, 3000 * VB_S, 5000 * VB_S);
}

static void link__that_flaps_only_delays(void **state)
{
	uint64_t lost[2];
	for (unsigned flaps = 0; flaps < 2; flaps++) {
		make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
		network_set_fault(&network, 0,
			&(struct network_fault){
				.down_at = 10 * VB_US, .up_at = 20 * VB_US, .flap_period = flaps ? 100 * VB_US : 0 });
		add_flow(&flows, 0, 1, 4000000, 0);
		struct fabric_config config = config_hpcc(&network, &flows);
		config.probe_after = 30 * VB_US;
		run(&config, &result);
		assert_int_equal(result.end, FABRIC_DONE);
		assert_int_equal(result.flows_failed, 0);
		lost[flaps] = result.lost;
		teardown(NULL);
	}
	assert_true(lost[0] > 0 && lost[1] > 3 * lost[0]); /* 4 MB take 336 us, and what is lost besides */
}

/* Three flows of one endpoint and one of another, of which all but the first packets are marked, for 190 us: CNPs that
 * leave in this time. */
static uint64_t cnps_with(struct vb_cnp_policy cnps)
{
	struct switch_profile marking = ideal;
	marking.classes[0] = (struct class_profile){ .mark_min = 2000, .mark_max = 2001, .mark_ppm = 1000000 };
	make_star(&network, 3, 100 * GBPS, VB_US, &marking);
	for (uint32_t i = 0; i < 4; i++)
		add_flow(&flows, i < 3 ? 0 : 1, 2, 10000000, 0);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.cnps = cnps;
	config.limit = 190 * VB_US;
	run(&config, &result);
	const uint64_t sent = result.cnps;
	teardown(NULL);
	return sent;
}

static void cnps__are_as_often_and_for_whom_they_are_said_to_be(void **state)
{
	static const struct {
		enum vb_cnp_scope scope;
		uint64_t clocks;
	} scopes[] = { { VB_CNP_PER_QP, 4 }, { VB_CNP_PER_DESTINATION, 2 }, { VB_CNP_PER_PORT, 1 },
		{ VB_CNP_NEVER, 0 } };
	for (size_t i = 0; i < COUNT_OF(scopes); i++) {
		assert_int_equal(cnps_with((struct vb_cnp_policy){ .scope = scopes[i].scope }),
			4 * scopes[i].clocks); /* 50 us */
		assert_int_equal(cnps_with((struct vb_cnp_policy){ .scope = scopes[i].scope, .interval = 20 * VB_US }),
			10 * scopes[i].clocks);
		assert_int_equal(cnps_with((struct vb_cnp_policy){ .scope = scopes[i].scope, .interval = VB_MS }),
			scopes[i].clocks);
	}
}

static bool stop(void *user, const struct fabric_progress *progress)
{
	unsigned *told = user;
	assert_true(progress->operations == 1 && progress->operations_done == 0 && progress->events > 0);
	++*told;
	return false;
}

static void progress__may_stop_it(void **state)
{
	unsigned told = 0;
	make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 1, 30ull << 30, 0);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.on_progress = stop;
	config.user = &told;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_STOPPED);
	assert_int_equal(told, 1);
}

static void begin_chain(struct job *job, uint32_t rank, struct job_sink *sink)
{
	sink->compute(sink, 1, 0);
}

static void go_on_with_chain(struct job *job, uint32_t rank, uint64_t tag, vb_time at, struct job_sink *sink)
{
	sink->compute(sink, at + 1, 0);
}

static bool stop_at_once(void *user, const struct fabric_progress *progress)
{
	return false;
}

/* 256 ranks compute for a picosecond, and again: 10 us of that take minutes. */
static void progress__may_stop_it_before_much_time_has_passed(void **state)
{
	static const struct job_kind kind = { .begin = begin_chain, .computed = go_on_with_chain };
	struct job job = { &kind, UINT64_MAX, 256, RAILS_AS_HOSTS }, *const jobs[] = { &job };
	make_tree_320(&network, &ideal);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.jobs = jobs;
	config.job_count = 1;
	config.on_progress = stop_at_once;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_STOPPED);
	assert_true(result.ended_at > 0 && result.ended_at < 10 * VB_US);
}

static void refuse(const char *says)
{
	char why[200] = "";
	struct fabric_config config = config_hpcc(&network, &flows);
	assert_int_equal(fabric_run(&config, &result, why, sizeof(why)), -EINVAL);
	if (!strstr(why, says))
		fail_msg("\"%s\" does not say \"%s\"", why, says);
	flow_list_free(&flows);
}

static void nonsense__is_refused_and_named(void **state)
{
	make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 2, 1, 0);
	refuse("there is no endpoint 2");
	add_flow(&flows, 1, 1, 1, 0);
	refuse("sends to itself");
	add_flow(&flows, 0, 1, 0, 0);
	refuse("no bytes");
	add_flow(&flows, 0, 1, 1, 0);
	flow_list_add_wait(&flows, 0, 7, FLOW_ENDED);
	refuse("flow 0 waits for flow 7");
	flow_list_add(&flows, &(struct flow){ .src = 0, .dst = 1, .bytes = 1, .traffic_class = 8 });
	refuse("there is no class 8");
	add_flow(&flows, 0, 1, 1ull << 50, 0);
	refuse("32 TiB");
	for (uint32_t i = 0; i < 65001; i++)
		add_flow(&flows, 0, 1, 1, 0);
	refuse("has more than 65000 flows");
	network.profiles[0].pause_quanta = 1; /* would be said again and again at one moment */
	add_flow(&flows, 0, 1, 1, 0);
	refuse("pause or watchdog time");
}

static void switches__that_stop_other_classes_than_the_next_has_are_refused(void **state)
{
	struct switch_profile profile = { .name = "one", .class_count = 1 };
	char why[200];
	network_add_nic(&network, &(struct nic_profile){ .name = "ideal" });
	for (uint32_t i = 0; i < 2; i++) {
		network_add_switch(&network, network_add_profile(&network, &profile), 0, NETWORK_NONE);
		profile = (struct switch_profile){
			.name = "three", .class_count = 3, .flow_control = FLOW_CREDITS, .credit_bytes = 10000
		};
		network_add_endpoint(&network, i, 0);
		network_connect(&network, i, network_switch_node(i), 100 * GBPS, VB_US);
	}
	network_connect(&network, network_switch_node(0), network_switch_node(1), 100 * GBPS, VB_US);
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
	add_flow(&flows, 0, 1, 1, 0);
	refuse("\"one\" of 1 classes and \"three\" of 3");
}

static void flow__to_where_no_path_leads_is_refused(void **state)
{
	const struct topology rails = {
		.kind = "rail", .machines = 2, .nics_a_machine = 2, .profile = ideal, .host_bits_per_second = 100 * GBPS
	};
	char why[200] = "";
	assert_int_equal(topology_build(&rails, &network, why, sizeof(why)), 0);
	add_flow(&flows, 0, 1, 1, 0); /* another rail */
	refuse("flow 0: no path leads from endpoint 0 to endpoint 1");
}

/* A flow that fails before it arrives lets nothing begin. */
static void nothing_left_to_happen__is_an_end(void **state)
{
	make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
	network_set_fault(&network, 0, &(struct network_fault){ .down_at = 0, .up_at = VB_S * 1000 });
	add_flow(&flows, 0, 1, 1000, 0);
	add_flow(&flows, 1, 0, 1000, 0);
	flow_list_add_wait(&flows, 1, 0, FLOW_ARRIVED);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.ack_timeout = VB_US;
	config.retry_count = 1;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_IDLE);
	assert_int_equal(result.flows_failed, 1);
	assert_int_equal(result.flows[1].fct, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(threads__change_nothing, teardown),
		cmocka_unit_test_teardown(threads__begin_and_end_together, teardown),
		cmocka_unit_test_teardown(flow__begins_when_another_ends, teardown),
		cmocka_unit_test_teardown(flow__of_many_gigabytes_is_one_flow, teardown),
		cmocka_unit_test_teardown(link__that_is_down_ends_its_flow_with_the_reason, teardown),
		cmocka_unit_test_teardown(flow__of_many_parts_ends_once_when_it_fails, teardown),
		cmocka_unit_test_teardown(stall__is_of_flows_that_have_begun, teardown),
		cmocka_unit_test_teardown(stall__is_not_of_who_is_slow, teardown),
		cmocka_unit_test_teardown(stall__is_not_of_who_waits_for_his_timeout, teardown),
		cmocka_unit_test_teardown(stall__is_of_who_is_paced_in_vain, teardown),
		cmocka_unit_test_teardown(link__that_flaps_only_delays, teardown),
		cmocka_unit_test_teardown(cnps__are_as_often_and_for_whom_they_are_said_to_be, teardown),
		cmocka_unit_test_teardown(progress__may_stop_it, teardown),
		cmocka_unit_test_teardown(progress__may_stop_it_before_much_time_has_passed, teardown),
		cmocka_unit_test_teardown(nonsense__is_refused_and_named, teardown),
		cmocka_unit_test_teardown(switches__that_stop_other_classes_than_the_next_has_are_refused, teardown),
		cmocka_unit_test_teardown(flow__to_where_no_path_leads_is_refused, teardown),
		cmocka_unit_test_teardown(nothing_left_to_happen__is_an_end, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
