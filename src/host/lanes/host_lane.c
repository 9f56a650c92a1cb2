/* The mutex around a lane, and the program's threads that run it without sleeping: those that post, and those that poll
 * (host_lane_wait.c has those that sleep).
 *
 * Always holds: before the mutex is given away all events have been handed to the sinks, and a doorbell that rings
 * while a thread holds it is served by that thread, before or after the unlock: the poster's failed try and the
 * holder's look after unlocking are ordered by full fences. One hold of the mutex does a bounded amount of work. */
#include "host/lanes/host_lane_state.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include "base/invariant.h"
#include "host/lanes/crowding.h"
#include "os/clock.h"
#include "os/descriptor.h"

/* ---- The mutex --------------------------------------------------------------------------------------------------- */

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

static void lock(struct vb_host_lane *d)
{
	struct vb_host_lane_state *s = vb_state_of(d);

	if (pthread_mutex_trylock(&d->mutex) == 0)
		return;
	atomic_fetch_add_explicit(&s->waiting, 1, memory_order_relaxed);
	pthread_mutex_lock(&d->mutex);
	atomic_fetch_sub_explicit(&s->waiting, 1, memory_order_relaxed);
}

int vb_host_lane_lock(struct vb_host_lane *d)
{
	if (d->process->is_forked)
		return -VB_FORKED_ERRNO;
	lock(d);
	return 0;
}

static bool try_lock(struct vb_host_lane *d)
{
	return pthread_mutex_trylock(&d->mutex) == 0;
}

/* If the owner sleeps, each local peer is to wake it from now on. False: one has something already. */
static bool doze(struct vb_host_lane_state *s)
{
	return vb_ownership_is_awake(&s->ownership) || vb_host_peers_doze(&s->host_lane, vb_host_now());
}

/* This hold leaves something undone, and the owner does not come back by itself: pollers do, and so does the progress
 * thread while it sends. */
static bool needs_thread(struct vb_host_lane_state *s)
{
	if (vb_ownership_is_left_to_pollers(&s->ownership))
		return false;
	return !doze(s) || (s->host_lane.has_more && !vb_is_progress_thread);
}

/* Local peers need no exact time, and to ask for it takes as long as to put a request into the ring. */
static vb_time about_now(struct vb_host_lane_state *s)
{
	if (vb_ownership_owner(&s->ownership) != VB_OWNER_POLLERS || s->port_quiet < VB_PORT_QUIET)
		s->turned_at = vb_host_now();
	return s->turned_at;
}

static bool is_ready(struct vb_host_lane_state *s)
{
	return vb_lane_wants_transmit(s->host_lane.lane, s->turned_at) ||
	       (vb_ownership_owner(&s->ownership) != VB_OWNER_POLLERS && vb_host_peers_are_urgent(&s->host_lane));
}

/* Pollers own the lane, which come back by themselves, and this hold leaves nothing for anybody else. */
static bool is_tidy(const struct vb_host_lane_state *s)
{
	const struct vb_host_lane *d = &s->host_lane;

	return vb_ownership_owner(&s->ownership) == VB_OWNER_POLLERS && vb_lane_is_quiet(d->lane) &&
	       d->port->fds_version == s->wakeups.watched_version && !d->unsaid && !d->process->has_lost_descriptors;
}

/* The program closed what the lane lives by: no thread turns it any more, and what is connected later fails as well.
 * Nothing is transmitted, but doorbells are answered. */
static bool give_up(struct vb_host_lane *d, struct vb_later **said)
{
	vb_lane_fail_qps(d->lane, VB_CAUSE_DESCRIPTORS_LOST, vb_host_now());
	vb_turn_transmit(d, vb_host_now());
	vb_turn_dispatch(d);
	vb_later_take(&d->unsaid, said);
	return false;
}

static bool is_lost(struct vb_host_lane *d)
{
	if (d->port->is_lost)
		vb_process_lose_descriptors(d->process);
	return d->process->has_lost_descriptors;
}

/* Doorbells are served, and what a verb has made ready under the mutex. True: the thread is to be woken. */
static bool tidy_up(struct vb_host_lane_state *s, struct vb_later **said)
{
	struct vb_host_lane *d = &s->host_lane;

	if (is_tidy(s))
		return false;
	if (is_lost(d))
		return give_up(d, said);
	vb_host_peers_take_wanted(d);
	if (vb_lane_has_doorbells(d->lane) || (!d->has_more && is_ready(s)))
		vb_turn_transmit(d, about_now(s));
	if (d->port->fds_version != s->wakeups.watched_version)
		vb_wakeups_watch_port(s);
	bool wakes_thread = needs_thread(s);
	vb_turn_dispatch(d);
	vb_wakeups_arm(s, wakes_thread);
	vb_later_take(&d->unsaid, said);
	assert(d->port->fds_version == s->wakeups.watched_version);
	assert(!wakes_thread || !vb_ownership_is_left_to_pollers(&s->ownership));
	return wakes_thread;
}

