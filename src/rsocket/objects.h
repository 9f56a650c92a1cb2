/* The rsocket, and what its files share. rsockets stand on the public functions of librdmacm and libibverbs, on
 * rdmacm/family.h for what a parent's ids and its children's share, and on verbs/wait.h to wait.
 *
 * An rsocket's descriptor is real: an epoll instance over its event channel and its completion channel, which is
 * readable when the rsocket has something to do. So no other file can get its number, and one poll() waits for all
 * that can happen to it.
 *
 * The files stand in layers, and each calls only those below it:
 *   the program's calls      socket, connect, accept, io, datagram_io, iomap, options, poll, repoll
 *   which rsocket it is      table, inherit
 *   beginning and end        listen, bind, create, close, keepalive
 *   progress of one rsocket  wait, progress
 *   what happens to it       events, requests, datagram, datagram_peers
 *   queue pairs and rings    stream, mapping, datagram_qp
 *   state, and its notice    state
 *   the process              pollers, listeners, fork, defaults
 *   formats, pure            wire, datagram_wire, address
 *
 * Threads. `sending` and `receiving` are held by the thread that sends or receives bytes, also while it copies and
 * waits; `lock` is held for all else and never while waiting. Order: sending, receiving, lock. Of two rsockets, a
 * listener's comes before that of a connection that nobody accepted; otherwise no thread holds both.
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
#include <time.h>
#include "base/list.h"
#include "rsocket/wire.h"
#include "verbs/wait.h"

#define VB_RS_EXPORT __attribute__((visibility("default")))

#define VB_RS_IS_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

enum {
	VB_RS_CONTROL_SLOTS = 4,  /* control messages under way */
	VB_RS_RECEIVES_EXTRA = 8, /* receives beyond the credits, for the peer's control messages */
	VB_RS_QUEUE_MIN = 16,
	VB_RS_QUEUE_MAX = 0xFFF0,
	VB_RS_INLINE_MIN = VB_RS_MAPPING_LENGTH,
	VB_RS_INLINE_MAX = 512,
	VB_RS_BUFFER_MIN = 4096,
	VB_RS_BUFFER_MAX = 1 << 28, /* half of it is a message's 29 bits */
	VB_RS_RESOLVE_MS = 2000,
};

/* A datagram rsocket stays idle. state.c has the transitions. */
enum vb_rs_state {
	VB_RS_IDLE,
	VB_RS_BOUND,
	VB_RS_LISTENING,
	VB_RS_CONNECTING,
	VB_RS_CONNECTED,    /* both may send */
	VB_RS_SEND_ONLY,    /* connected, but the peer sends no more, or the program reads no more */
	VB_RS_RECEIVE_ONLY, /* connected, but we send no more */
	VB_RS_CLOSED,       /* was connected, or failed to; what has arrived may still be read */
};

/* How far the peer of a stream is. It only moves down this list. */
enum vb_rs_peer_state {
	VB_RS_PEER_UNCONFIRMED, /* its queue pair may not receive yet: what comes too early is lost and sent again */
	VB_RS_PEER_READY,
	VB_RS_PEER_LEFT, /* it reads nothing more */
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
	int64_t send_timeout_us, receive_timeout_us; /* 0: no limit */
	int linger_s;                                /* -1: off */
	bool is_reuse, is_keepalive, is_ipv6_only, is_nodelay, is_oob_inline;
	int keepalive_idle_s, keepalive_interval_s, keepalive_count;
	bool is_nonblocking;
};

struct rs_datagram;

/* Lanes bring completions to rsockets. 0 lanes: none does. */
struct vb_rs_lanes {
	struct ibv_context *context; /* any of theirs */
	unsigned lanes;
};

struct vb_rsocket {
	int fd;
	int domain, type;
	uint32_t generation; /* of the process that made it */
	atomic_int references;
	pthread_mutex_t sending, receiving, lock;
	pthread_cond_t changed;

