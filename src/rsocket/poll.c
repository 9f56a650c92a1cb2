/* Waiting for many rsockets and other descriptors at once.
 * Holds: an rpoll call counts itself in each of its rsockets (pollers) before it looks at them. So a thread that takes
 * the event that made an rsocket's descriptor readable wakes the call (pollers.c).
 * Not here: waiting for one (wait.c). */
#include "rsocket/pollers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "os/clock.h"

/* ---- What is ready ----------------------------------------------------------------------------------------------- */

static short connected_ready(const struct vb_rsocket *rs)
{
	short ready = 0;
	if (rs->receiver.ready || !vb_rs_can_read(rs))
		ready |= POLLIN | POLLRDNORM;
	if (!vb_rs_can_read(rs))
		ready |= POLLRDHUP;
	if (vb_rs_stream_room(rs) || !vb_rs_can_write(rs))
		ready |= POLLOUT | POLLWRNORM;
	return ready;
}

static short ready_for(const struct vb_rsocket *rs, short events)
{
	short ready = 0;

	if (rs->type == SOCK_DGRAM)
		return (vb_rs_datagram_ready(rs) | (rs->error ? POLLERR : 0)) & (events | POLLERR);
	switch (rs->state) {
	case VB_RS_IDLE:
	case VB_RS_BOUND:
		ready = POLLOUT | POLLWRNORM | POLLHUP;
		break;
	case VB_RS_LISTENING:
		ready = vb_list_empty(&rs->made) && vb_list_empty(&rs->requests) ? 0 : POLLIN | POLLRDNORM;
		break;
	case VB_RS_CONNECTING:
		break;
	case VB_RS_CONNECTED:
	case VB_RS_SEND_ONLY:
	case VB_RS_RECEIVE_ONLY:
		ready = connected_ready(rs);
		break;
	case VB_RS_CLOSED:
		ready = POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM | POLLRDHUP;
		/* Programs take POLLHUP for the end, and bytes that came before it are read first. */
		if (!rs->receiver.ready)
			ready |= POLLHUP;
		break;
	}
	if (rs->error)
		ready |= POLLERR;
	return ready & (events | POLLERR | POLLHUP);
}

/* ---- Polling ----------------------------------------------------------------------------------------------------- */

/* A call's rsockets, kept, by their place in fds (NULL: another descriptor), and the list for the kernel. */
struct call {
	struct pollfd *fds;
	nfds_t count;
	struct vb_rsocket **rsockets;
	struct pollfd *kernel; /* count entries, and the poller's, and room for those of lanes */
	struct vb_rs_poller *poller;
	struct vb_rs_lanes in; /* the rsockets' */
};

static void close_call(struct call *call)
{
	for (nfds_t i = 0; call->rsockets && i < call->count; i++) {
		if (!call->rsockets[i])
			continue;
		atomic_fetch_sub(&call->rsockets[i]->pollers, 1);
		vb_rs_put(call->rsockets[i]);
	}
	if (call->poller)
		vb_rs_poller_leave(call->poller);
	free(call->rsockets);
	free(call->kernel);
}

static int open_call(struct call *call, struct pollfd *fds, nfds_t count)
{
	*call = (struct call){ .fds = fds, .count = count };
	call->rsockets = calloc(count + 1, sizeof(*call->rsockets));
	call->kernel = calloc(count + 1 + VB_ASLEEP_FDS, sizeof(*call->kernel));
	call->poller = vb_rs_own_poller();
	if (call->poller)
		vb_rs_poller_enter(call->poller);
	if (!call->rsockets || !call->kernel || !call->poller)
		return -ENOMEM;
	for (nfds_t i = 0; i < count; i++) {
		if (fds[i].fd < 0 || !vb_rs_exists(fds[i].fd))
			continue;
		call->rsockets[i] = vb_rs_get(fds[i].fd);
		if (call->rsockets[i])
			atomic_fetch_add(&call->rsockets[i]->pollers, 1);
		else if (errno != EBADF)
			return -errno;
	}
	return 0;
}

static bool is_any_rsocket(const struct pollfd *fds, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++) {
		if (fds[i].fd >= 0 && vb_rs_exists(fds[i].fd))
			return true;
	}
	return false;
}

enum look { LOOK, LOOK_AND_ARM };

/* Sets revents of the rsockets. Returns how many are ready. */
static int look_at_rsockets(struct call *call, enum look how)
{
	int ready = 0;
	unsigned driven = 0;

	call->in = (struct vb_rs_lanes){ 0 };
	for (nfds_t i = 0; i < call->count; i++) {
		struct vb_rsocket *rs = call->rsockets[i];
		if (!rs)
			continue;
		pthread_mutex_lock(&rs->lock);
		vb_rs_note_accepting(rs);
		if (how == LOOK_AND_ARM)
			vb_rs_arm_and_look(rs, &driven);
		else
			vb_rs_progress(rs, &driven);
		vb_rs_add_lanes(rs, &call->in);
		call->fds[i].revents = rs->is_closing ? POLLNVAL : ready_for(rs, call->fds[i].events);
		pthread_mutex_unlock(&rs->lock);
		ready += call->fds[i].revents != 0;
	}
	return ready;
}

/* Asks the kernel about the other descriptors and, when it may sleep, about those of the rsockets and the poller's,
 * after which the caller looks at the rsockets again. Sets revents of the others. How many of these are ready, or
 * -errno. */
