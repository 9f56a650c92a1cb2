/* Workload text of AICB, SimAI and ASTRA-sim 1.0: each rule, each error, AICB's own files (aicb/, in the directory that
 * the first argument names), and runs on a network that takes 10 to deliver a message and 20 to tell its sender. */
#include <errno.h>
#include "net/graph_job.h"
#include "net/job_file.h"
#include "../unit.h"

static const char *directory;
static struct job_file file;
static char why[500];

static int teardown(void **state)
{
	job_file_free(&file);
	return 0;
}

static int read_bytes(const char *bytes, size_t length, uint32_t gpus)
{
	/* A copy of just this size, so that sanitizers see who reads beyond it. */
	char *copy = malloc(length + !length);
	memcpy(copy, bytes, length);
	struct text text = text_of("f", copy, length, why, sizeof(why));
	why[0] = 0;
	job_file_free(&file);
	int error = job_file_read_text(&file, &text, &(struct job_file_options){ .gpus = gpus });
	text_close(&text);
	free(copy);
	return error;
}

static void accepted(const char *bytes, uint32_t gpus, uint32_t ranks)
{
	int error = read_bytes(bytes, strlen(bytes), gpus);
	assert_string_equal(why, "");
	assert_int_equal(error, 0);
	assert_string_equal(file.format, "AICB");
	assert_int_equal(file.graph.ranks, ranks);
}

static void refused(const char *bytes, uint32_t gpus, const char *because)
{
	assert_int_equal(read_bytes(bytes, strlen(bytes), gpus), -EINVAL);
	assert_string_equal(why, because);
}

static void read_file(const char *name, uint32_t gpus, int result)
{
	char path[500];
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	why[0] = 0;
	int error = job_file_read(&file, path, &(struct job_file_options){ .gpus = gpus }, why, sizeof(why));
	if (error != result)
		fail_msg("%d: %s", error, why);
}

static bool has_note(const char *note)
{
	for (unsigned i = 0; i < file.note_count; i++)
		if (strcmp(file.notes[i], note) == 0)
			return true;
	return false;
}

/* ---- What an operation is ---------------------------------------------------------------------------------------- */

/* The rank's n-th. */
static uint32_t operation_of(uint32_t rank, uint32_t n)
{
	assert_true(file.graph.first[rank] + n < file.graph.first[rank + 1]);
	return file.graph.first[rank] + n;
}

static void is_computation(uint32_t rank, uint32_t n, vb_time time, uint32_t waits)
{
	const struct graph_operation *its = &file.graph.operations[operation_of(rank, n)];
	assert_int_equal(its->kind, GRAPH_COMPUTE);
	assert_int_equal(its->stream, 0);
	assert_int_equal(its->time, time);
	assert_int_equal(its->waits, waits);
}

static void is_collective(uint32_t rank, uint32_t n, const char *kind, uint64_t bytes, uint8_t stream)
{
	const struct graph_operation *its = &file.graph.operations[operation_of(rank, n)];
	assert_int_equal(its->kind, GRAPH_COLLECTIVE);
	assert_string_equal(file.graph.collectives[its->collective].kind, kind);
	assert_int_equal(its->bytes, bytes);
	assert_int_equal(its->stream, stream);
}

/* The group of the rank's n-th operation, as "0 4 8". */
static void is_among(uint32_t rank, uint32_t n, const char *ranks)
{
	const struct graph_group *group = &file.graph.groups[file.graph.operations[operation_of(rank, n)].group];
	char is[200] = "";
	for (uint32_t i = 0, at = 0; i < group->count && at + 12 < sizeof(is); i++)
		at += (uint32_t)sprintf(is + at, "%s%u", i ? " " : "", graph_rank_of(group, i));
	assert_string_equal(is, ranks);
}

static uint32_t count_of(uint32_t rank)
{
	return file.graph.first[rank + 1] - file.graph.first[rank];
}

/* ---- A run ------------------------------------------------------------------------------------------------------- */

enum { MOST = 100000 };

