/* Collectives: after the messages every rank has what it should, computed by carrying sets of contributions along. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "net/collective_job.h"
#include "../unit.h"

enum { MOST_RANKS = 16, GPUS = 4 };

struct sent {
	struct message is;
	uint32_t carries; /* ranks whose contribution its sender knew of */
};

/* What a collective's job sends when each message arrives after the ones before it, or before them. */
static struct sent sent[4096];
static uint32_t sent_count, knows[MOST_RANKS];
static struct collective_job job;

static void note(struct job_sink *sink, const struct message *message)
{
	assert_true(sent_count < sizeof(sent) / sizeof(sent[0]));
	sent[sent_count++] = (struct sent){ *message, knows[message->src] };
}

static struct job_sink sink = { .send = note };
static const struct flow_result no_error;

static int teardown(void **state)
{
	collective_job_close(&job);
	return 0;
}

/* Messages arrive in the order in which they are sent, or the newest first, and then at the sender's next call. */
static void play(const char *kind, const char *algorithm, uint32_t ranks, uint64_t bytes, bool newest_first)
{
	static bool has_arrived[sizeof(sent) / sizeof(sent[0])];
	char why[200] = "";
	const struct collective collective = { .kind = kind,
		.algorithm = algorithm,
		.ranks = ranks,
		.bytes = bytes,
		.start = 5,
		.gpus = GPUS,
		.reduces = true };
	collective_job_close(&job);
	assert_int_equal(collective_check(&collective, why, sizeof(why)), 0);
	assert_int_equal(collective_job_open(&job, &collective), 0);
	sent_count = 0;
	memset(has_arrived, 0, sizeof(has_arrived));
	for (uint32_t rank = 0; rank < ranks; rank++)
		knows[rank] = 1u << rank;
	for (uint32_t rank = 0; rank < ranks; rank++)
		job.job.kind->begin(&job.job, rank, &sink);
	for (uint32_t arrived = 0; arrived < sent_count; arrived++) {
		uint32_t next = newest_first ? sent_count - 1 : 0;
		while (has_arrived[next])
			next += newest_first ? -1u : 1;
		has_arrived[next] = true;
		knows[sent[next].is.dst] |= sent[next].carries;
		assert_true(sent[next].is.tells_arrival);
		job.job.kind->arrived(&job.job, sent[next].is.dst, sent[next].is.tag, 100, &sink);
		job.job.kind->ended(&job.job, sent[next].is.src, sent[next].is.tag, 120, &no_error, &sink);
	}
	assert_int_equal(sent_count, job.job.operations);
}

static void add(const char *kind, const char *algorithm, uint32_t ranks, uint64_t bytes)
{
	play(kind, algorithm, ranks, bytes, false);
}

static uint64_t sent_by(uint32_t rank)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < sent_count; i++)
		bytes += sent[i].is.src == rank ? sent[i].is.bytes : 0;
	return bytes;
}

/* Of 128 bytes and 8 ranks. */
static void bytes__are_the_algorithms(void **state)
{
	static const struct {
		const char *kind, *algorithm;
		uint64_t bytes; /* of each rank */
	} cases[] = {
		{ "allreduce", "ring", 2 * 7 * 16 },
		{ "allreduce", "recursive-doubling", 3 * 128 },
		{ "allreduce", "halving-doubling", 2 * 7 * 16 },
		{ "allreduce", "direct", 2 * 7 * 16 },
		{ "all-gather", "ring", 7 * 16 },
		{ "all-gather", "recursive-doubling", 7 * 16 },
		{ "all-gather", "direct", 7 * 16 },
		{ "reduce-scatter", "ring", 7 * 16 },
		{ "reduce-scatter", "halving-doubling", 7 * 16 },
		{ "reduce-scatter", "direct", 7 * 16 },
		{ "barrier", "dissemination", 3 },
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		add(cases[i].kind, cases[i].algorithm, 8, 128);
		for (uint32_t rank = 0; rank < 8; rank++)
			assert_int_equal(sent_by(rank), cases[i].bytes);
	}
}

