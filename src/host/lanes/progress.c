/* The progress thread: keeps a driver's lane going while the application's threads do something else.
 *
 * It sleeps in epoll on the port's descriptors, a timer for the lane's next deadline, and those of its chores: an idle
 * process is woken by these alone. For the broker it never waits: that has a thread of its own (broker.c).
 *
 * Threads that poll would be slowed down by a second thread woken for every packet, so after a few polls they take the
 * port out of its epoll set, and only say when they polled last. The thread looks at that by its timer, which it sets
 * itself: to set one is a system call, and in a virtual machine takes as long as thirty messages. When nobody has
 * polled for a while, it takes the port back. It looks ever more seldom while they go on, for a look may take a
 * poller's
 * core: whoever stops is missed after no more time than he had polled, up to LOOK_AT_LEAST.
 *
 * Pollers that share their core come late, and would come later still if the thread ran as well: woken for each packet,
 * it takes the core from a peer amid its sending and answers before the program does, and a message of eight bytes
 * costs five switches. So where pollers come late again and again only because they are kept away, the thread waits for
 * them longer, and when one is back it attends at once. */
#include "host/process.h"

#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/invariant.h"
#include "base/lock.h"
#include "host/lanes/crowding.h"
#include "host/peers/local_peers.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/thread.h"

#define LATE_IN_A_CROWD (800 * VB_US) /* less than the millisecond after which a peer that hears nothing probes */
#define LOOK_AT_LEAST                                                                                                  \
	(3200 * VB_US)     /* but LATE_IN_A_CROWD where packets come, and pollers have their cores to themselves, and  \
			      where posts waited for the next poll (riders.h) */
#define TURNS_AT_A_TIME 64 /* between two looks at what else there is to do */
#define NAME            "verbena"
#define EVENTS          8

enum source {
	SOURCE_PORT,
	SOURCE_NEIGHBOURS,
	SOURCE_TIMER,
	SOURCE_WAKE,
	SOURCE_STOP,
	SOURCE_CHORE /* and the next ones */
};

static _Thread_local bool is_progress_thread __attribute__((tls_model("initial-exec")));

bool vb_progress_is_thread(void)
{
	return is_progress_thread;
}

static void epoll_set(struct vb_driver *d, int operation, int fd, uint32_t events, unsigned source)
{
	struct epoll_event event = { .events = events, .data.u32 = source };

	epoll_ctl(d->epoll_fd, operation, fd, &event);
}

/* Not cancelled: a waiter may be about to sleep, and would leave his place for good. */
void vb_progress_wake(struct vb_driver *d)
{
	if (d->has_thread && !vb_eventfd_ring(d->wake_fd, 1))
		vb_process_lose_descriptors(d->process);
}

/* ---- The timer: the lane's next deadline, or the takeover ------------------------------------------------------- */

static void set_timer(struct vb_driver *d, struct vb_deadline deadline)
{
	if (!vb_host_set_timer(d->timer_fd, deadline))
		vb_process_lose_descriptors(d->process);
	d->timer = deadline;
	d->is_to_look = false;
}

/* How long pollers may be away before the thread takes over. */
static vb_time patience(const struct vb_driver *d)
{
	return d->waits_for_pollers ? LATE_IN_A_CROWD : VB_LATE;
}

static void note_presence(struct vb_driver *d, vb_time now)
{
	struct vb_presence presence = vb_presence_of_caller(now);
	struct vb_crowding *crowding = vb_crowding_of_caller();

	d->noted_at = now;
	vb_crowding_polled(crowding, &presence);
	d->waits_for_pollers = vb_crowding_is_kept_away(crowding);
}

void vb_progress_polled(struct vb_driver *d)
{
	d->polled_at = d->turned_at;
	if (d->attendance == VB_ATTENDED_BY_POLLERS && vb_time_diff(d->turned_at, d->noted_at) >= VB_LATE / 2)
		note_presence(d, d->turned_at);
}

static void look_at_pollers_after(struct vb_driver *d, vb_time time)
{
	d->looks_after = time;
	d->looks_at = vb_time_add(d->polled_at, time);
	set_timer(d, (struct vb_deadline){ d->looks_at, true });
	d->timer.is_set = false; /* for the lane, which pollers look after */
	d->is_to_look = true;
}

static void welcome_pollers(struct vb_driver *d)
{
	d->polled_at = vb_host_now();
	note_presence(d, d->polled_at);
	look_at_pollers_after(d, patience(d));
}

