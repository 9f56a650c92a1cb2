/* Endpoints that have TCP: what a flow takes by itself, what their hosts' CPUs bound, and that all comes to an end.
 * tcp_laws_test.c has what many round trips come to. */
#include <errno.h>
#include "nets.h"

static struct network network;
static struct flow_list flows;
static struct fabric_result result;

static const struct switch_profile ideal = { .name = "ideal", .class_count = 1 };

enum { DATA = 1000 + 90, ACK = 90, BYTE = 80 /* ps at 100 Gb/s */ };

static int teardown(void **state)
{
	network_free(&network);
	flow_list_free(&flows);
	fabric_result_free(&result);
	return 0;
}

static struct fabric_config config_tcp(void)
{
	return (struct fabric_config){ .network = &network,
		.flows = &flows,
		.seed = 1,
		.mtu = 1000,
		.endpoint = FABRIC_TCP,
		.cc = { .algorithm = &vb_cc_none } };
}

static void run_well(const struct fabric_config *config)
{
	fabric_result_free(&result);
	run(config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_failed, 0);
}

/* What fits into the first window takes one way and back. Every second segment is acknowledged, and the last. */
static void first_window__takes_one_round_trip(void **state)
{
	make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 1, 8500, 0);
	struct fabric_config config = config_tcp();
	run_well(&config);
	const vb_time way = 8 * DATA * BYTE + 2 * 590 * BYTE, first = DATA * BYTE;
	assert_int_equal(result.flows[0].fct, way + first - 590 * BYTE + 2 * ACK * BYTE + 4 * VB_US);
	assert_int_equal(result.data_packets, 9);
	assert_int_equal(result.acks, 5);
	assert_int_equal(result.links[0].bytes, 8 * DATA + 590);
	assert_int_equal(result.resent_packets + result.timeouts, 0);
}

/* Then as many acks let out as much, and one more: 10, 20 with an ack for each, 40. */
static void slow_start__doubles_each_round_trip(void **state)
{
	for (unsigned rounds = 1; rounds <= 4; rounds++) {
		make_star(&network, 2, 100 * GBPS, 100 * VB_US, &ideal);
		add_flow(&flows, 0, 1, ((10u << rounds) - 10) * 1000, 0);
		struct fabric_config config = config_tcp();
		config.ack_every = 1;
		run_well(&config);
		const vb_time round = 400 * VB_US;
		assert_in_range(result.flows[0].fct, rounds * round, rounds * round + (20 << rounds) * DATA * BYTE);
		teardown(NULL);
	}
}

static void largest_window__bounds_the_rate(void **state)
{
	make_star(&network, 2, 100 * GBPS, 10 * VB_US, &ideal);
	add_flow(&flows, 0, 1, 2000000, 0);
	struct fabric_config config = config_tcp();
	config.ack_every = 1;
	config.cc.first_window = config.cc.max_window = 20000;
	run_well(&config);
	const vb_time round = 40 * VB_US + 2 * DATA * BYTE + 2 * ACK * BYTE;
	assert_int_equal(result.flows[0].fct, 100 * round + 19 * DATA * BYTE);
}

/* Nothing follows what would be the second of two. */
static void ack__is_held_back_no_longer_than_the_delay(void **state)
{
	make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 1, 3000, 0);
	struct fabric_config config = config_tcp();
	config.cc.first_window = 1000;
	config.tcp.ack_delay = 5 * VB_MS;
	run_well(&config);
	assert_int_equal(result.timeouts, 0);
	assert_int_equal(result.acks, 2);
	assert_in_range(result.flows[0].fct, 5 * VB_MS, 5 * VB_MS + 10 * VB_US);
}

/* So much for a packet of a batch, so much for each byte; the network adds its round trip, and no more. */
static void cpu__bounds_the_rate(void **state)
{
	static const struct {
		vb_time packet, byte;
		uint32_t batch;
		vb_time segment; /* on average */
	} costs[] = { { 300 * VB_NS, 0, 1, 300 * VB_NS }, { 0, 250, 1, 250 * VB_NS },
		{ 200 * VB_NS, 100, 1, 300 * VB_NS }, { 1600 * VB_NS, 100, 16, 200 * VB_NS } };
	for (unsigned i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
		make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
		add_flow(&flows, 0, 1, 16000000, 0);
		struct fabric_config config = config_tcp();
		config.cc.first_window = 400000;
		config.tcp.cpu_packet = costs[i].packet;
		config.tcp.cpu_byte = costs[i].byte;
		config.tcp.cpu_batch = costs[i].batch;
		run_well(&config);
		const vb_time most = 16000 * costs[i].segment;
		assert_in_range(result.flows[0].fct, most, most + 20 * VB_US);
		teardown(NULL);
	}
}

