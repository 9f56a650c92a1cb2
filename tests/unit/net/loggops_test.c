/* Jobs under LogGOPS: times as LogGOPSim prints them (spcl/LogGOPSim, commit 76451de), and where we differ. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/random.h"
#include "net/job_file.h"
#include "net/loggops.h"
#include "../unit.h"

enum { MOST = 32, ROOM = 1 << 16 };

static struct job_file file;
static struct loggops_result result;
static char text[ROOM];
static unsigned length;

static int teardown(void **state)
{
	loggops_result_free(&result);
	job_file_free(&file);
	length = 0;
	return 0;
}

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	length += (unsigned)vsnprintf(text + length, sizeof(text) - length, format, arguments);
	va_end(arguments);
	assert_true(length < sizeof(text));
}

static int play(const char *job, const char *parameters)
{
	const struct job_file_options options = { .heeds_processors = true };
	struct loggops is;
	char why[500] = "";
	struct text of = text_of("f", job, strlen(job), why, sizeof(why));
	loggops_read((struct span){ parameters, strlen(parameters) }, &is, why, sizeof(why));
	assert_string_equal(why, "");
	if (job_file_read_text(&file, &of, &options))
		fail_msg("%s", why);
	assert_int_equal(file.note_count, 0);
	return loggops_play(&file.graph, &is, &result);
}

static void expect_ends(uint32_t ranks, const uint32_t *ns)
{
	assert_int_equal(file.graph.ranks, ranks);
	assert_int_equal(result.unfinished, 0);
	assert_int_equal(result.first_unfinished, GRAPH_NONE);
	assert_int_equal(result.unreceived, 0);
	uint32_t last = 0;
	for (uint32_t i = 0; i < ranks; i++) {
		if (result.ends[i] != ns[i] * VB_NS)
			fail_msg("rank %u ends at %lld ps, not %u ns", i, (long long)result.ends[i], ns[i]);
		last = ns[i] > ns[last] ? i : last;
	}
	assert_int_equal(result.last_rank, last);
}

/* ---- As LogGOPSim ------------------------------------------------------------------------------------------------ */

/* The file binary_tree_16.goal of LogGOPSim's examples, and binary_tree_32.goal, with messages of some size. */
static void put_tree(uint32_t ranks, uint32_t bytes)
{
	put("num_ranks %u\n\n", ranks);
	for (uint32_t rank = 0; rank < ranks; rank++) {
		uint32_t next = 1, label = 1;
		while (next <= rank)
			next *= 2;
		put("rank %u {\n", rank);
		if (rank > 0)
			put("l%u: recv %ub from %u tag 0\n", label++, bytes, rank - next / 2);
		for (; rank + next < ranks; next *= 2, label++) {
			put("l%u: send %ub to %u tag 0\n", label, bytes, rank + next);
			if (rank > 0)
				put("l%u requires l1\n", label);
		}
		put("}\n\n");
	}
}

