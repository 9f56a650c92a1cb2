/* The objects behind the public verbs structures. Each begins with the structure that programs see, followed by our own
 * fields: a program's pointer and ours are the same address.
 *
 * The files stand in two layers, and each calls only those below it: context.c, with ibv_open_device and
 * ibv_close_device, is above all; objects.c, with the lists of a context's objects, is below all; one file per kind of
 * object is between them.
 *
 * Holds: the engine's "user" of a CQ, SRQ or QP is its object here, and an object's context never changes. Objects are
 * linked into their context, so that ibv_close_device finds those that a program left behind.
 * Locks, in the order in which they may be taken: the host lane's mutex (host), an event queue's, an object's own.
 * Not here: protocol of any kind (engine/), threads and sockets (host/). */
#ifndef VB_VERBS_OBJECTS_H
#define VB_VERBS_OBJECTS_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include "base/invariant.h"
#include "base/list.h"
#include "base/lock.h"
#include "engine/nic.h"
#include "host/call_faults.h"
#include "host/host.h"
#include "verbs/later.h"

/* The header redirects these names through inline functions; we define the functions themselves. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define VB_EXPORT __attribute__((visibility("default")))

/* Figures that every device of ours reports beside the engine's limits. */
#define VB_PORT        1 /* the only port */
#define VB_PKEYS       1
#define VB_MAX_OBJECTS 1048576 /* CQs, PDs, SRQs, AHs: bounded by memory alone */

/* ---- Devices (device.c) ------------------------------------------------------------------------------------------ */

struct device_object {
	struct ibv_device ibv;
	void *provider_ops; /* direct-verbs libraries look here for their own table: stays NULL */
	void *room[3];
	struct vb_list link;
	unsigned refs; /* lists that hold it, and contexts opened from it */
	uint64_t node_guid;
};

/* One more reference to device; vb_device_object_put gives it up. */
void vb_device_object_get(struct device_object *device);
void vb_device_object_put(struct device_object *device);

/* ---- Events (events.c) ------------------------------------------------------------------------------------------- */

/* Closes a descriptor of ours that was made after so many losses. After another loss the number may belong to a
 * descriptor of the program, which is left alone. */
static inline void vb_close_unless_lost(int fd, unsigned losses)
{
	if (fd >= 0 && losses == vb_host_losses())
		close(fd);
}

/* Its descriptor is readable exactly while an event waits. */
struct event_queue {
	int fd; /* eventfd, semaphore: one count per event, except for the uncounted ones */
	pthread_mutex_t lock;
	struct vb_list waiting;
	atomic_uint count;  /* of events; written under the lock */
	unsigned uncounted; /* events that are not counted in fd: their reader brought them and is about to take one */
	unsigned losses;    /* vb_host_losses() before fd was made */
};

int vb_event_queue_init(struct event_queue *queue);
void vb_event_queue_deinit(struct event_queue *queue);

/* ---- Context (context.c) ----------------------------------------------------------------------------------------- */

enum object_kind { /* in the order in which ibv_close_device destroys the objects that are left */
	OBJECT_FLOW,
	OBJECT_COUNTERS,
	OBJECT_QP,
	OBJECT_COMP_CNTR,
	OBJECT_IND_TABLE,
	OBJECT_WQ,
	OBJECT_SRQ,
	OBJECT_XRCD,
	OBJECT_MW,
	OBJECT_MR,
	OBJECT_DMAH,
	OBJECT_DM,
	OBJECT_CQ,
	OBJECT_AH,
	OBJECT_PARENT_DOMAIN,
	OBJECT_PD,
	OBJECT_TD,
	OBJECT_CHANNEL,
	OBJECT_KINDS,
};

struct context_object {
	struct verbs_context verbs;
	struct vb_device *host;
	struct device_object *device;
	struct event_queue async;
	pthread_mutex_t objects_lock;
	/* Held while a region is closed for a change, or device memory changes its pages. Before the lane's mutex. */
	pthread_mutex_t rereg_lock;
	struct vb_list objects[OBJECT_KINDS];
	struct vb_list domains;            /* of struct xrc_domain, under verbs.context.mutex */
	_Atomic size_t dm_bytes;           /* device memory allocated */
	struct fault_events *fault_events; /* or NULL */
	atomic_bool has_port_fault;        /* the port is said to be down */
};

static inline struct context_object *vb_context_of(struct ibv_context *context)
{
	return vb_container_of(context, struct context_object, verbs.context);
}

