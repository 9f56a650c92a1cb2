/* The progress thread: keeps the lane going while the application's threads do something else.
 *
 * It sleeps in epoll on the slot's socket, a timer for the lane's next deadline, the CM's timer and netlink; an idle
 * process is never woken. For the broker it never waits: that has a thread of its own (broker.c).
 *
 * Threads that poll would be slowed down by a second thread woken for every packet, so after a few polls they take the
 * socket out of its epoll set, and set a timer that they put off while they go on. When it comes up nobody has polled
 * for a while, and the thread takes the socket back.
 *
 * Pollers that share their core come late, and would come later still if the thread ran as well: woken for each packet,
 * it takes the core from a peer amid its sending and answers before the program does, and a message of eight bytes
 * costs five switches. So where pollers come late again and again only because they are kept away, the thread waits for
 * them longer, and when one is back it attends at once. */
#include "host/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "host/crowding.h"
#include "host/interfaces.h"
#include "os/thread.h"

#define LATE_IN_A_CROWD	 (800 * VB_US) /* less than the millisecond after which a peer that hears nothing probes */
#define TURNS_AT_A_TIME	 64 /* between two looks at what else there is to do */
#define NAME		 "verbena"

enum source { SOURCE_SLOT, SOURCE_TIMER, SOURCE_WAKE, SOURCE_STOP, SOURCE_LINK, SOURCE_CONNECTIONS, SOURCE_FRAMES };

static _Thread_local bool is_progress_thread __attribute__((tls_model("initial-exec")));

bool vb_progress_is_thread(void)
{
	return is_progress_thread;
}

static void epoll_set(struct vb_worker *w, int operation, int fd, uint32_t events, enum source source)
{
	struct epoll_event event = { .events = events, .data.u32 = source };

	epoll_ctl(w->epoll_fd, operation, fd, &event);
}

void vb_progress_wake(struct vb_worker *w)
{
	if (w->has_thread)
		eventfd_write(w->wake_fd, 1);
}

/* ---- The timer: the lane's next deadline, or the takeover ------------------------------------------------------- */

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
}

