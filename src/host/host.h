/* A running NIC in a process: devices and their GIDs, host lanes, each a lane with its port and the thread that keeps
 * it going, and the broker connection. verbs/ sees only this header and the engine's.
 *
 * A thread that polls an empty CQ drives the lane inline; otherwise the progress thread, asleep in epoll, does. The
 * thread that drives holds the host lane's mutex, and before it gives that away it hands all events to the sinks and
 * looks at the doorbells. An idle process wakes once a second, to look for silent peers, and uses no other CPU.
 *
 * Threads: every function may be called by any thread, unless it says otherwise. Errors: 0 or a negative errno. */
#ifndef VB_HOST_HOST_H
#define VB_HOST_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "engine/nic.h"
#include "host/forked.h"
#include "roce/raw.h"

struct pollfd;

/* ---- Devices: one a network interface that is up and has an address ---------------------------------------------- */

#define VB_DEVICE_NAME_MAX 64

struct vb_device_gid {
	struct vb_gid gid; /* zero: empty entry */
	char ifname[16];
};

struct vb_device_info {
	char name[VB_DEVICE_NAME_MAX]; /* "vb_eth0" */
	char ifname[16];
	uint32_t ifindex;
	uint32_t netdev_mtu;
	uint32_t mtu;       /* active RoCE MTU in bytes */
	uint32_t large_mtu; /* payload of the largest packet that the interface carries between two Verbena ends; 0: mtu
			     */
	bool is_up;         /* running */
	bool is_loopback;
	uint64_t node_guid;  /* EUI-64 of the MAC in network byte order as the ABI wants it; never zero; stable */
	uint64_t speed_mbps; /* of the interface; 0 unknown */
	unsigned gid_count;
	struct vb_device_gid gids[VB_MAX_GIDS]; /* IPv4-mapped first, then IPv6 global, then link-local */
};

/* The devices in order: the default route's interface first, narrowed by VERBENA_DEVICES; loopback's last, and only
 * where it is the only one, is named there, or is open in this process. Does not start anything and needs no broker.
 * *list is malloc'ed, free() it. A malformed setting: -EINVAL, explained on stderr once; so is a name in
 * VERBENA_DEVICES that is no device. */
int vb_devices_list(struct vb_device_info **list, size_t *count);
/* The program was shown devices: with VERBENA_STATS=1 a line at exit says so if it opened none. */
void vb_devices_expect_use(void);

/* ---- An opened device -------------------------------------------------------------------------------------------- */

struct vb_device;

/* Calls of the host to the opener. They come from the thread that drives, with the host lane's mutex held: be short,
 * and call only those functions of this header that allow it. */
struct vb_device_sink {
	/* An event of an object, which knows its owner; deaths of QPs are not told. */
	void (*on_event)(const struct vb_event *event);
	void (*on_port)(void *user, bool is_active); /* link came or went */
	void (*on_gid_change)(void *user);
	void *user; /* of the latter two */
};

/* Opens the device of that name; the first starts the process's lane. -errno: a line on stderr has then said why (there
 * is no broker, another program has the port, there are no slots). The same name opened twice gives two devices. */
int vb_device_open(const char *name, const struct vb_device_sink *sink, struct vb_device **device);
/* All its objects are gone. The last one closed stops the lane and its thread, and leaves the broker. */
void vb_device_close(struct vb_device *device);
struct vb_nic *vb_device_nic(struct vb_device *device);
/* A fresh copy: addresses, MTU and state as they are now. */
void vb_device_query(struct vb_device *device, struct vb_device_info *info);

/* The n-th counter of a port as kernel drivers name and place them ("counters/port_xmit_packets",
 * "hw_counters/sent_pkts"), with its value: what this process has counted on the device. NULL: no more; or the device
 * is not open here; or the lane has had other devices too, and their counts cannot be told apart. */
const char *vb_device_counter(const char *name, unsigned n, uint64_t *value);

/* ---- Lanes: a process has one, and more as its threads need them ------------------------------------------------- */

struct vb_host_lane;

#define VB_LANES_MAX 8
#define VB_WAIT_FDS  (1 + 7 * VB_LANES_MAX) /* descriptors that a thread which waits in all of them sleeps on, too */
#define VB_ALL_LANES ((1u << VB_LANES_MAX) - 1) /* sets of lanes are bits; one that is not there is passed over */

