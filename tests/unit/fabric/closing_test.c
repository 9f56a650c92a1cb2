/* When the connection of a flow that has ended is closed. */
#include "fabric/closing.h"
#include "fabric/endpoint.h"
#include "../unit.h"

enum { FLOWS = 4 };

static bool is_closed[FLOWS], has_more_to_say;

static bool close_flow(struct fabric *fabric, uint32_t flow)
{
	if (has_more_to_say)
		return false;
	assert_false(is_closed[flow]);
	return is_closed[flow] = true;
}

static const struct endpoint_kind kind = { .close_flow = close_flow };
static struct shard shards[2];
static struct endpoint endpoints[1];
static struct fabric fabric;

static int setup(void **state)
{
	memset(is_closed, 0, sizeof(is_closed));
	has_more_to_say = false;
	fabric = (struct fabric){
		.kind = &kind, .shards = shards, .shard_count = 2, .endpoints = endpoints, .first_closing = FLOW_NONE
	};
	for (unsigned i = 0; i < 2; i++)
		shards[i] = (struct shard){
			.fabric = &fabric, .first_ended = FLOW_NONE, .free_packet = NO_PACKET, .free_long = NO_PACKET
		};
	shards[0].flows = pool_empty_list();
	pool_open(&fabric.flows, flow_stride(0));
	for (uint32_t i = 0; i < FLOWS; i++)
		assert_int_equal(pool_take(&fabric.flows, &shards[0].flows), i);
	return 0;
}

static int teardown(void **state)
{
	pool_close(&fabric.flows);
	return 0;
}

static void send_one(void)
{
	shards[0].under_way[fabric.generation]++;
}

/* In another shard: neither count says by itself what is under way. */
static void take_one(unsigned generation)
{
	shards[1].under_way[generation]--;
}

static void flow__is_closed_when_what_left_before_its_end_is_gone(void **state)
{
	const unsigned before = fabric.generation;
	send_one();
	closing_add(&shards[0], 2);
	for (unsigned i = 0; i < 5; i++)
		closing_advance(&fabric);
	assert_false(is_closed[2]);
	assert_int_not_equal(fabric.generation, before);
	send_one(); /* it is of another flow, and keeps nothing waiting */
	take_one(before);
	closing_advance(&fabric);
	assert_true(is_closed[2]);
	assert_int_equal(pool_take(&fabric.flows, &shards[0].flows), 2); /* its record is used again */
}

static void flow__that_ends_meanwhile_waits_for_the_next_generation(void **state)
{
	send_one();
	closing_add(&shards[0], 0);
	closing_advance(&fabric);
	send_one();
	closing_add(&shards[1], 1);
	closing_add(&shards[0], 3);
	take_one(!fabric.generation);
	closing_advance(&fabric);
	assert_true(is_closed[0] && !is_closed[1] && !is_closed[3]);
	closing_advance(&fabric);
	assert_false(is_closed[1]);
	take_one(!fabric.generation);
	closing_advance(&fabric);
	assert_true(is_closed[1] && is_closed[3]);
}

static void flow__with_something_to_say_is_asked_again(void **state)
{
	has_more_to_say = true;
	closing_add(&shards[0], 1);
	for (unsigned i = 0; i < 4; i++)
		closing_advance(&fabric);
	assert_false(is_closed[1]);
	has_more_to_say = false;
	closing_advance(&fabric);
	assert_true(is_closed[1]);
	closing_advance(&fabric);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(flow__is_closed_when_what_left_before_its_end_is_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(
			flow__that_ends_meanwhile_waits_for_the_next_generation, setup, teardown),
		cmocka_unit_test_setup_teardown(flow__with_something_to_say_is_asked_again, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
