/* Chakra traces that are refused, and what is said then. */
#include "trace_reading.h"

/* ---- Bytes that are wrong ---------------------------------------------------------------------------------------- */

static void refused_bytes(const void *bytes, size_t length, const char *because)
{
	trace.length = 0;
	put(&trace, bytes, length);
	end_trace(0);
	expect_refused(prefix, because);
}

#define WITH(bytes)                                                                                                    \
	"\x07\x0A\x05"                                                                                                 \
	"0.0.4" bytes,                                                                                                 \
		sizeof("\x07\x0A\x05"                                                                                  \
		       "0.0.4" bytes) -                                                                                \
			1

static void broken_bytes__are_refused_with_their_place(void **state)
{
	refused_bytes("", 0, "t.0.et: it is empty");
	refused_bytes("\x80", 1, "byte 0 of 1, message 1: a number is cut off (no node is whole before it)");
	refused_bytes("\x20\x0A", 2, "byte 0 of 2, message 1: the file ends early, within this message");
	refused_bytes("\x02\x08\x01", 3, "byte 3, message 1: no GlobalMetadata, which a Chakra trace begins with");
	refused_bytes(WITH("\x02\x08\x05\x02\x08"),
		"byte 11 of 13, message 3: the file ends early, within this message "
		"(the last whole node before it is 5)");
	refused_bytes(WITH("\x02\x08\x05\x80"), "byte 11 of 12, message 3: a number is cut off");
	refused_bytes(
		WITH("\x02\x0B\x05"), "byte 9 of 11, message 2: an unknown wire type (no node is whole before it)");
	refused_bytes(WITH("\x02\x00\x05"), "byte 9 of 11, message 2: there is no such field number");
	refused_bytes(WITH("\x03\x12\x05"
			   "a"),
		"byte 10 of 12, message 2: a field is longer than what it is in");
	refused_bytes(WITH("\x02\x12\x85"), "byte 10 of 11, message 2: a number is cut off");
	refused_bytes(WITH("\x03\x0D\x05"
			   "a"),
		"byte 10 of 12, message 2: a number is cut off");
	refused_bytes(WITH("\x0B\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02"),
		"byte 10 of 20, message 2: a number of more than 64 bits");
	refused_bytes(WITH("\x03\x0A\x01"
			   "a"),
		"a field is of another wire type than in the schema");
	refused_bytes(WITH("\x03\x22\x01\x80"), "message 2: a number is cut off");
	refused_bytes(WITH(""), "it has no operations");
}

/* Byte by byte, a trace that is cut off is refused, or has fewer nodes. */
static void trace_that_is_cut_off__is_refused(void **state)
{
	begin_trace();
	add_collective(1, ALL_REDUCE, 1000);
	add_collective(2, ALL_GATHER, 1000);
	const size_t whole = trace.length;
	for (size_t length = 0; length < whole; length++) {
		trace.length = length;
		end_trace(0);
		const int error = job_file_read(&file, prefix, &options, why, sizeof(why));
		assert_true(error == -EINVAL || (error == 0 && file.graph.count == 1));
		close_job();
	}
}

static void packed_file__must_be_whole(void **state)
{
	static char packed[4096], path[100];
	FILE *from = fopen(TRACES "/custom_ring.0.et.gz", "rb");
	assert_non_null(from);
	const size_t length = fread(packed, 1, sizeof(packed), from);
	fclose(from);
	assert_in_range(length, 1000, sizeof(packed) - 1);
	snprintf(path, sizeof(path), "%s.0.et.gz", prefix);
	write_file(path, packed, length - 9);
	expect_refused(prefix, "of the gzip file: it ends early");
	packed[length / 2] ^= 0x55;
	write_file(path, packed, length);
	expect_refused(prefix, "of the gzip file: ");
	packed[length / 2] ^= 0x55;
	packed[length] = 'x';
	write_file(path, packed, length + 1);
	expect_refused(prefix, "of the gzip file: it ends early");
	unlink(path);
	/* A name without .gz does not matter, and messages of several parts neither. */
	memcpy(trace.at, packed, length);
	trace.length = length;
	end_trace(0);
	expect_refused(prefix, "there is no rank 1: there are 1");
}

/* ---- Nodes that are wrong ---------------------------------------------------------------------------------------- */

#define REFUSED(because)                                                                                               \
	do {                                                                                                           \
		end_node();                                                                                            \
		end_trace(0);                                                                                          \
		expect_refused(prefix, because);                                                                       \
		begin_trace();                                                                                         \
	} while (0)

static void nodes_without_sense__are_refused(void **state)
{
	begin_trace();
	begin_node(4, "x", 8);
	REFUSED("t.0.et: node 4 (x) of rank 0: its type is 8, and may be 0 to 7");
	begin_node(4, "", COMP);
	put_number(&node, 7, 1ull << 60);
	REFUSED("node 4 of rank 0: it takes more than a day");
	begin_node_after(4, "y\x1B[0m", COMP, 3);
	REFUSED("node 4 (y?[0m) of rank 0: it needs data of node 3, which is not in the file");
	begin_node(4, "", COMP);
	end_node();
	begin_node(4, "", COMP);
	REFUSED("node 4 is there twice: its messages are 2 and 3");
	begin_node_after(4, "", COMP, 5);
	end_node();
	begin_node_after(5, "", COMP, 4);
	REFUSED("a cycle: node ");
	begin_node(4, "", SEND);
	REFUSED("it has no comm_dst");
	begin_node(4, "", RECV);
	put_attribute("comm_src", INT32, (uint64_t)-1);
	REFUSED("its comm_src is -1, and may be 0 to 4294967294");
	begin_node(4, "", SEND);
	put_attribute("comm_dst", INT32, 1);
	put_attribute("comm_tag", INT32, (uint64_t)-1);
	REFUSED("its comm_tag is -1");
	begin_node(4, "", SEND);
	put_attribute("comm_dst", INT32, 1);
	REFUSED("it has no comm_size");
	begin_node(4, "", SEND);
	put_attribute("comm_src", INT32, 3);
	REFUSED("its comm_src is 3, which is another rank");
	begin_node(4, "", SEND);
	put_attribute_of("comm_dst", STRING, "1", 1);
	REFUSED("its comm_dst is no whole number");
	add_message(4, SEND, 1, 10);
	begin_node(5, "", COMP);
	REFUSED("t: node 4 of rank 0: there is no rank 1: there are 1");
}

