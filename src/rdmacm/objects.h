/* The objects behind librdmacm's public structures: each begins with the structure that programs see, so that a
 * program's pointer and ours are the same address.
 *
 * Holds: the NIC and the connection manager live in libibverbs.so.1 and are reached through host/connections.h; a QP is
 * moved only by a thread of the program, in one of its calls or while it fetches an event; every event fetched keeps
 * the ids that it names alive until it is acknowledged.
 *
 * Threads. A program may use different ids, and one channel, in any threads. Locks, in the order in which they may be
 * taken:
 *   1. an id's `calls`: what the program asks of the id, one thing at a time. Verbs and the broker are called under it.
 *   2. the devices' (devices.c), under which devices are opened.
 *   3. the CM's mutex (vb_connections_lock): vb_cm_id's. Under it no verbs: whoever drives the NIC may wait for it.
 *   4. the events' (channel.c): the queues of all channels, to which channel an id belongs, and what an id has there.
 * Nobody waits for an event, an acknowledgement or the program with any of them held. The CM's handler (handler.c) has
 * the third and takes the fourth; what it does not have, it leaves to the thread that fetches the event (events.c).
 * Not here: rsockets (rsocket/). */
#ifndef VB_RDMACM_OBJECTS_H
#define VB_RDMACM_OBJECTS_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdatomic.h>
#include "base/list.h"
#include "cm/cm.h"
#include "host/connections.h"

#define VB_EXPORT __attribute__((visibility("default")))

/* What calls answer in a child about what its parent made. */
#define VB_FORKED_ERRNO EPERM

enum {
	VB_PORT = 1, /* the only port of a device */
	VB_PKEY = 0xFFFF,
	VB_QPN_MULTICAST = 0xFFFFFF,
	VB_QPN_LIMIT = 1 << 24,
	VB_RETRIES = 7, /* largest value of the 3-bit retry counts */
};

/* A call's return: 0, or -1 with errno. error is 0 or -errno. */
static inline int vb_result(int error)
{
	if (!error)
		return 0;
	errno = -error;
	return -1;
}

/* The same of a call that would return a pointer. */
static inline void *vb_result_null(int error)
{
	errno = -error;
	return NULL;
}

/* ---- Devices (devices.c): opened once, and open as long as the process lives ----------------------------------- */

struct device_entry {
	struct vb_list link;
	struct ibv_context *verbs;
	struct ibv_pd *pd;     /* the default for ids of this device */
	struct ibv_xrcd *xrcd; /* the same for XRC; NULL until it is wanted */
	uint64_t guid;         /* a number of this machine */
	uint8_t max_responder_resources, max_initiator_depth;
	uint8_t ack_delay; /* 4.096 us * 2^ack_delay */
};

/* The device that has gid, and its index there. -ENODEV. */
int vb_device_of_gid(const struct vb_gid *gid, struct device_entry **device, uint8_t *gid_index);
/* The device of a loopback address, as Linux chooses it: who has it, else the first, which reaches itself at its own
 * address. gid is the loopback address, and becomes the device's that stands for it. -ENODEV. */
int vb_device_of_loopback(struct vb_gid *gid, struct device_entry **device);
int vb_device_xrcd(struct device_entry *device, struct ibv_xrcd **xrcd);
/* Opens what there is, so that requests can come. -ENODEV when there is none. */
int vb_devices_open(void);
void vb_devices_forget(void); /* in a forked child: they are the parent's */
enum ibv_mtu vb_device_mtu(const struct device_entry *device);
/* What connections to this address can have, an enum ibv_mtu; 0: it is no device's. With the CM's mutex held. */
uint8_t vb_gid_mtu(const struct vb_gid *gid);

/* ---- Addresses (sockaddr.c) ------------------------------------------------------------------------------------ */

/* Bytes of an address of that family; 0 when it is no IP family. */
socklen_t vb_sockaddr_length(const struct sockaddr *addr);
struct vb_gid vb_sockaddr_gid(const struct sockaddr *addr); /* 0.0.0.0 mapped, :: zero */
void vb_sockaddr_fill(struct sockaddr_storage *addr, const struct vb_gid *gid, uint16_t port, uint32_t scope);
uint16_t vb_sockaddr_port(const struct sockaddr *addr);
void vb_sockaddr_set_port(struct sockaddr *addr, uint16_t port);
bool vb_sockaddr_is_any(const struct sockaddr *addr);
bool vb_sockaddr_is_multicast(const struct sockaddr *addr);
/* The interface of a link-local address, else 0. */
uint32_t vb_sockaddr_scope(const struct sockaddr *addr);
/* kernel_route.c: which of our addresses the kernel would send from to remote; local when that is not NULL. 0 or
 * -errno. */
int vb_sockaddr_route(const struct sockaddr *remote, const struct sockaddr *local, struct sockaddr_storage *source);

/* ---- Ids (id.c) ------------------------------------------------------------------------------------------------ */

