/* The lane: its mutex, one turn of driving it, and the ways in which an application's threads drive it.
 *
 * Always holds: before the mutex is given away all events have been handed to the sinks, and a doorbell that rings
 * while somebody holds it is served by the holder, before or after the unlock: the poster's failed try and the holder's
 * look after unlocking are ordered by full fences. One hold of the mutex does a bounded amount of work. */
#include "host/worker.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "host/crowding.h"

#define TRANSMIT_ROUNDS	  4  /* batches of VB_BATCH_PACKETS in one hold of the mutex */
#define POLLS_TO_DISARM	  8  /* polls in a row after which the progress thread need not be woken for packets */
#define PACKETS_OF_NOTE	  16 /* so many take long enough to look at the clock again */
#define WAIT_WITHOUT_DRIVER_MS 10

/* ---- One turn --------------------------------------------------------------------------------------------------- */

static unsigned receive(struct vb_worker *w, vb_time now)
{
	unsigned packets = 0;

	while (vb_port_next_train(w->port, w->train)) {
		if (!w->train->count)
			continue;
		vb_lane_receive(w->lane, &w->train->path, w->train->packets, w->train->count, now);
		packets += w->train->count;
		if (w->paths)
			vb_paths_received(w->paths, w->train);
	}
	return packets;
}

static void say_trains_refused(struct vb_worker *w)
{
	int error = w->port->trains_refused;

	if (!error || w->said_trains_refused)
		return;
	w->said_trains_refused = true;
	vb_log(VB_LOG_INFO, "the kernel refuses UDP_SEGMENT on an interface (errno %d): single datagrams there", error);
}

/* What the port has become done with, now or since. */
static void finish(struct vb_worker *w, vb_time now)
{
	unsigned count;
	const struct vb_receipt *receipts = vb_port_finished(w->port, &count);

	if (count)
		vb_lane_transmit_done(w->lane, receipts, count, now);
}

static bool transmit(struct vb_worker *w, vb_time now)
{
	unsigned rounds = 0;

	for (; rounds < TRANSMIT_ROUNDS; rounds++) {
		if (!vb_lane_transmit(w->lane, w->batch, w->port->room, now))
			break;
		vb_port_send(w->port, w->batch, now);
		if (w->paths)
			vb_paths_sent(w->paths, w->batch);
		finish(w, now);
	}
	w->has_more = rounds == TRANSMIT_ROUNDS;
	if (rounds)
		say_trains_refused(w);
	bool has_frames = w->frames && vb_frames_transmit(w, now);
	return rounds > 0 || has_frames;
}

static void dispatch(struct vb_worker *w)
{
	struct vb_event event;

	while (vb_lane_next_event(w->lane, &event)) {
		struct vb_device *device = vb_worker_device_of(w, event.nic);
		if (device)
			device->sink.on_event(device->sink.user, &event);
	}
}

/* The ack of what the program said comes alone, the peer's answer right behind it: a poll takes both. */
static vb_time await_answer(struct vb_worker *w, vb_time now)
{
	while (vb_lane_awaits_answer(w->lane, now)) {
		now = vb_host_now();
		if (vb_port_receive(w->port, now) > 0)
			receive(w, now);
	}
	return now;
}

bool vb_worker_turn(struct vb_worker *w)
{
	vb_time now = vb_host_now();
	bool is_busy = vb_port_receive(w->port, now) > 0;

	w->turned_at = now;
	if (is_busy && receive(w, now) >= PACKETS_OF_NOTE)
		now = vb_host_now();
	if (is_busy && w->attendance == VB_ATTENDED_BY_POLLERS)
		now = await_answer(w, now);
	if (w->frames)
		is_busy |= vb_frames_receive(w, now);
	finish(w, now);
	vb_lane_advance(w->lane, now);
	is_busy |= transmit(w, now);
	dispatch(w);
	return is_busy;
}

void vb_worker_settle(struct vb_worker *w)
{
	vb_lane_flush_acks(w->lane);
	transmit(w, vb_host_now());
}

/* ---- The mutex -------------------------------------------------------------------------------------------------- */

