/* Lines that wait until a lock has been given away. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "../unit.h"
#include "host/later.h"

static int pipe_fds[2], saved_stderr;
static char said[65536];

static int listen_in(void **state)
{
	saved_stderr = dup(STDERR_FILENO);
	if (pipe2(pipe_fds, O_NONBLOCK | O_CLOEXEC) < 0)
		return -1;
	dup2(pipe_fds[1], STDERR_FILENO);
	return 0;
}

static int listen_no_more(void **state)
{
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	close(pipe_fds[0]);
	return close(pipe_fds[1]);
}

static const char *heard(void)
{
	ssize_t length = read(pipe_fds[0], said, sizeof(said) - 1);
	said[length > 0 ? length : 0] = '\0';
	return said;
}

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
		cmocka_unit_test_setup_teardown(lines__are_silent_until_they_are_said_and_in_order_then, listen_in, listen_no_more),
		cmocka_unit_test_setup_teardown(lines__beyond_a_few_are_lost, listen_in, listen_no_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
