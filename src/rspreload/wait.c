/* poll, select and similar calls, over rsockets and other descriptors.
 * Holds: the signals of a mask are let in around the wait as a whole; a wait without an rsocket is the C library's. */
#include "rspreload/rspreload.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/select.h>
#include <time.h>
#include "os/clock.h"

static bool has_rsocket(const struct pollfd *fds, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++) {
		if (vb_rsocket_of(fds[i].fd) >= 0)
			return true;
	}
	return false;
}

static int poll_masked(struct pollfd *fds, nfds_t count, int timeout_ms, const sigset_t *mask)
{
	sigset_t before;

	if (mask)
		pthread_sigmask(SIG_SETMASK, mask, &before);
	int ready = VB_INSIDE(rpoll(fds, count, timeout_ms));
	int error = errno;
	if (mask)
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return ready;
}

int vb_poll(struct pollfd *fds, nfds_t count, int timeout_ms, const sigset_t *mask)
{
	struct pollfd few[64], *inner = count <= 64 ? few : malloc(count * sizeof(*inner));
	if (!inner) {
		errno = ENOMEM;
		return -1;
	}
	for (nfds_t i = 0; i < count; i++) {
		int rs = vb_rsocket_of(fds[i].fd);
		inner[i] = (struct pollfd){ .fd = rs < 0 ? fds[i].fd : rs, .events = fds[i].events };
	}
	int ready = poll_masked(inner, count, timeout_ms, mask);
	for (nfds_t i = 0; ready >= 0 && i < count; i++)
		fds[i].revents = inner[i].revents;
	if (inner != few) {
		int error = errno;
		free(inner);
		errno = error;
	}
	return ready;
}

VB_HOOK int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	return has_rsocket(fds, count) ? vb_poll(fds, count, timeout_ms, NULL)
				       : vb_real()->poll(fds, count, timeout_ms);
}

VB_HOOK int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room);
VB_HOOK int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room)
{
	if (room / sizeof(*fds) < count)
		abort();
	return poll(fds, count, timeout_ms);
}

static int ms_of(const struct timespec *timeout)
{
	if (!timeout)
		return -1;
	int64_t ms = (int64_t)timeout->tv_sec * 1000 + (timeout->tv_nsec + 999999) / 1000000;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

VB_HOOK int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	return has_rsocket(fds, count) ? vb_poll(fds, count, ms_of(timeout), mask)
				       : vb_real()->ppoll(fds, count, timeout, mask);
}

VB_HOOK int __ppoll_chk(
	struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t room);
VB_HOOK int __ppoll_chk(
	struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask, size_t room)
{
	if (room / sizeof(*fds) < count)
		abort();
	return ppoll(fds, count, timeout, mask);
}

/* ---- select ------------------------------------------------------------------------------------------------------ */

struct sets {
	fd_set *in, *out, *except;
};

static short events_of(const struct sets *sets, int fd)
{
	short events = 0;
	if (sets->in && FD_ISSET(fd, sets->in))
		events |= POLLIN;
	if (sets->out && FD_ISSET(fd, sets->out))
		events |= POLLOUT;
	if (sets->except && FD_ISSET(fd, sets->except))
		events |= POLLPRI;
	return events;
}

static bool sets_have_rsocket(const struct sets *sets, int count)
{
	for (int fd = 0; fd < count && fd < FD_SETSIZE; fd++) {
		if (events_of(sets, fd) && vb_rsocket_of(fd) >= 0)
			return true;
	}
	return false;
}

static int keep(const struct pollfd *fd, fd_set *set, short asked, short wanted)
{
	if (!set || !(fd->events & asked))
		return 0;
	if (fd->revents & wanted)
		return 1;
	FD_CLR(fd->fd, set);
	return 0;
}

static int select_rsockets(int count, const struct sets *sets, int timeout_ms, const sigset_t *mask)
{
	struct pollfd fds[FD_SETSIZE];
	nfds_t n = 0;
	int ready = 0;

	for (int fd = 0; fd < count && fd < FD_SETSIZE; fd++) {
		short events = events_of(sets, fd);
		if (events)
			fds[n++] = (struct pollfd){ .fd = fd, .events = events };
	}
	if (vb_poll(fds, n, timeout_ms, mask) < 0)
		return -1;
	for (nfds_t i = 0; i < n; i++) {
		if (fds[i].revents & POLLNVAL) {
			errno = EBADF;
			return -1;
		}
		ready += keep(&fds[i], sets->in, POLLIN, POLLIN | POLLHUP | POLLERR);
		ready += keep(&fds[i], sets->out, POLLOUT, POLLOUT | POLLERR);
		ready += keep(&fds[i], sets->except, POLLPRI, POLLPRI);
	}
	return ready;
}

VB_HOOK int pselect(
	int count, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout, const sigset_t *mask)
{
	struct sets sets = { in, out, except };
	return sets_have_rsocket(&sets, count) ? select_rsockets(count, &sets, ms_of(timeout), mask)
					       : vb_real()->pselect(count, in, out, except, timeout, mask);
}

/* The rest of the time goes back into timeout, as with the kernel. */
static void subtract_elapsed(struct timeval *timeout, int64_t began_us)
{
	int64_t left = (int64_t)timeout->tv_sec * 1000000 + timeout->tv_usec - (vb_clock_us() - began_us);
	left = left > 0 ? left : 0;
	*timeout = (struct timeval){ .tv_sec = left / 1000000, .tv_usec = left % 1000000 };
}

VB_HOOK int select(int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	struct sets sets = { in, out, except };

	if (!sets_have_rsocket(&sets, count))
		return vb_real()->select(count, in, out, except, timeout);
	int64_t began_us = vb_clock_us();
	struct timespec limit = { 0 };
	if (timeout)
		limit = (struct timespec){ .tv_sec = timeout->tv_sec, .tv_nsec = timeout->tv_usec * 1000 };
	int ready = select_rsockets(count, &sets, ms_of(timeout ? &limit : NULL), NULL);
	if (timeout)
		subtract_elapsed(timeout, began_us);
	return ready;
}