/* With the fence in vb_host_lane_kick: either we see the doorbell or its poster gets the mutex. */
void vb_host_lane_unlock(struct vb_host_lane *d)
{
	struct vb_host_lane_state *s = vb_state_of(d);
	struct vb_later *said = NULL;

	do {
		bool wakes_thread = tidy_up(s, &said);
		pthread_mutex_unlock(&d->mutex);
		if (wakes_thread)
			vb_wakeups_wake(s);
		fence_beside_mutex();
	} while (vb_lane_has_doorbells(d->lane) && try_lock(d));
	vb_later_say(said);
}

/* Bounded by the port: nothing leaves meanwhile. */
int vb_host_lane_lock_quiet(struct vb_host_lane *d)
{
	int rc = vb_host_lane_lock(d);

	while (rc == 0 && vb_lane_handed_out(d->lane))
		vb_turn_receive(d);
	return rc;
}

struct vb_lane *vb_host_lane_lane(struct vb_host_lane *d)
{
	return d->lane;
}

/* ---- Posting ----------------------------------------------------------------------------------------------------- */

/* How often exactly does not matter, so this is no atomic addition. */
static void count_up(atomic_uint *counter)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1, memory_order_relaxed);
}

/* A thread that posts does not poll in vain. */
static void note_post(struct vb_host_lane_state *s)
{
	count_up(&s->posts);
	vb_crowding_is_of_use(vb_crowding_of_caller());
}

static void transmit_posted(struct vb_host_lane *d, struct vb_local_peer *to, vb_time now)
{
	if (!to) {
		vb_turn_transmit(d, now);
		return;
	}
	vb_host_peers_transmit_to(to, now);
	d->has_more |= vb_host_peers_have_more(d);
}

/* The request may wait for the next poll. Without a progress thread it would wait for ever for one that never comes. */
static bool rides(struct vb_host_lane_state *s, const struct vb_qp *qp)
{
	return s->ownership.has_thread && vb_sq_may_wait(qp) && vb_held_posts_add(&s->held_posts, vb_host_now());
}

/* After a hold that only let a request ride: at most a doorbell that rang meanwhile is left to serve. */
static void unlock_and_hold(struct vb_host_lane *d)
{
	assert(vb_state_of(d)->held_posts.count > 0);
	pthread_mutex_unlock(&d->mutex);
	fence_beside_mutex();
	if (vb_lane_has_doorbells(d->lane) && try_lock(d))
		vb_host_lane_unlock(d);
}

/* A poster that finds the lane free needs no doorbell, and none of the fences that come with it. */
void vb_host_lane_end_post(struct vb_host_lane *d, struct vb_qp *qp)
{
	struct vb_host_lane_state *s = vb_state_of(d);

	if (d->process->is_forked || !try_lock(d)) {
		vb_sq_end(qp, true);
		vb_host_lane_kick(d);
		return;
	}
	note_post(s);
	vb_time now = about_now(s);
	struct vb_local_peer *to = vb_sq_serve(qp, now);
	if (vb_time_since(s->port_seen_at, now) < VB_PRESENT_BY_POSTS)
		vb_ownership_posted(&s->ownership, now);
	if (!to && rides(s, qp)) {
		unlock_and_hold(d);
		return;
	}
	transmit_posted(d, to, now);
	vb_host_lane_unlock(d);
}

/* The unlock serves the doorbell. */
void vb_host_lane_kick(struct vb_host_lane *d)
{
	if (d->process->is_forked)
		return;
	note_post(vb_state_of(d));
	fence_beside_mutex();
	if (try_lock(d))
		vb_host_lane_unlock(d);
}

/* ---- Polling ----------------------------------------------------------------------------------------------------- */

static void give_way(struct vb_crowding *crowding)
{
	vb_time since = vb_host_now();

	sched_yield();
	vb_crowding_yielded(crowding, since, vb_host_now());
}

void vb_host_lane_rest(bool was_busy, vb_time now)
{
	struct vb_crowding *crowding = vb_crowding_of_caller();

	if (was_busy) {
		vb_crowding_is_of_use(crowding);
		return;
	}
	switch (vb_crowding_rest(crowding, now)) {
	case VB_REST_SLEEP:
		vb_clock_sleep(VB_POLLER_SLEEP / VB_NS);
		vb_crowding_slept(crowding, vb_host_now());
		break;
	case VB_REST_YIELD:
		give_way(crowding);
		break;
	case VB_REST_NOT:
		break;
	}
}