/* The first one. It alone may have raw packet QPs, XRC's receiving QPs and SRQs with tags. */
struct vb_host_lane *vb_device_host_lane(struct vb_device *device);
/* The next three functions make the host lane if it is not there. The one for objects that the calling thread makes
 * outside of thread domains. */
struct vb_host_lane *vb_device_host_lane_of_caller(struct vb_device *device);
/* For a new thread domain. */
struct vb_host_lane *vb_device_host_lane_of_domain(struct vb_device *device);
/* The next one, for when host lane has no number left for a QP; after all of them the same again. */
struct vb_host_lane *vb_device_host_lane_after(struct vb_device *device, const struct vb_host_lane *host_lane);
unsigned vb_host_lane_bit(const struct vb_host_lane *host_lane);
struct vb_lane *vb_host_lane_lane(struct vb_host_lane *host_lane);

/* vb_host_lane_lock, _lock_quiet, _unlock and _settle, below, for each lane in the mask `lanes`. No lane is made while
 * all are locked. */
int vb_device_lock(struct vb_device *device, unsigned lanes);
int vb_device_lock_quiet(struct vb_device *device);
void vb_device_unlock(struct vb_device *device, unsigned lanes);
void vb_device_settle(struct vb_device *device, unsigned lanes);
/* A poller found its CQ empty: receive, advance, transmit once in each of lanes that is free. Yields the core after
 * tens of microseconds of empty calls by this thread. */
void vb_device_drive(struct vb_device *device, unsigned lanes);

/* ---- Host lanes -------------------------------------------------------------------------------------------------- */

/* Have the lane to oneself: around every [lane] function of the engine. Unlock delivers events and serves doorbells.
 * A -errno of lock means that the lane is not this process's (a forked child's parent's): use nothing. */
int vb_host_lane_lock(struct vb_host_lane *host_lane);
void vb_host_lane_unlock(struct vb_host_lane *host_lane);
/* Likewise, and the port holds nothing: no memory is lent to it. Waits for that with the lane held. */
int vb_host_lane_lock_quiet(struct vb_host_lane *host_lane);

/* Sends at once what is held back: acks, and posts that wait for the next poll. With the mutex held: before a QP
 * leaves, whose peer still waits for it, or before the thread that drives sleeps. */
void vb_host_lane_settle(struct vb_host_lane *host_lane);
/* The same for a QP that is to drain: first what its peer has answered by memory is taken. */
void vb_host_lane_settle_qp(struct vb_host_lane *host_lane, struct vb_qp *qp);
/* The same for one that is to go, which acknowledges more than once what it has executed, if packets of it were lost.
 */
void vb_host_lane_take_leave(struct vb_host_lane *host_lane, struct vb_qp *qp);

/* Takes all that the process of qpn has sent so far by memory, with the mutex held: before a QP may receive from there.
 * If its numbers are the same as an earlier QP's, it would take for its own what was sent to that one. */
void vb_host_lane_catch_up(struct vb_host_lane *host_lane, uint32_t qpn);

/* The QP, which is the host lane's, is about to be destroyed: with VERBENA_STATS=1 its account is kept. With the mutex
 * held. */
void vb_host_lane_note_end(struct vb_host_lane *host_lane, struct vb_qp *qp);

/* Ends posting to the QP, as vb_sq_end: drives the lane if it is free, else the thread that holds it sees the doorbell.
 * Never waits. */
void vb_host_lane_end_post(struct vb_host_lane *host_lane, struct vb_qp *qp);
/* The same after doorbells rang. */
void vb_host_lane_kick(struct vb_host_lane *host_lane);
/* From now on completions carry exact times, for the program reads them. Any thread. */
void vb_host_lane_keep_time(struct vb_host_lane *host_lane);
/* This program has closed descriptors of ours: all requests of this device fail. */
bool vb_device_has_lost_descriptors(const struct vb_device *device);
/* How often it has, in the life of this process: a descriptor from before the last time may be the program's own file.
 */
unsigned vb_host_losses(void);
/* The calling thread was told that a CQ has something: it waits asleep, and its next poll is no spinning. */
void vb_host_lane_notified(void);
/* Wait until fd is readable, or count is not 0 (true), driving lanes meanwhile, of none the first. False: interrupted
 * by a signal. Completions that the calling thread's own driving brings may be in the count alone; NULL: there is no
 * count. */
bool vb_device_wait(struct vb_device *device, unsigned lanes, int fd, const atomic_uint *count);
/* As poll(), driving lanes while it sleeps, of which there are some: what arrives there wakes the caller itself, and no
 * other thread has to. It ends with nothing ready, too, when its own driving makes news not 0. There is room for
 * VB_WAIT_FDS more behind the count of fds. */