/* Where he came again the last times he is looked for later: a look takes a core, and may take his. */
static void expect_back(struct vb_driver *d)
{
	d->polled_at = vb_host_now();
	if (!d->is_to_look)
		look_at_pollers_after(d, d->looks_after < VB_LATE ? VB_LATE : d->looks_after);
}

static void note_back(struct vb_driver *d)
{
	d->looks_after = 2 * d->looks_after < LATE_IN_A_CROWD ? 2 * d->looks_after : LATE_IN_A_CROWD;
}

static void look_again(struct vb_driver *d, vb_time away)
{
	bool is_crowded_or_quiet = d->waits_for_pollers || d->port_quiet >= VB_PORT_QUIET;
	bool is_sure = d->attendance == VB_ATTENDED_BY_POLLERS && is_crowded_or_quiet && !d->riders.were_there;
	vb_time most = is_sure ? LOOK_AT_LEAST : LATE_IN_A_CROWD;

	d->riders.were_there = false;
	look_at_pollers_after(d, vb_crowding_looks_after(d->looks_after, away, patience(d), most));
}

bool vb_progress_is_poller_back(struct vb_driver *d)
{
	if (!d->is_taken_over)
		return false;
	d->is_taken_over = false;
	note_presence(d, d->turned_at);
	return d->waits_for_pollers;
}

/* Somebody sleeps on the timer: the thread, or without one a waiter. */
static bool has_sleeper(const struct vb_driver *d)
{
	return d->has_thread ? !vb_progress_is_left_to_pollers(d) : d->attendance == VB_ATTENDED_BY_WAITER;
}

void vb_progress_arm_timer(struct vb_driver *d, bool has_work)
{
	if (d->is_awake || !has_sleeper(d)) /* whoever is awake comes here again before he sleeps */
		return;
	if (has_work && !d->has_thread) {
		set_timer(d, (struct vb_deadline){ vb_host_now(), true });
		return;
	}
	struct vb_deadline next = vb_deadline_earlier(vb_port_next_deadline(d->port), vb_neighbours_next_deadline(d));
	if (d->port->room) /* else what is due may be an ack that cannot leave: the port says when it has room */
		next = vb_deadline_earlier(next, vb_lane_next_deadline(d->lane));
	if (!next.is_set || (d->timer.is_set && !vb_time_before(next.at, d->timer.at)) ||
		(d->is_to_look && !vb_time_before(next.at, d->looks_at)))
		return;
	set_timer(d, next);
}

/* ---- Attendance ------------------------------------------------------------------------------------------------- */

static void set_port(struct vb_driver *d, int operation, uint32_t events)
{
	for (unsigned i = 0; i < d->watched_count; i++)
		epoll_set(d, operation, d->watched[i], events, SOURCE_PORT);
}

static bool thread_hears_neighbours(enum vb_attendance attendance)
{
	return attendance == VB_ATTENDED_BY_THREAD || attendance == VB_ATTENDED_BY_POLLERS;
}

/* What the thread sleeps on. From a waiter to a returner and back nothing changes, for they take turns with each
 * event. */
static void change_watch(struct vb_driver *d, enum vb_attendance from, enum vb_attendance to)
{
	if (to == VB_ATTENDED_BY_THREAD)
		set_port(d, EPOLL_CTL_MOD, EPOLLIN);
	else if (from == VB_ATTENDED_BY_THREAD)
		set_port(d, EPOLL_CTL_MOD, 0);
	if (d->neighbours && thread_hears_neighbours(from) != thread_hears_neighbours(to))
		epoll_set(d, EPOLL_CTL_MOD, vb_neighbours_fd(d), thread_hears_neighbours(to) ? EPOLLIN : 0,
			SOURCE_NEIGHBOURS);
}

static void change_timer(struct vb_driver *d, enum vb_attendance from, enum vb_attendance to)
{
	if (to == VB_ATTENDED_BY_POLLERS)
		welcome_pollers(d);
	else if (to == VB_ATTENDED_BY_RETURNER)
		expect_back(d);
	else if (d->is_to_look && (from == VB_ATTENDED_BY_POLLERS || to == VB_ATTENDED_BY_THREAD))
		set_timer(d, (struct vb_deadline){ 0 });
}