static inline struct vb_device *vb_host_of(struct ibv_context *context)
{
	return vb_context_of(context)->host;
}

/* The first lane, which has the objects that only one lane may have. */
static inline struct vb_host_lane *vb_host_lane_of(struct ibv_context *context)
{
	return vb_device_host_lane(vb_host_of(context));
}

/* True in a forked child, if its parent opened the device. Nothing of it may be used then, and no lock waited for. */
static inline bool vb_is_forked(struct ibv_context *context)
{
	return vb_device_is_forked(vb_host_of(context));
}

/* The same for a call that is refused then, other than one that destroys or closes: stderr says so, once. */
static inline bool vb_refuses_forked(struct ibv_context *context)
{
	return vb_device_refuses_forked(vb_host_of(context));
}

/* objects.c */
void vb_object_add(struct ibv_context *context, enum object_kind kind, struct vb_list *link);
void vb_object_remove(struct ibv_context *context, struct vb_list *link);
/* A number for the handle fields. It is unique in the process and has no other meaning. */
uint32_t vb_object_handle(void);
/* Sets errno to error, a positive one, and returns the NULL of a failed create. */
static inline void *vb_fail(int error)
{
	errno = error;
	return NULL;
}

/* Counts the objects that depend on another, which is not destroyed while there are any. change: 1 or -1. */
static inline void vb_users_add(atomic_uint *users, int change)
{
	unsigned before = atomic_fetch_add(users, (unsigned)change);
	assert(change > 0 || before > 0);
	(void)before;
}

/* ---- PD, MR, MW, AH ---------------------------------------------------------------------------------------------- */

/* A thread domain: objects made in it may do without locks of their own. */
struct td_object {
	struct ibv_td ibv;
	struct vb_list link;
	struct vb_host_lane *host_lane; /* of objects made in it */
	atomic_uint users;              /* parent domains */
};

/* A protection domain, or a parent domain: another name of one, with a thread domain and the program's allocators. */
struct pd_object {
	struct ibv_pd ibv;
	struct vb_list link;
	struct vb_pd *pd;
	atomic_uint users;      /* objects made in it, also address handles and parent domains, unknown to the engine */
	struct pd_object *base; /* the domain that a parent domain holds; NULL: this is none */
	struct td_object *td;   /* or NULL */
	struct ibv_parent_domain_init_attr allocators; /* alloc and free NULL unless given */
};

/* Adds change to the users of pd, which may be NULL. */
static inline void vb_pd_hold(struct ibv_pd *pd, int change)
{
	if (pd)
		vb_users_add(&((struct pd_object *)pd)->users, change);
}

/* The purpose of memory, for the program's allocator. */
enum vb_allocation { VB_ALLOCATION_QP = 1, VB_ALLOCATION_SRQ, VB_ALLOCATION_CQ };

/* pd.c: zeroed memory for an object, from the program's allocator if pd is a parent domain that has one. pd may be
 * NULL. *is_programs says which, for vb_pd_free. NULL: out of memory. */
void *vb_pd_alloc(struct ibv_pd *pd, size_t size, enum vb_allocation kind, bool *is_programs);
void vb_pd_free(struct ibv_pd *pd, void *memory, enum vb_allocation kind, bool is_programs);
struct ibv_pd *vb_pd_ops_alloc_parent(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr);
struct ibv_td *vb_td_ops_alloc(struct ibv_context *context, struct ibv_td_init_attr *attr);
int vb_td_ops_dealloc(struct ibv_td *td);

/* Device memory. The device has none of its own, so it is memory of the process. */
#define VB_MAX_DM_BYTES (16u << 20)

struct dm_object {
	struct ibv_dm ibv;
	struct vb_list link;
	uint8_t *bytes;
	size_t length, rounded; /* to whole pages */
	void *mapping;          /* with the room for their alignment */
	size_t mapping_length;
	atomic_uint regions; /* registered on it */
	struct vb_lock lock; /* held while the CPU writes, and while the pages are exchanged */
	int file;            /* of large pieces, and of exported ones: has their pages; else -1 */
	unsigned losses;     /* vb_host_losses() before file was made */
	uint32_t segment;    /* the number by which local peers know it, or 0 */
	bool is_of_child;    /* made after a fork: linked nowhere, and the child may use it */
};

