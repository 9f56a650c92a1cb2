/* The objects behind librdmacm's public structures: each begins with the structure that programs see, so that a
 * program's pointer and ours are the same address.
 *
 * From the top down, each file calls only those below it:
 *   endpoint.c                              an id made ready in one call
 *   accept.c connect.c listen.c             the calls of both sides of a connection
 *   address.c route.c option.c              addresses, routes and options of an id
 *   multicast.c resolve_addrinfo.c          joining groups; resolving names
 *   sync.c                                  synchronous ids, which wait for their events
 *   events.c                                fetching events, and what each means for its id
 *   destroy.c reply.c                       the end of an id; the reply to a request
 *   qp.c groups.c resolution.c              what belongs to an id: QP, groups, a name look-up
 *   devices.c                               opening devices
 *   handler.c                               the CM's events become the program's
 *   id.c                                    ids, and their reserves
 *   channel.c device_list.c                 event queues; the open devices
 *   parameters.c qp_attr.c addrinfo.c kernel_route.c fork.c sockaddr.c text.c family.c    helpers
 *
 * Holds: the NIC and the connection manager live in libibverbs.so.1 and are reached through host/connections.h; a QP is
 * moved only by a thread of the program, in one of its calls or while it fetches an event; every event fetched keeps
 * the ids that it names alive until it is acknowledged.
 *
 * Threads. A program may use different ids, and one channel, in any threads. Locks, in the order in which they may be
 * taken:
 *   1. an id's `calls`: it serializes the program's calls on the id. Verbs and the broker are called under it.
 *   2. the devices' (devices.c), under which devices are opened.
 *   3. the CM's mutex (vb_connections_lock), for each vb_cm_id. No verbs are called under it: the thread that drives
 * the NIC may wait for it.
 *   4. the events' (channel.c): the queues of all channels, the channel of each id, and the id's events there.
 * No thread waits for an event, an acknowledgement or the program with one of them held. The CM's handler (handler.c)
 * has the third and takes the fourth; work that needs the others is left to the thread that fetches the event
 * (events.c).
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
#include "host/call_faults.h"
#include "host/connections.h"

#define VB_EXPORT __attribute__((visibility("default")))

enum {
	VB_PORT = 1, /* the only port of a device */
	VB_PKEY = 0xFFFF,
	VB_QPN_MULTICAST = 0xFFFFFF,
	VB_QPN_LIMIT = 1 << 24,
	VB_RETRIES = 7, /* largest value of the 3-bit retry counts */
};

/* A call's return value: 0, or -1 with errno. error is 0 or -errno. */
static inline int vb_result(int error)
{
	if (!error)
		return 0;
	errno = -error;
	return -1;
}

/* The same for a call that returns a pointer. */
static inline void *vb_result_null(int error)
{
	errno = -error;
	return NULL;
}

/* ---- Devices: opened once, and open as long as the process lives ------------------------------------------------- */

struct device_entry {
	struct vb_list link;
	struct ibv_context *verbs;
	struct ibv_pd *pd;     /* the default for ids of this device */
	struct ibv_xrcd *xrcd; /* the same for XRC; NULL until it is needed */
	uint64_t guid;         /* identifies the machine */
	uint8_t max_responder_resources, max_initiator_depth;
	uint8_t ack_delay; /* 4.096 us * 2^ack_delay */
};

/* device_list.c: with the lock held under which devices are opened, except vb_gid_mtu. */
void vb_device_list_add(struct device_entry *entry);
bool vb_device_list_has(const struct ibv_device *device);
unsigned vb_device_list_count(void);
unsigned vb_device_list_copy(struct ibv_context **to); /* into room for all; their number */
void vb_device_list_forget(void);                      /* in a forked child */
/* The device that has gid, and the gid's index there; or NULL. */
struct device_entry *vb_device_list_find(const struct vb_gid *gid, uint8_t *gid_index);
/* The first device that has an address, and that address; or NULL. */
struct device_entry *vb_device_list_first(struct vb_gid *gid);
enum ibv_mtu vb_device_mtu(const struct device_entry *device);
/* The MTU of connections to this address, an enum ibv_mtu; 0: no device has the address. With the CM's mutex held. */
uint8_t vb_gid_mtu(const struct vb_gid *gid);