static struct graph_job job;
static struct happening {
	vb_time at;
	uint64_t tag;
	uint32_t rank;
	enum { ARRIVES, ENDS, IS_COMPUTED } what;
	struct graph_carried carried;
} calendar[MOST];
static uint32_t happening_count;
static vb_time now;
static uint32_t rank_called;

static void note(struct happening happening)
{
	assert_true(happening_count < MOST);
	calendar[happening_count++] = happening;
}

static void send(struct job_sink *sink, const struct message *message)
{
	static const struct graph_carried nothing;
	const struct graph_carried *carried = message->carried ? message->carried : &nothing;
	note((struct happening){ now + 10, message->tag, message->dst, ARRIVES, *carried });
	note((struct happening){ now + 20, message->tag, message->src, ENDS, *carried });
}

static void compute(struct job_sink *sink, vb_time until, uint64_t tag)
{
	note((struct happening){ .at = until, .tag = tag, .rank = rank_called, .what = IS_COMPUTED });
}

static void happen(const struct happening *is, struct job_sink *sink)
{
	const struct flow_result result = { 0 };
	rank_called = is->rank;
	now = is->at;
	if (is->what == ARRIVES)
		job.job.kind->arrived(&job.job, is->rank, is->tag, now, &is->carried, sink);
	else if (is->what == ENDS)
		job.job.kind->ended(&job.job, is->rank, is->tag, now, &result, &is->carried, sink);
	else
		job.job.kind->computed(&job.job, is->rank, is->tag, now, sink);
}

/* The time at which the last operation ends; all do. */
static vb_time play(void)
{
	struct job_sink sink = { .send = send, .compute = compute };
	uint32_t left;
	assert_int_equal(graph_job_open(&job, &file.graph, &(struct hosts){ 0 }, &(struct nccl_settings){ 0 }), 0);
	now = 0;
	for (rank_called = 0; rank_called < file.graph.ranks; rank_called++)
		job.job.kind->begin(&job.job, rank_called, &sink);
	while (happening_count > 0) {
		uint32_t next = 0;
		for (uint32_t i = 1; i < happening_count; i++)
			if (calendar[i].at < calendar[next].at)
				next = i;
		const struct happening is = calendar[next];
		calendar[next] = calendar[--happening_count];
		happen(&is, &sink);
	}
	assert_int_equal(graph_job_unfinished(&job, &left), GRAPH_NONE);
	const vb_time end = job.records[graph_job_last(&job)].end;
	graph_job_close(&job);
	return end;
}

/* ---- What is read ------------------------------------------------------------------------------------------------ */

#define HYBRID "HYBRID_TRANSFORMER_FWD_IN_BCKWD "

static void passes__go_down_and_up(void **state)
{
	accepted(HYBRID "model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 2 ga: 1 all_gpus: 4 checkpoints: 0 "
			"checkpoint_initiates: 0 pp_comm: 0\n2\n"
			"a -1 10 ALLGATHER 8000 11 REDUCESCATTER 8000 12 ALLREDUCE 9000 100\n"
			"b\t-1\t20 ALLREDUCE 5 21 NONE 0 22 ALLGATHER 6\t0\n",
		4, 4);
	assert_int_equal(file.graph.count, 4 * 11);
	is_computation(1, 0, 10 * VB_NS, 0);
	is_collective(1, 1, "all-gather", 8000, 1);
	is_computation(1, 2, 20 * VB_NS, 1);
	is_collective(1, 3, "allreduce", 4096, 1); /* a forward pass has no smaller ones */
	is_computation(1, 4, 21 * VB_NS, 1);
	is_computation(1, 5, 22 * VB_NS, 1);
	is_collective(1, 6, "all-gather", 6, 2);
	is_computation(1, 7, 11 * VB_NS, 1);
	is_collective(1, 8, "reduce-scatter", 8000, 1);
	is_computation(1, 9, 12 * VB_NS, 1);
	is_collective(1, 10, "allreduce", 9000, 2);
	is_among(1, 1, "0 1");
	is_among(3, 3, "2 3");
	is_among(1, 6, "1 3");
	assert_int_equal(file.graph.group_count, 2 + 2); /* shared by all that use them */
	assert_int_equal(file.where[operation_of(2, 6)], 4);
	assert_true(has_note("times of updates (column 12) are not modelled"));
	assert_int_equal(file.note_count, 1);
	/* Each of a pair sends and gets a message (10), twice for an allreduce; what is beside does not hold up others.
	 */
	const vb_time computed = (10 + 20 + 21 + 22 + 11 + 12) * VB_NS;
	assert_in_range(play(), computed + (10 + 20 + 10 + 20), computed + (20 + 30 + 20 + 30));
}

