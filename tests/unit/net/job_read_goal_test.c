/* GOAL text: what is read, and what is refused, with its line. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net/job_file.h"
#include "../unit.h"

static struct job_file file;
static char why[600];

static int teardown(void **state)
{
	job_file_free(&file);
	return 0;
}

static int read_bytes(const char *bytes, size_t length)
{
	const struct job_file_options options = { 0 };
	/* A copy of just this size, so that sanitizers see who reads beyond it. */
	char *copy = malloc(length + !length);
	memcpy(copy, bytes, length);
	struct text text = text_of("f", copy, length, why, sizeof(why));
	why[0] = 0;
	job_file_free(&file);
	const int error = job_file_read_text(&file, &text, &options);
	free(copy);
	return error;
}

static void accepted(const char *text, uint32_t ranks, uint32_t count)
{
	const int error = read_bytes(text, strlen(text));
	assert_string_equal(why, "");
	assert_int_equal(error, 0);
	assert_string_equal(file.format, "GOAL");
	assert_int_equal(file.graph.ranks, ranks);
	assert_int_equal(file.graph.count, count);
}

static void refused(const char *text, const char *because)
{
	assert_int_equal(read_bytes(text, strlen(text)), -EINVAL);
	assert_string_equal(why, because);
	assert_null(file.graph.operations);
}

/* In rank 0 of 2, from line 3 on; rank 1 may receive anything. */
static void refused_in_rank(const char *lines, const char *because)
{
	char text[2000];
	snprintf(text, sizeof(text), "num_ranks 2\nrank 0 {\n%s}\nrank 1 {\n}\n", lines);
	refused(text, because);
}

static void is_computation(uint32_t i, uint32_t rank, vb_time time, uint8_t cpu, uint32_t line)
{
	const struct graph_operation *its = &file.graph.operations[i];
	assert_int_equal(its->kind, GRAPH_COMPUTE);
	assert_int_equal(its->rank, rank);
	assert_int_equal(its->time, time);
	assert_int_equal(its->stream, cpu);
	assert_int_equal(file.where[i], line);
}

static void is_message(uint32_t i, enum graph_kind kind, uint64_t bytes, uint32_t peer, uint32_t tag, uint32_t line)
{
	const struct graph_operation *its = &file.graph.operations[i];
	assert_int_equal(its->kind, kind);
	assert_int_equal(its->bytes, bytes);
	assert_int_equal(its->peer, peer);
	assert_int_equal(its->tag, tag);
	assert_int_equal(its->stream, GRAPH_NO_STREAM);
	assert_int_equal(file.where[i], line);
}

/* The only follower of `before`. */
static void is_followed_by(uint32_t before, uint32_t operation, enum graph_event event)
{
	const uint32_t *first = &file.graph.followers_first[before];
	assert_int_equal(first[1] - first[0], 1);
	assert_int_equal(file.graph.followers[first[0]], operation << 1 | event);
}

/* ---- What is read ------------------------------------------------------------------------------------------------ */

static void operations__are_read_with_all_that_they_may_have(void **state)
{
	accepted("num_ranks 2\n"
		 "rank 0 {\n"
		 "l1: calc 100 cpu 3\n"
		 "l2: send 4096b to 1 tag 7 cpu 4 nic 5\n"
		 "l2 requires l1\n"
		 "}\n"
		 "rank 1 {\n"
		 "l1: recv 4096b from 0 tag 7 nic 255\n"
		 "l2: calc 8\n"
		 "l2 irequires l1\n"
		 "}\n",
		2, 4);
	is_computation(0, 0, 100 * VB_NS, 3, 3);
	is_message(1, GRAPH_SEND, 4096, 1, 7, 4);
	is_message(2, GRAPH_RECEIVE, 4096, 0, 7, 8);
	is_computation(3, 1, 8 * VB_NS, 0, 9);
	is_followed_by(0, 1, GRAPH_ENDED);
	is_followed_by(2, 3, GRAPH_BEGUN);
	assert_int_equal(file.graph.operations[1].cpu, 4);
	assert_int_equal(file.graph.operations[1].nic, 5);
	assert_int_equal(file.graph.operations[2].nic, 255);
	assert_int_equal(file.note_count, 1);
	assert_string_equal(file.notes[0], "cpu and nic of sends and receives count with --loggops only");
}

