/* Chakra traces: what becomes of nodes, of two traces of ASTRA-sim's too, and of groups. */
#include "net/graph_job.h"
#include "trace_reading.h"

/* ---- A network whose messages arrive in the order in which they were sent -------------------------------------------
 */

enum { MOST = 4096 };

static struct event {
	void (*tell)(struct job *job, const struct event *event, vb_time at, struct job_sink *sink);
	uint32_t rank;
	uint64_t tag;
	struct graph_carried carried;
} events[MOST];
static uint32_t event_count, rank_called;

static void tell_arrival(struct job *job, const struct event *event, vb_time at, struct job_sink *sink)
{
	job->kind->arrived(job, event->rank, event->tag, at, &event->carried, sink);
}

static void tell_end(struct job *job, const struct event *event, vb_time at, struct job_sink *sink)
{
	const struct flow_result result = { 0 };
	job->kind->ended(job, event->rank, event->tag, at, &result, &event->carried, sink);
}

static void tell_computed(struct job *job, const struct event *event, vb_time at, struct job_sink *sink)
{
	job->kind->computed(job, event->rank, event->tag, at, sink);
}

static void add_event(struct event event)
{
	assert_true(event_count < MOST);
	events[event_count++] = event;
}

static void send_it(struct job_sink *sink, const struct message *message)
{
	static const struct graph_carried nothing;
	const struct graph_carried *carried = message->carried ? message->carried : &nothing;
	add_event((struct event){ tell_arrival, message->dst, message->tag, *carried });
	add_event((struct event){ tell_end, message->src, message->tag, *carried });
}

static void compute_it(struct job_sink *sink, vb_time until, uint64_t tag)
{
	add_event((struct event){ .tell = tell_computed, .rank = rank_called, .tag = tag });
}

/* How many messages there were; all operations have ended. */
static uint32_t play(void)
{
	struct job_sink sink = { .send = send_it, .compute = compute_it };
	struct graph_job job;
	uint32_t left, messages = 0;
	assert_int_equal(graph_job_open(&job, &file.graph, &(struct hosts){ 0 }, &(struct nccl_settings){ 0 }), 0);
	event_count = 0;
	for (rank_called = 0; rank_called < file.graph.ranks; rank_called++)
		job.job.kind->begin(&job.job, rank_called, &sink);
	for (uint32_t i = 0; i < event_count; i++) {
		const struct event event = events[i];
		rank_called = event.rank;
		messages += event.tell == tell_arrival;
		event.tell(&job.job, &event, i + 1, &sink);
	}
	assert_int_equal(graph_job_unfinished(&job, &left), GRAPH_NONE);
	graph_job_close(&job);
	return messages;
}

/* ---- Traces of ASTRA-sim ----------------------------------------------------------------------------------------- */

static void allreduce_of_astra_sim__runs(void **state)
{
	read_path(TRACES "/all_reduce");
	assert_int_equal(file.graph.ranks, 8);
	assert_int_equal(file.graph.count, 8);
	assert_int_equal(file.note_count, 0);
	for (uint32_t rank = 0; rank < 8; rank++) {
		assert_int_equal(operation(rank)->rank, rank);
		assert_int_equal(operation(rank)->kind, GRAPH_COLLECTIVE);
		assert_int_equal(operation(rank)->bytes, 1048576);
		assert_int_equal(file.where[rank], rank);
	}
	assert_int_equal(graph_collective_of(&file.graph, 5).ranks, 8);
	assert_string_equal(graph_collective_of(&file.graph, 5).kind, "allreduce");
	assert_int_equal(play(), 8 * 14);
	close_job();
	read_path(TRACES "/all_reduce.0.et");
	assert_int_equal(file.graph.count, 8);
}

static void custom_ring_of_astra_sim__pairs_up_and_runs(void **state)
{
	uint32_t kinds[4] = { 0 };
	read_path(TRACES "/custom_ring");
	assert_int_equal(file.graph.ranks, 8);
	assert_int_equal(file.graph.count, 8 * 35);
	for (uint32_t i = 0; i < file.graph.count; i++)
		kinds[operation(i)->kind]++;
	assert_int_equal(kinds[GRAPH_SEND], 8 * 14);
	assert_int_equal(kinds[GRAPH_RECEIVE], 8 * 14);
	assert_int_equal(kinds[GRAPH_COMPUTE], 8 * 7);
	assert_int_equal(operation(0)->bytes, 131072);
	assert_int_equal(operation(2)->time, 7 * VB_US);
	assert_int_equal(play(), 8 * 14);
	close_job();
	read_path(TRACES "/custom_ring.0.et.gz");
	assert_int_equal(file.graph.count, 8 * 35);
}

