/* Traffic with storage: a checkpoint takes as long as the storage nodes' links, by packets and by flows, and input
 * comes in each step. */
#include <errno.h>
#include <math.h>
#include "net/checkpoint_job.h"
#include "net/input_job.h"
#include "nets.h"

#define RATE (400 * GBPS)

static struct network network;
static struct storage_sides sides;
static struct checkpoint_job checkpoint;
static struct input_job input;
static struct fabric_result result;
static const struct switch_profile ideal = { .name = "ideal", .class_count = 1 };

static int teardown(void **state)
{
	checkpoint_job_close(&checkpoint);
	input_job_close(&input);
	storage_sides_close(&sides);
	fabric_result_free(&result);
	network_free(&network);
	return 0;
}

static void open_sides(uint32_t endpoints, uint32_t first_node)
{
	char why[200];
	make_star(&network, endpoints, RATE, VB_US, &ideal);
	assert_int_equal(storage_sides_open(&sides, &(struct hosts){ 0 }, endpoints, first_node, endpoints - 1, 0, 0,
				 why, sizeof(why)),
		0);
}

static void run_job(struct job *job, bool by_flows, uint32_t threads)
{
	fabric_result_free(&result);
	run_service(&network, job, by_flows, threads, &result);
	assert_int_equal(result.operations, job->operations);
}

static void run_checkpoint(const struct checkpoint *of, bool by_flows, uint32_t threads)
{
	char why[200];
	checkpoint_job_close(&checkpoint);
	assert_int_equal(checkpoint_check(of, &sides, why, sizeof(why)), 0);
	assert_int_equal(checkpoint_job_open(&checkpoint, of, &sides), 0);
	run_job(&checkpoint.job, by_flows, threads);
}

static void checkpoint__takes_as_long_as_the_links_of_storage(void **state)
{
	const double rate = 4 * RATE / 8.0 * 4096 / (4096 + 90);
	open_sides(20, 16);
	for (int by_flows = 0; by_flows < 2; by_flows++) {
		run_checkpoint(
			&(struct checkpoint){ .bytes = 1600000000, .message = 1000000, .restores = true }, by_flows, 1);
		expect_seconds(checkpoint_job_stored(&checkpoint), 1.6e9 / rate, 0.01);
		expect_seconds(checkpoint_job_restored(&checkpoint), 3.2e9 / rate, 0.01);
	}
}

/* With more storage than ranks the ranks' links bound it. */
static void checkpoint_of_few_ranks__takes_as_long_as_their_links(void **state)
{
	const double rate = 2 * RATE / 8.0 * 4096 / (4096 + 90);
	open_sides(10, 2);
	run_checkpoint(&(struct checkpoint){ .bytes = 400000000, .message = 1000000, .start = VB_MS }, true, 1);
	expect_seconds(checkpoint_job_stored(&checkpoint), 4e8 / rate, 0.01);
	assert_int_equal(checkpoint_job_restored(&checkpoint), -1);
}

/* Parts that do not divide: all bytes go there and back, and threads change nothing. */
static void checkpoint__has_all_bytes_and_one_result(void **state)
{
	const struct checkpoint of = { .bytes = 1000003, .message = 7001, .restores = true };
	open_sides(10, 7);
	run_checkpoint(&of, false, 1);
	const uint64_t hash = result.hash;
	assert_int_equal(result.payload_bytes, 2 * of.bytes + checkpoint.job.operations / 3 * 64);
	run_checkpoint(&of, false, 4);
	assert_int_equal(result.hash, hash);
}

static void run_input(const struct input *of, uint32_t threads)
{
	char why[200];
	input_job_close(&input);
	assert_int_equal(input_check(of, &sides, why, sizeof(why)), 0);
	assert_int_equal(input_job_open(&input, of, &sides), 0);
	run_job(&input.job, false, threads);
	assert_int_equal(result.payload_bytes, of->bytes * of->steps * sides.rank_count);
}

/* Of more nodes than ranks some send nothing in a step. */
static void input__comes_in_each_step(void **state)
{
	const struct input of = { .bytes = 4096, .steps = 10, .step = VB_MS, .start = 3 * VB_US };
	for (uint32_t nodes = 2; nodes <= 8; nodes += 6) {
		open_sides(4 + nodes, 4);
		run_input(&of, 1);
		const uint64_t hash = result.hash;
		/* Each of two nodes sends two packets of 83.7 ns, by a switch and two links of 1 us. */
		expect_seconds(input_job_slowest(&input), 2e-6 + (nodes == 2 ? 3 : 2) * 4186 * 8 / 400e9, 0.01);
		assert_in_range(result.last_flow, 9 * VB_MS + 5 * VB_US, 9 * VB_MS + 6 * VB_US);
		run_input(&of, 3);
		assert_int_equal(result.hash, hash);
		teardown(NULL);
	}
}

/* ---- Sides ------------------------------------------------------------------------------------------------------- */

/* Hosts of two GPUs with a NIC each: a host with a storage node has no ranks. */
static void hosts_of_storage__have_no_ranks(void **state)
{
	const struct hosts hosts = { .gpus = 2, .nics = 2, .scale_up = RATE };
	char why[200];
	assert_int_equal(storage_sides_open(&sides, &hosts, 8, 3, 4, 0, 0, why, sizeof(why)), 0);
	assert_int_equal(sides.rank_count, 4);
	static const uint32_t ranks[] = { 0, 1, 6, 7 };
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(sides.ranks[i], ranks[i]);
		assert_int_equal(sides.number_of[ranks[i]], i);
	}
	assert_int_equal(sides.nodes[0], 3);
	assert_int_equal(sides.node_of[4], 1);
	assert_int_equal(sides.number_of[4], STORAGE_NONE);
}

static void sides__that_cannot_be_are_refused(void **state)
{
	static const struct {
		uint32_t first_node, last_node, first, count;
		const char *why;
	} wrong[] = { { 6, 8, 0, 0, "storage: endpoints 6-8 of a network that has 0-7" },
		{ 5, 4, 0, 0, "storage: endpoints 5-4" }, { 0, 7, 0, 0, "endpoints: 0 ranks, and 0" },
		{ 6, 7, 2, 5, "endpoints: 5 ranks, and 4" } };
	char why[200];
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(storage_sides_open(&sides, &(struct hosts){ 0 }, 8, wrong[i].first_node,
					 wrong[i].last_node, wrong[i].first, wrong[i].count, why, sizeof(why)),
			-EINVAL);
		assert_ptr_equal(strstr(why, wrong[i].why), why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(checkpoint__takes_as_long_as_the_links_of_storage, teardown),
		cmocka_unit_test_teardown(checkpoint_of_few_ranks__takes_as_long_as_their_links, teardown),
		cmocka_unit_test_teardown(checkpoint__has_all_bytes_and_one_result, teardown),
		cmocka_unit_test_teardown(input__comes_in_each_step, teardown),
		cmocka_unit_test_teardown(hosts_of_storage__have_no_ranks, teardown),
		cmocka_unit_test_teardown(sides__that_cannot_be_are_refused, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