static bool runs_with(const struct collective_algorithm *is, uint32_t ranks)
{
	if (is->waiting == FOR_BOTH_RINGS || is->is_by_switch)
		return ranks % GPUS == 0;
	return !is->is_by_powers_of_2 || (ranks & (ranks - 1)) == 0;
}

static void carry_all(const char *kind, const struct collective_algorithm *is, uint32_t ranks)
{
	const bool any_order = !is->edges && is->waiting != FOR_THE_LAST && is->waiting != FOR_BOTH_RINGS;
	for (unsigned newest_first = 0; newest_first <= any_order; newest_first++) {
		play(kind, is->name, ranks, 64, newest_first);
		for (uint32_t rank = 0; rank < ranks; rank++)
			assert_int_equal(knows[rank], (1u << ranks) - 1);
	}
}

/* A message carries all that its sender knew when it began. In the end every rank must know of every rank, in whatever
 * order messages of different ranks arrive. */
static void messages__carry_every_rank_to_every_rank(void **state)
{
	static const char *const kinds[] = { "allreduce", "all-gather", "reduce-scatter", "alltoall", "barrier" };
	const struct collective_algorithm *is;
	for (unsigned k = 0; k < 5; k++)
		for (uint32_t i = 0; (is = collective_algorithm(kinds[k], i)); i++)
			for (uint32_t ranks = 2; ranks <= MOST_RANKS; ranks++)
				if (runs_with(is, ranks))
					carry_all(kinds[k], is, ranks);
}

/* From rank 0 to all, and from all to rank 0; in several pieces, which come in order. */
static void chains__lead_from_and_to_the_root(void **state)
{
	for (uint32_t ranks = 2; ranks <= MOST_RANKS; ranks++) {
		add("broadcast", NULL, ranks, 300000);
		assert_int_equal(sent_count, 3 * (ranks - 1));
		for (uint32_t rank = 0; rank < ranks; rank++) {
			assert_int_equal(knows[rank] & 1, 1);
			assert_int_equal(sent_by(rank), rank + 1 < ranks ? 300000 : 0);
		}
		add("reduce", NULL, ranks, 300000);
		assert_int_equal(knows[0], (1u << ranks) - 1);
	}
}

/* Each half of the data goes once up and once down each edge of its tree. A rank sends 2S at most, and only the two
 * roots less than the leaves of one tree and inner nodes of the other. The first GPU of a host also feeds its chain. */
static void double_tree__sends_each_half_up_and_down(void **state)
{
	for (uint32_t ranks = 2; ranks <= MOST_RANKS; ranks++) {
		uint64_t all = 0;
		add("allreduce", "double-tree", ranks, 1 << 20);
		for (uint32_t rank = 0; rank < ranks; rank++) {
			assert_true(sent_by(rank) <= (ranks % GPUS ? 2 : 3) << 20);
			all += sent_by(rank);
		}
		assert_int_equal(all, (uint64_t)(ranks - 1) * (2 << 20));
	}
}

static void all_to_all__has_eight_under_way(void **state)
{
	const struct collective collective = { .kind = "alltoall", .ranks = 16, .bytes = 1600 };
	assert_int_equal(collective_job_open(&job, &collective), 0);
	sent_count = 0;
	job.job.kind->begin(&job.job, 3, &sink);
	assert_int_equal(sent_count, 8);
	job.job.kind->arrived(&job.job, 3, 0, 10, &sink);
	assert_int_equal(sent_count, 8);
	job.job.kind->ended(&job.job, 3, 5, 20, &no_error, &sink);
	assert_int_equal(sent_count, 9);
	assert_int_equal(sent[8].is.dst, (3 + 1 + 8) % 16);
	assert_int_equal(sent[8].is.bytes, 100);
	assert_int_equal(sent[8].is.channel, 0);
}