/* Two into one host: its CPU is for both. */
static void cpu__of_a_receiver_is_one(void **state)
{
	make_star(&network, 3, 100 * GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 2, 4000000, 0);
	add_flow(&flows, 1, 2, 4000000, 0);
	struct fabric_config config = config_tcp();
	config.cc.first_window = config.cc.max_window = 100000;
	config.tcp.cpu_byte = 200;
	run_well(&config);
	assert_in_range(result.last_flow, 8000 * 200 * VB_NS, 8000 * 200 * VB_NS + 20 * VB_US);
	assert_int_equal(result.resent_packets, 0);
}

static void flows__of_a_source_take_turns(void **state)
{
	for (uint32_t batch = 1; batch <= 16; batch *= 16) {
		make_star(&network, 3, 100 * GBPS, VB_US, &ideal);
		add_flow(&flows, 0, 1, 64000, 0);
		add_flow(&flows, 0, 2, 64000, 0);
		struct fabric_config config = config_tcp();
		config.cc.first_window = 64000;
		config.tcp.cpu_byte = batch > 1 ? 1 : 0;
		config.tcp.cpu_batch = batch;
		run_well(&config);
		assert_in_range(result.flows[1].fct - result.flows[0].fct, (batch - 1) * DATA * BYTE,
			(batch + 1) * DATA * BYTE);
		teardown(NULL);
	}
}

/* What pauses, pauses TCP, too. */
static void pauses__hold_what_they_name(void **state)
{
	struct switch_profile pfc = { .name = "pfc",
		.class_count = 2,
		.flow_control = FLOW_PFC,
		.buffer_bytes = 400000,
		.classes = { { .is_lossless = true }, { .is_lossless = true } } };
	make_star(&network, 5, 100 * GBPS, VB_US, &pfc);
	for (uint32_t i = 0; i < 4; i++)
		flow_list_add(&flows, &(struct flow){ .src = i, .dst = 4, .bytes = 1000000, .traffic_class = i % 2 });
	for (uint32_t batch = 1; batch <= 4; batch *= 4) {
		struct fabric_config config = config_tcp();
		config.ack_class = 1;
		config.tcp.cpu_byte = batch > 1 ? 1 : 0;
		config.tcp.cpu_batch = batch;
		run_well(&config);
		assert_int_equal(result.drops + result.resent_packets, 0);
		assert_true(result.pauses > 0);
		assert_in_range(result.last_flow, 4000 * DATA * BYTE, 4000 * DATA * BYTE + 40 * VB_US);
	}
}

static uint64_t hash_with(struct fabric_config config, uint32_t threads)
{
	config.threads = threads;
	run_well(&config);
	assert_int_equal(result.threads, threads);
	return result.hash;
}

/* Dropped, lost, doubled, late: all arrives once, and the same with however many threads. */
static void heavy_loss__is_repaired(void **state)
{
	struct switch_profile profile = ideal;
	profile.port_bytes = 15000;
	profile.classes[0].mark_min = profile.classes[0].mark_max = 10000;
	make_tree_320(&network, &profile);
	network_set_fault(&network, 4, &(struct network_fault){ .loss_ppm = 500000, .duplicate_ppm = 50000 });
	network_set_fault(&network, 650, &(struct network_fault){ .jitter = 5 * VB_US });
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < 320; i++) {
		add_flow(&flows, i, (i + 160) % 320 / 5 * 5, 20000 + i, i % 3 * 500 * VB_NS);
		bytes += 20000 + i;
	}
	for (unsigned control = FABRIC_NEWRENO; control <= FABRIC_DCTCP; control++) {
		struct fabric_config config = config_tcp();
		config.tcp = (struct fabric_tcp){ .control = (enum fabric_tcp_control)control,
			.rto_min = 100 * VB_US,
			.ack_delay = 50 * VB_US,
			.cpu_packet = control * 100 * VB_NS,
			.cpu_batch = 4 };
		config.probe_after = control * 50 * VB_US;
		uint64_t one = hash_with(config, 1);
		assert_int_equal(result.payload_bytes, bytes);
		assert_true(result.drops > 0 && result.lost > 0 && result.timeouts > 0);
		assert_true(result.resent_packets >= result.drops);
		assert_true(control == FABRIC_DCTCP ? result.marked_packets > 0 : result.marked_packets == 0);
		assert_int_equal(hash_with(config, 2), one);
		assert_int_equal(hash_with(config, 4), one);
		config.seed++;
		assert_int_not_equal(hash_with(config, 2), one);
	}
}

