/* What runs under HPCC must come to: figures of its authors' simulator, and where the algorithm stays. Packets are of
 * 1,000 bytes and weigh 90 more with their telemetry, acks 88; T is 12.24 us; 40 Mb/s are added. */
#include "cc/choice.h"
#include "nets.h"

static struct network network;
static struct flow_list flows;
static struct fabric_result result;
static struct vb_cc_choice choice;

static int teardown(void **state)
{
	network_free(&network);
	flow_list_free(&flows);
	fabric_result_free(&result);
	return 0;
}

static struct fabric_config config_of(const char *control)
{
	struct fabric_config config = config_hpcc(&network, &flows);
	char why[400];
	assert_int_equal(vb_cc_choose(control, &choice, why, sizeof(why)), 0);
	config.cc = (struct vb_cc_config){
		.algorithm = choice.algorithm, .parameters = choice.values, .max_window = VB_CC_UNLIMITED
	};
	config.data_overhead = 90;
	config.ack_overhead = 88;
	return config;
}

static void run_hpcc(void)
{
	struct fabric_config config = config_of("hpcc, rtt=12.24us, min-rate=1Gb/s");
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.pauses, 0);
}

static vb_time last(void)
{
	vb_time last = 0;
	for (uint32_t i = 0; i < flows.count; i++)
		if (result.flows[i].start + result.flows[i].fct > last)
			last = result.flows[i].start + result.flows[i].fct;
	return last;
}

static void make_tree(void)
{
	make_tree_320(&network, switch_profile_find("hpcc"));
	network.is_whole_ns = true; /* as theirs */
}

#define assert_within_a_percent(time, ns) assert_in_range(time, (ns)*990ll, (ns)*1010ll)

/* One flow stays at eta: 2,000 packets of 87 ns / 0.95, and a round trip. */
static void hpcc__alone_is_as_fast_as_published(void **state)
{
	make_tree();
	add_flow(&flows, 0, 319, 2000000, 0);
	run_hpcc();
	assert_within_a_percent(last(), 195309);
}

static void hpcc__two_to_one_is_as_fast_as_published(void **state)
{
	make_tree();
	add_flow(&flows, 0, 319, 10000000, 0);
	add_flow(&flows, 20, 319, 10000000, 0);
	run_hpcc();
	assert_within_a_percent(last(), 1860529);
}

static void hpcc__sixteen_to_one_is_as_fast_as_published(void **state)
{
	make_tree();
	for (uint32_t i = 0; i < 16; i++)
		add_flow(&flows, i, 319, 500000, 0);
	run_hpcc();
	assert_within_a_percent(last(), 767618);
}

/* Of the last endpoint's link in this time. */
static uint64_t bytes_until(const struct fabric_config *config, vb_time at)
{
	struct fabric_config cut = *config;
	cut.limit = at;
	fabric_result_free(&result);
	run(&cut, &result);
	return result.links[network.endpoints[network.endpoint_count - 1].link ^ 1].bytes;
}

/* Of a link of 100 Gb/s. */
static double used_between(const struct fabric_config *config, vb_time from, vb_time to)
{
	uint64_t bytes = bytes_until(config, to) - bytes_until(config, from);
	return (double)bytes * 80 / (double)(to - from);
}

/* W = W * eta / U + W_AI, so U = eta * W / (W - W_AI), and as U is what all have of the link: U = eta + N * W_AI / T /
 * C. What waits is in U too: of two that is nothing, of many, whose packets meet by chance, up to a packet, or 0.7%. */
static void fixed_point(uint32_t senders, double waiting)
{
	make_star(&network, senders + 1, 100 * GBPS, 3 * VB_US, switch_profile_find("hpcc"));
	for (uint32_t i = 0; i < senders; i++)
		add_flow(&flows, i, senders, 100000000, 0);
	struct fabric_config config = config_of("hpcc, rtt=12.24us");
	const double u = used_between(&config, VB_MS, 3 * VB_MS), expected = 0.95 + senders * 0.0004;
	if (u < expected - waiting - 0.0002 || u > expected + 0.0002)
		fail_msg("%u senders use %f of the link, not %f", senders, u, expected);
	teardown(NULL);
}

static void hpcc__stays_where_what_is_added_is_what_is_taken(void **state)
{
	fixed_point(1, 0);
	fixed_point(2, 0);
	fixed_point(4, 0.007);
	fixed_point(16, 0.007);
}

/* One joins another for 1 MB, and leaves. They share alike meanwhile, after some turns of too little and too much; the
 * link is used as before within two round trips of the end; and who sends a packet through it meets next to no
 * queue. */
static void hpcc__heeds_who_joins_and_who_leaves(void **state)
{
	const vb_time joined = 300 * VB_US, probe = 450 * VB_US;
	make_star(&network, 4, 100 * GBPS, 3 * VB_US, switch_profile_find("hpcc"));
	add_flow(&flows, 0, 3, 100000000, 0);
	add_flow(&flows, 1, 3, 1000000, joined);
	add_flow(&flows, 2, 3, 1000, probe);
	struct fabric_config config = config_of("hpcc, rtt=12.24us");
	assert_in_range(used_between(&config, 100 * VB_US, joined) * 10000, 9480, 9520);
	assert_in_range(used_between(&config, joined + 20 * VB_US, joined + 170 * VB_US) * 10000, 9000, 9600);
	bytes_until(&config, VB_MS);
	const vb_time alone = 4 * 3 * VB_US + 2 * 1090 * 80 + 2 * 88 * 80, left = joined + result.flows[1].fct;
	assert_in_range(
		result.flows[2].fct, alone, alone + 8 * 1090 * 80); /* a twentieth of what the link sends in T */
	assert_in_range(result.flows[1].fct, 186 * VB_US,
		206 * VB_US); /* 2,000 packets of 87.2 ns / 0.95, and a round trip: 196 */
	assert_in_range(used_between(&config, left + 25 * VB_US, left + 225 * VB_US) * 10000, 9400, 9650);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(hpcc__alone_is_as_fast_as_published, teardown),
		cmocka_unit_test_teardown(hpcc__two_to_one_is_as_fast_as_published, teardown),
		cmocka_unit_test_teardown(hpcc__sixteen_to_one_is_as_fast_as_published, teardown),
		cmocka_unit_test_teardown(hpcc__stays_where_what_is_added_is_what_is_taken, teardown),
		cmocka_unit_test_teardown(hpcc__heeds_who_joins_and_who_leaves, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
