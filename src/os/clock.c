/* The clock of the system. See clock.h. */
#include "os/clock.h"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

static struct timespec timespec_of(int64_t ns)
{
	return (struct timespec){ (time_t)(ns / VB_CLOCK_S), (long)(ns % VB_CLOCK_S) };
}

static int64_t read_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * VB_CLOCK_S + now.tv_nsec;
}

int64_t vb_clock_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

/* By number: the C library's function is a cancellation point. */
void vb_clock_sleep(int64_t ns)
{
	const struct timespec span = timespec_of(ns);

	syscall(SYS_nanosleep, &span, NULL);
}

int vb_clock_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	return poll(fds, count, timeout_ms);
}

int vb_clock_epoll(int epoll_fd, struct epoll_event *events, int room, int timeout_ms)
{
	return epoll_wait(epoll_fd, events, room, timeout_ms);
}

int vb_clock_cond_init(pthread_cond_t *condition)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	int error = pthread_cond_init(condition, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return error;
}

int vb_clock_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until_ns)
{
	const struct timespec until = timespec_of(until_ns);

	return pthread_cond_timedwait(condition, mutex, &until);
}

/* A mutex knows the time of day alone. */
int vb_clock_lock(pthread_mutex_t *mutex, int64_t until_ns)
{
	const struct timespec until = timespec_of(read_ns(CLOCK_REALTIME) + until_ns - vb_clock_ns());

	return pthread_mutex_timedlock(mutex, &until);
}

int vb_clock_timer(void)
{
	return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
}

bool vb_clock_set_timer(int fd, int64_t at_ns, int64_t every_ns)
{
	const struct itimerspec spec = { .it_value = timespec_of(at_ns), .it_interval = timespec_of(every_ns) };

	return timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL) == 0;
}