static void set_timerfd(int fd, struct vb_deadline deadline)
{
	struct itimerspec spec = { .it_interval = { 0 } };

	if (deadline.is_set) {
		uint64_t ns = vb_host_monotonic_ns(deadline.at) + 1; /* never early, and never 0, which disarms */
		spec.it_value = timespec_of(ns);
	}
	timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

static void set_timer(struct vb_worker *w, struct vb_deadline deadline)
{
	set_timerfd(w->timer_fd, deadline);
	w->timer = deadline;
}

void vb_progress_arm_connections(struct vb_worker *w, struct vb_deadline at)
{
	if (at.is_set == w->connections_at.is_set && (!at.is_set || at.at == w->connections_at.at))
		return;
	set_timerfd(w->connections_fd, at);
	w->connections_at = at;
}

/* How long pollers may be away before the thread takes over. */
static vb_time patience(const struct vb_worker *w)
{
	return w->waits_for_pollers ? LATE_IN_A_CROWD : VB_LATE;
}

static void note_presence(struct vb_worker *w, vb_time now)
{
	struct vb_presence presence = vb_presence_of_caller(now);
	struct vb_crowding *crowding = vb_crowding_of_caller();

	vb_crowding_polled(crowding, &presence);
	w->waits_for_pollers = vb_crowding_is_kept_away(crowding);
}

static void put_off_takeover(struct vb_worker *w)
{
	w->polled_at = vb_host_now();
	note_presence(w, w->polled_at);
	set_timerfd(w->timer_fd, (struct vb_deadline){ vb_time_add(w->polled_at, patience(w)), true });
}

void vb_progress_polled(struct vb_worker *w)
{
	if (vb_time_diff(w->turned_at, w->polled_at) >= patience(w) / 2)
		put_off_takeover(w);
}

bool vb_progress_is_poller_back(struct vb_worker *w)
{
	if (!w->is_taken_over)
		return false;
	w->is_taken_over = false;
	note_presence(w, w->turned_at);
	return w->waits_for_pollers;
}

/* Somebody sleeps on the timer: the thread, or without one a waiter. */
static bool has_sleeper(const struct vb_worker *w)
{
	return w->has_thread ? w->attendance != VB_ATTENDED_BY_POLLERS : w->attendance == VB_ATTENDED_BY_WAITER;
}

void vb_progress_arm_timer(struct vb_worker *w)
{
	if (!has_sleeper(w))
		return;
	struct vb_deadline next = vb_deadline_earlier(vb_lane_next_deadline(w->lane), vb_port_next_deadline(w->port));
	if (!next.is_set || (w->timer.is_set && !vb_time_before(next.at, w->timer.at)))
		return;
	set_timer(w, next);
}

/* ---- Attendance ------------------------------------------------------------------------------------------------- */

void vb_progress_attend(struct vb_worker *w, enum vb_attendance attendance)
{
	enum vb_attendance before = w->attendance;

	if (before == attendance)
		return;
	w->attendance = attendance;
	w->polls_since_takeover = 0;
	if (!w->has_thread)
		return;
	if (attendance == VB_ATTENDED_BY_THREAD)
		epoll_set(w, EPOLL_CTL_MOD, w->slot.fd, EPOLLIN, SOURCE_SLOT);
	else if (before == VB_ATTENDED_BY_THREAD)
		epoll_set(w, EPOLL_CTL_MOD, w->slot.fd, 0, SOURCE_SLOT);
	if (attendance == VB_ATTENDED_BY_POLLERS)
		put_off_takeover(w);
	else if (before == VB_ATTENDED_BY_POLLERS)
		set_timer(w, (struct vb_deadline){ 0 });
}

/* ---- The thread ------------------------------------------------------------------------------------------------- */

/* Drives until there is nothing to do, giving the mutex away between turns. False: there was still something.
 * A program that has posted since the last time, though it does not poll now, is most likely looking at its memory and
 * about to answer what just arrived there. Then acks are held back for their time: one that overtook the answer would
 * send the peer's program out of its poll just before the answer comes. */
static bool drive(struct vb_worker *w)
{
	unsigned posts = atomic_load_explicit(&w->posts, memory_order_relaxed);
	bool is_busy = true, is_answering = posts != w->posts_seen;

	w->posts_seen = posts;
	for (int turns = 0; is_busy && turns < TURNS_AT_A_TIME; turns++) {
		vb_worker_lock(w);
		is_busy = vb_worker_turn(w);
		if (!is_busy && !is_answering)
			vb_worker_settle(w);
		vb_worker_unlock(w);
	}
	return !is_busy;
}

/* The pollers' timer has come up. False: they have put it off meanwhile. */
static bool take_over(struct vb_worker *w)
{
	vb_worker_lock(w);
	bool they_attend = w->attendance == VB_ATTENDED_BY_POLLERS;
	bool they_poll = they_attend && vb_time_since(w->polled_at, vb_host_now()) < patience(w);
	if (they_attend && !they_poll) {
		w->is_taken_over = true;
		vb_progress_attend(w, VB_ATTENDED_BY_THREAD);
	}
	vb_worker_unlock(w);
	return !they_poll;
}

/* What woke the thread. */
struct woken {
	bool is_timer, is_link, is_connections, is_stop;
};

static struct woken sleep_until_woken(struct vb_worker *w, int timeout_ms)
{
	struct epoll_event events[8];
	struct woken woken = { false };
	int count = epoll_wait(w->epoll_fd, events, 8, timeout_ms);

	for (int i = 0; i < count; i++) {
		uint64_t ignored;
		ssize_t n = 0;
		switch ((enum source)events[i].data.u32) {
		case SOURCE_TIMER:
			n = read(w->timer_fd, &ignored, sizeof(ignored));
			woken.is_timer = true;
			break;
		case SOURCE_WAKE:
			n = read(w->wake_fd, &ignored, sizeof(ignored));
			break;
		case SOURCE_LINK:
			vb_interfaces_drain(w->link_fd);
			woken.is_link = true;
			break;
		case SOURCE_CONNECTIONS:
			n = read(w->connections_fd, &ignored, sizeof(ignored));
			woken.is_connections = true;
			break;
		case SOURCE_STOP:
			woken.is_stop = true;
			break;
		case SOURCE_SLOT:
		case SOURCE_FRAMES:
			break;
		}
		(void)n;
	}
	return woken;
}

/* A one-shot deadline has passed: the next may be set again. */
static void note_expiry(struct vb_worker *w)
{
	vb_worker_lock(w);
	w->timer.is_set = false;
	vb_worker_unlock(w);
}

void vb_progress_timer_is_up(struct vb_worker *w)
{
	uint64_t ignored;
	ssize_t n = read(w->timer_fd, &ignored, sizeof(ignored));

	(void)n;
	note_expiry(w);
}

static void *run(void *argument)
{
	struct vb_worker *w = argument;
	bool is_done = true;

	is_progress_thread = true;
	pthread_setname_np(pthread_self(), NAME);
	for (;;) {
		struct woken woken = sleep_until_woken(w, is_done ? -1 : 0);
		if (woken.is_stop)
			return NULL;
		if (woken.is_link)
			vb_worker_refresh_devices(w);
		if (woken.is_connections)
			vb_connections_on_timer();
		if (w->attendance == VB_ATTENDED_BY_POLLERS) {
			is_done = true;
			if (!woken.is_timer || !take_over(w))
				continue;
		} else if (woken.is_timer) {
			note_expiry(w);
		}
		is_done = drive(w);
	}
}

/* ---- Start and stop --------------------------------------------------------------------------------------------- */

void vb_progress_watch_slot(struct vb_worker *w)
{
	vb_progress_attend(w, VB_ATTENDED_BY_THREAD);
	epoll_set(w, EPOLL_CTL_DEL, w->slot.fd, 0, SOURCE_SLOT);
	epoll_set(w, EPOLL_CTL_ADD, w->slot.fd, EPOLLIN, SOURCE_SLOT);
}

void vb_progress_watch_frames(struct vb_worker *w, int fd)
{
	epoll_set(w, EPOLL_CTL_ADD, fd, EPOLLIN, SOURCE_FRAMES);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_fds(struct vb_worker *w)
{
	close_fd(&w->epoll_fd);
	close_fd(&w->timer_fd);
	close_fd(&w->wake_fd);
	close_fd(&w->stop_fd);
	close_fd(&w->link_fd);
	close_fd(&w->connections_fd);
}

static int open_fds(struct vb_worker *w)
{
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	w->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->connections_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	w->link_fd = vb_interfaces_watch(); /* where it is forbidden, changes go unseen */
	if (w->epoll_fd < 0 || w->timer_fd < 0 || w->wake_fd < 0 || w->stop_fd < 0 ||
		w->connections_fd < 0)
		return -errno;
	epoll_set(w, EPOLL_CTL_ADD, w->slot.fd, EPOLLIN, SOURCE_SLOT);
	epoll_set(w, EPOLL_CTL_ADD, w->timer_fd, EPOLLIN, SOURCE_TIMER);
	epoll_set(w, EPOLL_CTL_ADD, w->wake_fd, EPOLLIN, SOURCE_WAKE);
	epoll_set(w, EPOLL_CTL_ADD, w->stop_fd, EPOLLIN, SOURCE_STOP);
	epoll_set(w, EPOLL_CTL_ADD, w->connections_fd, EPOLLIN, SOURCE_CONNECTIONS);
	if (w->link_fd >= 0)
		epoll_set(w, EPOLL_CTL_ADD, w->link_fd, EPOLLIN, SOURCE_LINK);
	return 0;
}

int vb_progress_start(struct vb_worker *w)
{
	int rc = open_fds(w);

	if (rc == 0 && !vb_settings_get()->progress_off) {
		w->has_thread = true;
		rc = vb_thread_start(&w->thread, run, w);
		w->has_thread = rc == 0;
	}
	if (rc < 0)
		close_fds(w);
	return rc;
}

void vb_progress_stop(struct vb_worker *w)
{
	eventfd_write(w->stop_fd, 1);
	if (w->has_thread)
		pthread_join(w->thread, NULL);
	w->has_thread = false;
}

void vb_progress_forked(struct vb_worker *w)
{
	close_fds(w);
}