/* A rank that sends to one other at a time keeps to one connection for each. */
static void channels__are_kept_unless_all_is_sent_at_once(void **state)
{
	add("allreduce", "ring", 4, 64);
	for (uint32_t i = 0; i < sent_count; i++)
		assert_int_equal(sent[i].is.channel, 1);
	add("allreduce", "direct", 4, 64);
	for (uint32_t i = 0; i < sent_count; i++)
		assert_int_equal(sent[i].is.channel, 0);
}

static void shares__differ_by_one_byte_and_are_never_empty(void **state)
{
	add("all-gather", "direct", 3, 8);
	assert_int_equal(sent_by(0), 2 * 3);
	assert_int_equal(sent_by(1), 2 * 3);
	assert_int_equal(sent_by(2), 2 * 2);
	add("all-gather", "ring", 4, 2);
	for (uint32_t i = 0; i < sent_count; i++)
		assert_int_equal(sent[i].is.bytes, 1);
}

static void start__is_that_of_the_first_step(void **state)
{
	add("allreduce", NULL, 4, 64);
	for (uint32_t i = 0; i < sent_count; i++)
		assert_int_equal(sent[i].is.start, sent[i].is.tag == 0 ? 5 : 100);
}

/* As many rings as the host has NICs, or channels; all bytes that a protocol sends are shared out. */
static void rings__share_out_what_is_sent(void **state)
{
	struct collective of = { .kind = "allreduce", .algorithm = "ring", .ranks = 8, .bytes = 1000, .gpus = GPUS };
	uint64_t bytes = 0;
	assert_int_equal(collective_rings(&of, GPUS), GPUS);
	of.channels = 3;
	of.wire = 2000;
	assert_int_equal(collective_rings(&of, GPUS), 3);
	for (uint32_t i = 0; i < 3; i++) {
		const struct collective ring = collective_ring(&of, GPUS, i);
		assert_int_equal(ring.wire, 0);
		bytes += ring.bytes;
	}
	assert_int_equal(bytes, 2000);
	assert_true(collective_law(&of).bytes == 2 * 2000 * 7.0 / 8);
}

static void expect_refused(const char *algorithm, uint32_t ranks, const char *part)
{
	char why[200] = "";
	const struct collective collective = {
		.kind = "allreduce", .algorithm = algorithm, .ranks = ranks, .bytes = 64
	};
	assert_int_equal(collective_check(&collective, why, sizeof(why)), -EINVAL);
	if (!strstr(why, part))
		fail_msg("%s, without %s", why, part);
}

static void what_does_not_work__is_refused(void **state)
{
	expect_refused("tree", 8, "no algorithm of allreduce is called tree: there is ring, recursive-doubling");
	expect_refused("halving-doubling", 12, "2, 4, 8, ... ranks, not for 12");
	expect_refused("nvls", 8, "whole hosts whose scale-up domain reduces (hosts.reduces, or hosts.gpu: H100)");
	expect_refused("direct", 1 << 20, "more messages");
	expect_refused("ring", 1 << 20, "more messages");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(bytes__are_the_algorithms, teardown),
		cmocka_unit_test_teardown(messages__carry_every_rank_to_every_rank, teardown),
		cmocka_unit_test_teardown(channels__are_kept_unless_all_is_sent_at_once, teardown),
		cmocka_unit_test_teardown(chains__lead_from_and_to_the_root, teardown),
		cmocka_unit_test_teardown(double_tree__sends_each_half_up_and_down, teardown),
		cmocka_unit_test_teardown(all_to_all__has_eight_under_way, teardown),
		cmocka_unit_test_teardown(shares__differ_by_one_byte_and_are_never_empty, teardown),
		cmocka_unit_test(rings__share_out_what_is_sent),
		cmocka_unit_test_teardown(start__is_that_of_the_first_step, teardown),
		cmocka_unit_test_teardown(what_does_not_work__is_refused, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
