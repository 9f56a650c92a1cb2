/* Pauses: nothing of a lossless class is lost, nobody waits who need not, and a storm ends. */
#include "fabric/pfc.h"
#include "nets.h"

static struct network network;
static struct flow_list flows;
static struct fabric_result result;

/* The switches of the reference runs. */
static const struct switch_profile lossless = { .name = "lossless",
	.buffer_bytes = 32 << 20,
	.flow_control = FLOW_PFC,
	.class_count = 1,
	.classes = { { .is_lossless = true, .alpha = 0.125 } },
	.reserved_bytes = 4096,
	.alpha_bits_per_second = 100 * GBPS,
	.resume_offset = 3072 };

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

/* Endpoint 0 fills what waits for a port that hardly sends: the first packet leaves at once, ten fill the share, and
 * the pause for it is due. It waits for a packet of endpoint 2's that begins to leave towards it off later, or -off
 * earlier. */
static struct fabric_config run_until_paused(
	uint64_t headroom, bool is_whole_ns, vb_time packet, vb_time delay, vb_time off)
{
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
	network.is_whole_ns = is_whole_ns;
	add_flow(&flows, 0, 1, 1000000, 0);
	add_flow(&flows, 2, 0, 50000, delay + 11 * packet - VB_US - packet + off);
	struct fabric_config config = config_hpcc(&network, &flows);
	config.ack_every = 1000;
	config.limit = 200 * VB_US;
	run(&config, &result);
	assert_int_equal(result.pauses, 1);
	assert_int_equal(result.lossless_drops, result.drops);
	return config;
}