void vb_progress_attend(struct vb_driver *d, enum vb_attendance attendance)
{
	enum vb_attendance before = d->attendance;

	if (before == attendance)
		return;
	d->attendance = attendance;
	d->is_awake = false;
	d->polls_since_takeover = 0;
	if (vb_progress_is_left_to_pollers(d))
		vb_neighbours_rouse(d);
	if (!d->has_thread)
		return;
	change_watch(d, before, attendance);
	change_timer(d, before, attendance);
}

/* ---- Lingering ---------------------------------------------------------------------------------------------------
 * To be woken costs the neighbour who does it a system call, and takes long. So who was woken again and again soon
 * after he had gone to sleep stays awake for a moment longer, unless somebody else wants the core. */

#define LINGER_LEAST (8 * VB_US)
#define LINGER_MOST  (50 * VB_US)
#define WAKING       (40 * VB_US)  /* which takes so long in a virtual machine */
#define WITHOUT_WAY  (10 * VB_US)  /* given to others who want the core */
#define A_TURN       (3 * VB_US)   /* a yield that takes longer has let somebody run */
#define PAUSES       4             /* of a spin, before it is looked again */
#define COMPANY      (500 * VB_US) /* at most, before other things are looked at */

/* How long it slept until a neighbour had woken it. */
static void learn_to_linger(struct vb_driver *d, vb_time slept)
{
	if (slept > LINGER_MOST + WAKING)
		d->linger /= 2;
	else
		d->linger = d->linger ? 2 * d->linger : LINGER_LEAST;
	if (d->linger < LINGER_LEAST)
		d->linger = 0;
	if (d->linger > LINGER_MOST)
		d->linger = LINGER_MOST;
}

/* False: the core is somebody else's. */
static bool gives_way_for_nothing(struct vb_driver *d)
{
	vb_time before = vb_host_now();

	sched_yield();
	if (vb_time_since(before, vb_host_now()) < A_TURN)
		return true;
	d->linger = 0;
	return false;
}

static bool turn_to_neighbours(struct vb_driver *d)
{
	vb_driver_lock(d);
	bool is_ours = d->attendance == VB_ATTENDED_BY_THREAD && vb_neighbours_are_awake(d);
	bool is_busy = is_ours && vb_driver_turn_to_neighbours(d);
	d->is_awake |= is_ours;
	vb_driver_unlock(d);
	return is_busy;
}

/* Gives way before it begins to wait, for what has come may have woken the program, and now and then.
 * True: they are not to be left yet, but other things are to be looked at. */
static bool keep_company(struct vb_driver *d)
{
	vb_time begin = vb_host_now(), since = begin, now = begin, gives_way_at = begin;

	while (vb_time_since(since, now) < d->linger) {
		if (vb_time_since(begin, now) >= COMPANY)
			return true;
		if (turn_to_neighbours(d)) {
			since = gives_way_at = now = vb_host_now();
			continue;
		}
		if (vb_time_is_due(gives_way_at, now)) {
			if (!gives_way_for_nothing(d))
				return false;
			gives_way_at = vb_time_add(now, WITHOUT_WAY);
		}
		for (unsigned i = 0; i < PAUSES; i++)
			vb_lock_pause();
		now = vb_host_now();
	}
	return false;
}

/* ---- The thread ------------------------------------------------------------------------------------------------- */

static bool turn(struct vb_driver *d, unsigned *looks, bool is_answering)
{
	vb_driver_lock(d);
	bool is_busy = vb_driver_turn(d, *looks);
	*looks = vb_driver_looks_next(d, false);
	if (!is_answering)
		vb_neighbours_settle(d, d->turned_at);
	d->is_awake |= d->attendance == VB_ATTENDED_BY_THREAD;
	vb_driver_unlock(d);
	return is_busy;
}

/* When the thread goes to sleep, nobody looks at the neighbours. */
static bool is_last_awake(const struct vb_driver *d)
{
	return d->attendance == VB_ATTENDED_BY_THREAD || (d->attendance == VB_ATTENDED_BY_WAITER && !d->is_awake);
}

/* False: something has come meanwhile. */
static bool go_to_sleep(struct vb_driver *d, bool is_answering)
{
	bool is_quiet = true;

	vb_driver_lock(d);
	if (!is_answering)
		vb_driver_settle(d);
	if (is_last_awake(d))
		is_quiet = vb_neighbours_doze(d, vb_host_now());
	if (d->attendance == VB_ATTENDED_BY_THREAD)
		d->is_awake = !is_quiet;
	vb_driver_unlock(d);
	return is_quiet;
}

