/* Pauses: nothing of a lossless class is lost, nobody waits who need not, and a storm ends. */
#include "nets.h"

static struct network network;
static struct flow_list flows;
static struct fabric_result result;

/* The switches of the reference runs. */
static const struct switch_profile lossless = { .name = "lossless", .buffer_bytes = 32 << 20, .flow_control = FLOW_PFC,
	.class_count = 1, .classes = { { .is_lossless = true, .alpha = 0.125 } }, .reserved_bytes = 4096,
	.alpha_bits_per_second = 100 * GBPS, .resume_offset = 3072 };

static int teardown(void **state)
{
	network_free(&network);
	flow_list_free(&flows);
	fabric_result_free(&result);
	return 0;
}

static void run_hpcc(uint32_t threads)
{
	struct fabric_config config = config_hpcc(&network, &flows);
	config.threads = threads;
	fabric_result_free(&result);
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_failed, 0);
}

static const vb_time round_320 = 4 * 1048 * 20 + 1048 * 80 + 2 * 60 * 80 + 4 * 60 * 20 + 12 * VB_US;

/* The last port never rests, pauses or not. */
static void incast16__ends_when_all_bytes_have_passed(void **state)
{
	make_tree_320(&network, &lossless);
	for (uint32_t i = 0; i < 16; i++)
		add_flow(&flows, i, 319, 500000, 0);
	run_hpcc(1);
	assert_int_equal(result.last_flow, 8000 * 1048 * 80 + round_320);
	assert_int_equal(result.last_flow / VB_NS, 682902);
	assert_int_equal(result.drops, 0);
}

static void incast127__pauses_drops_nothing_and_keeps_the_port_busy(void **state)
{
	make_tree_320(&network, &lossless);
	for (uint32_t i = 0; i < 127; i++)
		add_flow(&flows, i, 319, 2000000, 0);
	run_hpcc(1);
	assert_true(result.pauses > 0);
	assert_int_equal(result.drops, 0);
	assert_int_equal(result.last_flow, 254000ll * 1048 * 80 + round_320);
	assert_int_equal(result.last_flow / (100 * VB_NS), 213075);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(incast16__ends_when_all_bytes_have_passed, teardown),
		cmocka_unit_test_teardown(incast127__pauses_drops_nothing_and_keeps_the_port_busy, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
