/* What is said of a run before it begins, and which runs are refused. That estimates come true is seen by
 * tests/unit/cli/sim_test.py. */
#include "../unit.h"
#include <errno.h>
#include <sys/resource.h>
#include "net/collectives.h"
#include "sim/simulation.h"
#include "sim/traffic.h"

static struct scenario *scenario;
static struct simulation *simulation;
static char why[400];

static int set_up(void **state)
{
	scenario = malloc(sizeof(*scenario));
	simulation = calloc(1, sizeof(*simulation));
	return scenario && simulation ? 0 : -1;
}

static int tear_down(void **state)
{
	simulation_free(simulation);
	free(simulation);
	free(scenario);
	return 0;
}

static int prepare(const char *lines)
{
	struct document document = { 0 };
	struct document_error error = { 0 };
	int rc = document_read(&document, lines, strlen(lines), &error);
	if (!rc)
		rc = scenario_fill(scenario, &document, "", &error);
	document_free(&document);
	if (rc)
		fail_msg("%s", error.text);
	simulation_free(simulation);
	*why = 0;
	return simulation_prepare(simulation, scenario, NULL, why, sizeof(why));
}

#define STAR "network: {topology: switch, endpoints: 4}\n"

static void packet_hops__are_those_of_data_and_acks(void **state)
{
	assert_int_equal(
		prepare(STAR "transport: {mtu: 1000}\nworkload: {kind: incast, senders: 3, bytes: 10kB}\n"), 0);
	assert_true(simulation->estimate.packet_hops == 3 * 10 * 2 * 2);
	assert_true(simulation->estimate.payload_bytes == 30000);
	assert_int_equal(prepare("network: {topology: ring, leaves: 8}\ntransport: {mtu: 1000, ack-every: 5}\n"
				 "workload: {kind: all-to-all, bytes: 10kB}\n"),
		0);
	double mean = 2 + (1 + 2 + 3 + 4 + 3 + 2 + 1) / 7.0;
	assert_true(simulation->estimate.packet_hops > 0.8 * 56 * 12 * mean &&
		    simulation->estimate.packet_hops < 1.2 * 56 * 12 * mean);
}

/* Of 4 ranks a chain's last sends nothing, and of a reduce that is rank 0. In a double tree the root of each tree sends
 * its half once, the others twice: down and up. */
static void collectives__by_chains_and_trees_are_counted_rank_by_rank(void **state)
{
	static const char *const chains[] = { "broadcast", "reduce" };
	char text[300];
	for (size_t i = 0; i < 2; i++) {
		snprintf(text, sizeof(text), STAR "workload: {kind: %s, bytes: 300KiB}\n", chains[i]);
		assert_int_equal(prepare(text), 0);
		assert_true(simulation->estimate.payload_bytes == 3 * 300 * 1024);
		assert_true(traffic_of(simulation).messages == 3 * 3);
		assert_true(traffic_of(simulation).packets == 3 * 75);
	}
	assert_int_equal(prepare(STAR "workload: {kind: allreduce, algorithm: double-tree, bytes: 600KiB}\n"), 0);
	assert_true(traffic_of(simulation).bytes == 2 * 3 * 600 * 1024);
	assert_true(traffic_of(simulation).messages == (double)collective_messages(&simulation->given));
}

/* 100 Gb/s for 1 us: three packets of each, whatever is to be sent. */
static void limit__bounds_what_will_be_sent(void **state)
{
	assert_int_equal(prepare("network: {topology: switch, endpoints: 4, host-rate: 100G}\nrun: {limit: 1us}\n"
				 "workload: {kind: incast, senders: 3, bytes: 16TB}\n"),
		0);
	assert_true(simulation->estimate.packet_hops < 4 * 4 * 2 * 2);
	assert_true(simulation->estimate.cpu_s < 1);
}

static void estimate__is_said_in_units_that_people_know(void **state)
{
	char text[300];
	assert_int_equal(
		prepare("network: {topology: switch, endpoints: 128}\nworkload: {kind: all-to-all, bytes: 16TB}\n"), 0);
	estimate_text(&simulation->estimate, text, sizeof(text));
	assert_non_null(strstr(text, "packet-hops for 260.1 PB of payload: "));
	assert_non_null(strstr(text, " years of CPU time, "));
	assert_non_null(strstr(text, " MB of memory"));
}

