/* Lines that wait until a lock has been given away. */
#include <errno.h>
#include "heard.h"
#include "host/report/later.h"

static void lines__are_silent_until_they_are_said_and_in_order_then(void **state)
{
	struct vb_later *unsaid = NULL, *taken = NULL;

	vb_log_later(&unsaid, VB_LOG_WARN, "line %u", 1);
	vb_log_later(&unsaid, VB_LOG_DEBUG, "too fine");
	vb_later_take(&unsaid, &taken);
	assert_null(unsaid);
	vb_log_later(&unsaid, VB_LOG_ERROR, "line %u", 2);
	vb_later_take(&unsaid, &taken);
	vb_later_take(&unsaid, &taken);
	assert_string_equal(heard(), "");
	errno = EBADF;
	vb_later_say(taken);
	assert_int_equal(errno, EBADF);
	assert_string_equal(heard(), "verbena: line 1\nverbena: line 2\n");
	vb_later_say(NULL);
	assert_string_equal(heard(), "");
}

static void lines__beyond_a_few_are_lost(void **state)
{
	struct vb_later *unsaid = NULL;
	unsigned count = 0;

	for (unsigned i = 0; i < 1000; i++)
		vb_log_later(&unsaid, VB_LOG_WARN, "line %u", i);
	vb_later_say(unsaid);
	for (const char *at = heard(); (at = strchr(at, '\n')); at++)
		count++;
	assert_in_range(count, 8, 100);
	assert_memory_equal(said, "verbena: line 0\nverbena: line 1\n", 32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			lines__are_silent_until_they_are_said_and_in_order_then, listen_in, listen_no_more),
		cmocka_unit_test_setup_teardown(lines__beyond_a_few_are_lost, listen_in, listen_no_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
