/* How a lane's progress thread is woken, and how the ownership's decisions reach it: an epoll set, a timer, an eventfd.
 *
 * The thread sleeps in epoll on the port's descriptors, on a timer for the lane's next deadline, on the bells of local
 * peers, and on the descriptors of its chores. Threads that poll would be slowed down by a second thread that is woken
 * for every packet, so while they own the lane the port is out of the set.
 *
 * Holds: the set and the timer are as the ownership says whenever the mutex is given away. */
#include "host/lanes/host_lane_state.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "base/invariant.h"
#include "host/peers/host_peers.h"
#include "os/clock.h"
#include "os/descriptor.h"

#define EVENTS 8

enum source {
	SOURCE_PORT,
	SOURCE_BELLS,
	SOURCE_TIMER,
	SOURCE_WAKE,
	SOURCE_STOP,
	SOURCE_CHORE /* and the next ones */
};

_Thread_local bool vb_is_progress_thread;

static void epoll_set(struct vb_host_lane_state *s, int operation, int fd, uint32_t events, unsigned source)
{
	struct epoll_event event = { .events = events, .data.u32 = source };

	epoll_ctl(s->wakeups.epoll_fd, operation, fd, &event);
}

/* Not cancelled: a waiter may be about to sleep, and would keep the lane for good. */
void vb_wakeups_wake(struct vb_host_lane_state *s)
{
	if (s->ownership.has_thread && !vb_eventfd_ring(s->wakeups.wake_fd, 1))
		vb_process_lose_descriptors(s->host_lane.process);
}

static void drain(struct vb_host_lane_state *s, int fd)
{
	if (!vb_eventfd_take(fd))
		vb_process_lose_descriptors(s->host_lane.process);
}

void vb_wakeups_take_timer(struct vb_host_lane_state *s)
{
	drain(s, s->wakeups.timer_fd);
}

/* ---- Carrying out ------------------------------------------------------------------------------------------------ */

static void set_port(struct vb_host_lane_state *s, int operation, uint32_t events)
{
	for (unsigned i = 0; i < s->wakeups.watched_count; i++)
		epoll_set(s, operation, s->wakeups.watched[i], events, SOURCE_PORT);
}

static void set_bells(struct vb_host_lane_state *s, uint32_t events)
{
	if (s->host_lane.peers)
		epoll_set(s, EPOLL_CTL_MOD, vb_host_peers_fd(&s->host_lane), events, SOURCE_BELLS);
}

static void set_timer(struct vb_host_lane_state *s)
{
	const struct vb_ownership *o = &s->ownership;
	const struct vb_deadline deadline = { o->alarm_at, o->alarm != VB_ALARM_NONE };

	assert(o->alarm != VB_ALARM_LOOK || o->has_thread);
	if (!vb_host_set_timer(s->wakeups.timer_fd, deadline))
		vb_process_lose_descriptors(s->host_lane.process);
}

void vb_wakeups_do(struct vb_host_lane_state *s, unsigned actions)
{
	assert(!(actions & VB_DO_WATCH_PORT) || !(actions & VB_DO_LEAVE_PORT));
	assert(!(actions & VB_DO_HEAR_BELLS) || !(actions & VB_DO_LEAVE_BELLS));
	if (!actions)
		return;
	if (actions & VB_DO_SEND_ACKS)
		vb_host_peers_part(&s->host_lane, vb_host_now());
	if (actions & VB_DO_ROUSE)
		vb_host_peers_rouse(&s->host_lane);
	if (actions & (VB_DO_WATCH_PORT | VB_DO_LEAVE_PORT))
		set_port(s, EPOLL_CTL_MOD, actions & VB_DO_WATCH_PORT ? EPOLLIN : 0);
	if (actions & (VB_DO_HEAR_BELLS | VB_DO_LEAVE_BELLS))
		set_bells(s, actions & VB_DO_HEAR_BELLS ? EPOLLIN : 0);
	if (actions & VB_DO_SET_TIMER)
		set_timer(s);
}

/* The lane's deadline may be that of an acknowledgement that cannot leave while the port has no room: the port says
 * when it has. */
static struct vb_deadline next_deadline(const struct vb_host_lane *d)
{
	struct vb_deadline next = vb_deadline_earlier(vb_port_next_deadline(d->port), vb_host_peers_next_deadline(d));

	return d->port->room ? vb_deadline_earlier(next, vb_lane_next_deadline(d->lane)) : next;
}

void vb_wakeups_arm(struct vb_host_lane_state *s, bool has_work)
{
	struct vb_ownership *o = &s->ownership;

	if (!vb_ownership_needs_timer(o))
		return;
	vb_wakeups_do(s, has_work && !o->has_thread ? vb_ownership_arm_at_once(o, vb_host_now())
						    : vb_ownership_arm(o, next_deadline(&s->host_lane)));
}

/* ---- What is watched --------------------------------------------------------------------------------------------- */