enum id_state {
	ID_IDLE,
	ID_BOUND,
	ID_ADDR_RESOLVED,
	ID_ROUTE_RESOLVED,
	ID_LISTENING,
	ID_CONNECTING, /* from rdma_connect on */
	ID_RESPONDED,  /* and the reply, fetched with no QP to move: rdma_establish */
	ID_REQUESTED,  /* an incoming request */
	ID_ACCEPTED,
};

/* What one side of a connection says about itself in REQ and REP, or about a datagram service. */
struct vb_side {
	uint32_t qpn, psn; /* psn: of the first packet that is sent to it */
	uint32_t qkey;
	uint32_t vendor_id; /* ECE */
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry; /* how often the other side is to repeat */
	bool has_srq, has_flow_control;
};

/* From our address to the peer's. */
struct vb_way {
	struct vb_gid local, remote;
	uint32_t scope, flow_label;
	enum ibv_mtu mtu;
	uint8_t gid_index, traffic_class, hop_limit;
	uint8_t ack_timeout; /* of our QP: 4.096 us * 2^ack_timeout */
};

struct id_options {
	uint8_t tos, ack_timeout;
	bool has_ack_timeout, is_reuse, is_ipv6_only;
	bool hears_lost_requests; /* family.h */
	uint64_t family;          /* vb_binding's */
};

struct channel_object;
struct event_object;

struct id_object {
	struct rdma_cm_id public;
	uint32_t generation; /* of the process that made it */

	/* Under calls: */
	pthread_mutex_t calls;
	enum id_state state;
	bool is_sync;              /* public.channel is its own */
	bool is_disconnected;      /* its event was fetched */
	bool has_cqs[2];           /* send, receive: made by rdma_create_qp */
	struct id_options options; /* written under the events' lock, too */
	struct device_entry *device;
	struct vb_binding binding;
	bool is_bound; /* binding is the broker's to give back */
	struct vb_way way;
	struct vb_side local, remote;
	struct vb_list groups; /* multicast.c */
	struct ibv_pd *template_pd;
	struct ibv_qp_init_attr *template; /* of the QPs of a listener's requests (endpoint.c) */
	uint8_t *connect_data;             /* rdma_addrinfo's, before all private data */
	size_t connect_length;
	struct resolution *resolution; /* resolve_addrinfo.c; or NULL */

	/* Under the CM's mutex: */
	struct vb_cm_id *cm;
	/* An incoming request that the program has not answered. No event of it is reported, because its context is
	 * still the listener's; if it is lost meanwhile, rdma_accept fails. Linux does the same. */
	bool is_quiet;

	/* Under the events' lock: */
	struct vb_list spare; /* an event_object for each event that the CM may have for it: none is ever lost */
	uint32_t fetched, acknowledged;
	struct id_object *listener; /* as long as its request waits to be fetched */
	int backlog;                /* a listener's: how many more requests may wait */
};

static inline struct id_object *vb_id_of(struct rdma_cm_id *id)
{
	return (struct id_object *)id;
}

/* RDMA_PS_UDP and its like: SIDR, not connections. */
static inline bool vb_id_is_datagram(const struct id_object *id)
{
	return id->public.qp_type == IBV_QPT_UD;
}

struct id_object *vb_id_create(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
	enum ibv_qp_type qp_type); /* NULL: errno */
/* It was never seen by the program, and its CM's id is gone. */
void vb_id_free(struct id_object *id);
/* Room for the events that the CM may have for it; -ENOMEM. */
int vb_id_reserve_events(struct id_object *id);
/* The id's device from now on. */
void vb_id_set_device(struct id_object *id, struct device_entry *device, const struct vb_gid *gid);
/* resolve_addrinfo.c: waits for what is being resolved, and forgets it. With `calls` held, or nobody else about. */
void vb_id_end_resolution(struct id_object *id);
/* Starts what a call began, or, with a synchronous id, waits for its event. error: what the call has come to. */
int vb_id_complete(struct id_object *id, int error);
/* Makes id->cm; with the CM's mutex held. */
int vb_id_make_cm(struct id_object *id, struct vb_cm *cm);
/* Changes is_sync and the channel; 0 or -errno. */
int vb_id_migrate(struct id_object *id, struct rdma_event_channel *channel);

/* ---- Channels and events (channel.c) --------------------------------------------------------------------------- */

enum { VB_PRIVATE_DATA_MAX = VB_CM_RTU_PRIVATE };

struct event_object {
	struct rdma_cm_event public;
	struct vb_list link;     /* in a channel's queue, or an id's spare ones */
	struct id_object *owner; /* who waits for its acknowledgement: the listener of a request, else its id */
	struct vb_side remote;   /* of a reply */
	struct group *group;     /* of a multicast event */
	bool is_reply;           /* the QP is to be moved when it is fetched */
	uint8_t private_data[VB_PRIVATE_DATA_MAX];
};

