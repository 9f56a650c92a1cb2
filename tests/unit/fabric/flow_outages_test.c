/* Messages as flows where links go down: they wait, take other ways, or fail, as their packets do. */
#include "nets.h"

enum { HOSTS = 8, SPINES = 4, BYTES = 8000000 };

static struct network network;
static struct flow_list flows;
static struct fabric_result packets, fluid;

static int teardown(void **state)
{
	fabric_result_free(&packets);
	fabric_result_free(&fluid);
	flow_list_free(&flows);
	network_free(&network);
	return 0;
}

/* What one run has beside the network. */
struct given {
	struct network_fault fault;
	bool is_of_endpoint; /* the link of endpoint 0; else leaf 0's to the first spine */
	enum routing routing;
	enum fabric_endpoint endpoint;
	vb_time timeout, probe;
};

static uint32_t uplink(void)
{
	for (uint32_t i = 0; i < network.link_count; i++)
		if (network.links[i].from == network_switch_node(0) && network_is_switch(network.links[i].to))
			return i;
	fail();
	return 0;
}

static void run_both(const struct given *given)
{
	teardown(NULL);
	make_two_leaves(&network, HOSTS, SPINES, 400 * GBPS, given->routing);
	network_set_fault(&network, given->is_of_endpoint ? network.endpoints[0].link : uplink(), &given->fault);
	for (uint32_t i = 0; i < HOSTS; i++)
		add_flow(&flows, i, HOSTS + i, BYTES, 0);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.endpoint = given->endpoint;
	config.ack_timeout = given->timeout;
	config.probe_after = given->probe;
	config.retry_count = 3;
	run(&config, &packets);
	config.by_flows = true;
	run(&config, &fluid);
	assert_int_equal(packets.end, FABRIC_DONE);
	assert_int_equal(fluid.end, FABRIC_DONE);
	assert_true(packets.lost > 0);
}

/* Each message ends as by packets, within so much. */
static void expect_alike(const struct given *given, vb_time within)
{
	run_both(given);
	for (uint32_t i = 0; i < HOSTS; i++) {
		assert_int_equal(fluid.flows[i].error, packets.flows[i].error);
		assert_int_equal(fluid.flows[i].cause, packets.flows[i].cause);
		assert_in_range(fluid.flows[i].fct + within - packets.flows[i].fct, 0, 2 * within);
	}
}

#define DOWN_AT (100 * VB_US)
#define TIMEOUT (2 * VB_MS)
#define NEAR    (3 * VB_US) /* of 700 us, or of 2 ms and more */

/* By hashes one message goes by the link. It waits until the switch knows, if its sender still sends then. */
static void message__takes_another_way_once_its_switch_knows(void **state)
{
	struct given given = { .fault = { .down_at = DOWN_AT, .detection = 50 * VB_US }, .timeout = TIMEOUT };
	expect_alike(&given, NEAR);
	given.fault.up_at = DOWN_AT + 300 * VB_US; /* and back */
	expect_alike(&given, NEAR);
}

/* The gap's NAK is lost on the link: the other leaf is far from it. So is a tail that has left when the switch knows.
 */
static void message__of_which_nothing_is_heard_waits_for_the_timeout(void **state)
{
	const vb_time detections[] = { 50 * VB_US, 700 * VB_US }, convergences[] = { 100 * VB_US, 0 };
	for (unsigned i = 0; i < 2; i++) {
		const struct given given = {
			.fault = { .down_at = DOWN_AT, .detection = detections[i], .convergence = convergences[i] },
			.timeout = TIMEOUT
		};
		vb_time longest = 0;
		expect_alike(&given, NEAR);
		for (uint32_t k = 0; k < HOSTS; k++)
			longest = fluid.flows[k].fct > longest ? fluid.flows[k].fct : longest;
		assert_true(longest > DOWN_AT + TIMEOUT);
	}
}

/* Probes do not come as late as the timeout; how late depends on when what is lost was sent. */
static void message__is_probed_before_the_timeout(void **state)
{
	run_both(&(const struct given){ .fault = { .down_at = DOWN_AT, .detection = 700 * VB_US },
		.timeout = 100 * VB_MS,
		.probe = 100 * VB_US });
	for (uint32_t i = 0; i < HOSTS; i++) {
		assert_in_range(fluid.flows[i].fct, packets.flows[i].fct * 2 / 3, packets.flows[i].fct + NEAR);
		assert_true(packets.flows[i].fct < 3 * VB_MS);
	}
}

/* Ideal endpoints wait for the timeout in any case. */
static void message__of_an_ideal_endpoint_waits_for_the_timeout(void **state)
{
	expect_alike(&(const struct given){ .fault = { .down_at = DOWN_AT, .detection = 50 * VB_US },
			     .endpoint = FABRIC_IDEAL,
			     .timeout = TIMEOUT },
		NEAR * 50);
}