/* The caller's poll may take the lane, or pollers own it and it is time to see how they are. */
static void judge_poll(struct vb_host_lane_state *s)
{
	struct vb_crowding *crowding = vb_crowding_of_caller();
	vb_time now = vb_host_now();
	struct vb_presence presence = vb_presence_of_caller(now);

	vb_crowding_polled(crowding, &presence);
	vb_wakeups_do(s, vb_ownership_judge(&s->ownership, vb_crowding_is_kept_away(crowding), now));
	assert(vb_ownership_owner(&s->ownership) != VB_OWNER_POLLERS || !s->ownership.misses_pollers);
}

/* It is about to look at its memory for the answer, most likely, and would be missed after VB_POLLER_LATE only. */
static void leave(struct vb_host_lane_state *s)
{
	if (vb_ownership_owner(&s->ownership) == VB_OWNER_POLLERS)
		vb_wakeups_do(s, vb_ownership_leaves(&s->ownership));
}

bool vb_host_lane_poll(struct vb_host_lane *d, vb_time *now)
{
	struct vb_host_lane_state *s = vb_state_of(d);

	if (atomic_load_explicit(&s->waiting, memory_order_relaxed) > 0 || !try_lock(d)) {
		*now = vb_host_now();
		return false;
	}
	s->awaited_in_vain = false; /* of another thread's turn */
	bool is_left = vb_ownership_is_left_to_pollers(&s->ownership);
	bool is_busy = vb_host_lane_turn(d, is_left ? VB_LOOKS_AT_PORT : VB_LOOKS_AT_ALL);
	*now = s->turned_at;
	if (vb_ownership_polled(&s->ownership, vb_turn_end(s)) == VB_POLL_JUDGED)
		judge_poll(s);
	if (s->awaited_in_vain)
		leave(s);
	vb_host_lane_unlock(d);
	return is_busy;
}

void vb_host_lane_keep_time(struct vb_host_lane *d)
{
	atomic_store_explicit(&vb_state_of(d)->keeps_time, true, memory_order_relaxed);
}

void vb_host_lane_notified(void)
{
	vb_crowding_is_of_use(vb_crowding_of_caller());
}

/* ---- Making and ending ------------------------------------------------------------------------------------------- */

int vb_host_lane_create(struct vb_process *process, struct vb_host_lane **created)
{
	struct vb_host_lane_state *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	struct vb_host_lane *d = &s->host_lane;
	d->process = process;
	d->slot.fd = -1;
	pthread_mutex_init(&d->mutex, NULL);
	d->batch = calloc(1, sizeof(*d->batch));
	d->train = calloc(1, sizeof(*d->train));
	vb_ownership_init(&s->ownership, false);
	int rc = vb_wakeups_open(s);
	if (rc == 0 && (!d->batch || !d->train))
		rc = -ENOMEM;
	if (rc < 0) {
		vb_host_lane_destroy(d);
		return rc;
	}
	assert(s->wakeups.epoll_fd >= 0 && vb_ownership_owner(&s->ownership) == VB_OWNER_NOBODY);
	*created = d;
	return 0;
}

/* A slot that was given back is an eventfd. */
static void close_slot(struct vb_host_lane *d)
{
	vb_descriptor_close(d->slot.fd, vb_descriptor_is(d->slot.fd, S_IFSOCK) ? S_IFSOCK : VB_TYPE_ANONYMOUS);
}

void vb_host_lane_destroy(struct vb_host_lane *d)
{
	vb_host_peers_close(d);
	if (d->lane)
		vb_lane_destroy(d->lane);
	vb_frames_close(d);
	if (d->port)
		vb_port_close(d->port);
	close_slot(d);
	vb_wakeups_close(vb_state_of(d));
	if (d->faults)
		vb_faults_free(d->faults);
	vb_later_say(d->unsaid);
	free(d->paths);
	vb_accounts_destroy(d->accounts);
	free(d->batch);
	free(d->train);
	pthread_mutex_destroy(&d->mutex);
	free(vb_state_of(d));
}

void vb_host_lane_forked(struct vb_host_lane *d)
{
	vb_ownership_init(&vb_state_of(d)->ownership, false);
	vb_host_peers_forked(d);
	vb_wakeups_close(vb_state_of(d));
	vb_port_abandon(d->port, true);
	vb_frames_close(d);
	close_slot(d);
	assert(!vb_state_of(d)->ownership.has_thread);
}
