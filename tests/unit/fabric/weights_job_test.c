/* Weights that go from trainers to replicas: their time on a network without contention, by packets and by flows, and
 * what is refused. */
#include <errno.h>
#include <math.h>
#include "net/weights_job.h"
#include "nets.h"

#define RATE (400 * GBPS)

static struct network network;
static struct weights_job job;
static struct fabric_result result;
static const struct switch_profile ideal = { .name = "ideal", .class_count = 1 };

static int teardown(void **state)
{
	weights_job_close(&job);
	fabric_result_free(&result);
	network_free(&network);
	return 0;
}

static void run_weights(const struct weights *of, bool by_flows, uint32_t threads)
{
	char why[200];
	assert_int_equal(weights_check(of, why, sizeof(why)), 0);
	weights_job_close(&job);
	fabric_result_free(&result);
	assert_int_equal(weights_job_open(&job, of), 0);
	run_service(&network, &job.job, by_flows, threads, &result);
	assert_int_equal(result.operations, weights_messages(of));
	assert_int_equal(result.payload_bytes, (of->bytes + of->rollout) * of->replicas);
}

/* bytes / B + (R - 1) pieces' times: B is the rate of payload. */
static void chain__takes_the_bytes_and_a_piece_for_each_further_replica(void **state)
{
	const double rate = RATE / 8.0 * 4096 / (4096 + 90);
	make_star(&network, 17, RATE, VB_US, &ideal);
	for (uint32_t replicas = 1; replicas <= 16; replicas *= 4)
		for (int by_flows = 0; by_flows < 2; by_flows++) {
			const struct weights of = {
				.trainers = 1, .replicas = replicas, .shards = 1, .bytes = 128000000, .piece = 1000000
			};
			run_weights(&of, by_flows, 1);
			expect_seconds(weights_job_spread(&job), (128e6 + (replicas - 1) * 1e6) / rate, 0.02);
			assert_int_equal(weights_job_back(&job), -1);
		}
}

/* An inner replica sends all twice; the last of seven is three pieces behind the trainer, each at half the rate. */
static void tree__takes_twice_the_bytes(void **state)
{
	const double rate = RATE / 8.0 * 4096 / (4096 + 90);
	const struct weights of = {
		.trainers = 1, .replicas = 7, .shards = 1, .bytes = 128000000, .piece = 1000000, .shape = WEIGHTS_TREE
	};
	make_star(&network, 8, RATE, VB_US, &ideal);
	run_weights(&of, true, 1);
	expect_seconds(weights_job_spread(&job), (256e6 + 3e6) / rate, 0.02);
}

/* Several trainers have a part each, which are for one rank of each replica or for several parts of one; all bytes of
 * weights and rollouts arrive, and nothing is back before its weights are there. */
static void parts__go_to_all_ranks_of_replicas(void **state)
{
	static const struct {
		uint32_t trainers, shards;
	} cuts[] = { { 4, 2 }, { 2, 4 }, { 3, 3 }, { 1, 5 } };
	make_star(&network, 20, RATE, VB_US, &ideal);
	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++)
		for (int shape = WEIGHTS_CHAIN; shape <= WEIGHTS_TREE; shape++) {
			const struct weights of = { .first = 1,
				.trainers = cuts[i].trainers,
				.replicas = 3,
				.shards = cuts[i].shards,
				.bytes = 1000003,
				.piece = 70001,
				.rollout = 5003,
				.shape = (enum weights_shape)shape,
				.start = 5 * VB_US };
			run_weights(&of, false, 1);
			const uint64_t hash = result.hash;
			const vb_time spread = weights_job_spread(&job), back = weights_job_back(&job);
			assert_true(spread > 0 && back > spread);
			run_weights(&of, false, 3);
			assert_int_equal(result.hash, hash);
			assert_int_equal(weights_job_back(&job), back);
		}
}

static void weights__that_cannot_be_are_refused(void **state)
{
	static const struct {
		struct weights of;
		const char *why;
	} wrong[] = {
		{ { .trainers = 0, .replicas = 1, .shards = 1, .bytes = 8, .piece = 1 }, "trainers: none" },
		{ { .trainers = 1, .replicas = 0, .shards = 1, .bytes = 8, .piece = 1 }, "replicas: none" },
		{ { .trainers = 1, .replicas = 1, .shards = 0, .bytes = 8, .piece = 1 }, "tp: none" },
		{ { .trainers = 2, .replicas = 1, .shards = 3, .bytes = 8, .piece = 1 }, "trainers: 2 trainers and 3" },
		{ { .trainers = 4, .replicas = 1, .shards = 1, .bytes = 3, .piece = 1 }, "bytes: fewer" },
		{ { .trainers = 1, .replicas = 1, .shards = 4, .bytes = 8, .piece = 1, .rollout = 3 }, "rollout: " },
		{ { .trainers = 1, .replicas = 1 << 19, .shards = 4, .bytes = 8, .piece = 1 }, "replicas: more" },
		{ { .trainers = 1, .replicas = 64, .shards = 1, .bytes = 16000000000000, .piece = 1 },
			"piece: so small" },
	};
	char why[200];
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(weights_check(&wrong[i].of, why, sizeof(why)), -EINVAL);
		assert_ptr_equal(strstr(why, wrong[i].why), why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(chain__takes_the_bytes_and_a_piece_for_each_further_replica, teardown),
		cmocka_unit_test_teardown(tree__takes_twice_the_bytes, teardown),
		cmocka_unit_test_teardown(parts__go_to_all_ranks_of_replicas, teardown),
		cmocka_unit_test(weights__that_cannot_be_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