/* Fifteen timeouts, each twice the one before up to two minutes. Silence is not the end of a run before. */
static void flow__fails_when_nothing_gets_through(void **state)
{
	make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
	network_set_fault(&network, 0, &(struct network_fault){ .down_at = 1, .up_at = VB_S * 10000 });
	add_flow(&flows, 0, 1, 100000, VB_US);
	flow_list_add(&flows, &(struct flow){ .src = 0, .dst = 1, .bytes = 1000 });
	flow_list_add_wait(&flows, flows.count - 1, 0, FLOW_ENDED);
	struct fabric_config config = config_tcp();
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_failed, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(result.flows[i].error, VB_WC_RETRY_EXC_ERR);
		assert_int_equal(result.flows[i].cause, VB_CAUSE_RETRY_EXCEEDED);
	}
	assert_int_equal(result.timeouts, 30);
	assert_int_equal(result.payload_bytes, 0);
	const vb_time doubled = 200 * VB_MS * 1023, most = 120 * VB_S;
	assert_in_range(result.flows[1].start, doubled + 6 * most, doubled + 6 * most + VB_MS);
}

static vb_time incast(const struct switch_profile *profile, vb_time rto_min, vb_time probe, bool is_tcp)
{
	make_star(&network, 33, 10 * GBPS, VB_US, profile);
	for (uint32_t i = 0; i < 32; i++)
		add_flow(&flows, i, 32, 32000, 0);
	struct fabric_config config = config_tcp();
	config.endpoint = is_tcp ? FABRIC_TCP : FABRIC_IDEAL;
	config.data_overhead = DATA - 1000;
	config.tcp.rto_min = rto_min;
	config.probe_after = is_tcp ? probe : 0;
	run_well(&config);
	const vb_time last = result.last_flow;
	teardown(NULL);
	return last;
}

/* Many answer at once, with a little each, and the port drops whole windows: who waits for a timeout waits for longer
 * than all of it takes. */
static void incast__collapses_by_timeouts(void **state)
{
	struct switch_profile small = { .name = "small", .class_count = 1, .port_bytes = 64000 };
	const vb_time least = 32 * 32 * DATA * 800;
	assert_in_range(incast(&ideal, 0, 0, true), least, 2 * least);
	assert_in_range(incast(&ideal, 0, 0, false), least, least * 105 / 100);
	assert_true(incast(&small, 0, 0, true) > 100 * least);
	assert_true(incast(&small, VB_MS, 0, true) < 6 * least);
}

static void what_it_has_not__is_refused(void **state)
{
	make_star(&network, 2, 100 * GBPS, VB_US, &ideal);
	add_flow(&flows, 0, 1, 1000, 0);
	for (unsigned i = 0; i < 2; i++) {
		struct fabric_config config = config_tcp();
		char why[200] = "";
		if (i == 0)
			config.cc.algorithm = &vb_cc_window;
		config.captured_links = (uint32_t[]){ 0 };
		config.captured_count = i == 1;
		assert_int_equal(fabric_run(&config, &result, why, sizeof(why)), -EINVAL);
		if (!strstr(why, "TCP endpoints have"))
			fail_msg("\"%s\" does not say what they have not", why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(first_window__takes_one_round_trip, teardown),
		cmocka_unit_test_teardown(slow_start__doubles_each_round_trip, teardown),
		cmocka_unit_test_teardown(largest_window__bounds_the_rate, teardown),
		cmocka_unit_test_teardown(ack__is_held_back_no_longer_than_the_delay, teardown),
		cmocka_unit_test_teardown(cpu__bounds_the_rate, teardown),
		cmocka_unit_test_teardown(cpu__of_a_receiver_is_one, teardown),
		cmocka_unit_test_teardown(flows__of_a_source_take_turns, teardown),
		cmocka_unit_test_teardown(pauses__hold_what_they_name, teardown),
		cmocka_unit_test_teardown(heavy_loss__is_repaired, teardown),
		cmocka_unit_test_teardown(flow__fails_when_nothing_gets_through, teardown),
		cmocka_unit_test_teardown(incast__collapses_by_timeouts, teardown),
		cmocka_unit_test_teardown(what_it_has_not__is_refused, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