static void any__is_a_source_and_a_tag_of_receives(void **state)
{
	accepted("num_ranks 2\nrank 0 {\nrecv 1b from -1 tag -1\nrecv 1b from -1\nrecv 0 b from 1 tag -1\n}\n"
		 "rank 1 {\nsend 1b to 0 tag 4294967294\n}\n",
		2, 4);
	is_message(0, GRAPH_RECEIVE, 1, GRAPH_ANY, GRAPH_ANY, 3);
	is_message(1, GRAPH_RECEIVE, 1, GRAPH_ANY, 0, 4);
	is_message(2, GRAPH_RECEIVE, 0, 1, GRAPH_ANY, 5);
	is_message(3, GRAPH_SEND, 1, 0, 4294967294, 8);
	assert_string_equal(file.notes[0], "messages of 0 bytes have 1");
}

static void comments_and_blanks__may_be_anywhere(void **state)
{
	accepted("/* of a\n * model */ // and more\n\n  num_ranks\t2 // two\nrank 0 { // empty\r\n}\r\n"
		 "rank 1 { calc 5 /* ns */ // end\n /* */ a : calc 6 cpu 254\n}  // the end",
		2, 2);
	is_computation(0, 1, 5 * VB_NS, 0, 7);
	is_computation(1, 1, 6 * VB_NS, 254, 8);
	accepted("\xEF\xBB\xBFnum_ranks 1\nrank 0 {\ncalc 1\n}", 1, 1);
}

/* A keyword is one only where it is expected. */
static void labels__are_of_their_rank(void **state)
{
	accepted("num_ranks 2\nrank 0 {\nrequires: calc 1\ncpu_1: calc 2\nrequires requires cpu_1\nranks: calc 0\n}\n"
		 "rank 1 {\nrequires: calc 3\nsend1: calc 4\nsend1 irequires requires\n}\n",
		2, 5);
	is_followed_by(1, 0, GRAPH_ENDED);
	is_followed_by(3, 4, GRAPH_BEGUN);
}

static void many_labels__are_found(void **state)
{
	enum { COUNT = 3000 };
	static char text[COUNT * 60];
	size_t length = (size_t)snprintf(text, sizeof(text), "num_ranks 1\nrank 0 {\n");
	for (int i = 0; i < COUNT; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "label%d: calc %d\n", i, i);
	for (int i = 1; i < COUNT; i++)
		length +=
			(size_t)snprintf(text + length, sizeof(text) - length, "label%d requires label%d\n", i, i - 1);
	snprintf(text + length, sizeof(text) - length, "}\n");
	accepted(text, 1, COUNT);
	for (uint32_t i = 1; i < COUNT; i++)
		is_followed_by(i - 1, i, GRAPH_ENDED);
}

/* ---- What is refused --------------------------------------------------------------------------------------------- */

static void labels_that_are_wrong__are_refused(void **state)
{
	refused_in_rank("a: calc 1\na requires b\nb: calc 2\n",
		"f:4: label b is used above its definition: move this line below line 5");
	refused_in_rank("b requires a\na: calc 1\nb: calc 2\n",
		"f:3: label b is used above its definition: move this line below line 5");
	refused_in_rank("a: calc 1\nb: calc 2\na: calc 3\n",
		"f:5: label a is there twice in this rank: rename it, here or in line 3");
	refused_in_rank("a: calc 1\na requires a\n", "f:4: label a requires itself, and would never begin");
	refused_in_rank("a: calc 1\na requires c\n", "f:4: rank 0 has no label c: labels are of their rank alone");
	refused_in_rank("a: calc 1\nb: calc 1\na requires b\nb irequires a\n",
		"f: a cycle: line 3 of rank 0 waits for line 4 of rank 0 waits for line 3 of rank 0");
	refused_in_rank("a: calc 1\na requires 5\n", "f:4: a label is expected, not '5'");
	refused_in_rank("a calc 1\n", "f:3: ':', requires or irequires behind a label is expected, not 'calc'");
	refused_in_rank("a: b: calc 1\n", "f:3: send, recv or calc is expected, not 'b:'");
	refused_in_rank("7: calc 1\n", "f:3: send, recv, calc, a label or } is expected, not '7:'");
}

