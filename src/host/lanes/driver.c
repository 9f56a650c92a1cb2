/* A driver: its mutex, one turn of driving its lane, and how an application's threads drive it who do not sleep
 * meanwhile (driver_wait.c has those who do).
 *
 * Always holds: before the mutex is given away all events have been handed to the sinks, and a doorbell that rings
 * while somebody holds it is served by the holder, before or after the unlock: the poster's failed try and the holder's
 * look after unlocking are ordered by full fences. One hold of the mutex does a bounded amount of work. */
#include "host/process.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "host/lanes/crowding.h"
#include "os/clock.h"
#include "os/descriptor.h"

#define TRANSMIT_ROUNDS 4             /* batches of VB_BATCH_PACKETS in one hold of the mutex */
#define POLLS_TO_DISARM 8             /* polls in a row after which the progress thread need not be woken for packets */
#define PACKETS_OF_NOTE 16            /* so many take long enough to look at the clock again */
#define PORT_EVERY      (10 * VB_US)  /* by time, for who shares his core has few turns */
#define PORT_SELDOM     (100 * VB_US) /* who is about to sleep on it */
#define CLOCK_RARELY    4
#define A_MOMENT_NS     1000 /* the kernel makes it some 60 us */

/* ---- One turn --------------------------------------------------------------------------------------------------- */

static unsigned receive(struct vb_driver *d, vb_time now)
{
	unsigned packets = 0;

	while (vb_port_next_train(d->port, d->train)) {
		if (!d->train->count)
			continue;
		vb_lane_receive(d->lane, &d->train->path, d->train->packets, d->train->count, now);
		packets += d->train->count;
		if (d->paths)
			vb_paths_received(d->paths, d->train);
	}
	return packets;
}

static void say_trains_refused(struct vb_driver *d)
{
	int error = d->port->trains_refused;

	if (!error || d->said_trains_refused)
		return;
	d->said_trains_refused = true;
	vb_log(VB_LOG_INFO, "the kernel refuses UDP_SEGMENT on an interface (errno %d): single datagrams there", error);
}

/* What the port has become done with, now or since. */
static void finish(struct vb_driver *d, vb_time now)
{
	unsigned count;
	const struct vb_receipt *receipts = vb_port_finished(d->port, &count);

	if (count)
		vb_lane_transmit_done(d->lane, receipts, count, now);
}

static bool transmit(struct vb_driver *d, vb_time now)
{
	unsigned rounds = 0;

	vb_neighbours_take_wishes(d);
	bool has_neighbours = vb_neighbours_transmit(d, now);
	d->has_more = vb_neighbours_have_more(d);
	if (!d->frames && !vb_lane_wants_transmit(d->lane, now))
		return has_neighbours;
	now = vb_host_now();
	vb_riders_leave(&d->riders, !vb_progress_is_thread(), now);
	for (; rounds < TRANSMIT_ROUNDS; rounds++) {
		if (!vb_lane_transmit(d->lane, d->batch, d->port->room, now))
			break;
		vb_port_send(d->port, d->batch, now);
		if (d->paths)
			vb_paths_sent(d->paths, d->batch);
		finish(d, now);
	}
	vb_neighbours_take_wishes(d);
	d->has_more |= rounds == TRANSMIT_ROUNDS;
	if (rounds)
		say_trains_refused(d);
	bool has_frames = d->frames && vb_frames_transmit(d, now);
	return rounds > 0 || has_neighbours || has_frames;
}

static void dispatch(struct vb_driver *d)
{
	struct vb_event event;

	while (vb_lane_next_event(d->lane, &event)) {
		struct vb_device *device = vb_process_device_of(d->process, event.nic);
		if (!device)
			continue;
		if (event.kind == VB_EVENT_QP_DIED)
			vb_driver_explain_death(d, &device->info, event.qp);
		else if (event.kind == VB_EVENT_QP_SILENT)
			vb_driver_ask_after(d, event.qp);
		else
			device->sink.on_event(&event);
	}
}

