/* Switches that cut packets without room: what is left passes the queue, and the sender hears of it a round trip later.
 */
#include <errno.h>
#include "nets.h"

static struct network network;
static struct flow_list flows;
static struct fabric_result result;

enum { PACKET = 1048, CUT = 64, ROOM = 10 * PACKET };

static int teardown(void **state)
{
	network_free(&network);
	flow_list_free(&flows);
	fabric_result_free(&result);
	return 0;
}

/* A port has room for ten packets, and 64 KiB for what was cut. */
static struct switch_profile trimming(void)
{
	return (struct switch_profile){ .name = "trimming",
		.port_bytes = ROOM,
		.trim_bytes = CUT,
		.class_count = 2,
		.classes = { { .weight = 1 }, { .is_strict = true } } };
}

static struct fabric_config config_of(void)
{
	struct fabric_config config = config_hpcc(&network, &flows);
	config.ack_timeout = 10 * VB_MS;
	config.ack_class = 1;
	config.cc.max_window = 0;
	return config;
}

/* So many senders, of so many packets each at once, to the last endpoint of a star. */
static struct fabric_config incast(const struct switch_profile *profile, uint32_t senders, uint32_t packets)
{
	make_star(&network, senders + 1, 100 * GBPS, VB_US, profile);
	for (uint32_t i = 0; i < senders; i++)
		add_flow(&flows, i, senders, packets * 1000, 0);
	return config_of();
}

static uint32_t last_link(uint32_t senders)
{
	return 2 * senders + 1;
}

/* A flow of so many packets to a port that is ten times slower than what comes. */
static struct fabric_config slow_port(const struct switch_profile *profile, uint32_t packets)
{
	make_star(&network, 2, 100 * GBPS, VB_US, profile);
	network.links[last_link(1)].bits_per_second = 10 * GBPS;
	add_flow(&flows, 0, 1, packets * 1000, 0);
	return config_of();
}

/* One packet is on the wire, one has left meanwhile, ten wait: of thirteen the last has no room. Where it is dropped
 * nothing comes behind it, and the sender waits for its timeout. */
static void trim__tells_of_a_lost_tail_without_a_timeout(void **state)
{
	struct switch_profile profile = trimming();
	struct fabric_config config = slow_port(&profile, 13);
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_failed, 0);
	assert_true(result.trims > 0);
	assert_int_equal(result.trims, result.links[last_link(1)].trims);
	assert_int_equal(result.timeouts, 0);
	assert_true(result.naks > 0);
	assert_true(result.resent_packets >= result.trims);
	assert_in_range(result.last_flow, 0, 50 * VB_US);
	teardown(NULL);
	profile.trim_bytes = 0;
	config = slow_port(&profile, 13);
	run(&config, &result);
	assert_int_equal(result.trims, 0);
	assert_int_equal(result.drops, 1);
	assert_int_equal(result.timeouts, 1);
	assert_true(result.last_flow > 10 * VB_MS);
}

struct seen {
	uint32_t cut, first_cut_psn;
	uint32_t whole; /* a bit for each PSN that left whole, modulo 32 */
	bool is_passed; /* it left before a whole one of a lower PSN */
};

static void note(void *user, const struct fabric_capture *capture)
{
	struct seen *seen = user;
	if (!capture->packet || capture->packet->payload_length == 0)
		return;
	if (!capture->is_cut) {
		assert_int_equal(capture->wire_bytes, PACKET);
		seen->is_passed |= seen->cut && vb_psn_diff(capture->packet->psn, seen->first_cut_psn) < 0;
		seen->whole |= 1u << capture->packet->psn % 32;
		return;
	}
	assert_int_equal(capture->wire_bytes, CUT);
	assert_int_equal(capture->packet->payload_length, 1000);
	assert_int_equal(capture->path.traffic_class >> 5, 1);
	if (seen->cut++ == 0)
		seen->first_cut_psn = capture->packet->psn;
}

static void trim__what_is_left_passes_what_is_queued(void **state)
{
	const struct switch_profile profile = trimming();
	struct seen seen = { 0 };
	const uint32_t link = last_link(1);
	struct fabric_config config = slow_port(&profile, 13);
	config.captured_links = &link;
	config.captured_count = 1;
	config.on_packet = note;
	config.user = &seen;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.drops, 0);
	assert_true(seen.is_passed);
	assert_int_equal(__builtin_popcount(seen.whole), 13); /* what was cut is no delivery */
	assert_int_equal(seen.cut, result.trims);
}

static void trim__what_is_left_is_dropped_where_its_own_queue_is_full(void **state)
{
	struct switch_profile profile = trimming();
	profile.classes[1].limit_bytes = CUT;
	struct fabric_config config = incast(&profile, 16, 20);
	run(&config, &result);
	assert_true(result.drops > 0);
	assert_true(result.trims > 0);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_failed, 0);
}

/* Twenty packets wait in the highest class, which goes first, and eight in the other. */
static void trim__takes_no_room_of_the_port_from_data(void **state)
{
	const struct switch_profile profile = trimming();
	make_star(&network, 3, 100 * GBPS, VB_US, &profile);
	network.links[last_link(2)].bits_per_second = 10 * GBPS;
	flow_list_add(&flows, &(struct flow){ .src = 0, .dst = 2, .bytes = 20000, .traffic_class = 1 });
	add_flow(&flows, 1, 2, 8000, VB_US);
	struct fabric_config config = config_of();
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_true(result.links[last_link(2)].most_queued > 20 * PACKET);
	assert_int_equal(result.drops + result.trims, 0);
}

