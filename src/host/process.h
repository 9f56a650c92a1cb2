/* The inside of host/, a process: the things that it has once, however many host lanes it has (host_lane.h): its
 * devices, the broker's client, the connection manager's timer, the watch over links and addresses, its capture. It
 * exists while a device is open. */
#ifndef VB_HOST_PROCESS_H
#define VB_HOST_PROCESS_H

#include "base/invariant.h"
#include "base/list.h"
#include "host/memory/backing.h"
#include "host/client/broker.h"
#include "host/connections.h"
#include "host/devices/failover.h"
#include "host/lanes/host_lane.h"
#include "host/host.h"
#include "host/lanes/lanes.h"
#include "host/peers/host_peers.h"
#include "host/settings.h"

struct vb_process {
	struct vb_lanes lanes; /* which thread or domain has which */
	/* Complete when they are counted, but for the first one, whose mutex is held until it is; destroyed after the
	 * broker's thread. */
	struct vb_host_lane *host_lanes[VB_LANES_MAX];
	atomic_uint host_lane_count; /* goes up with every host lane's mutex held */
	struct vb_list devices; /* struct vb_device.link: changed with every host lane's mutex held, read with any */
	bool has_had_several;   /* devices of different names, at any time */
	struct vb_broker *broker;
	struct vb_pcap *pcap;         /* or NULL */
	struct vb_epochs *epochs;     /* local peers that pull from us read it */
	struct vb_segments *segments; /* memory that they may map */
	struct vb_backing backing;    /* of registered memory */
	struct vb_further further;    /* as the lanes have them */
	atomic_int link_fd;           /* netlink; -1 where it is forbidden */
	atomic_int silence_fd;        /* timerfd: each second, to look for peers that are silent */
	atomic_int connections_fd;    /* timerfd of connections.c, under its mutex, as the next */
	struct vb_deadline connections_at;
	atomic_bool is_said;              /* the summary */
	bool is_forked;                   /* it is the parent's of this process */
	atomic_int alarm_fd;              /* the broker client's: readable when descriptors are lost */
	atomic_bool has_lost_descriptors; /* the program closed them: lost.c */
};

struct vb_device {
	struct vb_list link; /* process->devices */
	struct vb_process *process;
	struct vb_nic *nic;
	struct vb_device_sink sink;
	struct vb_device_info info; /* as process->devices */
};

/* The host lane whose thread looks after the process's descriptors, and whose slot names the process to connection
 * managers. */
static inline struct vb_host_lane *vb_process_home(const struct vb_process *process)
{
	assert(process->host_lanes[0]);
	return process->host_lanes[0];
}

static inline unsigned vb_process_host_lane_count(const struct vb_process *process)
{
	return atomic_load_explicit(&process->host_lane_count, memory_order_acquire);
}

/* One of its host lanes has it. */
static inline bool vb_process_has_slot(const struct vb_process *process, unsigned slot)
{
	for (unsigned i = 0; i < vb_process_host_lane_count(process); i++)
		if (process->host_lanes[i]->slot.number == slot)
			return true;
	return false;
}

/* process.c */
/* One user more; the first starts all of it, and the last to leave stops it. -errno: the reason has been said. */
int vb_process_enter(struct vb_process **process);
void vb_process_leave(void);
/* No thread enters or leaves between the two. NULL: there is no process, and it is held all the same. */
struct vb_process *vb_process_hold(void);
void vb_process_release(void);
/* One host lane more, complete. -errno: the reason has been said. With the process held, and without any mutex. */
int vb_process_add_host_lane(struct vb_process *process);
/* All its host lanes' mutexes. */
void vb_process_lock(struct vb_process *process);
void vb_process_unlock(struct vb_process *process);

/* device.c */
/* Links or addresses changed: looks at the interfaces again and tells the devices. Without any mutex. */
void vb_process_refresh_devices(struct vb_process *process);
/* With a host lane's mutex held. */
struct vb_device *vb_process_device_of(const struct vb_process *process, const struct vb_nic *nic);

/* port_counters.c: as vb_device_counter, for a process of one device. With the host lanes' mutexes held. */
const char *vb_process_counter(const struct vb_process *process, unsigned n, uint64_t *value);

/* watch.c */
/* Connects to the broker; the reason of an error has been said. */
int vb_broker_watch_start(struct vb_process *process, const struct vb_settings *settings);
/* Gives the host lane a slot, likewise. -EUSERS of one that is not the first is no error, and said at level info. */
int vb_broker_watch_get_slot(struct vb_host_lane *host_lane, const struct vb_settings *settings);
/* While host lanes, lanes and mutexes are still there. */
void vb_broker_watch_stop(struct vb_process *process);

/* lost.c */
/* A descriptor of ours was found closed, or to be another file's. Says so once, and has the broker's thread give up all
 * of them. Any thread, with any mutex. */
void vb_process_lose_descriptors(struct vb_process *process);
/* No descriptor is used from now on, and none is closed; QPs fail. In the broker's thread, which ends by that. */
void vb_process_forget_descriptors(struct vb_process *process);

/* connections.c */
/* A MAD of the connection manager came. Without any mutex. */
void vb_connections_receive(const struct vb_broker_notice *notice);
void vb_connections_undelivered(const struct vb_broker_notice *notice);
/* False: there is no CM, or a thread that will not go on holds its mutex. */
bool vb_connections_counters(struct vb_connections_counts *counts);
void vb_connections_on_timer(void);
void vb_connections_forget(void); /* in a forked child */

/* explain.c */
/* One line for stderr, kept in *unsaid. With the CM's mutex held. */
/* Of a connection that is not answered, or did not come about; nothing of other events. */
void vb_host_explain_connection(const struct vb_cm_event *event, struct vb_later **unsaid);
void vb_host_explain_mtu(const struct vb_mtu_refusal *refusal, struct vb_later **unsaid);
/* A MAD came that may answer a question about a peer's process. False: it does not. Without any mutex. */
bool vb_host_explain_process(struct vb_process *process, const struct vb_broker_notice *notice);
/* A MAD was not delivered that may have been such a question. False: it was none. Likewise. */
bool vb_host_explain_unasked(struct vb_process *process, const struct vb_broker_notice *notice);

/* multicast.c */
void vb_multicast_forget(void); /* the host lanes' sockets are gone, and their memberships with them */
void vb_multicast_forked(void); /* the same in a forked child: they are the parent's */

#endif