void vb_worker_lock(struct vb_worker *w)
{
	if (pthread_mutex_trylock(&w->mutex) == 0)
		return;
	atomic_fetch_add_explicit(&w->waiting, 1, memory_order_relaxed);
	pthread_mutex_lock(&w->mutex);
	atomic_fetch_sub_explicit(&w->waiting, 1, memory_order_relaxed);
}

bool vb_worker_try_lock(struct vb_worker *w)
{
	return pthread_mutex_trylock(&w->mutex) == 0;
}

/* What this hold leaves undone is somebody's: pollers come again by themselves. */
static bool needs_thread(const struct vb_worker *w)
{
	return w->has_more && atomic_load_explicit(&w->attendance, memory_order_relaxed) != VB_ATTENDED_BY_POLLERS &&
		!vb_progress_is_thread();
}

void vb_worker_unlock(struct vb_worker *w)
{
	do {
		if (vb_lane_has_doorbells(w->lane) || (!w->has_more && vb_lane_wants_transmit(w->lane, w->turned_at)))
			transmit(w, vb_host_now()); /* doorbells, and what a verb has made ready under the mutex */
		dispatch(w);
		vb_progress_arm_timer(w);
		bool wakes_thread = needs_thread(w);
		pthread_mutex_unlock(&w->mutex);
		if (wakes_thread)
			vb_progress_wake(w);
		/* With the fence in vb_lane_kick: either we see the doorbell or its poster gets the mutex. */
		atomic_thread_fence(memory_order_seq_cst);
	} while (vb_lane_has_doorbells(w->lane) && vb_worker_try_lock(w));
}

int vb_lane_lock(struct vb_device *device)
{
	if (device->worker->is_forked)
		return -ENODEV;
	vb_worker_lock(device->worker);
	return 0;
}

void vb_lane_unlock(struct vb_device *device)
{
	vb_worker_unlock(device->worker);
}

struct vb_lane *vb_device_lane(struct vb_device *device)
{
	return device->worker->lane;
}

void vb_lane_settle(struct vb_device *device)
{
	vb_worker_settle(device->worker);
}

void vb_lane_grace(struct vb_device *device)
{
	if (vb_lane_lock(device) < 0)
		return;
	/* Sending is over when vb_port_send returns, so nothing is ever handed out between two holds. */
	vb_lane_unlock(device);
}

/* Somebody does something; how often exactly does not matter, so this is no atomic addition. */
static unsigned count_up(atomic_uint *counter)
{
	unsigned count = atomic_load_explicit(counter, memory_order_relaxed) + 1;

	atomic_store_explicit(counter, count, memory_order_relaxed);
	return count;
}

/* ---- Posting ---------------------------------------------------------------------------------------------------- */

void vb_lane_kick(struct vb_device *device)
{
	struct vb_worker *w = device->worker;

	if (w->is_forked)
		return;
	count_up(&w->posts);
	atomic_thread_fence(memory_order_seq_cst);
	if (vb_worker_try_lock(w))
		vb_worker_unlock(w); /* which serves the doorbell */
}

/* ---- Polling ---------------------------------------------------------------------------------------------------- */

static void give_way(struct vb_crowding *crowding, vb_time now)
{
	sched_yield();
	vb_crowding_yielded(crowding, now, vb_host_now());
}

static void rest(bool was_busy, vb_time now)
{
	static const struct timespec a_moment = { .tv_nsec = 1000 }; /* the kernel makes it some 60 us */
	struct vb_crowding *crowding = vb_crowding_of_caller();

	if (was_busy) {
		vb_crowding_is_of_use(crowding);
		return;
	}
	switch (vb_crowding_rest(crowding, now)) {
	case VB_REST_SLEEP:
		syscall(SYS_nanosleep, &a_moment, NULL); /* not cancelled: the caller may hold a lock of its own */
		vb_crowding_slept(crowding, vb_host_now());
		break;
	case VB_REST_YIELD:
		give_way(crowding, now);
		break;
	case VB_REST_NOT:
		break;
	}
}