static void operations_that_are_wrong__are_refused(void **state)
{
	refused_in_rank("send 1b to 0\n", "f:3: rank 0 sends to itself, or receives from itself: make it a calc");
	refused_in_rank("send 1b to 2\n", "f:3: the other rank is a whole number up to 1, not 2");
	refused_in_rank("send 1b from 1\n", "f:3: 'to' of a send is expected, not 'from'");
	refused_in_rank("recv 1b to 1\n", "f:3: 'from' of a recv is expected, not 'to'");
	refused_in_rank("send 1b to -1\n", "f:3: the other rank is expected, not '-1'");
	refused_in_rank("send 1b to 1 tag -1\n", "f:3: the tag is expected, not '-1'");
	refused_in_rank("send 1 to 1\n", "f:3: the b behind the number of bytes is expected, not 'to'");
	refused_in_rank("send 1.5b to 1\n", "f:3: the b behind the number of bytes is expected, not '.5b'");
	refused_in_rank("send -1b to 1\n", "f:3: the number of bytes is expected, not '-1b'");
	refused_in_rank("send\n", "f:3: the number of bytes is expected before the end of the line");
	refused_in_rank("send 17592186044417b to 1\n",
		"f:3: the number of bytes is a whole number up to 17592186044416, not 17592186044417");
	refused_in_rank(
		"send 1b to 1 tag 4294967295\n", "f:3: the tag is a whole number up to 4294967294, not 4294967295");
	refused_in_rank("send 1b to 1 cpu 255\n", "f:3: the cpu is a whole number up to 254, not 255");
	refused_in_rank("send 1b to 1 nic 256\n", "f:3: the nic is a whole number up to 255, not 256");
	refused_in_rank("send 1b to 1 cpu 1 tag 1\n",
		"f:3: the end of the line, or tag, cpu and nic, in this order, is expected, not 'tag'");
	refused_in_rank("send 1b to 1 nic 1 cpu 1\n", "f:3: the end of the line is expected, not 'cpu'");
	refused_in_rank("calc 1 nic 1\n", "f:3: the end of the line, or cpu, is expected, not 'nic'");
	refused_in_rank("calc 1 }\n", "f:3: the end of the line is expected, not '}'");
	refused_in_rank("calc 86400000000001\n",
		"f:3: the time in ns is a whole number up to 86400000000000, not 86400000000001");
	refused_in_rank("calc 99999999999999999999999\n",
		"f:3: the time in ns is a whole number up to 86400000000000, not 99999999999999999999999");
	refused_in_rank("Calc 1\n", "f:3: ':', requires or irequires behind a label is expected, not '1'");
	refused_in_rank("a: calc 1\nsend 5b to 1 tag 3\n",
		"f: line 4 of rank 0 never pairs up: rank 0 sends 1 messages with tag 3 to rank 1, which receives 0");
}