static void groups__are_by_their_suffixes(void **state)
{
	const char *text = HYBRID "model_parallel_NPU_group: 2 ep: 2 pp: 2 vpp: 1 ga: 1 all_gpus: 16 checkpoints: 0 "
				  "checkpoint_initiates: 0 pp_comm 50331648.0\n1\n"
				  "a -1 0 ALLREDUCE_EP 8000 0 ALLGATHER_DP_EP 8000 0 REDUCESCATTER 9000 0\n";
	accepted(text, 64, 16);
	assert_int_equal(count_of(0), 3);
	is_among(5, 0, "5 7"); /* experts: neighbours among the data parallel ones */
	is_among(5, 1, "1 5");
	is_among(5, 2, "1 3 5 7"); /* of its stage */
	is_among(12, 0, "12 14");
	is_among(12, 1, "8 12");
	is_among(12, 2, "8 10 12 14");
	assert_true(
		has_note("transfers between the 2 pipeline stages (50331648 bytes) are not modelled: each stage runs "
			 "all lines"));
	play();
}

static void communications__of_one_rank_are_left_out(void **state)
{
	accepted(HYBRID "model_parallel_NPU_group: 1\n1\na -1 7 ALLREDUCE 8000 0 NONE 0 0 ALLREDUCE 9000 0\n", 3, 3);
	assert_int_equal(count_of(0), 2);
	is_collective(0, 1, "allreduce", 9000, 2);
	is_among(0, 1, "0 1 2");
	assert_null(file.graph.groups[0].ranks); /* all, without a list */
	accepted(HYBRID "\n1\na -1 7 ALLREDUCE 8000 0 NONE 0 0 ALLREDUCE 9000 0\n", 3, 3);
	assert_int_equal(count_of(0), 2);
	is_collective(0, 1, "allreduce", 8000, 1);
	assert_true(has_note("the head has no model_parallel_NPU_group: all ranks are one group, as in SimAI"));
	accepted(HYBRID "all_gpus: 2\n1\na -1 7 BROADCAST 8000 0 ALLREDUCE 0 0 NONE 0 0\n", 0, 2);
	assert_int_equal(count_of(0), 1);
	assert_true(has_note("BROADCAST is ignored, as SimAI does"));
	assert_true(has_note("communications of 0 bytes are left out"));
}

/* Each expert's rank has a share for each other. */
static void all_to_all__is_among_experts(void **state)
{
	accepted(HYBRID "model_parallel_NPU_group: 2 ep: 4\n1\na -1 0 ALLTOALL_EP 8000 0 NONE 0 0 NONE 0 0\n", 8, 8);
	is_collective(3, 0, "alltoall", 8000, 1);
	is_among(3, 0, "1 3 5 7");
	play();
}

static void micro__runs_line_by_line(void **state)
{
	accepted(
		"MICRO\n2\nt -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 4096 1\nt -1 1 NONE 0 1 NONE 0 1 ALLGATHER 40 1\n", 4, 4);
	assert_int_equal(count_of(3), 2);
	is_collective(3, 0, "allreduce", 4096, 2);
	is_collective(3, 1, "all-gather", 40, 2);
	is_among(3, 0, "0 1 2 3");
	assert_true(has_note("MICRO: only the communication of weights' gradients is run, line by line"));
	assert_int_equal(play(), 6 * 10 + 3 * 10);
}