static int ask_kernel(struct call *call, int timeout_ms)
{
	int ready = 0;

	for (nfds_t i = 0; i < call->count; i++) {
		call->kernel[i] = call->rsockets[i] ? (struct pollfd){ .fd = call->rsockets[i]->fd, .events = POLLIN }
						    : call->fds[i];
		if (call->rsockets[i] && !timeout_ms)
			call->kernel[i].fd = -1;
	}
	call->kernel[call->count] = (struct pollfd){ .fd = timeout_ms ? call->poller->wake_fd : -1, .events = POLLIN };
	int asked = timeout_ms ? vb_rs_sleep(&call->in, call->kernel, call->count + 1, timeout_ms)
			       : vb_clock_poll(call->kernel, call->count + 1, 0);
	if (asked < 0)
		return -errno;
	if (call->kernel[call->count].revents) {
		uint64_t woken;
		if (read(call->poller->wake_fd, &woken, sizeof(woken)) < 0 && errno != EAGAIN)
			return -errno;
	}
	for (nfds_t i = 0; i < call->count; i++) {
		if (call->rsockets[i])
			continue;
		call->fds[i].revents = call->kernel[i].revents;
		ready += call->fds[i].revents != 0;
	}
	return ready;
}

static bool has_others(const struct call *call)
{
	for (nfds_t i = 0; i < call->count; i++) {
		if (!call->rsockets[i] && call->fds[i].fd >= 0)
			return true;
	}
	return false;
}

/* Looks at both kinds, without waiting. */
static int look(struct call *call, enum look how)
{
	int ready = look_at_rsockets(call, how);
	if (!has_others(call))
		return ready;
	int others = ask_kernel(call, 0);
	return others < 0 ? others : ready + others;
}

static int spin(struct call *call)
{
	int64_t until = vb_clock_us() + vb_rs_defaults()->polling_time_us;
	int ready;

	do
		ready = look_at_rsockets(call, LOOK);
	while (!ready && vb_clock_us() < until);
	return ready;
}

static int wait_for_any(struct call *call, int timeout_ms)
{
	int64_t deadline_us = timeout_ms < 0 ? INT64_MAX : vb_clock_us() + (int64_t)timeout_ms * 1000;

	int ready = look(call, LOOK);
	if (!ready && timeout_ms && spin(call))
		ready = look(call, LOOK);
	for (;;) {
		if (!ready)
			ready = look(call, LOOK_AND_ARM);
		if (ready)
			return ready;
		int ms = vb_rs_sleep_ms(deadline_us);
		if (!ms)
			return 0;
		ready = ask_kernel(call, ms);
		if (ready < 0)
			return ready;
		if (ready)
			ready += look_at_rsockets(call, LOOK);
	}
}

VB_RS_EXPORT int rpoll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	struct call call;

	if (!is_any_rsocket(fds, count))
		return poll(fds, count, timeout_ms);
	int result = open_call(&call, fds, count);
	if (!result)
		result = wait_for_any(&call, timeout_ms);
	close_call(&call);
	return vb_rs_result(result);
}

/* ---- select ------------------------------------------------------------------------------------------------------ */

enum {
	SELECT_READ = POLLIN | POLLRDNORM | POLLHUP | POLLERR,
	SELECT_WRITE = POLLOUT | POLLWRNORM | POLLERR,
	SELECT_EXCEPT = POLLPRI,
};

static nfds_t sets_to_poll(struct pollfd *fds, int count, const fd_set *in, const fd_set *out, const fd_set *except)
{
	nfds_t n = 0;

	for (int fd = 0; fd < count; fd++) {
		short events = 0;
		if (in && FD_ISSET(fd, in))
			events |= POLLIN;
		if (out && FD_ISSET(fd, out))
			events |= POLLOUT;
		if (except && FD_ISSET(fd, except))
			events |= POLLPRI;
		if (events)
			fds[n++] = (struct pollfd){ .fd = fd, .events = events };
	}
	return n;
}

/* Keeps fd in the set only if it is in it and has one of the wanted events. */
static int keep(const struct pollfd *fd, fd_set *set, short wanted)
{
	if (!set || !FD_ISSET(fd->fd, set))
		return 0;
	if (fd->revents & wanted)
		return 1;
	FD_CLR(fd->fd, set);
	return 0;
}

static int poll_to_sets(const struct pollfd *fds, nfds_t count, fd_set *in, fd_set *out, fd_set *except)
{
	int ready = 0;

	for (nfds_t i = 0; i < count; i++) {
		if (fds[i].revents & POLLNVAL)
			return -EBADF;
	}
	for (nfds_t i = 0; i < count; i++) {
		ready += keep(&fds[i], in, SELECT_READ);
		ready += keep(&fds[i], out, SELECT_WRITE);
		ready += keep(&fds[i], except, SELECT_EXCEPT);
	}
	return ready;
}

static int timeout_of(const struct timeval *timeout)
{
	if (!timeout)
		return -1;
	int64_t ms = (int64_t)timeout->tv_sec * 1000 + (timeout->tv_usec + 999) / 1000;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

VB_RS_EXPORT int rselect(int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	struct pollfd fds[FD_SETSIZE];

	if (count < 0 || count > FD_SETSIZE || (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
		return vb_rs_result(-EINVAL);
	nfds_t n = sets_to_poll(fds, count, in, out, except);
	if (rpoll(fds, n, timeout_of(timeout)) < 0)
		return -1;
	return vb_rs_result(poll_to_sets(fds, n, in, out, except));
}