static void ranks_that_are_wrong__are_refused(void **state)
{
	refused("rank 0 {\n}\n", "f:1: 'num_ranks N', which comes first, is expected, not 'rank'");
	refused("num_ranks 0\n", "f:1: num_ranks is 0: there is nothing to run");
	refused("num_ranks 16777217\n", "f:1: num_ranks is a whole number up to 16777216, not 16777217");
	refused("num_ranks 3\nrank 0 {\n}\nrank 2 {\n}\n",
		"f:4: rank 2 comes where rank 1 is expected: ranks ascend from 0, and one without operations is "
		"'rank 1 { }'");
	refused("num_ranks 2\nrank 1 {\n}\n",
		"f:2: rank 1 comes where rank 0 is expected: ranks ascend from 0, and one without operations is "
		"'rank 0 { }'");
	refused("num_ranks 2\nrank 2 {\n}\n", "f:2: the rank is a whole number up to 1, not 2");
	refused("num_ranks 2\nrank 0 {\ncalc 1\nrank 1 {\n}\n", "f:4: rank 0 is still open: it ends with a }");
	refused("num_ranks 2\ncalc 1\n", "f:2: 'rank N {' of each rank of num_ranks is expected, not 'calc'");
	refused("num_ranks 1\nrank 0 {\ncalc 1\n}\nrank 1 {\n}\n",
		"f:5: nothing may follow rank 0, the last of num_ranks 1: delete it, or correct num_ranks");
	refused("num_ranks 1\nrank 0\n{ }\n", "f:2: { is expected before the end of the line");
	refused("num_ranks 2\nrank 0 { }\nrank 1 { }\n", "f: it has no operations");
}

static void files_that_end_early__are_refused(void **state)
{
	refused("num_ranks", "f:1: the file ends early, at byte 9, where num_ranks is expected: was it cut?");
	refused("num_ranks 2\nrank 0 {\ncalc 1\n}\n",
		"f:5: the file ends early, at byte 30, where 'rank N {' of each rank of num_ranks is expected: was it "
		"cut?");
	refused("num_ranks 2\nrank 0 {\ncalc 1",
		"f:3: the file ends early, at byte 27, where send, recv, calc, a label or } is expected: was it cut?");
	refused("num_ranks 2\nrank 0 {\nsend 4", "f:3: the file ends early, at byte 27, where the b behind the number "
						 "of bytes is expected: was it cut?");
	refused("num_ranks 2\nrank 0 {\n/* calc 1\n",
		"f:4: the file ends at byte 31 in a comment: close the /* of line 3 with */");
	refused("num_ranks 1\nrank 0 {\ncalc 1\n}\n/*",
		"f:5: the file ends at byte 32 in a comment: close the /* of line 5 with */");
	assert_int_equal(read_bytes("num", 3), -EINVAL);
	assert_non_null(strstr(why, "f: no job: it is not GOAL text (num_ranks N, rank 0 { ... })"));
}

/* Every beginning of a good file, and every byte of it changed: an answer, whatever it is. */
static void any_bytes__are_survived(void **state)
{
	static const char good[] = "num_ranks 2\nrank 0 {\na: send 1b to 1 tag 2 cpu 3 nic 4\nb: calc 5 cpu 6\n"
				   "b requires a\n}\nrank 1 {\nrecv 1b from -1 tag -1 // c\n/* d */\n}\n";
	for (size_t i = 0; i < sizeof(good) - 1; i++) {
		read_bytes(good, i);
		for (int byte = 0; byte < 256; byte++) {
			char changed[sizeof(good)];
			memcpy(changed, good, sizeof(good));
			changed[i] = (char)byte;
			if (read_bytes(changed, sizeof(good) - 1) == 0)
				assert_true(file.graph.count > 0);
			else
				assert_true(why[0]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(operations__are_read_with_all_that_they_may_have, teardown),
		cmocka_unit_test_teardown(any__is_a_source_and_a_tag_of_receives, teardown),
		cmocka_unit_test_teardown(comments_and_blanks__may_be_anywhere, teardown),
		cmocka_unit_test_teardown(labels__are_of_their_rank, teardown),
		cmocka_unit_test_teardown(many_labels__are_found, teardown),
		cmocka_unit_test_teardown(labels_that_are_wrong__are_refused, teardown),
		cmocka_unit_test_teardown(operations_that_are_wrong__are_refused, teardown),
		cmocka_unit_test_teardown(ranks_that_are_wrong__are_refused, teardown),
		cmocka_unit_test_teardown(files_that_end_early__are_refused, teardown),
		cmocka_unit_test_teardown(any_bytes__are_survived, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
