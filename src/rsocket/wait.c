/* Waiting for what happens to an rsocket: a short while by polling completions, then at its descriptor.
 * Not here: waiting for many (poll.c). */
#include "rsocket/objects.h"

#include <time.h>
#include "base/invariant.h"
#include "os/clock.h"

/* Polls for a short while. Other threads get the lock in between. */
static bool spin(struct vb_rsocket *rs, vb_rs_condition *is_met)
{
	int64_t until = vb_clock_us() + vb_rs_defaults()->polling_time_us;

	do {
		pthread_mutex_unlock(&rs->lock);
		pthread_mutex_lock(&rs->lock);
		vb_rs_progress(rs, NULL);
		if (is_met(rs))
			return true;
	} while (vb_clock_us() < until);
	return false;
}

void vb_rs_add_lanes(const struct vb_rsocket *rs, struct vb_rs_lanes *to)
{
	if (rs->type == SOCK_DGRAM) {
		vb_rs_datagram_add_lanes(rs, to);
	} else if (rs->cq) {
		to->context = rs->cq->context;
		to->lanes |= vb_cq_lanes(rs->cq);
	}
}

int vb_rs_sleep(const struct vb_rs_lanes *in, struct pollfd *fds, nfds_t count, int timeout_ms)
{
	if (!in->lanes)
		return vb_clock_poll(fds, count, timeout_ms);
	return vb_poll_asleep(in->context, in->lanes, fds, (unsigned)count, timeout_ms);
}

int vb_rs_sleep_ms(int64_t deadline_us)
{
	int64_t left = (deadline_us - vb_clock_us() + 999) / 1000;
	int longest = vb_rs_defaults()->wake_up_ms;
	if (left < 0)
		return 0;
	return left < longest ? (int)left : longest;
}

/* Sleeps while another thread waits at the descriptor. */
static void sleep_for_change(struct vb_rsocket *rs, int64_t deadline_us)
{
	int64_t wait_ns = vb_rs_sleep_ms(deadline_us) * VB_CLOCK_MS;

	vb_clock_cond_wait(&rs->changed, &rs->lock, vb_clock_ns() + wait_ns);
}

/* As with sockets, every signal interrupts a wait that has a timeout. */
static bool is_interrupted(int error, int64_t deadline_us)
{
	return error == -EINTR && (deadline_us != INT64_MAX || vb_signal_ends_wait());
}

/* Waits at the descriptor, on behalf of all waiting threads; 0 or -EINTR. */
static int drive(struct vb_rsocket *rs, vb_rs_condition *is_met, int64_t deadline_us)
{
	assert(!rs->is_driven);
	vb_rs_arm_and_look(rs, NULL);
	if (is_met(rs) || rs->is_closing)
		return 0;
	rs->is_driven = true;
	struct vb_rs_lanes in = { 0 };
	vb_rs_add_lanes(rs, &in);
	pthread_mutex_unlock(&rs->lock);
	struct pollfd wait[1 + VB_ASLEEP_FDS] = { { .fd = rs->fd, .events = POLLIN } };
	int error = vb_rs_sleep(&in, wait, 1, vb_rs_sleep_ms(deadline_us)) < 0 ? -errno : 0;
	pthread_mutex_lock(&rs->lock);
	rs->is_driven = false;
	vb_rs_note_awake(rs);
	vb_rs_progress_all(rs, NULL);
	/* A sleeping thread may be the next to wait there. */
	pthread_cond_broadcast(&rs->changed);
	return is_interrupted(error, deadline_us) ? error : 0;
}

int vb_rs_wait(struct vb_rsocket *rs, vb_rs_condition *is_met, bool is_nonblocking, int64_t timeout_us)
{
	if (is_met(rs))
		return 0;
	vb_rs_progress(rs, NULL);
	if (is_met(rs))
		return 0;
	if (is_nonblocking) {
		vb_rs_progress_all(rs, NULL);
		return is_met(rs) ? 0 : -EAGAIN;
	}
	if ((vb_rs_is_connected(rs) || rs->type == SOCK_DGRAM) && spin(rs, is_met))
		return 0;
	int64_t deadline_us = timeout_us ? vb_clock_us() + timeout_us : INT64_MAX;
	for (;;) {
		int error = 0;
		if (rs->is_closing)
			return -EBADF;
		if (rs->is_driven)
			sleep_for_change(rs, deadline_us);
		else
			error = drive(rs, is_met, deadline_us);
		if (is_met(rs))
			return 0;
		if (error)
			return error;
		if (vb_clock_us() >= deadline_us)
			return -EAGAIN;
	}
}