/* The delays are such that a packet leaves at the last moment. */
static uint64_t drops_with_headroom(uint64_t headroom, uint64_t *computed, vb_time off)
{
	const vb_time packet = 1048 * 80, frame = 84 * 80, delay = (24 * packet - frame + 2) / 2;
	struct fabric_config config = run_until_paused(headroom, false, packet, delay, off);
	*computed = pfc_headroom(&config, 0);
	uint64_t drops = result.drops;
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

/* A link on which a packet takes whole nanoseconds carries more in the time that a pause needs: of 83.84 ns each 83,
 * so a packet more of each hundred. */
static uint64_t drops_in_whole_ns(uint64_t headroom, uint64_t *computed, vb_time off)
{
	const vb_time packet = 83 * VB_NS;
	struct fabric_config config = run_until_paused(headroom, true, packet, 200 * packet, off);
	*computed = pfc_headroom(&config, 0);
	uint64_t drops = result.drops;
	network.is_whole_ns = false;
	*computed -= headroom ? pfc_headroom(&config, 0) : 0;
	teardown(NULL);
	return drops;
}

static void headroom__in_whole_ns_is_for_more_packets(void **state)
{
	uint64_t whole, more, drops = 0;
	for (vb_time off = -100 * VB_NS; off <= 100 * VB_NS; off += VB_NS)
		assert_int_equal(drops_in_whole_ns(0, &whole, off), 0);
	drops_in_whole_ns(whole, &more, 0);
	assert_true(more >= 4 * 1048); /* of 400 packets; it allows for smaller ones */
	for (vb_time off = -100 * VB_NS; off <= 100 * VB_NS; off += VB_NS)
		drops += drops_in_whole_ns(whole - more, &(uint64_t){ 0 }, off);
	assert_true(drops > 0);
}

/* What is drawn of a link, its delays and its packets. */
struct drawn {
	uint64_t fast, slow;
	uint32_t packet, mtu; /* bytes */
	vb_time delay, slow_delay;
	bool is_cut_through;
};

static struct fabric_config config_drawn(const struct drawn *drawn)
{
	struct fabric_config config = config_hpcc(&network, &flows);
	config.mtu = drawn->mtu;
	config.data_overhead = drawn->packet - drawn->mtu;
	config.ack_every = 100000;
	return config;
}

/* Endpoint 0 is fast, endpoint 1 slow, and what goes to it waits. What comes from it, `before` the pause for endpoint
 * 0 is due, has the wire that the pause needs for as long as can be. */
static uint64_t drops_of(const struct drawn *drawn, vb_time before, uint64_t headroom, uint64_t *computed)
{
	enum { SHARE = 3 };
	const vb_time packet = (vb_time)(drawn->packet * 8000000000000ull / drawn->fast), begin = 10 * VB_MS;
	const uint32_t seen = drawn->is_cut_through ? LINK_HEADER_BYTES : drawn->packet;
	struct switch_profile profile = lossless;
	profile.buffer_bytes = 1 << 30;
	profile.is_cut_through = drawn->is_cut_through;
	profile.reserved_bytes = 0;
	profile.headroom_bytes = headroom;
	profile.classes[0].limit_bytes = (SHARE - 1) * drawn->packet + LINK_HEADER_BYTES;
	char why[100];
	make_star(&network, 1, drawn->fast, drawn->delay, &profile);
	network_add_endpoint(&network, 1, 0);
	network_connect(&network, 1, network_switch_node(0), drawn->slow, drawn->slow_delay);
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
	/* The first packet leaves at once, then the share fills, at last by one that is there as soon as it is seen. */
	vb_time due =
		begin + drawn->delay + SHARE * packet + (vb_time)(LINK_HEADER_BYTES * 8000000000000ull / drawn->fast);
	add_flow(&flows, 0, 1, SHARE * drawn->mtu + LINK_HEADER_BYTES - 48, begin);
	add_flow(&flows, 0, 1, 100000000, begin + SHARE * packet + 1);
	add_flow(&flows, 1, 0, 3 * drawn->mtu,
		due - before - drawn->slow_delay - (vb_time)(seen * 8000000000000ull / drawn->slow));
	struct fabric_config config = config_drawn(drawn);
	config.limit = due + (vb_time)(drawn->packet * 8000000000000ull / drawn->slow) - packet * (SHARE + 1);
	run(&config, &result);
	assert_int_equal(result.pauses, 1);
	assert_int_equal(result.lossless_drops, result.drops);
	*computed = pfc_headroom(&config, 0);
	uint64_t drops = result.drops;
	teardown(NULL);
	return drops;
}

/* Delays such that a packet leaves at the last moment, after `round` packets. */
static void draw(struct drawn *drawn, struct vb_random *random)
{
	*drawn = (struct drawn){ .fast = 100 * GBPS << vb_random_below(random, 3),
		.slow = GBPS / 10 << vb_random_below(random, 2),
		.packet = 300 + vb_random_below(random, 1700),
		.slow_delay = (vb_time)vb_random_below(random, 1000000000),
		.is_cut_through = vb_random_below(random, 2) == 1 };
	drawn->mtu = drawn->packet - 48;
	const vb_time packet = (vb_time)(drawn->packet * 8000000000000ull / drawn->fast);
	vb_time fixed = packet;
	if (drawn->is_cut_through)
		fixed = (vb_time)((drawn->packet - LINK_HEADER_BYTES) * 8000000000000ull / drawn->slow);
	fixed += (vb_time)(84 * 8000000000000ull / drawn->fast);
	vb_time round = (fixed / packet + 1 + (vb_time)vb_random_below(random, 4)) * packet + 2;
	drawn->delay = (round - fixed + 1) / 2;
}

static void headroom__is_to_the_byte_whatever_is_drawn(void **state)
{
	struct vb_random random;
	vb_random_seed(&random, 14);
	for (unsigned i = 0; i < 24; i++) {
		struct drawn drawn;
		uint64_t computed;
		draw(&drawn, &random);
		assert_int_equal(drops_of(&drawn, 1, 0, &computed), 0);
		assert_int_equal(drops_of(&drawn, 1, computed - 1, &computed), 1);
		assert_int_equal(drops_of(&drawn, vb_random_below(&random, 1000000000), 0, &computed), 0);
	}
}

/* Links of any rates, by two switches. */
static void draw_network(struct vb_random *random)
{
	static const uint64_t rates[] = { 1, 10, 25, 56, 100, 400 };
	struct switch_profile profile = lossless;
	char why[200];
	network = (struct network){ 0 };
	profile.reserved_bytes = 0;
	profile.buffer_bytes = 1 << 30;
	profile.classes[0].limit_bytes = 1 + vb_random_below(random, 20000);
	for (unsigned i = 0; i < 2; i++) {
		profile.is_cut_through = vb_random_below(random, 2) == 1;
		network_add_switch(&network, network_add_profile(&network, &profile), 0, NETWORK_NONE);
	}
	network_add_nic(&network, &(struct nic_profile){ .name = "ideal" });
	for (uint32_t i = 0; i < 8; i++) {
		network_add_endpoint(&network, i, 0);
		network_connect(&network, i, network_switch_node(i % 2), rates[vb_random_below(random, 6)] * GBPS,
			vb_random_below(random, 2000000));
	}
	network_connect(&network, network_switch_node(0), network_switch_node(1),
		rates[vb_random_below(random, 6)] * GBPS, vb_random_below(random, 20000000));
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
}

static void nothing_is_lost__whatever_is_drawn(void **state)
{
	struct vb_random random;
	vb_random_seed(&random, 15);
	for (unsigned i = 0; i < 30; i++) {
		draw_network(&random);
		for (uint32_t from = 0; from < 8; from++)
			add_flow(&flows, from, (from + 1 + vb_random_below(&random, 7)) % 8,
				1 + vb_random_below(&random, 100000), vb_random_below(&random, 10000000));
		struct fabric_config config = config_hpcc(&network, &flows);
		config.mtu = 200 + vb_random_below(&random, 3800);
		run(&config, &result);
		assert_int_equal(result.end, FABRIC_DONE);
		assert_int_equal(result.drops, 0);
		assert_true(result.pauses > 0);
		teardown(NULL);
	}
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
		assert_true((result.pauses > result.links[1].resumes + result.links[3].resumes +
						     result.links[5].resumes) == is_timed);
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

/* Nor does an endpoint hold what it has of other classes, nor acks. */
static void pause__of_an_endpoint_stops_one_class(void **state)
{
	struct switch_profile profile = lossless;
	char why[100];
	profile.class_count = 4;
	for (unsigned i = 0; i < 4; i++)
		profile.classes[i] = (struct class_profile){ .is_lossless = true, .limit_bytes = 30000 };
	for (unsigned kind = 0; kind < 4; kind++) {
		profile.pause_quanta = kind & 1 ? 5 * VB_US : 0;
		make_star(&network, 2, 100 * GBPS, VB_US, &profile);
		network_add_endpoint(&network, 2, 0);
		network_connect(&network, 2, network_switch_node(0), 1 * GBPS, VB_US);
		assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
		flow_list_add(
			&flows, &(struct flow){ .src = 0, .dst = 2, .bytes = 1000000, .traffic_class = 3 }); /* 8 ms */
		add_flow(&flows, 0, 1, 5000000, 0);
		add_flow(&flows, 1, 0, 5000000, 0); /* its acks come from endpoint 0 too */
		struct fabric_config config = config_hpcc(&network, &flows);
		config.ack_class = 1;
		config.endpoint = kind & 2 ? FABRIC_IDEAL : FABRIC_ENGINE;
		run(&config, &result);
		assert_int_equal(result.end, FABRIC_DONE);
		assert_int_equal(result.drops, 0);
		assert_true(result.links[0].paused > 7 * VB_MS && result.flows[0].fct > 8 * VB_MS);
		vb_time alone = 5001 * 1048 * 80 + 2 * 60 * 80 + 4 * VB_US, acks = 5000 * 60 * 80;
		for (unsigned i = 1; i <= 2; i++)
			assert_in_range(result.flows[i].fct, alone, alone + acks + 100 * 1048 * 80);
		teardown(NULL);
	}
}

/* Whatever is drawn, paused, dropped or lost: the same with one thread and with four. */
static void threads__change_nothing(void **state)
{
	struct switch_profile profile = lossless;
	profile.buffer_bytes = 8 << 20;
	profile.class_count = 3;
	profile.classes[0] = (struct class_profile){
		.is_lossless = true, .alpha = 0.01, .mark_min = 2000, .mark_max = 40000, .mark_ppm = 200000
	};
	profile.classes[1] = (struct class_profile){ .alpha = 0.005, .weight = 2 };
	profile.classes[2].is_strict = true;
	profile.pause_quanta = 5 * VB_US;
	make_tree_320(&network, &profile);
	network_set_fault(&network, 4, &(struct network_fault){ .loss_ppm = 10000 });
	network_set_fault(&network, 642,
		&(struct network_fault){
			.down_at = 5 * VB_US, .up_at = 9 * VB_US, .flap_period = 20 * VB_US, .detection = VB_US });
	for (uint32_t i = 0; i < 160; i++)
		flow_list_add(&flows, &(struct flow){ .src = i,
					      .dst = i % 4 ? 319 : 160 + i,
					      .bytes = 30000 + i,
					      .start = i % 3 * 500 * VB_NS,
					      .traffic_class = i % 2 });
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
		cmocka_unit_test_teardown(headroom__in_whole_ns_is_for_more_packets, teardown),
		cmocka_unit_test_teardown(headroom__is_to_the_byte_whatever_is_drawn, teardown),
		cmocka_unit_test_teardown(nothing_is_lost__whatever_is_drawn, teardown),
		cmocka_unit_test_teardown(pause__that_holds_for_a_time_is_renewed, teardown),
		cmocka_unit_test_teardown(pause__stops_one_class, teardown),
		cmocka_unit_test_teardown(pause__of_an_endpoint_stops_one_class, teardown),
		cmocka_unit_test_teardown(threads__change_nothing, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
