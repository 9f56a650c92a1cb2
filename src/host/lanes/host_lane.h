/* The inside of host/, a host lane: a lane of the engine with its port, the slot that names it, the mutex around it,
 * and what runs it. This is all that the other rooms see of it; which thread runs a lane, and how it is woken, is known
 * in lanes/ alone (host_lane_state.h). Something else could run lanes behind the same functions: these, and those that
 * host.h has for the program's threads (vb_host_lane_lock() to vb_device_wait()), are the whole of it.
 * What a process has once is in process.h, and which of its host lanes is whose in lanes.h.
 *
 * Locks, in the order in which they are taken: the process's open lock (process.c), the host lanes' mutexes in the
 * order of the process's list, and those inside client/, which are held for moments. */
#ifndef VB_HOST_HOST_LANE_H
#define VB_HOST_HOST_LANE_H

#include <pthread.h>
#include "host/client/broker.h"
#include "host/host.h"
#include "host/report/later.h"
#include "host/report/summary.h"
#include "port/port.h"
#include "wire/mad.h"

struct vb_process;
struct vb_host_peers;
struct vb_paths;
struct vb_accounts;
struct vb_frames;

/* How much is said, of what may happen a thousand times a second: explain.c. */
struct vb_quota {
	vb_time second;
	unsigned said, unsaid;
};

/* How the process of a peer's QP was, as its broker said. */
struct vb_fate {
	struct vb_gid peer;
	uint32_t qpn; /* 0: nothing is known */
	enum vb_process_state process;
	vb_time at;
};

#define VB_FATES 64 /* by QPN: of two that meet the newer is known */

/* Part of what vb_host_lane_create() allocates; all is guarded by the mutex, but what does not change. */
struct vb_host_lane {
	struct vb_process *process;
	unsigned index; /* in process->host lanes */
	pthread_mutex_t mutex;
	struct vb_lane *lane;
	struct vb_port *port;
	struct vb_batch *batch;
	struct vb_train *train;
	struct vb_slot slot;
	bool has_more;                /* transmit stopped at its bound */
	struct vb_faults *faults;     /* of what the port receives; or NULL */
	struct vb_host_peers *peers;  /* of this host; or NULL: it has none, by its settings */
	struct vb_paths *paths;       /* with VERBENA_STATS=1, */
	struct vb_accounts *accounts; /* as is this */
	struct vb_frames *frames;     /* once a raw packet QP was made */
	struct vb_quota deaths;       /* of QPs, that are explained */
	struct vb_quota moves;        /* likewise, to other addresses and back */
	struct vb_quota rails;        /* likewise, that send by a second link, too */
	struct vb_quota questions;    /* after peers that are silent */
	struct vb_fate fates[VB_FATES];
	vb_time silence_seen_at; /* when it was last looked for peers that are silent */
	struct vb_later *unsaid; /* lines for when the mutex has been given away; or NULL */
};

/* ---- Making and ending a host lane ---------------------------------------------------------------------------------
 * By the thread that opens or closes the device, with the process's open lock held, in this order. */

/* Without lane and port. The caller puts them into *host lane, and they are the host lane's to destroy from then on.
 * 0 or -errno. */
int vb_host_lane_create(struct vb_process *process, struct vb_host_lane **host_lane);
/* The host lane is driven from now on; last of all, when lane and port are there. has_thread: a progress thread is
 * started, else only the program's calls drive it. 0 or -errno. With the mutex held. */
int vb_progress_start(struct vb_host_lane *host_lane, bool has_thread);
/* Ends the progress thread, and waits for that. No other thread uses the host lane any more, but for the broker
 * client's. Without the mutex. */
void vb_progress_stop(struct vb_host_lane *host_lane);
/* Its thread was stopped, or never started. Frees all of it, lane and port as well. */
void vb_host_lane_destroy(struct vb_host_lane *host_lane);

/* ---- While it runs ---- */

/* It has a progress thread, and runs also while the program calls nothing. Any thread; it does not change. */
bool vb_progress_has_thread(const struct vb_host_lane *host_lane);

/* Something beside the port that the progress thread looks after. */
struct vb_chore {
	int fd; /* readable when there is something to do; the caller's to close, after the host lane */
	void (*run)(void *user); /* by the progress thread, without the mutex; NULL: the turn that follows does it */
	void *user;              /* borrowed, as long as the host lane lives */
};
/* The progress thread looks after something more, as long as it lives. With the mutex held. */
void vb_progress_watch(struct vb_host_lane *host_lane, struct vb_chore chore);
/* A poller's turn, if the lane is free: vb_device_drive() does this for each lane. True when anything happened;
 * *now: about. Any thread, without the mutex. */
bool vb_host_lane_poll(struct vb_host_lane *host_lane, vb_time *now);
/* The poller's turns are over: a thread that polls in vain gives its core away. Any thread, without a mutex. */
void vb_host_lane_rest(bool was_busy, vb_time now);
/* fd is readable now, or at its end. False of -1. Any thread; no cancellation point. */
bool vb_host_lane_is_readable(int fd);

/* ---- When the process forks, or the program closes descriptors that are not its own ---- */

/* In a forked child: its copies of the descriptors are closed, nothing else is touched, and no thread drives it. */
void vb_host_lane_forked(struct vb_host_lane *host_lane);
/* The descriptors are the program's by now: they are not closed, and not used. With the mutex held. */
void vb_progress_forget(struct vb_host_lane *host_lane);
/* Ends the progress thread, which sleeps on what is not there. Does not wait. Any thread. */
void vb_progress_cancel(struct vb_host_lane *host_lane);

/* ---- clock.c ---- */

/* A timerfd comes up at deadline, or not at all. False: it is none. Any thread. */
bool vb_host_set_timer(int fd, struct vb_deadline deadline);

/* frames.c: with the mutex held, and frames not NULL. True when anything happened. */
bool vb_frames_receive(struct vb_host_lane *host_lane, vb_time now);
bool vb_frames_transmit(struct vb_host_lane *host_lane, vb_time now);
int vb_frames_fd(const struct vb_host_lane *host_lane); /* readable when a frame waits; -1 */
void vb_frames_close(struct vb_host_lane *host_lane);   /* also in a forked child */
void vb_frames_forget(struct vb_host_lane *host_lane);  /* as vb_progress_forget */

/* paths.c */
struct vb_paths *vb_paths_create(void);
void vb_paths_sent(struct vb_paths *paths, const struct vb_batch *batch);
void vb_paths_received(struct vb_paths *paths, const struct vb_train *train);
/* Which path every byte took, and the counters that are not 0, of lanes together. With their mutexes held. */
void vb_paths_tell(const struct vb_process *process, unsigned lanes, const struct vb_summary *summary);

/* accounts.c */
/* So many QPs are named one by one. */
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
void vb_host_lane_ask_after(struct vb_host_lane *host_lane, struct vb_qp *qp);
/* To be called each VB_SILENCE_LOOK: after each that has been silent for 3 s, once. */
#define VB_SILENCE_LOOK (1 * VB_S)
void vb_host_lane_ask_after_silent(struct vb_host_lane *host_lane);
/* One line for stderr, kept in host lane->unsaid: who, where, why, for how long, what to check. With the mutex held. */
/* The QP goes on over another pair of addresses, or is back. */
void vb_host_lane_explain_move(struct vb_host_lane *host_lane, struct vb_qp *qp);
void vb_host_lane_explain_death(struct vb_host_lane *host_lane, const struct vb_device_info *device, struct vb_qp *qp);

#endif