/* devices.c: opens all devices, so that requests can come. -ENODEV when there is none. */
int vb_devices_open(void);
/* The device that has gid, and its index there. -ENODEV. */
int vb_device_of_gid(const struct vb_gid *gid, struct device_entry **device, uint8_t *gid_index);
/* The device of a loopback address, chosen as by Linux: the device that has it, else the first one, which reaches
 * itself at its own address. gid is the loopback address, and becomes the address of the device that stands for it.
 * -ENODEV. */
int vb_device_of_loopback(struct vb_gid *gid, struct device_entry **device);
int vb_device_xrcd(struct device_entry *device, struct ibv_xrcd **xrcd);

/* ---- Addresses (sockaddr.c) -------------------------------------------------------------------------------------- */

/* Bytes of an address of that family; 0: it is not an IP family. */
socklen_t vb_sockaddr_length(const struct sockaddr *addr);
struct vb_gid vb_sockaddr_gid(const struct sockaddr *addr); /* 0.0.0.0 mapped, :: zero */
void vb_sockaddr_fill(struct sockaddr_storage *addr, const struct vb_gid *gid, uint16_t port, uint32_t scope);
uint16_t vb_sockaddr_port(const struct sockaddr *addr);
void vb_sockaddr_set_port(struct sockaddr *addr, uint16_t port);
bool vb_sockaddr_is_any(const struct sockaddr *addr);
bool vb_sockaddr_is_multicast(const struct sockaddr *addr);
/* The interface of a link-local address, else 0. */
uint32_t vb_sockaddr_scope(const struct sockaddr *addr);
/* kernel_route.c: the local address that the kernel would send from to remote; local if that is not NULL. 0 or
 * -errno. */
int vb_sockaddr_route(const struct sockaddr *remote, const struct sockaddr *local, struct sockaddr_storage *source);

/* ---- Ids --------------------------------------------------------------------------------------------------------- */

enum id_state {
	ID_IDLE,
	ID_BOUND,
	ID_ADDR_RESOLVED,
	ID_ROUTE_RESOLVED,
	ID_LISTENING,
	ID_CONNECTING, /* from rdma_connect on */
	ID_RESPONDED,  /* the reply was fetched, and the id has no QP to move: rdma_establish follows */
	ID_REQUESTED,  /* an incoming request */
	ID_ACCEPTED,
};

/* The properties of one side of a connection, as in REQ and REP, or of a datagram service. */
struct vb_side {
	uint32_t qpn, psn; /* psn: of the first packet that is sent to it */
	uint32_t qkey;
	uint32_t vendor_id; /* ECE */
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry; /* the other side's limits of retries */
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
	bool is_sync;              /* it has a channel of its own */
	bool is_disconnected;      /* its event was fetched */
	bool has_cqs[2];           /* send, receive: made by rdma_create_qp */
	struct id_options options; /* written under the events' lock, too */
	struct device_entry *device;
	struct vb_binding binding;
	bool is_bound; /* binding must be given back to the broker */
	struct vb_way way;
	struct vb_side local, remote;
	struct vb_list groups; /* groups.c */
	struct ibv_pd *template_pd;
	struct ibv_qp_init_attr *template; /* of the QPs of a listener's requests (endpoint.c) */
	uint8_t *connect_data;             /* rdma_addrinfo's, before all private data */
	size_t connect_length;
	struct resolution *resolution; /* resolution.c; or NULL */

	/* Under the CM's mutex: */
	struct vb_cm_id *cm;
	/* An incoming request that the program has not answered. Its events are not reported, because its context is
	 * still the listener's; if the request is lost meanwhile, rdma_accept fails. Linux does the same. */
	bool is_quiet;

	/* Under the events' lock: */
	struct vb_list spare; /* an event_object for each event that the CM may have for it, so that none is lost */
	uint32_t fetched, acknowledged;
	struct id_object *listener; /* as long as its request waits to be fetched */
	int backlog;                /* of a listener: the number of further requests that may wait */
};

