/* Who waits asleep, and drives the lane meanwhile: for a descriptor to be readable, and for the port to be done with what
 * was handed out. */
#include "host/process.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WAIT_ALONE_MS	 10
#define TURNS_IN_A_ROW	 4 /* without a look at the clock and the port */
#define PORT_PATIENCE_MS 1

/* ---- For a descriptor ------------------------------------------------------------------------------------------- */

bool vb_driver_is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	const struct timespec now = { 0 };

	return syscall(SYS_ppoll, &p, 1, &now, NULL, 0) > 0;
}

/* What somebody waits for. */
struct wanted {
	int fd;
	const atomic_uint *count;
};

static bool is_there(const struct wanted *wanted)
{
	return wanted->count ? atomic_load_explicit(wanted->count, memory_order_relaxed) > 0 :
			       vb_driver_is_readable(wanted->fd);
}

/* Drives until nothing happens any more or what is wanted is there by what happened, which it returns. attends: it is this
 * one that nobody needs to wake, and has slept, and so knows where there is something to look at. Where the port's
 * descriptors have become others meanwhile, another waiter may have taken over, who is to be woken. */
static bool drive_until_there(struct vb_driver *d, const struct wanted *wanted, bool attends, unsigned looks)
{
	bool is_busy = true;

	for (unsigned turns = 0; is_busy; turns++) {
		bool is_first = attends && turns == 0;
		vb_driver_lock(d);
		d->is_awake |= attends && d->waiter == wanted;
		is_busy = vb_driver_turn(d, is_first ? looks : vb_driver_looks_next(d, turns < TURNS_IN_A_ROW));
		if (d->attendance == VB_ATTENDED_BY_RETURNER)
			vb_progress_polled(d);
		vb_driver_unlock(d);
		if (is_busy && is_there(wanted))
			return true;
	}
	return false;
}

/* What a waiter sleeps on: his own descriptor, and, if he is the one that drives, what the progress thread would. */
struct sleep {
	struct pollfd fds[4 + VB_PORT_FDS];
	unsigned count;
	bool is_driving;
	bool is_short; /* there is something to do already */
	unsigned first_port, looks; /* place of the port's in fds; what is there to look at */
	struct vb_driver *worker;
	const struct wanted *wanted;
};

enum { OWN, FRAMES, TIMER, NEIGHBOURS };

static void add(struct sleep *sleep, int fd)
{
	sleep->fds[sleep->count++] = (struct pollfd){ .fd = fd, .events = POLLIN };
}

static void add_port(struct sleep *sleep, const struct vb_driver *d)
{
	for (unsigned i = 0; i < d->watched_count; i++)
		add(sleep, d->watched[i]);
}

/* Takes the port over from the thread or the pollers, unless another waiter has it, or has it still. */
static struct sleep begin_wait(struct vb_driver *d, const struct wanted *wanted)
{
	struct sleep sleep = { .count = 0 };

	add(&sleep, wanted->fd);
	vb_driver_lock(d);
	sleep.is_driving = d->attendance != VB_ATTENDED_BY_WAITER || d->waiter == wanted;
	if (sleep.is_driving) {
		d->waiter = wanted;
		vb_progress_attend(d, VB_ATTENDED_BY_WAITER);
		add(&sleep, vb_frames_fd(d));
		add(&sleep, d->has_thread ? -1 : d->timer_fd);
		add(&sleep, vb_neighbours_fd(d));
		sleep.first_port = sleep.count;
		add_port(&sleep, d);
	}
	vb_driver_settle(d);
	d->beside += !sleep.is_driving;
	sleep.worker = d;
	sleep.wanted = wanted;
	if (sleep.is_driving) {
		sleep.is_short = !vb_neighbours_doze(d, vb_host_now());
		d->is_awake = sleep.is_short;
	}
	vb_driver_unlock(d);
	return sleep;
}

static void end_wait(void *argument)
{
	const struct sleep *sleep = argument;
	struct vb_driver *d = sleep->worker;

	vb_driver_lock(d);
	if (d->waiter == sleep->wanted) {
		d->waiter = NULL;
		d->is_awake = false;
		vb_progress_attend(d, VB_ATTENDED_BY_THREAD);
	}
	vb_driver_unlock(d);
}

/* With what was waited for: whoever got that polls, posts, and waits again, most likely, and nobody needs to attend meanwhile
 * unless others wait. */