/* ---- Nodes ------------------------------------------------------------------------------------------------------- */

static void computations__take_their_duration(void **state)
{
	begin_trace();
	begin_node(0, "gpu", COMP);
	put_number(&node, 7, 25);
	end_node();
	begin_node_after(1, "cpu", COMP, 0);
	put_attribute("is_cpu_op", BOOL, 1);
	end_node();
	begin_node_after(2, "unknown", COMP, 1);
	put_attribute("num_ops", INT64, 1000);
	end_node();
	begin_node(3, "nothing", INVALID);
	end_node();
	begin_node(4, "load", MEM_LOAD);
	end_node();
	end_trace(0);
	read_path(prefix);
	assert_int_equal(file.graph.ranks, 1);
	assert_int_equal(operation(0)->time, 25 * VB_US);
	assert_int_equal(operation(0)->stream, 0);
	assert_int_equal(operation(1)->time, VB_NS);
	assert_int_equal(operation(1)->stream, 1);
	assert_int_equal(operation(2)->waits, 1);
	assert_int_equal(operation(3)->time, 0);
	assert_int_equal(operation(3)->stream, GRAPH_NO_STREAM);
	assert_int_equal(operation(4)->time, 0);
	expect_note("1 nodes load or store memory: not modelled, they take no time");
	expect_note("1 computations have num_ops and no duration: 1 ns each (there is no roofline model)");
	assert_int_equal(play(), 0);
}

static void messages__have_any_kind_of_integer(void **state)
{
	begin_trace();
	begin_node(7, "", SEND);
	put_attribute("comm_dst", UINT32, 1);
	put_attribute("comm_tag", SINT64, 10); /* 5, as zigzag has it */
	put_attribute("comm_size", UINT64, 99);
	put_attribute("comm_src", INT32, 0);
	end_node();
	end_trace(0);
	begin_trace();
	begin_node(8, "", RECV);
	put_attribute("comm_src", INT64, 0);
	put_attribute("comm_tag", INT32, 5);
	put_attribute("comm_size", SINT64, 198);
	end_node();
	end_trace(1);
	read_path(prefix);
	assert_int_equal(operation(0)->kind, GRAPH_SEND);
	assert_int_equal(operation(0)->peer, 1);
	assert_int_equal(operation(0)->tag, 5);
	assert_int_equal(operation(0)->bytes, 99);
	assert_int_equal(operation(0)->stream, 2);
	assert_int_equal(operation(1)->kind, GRAPH_RECEIVE);
	assert_int_equal(operation(1)->stream, GRAPH_NO_STREAM);
	assert_int_equal(file.where[1], 8);
	assert_int_equal(play(), 1);
}

static void collectives__have_the_size_that_their_kind_counts(void **state)
{
	for (uint32_t rank = 0; rank < 4; rank++) {
		begin_trace();
		add_collective(1, ALL_REDUCE, 1000);
		add_collective(2, ALL_GATHER, 1000);
		add_collective(3, REDUCE_SCATTER, 1000);
		begin_node(4, "barrier", COLL);
		put_attribute("comm_type", INT64, BARRIER);
		end_node();
		begin_node(5, "broadcast", COLL);
		put_collective(BROADCAST, 1000);
		put_number(&node, 7, 3);
		end_node();
		add_collective(6, GATHER, 1000);
		begin_node(7, "wrapper", COLL);
		put_attribute("is_cpu_op", BOOL, 1);
		end_node();
		begin_node(8, "urgent", COLL);
		put_collective(ALL_REDUCE, 0);
		put_attribute("comm_priority", INT32, 9);
		put_attribute_of("involved_dim", BOOLS, "\x0A\x02\x01\x01", 4);
		put_attribute_of("pg_name", STRING, "0", 1);
		end_node();
		end_trace(rank);
	}
	read_path(prefix);
	assert_int_equal(operation(0)->bytes, 1000);
	assert_int_equal(operation(1)->bytes, 4000);
	assert_int_equal(operation(2)->bytes, 1000);
	assert_string_equal(graph_collective_of(&file.graph, 3).kind, "barrier");
	assert_int_equal(operation(4)->kind, GRAPH_COMPUTE);
	assert_int_equal(operation(4)->time, 3 * VB_US);
	assert_int_equal(operation(4)->stream, 2);
	assert_int_equal(operation(5)->time, VB_NS);
	assert_int_equal(operation(6)->time, 0);
	assert_int_equal(operation(7)->group, 0);
	expect_note("4 collectives BROADCAST only take their duration, nothing is sent");
	expect_note("4 collectives GATHER only take their duration, nothing is sent");
	expect_note("4 nodes of communication are calls on the CPU (is_cpu_op): they take no time");
	expect_note("4 collectives have a comm_priority: not heeded (job.priorities)");
	play();
}

