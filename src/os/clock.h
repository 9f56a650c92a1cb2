/* The clock of the live half, and all that waits by it. Each live room asks here for the time, for a moment of sleep,
 * for a wait that may end by time, and for a timer: no other file of these rooms calls clock_gettime(), nanosleep() or
 * timerfd_settime().
 *
 * Holds: times are CLOCK_MONOTONIC, which never goes back. A wait ends no earlier than its deadline.
 *
 * The seam: clock.c alone defines the functions that are not inline here. A process that is to run on virtual time
 * links (or, in a test, defines) others of the same names, and all of it then has that time. A live process pays
 * nothing for this, since it is decided at link time: there is no table and no flag to look at, link-time optimisation
 * inlines vb_clock_ns(), and the call into the vDSO is the same direct call as before.
 *
 * Not here: the time of day that a file's record carries (port/pcap.c), CPU time (lanes/crowding.c), and the
 * simulator, which has no clock. Threads: any. */
#ifndef VB_OS_CLOCK_H
#define VB_OS_CLOCK_H

#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct epoll_event;

#define VB_CLOCK_MS INT64_C(1000000) /* in ns */
#define VB_CLOCK_S  INT64_C(1000000000)

/* Hidden: each library has its own, so that a call is a direct one. */
#pragma GCC visibility push(hidden)

/* Nanoseconds since the machine has started. */
int64_t vb_clock_ns(void);

/* ---- Waiting ---- */

/* Sleeps for about that long, or until a signal comes. No cancellation point: the caller may hold a lock. */
void vb_clock_sleep(int64_t ns);
/* As poll() and epoll_wait(): cancellation points. timeout_ms: -1 is for ever. */
int vb_clock_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int vb_clock_epoll(int epoll_fd, struct epoll_event *events, int room, int timeout_ms);
/* As pthread_cond_timedwait(), until a time of vb_clock_ns(). The condition variable is one of vb_clock_cond_init(). */
int vb_clock_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until_ns);
int vb_clock_cond_init(pthread_cond_t *condition);
/* Locks the mutex, but gives up at that time. 0, ETIMEDOUT or another error of pthread_mutex_timedlock(). */
int vb_clock_lock(pthread_mutex_t *mutex, int64_t until_ns);

/* ---- Timers ---- */

/* A descriptor that becomes readable when its time has come; not set yet. -1: errno says why. The caller closes it. */
int vb_clock_timer(void);
/* Sets one to a time of vb_clock_ns(), and from then on to each every_ns more, if that is not 0; 0 unsets it.
 * False: it is no timer. */
bool vb_clock_set_timer(int fd, int64_t at_ns, int64_t every_ns);

#pragma GCC visibility pop

/* ---- Other units ---- */

static inline int64_t vb_clock_us(void)
{
	return vb_clock_ns() / 1000;
}

static inline int64_t vb_clock_ms(void)
{
	return vb_clock_ns() / VB_CLOCK_MS;
}

/* For poll(): 0 when the deadline has passed; rounded up, so that nobody asks again just before it. */
static inline int vb_clock_left_ms(int64_t deadline_ns)
{
	int64_t left_ms = (deadline_ns - vb_clock_ns() + VB_CLOCK_MS - 1) / VB_CLOCK_MS;

	return left_ms < 0 ? 0 : left_ms < INT32_MAX ? (int)left_ms : INT32_MAX;
}

#endif