static inline struct id_object *vb_id_of(struct rdma_cm_id *id)
{
	return (struct id_object *)id;
}

/* RDMA_PS_UDP and similar port spaces: SIDR, not connections. */
static inline bool vb_id_is_datagram(const struct id_object *id)
{
	return id->public.qp_type == IBV_QPT_UD;
}

/* id.c */
struct id_object *vb_id_create(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
	enum ibv_qp_type qp_type); /* NULL: errno */
/* The program has never seen the id, or destroys it; its CM's id is gone. */
void vb_id_free(struct id_object *id);
/* Room for the events that the CM may have for it; -ENOMEM. */
int vb_id_reserve_events(struct id_object *id);
/* The id's device from now on. */
void vb_id_set_device(struct id_object *id, struct device_entry *device, const struct vb_gid *gid);
/* Gives the port back. */
void vb_id_unbind(struct id_object *id);
/* Acknowledges the event that a synchronous id shows in public.event. */
void vb_id_drop_shown_event(struct id_object *id);
/* With the CM's mutex held: */
int vb_id_make_cm(struct id_object *id, struct vb_cm *cm); /* a new id->cm; -ENOMEM */
void vb_id_destroy_cm(struct id_object *id);

/* sync.c: the result of a call on the id, error; a synchronous id first waits for the event of a call that began well.
 */
int vb_id_complete(struct id_object *id, int error);
/* Changes is_sync and the channel; 0 or -errno. */
int vb_id_migrate(struct id_object *id, struct rdma_event_channel *channel);

/* resolution.c: with `calls` held. */
int vb_id_begin_resolution(
	struct id_object *id, const char *node, const char *service, const struct rdma_addrinfo *hints);
/* The answer, once; or NULL. */
struct rdma_addrinfo *vb_id_take_resolution(struct id_object *id);
/* Waits for the thread that resolves, and drops its answer. With `calls` held, or by the only user of the id. */
void vb_id_end_resolution(struct id_object *id);

/* ---- Channels and events (channel.c) ----------------------------------------------------------------------------- */

enum { VB_PRIVATE_DATA_MAX = VB_CM_RTU_PRIVATE };

struct event_object {
	struct rdma_cm_event public;
	struct vb_list link;     /* in a channel's queue, or an id's spare ones */
	struct id_object *owner; /* the id that waits for its acknowledgement: the listener of a request, else its id */
	struct vb_side remote;   /* of a reply */
	struct group *group;     /* of a multicast event */
	bool is_reply;           /* the QP is moved when it is fetched */
	uint8_t private_data[VB_PRIVATE_DATA_MAX];
};

struct event_object *vb_event_create(
	struct id_object *id, enum rdma_cm_event_type type, int status); /* NULL: no memory */
/* A spare one of the id; with the events' lock held. */
struct event_object *vb_event_take_spare(struct id_object *id, enum rdma_cm_event_type type, int status);
/* Private data that came with it. */
void vb_event_set_data(struct event_object *event, const uint8_t *data, uint8_t length);
/* Puts the event into the channel of its owner. */
void vb_event_queue(struct event_object *event);
/* The same with the events' lock held. */
void vb_event_queue_locked(struct event_object *event);
/* An event without further content; -ENOMEM. */
int vb_event_post(struct id_object *id, enum rdma_cm_event_type type, int status);
/* Takes the next event of the channel, waiting for it as its descriptor says. 0 or -errno. */
int vb_channel_take(struct rdma_event_channel *channel, struct event_object **event);
/* Removes the waiting events of id, then waits until all fetched ones are acknowledged. The CM's id is gone. */
void vb_events_finish(struct id_object *id);
/* A request of the listener that was not fetched, or NULL. Its events are removed, so that it cannot be fetched any
 * more. With the CM's mutex held, so that the request has no further events. */