/* The ack of what the program said comes alone, the peer's answer right behind it: a poll takes both. */
static vb_time await_answer(struct vb_driver *d, vb_time now)
{
	while (vb_lane_awaits_answer(d->lane, now)) {
		now = vb_host_now();
		if (vb_port_receive(d->port, now) > 0)
			receive(d, now);
	}
	return now;
}

/* Pollers who have neighbours, and to whom nothing has come by the port for a while: a look at it is a system call,
 * which costs more than all that there is between neighbours. */
static bool is_among_neighbours(struct vb_driver *d)
{
	if (!vb_progress_is_left_to_pollers(d) || !vb_neighbours_are_awake(d))
		return false;
	vb_time every = d->attendance == VB_ATTENDED_BY_POLLERS ? PORT_EVERY : PORT_SELDOM;
	d->port_quiet++;
	return d->port_quiet >= VB_PORT_QUIET && vb_time_since(d->port_seen_at, d->turned_at) < every;
}

static bool receive_packets(struct vb_driver *d, vb_time *now)
{
	d->port_seen_at = *now;
	d->port_has_more = vb_port_receive(d->port, *now) > 0;
	if (!d->port_has_more)
		return false;
	d->port_quiet = 0;
	if (receive(d, *now) >= PACKETS_OF_NOTE)
		*now = vb_host_now();
	if (d->attendance == VB_ATTENDED_BY_POLLERS)
		*now = await_answer(d, *now);
	return true;
}

static bool exchange(struct vb_driver *d, vb_time now)
{
	bool is_busy = vb_neighbours_receive(d, now);
	is_busy |= vb_neighbours_transmit(d, now);
	return is_busy;
}

bool vb_driver_turn_to_neighbours(struct vb_driver *d)
{
	d->turned_at = vb_host_now();
	return exchange(d, d->turned_at);
}

/* Nothing that may be in vain, and the clock now and then, unless somebody reads when things completed: to look at it
 * takes as long as to execute a request. */
static bool turn_among_neighbours(struct vb_driver *d)
{
	if (d->port_quiet % CLOCK_RARELY == 0)
		return vb_driver_turn_to_neighbours(d);
	if (!vb_neighbours_have_news(d))
		return false;
	if (atomic_load_explicit(&d->keeps_time, memory_order_relaxed))
		d->turned_at = vb_host_now();
	return exchange(d, d->turned_at);
}

static bool look_at_port(struct vb_driver *d, vb_time *now)
{
	bool is_busy = receive_packets(d, now);

	if (d->frames)
		is_busy |= vb_frames_receive(d, *now);
	return is_busy;
}

unsigned vb_driver_looks_next(const struct vb_driver *d, bool sleeps)
{
	bool is_time = !sleeps && vb_time_since(d->port_seen_at, vb_host_now()) >= PORT_SELDOM;

	return d->port_has_more || is_time ? VB_LOOKS_AT_PORT : 0;
}

bool vb_driver_turn(struct vb_driver *d, unsigned looks)
{
	if (is_among_neighbours(d))
		return turn_among_neighbours(d);
	vb_time now = vb_host_now();
	d->turned_at = now;
	if (looks & VB_PORT_IS_QUIET)
		d->port_seen_at = now;
	if (vb_deadline_due(vb_port_next_deadline(d->port), now)) /* of which its descriptors know nothing */
		looks |= VB_LOOKS_AT_PORT;
	if (looks & VB_LOOKS_AT_BELLS)
		vb_neighbours_hear(d);
	vb_neighbours_be_patient(d, now);
	bool is_busy = vb_neighbours_receive(d, now);
	if (looks & VB_LOOKS_AT_PORT)
		is_busy |= look_at_port(d, &now);
	finish(d, now);
	vb_lane_advance(d->lane, now);
	is_busy |= transmit(d, now);
	vb_progress_timer_served(d, d->turned_at);
	dispatch(d);
	return is_busy;
}