/* Forward, packed or not; nodes come in the order of their ids, whatever that of the file is. */
static void dependencies__may_be_of_any_form(void **state)
{
	begin_trace();
	begin_node(9, "last", COMP);
	put_number(&node, DATA_DEPS, 3);
	put_bytes(&node, DATA_DEPS, "\x04\x05", 2);
	put_bytes(&node, CTRL_DEPS, "\x03\x63\x64", 3);
	end_node();
	for (uint32_t id = 3; id < 6; id++) {
		begin_node_after(id, "", COMP, id < 5 ? id + 1 : NOTHING);
		end_node();
	}
	end_trace(0);
	read_path(prefix);
	assert_int_equal(file.where[0], 3);
	assert_int_equal(file.where[3], 9);
	assert_int_equal(operation(3)->waits, 4);
	assert_int_equal(operation(0)->waits, 1);
	expect_note("2 control dependencies are on nodes that are in no file: nothing waits for them");
	play();
}

static void large_ids__are_told_by_their_place(void **state)
{
	begin_trace();
	begin_node(1ull << 40, "", COMP);
	end_node();
	begin_node_after(7, "", COMP, 1ull << 40);
	end_node();
	end_trace(0);
	read_path(prefix);
	assert_int_equal(file.where[0], 2);
	assert_int_equal(file.where[1], 1);
	assert_int_equal(operation(0)->waits, 1);
	expect_note("files with node ids above 2^32: their nodes are called by their place, from 1");
}

/* ---- Groups ------------------------------------------------------------------------------------------------------ */

static void write_ranks_of_group(uint32_t ranks, const char *group, const char *values)
{
	for (uint32_t rank = 0; rank < ranks; rank++) {
		begin_trace();
		begin_node(1, "init", METADATA);
		if (values) {
			static struct bytes inputs;
			inputs.length = 0;
			put_text(&inputs, 1, values);
			put_bytes(&node, 8, inputs.at, inputs.length);
		}
		end_node();
		begin_node(2, "c", COLL);
		put_collective(ALL_GATHER, 10);
		put_attribute_of("pg_name", STRING, group, strlen(group));
		end_node();
		end_trace(rank);
	}
}