struct ibv_dm *vb_dm_ops_alloc(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int vb_dm_ops_free(struct ibv_dm *dm);
struct ibv_mr *vb_dm_ops_reg_mr(
	struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset, size_t length, unsigned int access);

/* mr_ex.c */
struct dmah_object {
	struct later_dmah ibv;
	struct vb_list link;
	atomic_uint regions; /* registered with it */
};

struct later_buf {
	struct ibv_pd *pd; /* held */
	void *addr;
	size_t size;
};

struct mr_object {
	struct ibv_mr ibv;
	struct vb_list link;
	struct vb_mr *mr;
	struct vb_mr_config config; /* as registered last */
	bool is_fixed;              /* it cannot be registered anew: null, of device memory, of a dma-buf */
	struct dm_object *dm;       /* held, or NULL */
	struct dmah_object *dmah;   /* held, or NULL */
	void *mapping;              /* of a dma-buf, or NULL */
	size_t mapping_length;
};

/* mr.c: access for the engine, without optional bits. 0, or EINVAL: it has bits that are not in known. */
int vb_mr_access(unsigned int access, unsigned int known, uint32_t *engine_access);
/* Makes a region and links it into its context; addr is the address that the program sees. NULL with errno. */
struct mr_object *vb_mr_object_create(struct ibv_pd *pd, const struct vb_mr_config *config, void *addr);
struct ibv_mr *vb_mr_ops_alloc_null(struct ibv_pd *pd);
/* advise.c */
int vb_mr_ops_advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sg_list,
	uint32_t num_sges);

struct mw_object {
	struct ibv_mw ibv;
	struct vb_list link;
	struct vb_mw *mw;
};

struct ah_object {
	struct ibv_ah ibv;
	struct vb_list link;
	struct vb_av av;
};

/* ah.c: programs may write IPv4 multicast as ff0e::ffff:a.b.c.d; this gives the mapped address. */
struct vb_gid vb_gid_plain(const union ibv_gid *gid);
/* ah.c: the address vector of attr. -EINVAL: it cannot be reached from this device; -ENETUNREACH, -EHOSTUNREACH: the
 * kernel has no route there. Called without any mutex. */
int vb_av_from_ah_attr(struct ibv_context *context, const struct ibv_ah_attr *attr, struct vb_av *av);
void vb_av_to_ah_attr(const struct vb_av *av, struct ibv_ah_attr *attr);

/* ---- CQ, completion channel -------------------------------------------------------------------------------------- */

struct channel_object {
	struct ibv_comp_channel ibv;
	struct vb_list link;
	struct event_queue queue;
	atomic_uint lanes; /* of the CQs that it has and had */
};

struct cq_object {
	struct ibv_cq_ex ibv;
	struct vb_list link;
	struct vb_cq *cq;
	struct vb_host_lane *host_lane; /* of its QPs that are in no thread domain */
	atomic_uint lanes;              /* of the QPs that it has and had: polling drives these */
	bool keeps_time;
	atomic_uint named_by; /* QPs that were made with it; with tags, they complete elsewhere */

	/* The completion that the extended poller shows; poll_lock is held from start_poll to end_poll. */
	struct vb_wc current;
	struct vb_lock poll_lock;
	bool is_single_threaded;
	bool is_programs_memory;      /* see vb_pd_alloc */
	struct ibv_pd *parent_domain; /* or NULL */

	/* Under the channel's lock: */
	struct vb_list waiting; /* in the channel's list while notices > 0 */
	uint32_t notices;
	uint32_t comp_delivered;
	/* Under the context's async lock: */
	uint32_t async_delivered;
};

static inline struct cq_object *vb_cq_of(struct ibv_cq *cq)
{
	return (struct cq_object *)cq;
}

/* From now on, polling cq drives that lane, too. */
void vb_cq_add_lane(struct cq_object *cq, struct vb_host_lane *host_lane);
int vb_cq_ops_req_notify(struct ibv_cq *cq, int solicited_only);
struct ibv_cq_ex *vb_cq_ops_create_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
/* cq_ex.c: fills in the pollers and readers of a CQ. */
void vb_cq_ex_init(struct cq_object *cq, uint64_t wc_flags);
int vb_cq_ex_start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);
int vb_cq_ex_next_poll(struct ibv_cq_ex *cq);
/* cq_poll.c */
int vb_cq_ops_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc);
/* For a poller that found nothing: receives, advances and transmits, then polls again. 0 or more, or -errno. */
int vb_cq_drive_and_poll(struct cq_object *cq, struct vb_wc *wc, int n);

/* ---- XRC (xrc.c) ------------------------------------------------------------------------------------------------- */

struct xrc_domain;