struct event_object *vb_event_create(
	struct id_object *id, enum rdma_cm_event_type type, int status); /* NULL: no memory */
/* A spare one of the id; with the events' lock held. */
struct event_object *vb_event_take_spare(struct id_object *id, enum rdma_cm_event_type type, int status);
/* Private data that came with it. */
void vb_event_set_data(struct event_object *event, const uint8_t *data, uint8_t length);
/* From now on the event waits in the channel of its owner. */
void vb_event_queue(struct event_object *event);
/* Like it, with the events' lock held. */
void vb_event_queue_locked(struct event_object *event);
/* An event without more to say; -ENOMEM. */
int vb_event_post(struct id_object *id, enum rdma_cm_event_type type, int status);
/* Takes the next event of the channel, waiting for it as its descriptor says. 0 or -errno. */
int vb_channel_take(struct rdma_event_channel *channel, struct event_object **event);
/* Forgets what waits for id, then waits until all that was fetched is acknowledged. The CM's id is gone. */
void vb_events_finish(struct id_object *id);
/* A request of the listener that nobody has fetched, and nobody can from now on, for its events are forgotten; or NULL.
 * With the CM's mutex held, so that no more events of it come. */
struct id_object *vb_events_take_request(struct id_object *listener);
/* Forgets the event of a multicast group that was left. */
void vb_events_forget_group(struct id_object *id, const struct group *group);
/* Moves id, what waits for it and its requests to channel, and waits until what was fetched is acknowledged. */
void vb_events_move(struct id_object *id, struct rdma_event_channel *channel);
/* False: its parent's, which it leaves alone. */
bool vb_channel_is_ours(struct rdma_event_channel *channel);
void vb_events_lock(void);
void vb_events_unlock(void);
void vb_events_forget(void); /* in a forked child: whose lock it was is not here */

/* ---- Fork (fork.c) ----------------------------------------------------------------------------------------------- */

uint32_t vb_generation(void); /* of this process */
/* vb_connections_lock for id; NULL also when it is the parent's. */
struct vb_cm *vb_id_lock_cm(const struct id_object *id);

/* ---- The CM (handler.c) ---------------------------------------------------------------------------------------- */

vb_connections_handler vb_handle_cm_event;

/* ---- What happens when an event is fetched --------------------------------------------------------------------- */

/* accept.c: the device of a request that was just fetched. -errno: its address has gone since it was queued; it is
 * rejected, and the program never sees it. */
int vb_request_arrive(struct id_object *id);
/* connect.c: moves the QP and confirms; the event becomes ESTABLISHED, CONNECT_RESPONSE or CONNECT_ERROR. */
void vb_reply_arrive(struct id_object *id, struct event_object *event);
/* multicast.c: attaches the QP. */
void vb_group_arrive(struct id_object *id, struct event_object *event);

/* ---- Addresses and routes of ids ------------------------------------------------------------------------------- */

/* address.c: with `calls` held. */
int vb_id_bind(struct id_object *id, const struct sockaddr *addr);
void vb_id_unbind(struct id_object *id);
/* route.c: fills id->way and the public path record. */
int vb_id_set_route(struct id_object *id);
void vb_way_ah_attr(const struct vb_way *way, struct ibv_ah_attr *attr);

/* ---- QPs (qp.c, qp_attr.c): with `calls` held ------------------------------------------------------------------ */

/* INIT to RTR to RTS with what is known of the peer. 0 or -errno. */
int vb_id_connect_qp(struct id_object *id);
void vb_id_fail_qp(struct id_object *id); /* ERR: everything posted is flushed */
int vb_id_init_attr(struct id_object *id, struct ibv_qp_attr *attr, int *mask);
void vb_id_destroy_qp(struct id_object *id);
/* The number of its QP, or number when it has none. */
uint32_t vb_id_qpn(const struct id_object *id, uint32_t number);
bool vb_id_has_srq(const struct id_object *id, bool otherwise);

/* ---- Connections ----------------------------------------------------------------------------------------------- */

/* The limits of a device in place of "as much as possible", and -EINVAL above them. */
int vb_check_resources(const struct id_object *id, const struct rdma_conn_param *param);
/* Private data of param behind the id's connect data, into room bytes of to, which are zero; -EINVAL: too much. */
int vb_put_private_data(const struct id_object *id, const void *data, size_t length, uint8_t *to, size_t room);
uint32_t vb_random_psn(void);
static inline uint8_t vb_at_most(unsigned value, unsigned limit)
{
	return (uint8_t)(value < limit ? value : limit);
}

uint64_t vb_id_service(const struct id_object *id, uint16_t port);

/* ---- Groups (multicast.c) -------------------------------------------------------------------------------------- */

/* With `calls` held. */
void vb_id_detach_groups(struct id_object *id); /* the QP goes */
void vb_id_leave_groups(struct id_object *id);  /* the id goes */

#endif
