/* Who waits asleep, and drives lanes meanwhile: for a descriptor to be readable, and for the port to be done with what
 * was handed out. */
#include "host/process.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "os/clock.h"
#include "os/descriptor.h"

#define WAIT_ALONE_MS    10
#define TURNS_IN_A_ROW   4 /* without a look at the clock and the port */
#define PORT_PATIENCE_MS 1

/* ---- For a descriptor ------------------------------------------------------------------------------------------- */

bool vb_driver_is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return vb_descriptors_ready(&p, 1) > 0;
}

/* What somebody waits for. */
struct wanted {
	int fd;
	const atomic_uint *count;
};

static bool is_there(const struct wanted *wanted)
{
	return wanted->count ? atomic_load_explicit(wanted->count, memory_order_relaxed) > 0
			     : vb_driver_is_readable(wanted->fd);
}

/* Drives until nothing happens any more or what is wanted is there by what happened, which it returns. attends: it is
 * this one that nobody needs to wake, and has slept, and so knows where there is something to look at. Where the
 * port's descriptors have become others meanwhile, another waiter may have taken over, who is to be woken. */
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

/* A lane that is waited in: what the progress thread would sleep on, if he who waits is the one that drives it. */
struct place {
	struct vb_driver *driver;
	const struct wanted *wanted;
	bool is_driving;
	bool is_short;         /* there is something to do already */
	unsigned first, looks; /* place of its descriptors in fds; what is there to look at */
};

/* What a waiter sleeps on: his own descriptor, and those of the lanes that he drives. */
struct sleep {
	struct pollfd fds[2 + VB_LANES_MAX * (3 + VB_PORT_FDS)];
	unsigned count, place_count;
	struct place places[VB_LANES_MAX];
};

enum { FRAMES, TIMER, NEIGHBOURS, PORT }; /* and the next ones */

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
static void begin_wait(struct vb_driver *d, const struct wanted *wanted, struct sleep *sleep)
{
	struct place *place = &sleep->places[sleep->place_count++];

	*place = (struct place){ .driver = d, .wanted = wanted, .first = sleep->count };
	vb_driver_lock(d);
	place->is_driving = d->attendance != VB_ATTENDED_BY_WAITER || d->waiter == wanted;
	if (place->is_driving) {
		d->waiter = wanted;
		vb_progress_attend(d, VB_ATTENDED_BY_WAITER);
		add(sleep, vb_frames_fd(d));
		add(sleep, d->has_thread ? -1 : d->timer_fd);
		add(sleep, vb_neighbours_fd(d));
		add_port(sleep, d);
	}
	vb_driver_settle(d);
	d->beside += !place->is_driving;
	if (place->is_driving) {
		place->is_short = !vb_neighbours_doze(d, vb_host_now());
		d->is_awake = place->is_short;
	}
	vb_driver_unlock(d);
}

static void end_driving(const struct place *place)
{
	struct vb_driver *d = place->driver;

	vb_driver_lock(d);
	if (d->waiter == place->wanted) {
		d->waiter = NULL;
		d->is_awake = false;
		vb_progress_attend(d, VB_ATTENDED_BY_THREAD);
	}
	vb_driver_unlock(d);
}

/* With what was waited for: whoever got that polls, posts, and waits again, most likely, and nobody needs to attend
 * meanwhile unless others wait. */
static void leave(const struct place *place)
{
	struct vb_driver *d = place->driver;

	vb_driver_lock(d);
	if (d->waiter == place->wanted) {
		bool is_alone = d->has_thread && d->beside == 0;
		d->waiter = NULL;
		d->is_awake = false;
		if (is_alone)
			vb_neighbours_part(d, vb_host_now());
		vb_progress_attend(d, is_alone ? VB_ATTENDED_BY_RETURNER : VB_ATTENDED_BY_THREAD);
	}
	vb_driver_unlock(d);
}

static void end_beside(struct vb_driver *d)
{
	vb_driver_lock(d);
	d->beside--;
	vb_driver_unlock(d);
}

static void end_wait(void *argument)
{
	const struct sleep *sleep = argument;

	for (unsigned i = 0; i < sleep->place_count; i++) {
		if (sleep->places[i].is_driving)
			end_driving(&sleep->places[i]);
		else
			end_beside(sleep->places[i].driver);
	}
}

/* Whoever drives and has not got what he waits for goes on. */
static void end_turn(const struct sleep *sleep, bool is_done, int error)
{
	for (unsigned i = 0; i < sleep->place_count; i++) {
		const struct place *place = &sleep->places[i];
		if (!place->is_driving)
			end_beside(place->driver);
		else if (is_done)
			leave(place);
		else if (error)
			end_driving(place);
	}
}

/* Without a thread somebody must look whether the one that drives has gone. */
static int patience_of(const struct sleep *sleep)
{
	int patience = -1;

	for (unsigned i = 0; i < sleep->place_count; i++) {
		if (sleep->places[i].is_short)
			return 0;
		if (!sleep->places[i].is_driving && !sleep->places[i].driver->has_thread)
			patience = WAIT_ALONE_MS;
	}
	return patience;
}