static const struct {
	uint32_t ranks;
	const char *parameters;
	uint32_t bytes, ends[MOST];
} trees[] = {
	{ 16, "S=65535", 1,
		{ 6000, 10000, 10000, 14000, 10000, 14000, 14000, 18000, 10000, 14000, 14000, 18000, 14000, 18000,
			18000, 22000 } },
	{ 16, "S=65535", 65535,
		{ 1184112, 1188612, 1188612, 1193112, 1188612, 1193112, 1193112, 1197612, 1581316, 1585816, 1585816,
			1590316, 1585816, 1590316, 1590316, 1594816 } },
	{ 16, "S=65535", 65536,
		{ 1186630, 1191130, 1191130, 1195630, 1191130, 1195630, 1195630, 1200130, 1581340, 1585840, 1585840,
			1590340, 1585840, 1590340, 1590340, 1594840 } },
	{ 16, "L=1000,o=200,g=5000,G=1,O=3,S=4096", 4095,
		{ 49928, 51128, 51128, 52328, 51128, 52328, 52328, 53528, 51128, 52328, 52328, 53528, 52328, 53528,
			53528, 54728 } },
	{ 16, "L=1000,o=200,g=5000,G=1,O=3,S=4096", 4096,
		{ 49940, 51140, 51140, 52340, 51140, 52340, 52340, 53540, 51140, 52340, 52340, 53540, 52340, 53540,
			53540, 54740 } },
	{ 16, "L=1000,o=200,g=5000,G=1,O=3,S=4096", 4097,
		{ 49952, 51152, 51152, 52352, 51152, 52352, 52352, 53552, 51152, 52352, 52352, 53552, 52352, 53552,
			53552, 54752 } },
	{ 16, "L=0,o=0,g=0,G=2,O=0,S=0", 1, { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 } },
	{ 16, "L=700,o=10,g=20,G=2,O=9,S=999", 1000,
		{ 36004, 36714, 36714, 37424, 36714, 37424, 37424, 38134, 36714, 37424, 37424, 38134, 37424, 38134,
			38134, 38844 } },
	{ 32, "S=65535", 1,
		{ 7500, 11500, 11500, 15500, 11500, 15500, 15500, 19500, 11500, 15500, 15500, 19500, 15500, 19500,
			19500, 23500, 11500, 15500, 15500, 19500, 15500, 19500, 19500, 23500, 15500, 19500, 19500,
			23500, 19500, 23500, 23500, 27500 } },
	{ 32, "S=65535", 65536,
		{ 1580840, 1585340, 1585340, 1589840, 1585340, 1589840, 1589840, 1594340, 1585340, 1589840, 1589840,
			1594340, 1589840, 1594340, 1594340, 1598840, 1975550, 1980050, 1980050, 1984550, 1980050,
			1984550, 1984550, 1989050, 1980050, 1984550, 1984550, 1989050, 1984550, 1989050, 1989050,
			1993550 } },
	{ 32, "L=1000,o=200,g=5000,G=1,O=3,S=4096", 4097,
		{ 62440, 63640, 63640, 64840, 63640, 64840, 64840, 66040, 63640, 64840, 64840, 66040, 64840, 66040,
			66040, 67240, 63640, 64840, 64840, 66040, 64840, 66040, 66040, 67240, 64840, 66040, 66040,
			67240, 66040, 67240, 67240, 68440 } },
};

static void trees__end_as_in_loggopsim(void **state)
{
	for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++) {
		put_tree(trees[i].ranks, trees[i].bytes);
		assert_int_equal(play(text, trees[i].parameters), 0);
		expect_ends(trees[i].ranks, trees[i].ends);
		teardown(NULL);
	}
}

/* In 4 rounds of 2 o + L, and o less where a send and a receive meet: 22,000 ns. */
static void dissemination__ends_at_every_rank_at_once(void **state)
{
	uint32_t ends[16];
	put("num_ranks 16\n");
	for (uint32_t rank = 0; rank < 16; rank++) {
		ends[rank] = 22000;
		put("rank %u {\n", rank);
		for (uint32_t k = 0; k < 4; k++) {
			put("s%u: send 1b to %u tag %u\n", k, (rank + (1u << k)) % 16, k);
			put("r%u: recv 1b from %u tag %u\n", k, (rank + 16 - (1u << k)) % 16, k);
			if (k > 0)
				put("s%u requires r%u\nr%u requires r%u\n", k, k - 1, k, k - 1);
		}
		put("}\n");
	}
	assert_int_equal(play(text, "L=2500,o=1500,g=1000,G=6,O=0,S=65535"), 0);
	expect_ends(16, ends);
}

