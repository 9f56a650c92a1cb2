/* The inside of host/, a driver: a lane of the engine with its port, the slot that names it, the mutex around it, the
 * thread that keeps it going, and who attends to its port now. What a process has once is in process.h, and which of
 * its drivers is whose in lanes.h.
 *
 * Locks, in the order in which they are taken: the process's open lock (process.c), the drivers' mutexes in the order
 * of the process's list, and those inside broker.c, which are held for moments. */
#ifndef VB_HOST_DRIVER_H
#define VB_HOST_DRIVER_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/list.h"
#include "host/client/broker.h"
#include "host/host.h"
#include "host/report/later.h"
#include "host/lanes/riders.h"
#include "host/report/summary.h"
#include "port/port.h"
#include "wire/mad.h"

struct vb_process;
struct vb_neighbours;
struct vb_paths;
struct vb_accounts;
struct vb_frames;

/* Who looks at the port's descriptors. Written under the driver's mutex. */
enum vb_attendance {
	VB_ATTENDED_BY_THREAD,  /* the progress thread sleeps in epoll on them */
	VB_ATTENDED_BY_POLLERS, /* threads that poll their CQs; the progress thread looks now and then whether they left
				 */
	VB_ATTENDED_BY_WAITER,  /* a thread blocked in vb_device_wait sleeps on them */
	VB_ATTENDED_BY_RETURNER, /* it has left with what it waited for, to poll and to come again: as by pollers */
};

/* How much is said, of what may happen a thousand times a second: explain.c. */
struct vb_quota {
	vb_time second;
	unsigned said, unsaid;
};

/* Something beside the port that a driver's thread looks after. */
struct vb_chore {
	int fd;                  /* readable when there is something to do */
	void (*run)(void *user); /* without the mutex; NULL: the turn that follows does it */
	void *user;
};

/* How the process of a peer's QP was, as its broker said. */
struct vb_fate {
	struct vb_gid peer;
	uint32_t qpn; /* 0: nothing is known */
	enum vb_process_state process;
	vb_time at;
};

#define VB_FATES      64 /* by QPN: of two that meet the newer is known */
#define VB_CHORES     4
#define VB_PORT_QUIET 64 /* from then on nothing is expected of the port */

struct vb_driver {
	struct vb_process *process;
	unsigned index; /* in process->drivers */
	pthread_mutex_t mutex;
	atomic_uint waiting; /* threads that block for the mutex: pollers let them go first */
	struct vb_lane *lane;
	struct vb_port *port;
	struct vb_batch *batch;
	struct vb_train *train;
	struct vb_slot slot;
	struct vb_faults *faults;         /* of what the port receives; or NULL */
	struct vb_neighbours *neighbours; /* of this host; or NULL: it has none, by its settings */
	struct vb_paths *paths;           /* with VERBENA_STATS=1, */
	struct vb_accounts *accounts;     /* as is this */
	struct vb_frames *frames;         /* once a raw packet QP was made */
	struct vb_quota deaths;           /* of QPs, that are explained */
	struct vb_quota questions;        /* after peers that are silent */
	struct vb_fate fates[VB_FATES];
	vb_time silence_seen_at; /* when it was last looked for peers that are silent */
	struct vb_later *unsaid; /* lines for when the mutex has been given away; or NULL */
	vb_time turned_at;       /* when the last turn began, but for those among neighbours: about */
	vb_time port_seen_at;    /* when the last one did that has looked at the port */
	struct vb_riders riders; /* what was posted and waits for the next poll */
	bool has_more;           /* transmit stopped at its bound */
	bool port_has_more;      /* the last look at it has found something */
	unsigned port_quiet;     /* looks at the port by pollers that found nothing, in a row: see VB_PORT_QUIET */
	atomic_bool keeps_time;  /* completions tell when they were */
	bool is_awake;           /* the thread or the waiter that attends will look again before it sleeps */
	bool said_trains_refused;

