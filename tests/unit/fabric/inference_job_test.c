/* Inference: one request on a fast and on a slow network, queues before prefill, and batches of decoding. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "net/inference_job.h"
#include "nets.h"

#define RATE (400 * GBPS)

static struct network network;
static struct inference_job job;
static struct inference_requests requests;
static struct fabric_result result;
static const struct switch_profile ideal = { .name = "ideal", .class_count = 1 };

static int teardown(void **state)
{
	inference_job_close(&job);
	inference_requests_free(&requests);
	fabric_result_free(&result);
	network_free(&network);
	return 0;
}

static struct inference_times *run_inference(const struct inference *of, uint64_t rate, bool by_flows, uint32_t threads)
{
	struct inference_times *times = calloc(requests.count, sizeof(*times));
	char why[200];
	inference_job_close(&job);
	fabric_result_free(&result);
	network_free(&network);
	make_star(&network, (uint32_t)inference_ranks(of), rate, 1, &ideal);
	assert_int_equal(inference_check(of, &requests, why, sizeof(why)), 0);
	assert_int_equal(inference_job_open(&job, of, &requests), 0);
	run_service(&network, &job.job, by_flows, threads, &result);
	assert_int_equal(inference_job_times(&job, times), 0);
	return times;
}

static void expect_near(double is, double wanted, double share)
{
	if (fabs(is / wanted - 1) > share)
		fail_msg("%.6g, not %.6g: %+.2f%%", is, wanted, 100 * (is / wanted - 1));
}

/* Three further tokens, whose contexts are 1001, 1002 and 1003. */
static void one_request__takes_its_prefill_and_its_steps(void **state)
{
	const struct inference of = { .prefill = 1,
		.decode = 1,
		.tp = 2,
		.batch = 4,
		.kv_bytes = 1000,
		.one_ps = 1e9,
		.all_ps = 4e9,
		.kv_ps = 1e6 };
	assert_int_equal(inference_requests_make(&requests, 1, 1, 1000, 4, 1), 0);
	requests.list[0].prefill = 7 * VB_MS;
	for (int by_flows = 0; by_flows < 2; by_flows++) {
		struct inference_times *times = run_inference(&of, 100000 * GBPS, by_flows, 1);
		expect_near((double)times[0].first, 7e9, 1e-4);
		assert_int_equal(times[0].last - times[0].first, 3 * VB_MS + 3006 * VB_US);
		free(times);
		/* Each rank has half of 1 MB. */
		times = run_inference(&of, RATE, by_flows, 1);
		expect_near((double)(times[0].first - 7 * VB_MS), 5e5 / (RATE / 8.0 * 4096 / 4186) * VB_S, 0.01);
		free(times);
	}
}

/* Mean wait of M/D/1: rho D / (2 (1 - rho)). */
static void queue_before_prefill__is_that_of_a_server_with_fixed_times(void **state)
{
	const struct inference of = { .prefill = 1, .decode = 1, .tp = 1, .batch = 1 };
	for (double load = 0.3; load < 0.9; load += 0.25) {
		double sum = 0;
		inference_requests_free(&requests);
		assert_int_equal(inference_requests_make(&requests, 400000, (vb_time)(VB_MS / load), 1, 1, 7), 0);
		for (uint32_t i = 0; i < requests.count; i++)
			requests.list[i].prefill = VB_MS;
		inference_job_close(&job);
		assert_int_equal(inference_job_open(&job, &of, &requests), 0);
		for (uint32_t i = 0; i < requests.count; i++)
			sum += (double)(job.ready[i] - requests.list[i].arrival - VB_MS);
		expect_near(sum / requests.count, load / (2 * (1 - load)) * VB_MS, 0.05);
	}
}

/* With two groups the second request waits for nobody, and the third for the first that is free. */
static void prefill__takes_the_group_that_is_free_first(void **state)
{
	const struct inference of = { .prefill = 2, .decode = 3, .tp = 1, .batch = 1, .start = 5 };
	assert_int_equal(inference_requests_make(&requests, 3, 0, 1, 1, 1), 0);
	requests.list[0].prefill = 30;
	requests.list[1].prefill = 20;
	requests.list[2].prefill = 40;
	assert_int_equal(inference_job_open(&job, &of, &requests), 0);
	assert_int_equal(job.ready[0], 35);
	assert_int_equal(job.ready[1], 25);
	assert_int_equal(job.ready[2], 65);
}

/* Steps of 10 with one request, 20 with two or more; the third joins when a place is free, between steps. */
static void decode__has_a_batch_that_requests_join_and_leave(void **state)
{
	const struct inference of = {
		.prefill = 1, .decode = 1, .tp = 1, .batch = 2, .one_ps = 10, .all_ps = 20, .kv_bytes = 1
	};
	static const vb_time came[] = { 100, 105, 106, 107 };
	static const uint32_t outputs[] = { 5, 3, 2, 1 };
	static const struct inference_times wanted[] = { { 100, 170 }, { 105, 150 }, { 106, 170 }, { 107, 107 } };
	struct inference_times times[4];
	assert_int_equal(inference_requests_make(&requests, 4, 0, 1, 1, 1), 0);
	assert_int_equal(inference_job_open(&job, &of, &requests), 0);
	for (uint32_t i = 0; i < 4; i++) {
		requests.list[i].output = outputs[i];
		job.came[i] = came[i];
	}
	assert_int_equal(inference_job_times(&job, times), 0);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(times[i].first, wanted[i].first);
		assert_int_equal(times[i].last, wanted[i].last);
	}
	job.came[1] = -1;
	assert_int_equal(inference_job_times(&job, times), 0);
	assert_int_equal(times[1].last, -1);
	assert_int_equal(times[0].last, 150);
}

static void result__is_the_same_with_several_threads(void **state)
{
	const struct inference of = { .prefill = 3,
		.decode = 2,
		.tp = 2,
		.batch = 8,
		.kv_bytes = 1001,
		.one_ps = 1e6,
		.all_ps = 1e7,
		.kv_ps = 10 };
	uint64_t hash = 0;
	assert_int_equal(inference_requests_make(&requests, 200, 10 * VB_US, 77, 5, 3), 0);
	for (uint32_t i = 0; i < requests.count; i++)
		requests.list[i].prefill = 25 * VB_US;
	for (uint32_t threads = 1; threads <= 4; threads *= 2) {
		struct inference_times *times = run_inference(&of, RATE, false, threads);
		for (uint32_t i = 0; i < requests.count; i++)
			assert_true(times[i].first > job.ready[i] && times[i].last > times[i].first);
		assert_true(threads == 1 || result.hash == hash);
		hash = result.hash;
		free(times);
	}
	assert_int_equal(result.payload_bytes, 200 * 77 * 1001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(one_request__takes_its_prefill_and_its_steps, teardown),
		cmocka_unit_test_teardown(queue_before_prefill__is_that_of_a_server_with_fixed_times, teardown),
		cmocka_unit_test_teardown(prefill__takes_the_group_that_is_free_first, teardown),
		cmocka_unit_test_teardown(decode__has_a_batch_that_requests_join_and_leave, teardown),
		cmocka_unit_test_teardown(result__is_the_same_with_several_threads, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