/* Drives until there is nothing to do, giving the mutex away between turns. False: there was still something.
 * A program that has posted since the last time, though it does not poll now, is most likely looking at its memory and
 * about to answer what just arrived there. Then acks are held back for their time: one that overtook the answer would
 * send the peer's program out of its poll just before the answer comes. */
static bool drive(struct vb_driver *d, unsigned looks)
{
	unsigned posts = atomic_load_explicit(&d->posts, memory_order_relaxed);
	bool is_busy = true, is_answering = posts != d->posts_seen;

	d->posts_seen = posts;
	for (int turns = 0; is_busy && turns < TURNS_AT_A_TIME; turns++) {
		is_busy = turn(d, &looks, is_answering);
		if (keep_company(d))
			return false;
		if (!is_busy)
			is_busy = !go_to_sleep(d, is_answering);
	}
	return !is_busy;
}

/* Who was to be looked for has polled just now, and will be looked for again; or else the thread stands in from now
 * on. */
static bool they_still_poll(struct vb_driver *d)
{
	vb_time away = vb_time_since(d->polled_at, vb_host_now());

	if (away < patience(d)) {
		look_again(d, away);
		return true;
	}
	d->is_taken_over = d->attendance == VB_ATTENDED_BY_POLLERS;
	d->looks_after = 0;
	vb_progress_attend(d, VB_ATTENDED_BY_THREAD);
	d->is_awake = true; /* it drives now */
	return false;
}

/* The timer has come up, once for whatever it was set: who attends now says what is to be done. True: that is all.
 * What it was set for counts as set until a turn has served it, so that it is not armed again before. */
static bool hear_timer(struct vb_driver *d)
{
	vb_driver_lock(d);
	bool was_to_look = d->is_to_look, is_all = false;
	d->is_to_look = false;
	if (vb_progress_is_left_to_pollers(d)) {
		is_all = they_still_poll(d);
	} else if (d->attendance == VB_ATTENDED_BY_WAITER && was_to_look) { /* he has come back */
		note_back(d);
		is_all = true;
	}
	vb_driver_unlock(d);
	return is_all;
}

/* What woke the thread. */
struct woken {
	int count;
	bool is_timer, is_neighbours, is_stop;
	unsigned looks;
	unsigned chores; /* bits */
};

static void drain(struct vb_driver *d, int fd)
{
	if (!vb_eventfd_take(fd))
		vb_process_lose_descriptors(d->process);
}

/* Only here the thread can be cancelled: it holds nothing. */
static int await_events(int epoll_fd, struct epoll_event events[EVENTS], int timeout_ms)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	int count = vb_clock_epoll(epoll_fd, events, EVENTS, timeout_ms);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return count;
}

static struct woken sleep_until_woken(struct vb_driver *d, int timeout_ms)
{
	struct epoll_event events[EVENTS];
	struct woken woken = { false };
	int count = await_events(d->epoll_fd, events, timeout_ms);
	woken.count = count;
	woken.is_stop = count < 0 && errno != EINTR;
	if (woken.is_stop)
		vb_process_lose_descriptors(d->process);
	bool has_port = count < 0 || d->attendance != VB_ATTENDED_BY_THREAD;

	for (int i = 0; i < count; i++) {
		unsigned source = events[i].data.u32;
		if (source == SOURCE_TIMER)
			drain(d, d->timer_fd);
		if (source == SOURCE_WAKE)
			drain(d, d->wake_fd);
		woken.is_timer |= source == SOURCE_TIMER;
		woken.is_neighbours |= source == SOURCE_NEIGHBOURS;
		woken.is_stop |= source == SOURCE_STOP;
		if (source >= SOURCE_CHORE)
			woken.chores |= 1u << (source - SOURCE_CHORE);
		has_port |= source == SOURCE_PORT || source >= SOURCE_CHORE; /* which may be that of frames */
	}
	woken.looks = (has_port ? VB_LOOKS_AT_PORT : VB_PORT_IS_QUIET) | (woken.is_neighbours ? VB_LOOKS_AT_BELLS : 0);
	return woken;
}

static void do_chores(struct vb_driver *d, unsigned chores)
{
	for (; chores; chores &= chores - 1) {
		const struct vb_chore *chore = &d->chores[__builtin_ctz(chores)];
		if (chore->run)
			chore->run(chore->user);
	}
}

