/* What is said on stderr, and the clock. */
#include <errno.h>
#include <time.h>
#include "host/host.h"
#include "host/report/log.h"
#include "heard.h"

static void log__says_a_line_of_the_level_and_no_finer_one(void **state)
{
	vb_log_set_level(VB_LOG_WARN);
	vb_log(VB_LOG_WARN, "%d of %s", 3, "them");
	assert_string_equal(heard(), "verbena: 3 of them\n");
	vb_log(VB_LOG_INFO, "nobody asked");
	assert_string_equal(heard(), "");
	vb_log_set_level(VB_LOG_DEBUG);
	vb_log(VB_LOG_DEBUG, "now they do");
	assert_string_equal(heard(), "verbena: now they do\n");
}

static void log__cuts_what_is_too_long_and_still_ends_the_line(void **state)
{
	static char text[3000];
	memset(text, 'x', sizeof(text) - 1);
	vb_log(VB_LOG_ERROR, "%s", text);
	size_t length = strlen(heard());
	assert_in_range(length, 1000, 1024);
	assert_ptr_equal(strchr(said, '\n'), said + length - 1);
}

static void log__leaves_errno_alone(void **state)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	dup2(full, STDERR_FILENO);
	close(full);
	errno = EXDEV;
	vb_log(VB_LOG_ERROR, "to nobody");
	assert_int_equal(errno, EXDEV);
}

/* A program starts its count near zero, so that what wraps does so after months. */
static void clock__starts_near_zero_and_agrees_with_the_kernels(void **state)
{
	struct timespec kernel;
	vb_time now = vb_host_now();
	clock_gettime(CLOCK_MONOTONIC, &kernel);
	int64_t kernel_ns = kernel.tv_sec * 1000000000ll + kernel.tv_nsec;
	assert_in_range(now, 0, 3600 * VB_S);
	assert_false(vb_time_before(vb_host_now(), now));
	assert_in_range(kernel_ns - (int64_t)vb_host_monotonic_ns(now), 0, 1000000000);
	int64_t later = (int64_t)vb_host_monotonic_ns(vb_time_add(now, 5 * VB_S));
	assert_in_range(later - (int64_t)vb_host_monotonic_ns(now), 5000000000 - 1, 5000000000 + 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, listen_in, listen_no_more)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(log__says_a_line_of_the_level_and_no_finer_one),
		TEST(log__cuts_what_is_too_long_and_still_ends_the_line),
		TEST(log__leaves_errno_alone),
		cmocka_unit_test(clock__starts_near_zero_and_agrees_with_the_kernels),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