static void collectives_without_sense__are_refused(void **state)
{
	begin_trace();
	begin_node(4, "all", COLL);
	REFUSED("node 4 (all) of rank 0: it has no comm_type");
	begin_node(4, "all", COLL);
	put_attribute("comm_type", INT64, ALL_REDUCE);
	REFUSED("it has no comm_size");
	begin_node(4, "all", COLL);
	put_collective(ALL_REDUCE, 1);
	put_attribute("pg_name", STRING, 0);
	REFUSED("message 2: a field is of another wire type than in the schema");
	begin_node(4, "all", COLL);
	put_collective(10, 1);
	REFUSED("its comm_type is 10, and may be 0 to 9");
	begin_node(4, "all", COLL);
	put_collective(ALL_GATHER, 1ull << 60);
	REFUSED("its comm_size is 1152921504606846976");
	begin_node(4, "all", COLL);
	put_collective(ALL_REDUCE, 1);
	put_attribute_of("involved_dim", BOOLS, "\x0A\x02\x01\x00", 4);
	REFUSED("its involved_dim leaves dimensions out");
	begin_node(4, "all", COLL);
	put_collective(ALL_REDUCE, 1);
	put_attribute_of("involved_dim", BOOLS, "\x08\x00", 2);
	REFUSED("its involved_dim leaves dimensions out");
}

static void ranks_that_differ__are_refused(void **state)
{
	for (uint32_t rank = 0; rank < 2; rank++) {
		begin_trace();
		add_collective(1, ALL_REDUCE, 1000);
		begin_node(2, "load", MEM_LOAD);
		end_node();
		add_collective(30 + rank, ALL_REDUCE, 1000 + rank);
		end_trace(rank);
	}
	expect_refused(prefix,
		"t: collective 1 of group 0 is allreduce of 1000 bytes at rank 0 (node 30 of rank 0), and "
		"allreduce of 1001 bytes at rank 1 (node 31 of rank 1)");
	expect_note("2 nodes load or store memory: not modelled, they take no time");
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

static void ranks_that_are_missing__are_told(void **state)
{
	char path[100];
	for (uint32_t rank = 0; rank < 8; rank++) {
		begin_trace();
		add_collective(1, ALL_REDUCE, 1000);
		end_trace(rank);
	}
	unlink(path_of(3));
	unlink(path_of(5));
	expect_refused(prefix, "t.RANK.et: of ranks 0 to 7 the files of 2 are missing: 3, 5");
	expect_refused(
		path_of(2), "t.2.et: a Chakra trace is PREFIX.RANK.et, a file for each rank from 0: name PREFIX");
	unlink(path_of(0));
	snprintf(path, sizeof(path), "%s", path_of(0));
	expect_refused(path, "the files of 3 are missing: 0, 3, 5");
	expect_refused(prefix, "/t: No such file or directory");
}

static void other_names__are_refused(void **state)
{
	char path[100];
	snprintf(path, sizeof(path), "%s/trace", directory);
	begin_trace();
	write_file(path, trace.at, trace.length);
	expect_refused(path, "trace: a Chakra trace is PREFIX.RANK.et");
	write_file(path, "hello", 5);
	expect_refused(path, "trace: no job: it is not");
	static const char host[] = "{\n  \"schema\": \"1.0.2-chakra.0.0.4\", \"pid\": 1, \"nodes\": []}";
	write_file(path, host, strlen(host));
	expect_refused(path, "run chakra_trace_link, then chakra_converter");
	static const char profiler[] = "{\"schemaVersion\": 1, \"traceEvents\": []}";
	write_file(path, profiler, strlen(profiler));
	expect_refused(path, "the profiler's trace (Kineto), before it is linked");
	static const char feeder[] = "{\"workload_graph\": []}";
	write_file(path, feeder, strlen(feeder));
	expect_refused(path, "a Chakra trace as JSON (workload_graph)");
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(broken_bytes__are_refused_with_their_place, teardown),
		cmocka_unit_test_teardown(trace_that_is_cut_off__is_refused, teardown),
		cmocka_unit_test_teardown(packed_file__must_be_whole, teardown),
		cmocka_unit_test_teardown(nodes_without_sense__are_refused, teardown),
		cmocka_unit_test_teardown(collectives_without_sense__are_refused, teardown),
		cmocka_unit_test_teardown(ranks_that_differ__are_refused, teardown),
		cmocka_unit_test_teardown(ranks_that_are_missing__are_told, teardown),
		cmocka_unit_test_teardown(other_names__are_refused, teardown),
	};
	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
