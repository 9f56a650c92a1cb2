/* The part of a host lane that only the files of lanes/ see: who owns its lane, what the last turns saw, and the
 * descriptors by which its progress thread is woken.
 *
 *   timeouts.h     all times by which a lane changes hands
 *   ownership.c    which thread runs the lane: a table, and nothing of the system
 *   wakeups.c      carries out what it decides: epoll set, timer, eventfds
 *   turn.c         one turn: receive, time, transmit, tell
 *   host_lane.c       the mutex around turns; threads that post and poll
 *   host_lane_wait.c  threads that wait asleep
 *   progress.c     the progress thread
 *   lanes.c        which thread of the program has which lane
 *   crowding.c     whether a thread that polls shares its core
 *   held_posts.c       posts that wait for the next poll
 *
 * Calls go down this list's first half only: progress, driver_wait, host lane, turn, wakeups, ownership. */
#ifndef VB_HOST_HOST_LANE_STATE_H
#define VB_HOST_HOST_LANE_STATE_H

#include "host/lanes/ownership.h"
#include "host/lanes/held_posts.h"
#include "host/process.h"

#define VB_CHORES     4
#define VB_PORT_QUIET 64 /* looks in a row that found nothing: from then on nothing is expected of the port */

/* The descriptors are -1 once the program has closed them, which another thread may notice first: lost.c. */
struct vb_wakeups {
	atomic_int epoll_fd;      /* what the progress thread sleeps on */
	atomic_int timer_fd;      /* set as the ownership's alarm says */
	atomic_int wake_fd;       /* eventfd: the progress thread is to look */
	atomic_int stop_fd;       /* eventfd: readable for good when the host lane stops */
	int watched[VB_PORT_FDS]; /* the port's descriptors, as the epoll set has them */
	unsigned watched_count, watched_version;
	struct vb_chore chores[VB_CHORES];
	unsigned chore_count;
};

struct vb_host_lane_state {
	struct vb_host_lane host_lane; /* what the other rooms see; first of all */
	struct vb_ownership ownership;
	atomic_uint waiting;    /* threads that block for the mutex: pollers let them go first */
	atomic_bool keeps_time; /* completions tell when they were */
	bool port_has_more;     /* the last look at it has found something */
	bool said_trains_refused;
	unsigned port_quiet;  /* looks at the port by pollers that found nothing, in a row: see VB_PORT_QUIET */
	vb_time turned_at;    /* when the last turn began, but for those among local peers: about */
	bool awaited_in_vain; /* the newest poll, for an answer that did not come in time */
	vb_time worked_until; /* when the port had taken what was sent last, or what came had been received, if much did
			       */
	vb_time port_seen_at; /* when the last one did that has looked at the port */
	struct vb_held_posts held_posts; /* what was posted and waits for the next poll */
	atomic_uint posts;               /* counts up whenever something is posted */
	unsigned posts_seen;             /* by the progress thread */
	vb_time linger;                  /* how long that stays awake for local peers' news before it sleeps */
	pthread_t thread;
	struct vb_wakeups wakeups;
};

/* Every host lane is part of a state: vb_host_lane_create(). */
static inline struct vb_host_lane_state *vb_state_of(struct vb_host_lane *host_lane)
{
	return (struct vb_host_lane_state *)host_lane;
}

static inline const struct vb_host_lane_state *vb_state_of_const(const struct vb_host_lane *host_lane)
{
	return (const struct vb_host_lane_state *)host_lane;
}

/* A turn that sends or receives a train or more takes longer than a thread that polls is away. */
static inline vb_time vb_turn_end(const struct vb_host_lane_state *s)
{
	const vb_time took = vb_time_diff(s->worked_until, s->turned_at);

	return took > 0 && took < VB_S ? s->worked_until : s->turned_at; /* or it is very old */
}

/* The caller is a progress thread, of whichever host lane. Set by progress.c. */
extern _Thread_local bool vb_is_progress_thread __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* ---- turn.c: with the mutex held --------------------------------------------------------------------------------- */

/* A turn looks at these beside memory, each by a system call. A thread that has slept on all of it knows where there is
 * nothing. Bits. */
enum vb_looks {
	VB_LOOKS_AT_PORT = 1,
	VB_LOOKS_AT_BELLS = 2, /* and at what else local peers say by sockets */
	VB_LOOKS_AT_ALL = 3,
	VB_PORT_IS_QUIET = 4,
};
/* Receive, advance, transmit, once and bounded; true when anything happened. */
bool vb_host_lane_turn(struct vb_host_lane *host_lane, unsigned looks);
/* Those of the next turn, if nobody sleeps before. sleeps: somebody does if it finds nothing, and then knows. */
unsigned vb_host_lane_looks_next(const struct vb_host_lane *host_lane, bool sleeps);
/* The same with local peers that are awake alone. */
bool vb_host_lane_turn_to_local_peers(struct vb_host_lane *host_lane);
/* All that is ready leaves, within bounds; true when anything did. */
bool vb_turn_transmit(struct vb_host_lane *host_lane, vb_time now);
/* All events go to the devices' sinks. */
void vb_turn_dispatch(struct vb_host_lane *host_lane);
/* Nothing leaves: what has come is received, and what the port is done with is taken back. */
void vb_turn_receive(struct vb_host_lane *host_lane);

/* ---- wakeups.c: with the mutex held, unless it says otherwise ---------------------------------------------------- */

/* Makes the descriptors, or -errno. */
int vb_wakeups_open(struct vb_host_lane_state *state);
/* Closes them, also in a forked child. */
void vb_wakeups_close(struct vb_host_lane_state *state);
/* They are the program's by now: they are neither closed nor used. */
void vb_wakeups_forget(struct vb_host_lane_state *state);
/* Wakes the progress thread, if there is one. Any thread, with or without the mutex. No cancellation point. */
void vb_wakeups_wake(struct vb_host_lane_state *state);
/* Carries out actions of the ownership. */
void vb_wakeups_do(struct vb_host_lane_state *state, unsigned actions);
/* Sets the timer to the next deadline, if somebody sleeps on it and it is not set to an earlier one. has_work:
 * something is left to do, for which a waiter without a progress thread is woken by the timer. */
void vb_wakeups_arm(struct vb_host_lane_state *state, bool has_work);
/* The port's descriptors are others than those that are watched: from now on these are, and the progress thread owns
 * the lane. */
void vb_wakeups_watch_port(struct vb_host_lane_state *state);
/* The local peers' bells are there to be slept on. */
void vb_wakeups_watch_bells(struct vb_host_lane_state *state);
/* The timer was readable: takes that away. With or without the mutex. */
void vb_wakeups_take_timer(struct vb_host_lane_state *state);

/* By which descriptors the progress thread was woken. */
struct vb_woken {
	int count;
	bool by_timer, by_bell, is_to_stop;
	unsigned looks;  /* enum vb_looks: what there is to look at */
	unsigned chores; /* bits */
};
/* Sleeps until one of the descriptors is ready. By the progress thread alone, without the mutex: the only point where
 * it can be cancelled. */
struct vb_woken vb_wakeups_sleep(struct vb_host_lane_state *state, int timeout_ms);

#endif
