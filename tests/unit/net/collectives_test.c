/* Collectives: after the messages every rank has what it should, computed by carrying sets of contributions along. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "net/collectives.h"
#include "../unit.h"

enum { MOST_RANKS = 16 };

static struct flow_list list;

static int teardown(void **state)
{
	flow_list_free(&list);
	return 0;
}

static void add(const char *kind, const char *algorithm, uint32_t ranks, uint64_t bytes)
{
	char why[200] = "";
	const struct collective collective = {
		.kind = kind, .algorithm = algorithm, .ranks = ranks, .bytes = bytes, .start = 5
	};
	flow_list_free(&list);
	assert_int_equal(collective_check(&collective, why, sizeof(why)), 0);
	assert_int_equal(collective_add(&list, &collective), 0);
	assert_int_equal(list.count, collective_messages(&collective));
	assert_int_equal(flow_list_check(&list, ranks, why, sizeof(why)), 0);
	uint32_t stuck;
	assert_int_equal(flow_list_find_stuck(&list, &stuck), 0);
	assert_int_equal(stuck, FLOW_NONE);
}

static uint64_t sent_by(uint32_t rank)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < list.count; i++)
		bytes += list.flows[i].src == rank ? list.flows[i].bytes : 0;
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

/* A message carries all that its sender knew when it began: of each rank whose messages it had heard of, what those
 * knew. In the end every rank must know of every rank. */
static void waits__carry_every_rank_to_every_rank(void **state)
{
	static const char *const kinds[] = { "allreduce", "all-gather", "reduce-scatter", "barrier" };
	const char *name;
	for (unsigned k = 0; k < 4; k++)
		for (uint32_t i = 0; (name = collective_algorithm(kinds[k], i)); i++)
			for (uint32_t ranks = 2; ranks <= MOST_RANKS; ranks += strcmp(name, "ring") == 0 ? 1 : ranks) {
				add(kinds[k], name, ranks, 64);
				uint32_t *carried = calloc(list.count, sizeof(*carried)), knows[MOST_RANKS];
				assert_non_null(carried);
				for (uint32_t flow = 0; flow < list.count; flow++)
					carried[flow] = 1u << list.flows[flow].src;
				for (uint32_t w = 0; w < list.wait_count; w++) { /* in the order of their flows */
					const struct flow_wait wait = list.waits[w];
					assert_true(wait.before < wait.flow);
					assert_int_equal(wait.event, FLOW_ARRIVED);
					assert_int_equal(list.flows[wait.before].dst, list.flows[wait.flow].src);
					carried[wait.flow] |= carried[wait.before];
				}
				for (uint32_t rank = 0; rank < ranks; rank++)
					knows[rank] = 1u << rank;
				for (uint32_t flow = 0; flow < list.count; flow++)
					knows[list.flows[flow].dst] |= carried[flow];
				for (uint32_t rank = 0; rank < ranks; rank++)
					assert_int_equal(knows[rank], (1u << ranks) - 1);
				free(carried);
			}
}

static void shares__differ_by_one_byte_and_are_never_empty(void **state)
{
	add("all-gather", "direct", 3, 8);
	assert_int_equal(sent_by(0), 2 * 3);
	assert_int_equal(sent_by(1), 2 * 3);
	assert_int_equal(sent_by(2), 2 * 2);
	add("all-gather", "ring", 4, 2);
	for (uint32_t i = 0; i < list.count; i++)
		assert_int_equal(list.flows[i].bytes, 1);
}

static void start__is_that_of_what_waits_for_nothing(void **state)
{
	add("allreduce", NULL, 4, 64);
	for (uint32_t i = 0; i < list.count; i++)
		assert_int_equal(list.flows[i].start, list.flows[i].waits ? 0 : 5);
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
	expect_refused("direct", 1024, "messages to wait for");
	expect_refused("ring", 100000, "more messages");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(bytes__are_the_algorithms, teardown),
		cmocka_unit_test_teardown(waits__carry_every_rank_to_every_rank, teardown),
		cmocka_unit_test_teardown(shares__differ_by_one_byte_and_are_never_empty, teardown),
		cmocka_unit_test_teardown(start__is_that_of_what_waits_for_nothing, teardown),
		cmocka_unit_test_teardown(what_does_not_work__is_refused, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