	_Atomic enum vb_attendance attendance;
	unsigned polls_since_takeover;
	atomic_uint posts;        /* counts up whenever something is posted */
	struct vb_deadline timer; /* what timer_fd is set to, unless pollers attend */
	vb_time polled_at;        /* when pollers last did, about */
	vb_time noted_at;         /* when it was last looked whether they were kept away */
	vb_time looks_after;      /* so long after polled_at the thread looks whether they are still there */
	bool is_to_look;          /* timer_fd is set to that, */
	vb_time looks_at;         /* which is then */
	const void *waiter;       /* who attends, if a waiter does: any two differ */
	unsigned beside;          /* threads blocked in vb_device_wait while another attends there */
	bool waits_for_pollers;   /* who come late, because they share their core */
	bool is_taken_over;       /* from pollers, and none has polled since */
	unsigned posts_seen;      /* by the progress thread */
	vb_time linger;           /* how long it looks for neighbours' news before it sleeps */
	bool has_thread;
	pthread_t thread;
	int epoll_fd, timer_fd;
	int wake_fd;              /* eventfd: the progress thread is to look */
	int stop_fd;              /* eventfd: readable for good when the driver stops */
	int watched[VB_PORT_FDS]; /* the port's descriptors, as the thread's epoll set has them */
	unsigned watched_count, watched_version;
	struct vb_chore chores[VB_CHORES];
	unsigned chore_count;
};

/* driver.c; locking, driving and posting are host.h's */
/* Without lane and port, which are then put in, and are the driver's to destroy. */
int vb_driver_create(struct vb_process *process, struct vb_driver **driver);
/* Its thread was stopped, or never started. */
void vb_driver_destroy(struct vb_driver *driver);
/* A poller's turn, if the lane is free: what vb_device_drive does of each. True when anything happened; *now: about. */
bool vb_driver_poll(struct vb_driver *driver, vb_time *now);
/* The poller's turns are over: it gives its core away, if it polls in vain. */
void vb_driver_rest(bool was_busy, vb_time now);
/* What a turn looks at beside memory, each by a system call. Who has slept on all of it knows where there is
 * nothing. */
enum vb_looks { /* bits */
	VB_LOOKS_AT_PORT = 1,
	VB_LOOKS_AT_BELLS = 2, /* and what else neighbours say by sockets */
	VB_LOOKS_AT_ALL = 3,
	VB_PORT_IS_QUIET = 4,
};
/* Receive, advance, transmit, once and bounded; true when anything happened. With the mutex held. */
bool vb_driver_turn(struct vb_driver *driver, unsigned looks);
/* Those of the next turn, if nobody sleeps before; sleeps: somebody does if it finds nothing, and then knows. */
unsigned vb_driver_looks_next(const struct vb_driver *driver, bool sleeps);
/* The same with neighbours that are awake alone. */
bool vb_driver_turn_to_neighbours(struct vb_driver *driver);
/* In a forked child: its descriptors are closed, nothing else is touched. */
void vb_driver_forked(struct vb_driver *driver);

/* driver_wait.c: fd is readable now, or at its end. Not cancelled: only who sleeps is. False of -1. */
bool vb_driver_is_readable(int fd);

/* clock.c: a timerfd comes up at deadline, or not at all. False: it is none. */
bool vb_host_set_timer(int fd, struct vb_deadline deadline);

/* progress.c */
int vb_progress_open(struct vb_driver *driver);
/* From now on the driver is driven; last of all, when lane and port are there. */
int vb_progress_start(struct vb_driver *driver, bool has_thread);
void vb_progress_stop(struct vb_driver *driver); /* nobody uses it any more but the broker's thread */
/* The descriptors are the program's by now: they are not closed, and not used. With the mutex held. */
void vb_progress_forget(struct vb_driver *driver);
void vb_progress_cancel(struct vb_driver *driver); /* ends the thread, which sleeps on what is not there */
void vb_progress_wake(struct vb_driver *driver);
bool vb_progress_is_thread(void); /* the caller is a progress thread */
/* Who attends from now on. With the mutex held. */
void vb_progress_attend(struct vb_driver *driver, enum vb_attendance attendance);
/* Pollers, or a waiter that may come again, look at what is in memory, and the thread only whether they do. Any
 * thread. */
