/* Threads that wait asleep, and drive lanes meanwhile: for descriptors to be ready, and for the port to be done with
 * what was handed out. */
#include "host/lanes/host_lane_state.h"

#include <errno.h>
#include "base/invariant.h"
#include "os/clock.h"
#include "os/descriptor.h"

#define TURNS_IN_A_ROW      4  /* without a look at the clock and the port */
#define TURNS_BETWEEN_LOOKS 16 /* at descriptors of the waiter's own */

/* ---- For a descriptor -------------------------------------------------------------------------------------------- */

bool vb_host_lane_is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return vb_descriptors_ready(&p, 1) > 0;
}

/* A thread's wait. Its address is the name of the thread as a waiter. */
struct wanted {
	struct pollfd *fds; /* what it sleeps on, and room for VB_WAIT_FDS more */
	unsigned count;
	const atomic_uint *news; /* not 0: it is there, whatever the descriptors say; NULL: the first one says */
	int64_t until_ns;        /* INT64_MAX: for ever */
	bool has_own;            /* news is of this thread's turns alone, and any of the descriptors may become ready */
};

static bool is_there(const struct wanted *wanted)
{
	return wanted->news ? atomic_load_explicit(wanted->news, memory_order_relaxed) > 0
			    : vb_host_lane_is_readable(wanted->fds[0].fd);
}

static bool is_any_ready(const struct wanted *wanted)
{
	for (unsigned i = 0; i < wanted->count; i++)
		if (wanted->fds[i].revents)
			return true;
	return false;
}

static bool is_late(const struct wanted *wanted)
{
	return wanted->until_ns != INT64_MAX && vb_clock_ns() >= wanted->until_ns;
}

/* Between turns that go on and on, of a thread that sleeps on descriptors of its own: other threads make these ready,
 * too. */
static bool is_over_meanwhile(const struct wanted *wanted, unsigned turns)
{
	if (!wanted->has_own || turns % TURNS_BETWEEN_LOOKS != TURNS_BETWEEN_LOOKS - 1)
		return false;
	return is_late(wanted) || vb_descriptors_ready(wanted->fds, wanted->count) > 0;
}

/* Drives until nothing happens any more, or what is wanted is there by what happened, which it returns. attends: the
 * caller owns the lane and has slept, so it knows by looks where there is something. Where the port's descriptors have
 * become others meanwhile, another owner has taken over, which is to be woken. */
static bool drive_until_there(struct vb_host_lane *d, const struct wanted *wanted, bool attends, unsigned looks)
{
	struct vb_host_lane_state *s = vb_state_of(d);
	bool is_busy = true;

	assert(attends || looks == 0);
	for (unsigned turns = 0; is_busy; turns++) {
		bool is_first = attends && turns == 0;
		vb_host_lane_lock(d);
		if (attends)
			vb_ownership_waiter_turn(&s->ownership, wanted);
		is_busy = vb_host_lane_turn(d, is_first ? looks : vb_host_lane_looks_next(d, turns < TURNS_IN_A_ROW));
		vb_ownership_returned(&s->ownership, vb_turn_end(s));
		vb_host_lane_unlock(d);
		if (is_busy && (is_there(wanted) || is_over_meanwhile(wanted, turns)))
			return true;
	}
	return false;
}

/* A lane that is waited in. */
struct place {
	struct vb_host_lane_state *state;
	const struct wanted *wanted;
	bool is_driving;       /* this thread owned the lane when it began to wait */
	bool is_short;         /* there is something to do already */
	unsigned first, looks; /* place of its descriptors in fds; what there is to look at */
};

/* A waiter sleeps on its own descriptors, and those of the lanes that it drives. */
struct sleep {
	struct pollfd *fds;
	unsigned room, count, place_count;
	struct place places[VB_LANES_MAX];
};

enum { FRAMES, TIMER, LOCAL_PEERS, PORT }; /* and the next ones */

_Static_assert(VB_WAIT_FDS == 1 + VB_LANES_MAX * (PORT + VB_PORT_FDS), "the process's, and each lane's");

static void add(struct sleep *sleep, int fd)
{
	assert(sleep->count < sleep->room);
	sleep->fds[sleep->count++] = (struct pollfd){ .fd = fd, .events = POLLIN };
}

static void add_port(struct sleep *sleep, const struct vb_host_lane_state *s)
{
	for (unsigned i = 0; i < s->wakeups.watched_count; i++)
		add(sleep, s->wakeups.watched[i]);
}

/* Without a progress thread the timer is the waiter's to look after, too, which any poster may set meanwhile. */
static void add_lane(struct sleep *sleep, const struct vb_host_lane_state *s)
{
	add(sleep, vb_frames_fd(&s->host_lane));
	add(sleep, s->ownership.has_thread ? -1 : s->wakeups.timer_fd);
	add(sleep, vb_host_peers_fd(&s->host_lane));
	add_port(sleep, s);
}

