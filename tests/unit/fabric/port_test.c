/* Ports that tell classes apart: who goes first, who is marked, and who loses where there is no room for all. */
#include "nets.h"

static struct network network;
static struct flow_list flows;
static struct fabric_result result;

static const vb_time packet = 1048 * 80, ack = 60 * 80;

static int teardown(void **state)
{
	network_free(&network);
	flow_list_free(&flows);
	fabric_result_free(&result);
	return 0;
}

static void run_hpcc(void)
{
	struct fabric_config config = config_hpcc(&network, &flows);
	config.probe_after = 50 * VB_US;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_failed, 0);
}

static void add_flow_of_class(uint32_t src, uint32_t dst, uint64_t bytes, uint8_t traffic_class)
{
	flow_list_add(&flows, &(struct flow){ .src = src, .dst = dst, .bytes = bytes, .traffic_class = traffic_class });
}

static void weights__share_a_port(void **state)
{
	struct switch_profile profile = {
		.name = "weights", .class_count = 2, .classes = { { .weight = 3 }, { .weight = 1 } }
	};
	make_star(&network, 3, 100 * GBPS, VB_US, &profile);
	add_flow_of_class(0, 2, 3000000, 0);
	add_flow_of_class(1, 2, 3000000, 1);
	run_hpcc();
	/* Three of four until the first has all it wants, then the second alone. */
	vb_time alone = packet + 2 * ack + 4 * VB_US;
	assert_in_range(result.flows[0].fct, 4000 * packet + alone - 4 * packet, 4000 * packet + alone + 4 * packet);
	assert_int_equal(result.flows[1].fct, 6000 * packet + alone);
}

/* What is strict waits for the packet on the wire at most. */
static void strict_class__goes_first(void **state)
{
	struct switch_profile profile = {
		.name = "strict", .class_count = 2, .classes = { { .weight = 1 }, { .is_strict = true } }
	};
	make_star(&network, 3, 100 * GBPS, VB_US, &profile);
	add_flow_of_class(0, 2, 3000000, 0);
	add_flow_of_class(1, 2, 3000000, 1);
	run_hpcc();
	vb_time alone = packet + 2 * ack + 4 * VB_US;
	assert_in_range(result.flows[1].fct, 3000 * packet + alone, 3001 * packet + alone);
	assert_int_equal(result.flows[0].fct, 6000 * packet + alone);
}

/* Of thresholds for 100 Gb/s a port of 400 has four times as much, of those for 50 eight times. */
static void marks__begin_by_the_ports_rate(void **state)
{
	for (uint32_t i = 0; i < 8; i++) {
		const uint32_t threshold = i & 1 ? 14000 : 10000, class_count = i & 2 ? 2 : 1, slower = i & 4 ? 2 : 1;
		struct switch_profile profile = { .name = "marks",
			.class_count = class_count,
			.mark_bits_per_second = 100 * GBPS / slower,
			.classes = { { .mark_min = threshold / slower,
				.mark_max = threshold / slower,
				.mark_ppm = 1000000 } } };
		make_star(&network, 3, 400 * GBPS, VB_US, &profile);
		add_flow(&flows, 0, 2, 50000, 0);
		add_flow(&flows, 1, 2, 50000, 0);
		run_hpcc();
		assert_in_range(result.links[5].most_queued, 48 * 1048, 51 * 1048);
		assert_true((result.marked_packets > 0) == (threshold == 10000));
		teardown(NULL);
	}
}

struct first_marked {
	uint32_t packets, at;
};

static void note_mark(void *user, const struct fabric_capture *capture)
{
	struct first_marked *first = user;
	if ((capture->path.traffic_class & 3) == 3 && first->at == 0)
		first->at = first->packets;
	first->packets++;
}

/* Forty packets each of two who send at once. Twenty wait when forty have come and twenty have left: so who then comes
 * leaves as the forty-first, who then leaves as the twenty-first. */
static void marks__are_of_those_that_come_or_of_those_that_leave(void **state)
{
	const uint32_t link = 5;
	for (unsigned is_leaving = 0; is_leaving < 2; is_leaving++)
		for (uint32_t class_count = 1; class_count <= 2; class_count++) {
			struct switch_profile profile = { .name = "marks",
				.class_count = class_count,
				.marks = is_leaving ? MARKS_LEAVING : MARKS_COMING,
				.classes = { { .mark_min = 20 * 1048, .mark_max = 20 * 1048, .mark_ppm = 1000000 } } };
			struct first_marked first = { 0 };
			make_star(&network, 3, 100 * GBPS, VB_US, &profile);
			add_flow(&flows, 0, 2, 40000, 0);
			add_flow(&flows, 1, 2, 40000, 0);
			struct fabric_config config = config_hpcc(&network, &flows);
			config.captured_links = &link;
			config.captured_count = 1;
			config.on_packet = note_mark;
			config.user = &first;
			run(&config, &result);
			assert_int_equal(first.packets, 80);
			assert_in_range(first.at, is_leaving ? 19 : 39, is_leaving ? 23 : 43);
			teardown(NULL);
		}
}