void vb_driver_settle(struct vb_driver *d)
{
	vb_time now = vb_host_now();

	vb_lane_flush_acks(d->lane);
	vb_neighbours_settle(d, now);
	transmit(d, now);
}

void vb_driver_catch_up(struct vb_driver *d, uint32_t qpn)
{
	vb_neighbours_catch_up(d, (uint8_t)(qpn >> 16), vb_host_now());
}

/* ---- The mutex -------------------------------------------------------------------------------------------------- */

/* Between a store and a load, one side of which is a mutex taken or given away: on x86 that is a locked instruction,
 * and as good as the fence. */
static void fence_beside_mutex(void)
{
#if defined(__x86_64__)
	atomic_signal_fence(memory_order_seq_cst);
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

static void lock(struct vb_driver *d)
{
	if (pthread_mutex_trylock(&d->mutex) == 0)
		return;
	atomic_fetch_add_explicit(&d->waiting, 1, memory_order_relaxed);
	pthread_mutex_lock(&d->mutex);
	atomic_fetch_sub_explicit(&d->waiting, 1, memory_order_relaxed);
}

int vb_driver_lock(struct vb_driver *d)
{
	if (d->process->is_forked)
		return -ENODEV;
	lock(d);
	return 0;
}

static bool try_lock(struct vb_driver *d)
{
	return pthread_mutex_trylock(&d->mutex) == 0;
}

/* Nobody is awake who would look at the neighbours again: each is to wake us from now on. False: one has something. */
static bool doze(struct vb_driver *d)
{
	return d->is_awake || vb_neighbours_doze(d, vb_host_now());
}

/* What this hold leaves undone is somebody's: pollers come again by themselves, and so does the thread while it
 * sends. */
static bool needs_thread(struct vb_driver *d)
{
	if (vb_progress_is_left_to_pollers(d))
		return false;
	return !doze(d) || (d->has_more && !vb_progress_is_thread());
}

/* Neighbours need no exact time, and to ask for it takes as long as to put a request into the ring. */
static vb_time about_now(struct vb_driver *d)
{
	if (d->attendance != VB_ATTENDED_BY_POLLERS || d->port_quiet < VB_PORT_QUIET)
		d->turned_at = vb_host_now();
	return d->turned_at;
}

static bool is_ready(const struct vb_driver *d)
{
	return vb_lane_wants_transmit(d->lane, d->turned_at) ||
	       (d->attendance != VB_ATTENDED_BY_POLLERS && vb_neighbours_are_urgent(d));
}

/* Pollers attend, who come again by themselves, and nobody else has anything of this hold. */
static bool is_tidy(const struct vb_driver *d)
{
	return atomic_load_explicit(&d->attendance, memory_order_relaxed) == VB_ATTENDED_BY_POLLERS &&
	       vb_lane_is_quiet(d->lane) && d->port->fds_version == d->watched_version && !d->unsaid &&
	       !d->process->has_lost_descriptors;
}

/* The program closed what the lane lives by: nobody drives it any more, and what is connected later fails as well. */
static bool give_up(struct vb_driver *d, struct vb_later **said)
{
	vb_lane_fail_qps(d->lane, VB_CAUSE_DESCRIPTORS_LOST, vb_host_now());
	transmit(d, vb_host_now()); /* nothing, but doorbells are answered */
	dispatch(d);
	vb_later_take(&d->unsaid, said);
	return false;
}

static bool is_lost(struct vb_driver *d)
{
	if (d->port->is_lost)
		vb_process_lose_descriptors(d->process);
	return d->process->has_lost_descriptors;
}

/* True: the thread is to be woken. */
static bool tidy_up(struct vb_driver *d, struct vb_later **said)
{
	if (is_tidy(d))
		return false;
	if (is_lost(d))
		return give_up(d, said);
	vb_neighbours_take_wishes(d);
	if (vb_lane_has_doorbells(d->lane) || (!d->has_more && is_ready(d)))
		transmit(d, about_now(d)); /* doorbells, and what a verb has made ready under the mutex */
	if (d->port->fds_version != d->watched_version)
		vb_progress_watch_port(d);
	bool wakes_thread = needs_thread(d);
	dispatch(d);
	vb_progress_arm_timer(d, wakes_thread);
	vb_later_take(&d->unsaid, said);
	return wakes_thread;
}

void vb_driver_unlock(struct vb_driver *d)
{
	struct vb_later *said = NULL;

	do {
		bool wakes_thread = tidy_up(d, &said);
		pthread_mutex_unlock(&d->mutex);
		if (wakes_thread)
			vb_progress_wake(d);
		/* With the fence in vb_driver_kick: either we see the doorbell or its poster gets the mutex. */
		fence_beside_mutex();
	} while (vb_lane_has_doorbells(d->lane) && try_lock(d));
	vb_later_say(said);
}

/* Bounded by the port: nothing leaves meanwhile. */
int vb_driver_lock_quiet(struct vb_driver *d)
{
	int rc = vb_driver_lock(d);

	while (rc == 0 && vb_lane_handed_out(d->lane)) {
		vb_time now = vb_host_now();
		vb_port_receive(d->port, now);
		receive(d, now);
		finish(d, now);
	}
	return rc;
}

struct vb_lane *vb_driver_lane(struct vb_driver *d)
{
	return d->lane;
}

/* Somebody does something; how often exactly does not matter, so this is no atomic addition. */
static unsigned count_up(atomic_uint *counter)
{
	unsigned count = atomic_load_explicit(counter, memory_order_relaxed) + 1;

	atomic_store_explicit(counter, count, memory_order_relaxed);
	return count;
}

/* ---- Posting ---------------------------------------------------------------------------------------------------- */

/* Whoever posts polls for something. */
static void note_post(struct vb_driver *d)
{
	count_up(&d->posts);
	vb_crowding_is_of_use(vb_crowding_of_caller());
}

static void transmit_posted(struct vb_driver *d, struct vb_neighbour *to, vb_time now)
{
	if (!to) {
		transmit(d, now);
		return;
	}
	vb_neighbours_transmit_to(to, now);
	d->has_more |= vb_neighbours_have_more(d);
}

/* It may wait for the next poll: without a thread nobody would drive who does not come. */
static bool rides(struct vb_driver *d, const struct vb_qp *qp)
{
	return d->has_thread && vb_sq_may_wait(qp) && vb_riders_board(&d->riders, vb_host_now());
}

/* Nothing else was done, and so nothing is left to be done but for who rang meanwhile. */
static void unlock_behind_rider(struct vb_driver *d)
{
	pthread_mutex_unlock(&d->mutex);
	fence_beside_mutex();
	if (vb_lane_has_doorbells(d->lane) && try_lock(d))
		vb_driver_unlock(d);
}

/* Whoever finds the lane free needs no bell, and the fences that come with it. */
void vb_driver_end_post(struct vb_driver *d, struct vb_qp *qp)
{
	if (d->process->is_forked || !try_lock(d)) {
		vb_sq_end(qp, true);
		vb_driver_kick(d);
		return;
	}
	note_post(d);
	vb_time now = about_now(d);
	struct vb_neighbour *to = vb_sq_serve(qp, now);
	if (!to && rides(d, qp)) {
		unlock_behind_rider(d);
		return;
	}
	transmit_posted(d, to, now);
	vb_driver_unlock(d);
}

void vb_driver_kick(struct vb_driver *d)
{
	if (d->process->is_forked)
		return;
	note_post(d);
	fence_beside_mutex();
	if (try_lock(d))
		vb_driver_unlock(d); /* which serves the doorbell */
}

/* ---- Polling ---------------------------------------------------------------------------------------------------- */

static void give_way(struct vb_crowding *crowding, vb_time now)
{
	sched_yield();
	vb_crowding_yielded(crowding, now, vb_host_now());
}

void vb_driver_rest(bool was_busy, vb_time now)
{
	struct vb_crowding *crowding = vb_crowding_of_caller();

	if (was_busy) {
		vb_crowding_is_of_use(crowding);
		return;
	}
	switch (vb_crowding_rest(crowding, now)) {
	case VB_REST_SLEEP:
		vb_clock_sleep(A_MOMENT_NS);
		vb_crowding_slept(crowding, vb_host_now());
		break;
	case VB_REST_YIELD:
		give_way(crowding, now);
		break;
	case VB_REST_NOT:
		break;
	}
}

static void note_poll(struct vb_driver *d)
{
	if (!d->has_thread || d->attendance == VB_ATTENDED_BY_WAITER)
		return;
	if (vb_progress_is_left_to_pollers(d))
		vb_progress_polled(d);
	if (d->attendance == VB_ATTENDED_BY_POLLERS)
		return;
	if (vb_progress_is_poller_back(d) || ++d->polls_since_takeover >= POLLS_TO_DISARM)
		vb_progress_attend(d, VB_ATTENDED_BY_POLLERS);
}

bool vb_driver_poll(struct vb_driver *d, vb_time *now)
{
	if (atomic_load_explicit(&d->waiting, memory_order_relaxed) > 0 || !try_lock(d)) {
		*now = vb_host_now();
		return false;
	}
	bool is_busy = vb_driver_turn(d, vb_progress_is_left_to_pollers(d) ? VB_LOOKS_AT_PORT : VB_LOOKS_AT_ALL);
	*now = d->turned_at;
	note_poll(d);
	vb_driver_unlock(d);
	return is_busy;
}

void vb_driver_keep_time(struct vb_driver *d)
{
	atomic_store_explicit(&d->keeps_time, true, memory_order_relaxed);
}

void vb_driver_notified(void)
{
	vb_crowding_is_of_use(vb_crowding_of_caller());
}

/* ---- Being there ------------------------------------------------------------------------------------------------ */

int vb_driver_create(struct vb_process *process, struct vb_driver **created)
{
	struct vb_driver *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->process = process;
	d->slot.fd = -1;
	pthread_mutex_init(&d->mutex, NULL);
	d->batch = calloc(1, sizeof(*d->batch));
	d->train = calloc(1, sizeof(*d->train));
	int rc = vb_progress_open(d);
	if (rc == 0 && (!d->batch || !d->train))
		rc = -ENOMEM;
	if (rc < 0) {
		vb_driver_destroy(d);
		return rc;
	}
	*created = d;
	return 0;
}

/* One that was given back is an eventfd. */
static void close_slot(struct vb_driver *d)
{
	vb_descriptor_close(d->slot.fd, vb_descriptor_is(d->slot.fd, S_IFSOCK) ? S_IFSOCK : VB_TYPE_ANONYMOUS);
}

void vb_driver_destroy(struct vb_driver *d)
{
	vb_neighbours_close(d);
	if (d->lane)
		vb_lane_destroy(d->lane);
	vb_frames_close(d);
	if (d->port)
		vb_port_close(d->port);
	close_slot(d);
	vb_progress_close(d);
	if (d->faults)
		vb_faults_free(d->faults);
	vb_later_say(d->unsaid);
	free(d->paths);
	vb_accounts_destroy(d->accounts);
	free(d->batch);
	free(d->train);
	pthread_mutex_destroy(&d->mutex);
	free(d);
}

void vb_driver_forked(struct vb_driver *d)
{
	d->has_thread = false;
	vb_neighbours_forked(d);
	vb_progress_close(d);
	vb_port_abandon(d->port, true);
	vb_frames_close(d);
	close_slot(d);
}