/* A handle of a domain. */
struct xrcd_object {
	struct ibv_xrcd ibv;
	struct vb_list link;
	struct xrc_domain *domain;
	struct vb_xrcd *xrcd; /* the domain's */
	atomic_uint users;    /* SRQs and QPs made with this handle */
};

struct ibv_xrcd *vb_xrcd_ops_open(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int vb_xrcd_ops_close(struct ibv_xrcd *xrcd);

/* ---- SRQ --------------------------------------------------------------------------------------------------------- */

struct srq_object {
	struct ibv_srq ibv;
	struct vb_list link;
	struct vb_srq *srq;
	struct xrcd_object *xrcd; /* NULL: not XRC */
	bool has_tags;
	bool is_programs_memory; /* see vb_pd_alloc */
	uint32_t async_delivered;
};

struct ibv_srq *vb_srq_ops_create_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int vb_srq_ops_get_num(struct ibv_srq *srq, uint32_t *number);
int vb_srq_ops_post_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad_wr);

/* ---- QP ---------------------------------------------------------------------------------------------------------- */

struct wr_builder; /* of the ibv_wr_* calls, qp_ex.c */

/* comp_cntr.c */
struct comp_cntr_object {
	struct later_comp_cntr ibv;
	struct vb_list link;
	struct vb_work_count work;
	atomic_uint attached; /* kinds of work of QPs */
	atomic_uint lanes;    /* of these QPs */
};

/* The length of ibv_qp_ex in release 44. Operations of newer headers follow it. It is computed because it contains a
 * mutex, which is larger on 64-bit ARM than on x86-64. */
#define VB_QP_EX_BYTES  (offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(void (*)(void)))
#define VB_LATER_QP_OPS 8

struct qp_object {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
		struct {
			uint8_t of_release_44[VB_QP_EX_BYTES];
			void (*later_ops[VB_LATER_QP_OPS])(void); /* later.h; others stay NULL */
		};
	};
	struct vb_list link;
	struct vb_qp *qp;
	struct vb_device *host;
	struct vb_host_lane *host_lane;
	struct wr_builder *builder; /* NULL without send_ops_flags */
	bool is_programs_memory;    /* see vb_pd_alloc */
	uint32_t async_delivered;
	atomic_uint flows;                                   /* steer to it */
	struct comp_cntr_object *counters[VB_COUNTED_KINDS]; /* count its work; each may be NULL */
	struct ind_table_object *table; /* over which a raw packet QP spreads the frames that it receives, or NULL */
	struct wq_object *wq;           /* this is the queue of a WQ; NULL: it is a QP of the program */
	struct vb_gid *groups;          /* multicast groups attached, under the context's mutex */
	unsigned group_count;

	/* A receiving XRC QP may have several handles (ibv_open_qp). Under the host lane's mutex: */
	struct qp_object *owner;    /* the handle that made the engine's QP; most QPs are their own */
	struct vb_list opened;      /* owner: the other handles */
	struct vb_list opened_link; /* in the owner's list */
	struct xrcd_object *xrcd;
	bool is_closed; /* destroyed, but kept as the owner of others */
};

static inline struct qp_object *vb_qp_of(struct ibv_qp *qp)
{
	return (struct qp_object *)qp;
}

struct ibv_qp *vb_qp_ops_create_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *vb_qp_ops_open(struct ibv_context *context, struct ibv_qp_open_attr *attr);
/* xrc.c: a new object becomes its own owner. xrcd is NULL if it is in no domain. */
void vb_qp_own(struct qp_object *qp, struct xrcd_object *xrcd);
/* qp is being destroyed. True: it was the last handle, so the engine's QP goes. With the host lane's mutex held. */
bool vb_qp_disown(struct qp_object *qp, struct qp_object **owner);
/* qp_ex.c: the ibv_wr_* operations. 0 or errno. */
int vb_qp_ex_complete(struct ibv_qp_ex *qp);
int vb_qp_ex_init(struct qp_object *qp, uint64_t send_ops_flags);
/* comp_cntr.c: qp is gone and counts no more. */
void vb_comp_cntr_detach(struct qp_object *qp);
/* mcast.c: leaves every group. */
void vb_qp_leave_groups(struct qp_object *qp);

/* ---- Raw packet QPs: flows (flow.c), receive work queues and the tables that spread over them (raw.c) ------------ */

#define COUNTERS_POINTS 64

/* counters.c */
struct counters_object {
	struct ibv_counters ibv;
	struct vb_list link;
	struct vb_host_lane *host_lane;
	struct vb_flow_tally tally; /* under the host lane's mutex */
	pthread_mutex_t mutex;
	unsigned flows; /* count into it */
	unsigned point_count;
	struct ibv_counter_attach_attr points[COUNTERS_POINTS];
};

