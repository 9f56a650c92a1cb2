/* An rsocket's wait at a descriptor that never becomes readable: only signals come. */
#include "rsocket/objects.h"
#include "../unit.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* ---- What the other files of rsockets promise -------------------------------------------------------------------- */

bool vb_rs_datagram_progress(struct vb_rsocket *rs, bool is_all)
{
	return false;
}

bool vb_rs_datagram_arm(struct vb_rsocket *rs)
{
	return false;
}

bool vb_rs_take_events(struct vb_rsocket *rs)
{
	return false;
}

bool vb_rs_stream_poll(struct vb_rsocket *rs, unsigned *driven)
{
	return false;
}

void vb_rs_datagram_add_lanes(const struct vb_rsocket *rs, struct vb_rs_lanes *to) {}

const struct vb_rs_defaults *vb_rs_defaults(void)
{
	static const struct vb_rs_defaults defaults = { .wake_up_ms = 5000 };
	return &defaults;
}

/* ---- Signals ----------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t signals;

static void count_signal(int signal)
{
	signals++;
}

static bool came_twice(const struct vb_rsocket *rs)
{
	return signals >= 2;
}

static int wait_with(int action_flags, int64_t timeout_us)
{
	static const struct itimerval often = { { .tv_usec = 20000 }, { .tv_usec = 20000 } }, never;
	struct sigaction action = { .sa_handler = count_signal, .sa_flags = action_flags };
	struct vb_rsocket rs = { .fd = eventfd(0, EFD_CLOEXEC), .type = SOCK_STREAM };

	pthread_mutex_init(&rs.lock, NULL);
	pthread_cond_init(&rs.changed, NULL);
	signals = 0;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	pthread_mutex_lock(&rs.lock);
	int result = vb_rs_wait(&rs, came_twice, false, timeout_us);
	pthread_mutex_unlock(&rs.lock);
	setitimer(ITIMER_REAL, &never, NULL);
	close(rs.fd);
	return result;
}

static void wait__goes_on_after_a_signal_that_restarts_calls(void **state)
{
	assert_int_equal(wait_with(SA_RESTART, 0), 0);
}

static void wait__ends_with_a_signal_that_does_not(void **state)
{
	assert_int_equal(wait_with(0, 0), -EINTR);
}

static void wait__of_limited_time_ends_with_any_signal(void **state)
{
	assert_int_equal(wait_with(SA_RESTART, 10000000), -EINTR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wait__goes_on_after_a_signal_that_restarts_calls),
		cmocka_unit_test(wait__ends_with_a_signal_that_does_not),
		cmocka_unit_test(wait__of_limited_time_ends_with_any_signal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