static void leave(struct vb_driver *d, const struct wanted *wanted)
{
	vb_driver_lock(d);
	if (d->waiter == wanted) {
		bool is_alone = d->has_thread && d->beside == 0;
		d->waiter = NULL;
		d->is_awake = false;
		if (is_alone)
			vb_neighbours_part(d, vb_host_now());
		vb_progress_attend(d, is_alone ? VB_ATTENDED_BY_RETURNER : VB_ATTENDED_BY_THREAD);
	}
	vb_driver_unlock(d);
}

static void end_beside(void *worker)
{
	struct vb_driver *d = worker;

	vb_driver_lock(d);
	d->beside--;
	vb_driver_unlock(d);
}

static void note_looks(struct sleep *sleep, int ready)
{
	if (ready < 0)
		return;
	bool has_port = sleep->fds[FRAMES].revents;
	for (unsigned i = sleep->first_port; i < sleep->count; i++)
		has_port |= sleep->fds[i].revents != 0;
	sleep->looks = (has_port ? VB_LOOKS_AT_PORT : VB_PORT_IS_QUIET) |
		       (sleep->fds[NEIGHBOURS].revents ? VB_LOOKS_AT_BELLS : 0);
}

/* Sleeps as the one that drives, who without a thread looks after the timer too, which whoever posts meanwhile may set.
 * Programs cancel threads that wait for events: then the thread attends again. */
static int sleep_driving(struct vb_driver *d, struct sleep *sleep)
{
	int ready;

	pthread_cleanup_push(end_wait, sleep);
	ready = poll(sleep->fds, sleep->count, sleep->is_short ? 0 : -1);
	pthread_cleanup_pop(0);
	if (ready > 0 && sleep->fds[TIMER].revents)
		vb_progress_timer_is_up(d);
	note_looks(sleep, ready);
	return ready;
}

/* Without a thread somebody must look whether the one that drives has gone. */
static int sleep_beside(struct vb_driver *d, struct sleep *sleep)
{
	int ready;

	pthread_cleanup_push(end_beside, d);
	ready = poll(sleep->fds, sleep->count, d->has_thread ? -1 : WAIT_ALONE_MS);
	pthread_cleanup_pop(0);
	return ready;
}

/* Whoever drives and has not got what he waits for goes on. */
static void end_turn(struct vb_driver *d, struct sleep *sleep, bool is_done, int error)
{
	if (!sleep->is_driving)
		end_beside(d);
	else if (is_done)
		leave(d, sleep->wanted);
	else if (error)
		end_wait(sleep);
}

bool vb_device_wait(struct vb_device *device, int fd, const atomic_uint *count)
{
	struct vb_driver *d = device->driver;
	const struct wanted wanted = { fd, count };
	int error = 0;

	if (d->process->is_forked)
		return false;
	bool is_done = is_there(&wanted) || drive_until_there(d, &wanted, false, 0);

	while (!is_done && !error && !d->process->is_forked) {
		struct sleep sleep = begin_wait(d, &wanted);
		int ready = 0;
		is_done = is_there(&wanted); /* by our own driving, and nobody else may know of it */
		if (!is_done) {
			ready = sleep.is_driving ? sleep_driving(d, &sleep) : sleep_beside(d, &sleep);
			error = ready < 0 ? errno : 0;
			is_done = ready > 0 && sleep.fds[OWN].revents;
		}
		/* Still ours: what arrived is most likely what is waited for. */
		if (sleep.is_driving && !is_done && (ready > 0 || sleep.is_short))
			is_done = drive_until_there(d, &wanted, true, sleep.looks);
		end_turn(d, &sleep, is_done, error);
	}
	errno = error ? error : errno;
	return is_done;
}

/* ---- For the port ------------------------------------------------------------------------------------------------ */

/* What this one had at its port has come back. UDP's is done when it has sent: one hold, then. */
static void outwait(struct vb_driver *d)
{
	vb_driver_lock(d);
	uint32_t mark = vb_lane_mark(d->lane);
	while (!vb_lane_is_back(d->lane, mark)) {
		struct sleep sleep = { .count = 0 };
		add_port(&sleep, d);
		vb_driver_unlock(d);
		poll(sleep.fds, sleep.count, PORT_PATIENCE_MS);
		vb_driver_lock(d);
		vb_driver_turn(d, VB_LOOKS_AT_ALL);
	}
	vb_driver_unlock(d);
}

void vb_device_grace(struct vb_device *device)
{
	if (device->process->is_forked)
		return;
	vb_list_for_each(node, &device->process->drivers)
		outwait(vb_container_of(node, struct vb_driver, link));
}