struct id_object *vb_events_take_request(struct id_object *listener);
/* Removes the event of a multicast group that was left. */
void vb_events_forget_group(struct id_object *id, const struct group *group);
/* Moves id, its waiting events and its requests to channel, and waits until its fetched events are acknowledged. */
void vb_events_move(struct id_object *id, struct rdma_event_channel *channel);
/* False: the channel is the parent's, and is left alone. */
bool vb_channel_is_ours(struct rdma_event_channel *channel);
void vb_events_lock(void);
void vb_events_unlock(void);

/* ---- Fork (fork.c) ----------------------------------------------------------------------------------------------- */

uint32_t vb_generation(void); /* of this process */
bool vb_id_is_ours(const struct id_object *id);
/* True, with errno: the id is the parent's, and a call about it fails before it takes a lock, which a thread of the
 * parent may have held. stderr says so once. Calls that destroy do without that line. */
bool vb_id_is_refused(const struct id_object *id);
/* The same of what is no id: -VB_FORKED_ERRNO. */
int vb_cm_refuse_forked(void);
/* vb_connections_lock for id; NULL also if the id is the parent's. */
struct vb_cm *vb_id_lock_cm(const struct id_object *id);

/* ---- The CM (handler.c) ------------------------------------------------------------------------------------------ */

vb_connections_handler vb_handle_cm_event;
/* A connection is established: VERBENA_FAULTS may end it. With the CM's mutex held. */
void vb_handle_established(struct vb_cm_id *cm);

/* ---- What happens when an event is fetched ----------------------------------------------------------------------- */

/* reply.c: moves the QP and confirms; the event becomes ESTABLISHED, CONNECT_RESPONSE or CONNECT_ERROR. */
void vb_reply_arrive(struct id_object *id, struct event_object *event);
/* groups.c: attaches the QP. */
void vb_group_arrive(struct id_object *id, struct event_object *event);

/* ---- Addresses and routes of ids --------------------------------------------------------------------------------- */

/* address.c: with `calls` held. */
int vb_id_bind(struct id_object *id, const struct sockaddr *addr);
/* route.c: fills id->way and the public path record. */
int vb_id_set_route(struct id_object *id);

/* ---- QPs (qp.c, qp_attr.c): with `calls` held -------------------------------------------------------------------- */

/* INIT to RTR to RTS, with the peer's parameters. 0 or -errno. */
int vb_id_connect_qp(struct id_object *id);
void vb_id_fail_qp(struct id_object *id); /* ERR: everything posted is flushed */
int vb_id_init_attr(struct id_object *id, struct ibv_qp_attr *attr, int *mask);
void vb_way_ah_attr(const struct vb_way *way, struct ibv_ah_attr *attr);
void vb_id_destroy_qp(struct id_object *id);
/* The number of its QP, or number when it has none. */
uint32_t vb_id_qpn(const struct id_object *id, uint32_t number);
bool vb_id_has_srq(const struct id_object *id, bool otherwise);

/* ---- Connections (parameters.c) ---------------------------------------------------------------------------------- */

/* Checks the resources that a program asks for against the device's limits, -EINVAL. "As much as possible" is allowed.
 */
int vb_check_resources(const struct id_object *id, const struct rdma_conn_param *param);
/* Puts private data behind the id's connect data, into room bytes at to, which are zero; -EINVAL: too much. */
int vb_put_private_data(const struct id_object *id, const void *data, size_t length, uint8_t *to, size_t room);
uint32_t vb_random_psn(void);
static inline uint8_t vb_at_most(unsigned value, unsigned limit)
{
	return (uint8_t)(value < limit ? value : limit);
}

uint64_t vb_id_service(const struct id_object *id, uint16_t port);

/* ---- Groups (groups.c) ------------------------------------------------------------------------------------------- */

struct group {
	struct vb_list link; /* in its id's */
	struct vb_gid gid;
	void *context;
	bool is_send_only;
	bool is_attached; /* the QP */
};

/* With `calls` held. */
struct group *vb_group_find(struct id_object *id, const struct vb_gid *gid);
void vb_group_leave(struct id_object *id, struct group *group);
void vb_id_detach_groups(struct id_object *id); /* the QP goes */
void vb_id_leave_groups(struct id_object *id);  /* the id goes */

#endif