int vb_device_poll(struct vb_device *device, unsigned lanes, struct pollfd *fds, unsigned count, int timeout_ms,
	const atomic_uint *news);
/* vb_lane_keep_datagrams() of all lanes. */
void vb_device_keep_datagrams(struct vb_device *device, uint32_t lkey);
/* Returns when no memory access that began before is in flight: the grace period of vb_mr_free. */
void vb_device_grace(struct vb_device *device);
/* Now, on the clock that completions are stamped with. */
vb_time vb_host_now(void);
/* The CLOCK_MONOTONIC nanoseconds of a stamp (ibv_query_rt_values, completion timestamps). */
uint64_t vb_host_monotonic_ns(vb_time at);

/* Has the network namespace a route for packets from our address to another one? 0; -ENETUNREACH: there is none;
 * -EHOSTUNREACH: there is one that forbids it. 0 also where the kernel cannot be asked, for groups and for link-local
 * addresses. A few system calls; without any mutex. */
int vb_host_check_route(const struct vb_gid *from, const struct vb_gid *to);

/* Asks about the host at av->dgid (by a discovery MAD, once per address), so that windows and trains fit; returns at
 * once. With the mutexes of lanes held. */
void vb_device_discover(struct vb_device *device, unsigned lanes, const struct vb_av *av);

/* UD multicast membership of the host lane's socket, counted per group. Without any mutex. */
int vb_device_join(struct vb_device *device, struct vb_host_lane *host_lane, const struct vb_gid *group);
int vb_device_leave(struct vb_device *device, struct vb_host_lane *host_lane, const struct vb_gid *group);

/* Frames, for raw packet QPs: through packet sockets, hence with CAP_NET_RAW alone. */
bool vb_host_may_use_frames(void);
/* Before a raw packet QP is made. -EPERM where it may not be. Without any mutex, as the next two. */
int vb_device_open_frames(struct vb_device *device);
struct vb_device_flow;
/* From now on flow->qp gets the frames that flow matches. -errno of the interface. */
int vb_device_steer(struct vb_device *device, const struct vb_frame_flow *flow, struct vb_device_flow **made);
int vb_device_unsteer(struct vb_device *device, struct vb_device_flow *flow);

/* True when the device was opened by the process that this one was forked from: verbs of its objects return
 * VB_FORKED_ERRNO. */
bool vb_device_is_forked(const struct vb_device *device);
/* The same, and the first time in such a process one line on stderr says what to do. */
bool vb_device_refuses_forked(const struct vb_device *device);

/* A dma-buf of the first length bytes of a sealed memory file, whole pages: a descriptor, or -errno. -EOPNOTSUPP: this
 * machine makes none. */
int vb_host_can_make_dmabufs(void); /* 0 or -errno */
int vb_host_make_dmabuf(int file, size_t length);

/* Memory that can be shared: a file of so many bytes that never shrinks, or -errno. */
#define VB_MEMORY_NAME "verbena memory"
int vb_host_make_memory(size_t length);
/* Its pages take the place of those there, at the same address and with the same bytes. No thread may write there
 * meanwhile. 0 or -errno. */
int vb_host_move_memory(void *first, size_t length, int file);
/* Memory of ours where such a file is mapped from its beginning on: local peers that pull from it need not ask the
 * kernel. Its name, for vb_mr_config.segment; 0: it is not shared, for there are too many. Without any mutex. */
uint32_t vb_host_share_memory(struct vb_host_lane *host_lane, const void *memory, size_t length, int file);
void vb_host_unshare_memory(
	struct vb_host_lane *host_lane, uint32_t segment); /* no region is in it any more; 0: none */
/* Memory that is about to be registered: with VERBENA_MAP=registered, large and private it becomes shared. The
 * segment's name or 0; given back when the region is no more. */
uint32_t vb_host_back_registered(struct vb_host_lane *host_lane, void *memory, size_t length);
void vb_host_leave_registered(struct vb_host_lane *host_lane, uint32_t segment);

/* Whether every byte from first to last is mapped and its ends can be read, or written. Asks the kernel; changes
 * nothing. */
bool vb_host_memory_is_present(const void *memory, uint64_t length, bool for_writing);
/* Ordinary memory of which any part may be unmapped, and then refuses: the kernel is asked before each access. */
extern const struct vb_memory_kind vb_memory_pageable;

#endif
