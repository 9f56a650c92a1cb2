/* Messages as flows: alone they take exactly what their packets would, together what max-min shares say, by the paths
 * that their packets would take. */
#include <errno.h>
#include <stdlib.h>
#include "net/collective_job.h"
#include "net/job.h"
#include "net/unloaded.h"
#include "nets.h"

enum { HOSTS = 8, SPINES = 4, MOST = 64 };

static struct network network;
static struct flow_list flows;
static const struct flow_list no_flows;
static struct fabric_result result;
static struct collective_job job;
static struct rank_groups groups;
static const struct switch_profile ideal = { .name = "ideal", .class_count = 1 };

static int teardown(void **state)
{
	collective_job_close(&job);
	rank_groups_close(&groups);
	fabric_result_free(&result);
	flow_list_free(&flows);
	network_free(&network);
	return 0;
}

static struct fabric_config config_of(const struct flow_list *list)
{
	struct fabric_config config = config_hpcc(&network, list);
	config.by_flows = true;
	return config;
}

static void run_list(void)
{
	const struct fabric_config config = config_of(&flows);
	fabric_result_free(&result);
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
}

/* Of a message over links of 100 Gb/s, in packets of 1,048 bytes. */
static vb_time wire_time(uint64_t packets)
{
	return (vb_time)packets * 1048 * 80;
}

/* ---- Alone ------------------------------------------------------------------------------------------------------- */

static void make_slow_to_fast(const struct switch_profile *profile)
{
	char why[100];
	network = (struct network){ 0 };
	network_add_profile(&network, profile);
	network_add_nic(&network, &(struct nic_profile){ .name = "slow",
					  .send_latency = 300 * VB_NS,
					  .receive_latency = 200 * VB_NS,
					  .pcie_latency = 150 * VB_NS,
					  .host_latency = VB_US });
	for (uint32_t i = 0; i < 2; i++)
		network_add_endpoint(&network, i, 0);
	for (uint32_t i = 0; i < 3; i++)
		network_add_switch(&network, 0, i != 1, NETWORK_NONE);
	network_connect(&network, 0, network_switch_node(0), 100 * GBPS, VB_US);
	network_connect(&network, network_switch_node(0), network_switch_node(1), 30 * GBPS, 2 * VB_US);
	network_connect(&network, network_switch_node(1), network_switch_node(2), 70 * GBPS, VB_US);
	network_connect(&network, 1, network_switch_node(2), 100 * GBPS, VB_US);
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
}

/* Until the ack is back, and the program has heard of it. */
static vb_time time_alone(const struct fabric_config *config, uint64_t bytes)
{
	const struct framing framing = { config->mtu, config->data_overhead, config->ack_overhead };
	struct routes *routes = routes_make(&network);
	struct way there, back;
	assert_true(unloaded_way(&network, routes, 0, 1, &there));
	assert_true(unloaded_way(&network, routes, 1, 0, &back));
	routes_free(routes);
	return 2 * VB_US + unloaded_message_time(&network, &there, &framing, bytes) +
	       unloaded_ack_time(&network, &back, &framing);
}

static void message__alone_takes_what_its_packets_would(void **state)
{
	static const uint64_t sizes[] = { 1, 999, 1000, 1001, 5000, 123457, 10000000 };
	for (unsigned cut_through = 0; cut_through < 2; cut_through++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			struct switch_profile profile = ideal;
			profile.is_cut_through = cut_through;
			profile.latency = 400 * VB_NS;
			make_slow_to_fast(&profile);
			add_flow(&flows, 0, 1, sizes[i], 3 * VB_US);
			struct fabric_config config = config_of(&flows);
			for (unsigned roce = 0; roce < 2; roce++) {
				config.data_overhead = roce ? 0 : 48;
				run(&config, &result);
				assert_int_equal(result.flows[0].fct, time_alone(&config, sizes[i]));
				fabric_result_free(&result);
			}
			teardown(state);
		}
}

/* A longer time than patience for what gets nowhere. */
static void message__may_take_as_long_as_it_needs(void **state)
{
	make_star(&network, 3, GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 1, 1000000000, 0);
	add_flow(&flows, 0, 1, 2000000000, 0);
	add_flow(&flows, 2, 1, 4000000000, 0);
	run_list();
	assert_true(result.last_flow > 50 * VB_S);
}

