/* When acks leave, and what they say. */
#include <stdlib.h>
#include "fabric/tcp.h"
#include "../unit.h"

static struct tcp_receiver receiver;

static int setup(void **state)
{
	receiver = (struct tcp_receiver){ .count = 1000 };
	return 0;
}

static int teardown(void **state)
{
	free(receiver.seen);
	return 0;
}

static struct tcp_taken take(uint64_t segment)
{
	return tcp_receiver_take(&receiver, segment, false, 2, false);
}

static void is_acked(struct tcp_taken taken, uint64_t there)
{
	assert_int_equal(taken.ack_count, 1);
	assert_int_equal(taken.acks[0].there, there);
}

static void has_block(const struct tcp_ack *ack, unsigned i, uint64_t first, uint64_t end)
{
	assert_true(i < ack->block_count);
	assert_int_equal(ack->blocks[i].first, first);
	assert_int_equal(ack->blocks[i].end, end);
}

static void every_second__is_acknowledged_and_the_last(void **state)
{
	receiver.count = 5;
	for (uint64_t i = 0; i < 4; i++) {
		struct tcp_taken taken = take(i);
		assert_true(taken.is_new);
		assert_int_equal(taken.ack_count, i % 2);
		assert_int_equal(receiver.owed, (i + 1) % 2);
	}
	is_acked(take(4), 5);
}

static void gaps__are_told_of_at_once(void **state)
{
	take(0);
	struct tcp_taken taken = take(5);
	is_acked(taken, 1);
	assert_int_equal(taken.acks[0].block_count, 1);
	has_block(&taken.acks[0], 0, 5, 6);
	take(6);
	take(3);
	taken = take(10); /* the newest first, three at most */
	is_acked(taken, 1);
	assert_int_equal(taken.acks[0].block_count, 3);
	has_block(&taken.acks[0], 0, 10, 11);
	has_block(&taken.acks[0], 1, 3, 4);
	has_block(&taken.acks[0], 2, 5, 7);
	taken = take(4);
	is_acked(taken, 1);
	has_block(&taken.acks[0], 0, 3, 7);
	taken = take(1); /* part of a gap */
	is_acked(taken, 2);
	taken = take(2);
	is_acked(taken, 7);
	assert_int_equal(taken.acks[0].block_count, 1);
	has_block(&taken.acks[0], 0, 10, 11);
}

static void blocks__may_be_long(void **state)
{
	struct tcp_taken taken = { 0 };
	for (uint64_t i = 1; i < 700; i++)
		taken = take(i);
	has_block(&taken.acks[0], 0, 1, 700);
	taken = take(0);
	is_acked(taken, 700);
	assert_int_equal(taken.acks[0].block_count, 0);
}

static void what_is_there__is_acknowledged_again(void **state)
{
	take(0);
	take(1);
	struct tcp_taken taken = take(1);
	assert_false(taken.is_new);
	is_acked(taken, 2);
	take(7);
	taken = take(7);
	assert_false(taken.is_new);
	is_acked(taken, 2);
}

/* RFC 8257, figure 1: what is owed leaves before the state changes. */
static void marks__are_echoed_exactly(void **state)
{
	static const bool marks[] = { 0, 0, 0, 1, 1, 1, 0, 1, 0, 0, 0, 1 };
	uint64_t told = 0;
	for (uint64_t i = 0; i < sizeof(marks); i++) {
		struct tcp_taken taken = tcp_receiver_take(&receiver, i, marks[i], 2, true);
		for (unsigned k = 0; k < taken.ack_count; k++)
			for (; told < taken.acks[k].there; told++)
				assert_int_equal(marks[told], taken.acks[k].is_echo);
	}
	assert_int_equal(told, 11);
	assert_int_equal(receiver.owed, 1);
	struct tcp_taken taken = tcp_receiver_take(&receiver, 12, true, 2, false);
	is_acked(taken, 13);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_second__is_acknowledged_and_the_last, setup, teardown),
		cmocka_unit_test_setup_teardown(gaps__are_told_of_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(blocks__may_be_long, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_there__is_acknowledged_again, setup, teardown),
		cmocka_unit_test_setup_teardown(marks__are_echoed_exactly, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
