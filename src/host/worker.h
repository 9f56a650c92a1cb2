/* The inside of host/: the one worker of this process, which is a lane of the engine with its port, its slot, the thread
 * that keeps it going and the broker behind it, and the devices that share it.
 *
 * Locks, in the order in which they are taken: the open lock (device.c: opening and closing), mutex, and those inside
 * broker.c, which are held for moments. */
#ifndef VB_HOST_WORKER_H
#define VB_HOST_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include "base/list.h"
#include "host/broker.h"
#include "host/connections.h"
#include "host/host.h"
#include "host/settings.h"
#include "port/port.h"

struct vb_paths;
struct vb_frames;

/* Who looks at the receive socket. Written under the worker's mutex. */
enum vb_attendance {
	VB_ATTENDED_BY_THREAD,	/* the progress thread sleeps in epoll on it */
	VB_ATTENDED_BY_POLLERS, /* threads that poll their CQs; the progress thread looks now and then whether they left */
	VB_ATTENDED_BY_WAITER,	/* a thread blocked in vb_lane_wait sleeps on it */
};

struct vb_worker {
	pthread_mutex_t mutex;
	atomic_uint waiting; /* threads that block for the mutex: pollers let them go first */
	struct vb_lane *lane;
	struct vb_port *port;
	struct vb_batch *batch;
	struct vb_train *train;
	struct vb_slot slot;
	struct vb_list devices; /* struct vb_device.link */
	bool has_had_several;	/* devices of different names, at any time */
	struct vb_pcap *pcap;
	struct vb_faults *faults;
	struct vb_paths *paths; /* with VERBENA_STATS=1 */
	struct vb_frames *frames; /* once a raw packet QP was made */
	vb_time turned_at;	/* when the last turn began */
	bool has_more;		/* transmit stopped at its bound */
	bool said_trains_refused;

	_Atomic enum vb_attendance attendance;
	unsigned polls_since_takeover;
	atomic_uint posts; /* counts up whenever something is posted */
	struct vb_deadline timer; /* what timer_fd is set to, unless pollers attend */
	vb_time polled_at;	  /* when pollers last put off the thread's takeover */
	bool waits_for_pollers;	  /* who come late, because they share their core */
	bool is_taken_over;	  /* from pollers, and none has polled since */
	unsigned posts_seen; /* by the progress thread */
	bool has_thread;
	pthread_t thread;
	int epoll_fd, timer_fd;
	int wake_fd; /* eventfd: the progress thread is to look */
	int stop_fd; /* eventfd: readable for good when the worker closes */
	int link_fd; /* netlink */
	int connections_fd; /* timerfd of connections.c, which guards it with what follows */
	struct vb_deadline connections_at;

	struct vb_broker *broker;
	bool is_forked; /* this process is a child of the one whose worker this is */
};

struct vb_device {
	struct vb_list link; /* worker->devices */
	struct vb_worker *worker;
	struct vb_nic *nic;
	struct vb_device_sink sink;
	struct vb_device_info info; /* under the worker's mutex */
};

/* lane.c */
void vb_worker_lock(struct vb_worker *worker);
bool vb_worker_try_lock(struct vb_worker *worker);
void vb_worker_unlock(struct vb_worker *worker);
/* Receive, advance, transmit, once and bounded; true when anything happened. With the mutex held. */
bool vb_worker_turn(struct vb_worker *worker);
/* Acks held back leave: whoever drives is about to sleep. With the mutex held. */
void vb_worker_settle(struct vb_worker *worker);

/* port_counters.c: as vb_device_counter, for a worker of one device. With the mutex held. */
const char *vb_worker_counter(const struct vb_worker *worker, unsigned n, uint64_t *value);

/* progress.c */
int vb_progress_start(struct vb_worker *worker);
void vb_progress_stop(struct vb_worker *worker);
void vb_progress_wake(struct vb_worker *worker);
bool vb_progress_is_thread(void); /* the caller is a progress thread */
/* Who attends from now on. With the mutex held. */
void vb_progress_attend(struct vb_worker *worker, enum vb_attendance attendance);
/* Pollers, who attend, have driven a turn: the thread stays asleep. With the mutex held. */
void vb_progress_polled(struct vb_worker *worker);
/* Somebody polls while the thread attends. True: a poller that was only kept away. With the mutex held. */
bool vb_progress_is_poller_back(struct vb_worker *worker);
/* Sets the timer to the next deadline, if that is earlier than what it is set to. With the mutex held. */
void vb_progress_arm_timer(struct vb_worker *worker);
/* Something else is behind the slot's descriptor, on which whoever attends does not sleep: the thread attends from now
 * on. With the mutex held. */
void vb_progress_watch_slot(struct vb_worker *worker);
/* Its descriptor was readable to a waiter who sleeps on it. Without the mutex. */
void vb_progress_timer_is_up(struct vb_worker *worker);
/* Closes the descriptors in a forked child. */
void vb_progress_forked(struct vb_worker *worker);

/* broker_watch.c */
/* Connects to the broker and takes a slot; the reason of an error has been said. */
int vb_broker_watch_start(struct vb_worker *worker, const struct vb_settings *settings);
/* While lane and mutex are still there. */
void vb_broker_watch_stop(struct vb_worker *worker);

/* connections.c */
/* A MAD of the connection manager came. Without any mutex. */
void vb_connections_receive(const struct vb_broker_notice *notice);
void vb_host_explain_unreachable(const struct vb_cm_event *event); /* explain.c */
/* explain.c: a MAD came that answers what was asked of a peer's process. False: it does not. */
bool vb_host_explain_process(const struct vb_broker_notice *notice);
void vb_connections_undelivered(const struct vb_broker_notice *notice);
/* False: none were managed, or a thread that will not go on is amid them. */
bool vb_connections_counters(uint64_t values[VB_CM_COUNTER_COUNT]);
void vb_connections_on_timer(void);
void vb_connections_forget(void); /* in a forked child */
/* Sets the CM's timer. With the CM's mutex held. */
void vb_progress_arm_connections(struct vb_worker *worker, struct vb_deadline at); /* progress.c */

/* device.c */
/* Links or addresses changed: looks at the interfaces again and tells the devices. Without the mutex. */
void vb_worker_refresh_devices(struct vb_worker *worker);
uint64_t vb_host_random_seed(void);
struct vb_device *vb_worker_device_of(struct vb_worker *worker, const struct vb_nic *nic);

/* multicast.c */
void vb_multicast_forget(void); /* the worker's socket is gone, and its memberships with it */
void vb_multicast_forked(void); /* the same in a forked child: they are the parent's */

/* frames.c: with the mutex held, and frames not NULL. True when anything happened. */
bool vb_frames_receive(struct vb_worker *worker, vb_time now);
bool vb_frames_transmit(struct vb_worker *worker, vb_time now);
int vb_frames_fd(const struct vb_worker *worker); /* readable when a frame waits; -1 */
void vb_frames_close(struct vb_worker *worker);	  /* also in a forked child */
void vb_progress_watch_frames(struct vb_worker *worker, int fd); /* progress.c */

/* paths.c */
struct vb_paths *vb_paths_create(void);
void vb_paths_sent(struct vb_paths *paths, const struct vb_batch *batch);
void vb_paths_received(struct vb_paths *paths, const struct vb_train *train);
/* Prints which path every byte took, and the counters that are not 0. */
void vb_paths_print(const struct vb_worker *worker);

#endif
