/* The clock of a live NIC: CLOCK_MONOTONIC in picoseconds since the library was loaded, so that it starts near zero. */
#include "base/invariant.h"
#include "host/lanes/driver.h"

#include <sys/timerfd.h>
#include <time.h>

static uint64_t start_ns;

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

__attribute__((constructor)) static void start(void)
{
	start_ns = monotonic_ns();
}

vb_time vb_host_now(void)
{
	return (vb_time)((monotonic_ns() - start_ns) * (uint64_t)VB_NS);
}

/* The picosecond count wraps after seven months; the stamp is the one nearest to now. */
uint64_t vb_host_monotonic_ns(vb_time at)
{
	uint64_t now_ns = monotonic_ns();
	vb_time now = (vb_time)((now_ns - start_ns) * (uint64_t)VB_NS);

	return now_ns + (uint64_t)(vb_time_diff(at, now) / VB_NS);
}

bool vb_host_set_timer(int fd, struct vb_deadline deadline)
{
	struct itimerspec spec = { .it_interval = { 0 } };

	if (deadline.is_set) {
		uint64_t ns = vb_host_monotonic_ns(deadline.at) + 1; /* never early, and never 0, which disarms */
		spec.it_value = (struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
	}
	return timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL) == 0;
}