	/* Under lock: */
	enum vb_rs_state state;
	enum vb_rs_peer_state peer_state;
	bool is_closing;
	bool is_driven;     /* a thread waits at the descriptor */
	bool is_kicked;     /* it is being woken */
	int error;          /* a positive errno that the program was not told yet */
	atomic_int pollers; /* rpoll calls that wait for this rsocket among others */
	struct vb_rs_options options;

	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct vb_list requests, made; /* a listener's: requests, and connections made of them, until accepted */
	uint32_t made_count, backlog;
	struct vb_list answered; /* in the list of listeners.c */
	uint64_t family;         /* shared with processes that inherit it (rdmacm/family.h) */
	bool is_accepting;       /* the program has waited for connections, or taken one */
	uint32_t children;       /* the number of the process's forks when it began to listen */
	int inherit_error;       /* why a child could not take it over */
	union vb_rs_address peer;

	/* A stream's, made with its queue pair: */
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	bool is_armed;
	struct ibv_mr *send_mr, *receive_mr, *table_mr;
	uint8_t *send_ring, *receive_ring, *table;
	size_t send_room, receive_room, table_room;
	struct vb_rs_sender sender;
	struct vb_rs_receiver receiver;
	uint32_t inline_bytes;
	uint32_t slots;        /* send work requests that are free for data */
	uint32_t control_used; /* send work requests that control messages have taken */
	uint32_t under_way;    /* send work requests that are not complete */
	uint32_t table_at;     /* the entry of our table that the peer writes next */
	struct vb_rs_hello remote;
	uint32_t remote_at;       /* the entry of the peer's table that we write next */
	struct vb_list mappings;  /* mapping.c */
	uint64_t *mapping_used;   /* bits: the peer's entries that we have taken */
	struct vb_list keepalive; /* in the list of keepalive.c */
	int64_t keepalive_due_us;
	struct rs_datagram *datagram; /* datagram.c */
};

static inline bool vb_rs_can_read(const struct vb_rsocket *rs)
{
	return rs->state == VB_RS_CONNECTED || rs->state == VB_RS_RECEIVE_ONLY;
}

static inline bool vb_rs_can_write(const struct vb_rsocket *rs)
{
	return rs->state == VB_RS_CONNECTED || rs->state == VB_RS_SEND_ONLY;
}

static inline bool vb_rs_is_connected(const struct vb_rsocket *rs)
{
	return vb_rs_can_read(rs) || vb_rs_can_write(rs);
}

/* ---- Locks, results ---------------------------------------------------------------------------------------------- */

/* For a thread that sends bytes, or receives some: side is that lock. */
static inline void vb_rs_lock_side(struct vb_rsocket *rs, pthread_mutex_t *side)
{
	pthread_mutex_lock(side);
	pthread_mutex_lock(&rs->lock);
}

static inline void vb_rs_unlock_side(struct vb_rsocket *rs, pthread_mutex_t *side)
{
	pthread_mutex_unlock(&rs->lock);
	pthread_mutex_unlock(side);
}

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

/* ---- Addresses (address.c) --------------------------------------------------------------------------------------- */

socklen_t vb_rs_address_length(const union vb_rs_address *address); /* 0: not of IP */
bool vb_rs_address_equal(const union vb_rs_address *a, const union vb_rs_address *b, bool with_port);
/* The same address as a socket of that family names it: an IPv4 address is a mapped one to AF_INET6. False: it is none
 * of that family. */
bool vb_rs_address_convert(union vb_rs_address *address, sa_family_t family);
/* The GID that an IP address is in RoCEv2. */
union ibv_gid vb_rs_address_gid(const union vb_rs_address *address);
/* As much as the caller has room for; *length is the room and then the address's length. 0 or -EFAULT. */
int vb_rs_copy_address(const union vb_rs_address *from, struct sockaddr *addr, socklen_t *length);

/* ---- The process: defaults.c, fork.c, pollers.c ------------------------------------------------------------------ */

struct vb_rs_defaults {
	struct vb_rs_options options;
	int64_t polling_time_us;
	int wake_up_ms;
};

const struct vb_rs_defaults *vb_rs_defaults(void);
uint32_t vb_rs_clamp(int64_t value, uint32_t least, uint32_t most);