/* Who drives without a thread looks after the timer too, which whoever posts meanwhile may set. Programs cancel
 * threads that wait for events: then the thread attends again. */
static int sleep_until_woken(struct sleep *sleep)
{
	int ready;

	pthread_cleanup_push(end_wait, sleep);
	ready = vb_clock_poll(sleep->fds, sleep->count, patience_of(sleep));
	pthread_cleanup_pop(0);
	return ready;
}

/* What the sleep was ended by. False: by nothing of this lane. */
static bool note_looks(const struct sleep *sleep, struct place *place)
{
	const struct pollfd *fds = &sleep->fds[place->first];
	unsigned end = sleep->count;
	bool has_port = fds[FRAMES].revents;

	if ((fds[FRAMES].revents | fds[TIMER].revents | fds[NEIGHBOURS].revents | fds[PORT].revents) & POLLNVAL)
		vb_process_lose_descriptors(place->driver->process);
	for (const struct place *other = place + 1; other < sleep->places + sleep->place_count; other++)
		end = other->first < end ? other->first : end;
	for (unsigned i = PORT; place->first + i < end; i++)
		has_port |= fds[i].revents != 0;
	if (fds[TIMER].revents)
		vb_progress_timer_is_up(place->driver);
	place->looks =
		(has_port ? VB_LOOKS_AT_PORT : VB_PORT_IS_QUIET) | (fds[NEIGHBOURS].revents ? VB_LOOKS_AT_BELLS : 0);
	return has_port || fds[NEIGHBOURS].revents || fds[TIMER].revents;
}

/* Still ours: what arrived is most likely what is waited for. */
static bool drive_what_woke(struct sleep *sleep, const struct wanted *wanted, int ready)
{
	bool is_done = false;

	for (unsigned i = 0; i < sleep->place_count && !is_done; i++) {
		struct place *place = &sleep->places[i];
		bool is_woken = place->is_driving && ready >= 0 && note_looks(sleep, place);
		if (is_woken || (place->is_driving && place->is_short))
			is_done = drive_until_there(place->driver, wanted, true, place->looks);
	}
	return is_done;
}

/* The program has closed what is slept on. The QPs fail by whoever holds the mutex next, and that is news. */
static bool is_there_at_last(const struct vb_process *p, const struct wanted *wanted)
{
	for (unsigned i = 0; i < vb_process_driver_count(p); i++) {
		vb_driver_lock(p->drivers[i]);
		vb_driver_unlock(p->drivers[i]);
	}
	return is_there(wanted);
}

bool vb_device_wait(struct vb_device *device, unsigned lanes, int fd, const atomic_uint *count)
{
	const struct vb_process *p = device->process;
	const struct wanted wanted = { fd, count };
	const unsigned there = vb_process_driver_count(p);
	int error = 0;

	if (p->is_forked)
		return false;
	if (lanes == 0) /* whose QPs are made meanwhile: without a thread nobody else would drive them */
		lanes = vb_driver_bit(vb_process_home(p));
	bool is_done = is_there(&wanted);
	for (unsigned i = 0; i < there && !is_done; i++)
		is_done = (lanes >> i & 1) && drive_until_there(p->drivers[i], &wanted, false, 0);

	while (!is_done && !error && !p->is_forked && !p->has_lost_descriptors) {
		struct sleep sleep;
		sleep.count = sleep.place_count = 0;
		add(&sleep, fd);
		add(&sleep, p->alarm_fd);
		for (unsigned i = 0; i < there; i++)
			if (lanes >> i & 1)
				begin_wait(p->drivers[i], &wanted, &sleep);
		int ready = 0;
		is_done = is_there(&wanted); /* by our own driving, and nobody else may know of it */
		if (!is_done) {
			ready = sleep_until_woken(&sleep);
			error = ready < 0 ? errno : 0;
			is_done = ready > 0 && sleep.fds[0].revents;
		}
		if (!is_done)
			is_done = drive_what_woke(&sleep, &wanted, ready);
		end_turn(&sleep, is_done, error);
	}
	if (!is_done && p->has_lost_descriptors)
		is_done = is_there_at_last(p, &wanted);
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
		struct sleep sleep;
		sleep.count = 0;
		add_port(&sleep, d);
		vb_driver_unlock(d);
		vb_clock_poll(sleep.fds, sleep.count, PORT_PATIENCE_MS);
		vb_driver_lock(d);
		vb_driver_turn(d, VB_LOOKS_AT_ALL);
	}
	vb_driver_unlock(d);
}

void vb_device_grace(struct vb_device *device)
{
	if (device->process->is_forked)
		return;
	for (unsigned i = 0; i < vb_process_driver_count(device->process); i++)
		outwait(device->process->drivers[i]);
}