static void host__that_is_cut_off_goes_on_when_it_is_back(void **state)
{
	struct given given = {
		.fault = { .down_at = DOWN_AT, .up_at = 300 * VB_US }, .is_of_endpoint = true, .timeout = TIMEOUT
	};
	expect_alike(&given, NEAR);
	given.fault.up_at = 3 * VB_MS;
	expect_alike(&given, NEAR);
	given.fault =
		(struct network_fault){ .down_at = DOWN_AT, .up_at = DOWN_AT + 50 * VB_US, .flap_period = 300 * VB_US };
	expect_alike(&given, NEAR);
	given.fault = (struct network_fault){ .up_at = 50 * VB_US }; /* from the beginning */
	expect_alike(&given, NEAR);
}

static void host__that_stays_cut_off_fails_its_messages(void **state)
{
	struct given given = { .fault = { .down_at = DOWN_AT }, .is_of_endpoint = true, .timeout = TIMEOUT };
	for (unsigned endpoint = FABRIC_ENGINE; endpoint <= FABRIC_IDEAL; endpoint++) {
		given.endpoint = (enum fabric_endpoint)endpoint;
		expect_alike(&given, NEAR);
		assert_int_equal(fluid.flows_failed, 1);
		assert_in_range(
			fluid.failures[0].at, packets.failures[0].at - 30 * VB_US, packets.failures[0].at + 30 * VB_US);
	}
}

/* Who sprays gives the next link what is not sent on one that is down; who is adaptive gives all others some. */
static void spread_messages__leave_the_link_out(void **state)
{
	for (unsigned routing = ROUTING_SPRAY; routing <= ROUTING_ADAPTIVE; routing++)
		expect_alike(&(const struct given){ .fault = { .down_at = DOWN_AT, .detection = 50 * VB_US },
				     .routing = (enum routing)routing,
				     .endpoint = FABRIC_IDEAL,
				     .timeout = 200 * VB_US },
			50 * VB_US);
}

/* ---- Channels ---------------------------------------------------------------------------------------------------- */

enum { MESSAGES = 4 };

struct plan {
	struct job job;
	vb_time arrived[MESSAGES];
	uint32_t errors[MESSAGES];
};

static void plan_begin(struct job *its, uint32_t rank, struct job_sink *sink)
{
	for (uint32_t i = 0; rank == 0 && i < MESSAGES; i++)
		sink->send(sink, &(struct message){ .dst = 1,
					 .bytes = 2000000,
					 .start = i * 150 * VB_US,
					 .channel = 1,
					 .tag = i,
					 .tells_arrival = true });
}

static void plan_arrived(
	struct job *its, uint32_t rank, uint64_t tag, vb_time at, const void *carried, struct job_sink *sink)
{
	((struct plan *)its)->arrived[tag] = at;
}

static void plan_ended(struct job *its, uint32_t rank, uint64_t tag, vb_time at, const struct flow_result *is,
	const void *carried, struct job_sink *sink)
{
	((struct plan *)its)->errors[tag] = is->error;
}

static const struct job_kind kind = { .begin = plan_begin, .arrived = plan_arrived, .ended = plan_ended };

static struct plan run_channel(const struct network_fault *fault, bool by_flows)
{
	static const struct switch_profile ideal = { .name = "ideal", .class_count = 1 };
	static const struct flow_list no_flows;
	struct plan plan = { .job = { &kind, MESSAGES, 2 } };
	struct job *const jobs[] = { &plan.job };
	teardown(NULL);
	make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
	network_set_fault(&network, 0, fault);
	struct fabric_config config = config_hpcc(&network, &no_flows);
	config.jobs = jobs;
	config.job_count = 1;
	config.ack_timeout = TIMEOUT;
	config.retry_count = 1;
	config.by_flows = by_flows;
	run(&config, &fluid);
	assert_int_equal(fluid.end, FABRIC_DONE);
	return plan;
}

/* The second message meets the outage, and all behind it wait for it; or fail with it. */
static void messages__of_a_channel_wait_for_the_one_that_waits(void **state)
{
	for (unsigned is_for_good = 0; is_for_good < 2; is_for_good++) {
		const struct network_fault fault = { .down_at = 200 * VB_US, .up_at = is_for_good ? 0 : 400 * VB_US };
		const struct plan by_packets = run_channel(&fault, false), by_flows = run_channel(&fault, true);
		for (uint32_t i = 0; i < MESSAGES; i++) {
			assert_in_range(by_flows.arrived[i] + NEAR - by_packets.arrived[i], 0, 2 * NEAR);
			assert_int_equal(by_flows.errors[i], by_packets.errors[i]);
			assert_int_equal(by_flows.errors[i] != 0, is_for_good && i > 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(message__takes_another_way_once_its_switch_knows, teardown),
		cmocka_unit_test_teardown(message__of_which_nothing_is_heard_waits_for_the_timeout, teardown),
		cmocka_unit_test_teardown(message__is_probed_before_the_timeout, teardown),
		cmocka_unit_test_teardown(message__of_an_ideal_endpoint_waits_for_the_timeout, teardown),
		cmocka_unit_test_teardown(host__that_is_cut_off_goes_on_when_it_is_back, teardown),
		cmocka_unit_test_teardown(host__that_stays_cut_off_fails_its_messages, teardown),
		cmocka_unit_test_teardown(spread_messages__leave_the_link_out, teardown),
		cmocka_unit_test_teardown(messages__of_a_channel_wait_for_the_one_that_waits, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
