/* The critical path of a job: what made it as long as it was. The records are given. */
#include "net/job_file.h"
#include "sim/critical_path.h"
#include "../unit.h"

static struct graph graph;
static struct graph_job job;
static struct critical_path path;

static int teardown(void **state)
{
	critical_path_free(&path);
	graph_job_close(&job);
	graph_free(&graph);
	return 0;
}

static void add(uint32_t rank, enum graph_kind kind, uint32_t peer)
{
	struct graph_operation operation = { .rank = rank, .kind = (uint8_t)kind, .stream = GRAPH_NO_STREAM };
	if (kind != GRAPH_COMPUTE) {
		operation.bytes = 1;
		operation.peer = peer;
	}
	assert_int_equal(graph_add(&graph, &operation), 0);
}

static void open_job(const struct graph_record *records)
{
	char why[200];
	assert_int_equal(graph_finish(&graph, NULL, why, sizeof(why)), 0);
	assert_int_equal(graph_job_open(&job, &graph, &(struct hosts){ 0 }, &(struct nccl_settings){ 0 }), 0);
	for (uint32_t i = 0; i < graph.count; i++)
		job.records[i] = records[i];
	assert_int_equal(critical_path_find(&path, &job), 0);
}

static void expect_step(uint32_t i, uint32_t operation, vb_time from, vb_time until, enum critical_cause cause)
{
	assert_int_equal(path.steps[i].operation, operation);
	assert_int_equal(path.steps[i].from, from);
	assert_int_equal(path.steps[i].until, until);
	assert_int_equal(path.steps[i].cause, cause);
}

/* Rank 0 computes to 5 and sends; rank 1 has begun to receive at 2, gets it at 9, and computes to 12. A send's own end,
 * by its acknowledgement, comes later and is not the job's. */
static void path__leads_over_a_message(void **state)
{
	graph.ranks = 2;
	add(0, GRAPH_COMPUTE, 0);
	add(0, GRAPH_SEND, 1);
	add(1, GRAPH_RECEIVE, 0);
	add(1, GRAPH_COMPUTE, 0);
	open_job((const struct graph_record[]){ { 0, 5, GRAPH_NONE, GRAPH_NONE }, { 5, 20, 0, GRAPH_NONE },
		{ 2, 9, GRAPH_NONE, 1 }, { 9, 12, 2, GRAPH_NONE } });
	assert_int_equal(path.count, 4);
	expect_step(0, 0, 0, 5, CRITICAL_NOTHING);
	expect_step(1, 1, 5, 9, CRITICAL_OPERATION);
	expect_step(2, 2, 9, 9, CRITICAL_MESSAGE);
	expect_step(3, 3, 9, 12, CRITICAL_OPERATION);
	assert_int_equal(path.computing, 8);
	assert_int_equal(path.network, 4);
}

/* The message left before the receive began, and came after. */
static void path__leads_over_a_message_that_was_long_under_way(void **state)
{
	graph.ranks = 2;
	add(0, GRAPH_SEND, 1);
	add(1, GRAPH_COMPUTE, 0);
	add(1, GRAPH_RECEIVE, 0);
	open_job((const struct graph_record[]){
		{ 0, 20, GRAPH_NONE, GRAPH_NONE }, { 0, 2, GRAPH_NONE, GRAPH_NONE }, { 2, 9, 1, 0 } });
	assert_int_equal(path.count, 2);
	expect_step(0, 0, 0, 9, CRITICAL_NOTHING);
	expect_step(1, 2, 9, 9, CRITICAL_MESSAGE);
	assert_int_equal(path.network, 9);
}

/* The message was there before the receive began: then the receive's own rank was late. */
static void path__stays_where_a_receive_came_late(void **state)
{
	graph.ranks = 2;
	add(0, GRAPH_SEND, 1);
	add(1, GRAPH_COMPUTE, 0);
	add(1, GRAPH_RECEIVE, 0);
	add(1, GRAPH_COMPUTE, 0);
	open_job((const struct graph_record[]){ { 0, 3, GRAPH_NONE, GRAPH_NONE }, { 0, 8, GRAPH_NONE, GRAPH_NONE },
		{ 8, 8, 1, GRAPH_NONE }, { 8, 9, 2, GRAPH_NONE } });
	assert_int_equal(path.count, 3);
	expect_step(0, 1, 0, 8, CRITICAL_NOTHING);
	expect_step(1, 2, 8, 8, CRITICAL_OPERATION);
	expect_step(2, 3, 8, 9, CRITICAL_OPERATION);
}

static void add_collective(uint32_t rank)
{
	struct graph_operation operation = {
		.rank = rank, .kind = GRAPH_COLLECTIVE, .stream = GRAPH_NO_STREAM, .bytes = 4000, .group = 0
	};
	assert_int_equal(graph_find_collective(&graph, "allreduce", NULL, &operation.collective), 0);
	assert_int_equal(graph_add(&graph, &operation), 0);
}

/* Rank 0 is the last to end, at 30, because of rank 1, which computed to 20; rank 1 ended at 28, because of rank 0. */
static void path__leads_over_a_collective_to_the_rank_that_was_late(void **state)
{
	graph.ranks = 2;
	assert_int_equal(graph_add_group(&graph, NULL, 2), 0);
	add(0, GRAPH_COMPUTE, 0);
	add_collective(0);
	add(1, GRAPH_COMPUTE, 0);
	add_collective(1);
	open_job((const struct graph_record[]){ { 0, 5, GRAPH_NONE, GRAPH_NONE }, { 5, 30, 0, 3 },
		{ 0, 20, GRAPH_NONE, GRAPH_NONE }, { 20, 28, 2, 1 } });
	assert_int_equal(path.count, 3);
	expect_step(0, 2, 0, 20, CRITICAL_NOTHING);
	expect_step(1, 3, 20, 30, CRITICAL_OPERATION);
	expect_step(2, 1, 30, 30, CRITICAL_MESSAGE);
	assert_int_equal(path.computing, 20);
	assert_int_equal(path.network, 10);
}

static void path__of_a_job_that_never_ended_is_what_has(void **state)
{
	graph.ranks = 1;
	add(0, GRAPH_COMPUTE, 0);
	add(0, GRAPH_COMPUTE, 0);
	open_job((const struct graph_record[]){ { 0, 4, GRAPH_NONE, GRAPH_NONE }, { -1, -1, GRAPH_NONE, GRAPH_NONE } });
	assert_int_equal(path.count, 1);
	expect_step(0, 0, 0, 4, CRITICAL_NOTHING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(path__leads_over_a_message, teardown),
		cmocka_unit_test_teardown(path__leads_over_a_message_that_was_long_under_way, teardown),
		cmocka_unit_test_teardown(path__stays_where_a_receive_came_late, teardown),
		cmocka_unit_test_teardown(path__leads_over_a_collective_to_the_rank_that_was_late, teardown),
		cmocka_unit_test_teardown(path__of_a_job_that_never_ended_is_what_has, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
