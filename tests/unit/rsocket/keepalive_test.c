/* A peer that is gone without a word: who asks for signs of life is told, and who does not is not. */
#include "pair.h"

#include <netinet/tcp.h>

static int teardown(void **state)
{
	loop_set_blocked(false);
	return pair_teardown(state);
}

static void set(int level, int name, int value)
{
	assert_int_equal(rsetsockopt(pair_client, level, name, &value, sizeof(value)), 0);
}

/* Again and again, for time goes on in the loop when somebody looks. */
static int poll_client(int timeout_ms)
{
	struct pollfd client = { .fd = pair_client, .events = POLLIN };
	int ready = 0;

	for (; timeout_ms > 0 && !ready; timeout_ms -= 5)
		ready = rpoll(&client, 1, 5);
	return ready;
}

static void silence__is_broken_by_a_question_after_the_idle_time(void **state)
{
	char byte;

	set(SOL_SOCKET, SO_KEEPALIVE, 1);
	set(IPPROTO_TCP, TCP_KEEPIDLE, 1);
	assert_int_equal(poll_client(1200), 0); /* it was asked, and is there */
	loop_set_blocked(true);
	assert_int_equal(poll_client(3000), 1);
	pair_assert_fails(rrecv(pair_client, &byte, 1, 0), ETIMEDOUT);
}

static void silence__is_no_error_to_who_does_not_ask(void **state)
{
	set(SOL_SOCKET, SO_KEEPALIVE, 1);
	set(IPPROTO_TCP, TCP_KEEPIDLE, 1);
	set(SOL_SOCKET, SO_KEEPALIVE, 0);
	loop_set_blocked(true);
	assert_int_equal(poll_client(1200), 0);
	assert_int_equal(pair_option(pair_client, SOL_SOCKET, SO_ERROR), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			silence__is_broken_by_a_question_after_the_idle_time, pair_setup_connected, teardown),
		cmocka_unit_test_setup_teardown(
			silence__is_no_error_to_who_does_not_ask, pair_setup_connected, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