void vb_wakeups_watch_port(struct vb_host_lane_state *s)
{
	struct vb_wakeups *w = &s->wakeups;
	const struct vb_port *port = s->host_lane.port;

	vb_wakeups_do(s, vb_ownership_port_changed(&s->ownership));
	set_port(s, EPOLL_CTL_DEL, 0);
	w->watched_count = vb_port_fds(port, w->watched);
	w->watched_version = port->fds_version;
	set_port(s, EPOLL_CTL_ADD, EPOLLIN);
	assert(w->watched_count <= VB_PORT_FDS);
}

void vb_wakeups_watch_bells(struct vb_host_lane_state *s)
{
	if (s->host_lane.peers)
		epoll_set(s, EPOLL_CTL_ADD, vb_host_peers_fd(&s->host_lane), EPOLLIN, SOURCE_BELLS);
}

void vb_progress_watch(struct vb_host_lane *d, struct vb_chore chore)
{
	struct vb_host_lane_state *s = vb_state_of(d);
	struct vb_wakeups *w = &s->wakeups;

	assert(w->chore_count < VB_CHORES);
	w->chores[w->chore_count] = chore;
	epoll_set(s, EPOLL_CTL_ADD, chore.fd, EPOLLIN, SOURCE_CHORE + w->chore_count++);
}

/* ---- Sleeping ---------------------------------------------------------------------------------------------------- */

static int await_events(int epoll_fd, struct epoll_event events[EVENTS], int timeout_ms)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	int count = vb_clock_epoll(epoll_fd, events, EVENTS, timeout_ms);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return count;
}

/* A chore's descriptor may be that of raw frames, at which a turn looks as at the port. */
static bool note_event(struct vb_host_lane_state *s, struct vb_woken *woken, unsigned source)
{
	assert(source < SOURCE_CHORE + VB_CHORES);
	if (source == SOURCE_TIMER)
		drain(s, s->wakeups.timer_fd);
	if (source == SOURCE_WAKE)
		drain(s, s->wakeups.wake_fd);
	woken->by_timer |= source == SOURCE_TIMER;
	woken->by_bell |= source == SOURCE_BELLS;
	woken->is_to_stop |= source == SOURCE_STOP;
	if (source >= SOURCE_CHORE)
		woken->chores |= 1u << (source - SOURCE_CHORE);
	return source == SOURCE_PORT || source >= SOURCE_CHORE;
}

/* Where the thread does not own the lane, it has not slept on the port, and does not know. */
struct vb_woken vb_wakeups_sleep(struct vb_host_lane_state *s, int timeout_ms)
{
	struct epoll_event events[EVENTS];
	struct vb_woken woken = { .count = await_events(s->wakeups.epoll_fd, events, timeout_ms) };

	assert(vb_is_progress_thread);
	woken.is_to_stop = woken.count < 0 && errno != EINTR;
	if (woken.is_to_stop)
		vb_process_lose_descriptors(s->host_lane.process);
	bool has_port = woken.count < 0 || !vb_ownership_is_thread(&s->ownership);
	for (int i = 0; i < woken.count; i++)
		has_port |= note_event(s, &woken, events[i].data.u32);
	woken.looks = (has_port ? VB_LOOKS_AT_PORT : VB_PORT_IS_QUIET) | (woken.by_bell ? VB_LOOKS_AT_BELLS : 0);
	return woken;
}

/* ---- Making and closing ------------------------------------------------------------------------------------------ */

static void close_fd(atomic_int *fd)
{
	vb_descriptor_close(*fd, VB_TYPE_ANONYMOUS);
	*fd = -1;
}

void vb_wakeups_close(struct vb_host_lane_state *s)
{
	close_fd(&s->wakeups.epoll_fd);
	close_fd(&s->wakeups.timer_fd);
	close_fd(&s->wakeups.wake_fd);
	close_fd(&s->wakeups.stop_fd);
	assert(s->wakeups.epoll_fd < 0 && s->wakeups.timer_fd < 0);
}

void vb_wakeups_forget(struct vb_host_lane_state *s)
{
	struct vb_wakeups *w = &s->wakeups;

	w->epoll_fd = w->timer_fd = w->wake_fd = w->stop_fd = -1;
	w->watched_count = w->chore_count = 0;
}

int vb_wakeups_open(struct vb_host_lane_state *s)
{
	struct vb_wakeups *w = &s->wakeups;

	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	w->timer_fd = vb_clock_timer();
	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->epoll_fd < 0 || w->timer_fd < 0 || w->wake_fd < 0 || w->stop_fd < 0)
		return -errno;
	epoll_set(s, EPOLL_CTL_ADD, w->timer_fd, EPOLLIN, SOURCE_TIMER);
	epoll_set(s, EPOLL_CTL_ADD, w->wake_fd, EPOLLIN, SOURCE_WAKE);
	epoll_set(s, EPOLL_CTL_ADD, w->stop_fd, EPOLLIN, SOURCE_STOP);
	return 0;
}