/* Who has alpha times what is free of the buffer gets no more: of n such, each has a share of 1 in 1 / alpha + n. */
static void threshold__is_alpha_times_what_is_free(void **state)
{
	const uint64_t buffer = 600000;
	for (uint32_t ports = 1; ports <= 3; ports++)
		for (uint32_t inverse = 1; inverse <= 2; inverse++) {
			struct switch_profile profile = { .name = "shared",
				.class_count = 1,
				.buffer_bytes = buffer,
				.classes = { { .alpha = 1.0 / inverse } } };
			make_star(&network, 12, 100 * GBPS, VB_US, &profile);
			for (uint32_t i = 0; i < 3 * ports; i++)
				add_flow(&flows, i, 9 + i % ports, 600000, 0);
			run_hpcc();
			assert_true(result.drops > 0 && result.lossless_drops == 0);
			for (uint32_t i = 0; i < ports; i++)
				assert_in_range(result.links[(9 + i) * 2 + 1].most_queued,
					buffer / (inverse + ports) - 8 * 1048, buffer / (inverse + 1) + 1048);
			if (ports == 1)
				assert_in_range(result.links[19].most_queued, buffer / (inverse + 1) - 1048,
					buffer / (inverse + 1) + 1048);
			teardown(NULL);
		}
}

static void limit__bounds_a_queue(void **state)
{
	struct switch_profile profile = { .name = "limit", .class_count = 1, .classes = { { .limit_bytes = 20000 } } };
	make_star(&network, 3, 100 * GBPS, VB_US, &profile);
	add_flow(&flows, 0, 2, 100000, 0);
	add_flow(&flows, 1, 2, 100000, 0);
	run_hpcc();
	assert_true(result.drops > 0);
	assert_int_equal(result.links[5].most_queued, 20000 / 1048 * 1048);
}

/* Cut-through: the header's time, not the packet's, and its end is not late where the way on is faster. */
static void cut_through__waits_for_a_header(void **state)
{
	struct switch_profile profile = { .name = "cut", .class_count = 2, .is_cut_through = true };
	char why[100];
	make_star(&network, 2, 100 * GBPS, VB_US, &profile);
	network_add_endpoint(&network, 2, 0);
	network_connect(&network, 2, network_switch_node(0), 400 * GBPS, VB_US);
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
	add_flow(&flows, 0, 1, 1000, 0);
	add_flow(&flows, 0, 2, 1000, 50 * VB_US);
	run_hpcc();
	assert_int_equal(result.flows[0].fct, packet + 64 * 80 + 2 * ack + 4 * VB_US);
	assert_int_equal(result.flows[1].fct, packet + 60 * 20 + ack + 4 * VB_US);
}

/* Two who send at the same moments, or three where one more has room: each round one of them loses. */
static void ties__are_lost_by_each_in_turn(void **state)
{
	enum { ROUNDS = 100 };
	for (uint32_t is_plain = 0; is_plain < 2; is_plain++) {
		struct switch_profile profile = { .name = "ties", .class_count = is_plain ? 1 : 2, .port_bytes = 1048 };
		const uint32_t senders = is_plain ? 2 : 3;
		uint32_t lost[3] = { 0 };
		make_star(&network, senders + 1, 100 * GBPS, VB_US, &profile);
		for (uint32_t round = 0; round < ROUNDS; round++)
			for (uint32_t i = 0; i < senders; i++)
				add_flow(&flows, i, senders, 1000, round * 2 * VB_US);
		struct fabric_config config = config_hpcc(&network, &flows);
		config.ack_timeout = VB_MS;
		run(&config, &result);
		for (uint32_t i = 0; i < flows.count; i++)
			lost[i % senders] += result.flows[i].fct > VB_MS / 2;
		assert_int_equal(lost[0] + lost[1] + lost[2], ROUNDS);
		for (uint32_t i = 0; i < senders; i++)
			assert_in_range(lost[i], ROUNDS / senders / 2, ROUNDS / senders * 3 / 2);
		teardown(NULL);
	}
}

/* A way that is known to be down is not chosen while there is another. */
static void link__that_is_known_to_be_down_is_not_chosen(void **state)
{
	for (uint32_t routing = ROUTING_ECMP; routing <= ROUTING_ADAPTIVE; routing++)
		for (uint32_t class_count = 1; class_count <= 2; class_count++) {
			struct switch_profile profile = {
				.name = "ways", .class_count = class_count, .routing = (enum routing)routing
			};
			make_tree_320(&network, &profile);
			for (uint32_t k = 0; k < 3; k++) /* of the first switch's ways up */
				network_set_fault(&network, 640 + 2 * k,
					&(struct network_fault){
						.down_at = 20 * VB_US, .up_at = 60 * VB_US, .detection = 2 * VB_US });
			for (uint32_t i = 0; i < 40; i++)
				add_flow(&flows, i % 16, 100 + 5 * i, 5000, 5 * VB_US + i * 2 * VB_US);
			run_hpcc();
			uint64_t lost = 0, on_the_other = result.links[646].packets;
			for (uint32_t k = 0; k < 3; k++)
				lost += result.links[640 + 2 * k].lost;
			assert_in_range(lost, 1, 15); /* before it was known */
			assert_true(on_the_other >= 80 && result.links[640].packets > 0);
			teardown(NULL);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(weights__share_a_port, teardown),
		cmocka_unit_test_teardown(strict_class__goes_first, teardown),
		cmocka_unit_test_teardown(marks__begin_by_the_ports_rate, teardown),
		cmocka_unit_test_teardown(marks__are_of_those_that_come_or_of_those_that_leave, teardown),
		cmocka_unit_test_teardown(threshold__is_alpha_times_what_is_free, teardown),
		cmocka_unit_test_teardown(limit__bounds_a_queue, teardown),
		cmocka_unit_test_teardown(cut_through__waits_for_a_header, teardown),
		cmocka_unit_test_teardown(ties__are_lost_by_each_in_turn, teardown),
		cmocka_unit_test_teardown(link__that_is_known_to_be_down_is_not_chosen, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