static void memory__that_is_not_there_is_refused_with_the_key_that_helps(void **state)
{
	struct estimate estimate;
	assert_int_equal(prepare(STAR "workload: [{kind: incast}, {kind: all-to-all}]\n"), 0);
	estimate_memory(simulation, 1000000, &estimate);
	assert_int_equal(estimate_check(simulation, &estimate, (uint64_t)1 << 30, why, sizeof(why)), 0);
	assert_int_equal(estimate_check(simulation, &estimate, 100000000, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "1 M flows between 4 endpoints need about "));
	assert_non_null(strstr(why, " of memory, and there are 100 MB: lower workload.1.endpoints"));
	assert_int_equal(
		prepare("network: {topology: torus, dimensions: [8, 8]}\nworkload: {kind: incast, senders: 1}\n"), 0);
	estimate_memory(simulation, 1, &estimate);
	assert_int_equal(estimate_check(simulation, &estimate, 1000000, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "lower network.dimensions"));
}

static uint64_t flow_bytes(const char *workload)
{
	char text[300];
	snprintf(text, sizeof(text),
		"network: {topology: switch, endpoints: 100, host-rate: 100G, switch: {profile: ideal}}\n%s\n",
		workload);
	assert_int_equal(prepare(text), 0);
	return simulation->estimate.flow_bytes / simulation->estimate.flows;
}

/* 9,900 flows: all at once, one of a sender at a time, and each over long before the next. */
static void memory__goes_with_the_flows_that_are_open_at_once(void **state)
{
	uint64_t all = flow_bytes("workload: {kind: all-to-all, bytes: 10kB}");
	assert_true(all > 2000);
	assert_true(flow_bytes("workload: {kind: all-to-all, bytes: 10kB, at-once: 1}") < all / 10);
	assert_true(flow_bytes("workload: {kind: all-to-all, bytes: 10kB, spread: 10ms}") < all / 10);
	assert_true(flow_bytes("workload: {kind: all-to-all, bytes: 10kB, at-once: 1}\ntransport: {behind: sockets}") ==
		    all);
}

/* Each takes longer than virtual time can tell: 16 TB at 1 Mb/s, and all to one endpoint. */
static void flows__that_last_longer_than_any_time_are_all_open(void **state)
{
	assert_int_equal(
		prepare("network: {topology: switch, endpoints: 200, host-rate: 1M, switch: {profile: ideal}}\n"
			"workload: {kind: incast, senders: 199, bytes: 16TB}\nrun: {limit: 10us}\n"),
		0);
	uint64_t each = simulation->estimate.flow_bytes / simulation->estimate.flows;
	assert_in_range(each, 2000, 10000);
}

/* Before they are listed: that alone would take a while, and much of that memory. */
static void flows__that_are_too_many_are_refused_at_once(void **state)
{
#ifdef __SANITIZE_ADDRESS__
	skip(); /* its own address space has no bound */
#else
	struct rlimit was, less = { 0 };
	assert_int_equal(getrlimit(RLIMIT_AS, &was), 0);
	less = was;
	less.rlim_cur = 1u << 30;
	assert_int_equal(setrlimit(RLIMIT_AS, &less), 0);
	int rc = prepare("network: {topology: switch, endpoints: 5000}\nworkload: {kind: all-to-all}\n");
	setrlimit(RLIMIT_AS, &was);
	assert_int_equal(rc, -EINVAL);
	assert_non_null(strstr(why, "lower workload.0.endpoints"));
	assert_null(simulation->flows.flows);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packet_hops__are_those_of_data_and_acks),
		cmocka_unit_test(collectives__by_chains_and_trees_are_counted_rank_by_rank),
		cmocka_unit_test(limit__bounds_what_will_be_sent),
		cmocka_unit_test(estimate__is_said_in_units_that_people_know),
		cmocka_unit_test(memory__that_is_not_there_is_refused_with_the_key_that_helps),
		cmocka_unit_test(memory__goes_with_the_flows_that_are_open_at_once),
		cmocka_unit_test(flows__that_last_longer_than_any_time_are_all_open),
		cmocka_unit_test(flows__that_are_too_many_are_refused_at_once),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