void vb_progress_timer_is_up(struct vb_driver *d)
{
	drain(d, d->timer_fd);
}

/* Pollers see what is in memory, but not what comes by sockets. False: they do not attend any more, and who sleeps now
 * may have been robbed of his bell. */
static bool hear_for_pollers(struct vb_driver *d)
{
	vb_driver_lock(d);
	vb_neighbours_hear(d);
	bool they_attend = vb_progress_is_left_to_pollers(d);
	vb_driver_unlock(d);
	return they_attend;
}

static void *run(void *argument)
{
	struct vb_driver *d = argument;
	bool is_done = true;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	is_progress_thread = true;
	pthread_setname_np(pthread_self(), NAME);
	for (;;) {
		vb_time since = vb_host_now();
		struct woken woken = sleep_until_woken(d, is_done ? -1 : 0);
		if (woken.is_stop)
			return NULL;
		if (woken.is_neighbours)
			learn_to_linger(d, vb_time_since(since, vb_host_now()));
		do_chores(d, woken.chores);
		bool must_drive = woken.is_timer && !hear_timer(d);
		if (!must_drive && vb_progress_is_left_to_pollers(d)) {
			is_done = !woken.is_neighbours || hear_for_pollers(d);
			if (is_done)
				continue;
		} else if (!must_drive && woken.is_timer && woken.count == 1) {
			continue;
		}
		is_done = drive(d, woken.looks);
	}
}

/* ---- Start and stop --------------------------------------------------------------------------------------------- */

void vb_progress_watch_port(struct vb_driver *d)
{
	vb_progress_attend(d, VB_ATTENDED_BY_THREAD);
	set_port(d, EPOLL_CTL_DEL, 0);
	d->watched_count = vb_port_fds(d->port, d->watched);
	d->watched_version = d->port->fds_version;
	set_port(d, EPOLL_CTL_ADD, EPOLLIN);
}

void vb_progress_watch(struct vb_driver *d, struct vb_chore chore)
{
	assert(d->chore_count < VB_CHORES);
	d->chores[d->chore_count] = chore;
	epoll_set(d, EPOLL_CTL_ADD, chore.fd, EPOLLIN, SOURCE_CHORE + d->chore_count++);
}

static void close_fd(int *fd)
{
	vb_descriptor_close(*fd, VB_TYPE_ANONYMOUS);
	*fd = -1;
}

void vb_progress_close(struct vb_driver *d)
{
	close_fd(&d->epoll_fd);
	close_fd(&d->timer_fd);
	close_fd(&d->wake_fd);
	close_fd(&d->stop_fd);
}

void vb_progress_forget(struct vb_driver *d)
{
	d->epoll_fd = d->timer_fd = d->wake_fd = d->stop_fd = -1;
	d->watched_count = d->chore_count = 0;
}

int vb_progress_open(struct vb_driver *d)
{
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	d->timer_fd = vb_clock_timer();
	d->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	d->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (d->epoll_fd < 0 || d->timer_fd < 0 || d->wake_fd < 0 || d->stop_fd < 0)
		return -errno;
	epoll_set(d, EPOLL_CTL_ADD, d->timer_fd, EPOLLIN, SOURCE_TIMER);
	epoll_set(d, EPOLL_CTL_ADD, d->wake_fd, EPOLLIN, SOURCE_WAKE);
	epoll_set(d, EPOLL_CTL_ADD, d->stop_fd, EPOLLIN, SOURCE_STOP);
	return 0;
}

int vb_progress_start(struct vb_driver *d, bool has_thread)
{
	vb_progress_watch_port(d);
	if (d->neighbours)
		epoll_set(d, EPOLL_CTL_ADD, vb_neighbours_fd(d), EPOLLIN, SOURCE_NEIGHBOURS);
	if (!has_thread)
		return 0;
	d->has_thread = true;
	int rc = vb_thread_start(&d->thread, run, d);
	d->has_thread = rc == 0;
	return rc;
}

void vb_progress_cancel(struct vb_driver *d)
{
	if (d->has_thread)
		pthread_cancel(d->thread);
}

void vb_progress_stop(struct vb_driver *d)
{
	if (!vb_eventfd_ring(d->stop_fd, 1))
		vb_progress_cancel(d);
	if (d->has_thread)
		pthread_join(d->thread, NULL);
}