static void astra_sims_text__has_microseconds(void **state)
{
	accepted("DATA\n2\na -1 5 NONE 0 6 NONE 0 7 ALLREDUCE 100 0\nb -1 8 ALLREDUCE 9 9 NONE 0 10 ALLREDUCE 200 0\n",
		4, 4);
	assert_int_equal(count_of(0), 7);
	is_computation(0, 0, 5 * VB_US, 0);
	is_computation(0, 1, 8 * VB_US, 1);
	is_computation(0, 2, 10 * VB_US, 1);
	is_collective(0, 3, "allreduce", 200, 2);
	is_computation(0, 4, 9 * VB_US, 1);
	is_computation(0, 5, 7 * VB_US, 1);
	is_collective(0, 6, "allreduce", 100, 2);
	assert_true(has_note("DATA is ASTRA-sim 1.0's: its times are taken as microseconds"));
	assert_true(has_note("DATA: communication of the forward is ignored, as ASTRA-sim does"));
	play();
	accepted("MODEL\n2\na -1 5 ALLREDUCE 90 6 ALLREDUCE 3 7 NONE 0 0\nb -1 8 ALLREDUCE 9 9 ALLREDUCE 7 10 NONE 0 "
		 "0\n",
		4, 4);
	assert_int_equal(count_of(0), 9);
	is_collective(0, 1, "allreduce", 90, 1);
	is_computation(0, 4, 9 * VB_US, 1);
	is_collective(0, 5, "allreduce", 7, 1);
	is_computation(0, 6, 10 * VB_US, 1); /* beside it */
	is_computation(0, 7, 6 * VB_US, 2);  /* after both */
	is_computation(0, 8, 7 * VB_US, 1);
	play();
}

/* ---- What is refused --------------------------------------------------------------------------------------------- */

#define LINE "a -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n"

static void heads__that_do_not_hold_together_are_refused(void **state)
{
	refused(HYBRID "model_parallel_NPU_group: 8 pp: 2 all_gpus: 24\n1\n" LINE, 0,
		"f:1: 24 GPUs are no multiple of 16 (model_parallel_NPU_group 8 times pp 2)");
	refused(HYBRID "model_parallel_NPU_group: 8\n1\n" LINE, 12,
		"f:1: 12 GPUs are no multiple of 8 (model_parallel_NPU_group 8 times pp 1)");
	refused(HYBRID "model_parallel_NPU_group: 2 ep: 3 all_gpus: 16\n1\n" LINE, 16,
		"f:1: ep 3 does not divide 8 (16 GPUs over 2 times 1)");
	refused(HYBRID "all_gpus: 16\n1\n" LINE, 8, "f:1: all_gpus is 16, yet the network has 8");
	refused(HYBRID "ep: 1\n1\n" LINE, 0, "f:1: the head has no all_gpus, and how many there are is not known");
	refused(HYBRID "all_gpus: x\n", 8, "f:1: all_gpus needs a number, not 'x'");
	refused(HYBRID "all_gpus: -4\n", 8, "f:1: all_gpus needs a number, not '-4'");
	refused(HYBRID "all_gpus: 4 pp_comm: 1.5\n", 8, "f:1: pp_comm needs a number, not '1.5'");
	refused(HYBRID "all_gpus: 4 all_gpus: 4\n", 8, "f:1: the head has all_gpus twice");
	refused(HYBRID "all_gpus: 99999999999\n", 0, "f:1: all_gpus is 99999999999, above 16777216");
	refused(HYBRID "tp: 4\n", 8, "f:1: the head has tp:, which is not known");
	refused(HYBRID "checkpoints: 2 1 2\n", 8,
		"f:1: checkpoints 2: forward passes that are run again are not there yet");
	refused("HYBRID_DLRM 3\n1\n" LINE, 8,
		"f:1: HYBRID_DLRM is not supported: which ranks communicate depends on the dimensions of ASTRA-sim's "
		"network");
	refused("HYBRID 3\n1\n" LINE, 8,
		"f: no job: it is not GOAL text (num_ranks N, rank 0 { ... }), nor a Chakra trace (PREFIX.RANK.et), "
		"nor "
		"AICB's text (HYBRID_TRANSFORMER_FWD_IN_BCKWD, MICRO)");
}

