/* What a message takes alone, by hand. */
#include "net/unloaded.h"
#include "../unit.h"

#define GBPS 1000000000ull

static struct network network;
static struct routes *routes;
static struct way way;

static int teardown(void **state)
{
	routes_free(routes);
	network_free(&network);
	return 0;
}

/* Two endpoints at one switch; the second link has half the rate. */
static void make(bool is_cut_through)
{
	char why[100];
	const struct switch_profile profile = {
		.name = "one", .class_count = 1, .is_cut_through = is_cut_through, .latency = 500 * VB_NS
	};
	network = (struct network){ 0 };
	network_add_profile(&network, &profile);
	network_add_nic(&network, &(struct nic_profile){ .name = "nic",
					  .send_latency = 10 * VB_NS,
					  .receive_latency = 20 * VB_NS,
					  .pcie_latency = 100 * VB_NS });
	network_add_switch(&network, 0, 0, NETWORK_NONE);
	for (uint32_t i = 0; i < 2; i++) {
		network_add_endpoint(&network, i, 0);
		network_connect(&network, i, network_switch_node(0), i ? 40 * GBPS : 80 * GBPS, VB_US);
	}
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
	routes = routes_make(&network);
	assert_true(unloaded_way(&network, routes, 0, 1, &way));
	assert_int_equal(way.count, 2);
}

enum { DELAYS = 2 * VB_US + 500 * VB_NS + 10 * VB_NS + 20 * VB_NS + 200 * VB_NS };

static void bytes__have_headers_and_padding(void **state)
{
	const struct framing roce = { .mtu = 1000 }, given = { .mtu = 1000, .data_overhead = 48, .ack_overhead = 60 };
	assert_int_equal(framing_packets(&roce, 2001), 3);
	assert_int_equal(framing_wire_bytes(&roce, 2001), 2001 + 3 + 3 * FRAMING_ROCE_OVERHEAD + 16);
	assert_int_equal(framing_ack_bytes(&roce), FRAMING_ROCE_OVERHEAD + 4);
	assert_int_equal(framing_wire_bytes(&given, 2001), 2001 + 3 * 48);
	assert_int_equal(framing_ack_bytes(&given), 60);
}

/* 1,000 bytes take 100 ns and 200 ns; behind the first, packets follow each other on the slower link. */
static void message__takes_its_first_packet_and_the_slowest_link(void **state)
{
	const struct framing framing = { .mtu = 952, .data_overhead = 48 };
	make(false);
	assert_int_equal(unloaded_message_time(&network, &way, &framing, 952), DELAYS + 300 * VB_NS);
	assert_int_equal(
		unloaded_message_time(&network, &way, &framing, 952 * 50), DELAYS + 100 * VB_NS + 50 * 200 * VB_NS);
}

/* The switch forwards behind 64 bytes, 6.4 ns of the first link. */
static void message__is_cut_through(void **state)
{
	const struct framing framing = { .mtu = 952, .data_overhead = 48 };
	make(true);
	assert_int_equal(unloaded_message_time(&network, &way, &framing, 952), DELAYS + 6400 + 200 * VB_NS);
}

static void ack__is_one_packet(void **state)
{
	const struct framing framing = { .mtu = 952, .ack_overhead = 100 };
	struct way back;
	make(false);
	assert_true(unloaded_way(&network, routes, 1, 0, &back));
	assert_int_equal(unloaded_ack_time(&network, &back, &framing), DELAYS + 30 * VB_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes__have_headers_and_padding),
		cmocka_unit_test_teardown(message__takes_its_first_packet_and_the_slowest_link, teardown),
		cmocka_unit_test_teardown(message__is_cut_through, teardown),
		cmocka_unit_test_teardown(ack__is_one_packet, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
