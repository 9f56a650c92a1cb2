/* What is captured of a run: everything that leaves, when its last bit has left, in order of time. */
#include "../unit.h"
#include "fabric/fabric.h"

enum { FLOW_BYTES = 20000, MTU = 4096 };

static struct network network;
static struct flow_list flows;

struct told {
	vb_time at, last;
	uint32_t data, acks, of_link[4];
	bool is_ordered, is_addressed;
};

static void on_packet(void *user, const struct fabric_capture *seen)
{
	struct told *told = user;
	struct vb_gid sender = fabric_gid(seen->packet->payload_length ? 0 : 1);
	told->is_ordered = told->is_ordered && seen->at >= told->last;
	told->is_addressed =
		told->is_addressed && vb_gid_equal(&seen->path.src, &sender) && seen->path.src_port >= 0xC000;
	if (told->at == 0)
		told->at = seen->at;
	told->last = seen->at;
	if (seen->packet->payload_length)
		told->data++;
	else
		told->acks++;
	told->of_link[seen->link]++;
}

/* Two endpoints on a switch: links 0 and 1 are the first's, there and back, 2 and 3 the second's. */
static int set_up(void **state)
{
	const struct switch_profile profile = { .class_count = 1 };
	const struct nic_profile nic = { 0 };
	const struct flow flow = { .src = 0, .dst = 1, .bytes = FLOW_BYTES };
	char why[200];
	uint32_t profile_index = network_add_profile(&network, &profile), nic_index = network_add_nic(&network, &nic);
	network_add_switch(&network, profile_index, 0, NETWORK_NONE);
	for (uint32_t i = 0; i < 2; i++)
		network_connect(&network, network_add_endpoint(&network, i, nic_index), network_switch_node(0),
			100000000000u, VB_US);
	return network_finish(&network, why, sizeof(why)) || flow_list_add(&flows, &flow);
}

static int tear_down(void **state)
{
	network_free(&network);
	flow_list_free(&flows);
	return 0;
}

static struct told run(const uint32_t *links, uint32_t count, uint64_t *hash)
{
	struct told told = { .is_ordered = true, .is_addressed = true };
	struct fabric_result result;
	const struct fabric_config config = { .network = &network,
		.flows = &flows,
		.seed = 1,
		.threads = 2,
		.cc = { .algorithm = &vb_cc_none, .max_window = VB_CC_UNLIMITED },
		.mtu = MTU,
		.data_overhead = 48,
		.ack_overhead = 60,
		.captured_links = links,
		.captured_count = count,
		.on_packet = on_packet,
		.user = &told };
	char why[200];
	assert_int_equal(fabric_run(&config, &result, why, sizeof(why)), 0);
	assert_int_equal(result.end, FABRIC_DONE);
	*hash = result.hash;
	fabric_result_free(&result);
	return told;
}

static void taps__tell_all_that_leaves_in_order(void **state)
{
	static const uint32_t links[] = { 0, 1, 2, 3 };
	uint64_t hash, without;
	struct told told = run(links, COUNT_OF(links), &hash);
	assert_int_equal(told.data, 2 * 5); /* on two links */
	assert_int_equal(told.acks, 2 * 5);
	for (unsigned i = 0; i < COUNT_OF(links); i++)
		assert_int_equal(told.of_link[i], 5);
	assert_true(told.is_ordered && told.is_addressed);
	run(NULL, 0, &without);
	assert_true(hash == without); /* who looks on changes nothing */
}

static void taps__of_one_link_tell_when_the_last_bit_has_left(void **state)
{
	static const uint32_t links[] = { 0 };
	uint64_t hash;
	struct told told = run(links, COUNT_OF(links), &hash);
	assert_int_equal(told.at, (MTU + 48) * 80); /* 80 ps a byte */
	assert_int_equal(told.last, (FLOW_BYTES + 5 * 48) * 80);
	assert_int_equal(told.of_link[0], 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(taps__tell_all_that_leaves_in_order),
		cmocka_unit_test(taps__of_one_link_tell_when_the_last_bit_has_left),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
