/* The rsocket and what its files share. rsockets stand on the public functions of librdmacm and libibverbs, and
 * for what a parent's and its children's share on rdmacm/family.h.
 *
 * An rsocket's descriptor is real: an epoll instance over its event channel and its completion channel, which is
 * readable when the rsocket has something to do. So no other file can get its number, and one poll() waits for all
 * that can happen to it.
 *
 * Threads. `sending` and `receiving` are held by the thread that sends or receives bytes, also while it copies and
 * waits; `lock` is held for all else and never while waiting. Order: sending, receiving, lock;
 * of two rsockets a listener's before that of a connection that nobody accepted, else never both.
 * One thread at a time waits at the descriptor (`is_driven`) and does what is to be done; the others sleep until
 * something `changed`.
 * Holds: a thread inside a call keeps the rsocket (references), also when another closes it. */
#ifndef VB_RSOCKET_OBJECTS_H
#define VB_RSOCKET_OBJECTS_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <stdatomic.h>
#include <stdbool.h>
#include "base/list.h"
#include "rsocket/wire.h"

#define VB_RS_EXPORT __attribute__((visibility("default")))

#define VB_RS_IS_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

enum {
	VB_RS_CONTROL_SLOTS = 4,  /* control messages under way */
	VB_RS_RECEIVES_EXTRA = 8, /* receives beyond the credits, for the peer's control messages */
	VB_RS_QUEUE_MIN = 16,
	VB_RS_QUEUE_MAX = 0xFFF0,
	VB_RS_INLINE_MIN = VB_RS_MAPPING_LENGTH,
	VB_RS_BUFFER_MIN = 4096,
	VB_RS_BUFFER_MAX = 1 << 28, /* half of it is a message's 29 bits */
};

enum vb_rs_state {
	VB_RS_IDLE,
	VB_RS_BOUND,
	VB_RS_LISTENING,
	VB_RS_CONNECTING,
	VB_RS_CONNECTED,
	VB_RS_CLOSED, /* was connected, or failed to; what has arrived may still be read */
};

union vb_rs_address {
	struct sockaddr any;
	struct sockaddr_in ipv4;
	struct sockaddr_in6 ipv6;
	struct sockaddr_storage room;
};

struct vb_rs_options {
	uint32_t send_bytes, receive_bytes;
	uint32_t send_queue, receive_queue;
	uint32_t inline_bytes, mappings;
	int64_t send_timeout_us, receive_timeout_us; /* 0: for ever */
	int linger_s;                                /* -1: off */
	bool is_reuse, is_keepalive, is_ipv6_only, is_nodelay, is_oob_inline;
	int keepalive_idle_s, keepalive_interval_s, keepalive_count;
	bool is_nonblocking;
};

struct rs_datagram;

struct rsocket {
	int fd;
	int domain, type;
	uint32_t generation; /* of the process that made it */
	atomic_int references;
	pthread_mutex_t sending, receiving, lock;
	pthread_cond_t changed;

	/* Under lock: */
	enum vb_rs_state state;
	bool can_read, can_write;
	bool is_closing;
	bool is_driven, is_kicked; /* is_kicked: who waits at the descriptor is being woken */
	bool has_left;             /* the peer: it reads nothing more */
	int error;                 /* a positive errno that nobody was told yet */
	atomic_int pollers;        /* rpoll calls that wait for this rsocket among others */
	struct vb_rs_options options;

	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct vb_list requests, made; /* of a listener, until accepted: requests, and connections made of them */
	uint32_t made_count, backlog;
	bool is_watched;   /* by the thread that answers requests */
	uint64_t family;   /* of whoever inherits it (rdmacm/family.h) */
	bool is_accepting; /* the program has waited for connections, or taken one */
	uint32_t children; /* how many the process had forked when it began to listen */
	int inherit_error; /* why a child could not take it over */
	union vb_rs_address peer;

	/* A stream's, made with its queue pair: */
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	bool is_armed;
	bool is_confirmed; /* the peer's queue pair is ready to receive: what comes before is lost and sent again */
	struct ibv_mr *send_mr, *receive_mr, *table_mr;
	uint8_t *send_ring, *receive_ring, *table;
	size_t send_room, receive_room, table_room;
	struct vb_rs_sender sender;
	struct vb_rs_receiver receiver;
	uint32_t inline_bytes;
	uint32_t slots;        /* send work requests that data may take now */
	uint32_t control_used; /* and those that control messages have taken */
	uint32_t under_way;    /* all that were posted and are not complete */
	uint32_t table_at;     /* our table's entry that the peer writes next */
	struct vb_rs_hello remote;
	uint32_t remote_at;       /* the entry of the peer's that we write next */
	struct vb_list mappings;  /* mapping.c */
	uint64_t *mapping_used;   /* bits: the peer's entries that we have taken */
	struct vb_list keepalive; /* in the list of keepalive.c */
	int64_t keepalive_due_us;
	struct rs_datagram *datagram; /* datagram.c */
};