static void message__that_takes_longer_than_the_run_is_open_at_its_end(void **state)
{
	make_star(&network, 2, GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 1, 1000000000, 0);
	struct fabric_config config = config_of(&flows);
	config.limit = VB_S;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_LIMIT);
	assert_int_equal(result.flows_done, 0);
}

/* ---- Together ---------------------------------------------------------------------------------------------------- */

static void messages__into_one_endpoint_take_n_times_as_long(void **state)
{
	enum { N = 10, PACKETS = 1000 };
	make_star(&network, N + 1, 100 * GBPS, VB_US, &ideal);
	for (uint32_t i = 0; i < N; i++)
		add_flow(&flows, i, N, PACKETS * 1000, 0);
	run_list();
	const vb_time others = 4 * VB_US + 1048 * 80 + 2 * 60 * 80; /* the tail, and the ack */
	for (uint32_t i = 0; i < N; i++)
		assert_in_range(
			result.flows[i].fct, wire_time(N * PACKETS) + others, wire_time(N * PACKETS) + others + 100);
	assert_int_equal(result.payload_bytes, N * PACKETS * 1000);
	assert_int_equal(result.data_packets, N * PACKETS);
	assert_int_equal(result.acks, N * PACKETS);
	assert_int_equal(result.links[network.links[network.endpoints[N].link].reverse].bytes, N * PACKETS * 1048);
}

/* Three switches in a line: the flow over both links between them shares each with one of one link. */
static void flows__share_a_parking_lot(void **state)
{
	char why[100];
	network = (struct network){ 0 };
	network_add_profile(&network, &ideal);
	network_add_nic(&network, &(struct nic_profile){ .name = "ideal" });
	for (uint32_t i = 0; i < 6; i++)
		network_add_endpoint(&network, i, 0);
	for (uint32_t i = 0; i < 3; i++)
		network_add_switch(&network, 0, 0, NETWORK_NONE);
	for (uint32_t i = 0; i < 6; i++)
		network_connect(&network, i, network_switch_node(i / 2), 100 * GBPS, VB_US);
	network_connect(&network, network_switch_node(0), network_switch_node(1), 100 * GBPS, VB_US);
	network_connect(&network, network_switch_node(1), network_switch_node(2), 50 * GBPS, VB_US);
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
	add_flow(&flows, 0, 4, 10000000, 0); /* 25 Gb/s, by the second link */
	add_flow(&flows, 2, 5, 10000000, 0); /* 25 Gb/s */
	add_flow(&flows, 1, 3, 10000000, 0); /* 75 Gb/s */
	run_list();
	assert_in_range(result.flows[0].fct, wire_time(40000), wire_time(40000) + 20 * VB_US);
	assert_in_range(result.flows[1].fct, wire_time(40000), wire_time(40000) + 20 * VB_US);
	assert_in_range(result.flows[2].fct, wire_time(13333), wire_time(13334) + 20 * VB_US);
}

/* Each waits for the arrival of the one before: times alone, without the way of the acks. */
static void flows__of_a_chain_take_their_times_alone(void **state)
{
	enum { N = 5 };
	make_star(&network, N + 1, 100 * GBPS, VB_US, &ideal);
	for (uint32_t i = 0; i < N; i++)
		add_flow(&flows, i, i + 1, 100000, 0);
	for (uint32_t i = 1; i < N; i++)
		assert_int_equal(flow_list_add_wait(&flows, i, i - 1, FLOW_ARRIVED), 0);
	run_list();
	const vb_time arrives = wire_time(101) + 2 * VB_US, ack = 2 * VB_US + 2 * 60 * 80;
	assert_int_equal(result.last_flow, N * arrives + ack);
}

/* ---- A job of given messages ------------------------------------------------------------------------------------- */

struct given {
	uint32_t src, dst, channel;
	uint64_t bytes;
	vb_time start;
};

struct plan {
	struct job job;
	const struct given *messages;
	uint32_t count;
	vb_time arrived[MOST], ended[MOST];
};

