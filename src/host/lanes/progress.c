/* The progress thread: keeps a host lane's lane going while the application's threads do something else.
 *
 * It sleeps on the descriptors of wakeups.c, and on these alone: an idle process is woken by nothing else. Whether the
 * lane is its to run when it wakes is ownership.c's to say. For the broker it never waits: that has a thread of its own
 * (client/broker.c). */
#include "host/lanes/host_lane_state.h"

#include <sched.h>
#include "base/invariant.h"
#include "base/lock.h"
#include "host/peers/host_peers.h"
#include "os/descriptor.h"
#include "os/thread.h"

#define TURNS_AT_A_TIME 64 /* between two looks at what else there is to do */
#define PAUSES          4  /* of a spin, before it is looked again */
#define NAME            "verbena"

/* ---- Lingering ---------------------------------------------------------------------------------------------------
 * To be woken costs the local peer that does it a system call, and takes long. So a thread that was woken again and
 * again soon after it had gone to sleep stays awake for a moment longer, unless another thread wants the core. */

/* False: the core is another thread's, and there is no more lingering. */
static bool gives_way_for_nothing(struct vb_host_lane_state *s)
{
	vb_time before = vb_host_now();

	sched_yield();
	if (vb_time_since(before, vb_host_now()) < VB_LINGER_YIELD_TAKEN)
		return true;
	s->linger = 0;
	return false;
}

static bool turn_to_local_peers(struct vb_host_lane_state *s)
{
	struct vb_host_lane *d = &s->host_lane;

	vb_host_lane_lock(d);
	bool is_ours = vb_ownership_is_thread(&s->ownership) && vb_host_peers_are_awake(d);
	bool is_busy = is_ours && vb_host_lane_turn_to_local_peers(d);
	if (is_ours)
		vb_ownership_thread_turn(&s->ownership);
	vb_host_lane_unlock(d);
	return is_busy;
}

/* Gives way before it begins to wait, for what has come may have woken the program, and now and then.
 * True: the local peers are not to be left yet, but other things are to be looked at. */
static bool keep_company(struct vb_host_lane_state *s)
{
	vb_time begin = vb_host_now(), since = begin, now = begin, gives_way_at = begin;

	assert(s->linger <= VB_LINGER_MOST);
	while (vb_time_since(since, now) < s->linger) {
		if (vb_time_since(begin, now) >= VB_LINGER_IN_A_ROW)
			return true;
		if (turn_to_local_peers(s)) {
			since = gives_way_at = now = vb_host_now();
			continue;
		}
		if (vb_time_is_due(gives_way_at, now)) {
			if (!gives_way_for_nothing(s))
				return false;
			gives_way_at = vb_time_add(now, VB_LINGER_YIELD_EVERY);
		}
		for (unsigned i = 0; i < PAUSES; i++)
			vb_lock_pause();
		now = vb_host_now();
	}
	return false;
}

/* ---- Driving ----------------------------------------------------------------------------------------------------- */

static bool turn(struct vb_host_lane_state *s, unsigned *looks, bool is_answering)
{
	struct vb_host_lane *d = &s->host_lane;

	vb_host_lane_lock(d);
	bool is_busy = vb_host_lane_turn(d, *looks);
	*looks = vb_host_lane_looks_next(d, false);
	if (!is_answering)
		vb_host_peers_settle(d, s->turned_at);
	vb_ownership_thread_turn(&s->ownership);
	assert(vb_ownership_owner(&s->ownership) != VB_OWNER_THREAD_ASLEEP);
	vb_host_lane_unlock(d);
	return is_busy;
}

/* When the thread goes to sleep, no thread looks at the local peers: it owns the lane, or a waiter does that sleeps. */
static bool is_last_awake(const struct vb_ownership *o)
{
	return vb_ownership_is_thread(o) || vb_ownership_owner(o) == VB_OWNER_WAITER_ASLEEP;
}

/* False: something has come meanwhile. */
static bool go_to_sleep(struct vb_host_lane_state *s, bool is_answering)
{
	struct vb_host_lane *d = &s->host_lane;
	bool is_quiet = true;

	vb_host_lane_lock(d);
	if (!is_answering)
		vb_host_lane_settle(d);
	if (is_last_awake(&s->ownership))
		is_quiet = vb_host_peers_doze(d, vb_host_now());
	if (is_quiet)
		vb_ownership_thread_sleeps(&s->ownership);
	else
		vb_ownership_thread_turn(&s->ownership);
	assert(!vb_ownership_is_thread(&s->ownership) || vb_ownership_is_awake(&s->ownership) == !is_quiet);
	vb_host_lane_unlock(d);
	return is_quiet;
}

/* Drives until there is nothing to do, giving the mutex away between turns. False: there was still something.
 * A program that has posted since the last time, though it does not poll now, is most likely looking at its memory and
 * about to answer what just arrived there. Then acks are held back for their time: one that overtook the answer would
 * send the peer's program out of its poll just before the answer comes. */
