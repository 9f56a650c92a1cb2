/* Which thread runs a lane: a state machine that knows no thread, no descriptor and no clock. Its holder (turn.c,
 * host_lane.c, host_lane_wait.c, progress.c) tells it what happens and when, and carries out what it answers
 * (wakeups.c).
 *
 * A lane is run by the threads that come by: a thread that polls its completion queues, a thread that sleeps until a
 * completion event comes, and, when neither does, the progress thread. One of them owns the lane at a time. Any thread
 * may run a turn under the lane's mutex; to own the lane is to be the one that comes back by itself, or sleeps where
 * what happens wakes it, so that nobody else needs to be woken.
 *
 *   NOBODY         there is no progress thread: the lane runs inside the program's calls only
 *   THREAD_ASLEEP  the progress thread sleeps on the port, on the peers' bells and on the timer
 *   THREAD_AWAKE   it runs, and looks at everything again before it sleeps: nobody needs to wake it
 *   POLLERS        threads poll: they look at port and memory; the progress thread hears bells for them
 *   WAITER_ASLEEP  a thread that waits sleeps on port and bells
 *   WAITER_AWAKE   it runs, as THREAD_AWAKE
 *   RETURNER       a waiter has left with what it waited for, to poll, to post and to wait again: as POLLERS, but the
 *                  descriptors stay as the waiter had them
 *
 * Pollers and a returner may stop without a word. So while they own the lane the timer is always set to look for them,
 * and the progress thread takes the lane when they were away for too long. It looks ever more seldom while they go on,
 * for a look may take a poller's core: a thread that stops is missed after no more time than it has polled, up to
 * VB_POLLER_LOOK_MOST. A thread that posts much between two polls is not away, for a while (VB_PRESENT_BY_POSTS).
 *
 * Pollers that share their core come late, and would come later still if the progress thread ran as well: woken for
 * each packet, it takes the core from a peer amid its sending and answers before the program does. So where pollers
 * come late again and again only because they are kept away (crowding.h), it waits for them longer, and the first poll
 * of one that is back takes the lane at once.
 *
 * Threads: all functions are called with the lane's mutex held, but for those that say so. Memory is the caller's. */
#ifndef VB_HOST_OWNERSHIP_H
#define VB_HOST_OWNERSHIP_H

#include <stdatomic.h>
#include <stdbool.h>
#include "base/time.h"
#include "host/lanes/timeouts.h"

enum vb_owner {
	VB_OWNER_NOBODY,
	VB_OWNER_THREAD_ASLEEP,
	VB_OWNER_THREAD_AWAKE,
	VB_OWNER_POLLERS,
	VB_OWNER_WAITER_ASLEEP,
	VB_OWNER_WAITER_AWAKE,
	VB_OWNER_RETURNER,
	VB_OWNERS
};

/* The reason for which the timer is set. */
enum vb_alarm {
	VB_ALARM_NONE,
	VB_ALARM_LANE, /* something of the lane is due */
	VB_ALARM_LOOK, /* the progress thread is to look for pollers or a returner */
};

/* Bits: the caller is to do this after a change (vb_wakeups_do). */
enum vb_owner_action {
	VB_DO_WATCH_PORT = 1,  /* the progress thread sleeps on the port's descriptors from now on */
	VB_DO_LEAVE_PORT = 2,  /* ... no more */
	VB_DO_HEAR_BELLS = 4,  /* ... on the local peers' bells from now on */
	VB_DO_LEAVE_BELLS = 8, /* ... no more */
	VB_DO_SET_TIMER = 16,  /* to alarm_at, or to nothing if alarm is VB_ALARM_NONE */
	VB_DO_SEND_ACKS = 32,  /* local peers that are awake are told what was not told yet */
	VB_DO_ROUSE = 64,      /* no local peer needs to ring: memory is looked at */
};

struct vb_ownership {
	_Atomic enum vb_owner owner; /* written with the mutex held */
	bool has_thread;             /* there is a progress thread */
	bool misses_pollers;         /* it took the lane from pollers, and none has polled since */
	enum vb_alarm alarm;
	vb_time alarm_at;
	unsigned polls;     /* in a row, by threads that do not own the lane */
	vb_time polled_at;  /* the owner's last poll or post, about */
	vb_time judged_at;  /* when it was last looked whether pollers are kept away from their core */
	vb_time patience;   /* how long pollers may be away */
	vb_time look_after; /* the last alarm that looks for them was so long after polled_at */
	const void *waiter; /* the waiter that owns the lane: any two differ; NULL: none does */
	unsigned beside;    /* threads that wait while another waiter owns the lane */
};

/* ---- Questions; any thread, with or without the mutex ---- */

static inline enum vb_owner vb_ownership_owner(const struct vb_ownership *o)
{
	return atomic_load_explicit(&o->owner, memory_order_relaxed);
}

/* Threads that poll, or a returner, look at what is in memory. */
static inline bool vb_ownership_is_left_to_pollers(const struct vb_ownership *o)
{
	enum vb_owner owner = vb_ownership_owner(o);

	return owner == VB_OWNER_POLLERS || owner == VB_OWNER_RETURNER;
}

static inline bool vb_ownership_is_thread(const struct vb_ownership *o)
{
	enum vb_owner owner = vb_ownership_owner(o);

	return owner == VB_OWNER_THREAD_ASLEEP || owner == VB_OWNER_THREAD_AWAKE;
}

static inline bool vb_ownership_is_waiter(const struct vb_ownership *o)
{
	enum vb_owner owner = vb_ownership_owner(o);

	return owner == VB_OWNER_WAITER_ASLEEP || owner == VB_OWNER_WAITER_AWAKE;
}