/* Eager, of just S bytes, by rendezvous; early and late receives; any source, any tag; a second NIC. */
static const char mixed[] =
	"num_ranks 4\n"
	"rank 0 {\na: calc 3000\nb: send 70000b to 1 tag 1\nb requires a\nc: send 10b to 2 nic 1\n"
	"d: recv 65536b from 3 tag 9\ne: calc 500\ne irequires d\nf: send 65535b to 1 tag 2\nf irequires b\n}\n"
	"rank 1 {\np: calc 90000\nq: recv 70000b from 0 tag 1\nq requires p\nr: recv 65535b from 0 tag 2\n"
	"s: send 1b to 3\ns requires q\nt: recv 200b from 2\n}\n"
	"rank 2 {\na: recv 10b from -1\nb: send 200b to 1\nb irequires a\nc: send 300b to 3 tag 4\nc requires a\n"
	"d: calc 1\nd requires c\n}\n"
	"rank 3 {\na: send 65536b to 0 tag 9\nb: recv 1b from 1\nc: recv 300b from 2 tag -1\nd: calc 700\n"
	"d requires a\nd requires b\n}\n";

static void mixed_job__ends_as_in_loggopsim(void **state)
{
	static const struct {
		const char *parameters;
		uint32_t ends[4];
	} cases[] = { { "S=65535", { 822204, 1221408, 7055, 831404 } },
		{ "L=100,o=50,g=4000,G=1,O=2,S=0", { 405854, 406054, 131121, 275786 } },
		{ "L=1,o=1,g=1,G=0,O=0,S=100000", { 3504, 90004, 5, 90706 } } };
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(play(mixed, cases[i].parameters), 0);
		expect_ends(4, cases[i].ends);
		teardown(NULL);
	}
}

/* ---- Beyond it --------------------------------------------------------------------------------------------------- */

/* LogGOPSim would begin b at 0, as its processor is free. */
static void operations__wait_for_those_of_other_processors(void **state)
{
	assert_int_equal(play("num_ranks 1\nrank 0 {\na: calc 100\nb: calc 10 cpu 1\nb requires a\n"
			      "c: calc 1 cpu 2\nc irequires a\nd: calc 7 cpu 2\nd requires b\n}\n",
				 ""),
		0);
	expect_ends(1, (const uint32_t[]){ 117 });
}

static void fractions_of_a_nanosecond__are_exact(void **state)
{
	assert_int_equal(play("num_ranks 2\nrank 0 {\nsend 1001b to 1\n}\nrank 1 {\nrecv 1001b from 0\n}\n",
				 "L=1,o=0.5,g=0,G=0.04"),
		0);
	assert_int_equal(result.ends[0], 500);
	assert_int_equal(result.ends[1], 500 + 1000 + 500 + 40000);
}

static void receives_of_nothing__are_left(void **state)
{
	assert_int_equal(play("num_ranks 2\nrank 0 {\nsend 9b to 1 tag 3\n}\nrank 1 {\n"
			      "a: recv 9b from -1 tag 4\nb: calc 9\nb requires a\n}\n",
				 ""),
		0);
	assert_int_equal(result.unfinished, 2);
	assert_int_equal(file.where[result.first_unfinished], 6);
	assert_int_equal(result.unreceived, 1);
	assert_int_equal(result.ends[0], 1500 * VB_NS);
}

static void jobs_of_more_than_a_day__are_refused(void **state)
{
	static const char day[] = "86400000000000";
	put("num_ranks 1\nrank 0 {\na: calc %s\nb: calc %s\nc: calc 5\n}\n", day, day);
	assert_int_equal(play(text, ""), -ERANGE);
	assert_null(result.ends);
	teardown(NULL);
	put("num_ranks 2\nrank 0 {\nsend 17592186044416b to 1\nsend 1b to 1\n}\nrank 1 {\n"
	    "recv 17592186044416b from 0\nrecv 1b from 0\n}\n");
	assert_int_equal(play(text, "G=1000000000"), -ERANGE);
}