uint32_t vb_rs_generation(void);
bool vb_rs_is_ours(const struct vb_rsocket *rs); /* false: our parent's */
uint32_t vb_rs_children(void);                   /* how often the process has forked */

/* ---- State (state.c): under lock --------------------------------------------------------------------------------- */

int vb_rs_watch(struct vb_rsocket *rs, int fd); /* makes fd one of those behind the rsocket's descriptor. 0 or -errno */
/* The rsocket's state becomes one of those that may follow. */
void vb_rs_set_state(struct vb_rsocket *rs, enum vb_rs_state to);
/* The peer is that far, or further. */
void vb_rs_note_peer(struct vb_rsocket *rs, enum vb_rs_peer_state reached);
/* No byte is read any more: the peer sends none, or the program wants none. We may still write. */
void vb_rs_stop_reading(struct vb_rsocket *rs);
/* The connection is over, and error says why (0: in good order). */
void vb_rs_end(struct vb_rsocket *rs, int error);
/* Something changed that other threads may wait for. */
void vb_rs_changed(struct vb_rsocket *rs);
/* The same, where the descriptor does not show it to the thread that waits there. */
void vb_rs_kick(struct vb_rsocket *rs);
/* The descriptor is readable until the thread that waits there says that it is awake. */
void vb_rs_wake(struct vb_rsocket *rs);
void vb_rs_note_awake(struct vb_rsocket *rs);

/* ---- Streams (stream.c, mapping.c): under lock ------------------------------------------------------------------- */

int vb_rs_stream_open(struct vb_rsocket *rs); /* the id has its device: makes queue pair and rings */
void vb_rs_stream_close(struct vb_rsocket *rs);
void vb_rs_stream_hello(const struct vb_rsocket *rs, struct vb_rs_hello *hello);
void vb_rs_stream_start(struct vb_rsocket *rs, const struct vb_rs_hello *remote);
/* Takes completions; whether there were any. */
bool vb_rs_stream_poll(struct vb_rsocket *rs, unsigned *driven);
/* Posts a work request for the peer's memory. -errno. */
struct vb_rs_post {
	enum vb_rs_op op;
	uint32_t value, freed; /* freed: bytes of our ring that its completion gives back */
	const void *from;
	uint32_t length, lkey;
	uint64_t remote_addr;
	uint32_t remote_key;
	bool is_inline;
};
int vb_rs_stream_post(struct vb_rsocket *rs, const struct vb_rs_post *post);
int vb_rs_stream_control(struct vb_rsocket *rs, enum vb_rs_control what);
/* Sends grants and credits, if they are due and a message may go. */
void vb_rs_stream_send_credits(struct vb_rsocket *rs);
/* How many bytes could be sent now. */
uint32_t vb_rs_stream_room(const struct vb_rsocket *rs);
void vb_rs_mappings_close(struct vb_rsocket *rs);

/* ---- Datagrams (datagram.c, datagram_io.c): under lock ----------------------------------------------------------- */

void vb_rs_datagram_close(struct vb_rsocket *rs);
short vb_rs_datagram_ready(const struct vb_rsocket *rs); /* poll's bits */
/* Takes completions alone, or all that there is; whether something was taken that made the descriptor readable. */
bool vb_rs_datagram_progress(struct vb_rsocket *rs, bool is_all);
bool vb_rs_datagram_arm(struct vb_rsocket *rs); /* whether a completion queue was not armed yet */
void vb_rs_datagram_add_lanes(const struct vb_rsocket *rs, struct vb_rs_lanes *to);

/* ---- Connection events (requests.c, events.c): under lock -------------------------------------------------------- */

void vb_rs_take_request(struct vb_rsocket *rs, struct rdma_cm_event *event);
/* An event of a request, not of the listener's own id: the peer has given up. */
void vb_rs_lose_request(struct vb_rsocket *rs, struct rdma_cm_event *event);
/* Handles what the event channel has; whether that was anything. */
bool vb_rs_take_events(struct vb_rsocket *rs);
struct rdma_conn_param vb_rs_conn_param(const uint8_t *hello);

/* ---- Progress and waiting (progress.c, wait.c): under lock ------------------------------------------------------- */