/* Takes the lane over, unless another waiter has it. */
static void begin_wait(struct vb_host_lane *d, const struct wanted *wanted, struct sleep *sleep)
{
	struct vb_host_lane_state *s = vb_state_of(d);
	struct place *place = &sleep->places[sleep->place_count++];

	*place = (struct place){ .state = s, .wanted = wanted, .first = sleep->count };
	vb_host_lane_lock(d);
	vb_wakeups_do(s, vb_ownership_wait(&s->ownership, wanted));
	place->is_driving = vb_ownership_is_owned_by(&s->ownership, wanted);
	if (place->is_driving)
		add_lane(sleep, s);
	vb_host_lane_settle(d);
	if (place->is_driving) {
		place->is_short = !vb_host_peers_doze(d, vb_host_now());
		if (!place->is_short)
			vb_ownership_waiter_sleeps(&s->ownership, wanted);
	}
	assert(place->is_driving == vb_ownership_is_owned_by(&s->ownership, wanted));
	assert(vb_ownership_is_waiter(&s->ownership));
	vb_host_lane_unlock(d);
}

enum leaving { WITH_EVENT, WITHOUT };

static void leave(const struct place *place, enum leaving how)
{
	struct vb_host_lane_state *s = place->state;
	struct vb_ownership *o = &s->ownership;

	vb_host_lane_lock(&s->host_lane);
	if (!place->is_driving)
		vb_ownership_end_wait_beside(o);
	else if (how == WITH_EVENT)
		vb_wakeups_do(s, vb_ownership_leave(o, place->wanted, vb_host_now()));
	else
		vb_wakeups_do(s, vb_ownership_end_wait(o, place->wanted));
	assert(!vb_ownership_is_owned_by(o, place->wanted));
	vb_host_lane_unlock(&s->host_lane);
}

/* The thread was cancelled. */
static void end_wait(void *argument)
{
	const struct sleep *sleep = argument;

	for (unsigned i = 0; i < sleep->place_count; i++)
		leave(&sleep->places[i], WITHOUT);
}

/* An owner that has not got what it waits for keeps the lane, and goes on, unless its wait is over. */
static void end_turn(const struct sleep *sleep, bool is_done, bool is_over)
{
	for (unsigned i = 0; i < sleep->place_count; i++) {
		const struct place *place = &sleep->places[i];
		if (is_done || is_over || !place->is_driving)
			leave(place, is_done ? WITH_EVENT : WITHOUT);
	}
}

/* Without a progress thread a waiter beside the owner must look whether that one has gone. */
static int patience_of(const struct sleep *sleep)
{
	int patience_ms = -1;

	for (unsigned i = 0; i < sleep->place_count; i++) {
		const struct place *place = &sleep->places[i];
		if (place->is_short)
			return 0;
		if (!place->is_driving && !place->state->ownership.has_thread)
			patience_ms = (int)(VB_WAIT_BESIDE / VB_MS);
	}
	return patience_ms;
}

static int span_of(const struct sleep *sleep, const struct wanted *wanted)
{
	const int patience_ms = patience_of(sleep);
	const int left_ms = wanted->until_ns == INT64_MAX ? -1 : vb_clock_left_ms(wanted->until_ns);

	return patience_ms < 0 || (left_ms >= 0 && left_ms < patience_ms) ? left_ms : patience_ms;
}

/* Programs cancel threads that wait for events: then the progress thread owns the lane again. */
static int sleep_until_woken(struct sleep *sleep, const struct wanted *wanted)
{
	int ready;

	pthread_cleanup_push(end_wait, sleep);
	ready = vb_clock_poll(sleep->fds, sleep->count, span_of(sleep, wanted));
	pthread_cleanup_pop(0);
	return ready;
}

/* By what the sleep was ended. False: by nothing of this lane. */
static bool note_looks(const struct sleep *sleep, struct place *place)
{
	const struct pollfd *fds = &sleep->fds[place->first];
	unsigned end = sleep->count;
	bool has_port = fds[FRAMES].revents;
	short all = 0;

	assert(place->is_driving);
	for (const struct place *other = place + 1; other < sleep->places + sleep->place_count; other++)
		end = other->first < end ? other->first : end;
	for (unsigned i = 0; place->first + i < end; i++)
		all |= fds[i].revents;
	if (all & POLLNVAL)
		vb_process_lose_descriptors(place->state->host_lane.process);
	for (unsigned i = PORT; place->first + i < end; i++)
		has_port |= fds[i].revents != 0;
	if (fds[TIMER].revents)
		vb_wakeups_take_timer(place->state);
	place->looks =
		(has_port ? VB_LOOKS_AT_PORT : VB_PORT_IS_QUIET) | (fds[LOCAL_PEERS].revents ? VB_LOOKS_AT_BELLS : 0);
	return has_port || fds[LOCAL_PEERS].revents || fds[TIMER].revents;
}

/* Still this thread's: what arrived is most likely what is waited for. */
static bool drive_what_woke(struct sleep *sleep, const struct wanted *wanted, int ready)
{
	bool is_done = false;

	for (unsigned i = 0; i < sleep->place_count && !is_done; i++) {
		struct place *place = &sleep->places[i];
		bool is_woken = place->is_driving && ready >= 0 && note_looks(sleep, place);
		if (is_woken || (place->is_driving && place->is_short))
			is_done = drive_until_there(&place->state->host_lane, wanted, true, place->looks);
	}
	return is_done;
}

