/* The path that is told of a message is the one that its packets took. */
#include <stdlib.h>
#include "net/collective_job.h"
#include "net/route.h"
#include "nets.h"

enum { HOSTS = 8, SPINES = 4, PACKETS = 100 };

static struct network network;
static struct routes *routes;
static struct collective_job job;
static struct rank_groups groups;
static struct job *jobs[] = { &job.job };
static const struct flow_list no_flows;

static int teardown(void **state)
{
	collective_job_close(&job);
	rank_groups_close(&groups);
	routes_free(routes);
	network_free(&network);
	return 0;
}

static void open_leaves(enum routing routing)
{
	make_two_leaves(&network, HOSTS, SPINES, 100 * GBPS, routing);
	routes = routes_make(&network);
	assert_non_null(routes);
}

/* Each rank sends PACKETS packets to each other: of a link, all messages by it, and some acks. */
static void expect_paths(enum fabric_endpoint endpoint, uint64_t seed, uint32_t threads)
{
	const struct collective all = { .kind = "alltoall", .ranks = 2 * HOSTS, .bytes = 2 * HOSTS * PACKETS * 1000 };
	struct fabric_config config = config_hpcc(&network, &no_flows);
	struct fabric_result result;
	uint64_t *packets = calloc(network.link_count, sizeof(*packets));
	assert_non_null(packets);
	collective_job_close(&job);
	rank_groups_close(&groups);
	assert_int_equal(rank_groups_open(&groups, &(struct hosts){ 0 }, 0, all.ranks), 0);
	assert_int_equal(collective_job_open(&job, &all, &groups), 0);
	config.jobs = jobs;
	config.job_count = 1;
	config.endpoint = endpoint;
	config.seed = seed;
	config.threads = threads;
	config.ack_every = PACKETS;
	config.tells_messages = true;
	run(&config, &result);
	assert_int_equal(result.end, FABRIC_DONE);
	assert_int_equal(result.resent_packets, 0);
	for (uint64_t i = 0; i < result.message_count; i++) {
		uint32_t links[FABRIC_PATH];
		const uint32_t count = fabric_path(&config, routes, &result.messages[i], links);
		assert_int_equal(count, result.messages[i].src / HOSTS == result.messages[i].dst / HOSTS ? 2 : 4);
		assert_int_equal(links[0], network.endpoints[result.messages[i].src].link);
		assert_int_equal(network.links[links[count - 1]].to, result.messages[i].dst);
		for (uint32_t k = 0; k < count; k++)
			packets[links[k]] += PACKETS;
	}
	for (uint32_t i = 0; i < network.link_count; i++)
		assert_in_range(result.links[i].packets, packets[i], packets[i] + PACKETS - 1);
	free(packets);
	fabric_result_free(&result);
}

static void path__is_the_one_that_was_taken(void **state)
{
	open_leaves(ROUTING_ECMP);
	for (uint32_t i = 0; i < 4; i++) {
		expect_paths(FABRIC_ENGINE, i, 1 + i % 2);
		expect_paths(FABRIC_IDEAL, i, 1);
	}
}

static void path__of_packets_that_are_sprayed_is_not_known(void **state)
{
	uint32_t links[FABRIC_PATH];
	open_leaves(ROUTING_SPRAY);
	const struct fabric_config config = config_hpcc(&network, &no_flows);
	assert_int_equal(fabric_path(&config, routes, &(struct fabric_message){ .from = 0, .to = HOSTS }, links), 0);
	assert_int_equal(fabric_path(&config, routes, &(struct fabric_message){ .from = 0, .to = 1 }, links), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(path__is_the_one_that_was_taken, teardown),
		cmocka_unit_test_teardown(path__of_packets_that_are_sprayed_is_not_known, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