/* Half of the buffer is for one queue. What is cut takes nothing of it. */
static void trim__its_queue_is_beside_the_buffer(void **state)
{
	struct switch_profile profile = trimming();
	profile.port_bytes = 0;
	profile.buffer_bytes = ROOM;
	struct fabric_config config = incast(&profile, 8, 20);
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.drops, 0);
	assert_true(result.trims > 0);
	assert_in_range(result.links[last_link(8)].most_queued, ROOM / 2, ROOM + 160 * CUT);
}

static void trim__answers_and_data_of_the_highest_class_are_never_cut(void **state)
{
	struct switch_profile profile = trimming();
	profile.classes[1].limit_bytes = ROOM + 2 * CUT;
	make_star(&network, 5, 100 * GBPS, VB_US, &profile);
	for (uint32_t i = 0; i < 4; i++)
		flow_list_add(&flows, &(struct flow){ .src = i, .dst = 4, .bytes = 20000, .traffic_class = 1 });
	struct fabric_config config = config_of();
	run(&config, &result);
	assert_int_equal(result.trims, 0);
	assert_true(result.drops > 0);
}

/* Payloads of 60 bytes: cut, they would be no shorter. */
static void trim__short_packets_are_dropped(void **state)
{
	struct switch_profile profile = trimming();
	profile.port_bytes = 500;
	make_star(&network, 9, 100 * GBPS, VB_US, &profile);
	for (uint32_t i = 0; i < 8; i++)
		add_flow(&flows, i, 8, 60, 0);
	struct fabric_config config = config_of();
	run(&config, &result);
	assert_int_equal(result.trims, 0);
	assert_true(result.drops > 0);
}

static void trim__counts_as_lost_for_ideal_endpoints(void **state)
{
	const struct switch_profile profile = trimming();
	struct fabric_config config = incast(&profile, 4, 20);
	config.endpoint = FABRIC_IDEAL;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_failed, 0);
	assert_true(result.trims > 0);
	assert_true(result.resent_packets >= result.trims);
	assert_int_equal(result.payload_bytes, 4 * 20000);
}

/* Also over several switches, and with a mailbox between shards. */
static void trim__is_the_same_with_any_number_of_threads(void **state)
{
	struct switch_profile profile = trimming();
	uint64_t hash = 0;
	profile.port_bytes = 4 * ROOM;
	for (uint32_t threads = 1; threads <= 4; threads++) {
		make_tree_320(&network, &profile);
		for (uint32_t i = 1; i < 64; i++)
			add_flow(&flows, i * 5, 0, 30000, i * VB_NS);
		struct fabric_config config = config_of();
		config.threads = threads;
		run(&config, &result);
		assert_int_equal(result.end, FABRIC_DONE);
		assert_int_equal(result.flows_failed, 0);
		assert_true(result.trims > 0);
		assert_true(threads == 1 || result.hash == hash);
		hash = result.hash;
		teardown(NULL);
	}
}

static void refused(const struct switch_profile *profile, enum fabric_endpoint endpoint, const char *says)
{
	char why[200] = "";
	struct fabric_config config = incast(profile, 2, 1);
	config.endpoint = endpoint;
	assert_int_equal(fabric_run(&config, &result, why, sizeof(why)), -EINVAL);
	if (!strstr(why, says))
		fail_msg("\"%s\" does not say \"%s\"", why, says);
	teardown(NULL);
}

static void trim__needs_a_strict_class_for_what_is_left(void **state)
{
	struct switch_profile profile = trimming();
	refused(&profile, FABRIC_TCP, "TCP");
	profile.trim_bytes = 63;
	refused(&profile, FABRIC_ENGINE, "less than 64 bytes");
	profile = trimming();
	profile.classes[1].is_strict = false;
	refused(&profile, FABRIC_ENGINE, "must be strict");
	profile = trimming();
	profile.class_count = 1;
	refused(&profile, FABRIC_ENGINE, "must be strict");
	profile = trimming();
	profile.port_bytes = 0;
	profile.flow_control = FLOW_PFC;
	profile.classes[1].is_lossless = true;
	refused(&profile, FABRIC_ENGINE, "must not be lossless");
	profile.flow_control = FLOW_CREDITS;
	profile.credit_bytes = 1 << 20;
	refused(&profile, FABRIC_ENGINE, "credits");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(trim__tells_of_a_lost_tail_without_a_timeout, teardown),
		cmocka_unit_test_teardown(trim__what_is_left_passes_what_is_queued, teardown),
		cmocka_unit_test_teardown(trim__what_is_left_is_dropped_where_its_own_queue_is_full, teardown),
		cmocka_unit_test_teardown(trim__takes_no_room_of_the_port_from_data, teardown),
		cmocka_unit_test_teardown(trim__its_queue_is_beside_the_buffer, teardown),
		cmocka_unit_test_teardown(trim__answers_and_data_of_the_highest_class_are_never_cut, teardown),
		cmocka_unit_test_teardown(trim__short_packets_are_dropped, teardown),
		cmocka_unit_test_teardown(trim__counts_as_lost_for_ideal_endpoints, teardown),
		cmocka_unit_test_teardown(trim__is_the_same_with_any_number_of_threads, teardown),
		cmocka_unit_test_teardown(trim__needs_a_strict_class_for_what_is_left, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