static inline bool vb_progress_is_left_to_pollers(const struct vb_driver *driver)
{
	enum vb_attendance attendance = atomic_load_explicit(&driver->attendance, memory_order_relaxed);

	return attendance == VB_ATTENDED_BY_POLLERS || attendance == VB_ATTENDED_BY_RETURNER;
}
/* Pollers, who attend, have driven a turn: the thread need not. With the mutex held. */
void vb_progress_polled(struct vb_driver *driver);
/* Somebody polls while the thread attends. True: a poller that was only kept away. With the mutex held. */
bool vb_progress_is_poller_back(struct vb_driver *driver);
/* Sets the timer to the next deadline, if that is earlier than what it is set to; to now, if there is something to do
 * and no thread to be woken: a waiter may sleep. With the mutex held. */
void vb_progress_arm_timer(struct vb_driver *driver, bool has_work);
/* The port's descriptors are others, on which whoever attends does not sleep: the thread attends from now on. With the
 * mutex held. */
void vb_progress_watch_port(struct vb_driver *driver);
/* The thread looks after something more, as long as it lives. With the mutex held. */
void vb_progress_watch(struct vb_driver *driver, struct vb_chore chore);
/* Its descriptor was readable to a waiter who sleeps on it, and will drive a turn. Without the mutex. */
void vb_progress_timer_is_up(struct vb_driver *driver);
/* A turn that began at now has served what the timer was set to, if that was due. With the mutex held. */
static inline void vb_progress_timer_served(struct vb_driver *driver, vb_time now)
{
	if (vb_deadline_due(driver->timer, now))
		driver->timer.is_set = false;
}
/* Closes the descriptors, also in a forked child. */
void vb_progress_close(struct vb_driver *driver);

/* frames.c: with the mutex held, and frames not NULL. True when anything happened. */
bool vb_frames_receive(struct vb_driver *driver, vb_time now);
bool vb_frames_transmit(struct vb_driver *driver, vb_time now);
int vb_frames_fd(const struct vb_driver *driver); /* readable when a frame waits; -1 */
void vb_frames_close(struct vb_driver *driver);   /* also in a forked child */
void vb_frames_forget(struct vb_driver *driver);  /* as vb_progress_forget */

/* paths.c */
struct vb_paths *vb_paths_create(void);
void vb_paths_sent(struct vb_paths *paths, const struct vb_batch *batch);
void vb_paths_received(struct vb_paths *paths, const struct vb_train *train);
/* Which path every byte took, and the counters that are not 0, of lanes together. With their mutexes held. */
void vb_paths_tell(const struct vb_process *process, unsigned lanes, const struct vb_summary *summary);

/* accounts.c */
/* What is said of QPs one by one. */
#define VB_ACCOUNTS_SAID 16
struct vb_accounts *vb_accounts_create(void);
void vb_accounts_destroy(struct vb_accounts *accounts); /* may be NULL */
void vb_accounts_add(struct vb_accounts *accounts, const struct vb_qp_account *account);
/* A line for each that carried most, and one for all the others, by say. */
void vb_accounts_tell(const struct vb_accounts *accounts, vb_summary_say *say, void *user);
/* The same of all QPs that lanes have or had. With their mutexes held. */
void vb_accounts_tell_all(const struct vb_process *process, unsigned lanes, const struct vb_summary *summary);

/* explain.c */
/* The peer is silent: its broker, if its host is known to have one, is asked how its process is. With the mutex
 * held. */
void vb_driver_ask_after(struct vb_driver *driver, struct vb_qp *qp);
/* To be called each VB_SILENCE_LOOK: after each that has been silent for 3 s, once. */
#define VB_SILENCE_LOOK (1 * VB_S)
void vb_driver_ask_after_silent(struct vb_driver *driver);
/* One line for stderr, kept in driver->unsaid: who, where, why, for how long, what to check. With the mutex held. */
void vb_driver_explain_death(struct vb_driver *driver, const struct vb_device_info *device, struct vb_qp *qp);

#endif