static void counts__that_are_false_are_refused(void **state)
{
	refused("MICRO\n2\n" LINE, 8, "f:2: 2 lines, yet there are 1");
	refused("MICRO\n\n1\n" LINE LINE LINE, 8, "f:3: 1 lines, yet there are 3");
	refused("MICRO\n" LINE, 8, "f:2: expected the number of lines, and no more");
	refused("MICRO\n1 2\n" LINE, 8, "f:2: expected the number of lines, and no more");
	refused("MICRO\n", 8, "f:1: expected the number of lines, and no more");
	refused("MICRO\n0\n", 8, "f: it has no operations");
	refused("MICRO\n1\n" LINE, 8, "f: it has no operations");
}

static void lines__that_are_wrong_are_named(void **state)
{
#define COLUMNS_OF                                                                                                     \
	", not 12: name, -1, then time, communication and bytes for each of forward, input gradient, weight "          \
	"gradient, and the update's time"
	refused("MICRO\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0\n", 8, "f:3: 11 columns" COLUMNS_OF);
	refused("MICRO\n2\n" LINE "a -1 1 NONE 0 1 NONE 0 1 NONE 0 1 2\n", 8, "f:4: 13 columns" COLUMNS_OF);
	refused("MICRO\n1\na x 1 NONE 0 1 NONE 0 1 NONE 0 1\n", 8, "f:3: column 2: 'x' is no number");
	refused("MICRO\n1\na -1 -1 NONE 0 1 NONE 0 1 NONE 0 1\n", 8,
		"f:3: column 3: '-1' is no whole number of ns up to a day");
	refused("MICRO\n1\na -1 1 NONE 0 1.5 NONE 0 1 NONE 0 1\n", 8,
		"f:3: column 6: '1.5' is no whole number of ns up to a day");
	refused("DATA\n1\na -1 1 NONE 0 1 NONE 0 86400000001 NONE 0 1\n", 8,
		"f:3: column 9: '86400000001' is no whole number of us up to a day");
	refused("MICRO\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 x\n", 8,
		"f:3: column 12: 'x' is no whole number of ns up to a day");
	refused("MICRO\n1\na -1 1 NONE 0 1 NONE -5 1 NONE 0 1\n", 8,
		"f:3: column 8: '-5' is no number of bytes up to 2^44");
	refused("MICRO\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 17592186044417 1\n", 8,
		"f:3: column 11: '17592186044417' is no number of bytes up to 2^44");
}

static void communications__that_are_not_known_are_refused(void **state)
{
#define EXPECTED                                                                                                       \
	" is no communication: expected NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL, or one of these "         \
	"with _EP or _DP_EP"
	refused("MICRO\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCEALLTOALL 0 1\n", 8,
		"f:3: column 10: 'ALLREDUCEALLTOALL'" EXPECTED);
	refused("MICRO\n1\na -1 1 NONE 0 1 ALLREDUCE_TP 0 1 NONE 0 1\n", 8, "f:3: column 7: 'ALLREDUCE_TP'" EXPECTED);
	refused("MICRO\n1\na -1 1 _EP 0 1 NONE 0 1 NONE 0 1\n", 8, "f:3: column 4: '_EP'" EXPECTED);
	refused("MICRO\n1\na -1 1 NONE_EP 0 1 NONE 0 1 NONE 0 1\n", 8, "f:3: column 4: 'NONE_EP'" EXPECTED);
	refused("MICRO\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE_EP 0 1\n", 8,
		"f:3: column 10: ALLREDUCE_EP, yet the head has no ep");
}

static void job__of_too_many_operations_is_refused(void **state)
{
	char text[2000] = HYBRID "all_gpus: 16777216\n30\n";
	for (int i = 0; i < 30; i++)
		strcat(text, LINE);
	refused(text, 0, "f:32: 16777216 ranks of 90 operations are 1509949440, and a job has at most 268435456");
}

