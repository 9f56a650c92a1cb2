/* The share of a job's time in which GPUs compute nothing. The records are given. */
#include "sim/gpu_idle.h"
#include "../unit.h"

enum { GPU, OTHER_OF_GPU, CPU, NONE = GRAPH_NO_STREAM };

static struct simulation *simulation;

static int set_up(void **state)
{
	simulation = calloc(1, sizeof(*simulation));
	return simulation ? 0 : -1;
}

static int tear_down(void **state)
{
	graph_job_close(&simulation->graph_job);
	graph_free(&simulation->job_file.graph);
	free(simulation);
	return 0;
}

static void add(uint32_t rank, enum graph_kind kind, uint8_t stream)
{
	struct graph_operation operation = { .rank = rank, .kind = (uint8_t)kind, .stream = stream };
	if (kind == GRAPH_SEND || kind == GRAPH_RECEIVE) {
		operation.bytes = 1;
		operation.peer = !rank;
	}
	assert_int_equal(graph_add(&simulation->job_file.graph, &operation), 0);
}

/* A checkpoint beside the job ends later, which is not the job's time. */
static double share_of(const struct graph_record *records, enum fabric_end end, vb_time job_end, vb_time ended_at)
{
	vb_time job_ends[] = { job_end + 1000, job_end };
	struct graph *graph = &simulation->job_file.graph;
	char why[200];
	double share = -1;
	graph->beside_gpu = 1u << CPU;
	assert_int_equal(graph_finish(graph, NULL, why, sizeof(why)), 0);
	assert_int_equal(
		graph_job_open(&simulation->graph_job, graph, &(struct hosts){ 0 }, &(struct nccl_settings){ 0 }), 0);
	for (uint32_t i = 0; i < graph->count; i++)
		simulation->graph_job.records[i] = records[i];
	simulation->config.job_count = 2;
	simulation->result = (struct fabric_result){
		.end = end, .last_flow = job_end + 1000, .job_ends = job_ends, .ended_at = ended_at
	};
	assert_int_equal(gpu_idle_share(simulation, &share), 0);
	return share;
}

static void expect_share(double is, double expected)
{
	if (is < expected - 1e-9 || is > expected + 1e-9)
		fail_msg("%f, and not %f", is, expected);
}

/* Of 100 the GPU computes 0 to 30 and 60 to 80; the CPU's 30 to 60 are no work of it. */
static void cpu__is_no_gpu(void **state)
{
	simulation->job_file.graph.ranks = 1;
	add(0, GRAPH_COMPUTE, GPU);
	add(0, GRAPH_COMPUTE, CPU);
	add(0, GRAPH_COMPUTE, GPU);
	const struct graph_record records[] = { { 0, 30, 0, 0 }, { 30, 60, 0, 0 }, { 60, 80, 0, 0 } };
	expect_share(share_of(records, FABRIC_DONE, 100, 1000), 0.5);
}

/* Streams and operations without one overlap: 0 to 40, 20 to 50 and 45 to 48 are 50 of 100, and in another rank 10 of
 * 100. Messages meanwhile do not matter. */
static void overlap__counts_once(void **state)
{
	simulation->job_file.graph.ranks = 2;
	add(0, GRAPH_COMPUTE, OTHER_OF_GPU);
	add(0, GRAPH_COMPUTE, GPU);
	add(0, GRAPH_COMPUTE, NONE);
	add(0, GRAPH_SEND, NONE);
	add(1, GRAPH_COMPUTE, GPU);
	add(1, GRAPH_RECEIVE, NONE);
	const struct graph_record records[] = { { 20, 50, 0, 0 }, { 0, 40, 0, 0 }, { 45, 48, 0, 0 }, { 0, 99, 0, 0 },
		{ 0, 10, 0, 0 }, { 10, 99, 0, 0 } };
	expect_share(share_of(records, FABRIC_DONE, 100, 1000), 0.7);
}

/* Cut at 50: what began at 30 has computed for 20; what has not begun is nothing. The last end before that is not the
 * job's. */
static void run_that_is_cut__counts_until_then(void **state)
{
	simulation->job_file.graph.ranks = 1;
	add(0, GRAPH_COMPUTE, GPU);
	add(0, GRAPH_COMPUTE, GPU);
	add(0, GRAPH_COMPUTE, GPU);
	const struct graph_record records[] = { { 0, 10, 0, 0 }, { 30, -1, 0, 0 }, { -1, -1, 0, 0 } };
	expect_share(share_of(records, FABRIC_LIMIT, 10, 50), 0.4);
	graph_job_close(&simulation->graph_job);
	graph_free(&simulation->job_file.graph);
	simulation->job_file.graph.ranks = 1;
	add(0, GRAPH_COMPUTE, GPU);
	expect_share(share_of(records + 1, FABRIC_STOPPED, 0, 40), 0.75);
}

static void job_without_time__has_no_idle_time(void **state)
{
	simulation->job_file.graph.ranks = 1;
	add(0, GRAPH_COMPUTE, GPU);
	expect_share(share_of(&(struct graph_record){ 0, 0, 0, 0 }, FABRIC_DONE, 0, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(cpu__is_no_gpu, set_up, tear_down),
		cmocka_unit_test_setup_teardown(overlap__counts_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(run_that_is_cut__counts_until_then, set_up, tear_down),
		cmocka_unit_test_setup_teardown(job_without_time__has_no_idle_time, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