static void group__is_of_the_groups_file(void **state)
{
	write_ranks_of_group(3, "2", NULL);
	write_groups(" {\"1\": [1], \"2\" : [2, 0, 1]}\n");
	read_path(prefix);
	assert_int_equal(file.graph.group_count, 2);
	assert_int_equal(file.graph.groups[1].count, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(file.graph.groups[1].ranks[i], i);
	assert_int_equal(operation(1)->group, 1);
	assert_int_equal(operation(1)->bytes, 30);
	assert_int_equal(play(), 3 * 2);
}

static void group__is_of_a_metadata_node(void **state)
{
	write_ranks_of_group(2, "7",
		"['[{\"pg_name\": \"0\", \"pg_desc\": \"default_pg\", \"ranks\": []}, "
		"{\"pg_name\": \"7\", \"more\": {\"a\": [1, {\"b\": null}]}, \"ranks\": [0, 1], \"group_size\": 2}]']");
	read_path(prefix);
	assert_int_equal(file.graph.group_count, 2);
	assert_int_equal(file.graph.groups[1].count, 2);
	assert_int_equal(operation(1)->group, 1);
	assert_int_equal(file.note_count, 0);
}

static void metadata__of_another_form_is_passed_over(void **state)
{
	write_ranks_of_group(2, "", "['[{\"pg_name\": 5}]']");
	read_path(prefix);
	expect_note("2 METADATA nodes have groups that cannot be read");
	teardown(NULL);
	write_ranks_of_group(2, "", "something");
	read_path(prefix);
	assert_int_equal(file.note_count, 0);
}

/* Each rank calls its own pair "1"; then ranks 0 and 1 disagree. */
static void groups_of_one_name__must_not_overlap(void **state)
{
	for (uint32_t rank = 0; rank < 4; rank++) {
		write_ranks_of_group(4, "1",
			rank / 2 ? "['[{\"pg_name\": \"1\", \"ranks\": [2, 3]}]']"
				 : "['[{\"pg_name\": \"1\", \"ranks\": [0, 1]}]']");
		char from[100];
		snprintf(from, sizeof(from), "%s.%u.kept", prefix, rank);
		assert_int_equal(rename(path_of(rank), from), 0);
	}
	for (uint32_t rank = 0; rank < 4; rank++) {
		char from[100];
		snprintf(from, sizeof(from), "%s.%u.kept", prefix, rank);
		assert_int_equal(rename(from, path_of(rank)), 0);
	}
	read_path(prefix);
	assert_int_equal(file.graph.group_count, 3);
	assert_int_equal(operation(1)->group, 1);
	assert_int_equal(operation(7)->group, 2);
	close_job();
	write_groups("{\"1\": [1, 2]}");
	expect_refused(
		prefix, "group 1 has other ranks in the groups file than in the trace of rank 0, and both have rank 1");
	options.groups = NULL;
	write_ranks_of_group(1, "1", "['[{\"pg_name\": \"1\", \"ranks\": [0]}]']");
	expect_refused(
		prefix, "group 1 has other ranks in the trace of rank 0 than in that of rank 1, and both have rank 0");
}

static void group__that_cannot_be_is_refused(void **state)
{
	write_ranks_of_group(2, "5", NULL);
	expect_refused(prefix,
		"t.0.et: node 2 (c) of rank 0: its group 5 is in no METADATA node, and there is no groups "
		"file");
	write_groups("{\"1\": [0, 1]}");
	expect_refused(prefix, "its group 5 is in no METADATA node, and not in the groups file");
	write_groups("{\"5\": [0, 9]}");
	expect_refused(prefix, "its group 5 has rank 9, whose trace is not there: there are 2");
	write_groups("{\"5\": [1]}");
	expect_refused(prefix, "node 2 (c) of rank 0: the rank is not in the node's group 5");
	write_groups("{\"5\": [0, 1, 1]}");
	expect_refused(prefix, "groups.json: byte 14: no list of ranks, each of them once");
	write_groups("{\"5\": []}");
	expect_refused(prefix, "no list of ranks");
	write_groups("{\"5\": [0], \"5\": [1]}");
	expect_refused(prefix, "a group comes twice");
	write_groups("{\"5\": [0]} x");
	expect_refused(prefix, "something comes behind the groups");
	write_groups("{\"5\": [0]");
	expect_refused(prefix, "byte 9: a comma or brace is missing");
	write_groups("{\"5\" [0]");
	expect_refused(prefix, "a colon is missing");
	write_groups("{5: [0]}");
	expect_refused(prefix, "a group's name is missing");
	write_groups("[]");
	expect_refused(prefix, "a brace is missing");
	options.groups = "/nowhere/groups.json";
	expect_refused(prefix, "/nowhere/groups.json: No such file");
	options.groups = "/nowhere/empty";
	expect_refused(prefix, "not in the groups file");
	expect_note("the groups file has \"empty\" in its path: it is not read, as by ASTRA-sim");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(allreduce_of_astra_sim__runs, teardown),
		cmocka_unit_test_teardown(custom_ring_of_astra_sim__pairs_up_and_runs, teardown),
		cmocka_unit_test_teardown(computations__take_their_duration, teardown),
		cmocka_unit_test_teardown(messages__have_any_kind_of_integer, teardown),
		cmocka_unit_test_teardown(collectives__have_the_size_that_their_kind_counts, teardown),
		cmocka_unit_test_teardown(dependencies__may_be_of_any_form, teardown),
		cmocka_unit_test_teardown(large_ids__are_told_by_their_place, teardown),
		cmocka_unit_test_teardown(group__is_of_the_groups_file, teardown),
		cmocka_unit_test_teardown(group__is_of_a_metadata_node, teardown),
		cmocka_unit_test_teardown(metadata__of_another_form_is_passed_over, teardown),
		cmocka_unit_test_teardown(groups_of_one_name__must_not_overlap, teardown),
		cmocka_unit_test_teardown(group__that_cannot_be_is_refused, teardown),
	};
	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
