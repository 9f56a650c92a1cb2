/* The clock of a live NIC: os/clock.h's in picoseconds since the library was loaded, so that it starts near zero. */
#include "base/invariant.h"
#include "host/lanes/host_lane.h"

#include "os/clock.h"

static int64_t start_ns;

__attribute__((constructor)) static void start(void)
{
	start_ns = vb_clock_ns();
}

static vb_time time_of(int64_t ns)
{
	return (vb_time)((uint64_t)(ns - start_ns) * (uint64_t)VB_NS);
}

vb_time vb_host_now(void)
{
	return time_of(vb_clock_ns());
}

/* The picosecond count wraps after seven months; the stamp is the one nearest to now. */
uint64_t vb_host_monotonic_ns(vb_time at)
{
	int64_t now_ns = vb_clock_ns();

	return (uint64_t)(now_ns + vb_time_diff(at, time_of(now_ns)) / VB_NS);
}

/* Never early, and never at 0, which would unset it. */
bool vb_host_set_timer(int fd, struct vb_deadline deadline)
{
	return vb_clock_set_timer(fd, deadline.is_set ? (int64_t)vb_host_monotonic_ns(deadline.at) + 1 : 0, 0);
}