static void note_poll(struct vb_worker *w)
{
	if (!w->has_thread || w->attendance == VB_ATTENDED_BY_WAITER)
		return;
	if (w->attendance == VB_ATTENDED_BY_POLLERS)
		vb_progress_polled(w);
	else if (vb_progress_is_poller_back(w) || ++w->polls_since_takeover >= POLLS_TO_DISARM)
		vb_progress_attend(w, VB_ATTENDED_BY_POLLERS);
}

void vb_lane_drive(struct vb_device *device)
{
	struct vb_worker *w = device->worker;
	bool is_busy = false;
	vb_time now;

	if (w->is_forked)
		return;
	if (atomic_load_explicit(&w->waiting, memory_order_relaxed) == 0 && vb_worker_try_lock(w)) {
		is_busy = vb_worker_turn(w);
		now = w->turned_at;
		note_poll(w);
		vb_worker_unlock(w);
	} else {
		now = vb_host_now();
	}
	rest(is_busy, now);
}

void vb_lane_notified(void)
{
	vb_crowding_is_of_use(vb_crowding_of_caller());
}

/* ---- Waiting ---------------------------------------------------------------------------------------------------- */

/* Not cancelled: only who sleeps is. */
static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	const struct timespec now = { 0 };

	return syscall(SYS_ppoll, &p, 1, &now, NULL, 0) > 0;
}

/* Drives until nothing happens any more or fd has become readable, which it returns. */
static bool drive_until_readable(struct vb_worker *w, int fd)
{
	bool is_busy = true;

	while (is_busy) {
		vb_worker_lock(w);
		is_busy = vb_worker_turn(w);
		vb_worker_unlock(w);
		if (is_readable(fd))
			return true;
	}
	return false;
}

/* Takes the receive socket over from the thread or the pollers; false when another waiter has it. */
static bool begin_wait(struct vb_worker *w)
{
	vb_worker_lock(w);
	bool is_driver = w->attendance != VB_ATTENDED_BY_WAITER;
	if (is_driver)
		vb_progress_attend(w, VB_ATTENDED_BY_WAITER);
	vb_worker_settle(w);
	vb_worker_unlock(w);
	return is_driver;
}

static void end_wait(void *worker)
{
	struct vb_worker *w = worker;

	vb_worker_lock(w);
	vb_progress_attend(w, VB_ATTENDED_BY_THREAD);
	vb_worker_unlock(w);
}

/* Sleeps as the driver, who without a thread looks after the timer too, which whoever posts meanwhile may set. Programs
 * cancel threads that wait for events: then the thread attends again. */
static int sleep_driving(struct vb_worker *w, struct pollfd *own)
{
	struct pollfd fds[] = { *own, { .fd = w->slot.fd, .events = POLLIN },
		{ .fd = vb_frames_fd(w), .events = POLLIN },
		{ .fd = w->has_thread ? -1 : w->timer_fd, .events = POLLIN } };
	int ready;

	pthread_cleanup_push(end_wait, w);
	ready = poll(fds, sizeof(fds) / sizeof(fds[0]), -1);
	pthread_cleanup_pop(0);
	if (ready > 0 && fds[3].revents)
		vb_progress_timer_is_up(w);
	*own = fds[0];
	return ready;
}

/* Without a thread somebody must look whether the driver has gone. */
static int sleep_beside_driver(const struct vb_worker *w, struct pollfd *own)
{
	return poll(own, 1, w->has_thread ? -1 : WAIT_WITHOUT_DRIVER_MS);
}

bool vb_lane_wait(struct vb_device *device, int fd)
{
	struct vb_worker *w = device->worker;

	while (!w->is_forked) {
		if (is_readable(fd) || drive_until_readable(w, fd))
			return true;
		bool is_driver = begin_wait(w);
		struct pollfd own = { .fd = fd, .events = POLLIN };
		int ready = is_driver ? sleep_driving(w, &own) : sleep_beside_driver(w, &own);
		int error = ready < 0 ? errno : 0;
		bool is_done = ready > 0 && own.revents;
		if (is_driver) {
			/* Still ours: what arrived is most likely what fd waits for. */
			if (ready > 0 && !is_done)
				is_done = drive_until_readable(w, fd);
			end_wait(w);
		}
		if (is_done)
			return true;
		if (error) {
			errno = error;
			return false;
		}
	}
	return false;
}