/* ---- Descriptors (table.c) --------------------------------------------------------------------------------------- */

/* The rsocket behind fd, kept; NULL, errno: EBADF, or why it could not be inherited. */
struct rsocket *vb_rs_get(int fd);
bool vb_rs_is(int fd); /* an rsocket, also of a parent */
void vb_rs_put(struct rsocket *rs);
/* Makes it known under its descriptor; 0 or -errno. The caller's reference goes to the table. */
int vb_rs_enter(struct rsocket *rs);
/* Takes it out: the table's reference becomes the caller's. NULL: it is not there (any more). */
struct rsocket *vb_rs_remove(int fd);
uint32_t vb_rs_generation(void);
bool vb_rs_is_ours(const struct rsocket *rs); /* false: our parent's */
uint32_t vb_rs_children(void);                /* how many the process has forked */

int64_t vb_rs_now_us(void);
/* wait.c: for how long to sleep at most before one looks again; 0: the deadline is over. */
int vb_rs_sleep_ms(int64_t deadline_us);

static inline int vb_rs_result(int64_t result)
{
	if (result >= 0)
		return (int)result;
	errno = (int)-result;
	return -1;
}

static inline ssize_t vb_rs_size(ssize_t result)
{
	if (result >= 0)
		return result;
	errno = (int)-result;
	return -1;
}

/* ---- Defaults (options.c) ---------------------------------------------------------------------------------------- */

struct vb_rs_defaults {
	struct vb_rs_options options;
	int64_t polling_time_us;
	int wake_up_ms;
};

const struct vb_rs_defaults *vb_rs_defaults(void);

/* ---- Making and ending (create.c, close.c) ----------------------------------------------------------------------- */

/* A stream without an id yet, with its channel. NULL: errno. */
struct rsocket *vb_rs_create(int domain, int type, const struct vb_rs_options *options);
void vb_rs_destroy(struct rsocket *rs);
/* Closes one that is in no table, with its last reference. */
void vb_rs_abandon(struct rsocket *rs);
int vb_rs_watch(struct rsocket *rs, int fd); /* by the rsocket's descriptor */

/* ---- Inheriting (inherit.c) -------------------------------------------------------------------------------------- */

/* The child's own in place of its parent's, with the same descriptor. NULL: errno. */
struct rsocket *vb_rs_inherit(struct rsocket *from);
void vb_rs_before_fork(void);
/* Closes the child's copies of its parent's descriptors, all but the rsocket's own. */
void vb_rs_close_copies(const struct rsocket *from);

/* ---- Connections (connect.c): under lock ------------------------------------------------------------------------- */

/* Handles what the event channel has; whether that was anything. */
bool vb_rs_take_events(struct rsocket *rs);
struct rdma_conn_param vb_rs_conn_param(const uint8_t *hello);
int vb_rs_bind_stream(struct rsocket *rs, const struct sockaddr *addr);
int vb_rs_bind_any(struct rsocket *rs);
/* The id's family is the rsocket's; of one that has none yet, a new one. */
int vb_rs_set_family(struct rsocket *rs);
/* The connection is over, and error says why (0: in good order). */
void vb_rs_end(struct rsocket *rs, int error);

/* What the address's caller has room for; *length is room and then the address's length. */
int vb_rs_copy_address(const union vb_rs_address *from, struct sockaddr *addr, socklen_t *length);

/* ---- Listeners (listen.c): under lock ---------------------------------------------------------------------------- */

void vb_rs_take_request(struct rsocket *rs, struct rdma_cm_event *event);
/* An event of a request that is none of the listener's own: whoever asked asks no more. */
void vb_rs_lose_request(struct rsocket *rs, struct rdma_cm_event *event);
void vb_rs_drop_requests(struct rsocket *rs);
int vb_rs_listen(struct rsocket *rs, int backlog);
/* The program waits for connections: before it looks for some. */
void vb_rs_note_accepting(struct rsocket *rs);
void vb_rs_listen_stop(struct rsocket *rs); /* before its descriptor is closed */
void vb_rs_forget_listeners(void);          /* in a child: the thread is the parent's */

/* ---- Streams (stream.c): under lock ------------------------------------------------------------------------------ */