struct flow_object {
	struct ibv_flow ibv;
	struct vb_list link;
	struct vb_device_flow *flow;
	struct qp_object *qp;
	struct counters_object *counters; /* or NULL */
};

/* A work queue is the receiving half of a raw packet QP. */
struct wq_object {
	struct ibv_wq ibv;
	struct vb_list link;
	struct qp_object queue;
	atomic_uint tables; /* contain it */
	uint32_t async_delivered;
};

struct ind_table_object {
	struct ibv_rwq_ind_table ibv;
	struct vb_list link;
	atomic_uint users; /* QPs */
	uint32_t count;
	struct wq_object *queues[];
};

struct ibv_flow *vb_flow_ops_create(struct ibv_qp *qp, struct ibv_flow_attr *attr);
int vb_flow_ops_destroy(struct ibv_flow *flow);
static inline struct counters_object *vb_counters_of(struct ibv_counters *counters)
{
	return vb_container_of(counters, struct counters_object, ibv);
}
struct ibv_counters *vb_counters_ops_create(struct ibv_context *context, struct ibv_counters_init_attr *attr);
int vb_counters_ops_destroy(struct ibv_counters *counters);
int vb_counters_ops_attach(struct ibv_counters *counters, struct ibv_counter_attach_attr *attr, struct ibv_flow *flow);
int vb_counters_ops_read(struct ibv_counters *counters, uint64_t *values, uint32_t count, uint32_t flags);
/* Adds change to the flows that count into it; NULL is allowed. */
void vb_counters_hold(struct counters_object *counters, int change);
struct ibv_wq *vb_wq_ops_create(struct ibv_context *context, struct ibv_wq_init_attr *attr);
int vb_wq_ops_modify(struct ibv_wq *wq, struct ibv_wq_attr *attr);
int vb_wq_ops_destroy(struct ibv_wq *wq);
struct ibv_rwq_ind_table *vb_ind_table_ops_create(
	struct ibv_context *context, struct ibv_rwq_ind_table_init_attr *attr);
int vb_ind_table_ops_destroy(struct ibv_rwq_ind_table *table);
/* Checks attr of a raw packet QP: 0 or errno. */
int vb_raw_check(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr);
/* Has qp, which was just made, spread its frames as attr asks. With the host lane's mutex held; 0 or -errno. */
int vb_raw_spread(struct qp_object *qp, const struct ibv_qp_init_attr_ex *attr);

/* post.c */
/* Fills in the fields of to that bind mw; 0 or EINVAL. */
int vb_bind_translate(const struct ibv_mw_bind_info *info, struct ibv_mw *mw, uint32_t rkey, struct vb_send_wr *to);
int vb_qp_ops_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int vb_qp_ops_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int vb_srq_ops_post_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int vb_qp_ops_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
struct ibv_mw *vb_mw_ops_alloc(struct ibv_pd *pd, enum ibv_mw_type type);
int vb_mw_ops_dealloc(struct ibv_mw *mw);

/* device_attr.c */
int vb_context_ops_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
	struct ibv_device_attr_ex *attr, size_t attr_size);
int vb_context_ops_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t attr_size);
int vb_context_ops_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);

/* For the private nodes (private.c): gid.c, text.c. */
int vb_query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index, int *type);
const char *vb_wr_opcode_str(enum ibv_wr_opcode opcode);

/* ---- Events again: what needs the objects ------------------------------------------------------------------------ */

/* The sink of every opened device. */
void vb_sink_on_event(const struct vb_event *event);
void vb_sink_on_port(void *user, bool is_active);
void vb_sink_on_gid_change(void *user);
/* An event of context about the object with that link in its list; NULL: about the port or the device. With
 * objects_lock held if there is a link. */
void vb_async_event_queue(struct context_object *context, enum ibv_event_type type, struct vb_list *link);

/* Discard the events of an object that wait, then wait until all delivered ones are acknowledged. The engine's object
 * is gone, so no new event comes. */
void vb_cq_events_finish(struct cq_object *cq);
void vb_cq_notify(struct cq_object *cq); /* an event for its channel, if it has one */
void vb_qp_events_finish(struct qp_object *qp);
void vb_srq_events_finish(struct srq_object *srq);
void vb_wq_events_finish(struct wq_object *wq);
void vb_async_events_discard(struct context_object *context);

#endif
