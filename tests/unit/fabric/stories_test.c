/* What is told of pauses is what happened, and telling changes nothing. */
#include "nets.h"

static struct network network;
static struct flow_list flows;
static struct fabric_result result;

static const struct switch_profile lossless = { .name = "lossless",
	.buffer_bytes = 4 << 20,
	.flow_control = FLOW_PFC,
	.class_count = 1,
	.classes = { { .is_lossless = true, .limit_bytes = 50000 } },
	.reserved_bytes = 4096,
	.resume_offset = 3072 };

static int teardown(void **state)
{
	network_free(&network);
	flow_list_free(&flows);
	fabric_result_free(&result);
	return 0;
}

/* Endpoints 0 to 2 on switch 0, 3 to 5 on switch 1, and one link between them. */
static void make_two(void)
{
	char why[100];
	network_add_profile(&network, &lossless);
	network_add_nic(&network, &(struct nic_profile){ .name = "ideal" });
	for (uint32_t i = 0; i < 2; i++)
		network_add_switch(&network, 0, 0, NETWORK_NONE);
	for (uint32_t i = 0; i < 6; i++)
		network_connect(
			&network, network_add_endpoint(&network, i, 0), network_switch_node(i / 3), 100 * GBPS, VB_US);
	network_connect(&network, network_switch_node(0), network_switch_node(1), 100 * GBPS, VB_US);
	assert_int_equal(network_finish(&network, why, sizeof(why)), 0);
}

static void run_told(bool tells, uint32_t threads)
{
	struct fabric_config config = config_hpcc(&network, &flows);
	config.tells_pauses = tells;
	config.threads = threads;
	fabric_result_free(&result);
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
}

static const struct fabric_pauses *told_of(uint32_t link)
{
	for (uint32_t i = 0; i < result.pauses_told_count; i++)
		if (result.pauses_told[i].link == link)
			return &result.pauses_told[i];
	fail_msg("nothing is told of link %u", link);
	return NULL;
}

/* 0, 3 and 4 send to 5, and 1 to nobody who is busy, but behind 0 on the link between the switches. */
static void run_victim(uint32_t threads)
{
	make_two();
	add_flow(&flows, 0, 5, 500000, 0);
	add_flow(&flows, 3, 5, 500000, 0);
	add_flow(&flows, 4, 5, 500000, 0);
	add_flow(&flows, 1, 2, 10000, 0);
	add_flow(&flows, 1, 3, 500000, 0);
	run_told(true, threads);
}

static void story__says_what_was_queued_and_for_what(void **state)
{
	run_victim(1);
	const uint32_t between =
		network.links[network.endpoints[5].link].reverse + 1; /* the last that was made before */
	const uint32_t to_5 = network.links[network.endpoints[5].link].reverse;
	const struct fabric_pauses *of_3 = told_of(network.endpoints[3].link),
				   *of_1 = told_of(network.endpoints[1].link);
	const struct fabric_pauses *of_between = told_of(between);
	assert_true(of_3->count > 0);
	assert_in_range(of_3->first.bytes, of_3->first.threshold, of_3->first.threshold + 1048);
	assert_int_equal(of_3->first.threshold, 50000 + 4096);
	assert_true(of_3->nearest.bytes >= of_3->first.bytes);
	assert_int_equal(of_3->queue_count, 1);
	assert_int_equal(of_3->queues[0].link, to_5);
	assert_int_equal(of_3->queues[0].bytes, of_3->first.bytes);
	assert_false(of_3->queues[0].is_stopped);
	assert_int_equal(of_3->flow_count, 1);
	assert_true(of_3->flows[0].src == 3 && of_3->flows[0].dst == 5 && of_3->flows[0].bytes == of_3->first.bytes);
	assert_true(of_3->cause_count == 1 && of_3->causes[0].link == to_5 && of_3->causes[0].count == of_3->count);
	assert_true(of_between->count > 0 && of_between->causes[0].link == to_5 && !of_between->causes[0].is_stopped);
	assert_true(of_between->flows[0].src == 0 && of_between->flows[0].dst == 5);
	bool is_behind = false;
	for (uint32_t i = 0; i < of_1->cause_count; i++)
		is_behind |= of_1->causes[i].link == between && of_1->causes[i].is_stopped;
	assert_true(of_1->count > 0 && is_behind);
}

static void stories__add_up(void **state)
{
	run_victim(1);
	uint64_t pauses = 0;
	for (uint32_t i = 0; i < result.pauses_told_count; i++) {
		const struct fabric_pauses *told = &result.pauses_told[i];
		uint64_t causes = 0;
		vb_time stood = result.links[told->link].paused, frames = 2 * VB_US * told->count;
		pauses += told->count;
		for (uint32_t k = 0; k < told->cause_count; k++)
			causes += told->causes[k].count;
		assert_true(causes == told->count && told->longest <= told->lasted);
		assert_true(told->lasted <= stood + frames && stood <= told->lasted + frames);
	}
	assert_true(pauses > 0 && pauses == result.pauses);
}

static void telling__changes_nothing_and_is_the_same_with_threads(void **state)
{
	run_victim(1);
	uint64_t hash = result.hash;
	uint32_t count = result.pauses_told_count;
	struct fabric_pauses *kept = calloc(count, sizeof(*kept));
	memcpy(kept, result.pauses_told, count * sizeof(*kept));
	run_told(false, 1);
	assert_true(result.hash == hash && result.pauses_told_count == 0 && !result.pauses_told);
	run_told(true, 2);
	assert_int_equal(result.threads, 2);
	assert_int_equal(result.pauses_told_count, count);
	for (uint32_t i = 0; i < count; i++) {
		kept[i].causes = result.pauses_told[i].causes;
		assert_memory_equal(&kept[i], &result.pauses_told[i], sizeof(kept[i]));
	}
	free(kept);
}

static void nearest__is_told_where_nobody_is_paused(void **state)
{
	make_two();
	add_flow(&flows, 0, 1, 20000, 0);
	add_flow(&flows, 2, 1, 20000, 0);
	run_told(true, 1);
	assert_int_equal(result.pauses, 0);
	const struct fabric_pauses *told = told_of(network.endpoints[2].link);
	assert_int_equal(told->count, 0);
	assert_in_range(told->nearest.bytes, 9 * 1048, 12 * 1048); /* half of what it sent has left as its end comes */
	assert_int_equal(told->nearest.threshold, 54096);
	assert_int_equal(told->lasted, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(story__says_what_was_queued_and_for_what, teardown),
		cmocka_unit_test_teardown(stories__add_up, teardown),
		cmocka_unit_test_teardown(telling__changes_nothing_and_is_the_same_with_threads, teardown),
		cmocka_unit_test_teardown(nearest__is_told_where_nobody_is_paused, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