static bool drive(struct vb_host_lane_state *s, unsigned looks)
{
	unsigned posts = atomic_load_explicit(&s->posts, memory_order_relaxed);
	bool is_busy = true, is_answering = posts != s->posts_seen;

	s->posts_seen = posts;
	for (int turns = 0; is_busy && turns < TURNS_AT_A_TIME; turns++) {
		is_busy = turn(s, &looks, is_answering);
		if (keep_company(s))
			return false;
		if (!is_busy)
			is_busy = !go_to_sleep(s, is_answering);
	}
	return !is_busy;
}

/* ---- What woke it ------------------------------------------------------------------------------------------------ */

/* The timer has come up. True: a turn is to be run. */
static bool hear_timer(struct vb_host_lane_state *s)
{
	vb_host_lane_lock(&s->host_lane);
	const bool is_quiet = s->port_quiet >= VB_PORT_QUIET;
	struct vb_look look =
		vb_ownership_timer_is_up(&s->ownership, is_quiet, s->held_posts.were_there, vb_host_now());
	vb_wakeups_do(s, look.actions);
	if (look.has_looked)
		s->held_posts.were_there = false;
	assert(!look.must_drive || !vb_ownership_is_left_to_pollers(&s->ownership));
	vb_host_lane_unlock(&s->host_lane);
	return look.must_drive;
}

/* Pollers see what is in memory, but not what comes by sockets. False: they do not own the lane any more, and its owner
 * may sleep, whose bell this was. */
static bool hear_for_pollers(struct vb_host_lane_state *s)
{
	vb_host_lane_lock(&s->host_lane);
	vb_host_peers_hear(&s->host_lane);
	bool are_there = vb_ownership_is_left_to_pollers(&s->ownership);
	vb_host_lane_unlock(&s->host_lane);
	return are_there;
}

static void do_chores(struct vb_host_lane_state *s, unsigned chores)
{
	for (; chores; chores &= chores - 1) {
		const struct vb_chore *chore = &s->wakeups.chores[__builtin_ctz(chores)];
		if (chore->run)
			chore->run(chore->user);
	}
}

/* True: a turn is to be run. False: *is_done says whether the thread may sleep. */
static bool is_to_drive(struct vb_host_lane_state *s, const struct vb_woken *woken, bool *is_done)
{
	if (woken->by_timer && hear_timer(s))
		return true;
	if (vb_ownership_is_left_to_pollers(&s->ownership)) {
		*is_done = !woken->by_bell || hear_for_pollers(s);
		return !*is_done;
	}
	return !woken->by_timer || woken->count != 1;
}

static void *run(void *argument)
{
	struct vb_host_lane_state *s = argument;
	bool is_done = true;
	int state;

	assert(s->ownership.has_thread && !vb_is_progress_thread);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	vb_is_progress_thread = true;
	pthread_setname_np(pthread_self(), NAME);
	for (;;) {
		vb_time since = vb_host_now();
		struct vb_woken woken = vb_wakeups_sleep(s, is_done ? -1 : 0);
		if (woken.is_to_stop)
			return NULL;
		if (woken.by_bell)
			s->linger = vb_ownership_linger(s->linger, vb_time_since(since, vb_host_now()));
		do_chores(s, woken.chores);
		if (is_to_drive(s, &woken, &is_done))
			is_done = drive(s, woken.looks);
	}
}

/* ---- Start and stop ---------------------------------------------------------------------------------------------- */

int vb_progress_start(struct vb_host_lane *d, bool has_thread)
{
	struct vb_host_lane_state *s = vb_state_of(d);

	assert(vb_ownership_owner(&s->ownership) == VB_OWNER_NOBODY);
	vb_wakeups_watch_port(s);
	vb_wakeups_watch_bells(s);
	vb_ownership_init(&s->ownership, has_thread);
	if (!has_thread)
		return 0;
	int rc = vb_thread_start(&s->thread, run, s);
	if (rc != 0)
		vb_ownership_init(&s->ownership, false);
	return rc;
}

bool vb_progress_has_thread(const struct vb_host_lane *d)
{
	return vb_state_of_const(d)->ownership.has_thread;
}

void vb_progress_cancel(struct vb_host_lane *d)
{
	if (vb_state_of(d)->ownership.has_thread)
		pthread_cancel(vb_state_of(d)->thread);
}

void vb_progress_stop(struct vb_host_lane *d)
{
	struct vb_host_lane_state *s = vb_state_of(d);

	if (!vb_eventfd_ring(s->wakeups.stop_fd, 1))
		vb_progress_cancel(d);
	if (s->ownership.has_thread)
		pthread_join(s->thread, NULL);
}

void vb_progress_forget(struct vb_host_lane *d)
{
	vb_wakeups_forget(vb_state_of(d));
}
