/* The clock of the system: what a wait with a deadline promises. */
#include "../unit.h"
#include <errno.h>
#include <unistd.h>
#include "os/clock.h"

#define SHORT_NS (5 * VB_CLOCK_MS)

static void clock__never_goes_back(void **state)
{
	int64_t before = vb_clock_ns();

	for (unsigned i = 0; i < 1000; i++) {
		int64_t now = vb_clock_ns();
		assert_true(now >= before);
		before = now;
	}
}

static void sleep__lasts_as_long_as_it_was_asked_to(void **state)
{
	int64_t before = vb_clock_ns();

	vb_clock_sleep(SHORT_NS);
	assert_true(vb_clock_ns() - before >= SHORT_NS);
}

/* Or a caller that has a microsecond left would ask again and again. */
static void left__is_rounded_up(void **state)
{
	assert_in_range(vb_clock_left_ms(vb_clock_ns() + 10 * VB_CLOCK_MS), 1, 10);
	assert_int_equal(vb_clock_left_ms(vb_clock_ns() + 900000), 1);
	assert_int_equal(vb_clock_left_ms(vb_clock_ns() - 1), 0);
	assert_int_equal(vb_clock_left_ms(vb_clock_ns() + 3000000 * VB_CLOCK_S), INT32_MAX);
}

static void poll__ends_no_earlier_than_its_deadline(void **state)
{
	int64_t deadline = vb_clock_ns() + SHORT_NS;

	assert_int_equal(vb_clock_poll(NULL, 0, vb_clock_left_ms(deadline)), 0);
	assert_true(vb_clock_ns() >= deadline);
}

static void timer__is_readable_when_its_time_has_come_and_not_before(void **state)
{
	int fd = vb_clock_timer();
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	int64_t at = vb_clock_ns() + SHORT_NS;

	assert_int_equal(vb_clock_poll(&ready, 1, 1), 0);
	assert_true(vb_clock_set_timer(fd, at, 0));
	assert_int_equal(vb_clock_poll(&ready, 1, -1), 1);
	assert_true(vb_clock_ns() >= at);
	assert_true(vb_clock_set_timer(fd, vb_clock_ns() + SHORT_NS, 0));
	assert_true(vb_clock_set_timer(fd, 0, 0));
	assert_int_equal(vb_clock_poll(&ready, 1, 10), 0);
	close(fd);
	assert_false(vb_clock_set_timer(fd, at, 0));
}

static void condition__is_given_up_at_its_time(void **state)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t condition;
	int64_t until = vb_clock_ns() + SHORT_NS;
	int rc = 0;

	assert_int_equal(vb_clock_cond_init(&condition), 0);
	pthread_mutex_lock(&mutex);
	while (rc == 0)
		rc = vb_clock_cond_wait(&condition, &mutex, until);
	pthread_mutex_unlock(&mutex);
	assert_int_equal(rc, ETIMEDOUT);
	assert_true(vb_clock_ns() >= until);
	pthread_cond_destroy(&condition);
}

static void lock__of_a_mutex_that_is_held_is_given_up_at_its_time(void **state)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

	assert_int_equal(vb_clock_lock(&mutex, vb_clock_ns()), 0);
	assert_int_equal(vb_clock_lock(&mutex, vb_clock_ns() + SHORT_NS), ETIMEDOUT);
	pthread_mutex_unlock(&mutex);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clock__never_goes_back),
		cmocka_unit_test(sleep__lasts_as_long_as_it_was_asked_to),
		cmocka_unit_test(left__is_rounded_up),
		cmocka_unit_test(poll__ends_no_earlier_than_its_deadline),
		cmocka_unit_test(timer__is_readable_when_its_time_has_come_and_not_before),
		cmocka_unit_test(condition__is_given_up_at_its_time),
		cmocka_unit_test(lock__of_a_mutex_that_is_held_is_given_up_at_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