/* Handles what is there without looking at descriptors, or all that there is. driven: lanes that the caller has just
 * looked at for another rsocket, which is not done again; those that are looked at are added. NULL: none. */
void vb_rs_progress(struct vb_rsocket *rs, unsigned *driven);
void vb_rs_progress_all(struct vb_rsocket *rs, unsigned *driven);
/* Handles all that there is, and has the descriptor become readable with the next that comes: before every sleep. */
void vb_rs_arm_and_look(struct vb_rsocket *rs, unsigned *driven);
void vb_rs_add_lanes(const struct vb_rsocket *rs, struct vb_rs_lanes *to);
/* As poll(); what comes in those lanes is taken in by the caller. There is room for VB_ASLEEP_FDS more behind fds. */
int vb_rs_sleep(const struct vb_rs_lanes *in, struct pollfd *fds, nfds_t count, int timeout_ms);

typedef bool vb_rs_condition(const struct vb_rsocket *rs);
/* Waits until the condition holds. 0; -EAGAIN: not now, or not within timeout_us (0: without end); -EINTR: a signal
 * whose handler does not restart calls; -EBADF: closed meanwhile. */
int vb_rs_wait(struct vb_rsocket *rs, vb_rs_condition *is_met, bool is_nonblocking, int64_t timeout_us);
/* The longest sleep before looking again; 0: the deadline is over. */
int vb_rs_sleep_ms(int64_t deadline_us);

/* ---- Keepalive (keepalive.c): under lock ------------------------------------------------------------------------- */

int vb_rs_keepalive_start(struct vb_rsocket *rs);
void vb_rs_keepalive_stop(struct vb_rsocket *rs);

/* ---- Ending (close.c) -------------------------------------------------------------------------------------------- */

int vb_rs_shut(struct vb_rsocket *rs, int how); /* with lock held. 0 or -errno */
/* Closes one that is in no table, with its last reference. */
void vb_rs_close(struct vb_rsocket *rs);
void vb_rs_put(struct vb_rsocket *rs);

/* ---- Making, binding, listening (create.c, bind.c, listen.c): the last two under lock ---------------------------- */

/* One with its descriptor, a stream with its channel; neither has an id yet. NULL: errno. */
struct vb_rsocket *vb_rs_create(int domain, int type, const struct vb_rs_options *options);
/* Gives the id the options that it has to know before it is bound. */
int vb_rs_set_id_options(struct vb_rsocket *rs);
int vb_rs_bind_stream(struct vb_rsocket *rs, const struct sockaddr *addr);
int vb_rs_bind_any(struct vb_rsocket *rs);
int vb_rs_listen(struct vb_rsocket *rs, int backlog);
/* The program waits for connections: called before it looks for some. */
void vb_rs_note_accepting(struct vb_rsocket *rs);

/* ---- Inheriting (inherit.c) -------------------------------------------------------------------------------------- */

/* The child's own in place of its parent's, with the same descriptor. NULL: errno. */
struct vb_rsocket *vb_rs_inherit(struct vb_rsocket *from);
/* Closes the child's copies of its parent's descriptors, all but the rsocket's own. */
void vb_rs_close_copies(const struct vb_rsocket *from);

/* ---- Descriptors (table.c) --------------------------------------------------------------------------------------- */

/* The rsocket behind fd, kept; NULL, errno: EBADF, or why it could not be inherited. */
struct vb_rsocket *vb_rs_get(int fd);
bool vb_rs_exists(int fd); /* an rsocket, also of a parent */
/* Makes it known under its descriptor; 0 or -errno. The caller's reference goes to the table. */
int vb_rs_enter(struct vb_rsocket *rs);
/* Takes it out: the table's reference becomes the caller's. NULL: it is not there (any more). */
struct vb_rsocket *vb_rs_remove(int fd);

/* ---- Instances of repoll (repoll.c) ------------------------------------------------------------------------------ */

bool vb_repoll_close(int fd);  /* closes fd if it is an instance's */
void vb_repoll_forget(int fd); /* an rsocket is closed: it leaves every list */

#endif