int vb_rs_stream_open(struct rsocket *rs); /* the id has its device: queue pair and rings */
void vb_rs_stream_close(struct rsocket *rs);
void vb_rs_stream_hello(const struct rsocket *rs, struct vb_rs_hello *hello);
void vb_rs_stream_start(struct rsocket *rs, const struct vb_rs_hello *remote);
/* Completions; whether there were any. */
bool vb_rs_stream_poll(struct rsocket *rs);
/* Posts at the peer's place; value: what its completion gives back. -errno. */
struct vb_rs_post {
	enum vb_rs_op op;
	uint32_t value, freed; /* freed: bytes of our ring */
	const void *from;
	uint32_t length, lkey;
	uint64_t remote_addr;
	uint32_t remote_key;
	bool is_inline;
};
int vb_rs_stream_post(struct rsocket *rs, const struct vb_rs_post *post);
int vb_rs_stream_control(struct rsocket *rs, enum vb_rs_control what);
/* Grants and credits, if they are due and a message may go. */
void vb_rs_stream_tell(struct rsocket *rs);
/* How many bytes could be sent now. */
uint32_t vb_rs_stream_room(const struct rsocket *rs);

/* ---- Waiting (wait.c): under lock -------------------------------------------------------------------------------- */

/* Does what is there to be done without looking at descriptors, or all that there is. */
void vb_rs_progress(struct rsocket *rs);
void vb_rs_progress_all(struct rsocket *rs);
/* Does all that there is, and then the descriptor becomes readable with the next that comes: before every sleep. */
void vb_rs_arm_and_look(struct rsocket *rs);
/* Something changed that others may wait for. */
void vb_rs_changed(struct rsocket *rs);
/* The same, where the descriptor does not show it to those who wait there. */
void vb_rs_kick(struct rsocket *rs);
/* The descriptor is readable until whoever waits there says that he is awake. */
void vb_rs_wake(struct rsocket *rs);
void vb_rs_is_awake(struct rsocket *rs);

typedef bool vb_rs_condition(const struct rsocket *rs);
/* Waits for it. 0; -EAGAIN: not now, or not within timeout_us (0: for ever); -EINTR: a signal whose handler does
 * not restart calls; -EBADF: closed meanwhile. */
int vb_rs_wait(struct rsocket *rs, vb_rs_condition *is_met, bool is_nonblocking, int64_t timeout_us);

/* ---- Polling (poll.c) -------------------------------------------------------------------------------------------- */

void vb_rs_wake_pollers(void);
void vb_rs_forget_pollers(void); /* in a child: they are the parent's threads */
/* repoll.c: closes fd if it is an instance's. */
bool vb_repoll_close(int fd);
void vb_repoll_forget(int fd); /* an rsocket is closed: it leaves every list */

/* ---- Keepalive (keepalive.c): under lock ------------------------------------------------------------------------- */

int vb_rs_keepalive_start(struct rsocket *rs);
void vb_rs_keepalive_stop(struct rsocket *rs);
void vb_rs_forget_keepalives(void); /* in a child: so is this thread */

/* ---- Mappings (mapping.c) ---------------------------------------------------------------------------------------- */

void vb_rs_mappings_close(struct rsocket *rs);

/* ---- Datagrams (datagram.c) -------------------------------------------------------------------------------------- */

int vb_rs_datagram_open(struct rsocket *rs);
int vb_rs_datagram_inherit(struct rsocket *rs, const struct rsocket *from); /* the kernel's socket is both's */
void vb_rs_datagram_leave(const struct rsocket *from); /* closes the child's copy of what is its parent's */
void vb_rs_datagram_close(struct rsocket *rs);
int vb_rs_datagram_bind(struct rsocket *rs, const struct sockaddr *addr, socklen_t length);
int vb_rs_datagram_connect(struct rsocket *rs, const struct sockaddr *addr, socklen_t length);
ssize_t vb_rs_datagram_send(struct rsocket *rs, const struct iovec *iov, size_t count, int flags,
	const struct sockaddr *to, socklen_t length);
/* *from_length is room and then the address's length; *message_flags gets MSG_TRUNC. */
ssize_t vb_rs_datagram_receive(struct rsocket *rs, const struct iovec *iov, size_t count, int flags,
	struct sockaddr *from, socklen_t *from_length, int *message_flags);
short vb_rs_datagram_ready(const struct rsocket *rs);
/* Completions alone, or all that there is; whether something was taken that made the descriptor readable. */
bool vb_rs_datagram_progress(struct rsocket *rs, bool is_all);
bool vb_rs_datagram_arm(struct rsocket *rs); /* whether one was not armed yet */
int vb_rs_datagram_name(struct rsocket *rs, struct sockaddr *addr, socklen_t *length);
int vb_rs_datagram_peer(struct rsocket *rs, struct sockaddr *addr, socklen_t *length);

#endif
