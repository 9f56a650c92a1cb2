/* A run with a front end: a checkpoint takes as long as its links, and the back end sees nothing of it. */
#include "net/checkpoint_job.h"
#include "net/collective_job.h"
#include "net/front_end.h"
#include "net/rank_groups.h"
#include "nets.h"

enum { HOSTS = 4, GPUS = 2, NODES = 2, RANKS = HOSTS * GPUS };

static struct network network;
static struct hosts hosts;
static struct storage_sides sides;
static struct checkpoint_job checkpoint;
static struct collective_job collective;
static struct rank_groups groups;
static struct fabric_result result;
static const struct switch_profile ideal = { .name = "ideal", .class_count = 1 };

static int teardown(void **state)
{
	checkpoint_job_close(&checkpoint);
	collective_job_close(&collective);
	rank_groups_close(&groups);
	storage_sides_close(&sides);
	fabric_result_free(&result);
	network_free(&network);
	return 0;
}

static int setup(void **state)
{
	struct front_end front = { .topology = { .kind = "leaf-spine",
					   .leaves = 3,
					   .spines = 1, /* no hash decides */
					   .host_bits_per_second = 100 * GBPS,
					   .fabric_bits_per_second = 400 * GBPS,
					   .host_delay = VB_US,
					   .fabric_delay = VB_US,
					   .profile = ideal },
		.nics = 1,
		.storage = NODES };
	char why[200];
	make_star(&network, RANKS, 400 * GBPS, VB_US, &ideal);
	hosts = (struct hosts){
		.gpus = GPUS, .nics = GPUS, .scale_up = 900 * GBPS, .scale_up_time = VB_US, .keeps_rails = true
	};
	assert_int_equal(front_end_add(&front, &network, &hosts, why, sizeof(why)), 0);
	assert_int_equal(
		storage_sides_open(&sides, &hosts, network.endpoint_count, 0, NODES - 1, 0, 0, why, sizeof(why)), 0);
	assert_int_equal(rank_groups_open(&groups, &hosts, 0, RANKS), 0);
	return 0;
}

/* Of a new checkpoint, a new allreduce, or both. */
static void run_jobs(bool has_checkpoint, bool has_collective, bool by_flows, uint32_t threads)
{
	static const struct flow_list no_flows;
	struct job *jobs[2];
	uint32_t count = 0;
	checkpoint_job_close(&checkpoint);
	collective_job_close(&collective);
	fabric_result_free(&result);
	assert_int_equal(
		checkpoint_job_open(&checkpoint,
			&(struct checkpoint){ .bytes = 40000000, .message = 1000000, .restores = true }, &sides),
		0);
	assert_int_equal(collective_job_open(&collective,
				 &(struct collective){ .kind = "allreduce",
					 .algorithm = "ring",
					 .bytes = 4000000,
					 .ranks = RANKS,
					 .gpus = GPUS },
				 &groups),
		0);
	if (has_collective)
		jobs[count++] = &collective.job;
	if (has_checkpoint)
		jobs[count++] = &checkpoint.job;
	run(&(struct fabric_config){ .network = &network,
		    .flows = &no_flows,
		    .hosts = hosts,
		    .jobs = jobs,
		    .job_count = count,
		    .seed = 1,
		    .threads = threads,
		    .by_flows = by_flows,
		    .mtu = 4096,
		    .data_overhead = 90,
		    .ack_overhead = 90,
		    .ack_every = 64,
		    .cc = { .algorithm = &vb_cc_none, .max_window = VB_CC_UNLIMITED } },
		&result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.flows_failed, 0);
}

static void checkpoint__takes_as_long_as_the_front_ends_links(void **state)
{
	const double rate = NODES * 100 * GBPS / 8.0 * 4096 / (4096 + 90);
	for (int by_flows = 0; by_flows < 2; by_flows++) {
		run_jobs(true, false, by_flows, 1);
		expect_seconds(checkpoint_job_stored(&checkpoint), 4e7 / rate, 0.02);
	}
}

/* No message goes by links of both networks. */
static void networks__carry_their_own_traffic_alone(void **state)
{
	for (int by_flows = 0; by_flows < 2; by_flows++) {
		run_jobs(true, false, by_flows, 1);
		for (uint32_t i = 0; i < network.link_count; i++)
			if (!network_is_of_front(&network, i))
				assert_int_equal(result.links[i].bytes, 0);
		run_jobs(false, true, by_flows, 1);
		for (uint32_t i = 0; i < network.link_count; i++)
			if (network_is_of_front(&network, i))
				assert_int_equal(result.links[i].bytes, 0);
	}
}

static void collective__is_not_disturbed_by_a_checkpoint(void **state)
{
	for (int by_flows = 0; by_flows < 2; by_flows++) {
		run_jobs(false, true, by_flows, 1);
		const vb_time alone = result.job_ends[0];
		assert_true(alone > 0);
		run_jobs(true, true, by_flows, 1);
		assert_int_equal(result.job_ends[0], alone);
	}
}

static void run__has_one_result_with_any_number_of_threads(void **state)
{
	run_jobs(true, true, false, 1);
	const uint64_t hash = result.hash;
	for (uint32_t threads = 2; threads <= 4; threads++) {
		run_jobs(true, true, false, threads);
		assert_int_equal(result.threads, threads);
		assert_int_equal(result.hash, hash);
	}
}

/* A host's link of the front end is down for good: what its ranks store fails, and the others' is there. */
static void front_link__that_is_down_stops_its_host_alone(void **state)
{
	const struct network_fault down = { .down_at = 1 };
	const uint32_t link = network.endpoints[hosts.front.first].link;
	static const struct flow_list no_flows;
	struct job *job = &checkpoint.job;
	assert_int_equal(network_set_fault(&network, link, &down), 0);
	assert_int_equal(
		checkpoint_job_open(&checkpoint, &(struct checkpoint){ .bytes = 800000, .message = 1000000 }, &sides),
		0);
	run(&(struct fabric_config){ .network = &network,
		    .flows = &no_flows,
		    .hosts = hosts,
		    .jobs = &job,
		    .job_count = 1,
		    .mtu = 4096,
		    .ack_timeout = VB_MS,
		    .retry_count = 2,
		    .cc = { .algorithm = &vb_cc_none, .max_window = VB_CC_UNLIMITED } },
		&result);
	assert_int_equal(result.flows_failed, GPUS);
	for (uint32_t i = 0; i < result.failure_count; i++)
		assert_int_equal(result.failures[i].src, hosts.front.first);
	assert_int_equal(result.payload_bytes, 100000 * (RANKS - GPUS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(checkpoint__takes_as_long_as_the_front_ends_links, setup, teardown),
		cmocka_unit_test_setup_teardown(networks__carry_their_own_traffic_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(collective__is_not_disturbed_by_a_checkpoint, setup, teardown),
		cmocka_unit_test_setup_teardown(run__has_one_result_with_any_number_of_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(front_link__that_is_down_stops_its_host_alone, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