static void bytes__of_any_kind_are_survived(void **state)
{
	static const char good[] = HYBRID "model_parallel_NPU_group: 2 ep: 2 pp: 1 all_gpus: 8 pp_comm: 0\n2\n"
					  "a -1 10 ALLREDUCE 8000 11 REDUCESCATTER_EP 8000 12 ALLREDUCE 9000 100\n"
					  "b -1 20 BROADCAST 5 21 NONE 0 22 ALLGATHER_DP_EP 6 0\n";
	char changed[sizeof(good)];
	for (size_t i = 0; i < sizeof(good) - 1; i++) {
		read_bytes(good, i, 8);
		for (int byte = 0; byte < 256; byte += 5) {
			memcpy(changed, good, sizeof(good));
			changed[i] = (char)byte;
			read_bytes(changed, sizeof(good) - 1, 8);
		}
	}
}

/* ---- AICB's own files -------------------------------------------------------------------------------------------- */

static void file__of_megatron_is_read(void **state)
{
	read_file("G13B-M1-C01_GPT13B_megatron_tp8_pp1_mbs1_A100.txt", 128, 0);
	assert_int_equal(file.graph.ranks, 128);
	assert_int_equal(file.graph.group_count, 128 / 8 + 8);
	assert_int_equal(file.graph.operations[0].time, 14565000 * VB_NS); /* norm computes for 0 */
	is_collective(0, 1, "all-gather", 3248619520, 1);
	is_among(0, 1, "0 1 2 3 4 5 6 7");
	is_computation(0, 2, 1 * VB_NS, 1);
	is_among(127, count_of(127) - 3, "7 15 23 31 39 47 55 63 71 79 87 95 103 111 119 127");
	assert_true(has_note("BROADCAST is ignored, as SimAI does"));
	read_file("L7B-M1-C04_Llama7B_megatron_tp2_pp1_mbs1_A100.txt", 8, 0);
	assert_int_equal(file.graph.ranks, 8);
	assert_int_equal(file.graph.group_count, 4 + 2);
	play();
}

static void file__of_deepspeed_is_read(void **state)
{
	read_file("L7B-D1-C02_Llama7B_deepspeed_zero3_A100.txt", 4, 0);
	assert_int_equal(file.graph.count, 4 * (12 * 3 + 1)); /* its gathers are of one tensor parallel rank */
	play();
}

static void files__of_one_collective_are_read(void **state)
{
	read_file("all_reduce.txt", 8, 0);
	assert_int_equal(file.graph.count, 8 * 19);
	is_collective(7, 18, "allreduce", 1073741824, 2);
	play();
	read_file("muti_all_reduce.txt", 32, 0);
	assert_int_equal(file.graph.count, 32 * 19 * 4);
	assert_int_equal(file.graph.group_count, 8);
	is_among(31, 19 + 2, "7 15 23 31");
	is_collective(31, 19 + 2, "allreduce", 1073741824, 2); /* the last line first */
	play();
}

/* It says 839 lines in AICB, too. */
static void file__that_was_cut_is_refused(void **state)
{
	read_file("L65B-M1-C05_Llama65B_megatron_tp8_pp1_mbs1_A100.txt", 128, -EINVAL);
	assert_non_null(strstr(why, "A100.txt:2: 839 lines, yet there are 33"));
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(passes__go_down_and_up),
		TEST(groups__are_by_their_suffixes),
		TEST(communications__of_one_rank_are_left_out),
		TEST(all_to_all__is_among_experts),
		TEST(micro__runs_line_by_line),
		TEST(astra_sims_text__has_microseconds),
		TEST(heads__that_do_not_hold_together_are_refused),
		TEST(counts__that_are_false_are_refused),
		TEST(lines__that_are_wrong_are_named),
		TEST(communications__that_are_not_known_are_refused),
		TEST(job__of_too_many_operations_is_refused),
		TEST(bytes__of_any_kind_are_survived),
		TEST(file__of_megatron_is_read),
		TEST(file__of_deepspeed_is_read),
		TEST(files__of_one_collective_are_read),
		TEST(file__that_was_cut_is_refused),
	};
	if (argc < 2)
		return 1;
	directory = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