static void plan_begin(struct job *its, uint32_t rank, struct job_sink *sink)
{
	const struct plan *plan = (const struct plan *)its;
	for (uint32_t i = 0; i < plan->count; i++)
		if (plan->messages[i].src == rank)
			sink->send(sink, &(struct message){ .src = rank,
						 .dst = plan->messages[i].dst,
						 .bytes = plan->messages[i].bytes,
						 .start = plan->messages[i].start,
						 .channel = plan->messages[i].channel,
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
	((struct plan *)its)->ended[tag] = at;
}

static const struct job_kind kind = { .begin = plan_begin, .arrived = plan_arrived, .ended = plan_ended };
static struct plan plan;

static void run_plan(const struct given *messages, uint32_t count, uint32_t ranks)
{
	struct job *const jobs[] = { &plan.job };
	struct fabric_config config = config_of(&no_flows);
	plan = (struct plan){ .job = { &kind, count, ranks }, .messages = messages, .count = count };
	config.jobs = jobs;
	config.job_count = 1;
	fabric_result_free(&result);
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
}

/* One after the other in a channel; otherwise they share the link. */
static void messages__of_a_channel_go_one_after_the_other(void **state)
{
	const struct given in_order[] = { { 0, 1, 1, 100000, 0 }, { 0, 1, 1, 50000, 0 }, { 0, 1, 1, 1000, VB_US } },
			   beside[] = { { 0, 1, 0, 100000, 0 }, { 0, 1, 0, 100000, 0 } };
	const vb_time tail = 2 * VB_US + wire_time(1);
	make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
	run_plan(in_order, 3, 2);
	assert_int_equal(plan.arrived[0], wire_time(100) + tail);
	assert_int_equal(plan.arrived[1], wire_time(150) + tail);
	assert_int_equal(plan.arrived[2], wire_time(151) + tail);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(plan.ended[i], plan.arrived[i] + 2 * VB_US + 2 * 60 * 80);
	run_plan(beside, 2, 2);
	for (uint32_t i = 0; i < 2; i++)
		assert_in_range(plan.arrived[i], wire_time(200) + tail, wire_time(200) + tail + 10);
}

/* ---- Paths ------------------------------------------------------------------------------------------------------- */

/* All eight hosts of a leaf send to the other, at full rate, and each spine has a quarter of their bytes. */
static void flow__is_spread_where_switches_spray(void **state)
{
	make_two_leaves(&network, HOSTS, SPINES, 200 * GBPS, ROUTING_SPRAY);
	for (uint32_t i = 0; i < HOSTS; i++)
		add_flow(&flows, i, HOSTS + i, 1000000, 0);
	run_list();
	for (uint32_t i = 0; i < HOSTS; i++)
		assert_in_range(result.flows[i].fct, wire_time(1000), wire_time(1000) + 10 * VB_US);
	for (uint32_t i = 0; i < network.link_count; i++)
		if (network.links[i].from == network_switch_node(0) && network_is_switch(network.links[i].to))
			assert_int_equal(result.links[i].bytes, HOSTS / SPINES * 1000 * 1048);
}

static struct job *const jobs[] = { &job.job };

/* algorithm: NULL: no job, but the list. */
struct sent {
	const char *kind, *algorithm;
	bool has_list;
};

static void run_sent(const struct sent *sent, struct fabric_config config, struct fabric_result *its)
{
	const struct collective of = {
		.kind = sent->kind, .algorithm = sent->algorithm, .ranks = 2 * HOSTS, .bytes = 16 * 9000
	};
	collective_job_close(&job);
	rank_groups_close(&groups);
	config.flows = sent->has_list ? &flows : &no_flows;
	if (sent->kind) {
		assert_int_equal(rank_groups_open(&groups, &(struct hosts){ 0 }, 0, of.ranks), 0);
		assert_int_equal(collective_job_open(&job, &of, &groups), 0);
		config.jobs = jobs;
		config.job_count = 1;
	}
	run(&config, its);
	assert_int_equal(its->end, FABRIC_DONE);
}

/* Of each link the packets and bytes, by flows as by packets. */
static void expect_same_links(const struct sent *sent, uint64_t seed, enum fabric_endpoint endpoint)
{
	struct fabric_result packets;
	struct fabric_config config = config_of(&no_flows);
	config.seed = seed;
	config.endpoint = endpoint;
	config.ack_every = 3;
	fabric_result_free(&result);
	run_sent(sent, config, &result);
	config.by_flows = false;
	run_sent(sent, config, &packets);
	assert_int_equal(packets.resent_packets, 0);
	for (uint32_t i = 0; i < network.link_count; i++) {
		assert_int_equal(result.links[i].packets, packets.links[i].packets);
		assert_int_equal(result.links[i].bytes, packets.links[i].bytes);
	}
	assert_true(result.data_packets > 0);
	assert_int_equal(result.data_packets, packets.data_packets);
	assert_int_equal(result.acks, packets.acks);
	assert_int_equal(result.payload_bytes, packets.payload_bytes);
	fabric_result_free(&packets);
}

/* A list, connections that stay open, connections of their own, and a list beside a job. */
static void flows__take_the_paths_of_their_packets(void **state)
{
	static const struct sent all[] = { { NULL, NULL, true }, { "allreduce", "halving-doubling", false },
		{ "all-gather", "ring", false }, { "alltoall", "pairwise", false }, { "alltoall", "pairwise", true } };
	make_two_leaves(&network, HOSTS, SPINES, 200 * GBPS, ROUTING_ECMP);
	for (uint32_t i = 0; i < 40; i++)
		add_flow(&flows, i % HOSTS, HOSTS + i * 7 % HOSTS, 9000, i * VB_US);
	for (uint64_t seed = 1; seed < 4; seed++)
		for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
			expect_same_links(&all[i], seed, FABRIC_ENGINE);
			expect_same_links(&all[i], seed, FABRIC_IDEAL);
		}
}

/* ---- The same result --------------------------------------------------------------------------------------------- */

static void hash__is_the_same_with_any_number_of_threads(void **state)
{
	uint64_t hash = 0;
	make_two_leaves(&network, HOSTS, SPINES, 200 * GBPS, ROUTING_ECMP);
	for (uint32_t threads = 1; threads <= 4; threads *= 2) {
		struct fabric_config config = config_of(&no_flows);
		config.threads = threads;
		fabric_result_free(&result);
		run_sent(&(struct sent){ "alltoall", "pairwise", false }, config, &result);
		assert_true(threads == 1 || result.hash == hash);
		hash = result.hash;
	}
}

/* ---- What packets alone can have --------------------------------------------------------------------------------- */

static void expect_refused(struct fabric_config config, const char *what)
{
	char why[200] = "";
	assert_int_equal(fabric_run(&config, &result, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, what));
}

static void what_packets_alone_can_have__is_refused(void **state)
{
	const uint32_t link = 0;
	make_star(&network, 2, GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 1, 1000, 0);
	struct fabric_config config = config_of(&flows);
	config.endpoint = FABRIC_TCP;
	expect_refused(config, "TCP");
	config = config_of(&flows);
	config.captured_links = &link;
	config.captured_count = 1;
	expect_refused(config, "captured");
	network.profiles[0].hash = HASH_NS3;
	expect_refused(config_of(&flows), "ns-3");
	network.profiles[0].hash = HASH_OWN;
	network_set_fault(&network, 0, &(struct network_fault){ .loss_ppm = 1 });
	expect_refused(config_of(&flows), "faults");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(message__alone_takes_what_its_packets_would, teardown),
		cmocka_unit_test_teardown(message__may_take_as_long_as_it_needs, teardown),
		cmocka_unit_test_teardown(message__that_takes_longer_than_the_run_is_open_at_its_end, teardown),
		cmocka_unit_test_teardown(messages__into_one_endpoint_take_n_times_as_long, teardown),
		cmocka_unit_test_teardown(flows__share_a_parking_lot, teardown),
		cmocka_unit_test_teardown(flows__of_a_chain_take_their_times_alone, teardown),
		cmocka_unit_test_teardown(messages__of_a_channel_go_one_after_the_other, teardown),
		cmocka_unit_test_teardown(flow__is_spread_where_switches_spray, teardown),
		cmocka_unit_test_teardown(flows__take_the_paths_of_their_packets, teardown),
		cmocka_unit_test_teardown(hash__is_the_same_with_any_number_of_threads, teardown),
		cmocka_unit_test_teardown(what_packets_alone_can_have__is_refused, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