/* The owner runs, and looks at everything again before it sleeps. */
static inline bool vb_ownership_is_awake(const struct vb_ownership *o)
{
	enum vb_owner owner = vb_ownership_owner(o);

	return owner == VB_OWNER_THREAD_AWAKE || owner == VB_OWNER_WAITER_AWAKE;
}

static inline bool vb_ownership_is_owned_by(const struct vb_ownership *o, const void *waiter)
{
	return o->waiter == waiter;
}

/* The state's name, for messages of tests. */
const char *vb_owner_name(enum vb_owner owner);

/* ---- Beginning ---- */

/* Owned by the progress thread, asleep, or by nobody. The thread's descriptors are as for that state. */
void vb_ownership_init(struct vb_ownership *o, bool has_thread);

/* ---- Polls ---- */

enum vb_poll {
	VB_POLL_NOTED,
	VB_POLL_JUDGED, /* the caller finds out whether it was kept away from its core, and calls vb_ownership_judge()
			 */
};

enum vb_poll vb_ownership_polled_beside(struct vb_ownership *o, vb_time now);

/* A thread that polls has run a turn. Part of each poll, and therefore inline: one comparison where pollers own the
 * lane. */
static inline enum vb_poll vb_ownership_polled(struct vb_ownership *o, vb_time now)
{
	if (vb_ownership_owner(o) != VB_OWNER_POLLERS)
		return vb_ownership_polled_beside(o, now);
	o->polled_at = now;
	return vb_time_diff(now, o->judged_at) >= VB_PRESENCE_EVERY ? VB_POLL_JUDGED : VB_POLL_NOTED;
}

/* One that posts, and has polled not long ago, is there as well. Likewise. */
static inline void vb_ownership_posted(struct vb_ownership *o, vb_time now)
{
	if (vb_ownership_owner(o) == VB_OWNER_POLLERS)
		o->polled_at = now;
}

/* kept_away: it comes late again and again, but only because others have its core. Returns actions. */
unsigned vb_ownership_judge(struct vb_ownership *o, bool kept_away, vb_time now);

/* Pollers own the lane, and the caller leaves: the progress thread has it at once. Returns actions. */
unsigned vb_ownership_leaves(struct vb_ownership *o);

/* A returner has run a turn. */
void vb_ownership_returned(struct vb_ownership *o, vb_time now);

/* ---- Threads that wait ---- */

/* A thread begins to wait, or goes on waiting, under a name that no other waiter of the lane has. Afterwards either it
 * owns the lane, or it waits beside the one that does. Returns actions. */
unsigned vb_ownership_wait(struct vb_ownership *o, const void *waiter);
/* Without effect unless it is the owner: it runs; it sleeps. */
void vb_ownership_waiter_turn(struct vb_ownership *o, const void *waiter);
void vb_ownership_waiter_sleeps(struct vb_ownership *o, const void *waiter);
/* It leaves with what it waited for: if nobody waits beside it, it is expected to poll and to come again. Without
 * effect unless it is the owner. Returns actions. */
unsigned vb_ownership_leave(struct vb_ownership *o, const void *waiter, vb_time now);
/* It leaves without. Likewise. */
unsigned vb_ownership_end_wait(struct vb_ownership *o, const void *waiter);
void vb_ownership_end_wait_beside(struct vb_ownership *o);

/* ---- The progress thread ---- */

/* It has run a turn, and looks again before it sleeps; it goes to sleep. Without effect unless it owns the lane. */
void vb_ownership_thread_turn(struct vb_ownership *o);
void vb_ownership_thread_sleeps(struct vb_ownership *o);

/* The answer to its timer. */
struct vb_look {
	unsigned actions;
	bool must_drive; /* it is to run a turn */
	bool has_looked; /* pollers are there still, and were looked for */
};

/* The timer has come up, for whatever it was set to.
 * is_quiet: the port had nothing for long. had_held_posts: posts have waited for a poll since the last look. */
struct vb_look vb_ownership_timer_is_up(struct vb_ownership *o, bool is_quiet, bool had_held_posts, vb_time now);

/* ---- The lane's deadlines ---- */

/* The mutex is about to be given away, with next due next, to an owner that sleeps. Returns actions. */
unsigned vb_ownership_arm(struct vb_ownership *o, struct vb_deadline next);
/* The same where something is left to do at once, and a waiter is to be woken by the timer: there is no thread. */
unsigned vb_ownership_arm_at_once(struct vb_ownership *o, vb_time now);
/* A turn that began at now has served what was due by then. */
static inline void vb_ownership_served(struct vb_ownership *o, vb_time now)
{
	if (o->alarm == VB_ALARM_LANE && vb_time_is_due(o->alarm_at, now))
		o->alarm = VB_ALARM_NONE;
}
/* Somebody sleeps on the timer, and would be late for the lane's deadlines if it were not set to them. */
bool vb_ownership_needs_timer(const struct vb_ownership *o);

/* ---- The port ---- */

/* Its descriptors have become others, on which the owner does not sleep: the progress thread owns the lane from now on.
 * Returns actions, for the old descriptors. */
unsigned vb_ownership_port_changed(struct vb_ownership *o);

/* ---- Lingering ---- */

/* How long the thread stays awake for local peers after its work is done, when it had slept so long until one woke it:
 * to be woken costs the peer a system call, and takes long. */
vb_time vb_ownership_linger(vb_time linger, vb_time slept);

#endif
