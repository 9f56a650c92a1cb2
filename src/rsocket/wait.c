/* Waiting for what happens to an rsocket: a short while by polling completions, then at its descriptor.
 * Not here: waiting for many (poll.c). */
#include "rsocket/objects.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include "verbs/wait.h"

static bool take_completion_events(struct rsocket *rs)
{
	struct ibv_cq *cq;
	void *context;
	bool was_any = false;

	while (rs->completions && ibv_get_cq_event(rs->completions, &cq, &context) == 0) {
		ibv_ack_cq_events(cq, 1);
		rs->is_armed = false;
		was_any = true;
	}
	return was_any;
}

void vb_rs_progress(struct rsocket *rs)
{
	if (rs->type == SOCK_DGRAM)
		vb_rs_datagram_progress(rs, false);
	else if (rs->state < VB_RS_CONNECTED)
		vb_rs_take_events(rs);
	else if (rs->cq && vb_rs_stream_poll(rs))
		vb_rs_changed(rs);
	else if (!rs->is_confirmed)
		vb_rs_take_events(rs);
}

void vb_rs_progress_all(struct rsocket *rs)
{
	if (rs->type == SOCK_DGRAM) {
		if (vb_rs_datagram_progress(rs, true))
			vb_rs_kick(rs);
		return;
	}
	bool was_any = take_completion_events(rs);
	/* What came before the end of the connection counts before it. */
	vb_rs_progress(rs);
	was_any |= vb_rs_take_events(rs);
	vb_rs_progress(rs);
	/* What made the descriptor readable for others too is gone. */
	if (was_any)
		vb_rs_kick(rs);
}

/* Asks that the descriptor becomes readable with the next completion; whether that was not so yet. */
static bool arm(struct rsocket *rs)
{
	if (rs->type == SOCK_DGRAM)
		return vb_rs_datagram_arm(rs);
	if (!rs->cq || rs->is_armed || ibv_req_notify_cq(rs->cq, 0))
		return false;
	return rs->is_armed = true;
}

/* A look that takes an event disarms, and what comes then is told to nobody: it is looked at once more. */
void vb_rs_arm_and_look(struct rsocket *rs)
{
	arm(rs);
	do
		vb_rs_progress_all(rs);
	while (arm(rs));
}

void vb_rs_changed(struct rsocket *rs)
{
	pthread_cond_broadcast(&rs->changed);
}

/* Always readable, for children too: put behind an rsocket's descriptor, it wakes who waits there. */
static int always_ready_fd = -1;

static void make_always_ready(void)
{
	always_ready_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
}

static int always_ready(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, make_always_ready);
	return always_ready_fd;
}

void vb_rs_wake(struct rsocket *rs)
{
	if (!rs->is_kicked)
		rs->is_kicked = vb_rs_watch(rs, always_ready()) == 0;
}

void vb_rs_is_awake(struct rsocket *rs)
{
	if (rs->is_kicked)
		epoll_ctl(rs->fd, EPOLL_CTL_DEL, always_ready(), NULL);
	rs->is_kicked = false;
}

void vb_rs_kick(struct rsocket *rs)
{
	vb_rs_changed(rs);
	if (rs->is_driven)
		vb_rs_wake(rs);
	if (atomic_load(&rs->pollers))
		vb_rs_wake_pollers();
}

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

/* Lets others have the lock in between. */
static bool spin(struct rsocket *rs, vb_rs_condition *is_met)
{
	int64_t until = vb_rs_now_us() + vb_rs_defaults()->polling_time_us;

	do {
		pthread_mutex_unlock(&rs->lock);
		pthread_mutex_lock(&rs->lock);
		vb_rs_progress(rs);
		if (is_met(rs))
			return true;
	} while (vb_rs_now_us() < until);
	return false;
}

int vb_rs_sleep_ms(int64_t deadline_us)
{
	int64_t left = (deadline_us - vb_rs_now_us() + 999) / 1000;
	int longest = vb_rs_defaults()->wake_up_ms;
	if (left < 0)
		return 0;
	return left < longest ? (int)left : longest;
}

/* Someone else waits at the descriptor. */
static void sleep_for_change(struct rsocket *rs, int64_t deadline_us)
{
	struct timespec until;
	int ms = vb_rs_sleep_ms(deadline_us);

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000L;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}
	pthread_cond_timedwait(&rs->changed, &rs->lock, &until);
}

/* As of a socket: one that waits for a time is interrupted by every signal. */
static bool is_interrupted(int error, int64_t deadline_us)
{
	return error == -EINTR && (deadline_us != INT64_MAX || vb_signal_ends_wait());
}

/* Waits at the descriptor, for all; 0 or -EINTR. */
static int drive(struct rsocket *rs, vb_rs_condition *is_met, int64_t deadline_us)
{
	vb_rs_arm_and_look(rs);
	if (is_met(rs) || rs->is_closing)
		return 0;
	rs->is_driven = true;
	pthread_mutex_unlock(&rs->lock);
	struct pollfd wait = { .fd = rs->fd, .events = POLLIN };
	int error = poll(&wait, 1, vb_rs_sleep_ms(deadline_us)) < 0 ? -errno : 0;
	pthread_mutex_lock(&rs->lock);
	rs->is_driven = false;
	vb_rs_is_awake(rs);
	vb_rs_progress_all(rs);
	/* Whoever sleeps may be the next to wait there. */
	pthread_cond_broadcast(&rs->changed);
	return is_interrupted(error, deadline_us) ? error : 0;
}

int vb_rs_wait(struct rsocket *rs, vb_rs_condition *is_met, bool is_nonblocking, int64_t timeout_us)
{
	if (is_met(rs))
		return 0;
	vb_rs_progress(rs);
	if (is_met(rs))
		return 0;
	if (is_nonblocking) {
		vb_rs_progress_all(rs);
		return is_met(rs) ? 0 : -EAGAIN;
	}
	if ((rs->state == VB_RS_CONNECTED || rs->type == SOCK_DGRAM) && spin(rs, is_met))
		return 0;
	int64_t deadline_us = timeout_us ? vb_rs_now_us() + timeout_us : INT64_MAX;
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
		if (vb_rs_now_us() >= deadline_us)
			return -EAGAIN;
	}
}