/* The program has closed what is slept on. The QPs fail by the next thread that holds the mutex, and that is news. */
static bool is_there_at_last(const struct vb_process *p, const struct wanted *wanted)
{
	for (unsigned i = 0; i < vb_process_host_lane_count(p); i++) {
		vb_host_lane_lock(p->host_lanes[i]);
		vb_host_lane_unlock(p->host_lanes[i]);
	}
	return is_there(wanted);
}

enum end { GOES_ON, IS_THERE, IS_OVER };

/* A sleep in all lanes of the set. */
static enum end wait_once(
	const struct vb_process *p, unsigned lanes, unsigned there, const struct wanted *wanted, int *error)
{
	struct sleep sleep;
	int ready = 0;

	sleep.fds = wanted->fds;
	sleep.count = wanted->count;
	sleep.room = wanted->count + VB_WAIT_FDS;
	sleep.place_count = 0;
	add(&sleep, p->alarm_fd);
	for (unsigned i = 0; i < there; i++)
		if (lanes >> i & 1)
			begin_wait(p->host_lanes[i], wanted, &sleep);
	bool is_done = is_there(wanted); /* by our own driving, and nobody else may know of it */
	if (!is_done) {
		ready = sleep_until_woken(&sleep, wanted);
		*error = ready < 0 ? errno : 0;
		is_done = ready > 0 && is_any_ready(wanted);
	}
	if (!is_done)
		is_done = drive_what_woke(&sleep, wanted, ready);
	const bool is_over = !is_done && (*error || is_late(wanted));
	end_turn(&sleep, is_done, is_over);
	return is_done ? IS_THERE : is_over ? IS_OVER : GOES_ON;
}

/* A waiter of no lane drives the first: QPs may be made there meanwhile, which without a progress thread nobody else
 * would drive. */
bool vb_device_wait(struct vb_device *device, unsigned lanes, int fd, const atomic_uint *count)
{
	const struct vb_process *p = device->process;
	struct pollfd fds[1 + VB_WAIT_FDS] = { { .fd = fd, .events = POLLIN } };
	const struct wanted wanted = { fds, 1, count, INT64_MAX, false };
	const unsigned there = vb_process_host_lane_count(p);
	int error = 0;

	if (p->is_forked)
		return false;
	if (lanes == 0)
		lanes = vb_host_lane_bit(vb_process_home(p));
	bool is_done = is_there(&wanted);
	for (unsigned i = 0; i < there && !is_done; i++)
		is_done = (lanes >> i & 1) && drive_until_there(p->host_lanes[i], &wanted, false, 0);
	while (!is_done && !error && !p->is_forked && !p->has_lost_descriptors)
		is_done = wait_once(p, lanes, there, &wanted, &error) == IS_THERE;
	if (!is_done && p->has_lost_descriptors)
		is_done = is_there_at_last(p, &wanted);
	errno = error ? error : errno;
	return is_done;
}

int vb_device_poll(struct vb_device *device, unsigned lanes, struct pollfd *fds, unsigned count, int timeout_ms,
	const atomic_uint *news)
{
	const struct vb_process *p = device->process;
	const int64_t until_ns = timeout_ms < 0 ? INT64_MAX : vb_clock_ns() + timeout_ms * VB_CLOCK_MS;
	const struct wanted wanted = { fds, count, news, until_ns, true };
	enum end end = GOES_ON;
	int error = 0, ready = 0;

	assert(news && lanes);
	for (unsigned i = 0; i < count; i++)
		fds[i].revents = 0;
	while (end == GOES_ON && !p->is_forked && !p->has_lost_descriptors)
		end = wait_once(p, lanes, vb_process_host_lane_count(p), &wanted, &error);
	for (unsigned i = 0; i < count; i++)
		ready += fds[i].revents != 0;
	errno = error ? error : errno;
	return error ? -1 : ready;
}

/* ---- For the port ------------------------------------------------------------------------------------------------ */

/* Until what this lane had at its port has come back. UDP's is done when it has sent: one hold, then. */
static void outwait(struct vb_host_lane *d)
{
	vb_host_lane_lock(d);
	uint32_t mark = vb_lane_mark(d->lane);
	while (!vb_lane_is_back(d->lane, mark)) {
		struct pollfd fds[VB_WAIT_FDS];
		struct sleep sleep = { .fds = fds, .room = VB_WAIT_FDS };
		add_port(&sleep, vb_state_of(d));
		vb_host_lane_unlock(d);
		vb_clock_poll(sleep.fds, sleep.count, (int)(VB_WAIT_FOR_PORT / VB_MS));
		vb_host_lane_lock(d);
		vb_host_lane_turn(d, VB_LOOKS_AT_ALL);
	}
	vb_host_lane_unlock(d);
}

void vb_device_grace(struct vb_device *device)
{
	if (device->process->is_forked)
		return;
	for (unsigned i = 0; i < vb_process_host_lane_count(device->process); i++)
		outwait(device->process->host_lanes[i]);
}
