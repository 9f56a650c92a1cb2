/* Pauses: nothing of a lossless class is lost, nobody waits who need not, and a storm ends. */
#include "fabric/pfc.h"
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

/* Endpoint 0 fills what waits for a port that hardly sends; the pause for it waits for a packet that has just begun to
 * leave towards it, and the delays are such that a packet leaves it at the last moment. */
static uint32_t drops_with_headroom(uint64_t headroom, uint64_t *computed, vb_time off)
{
	const vb_time packet = 1048 * 80, frame = 84 * 80, delay = (24 * packet - frame + 2) / 2;
	struct switch_profile profile = lossless;
	profile.reserved_bytes = 0;
	profile.headroom_bytes = headroom;
	profile.classes[0].limit_bytes = 10 * 1048;
	char why[100];
	make_star(&network, 1, 100 * GBPS, delay, &profile);
	network_add_endpoint(&network, 1, 0);
	network_add_endpoint(&network, 2, 0);
	network_connect(&network, 1, network_switch_node(0), 1000000, VB_US);
	network_connect(&network, 2, network_switch_node(0), 100 * GBPS, VB_US);
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
	/* The first packet leaves at once, ten fill the share: then the pause is due. */
	vb_time due = delay + 11 * packet;
	add_flow(&flows, 0, 1, 100000, 0);
	add_flow(&flows, 2, 0, 50000, due - VB_US - packet + off);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.ack_every = 1000;
	config.limit = 100 * VB_US;
	run(&config, &result);
	*computed = pfc_headroom(&config, 0);
	assert_int_equal(result.pauses, 1);
	assert_int_equal(result.lossless_drops, result.drops);
	uint32_t drops = (uint32_t)result.drops;
	teardown(NULL);
	return drops;
}

static void headroom__is_what_its_link_needs_to_the_byte(void **state)
{
	uint64_t computed;
	for (vb_time off = -40 * 1048; off < 40 * 1048; off += 1048)
		assert_int_equal(drops_with_headroom(0, &computed, off), 0);
	assert_int_equal(drops_with_headroom(0, &computed, -1), 0);
	assert_int_equal(drops_with_headroom(computed, &computed, -1), 0);
	assert_int_equal(drops_with_headroom(computed - 1, &computed, -1), 1);
	assert_int_equal(drops_with_headroom(computed - 1, &computed, 1), 0); /* the pause went first */
}

/* Pauses that hold for a time are said again for as long as it takes. */
static void pause__that_holds_for_a_time_is_renewed(void **state)
{
	struct switch_profile profile = lossless;
	profile.classes[0].limit_bytes = 50000;
	for (unsigned is_timed = 0; is_timed < 2; is_timed++) {
		profile.pause_quanta = is_timed ? 3 * VB_US : 0;
		make_star(&network, 4, 100 * GBPS, VB_US, &profile);
		for (uint32_t i = 0; i < 3; i++)
			add_flow(&flows, i, 3, 500000, 0);
		run_hpcc(1);
		assert_int_equal(result.drops, 0);
		assert_int_equal(result.links[7].lossless_drops, 0);
		assert_true(result.links[0].paused > 0 && result.links[1].pauses > 0);
		assert_true((result.pauses > result.links[1].resumes + result.links[3].resumes + result.links[5].resumes) ==
			is_timed);
		vb_time alone = 1048 * 80 + 2 * 60 * 80 + 4 * VB_US;
		assert_int_equal(result.last_flow, 1500 * 1048 * 80 + alone);
		teardown(NULL);
	}
}

/* One class is paused, and another goes on: acks too. */
static void pause__stops_one_class(void **state)
{
	struct switch_profile profile = lossless;
	profile.class_count = 2;
	profile.classes[0].limit_bytes = 30000;
	profile.classes[1].is_strict = true;
	make_star(&network, 5, 100 * GBPS, VB_US, &profile);
	for (uint32_t i = 0; i < 3; i++)
		add_flow(&flows, i, 3, 500000, 0);
	add_flow(&flows, 4, 0, 500000, 0); /* its acks come from an endpoint that is paused */
	struct fabric_config config = config_hpcc(&network, &flows);
	config.ack_class = 1;
	run(&config, &result);
	assert_int_equal(result.drops, 0);
	assert_true(result.links[0].paused > 0);
	vb_time alone = 501 * 1048 * 80 + 2 * 60 * 80 + 4 * VB_US, acks = 500 * 60 * 80;
	vb_time frames = (vb_time)(result.links[1].pauses + result.links[1].resumes) * 84 * 80;
	assert_in_range(result.flows[3].fct, alone, alone + acks + frames + 2 * 1048 * 80);
}

/* Whatever is drawn, paused, dropped or lost: the same with one thread and with four. */
static void threads__change_nothing(void **state)
{
	struct switch_profile profile = lossless;
	profile.buffer_bytes = 8 << 20;
	profile.class_count = 3;
	profile.classes[0] = (struct class_profile){ .is_lossless = true, .alpha = 0.01, .mark_min = 2000, .mark_max = 40000,
		.mark_ppm = 200000 };
	profile.classes[1] = (struct class_profile){ .alpha = 0.005, .weight = 2 };
	profile.classes[2].is_strict = true;
	profile.pause_quanta = 5 * VB_US;
	make_tree_320(&network, &profile);
	network_set_fault(&network, 4, &(struct network_fault){ .loss_ppm = 10000 });
	network_set_fault(&network, 642,
		&(struct network_fault){ .down_at = 5 * VB_US, .up_at = 9 * VB_US, .flap_period = 20 * VB_US, .detection = VB_US });
	for (uint32_t i = 0; i < 160; i++)
		flow_list_add(&flows, &(struct flow){ .src = i, .dst = i % 4 ? 319 : 160 + i, .bytes = 30000 + i,
			.start = i % 3 * 500 * VB_NS, .after = FLOW_NONE, .traffic_class = i % 2 });
	struct fabric_config config = config_hpcc(&network, &flows);
	config.ack_class = 2;
	config.probe_after = 50 * VB_US;
	uint64_t hash = 0;
	for (uint32_t threads = 1; threads <= 4; threads *= 2) {
		config.threads = threads;
		fabric_result_free(&result);
		run(&config, &result);
		assert_int_equal(result.end, FABRIC_DONE);
		assert_int_equal(result.threads, threads);
		assert_true(result.pauses > 0 && result.drops > 0 && result.lost > 0 && result.marked_packets > 0);
		assert_int_equal(result.lossless_drops, 0);
		assert_true(threads == 1 || result.hash == hash);
		hash = result.hash;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(incast16__ends_when_all_bytes_have_passed, teardown),
		cmocka_unit_test_teardown(incast127__pauses_drops_nothing_and_keeps_the_port_busy, teardown),
		cmocka_unit_test_teardown(headroom__is_what_its_link_needs_to_the_byte, teardown),
		cmocka_unit_test_teardown(pause__that_holds_for_a_time_is_renewed, teardown),
		cmocka_unit_test_teardown(pause__stops_one_class, teardown),
		cmocka_unit_test_teardown(threads__change_nothing, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