/* Of many operations that wait for one processor. */
static void processor__takes_one_at_a_time(void **state)
{
	put("num_ranks 1\nrank 0 {\n");
	for (int i = 0; i < 5000; i++)
		put("calc 2\n");
	put("}\n");
	assert_int_equal(play(text, ""), 0);
	expect_ends(1, (const uint32_t[]){ 10000 });
}

/* ---- Against a simple player ------------------------------------------------------------------------------------- */

/* Of a job without waits, whose messages are small: each that finds something taken asks again when that is free. */
enum { RANKS = 4, CPUS = 3, NICS = 2, CROWD = 600 };

struct asking {
	vb_time at;
	uint64_t order;
	const struct graph_operation *its;
	bool is_message, is_over;
};

struct simple {
	struct asking all[2 * CROWD];
	uint32_t count;
	vb_time cpus[RANKS][CPUS], sending[RANKS][NICS], receiving[RANKS][NICS], ends[RANKS];
};

static void simple_add(struct simple *simple, struct asking asking)
{
	asking.order = simple->count;
	simple->all[simple->count++] = asking;
}

static struct asking *simple_next(struct simple *simple)
{
	struct asking *next = NULL;
	for (struct asking *one = simple->all; one < simple->all + simple->count; one++)
		if (!one->is_over && (!next || one->at < next->at || (one->at == next->at && one->order < next->order)))
			next = one;
	return next;
}

static void simple_happen(struct simple *simple, const struct loggops *is, struct asking *one)
{
	const struct graph_operation *its = one->its;
	const uint32_t rank = one->is_message ? its->peer : its->rank;
	const vb_time bytes = its->kind == GRAPH_SEND ? (vb_time)its->bytes - 1 : 0;
	vb_time *cpu = &simple->cpus[rank][its->kind == GRAPH_SEND ? its->cpu : its->stream], *nic = NULL;
	if (its->kind == GRAPH_SEND)
		nic = one->is_message ? &simple->receiving[rank][its->nic] : &simple->sending[rank][its->nic];
	const vb_time from = nic && *nic > *cpu ? *nic : *cpu;
	if (from > one->at) {
		one->at = from;
		return;
	}
	one->is_over = true;
	if (its->kind == GRAPH_COMPUTE)
		*cpu = one->at + its->time;
	else
		*cpu = one->at + is->o + bytes * (one->is_message && is->G > is->O ? is->G : is->O);
	if (nic)
		*nic = one->at + is->g + bytes * is->G;
	if (nic && !one->is_message)
		simple_add(simple, (struct asking){ .at = one->at + is->o + is->L, .its = its, .is_message = true });
	if (*cpu > simple->ends[rank])
		simple->ends[rank] = *cpu;
}

static void simple_play(struct simple *simple, const struct loggops *is)
{
	*simple = (struct simple){ 0 };
	for (uint32_t rank = 0; rank < file.graph.ranks; rank++)
		for (unsigned kind = 0; kind < 2; kind++)
			for (uint32_t i = file.graph.first[rank]; i < file.graph.first[rank + 1]; i++)
				if (file.graph.operations[i].kind == (kind ? GRAPH_COMPUTE : GRAPH_SEND))
					simple_add(simple, (struct asking){ .its = &file.graph.operations[i] });
	for (struct asking *one; (one = simple_next(simple));)
		simple_happen(simple, is, one);
}

static void put_crowd(struct vb_random *random)
{
	put("num_ranks %d\n", RANKS);
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		put("rank %u {\nrecv 1b from -1\n", rank);
		for (uint32_t i = 0; i < CROWD / RANKS; i++) {
			const uint32_t cpu = vb_random_below(random, CPUS);
			if (vb_random_below(random, 2))
				put("calc %u cpu %u\n", vb_random_below(random, 4) * 500, cpu);
			else
				put("send %ub to %u tag 0 cpu %u nic %u\n", 1 + vb_random_below(random, 900),
					(rank + 1 + vb_random_below(random, RANKS - 1)) % RANKS, cpu,
					vb_random_below(random, NICS));
		}
		put("}\n");
	}
}

