/* Descriptors that pass between processes: they come all or not at all, and none is left of what fails. */
#include "../unit.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "os/passing.h"

static int ends[2];
static int fds[VB_PASS_MAX];
static unsigned count, open_before;
static char bytes[8];

static unsigned count_open(void)
{
	unsigned n = 0;
	DIR *directory = opendir("/proc/self/fd");

	assert_non_null(directory);
	while (readdir(directory))
		n++;
	closedir(directory);
	return n;
}

static int open_ends(void **state)
{
	open_before = count_open();
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends);
}

/* Ends with no more open than at the start. */
static int close_ends(void **state)
{
	while (count)
		close(fds[--count]);
	close(ends[0]);
	close(ends[1]);
	return count_open() == open_before ? 0 : -1;
}

static void sends(const char *text, size_t length, unsigned descriptors)
{
	const int own[] = { 0, 0, 0, 0 };

	assert_int_equal(vb_pass_send(ends[0], text, length, own, descriptors, MSG_DONTWAIT), 0);
}

static int receives(size_t length, unsigned max)
{
	return vb_pass_receive(ends[1], bytes, length, fds, max, &count, MSG_DONTWAIT);
}

static void passing__gives_descriptors_that_are_close_on_exec(void **state)
{
	sends("four", 4, 2);
	assert_int_equal(receives(4, 3), 0);
	assert_memory_equal(bytes, "four", 4);
	assert_int_equal(count, 2);
	assert_true(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(fds[1], F_GETFD) & FD_CLOEXEC);
}

static void passing__of_more_than_fit_a_packet_is_refused(void **state)
{
	const int own[VB_PASS_MAX + 1] = { 0 };

	assert_int_equal(vb_pass_send(ends[0], "x", 1, own, VB_PASS_MAX + 1, MSG_DONTWAIT), -EINVAL);
}

static void receiving__tells_nothing_from_the_end(void **state)
{
	assert_int_equal(receives(4, 1), -EAGAIN);
	shutdown(ends[0], SHUT_RDWR);
	assert_int_equal(receives(4, 1), -ECONNRESET);
	assert_int_equal(count, 0);
}

static void receiving__of_another_length_keeps_no_descriptor(void **state)
{
	sends("three", 3, 1);
	assert_int_equal(receives(4, 1), -EPROTO);
	sends("five!", 5, 1);
	assert_int_equal(receives(4, 1), -EPROTO);
	assert_int_equal(count, 0);
}

static void receiving__of_too_many_keeps_none(void **state)
{
	sends("four", 4, 3);
	assert_int_equal(receives(4, 2), -EPROTO);
	assert_int_equal(count, 0);
}

static void receiving__where_the_process_has_no_room_keeps_none(void **state)
{
	struct rlimit before, few;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	sends("four", 4, 2);
	const int next = dup(0);
	close(next);
	few = (struct rlimit){ (rlim_t)next + 1, before.rlim_max }; /* one more */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	const int rc = receives(4, 2);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(rc, -EMFILE);
	assert_int_equal(count, 0);
}

static void receiving__of_any_length_says_how_long_it_was(void **state)
{
	enum vb_passed passed;

	sends("!", 1, 0);
	assert_int_equal(vb_pass_receive_any(ends[1], bytes, 4, fds, 1, &count, &passed, MSG_DONTWAIT), 1);
	assert_int_equal(passed, VB_PASSED_ALL);
	sends("longer", 6, 2);
	assert_int_equal(vb_pass_receive_any(ends[1], bytes, 4, fds, 1, &count, &passed, MSG_DONTWAIT), 6);
	assert_int_equal(passed, VB_PASSED_SURPLUS);
	assert_int_equal(count, 0);
	sends("longer", 6, 1);
	assert_int_equal(vb_pass_receive_any(ends[1], bytes, 4, fds, 1, &count, &passed, MSG_DONTWAIT), 6);
	assert_int_equal(count, 1); /* the caller's, whatever it makes of the length */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_ends, close_ends)
	const struct CMUnitTest tests[] = {
		TEST(passing__gives_descriptors_that_are_close_on_exec),
		TEST(passing__of_more_than_fit_a_packet_is_refused),
		TEST(receiving__tells_nothing_from_the_end),
		TEST(receiving__of_another_length_keeps_no_descriptor),
		TEST(receiving__of_too_many_keeps_none),
		TEST(receiving__where_the_process_has_no_room_keeps_none),
		TEST(receiving__of_any_length_says_how_long_it_was),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