static void crowds__end_as_with_a_simple_player(void **state)
{
	static const char *const parameters[] = { "L=2500,o=1500,g=1000,G=6", "L=0,o=0,g=500,G=0",
		"L=1000,o=500,g=0,G=1,O=2", "L=1,o=0,g=0,G=0" };
	static struct simple simple;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct vb_random random;
		struct loggops is;
		char why[200];
		vb_random_seed(&random, seed);
		put_crowd(&random);
		assert_int_equal(play(text, parameters[seed % 4]), 0);
		loggops_read(
			(struct span){ parameters[seed % 4], strlen(parameters[seed % 4]) }, &is, why, sizeof(why));
		simple_play(&simple, &is);
		for (uint32_t rank = 0; rank < RANKS; rank++)
			assert_int_equal(result.ends[rank], simple.ends[rank]);
		teardown(NULL);
	}
}

/* ---- Parameters -------------------------------------------------------------------------------------------------- */

static void expect_wrong(const char *parameters, const char *because)
{
	struct loggops is;
	char why[200] = "";
	assert_int_equal(loggops_read((struct span){ parameters, strlen(parameters) }, &is, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, because);
}

static void parameters__are_read(void **state)
{
	struct loggops is;
	char why[200];
	const char all[] = "L=1,o=2,g=3.5,G=0.04,O=1e-3,S=7";
	assert_int_equal(loggops_read((struct span){ all, strlen(all) }, &is, why, sizeof(why)), 0);
	assert_int_equal(is.L, 1000);
	assert_int_equal(is.o, 2000);
	assert_int_equal(is.g, 3500);
	assert_int_equal(is.G, 40);
	assert_int_equal(is.O, 1);
	assert_int_equal(is.S, 7);
	assert_int_equal(loggops_read((struct span){ "O=5", 3 }, &is, why, sizeof(why)), 0);
	assert_int_equal(is.o, 1500000);
	assert_int_equal(is.O, 5000);
	assert_int_equal(is.S, 65535);
}

static void parameters_that_are_wrong__are_refused(void **state)
{
	expect_wrong("L", "L=NS,o=NS,g=NS,G=NS,O=NS,S=BYTES is expected, not 'L'");
	expect_wrong("L=", "L=NS,o=NS,g=NS,G=NS,O=NS,S=BYTES is expected, not 'L='");
	expect_wrong("l=5", "there is no l: the parameters are L, o, g, G, O and S");
	expect_wrong("L=5,S=1.5", "S is a number of bytes, not '1.5'");
	expect_wrong("G=0.0001", "G is a time in ns, at most a second, not '0.0001'");
	expect_wrong("o=-1", "o is a time in ns, at most a second, not '-1'");
	expect_wrong("o=2000000000", "o is a time in ns, at most a second, not '2000000000'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(trees__end_as_in_loggopsim, teardown),
		cmocka_unit_test_teardown(dissemination__ends_at_every_rank_at_once, teardown),
		cmocka_unit_test_teardown(mixed_job__ends_as_in_loggopsim, teardown),
		cmocka_unit_test_teardown(operations__wait_for_those_of_other_processors, teardown),
		cmocka_unit_test_teardown(fractions_of_a_nanosecond__are_exact, teardown),
		cmocka_unit_test_teardown(receives_of_nothing__are_left, teardown),
		cmocka_unit_test_teardown(jobs_of_more_than_a_day__are_refused, teardown),
		cmocka_unit_test_teardown(processor__takes_one_at_a_time, teardown),
		cmocka_unit_test_teardown(crowds__end_as_with_a_simple_player, teardown),
		cmocka_unit_test_teardown(parameters__are_read, teardown),
		cmocka_unit_test_teardown(parameters_that_are_wrong__are_refused, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
