/* A local peer and a lane's table of them, for the files of host/peers.
 *
 * Holds: a peer is in one of six states, and vb_host_peer_become asserts each change.
 *
 *   IDLE        nothing is under way; `reason` says why requests go over the wire
 *   ASKED       the broker is asked to introduce the two
 *   UNWILLING   likewise, and it has said: the peer is there, and has not asked for this lane
 *   INTRODUCED  socket and shared memory are there; the peer's HELLO has not come
 *   READY       the lane sends to it by memory
 *   CLOSING     it has ended; what is under way to it fails at the deadline
 *
 *            wanted         introduction              HELLO           its end            deadline
 *   IDLE ----------> ASKED --------------> INTRODUCED ------> READY ---------> CLOSING ----------> IDLE
 *                    |  ^                   |    |              |
 *        no QP there |  | the broker ended  |    | refused      | let go
 *                    v  |                   |    v              v
 *                 UNWILLING                 |   IDLE           IDLE, or ASKED where a QP is connected to it
 *                                           +-> ASKED: the introduction was void
 *
 * From ASKED and UNWILLING an answer of the broker (alone), or a refusal of ours, leads back to IDLE. QPs may wait in
 * ASKED, UNWILLING and INTRODUCED (is_awaited), and only their wait has a deadline there. */
#ifndef VB_HOST_HOST_PEER_H
#define VB_HOST_HOST_PEER_H

#include "host/peers/challenges.h"
#include "host/peers/here.h"
#include "host/peers/host_peers.h"
#include "host/peers/segments.h"
#include "host/process.h"

#define VB_HOST_PEER_SLOTS 256
#define VB_HOST_PEER_BATCH 32

enum vb_host_peer_state {
	VB_PEER_IDLE,
	VB_PEER_ASKED,
	VB_PEER_UNWILLING,
	VB_PEER_INTRODUCED,
	VB_PEER_READY,
	VB_PEER_CLOSING,
	VB_PEER_STATES,
};

/* May the peer read our memory? It shows so by the number that is there for it to read. */
enum vb_host_peer_proof {
	VB_PROOF_NONE,       /* it is not asked for, or was wrong */
	VB_PROOF_CHALLENGED, /* the peer has a number to read, and has not said it */
	VB_PROOF_GIVEN,
};

/* Traffic by memory; host_peer_exchange.c. */
struct vb_host_peer_exchange {
	bool is_dozing;                   /* the peer is to wake us, or it is ourselves; else each turn looks */
	bool awaits_room;                 /* and is to wake us when it frees something, too */
	bool lacks_room;                  /* not all that was to be sent could be */
	bool must_ring;                   /* for something else than what was executed */
	unsigned quiet;                   /* looks that found nothing, in a row */
	unsigned untold;                  /* descriptors executed since the peer was last told what was executed */
	unsigned unrung;                  /* told since the bell was last rung */
	unsigned waiting;                 /* descriptors seen that wait behind a pull */
	struct vb_deadline rings_at;      /* at the latest */
	struct vb_deadline rings_late_at; /* the same, for what the peer does not wait for */
	struct vb_deadline tell_at;       /* when the peer is to be told at the latest */
};

/* Made for the first time that it is wanted or introduced. Stays when the peer is gone, for the summary. */
struct vb_host_peer {
	struct vb_host_peers *all;
	uint8_t slot;
	enum vb_host_peer_state state;
	bool is_awaited; /* by QPs */
	vb_time since;   /* the state's deadline counts from here (vb_host_peer_deadline) */

	unsigned gid_count;
	struct vb_gid *gids;              /* by which the lane knows it */
	enum vb_local_reason reason;      /* why requests go over the wire */
	enum vb_local_reason pull_reason; /* why we pull nothing */
	uint32_t pid;
	uint64_t sent, received; /* payload bytes, with VERBENA_STATS=1 */
	bool is_mapped;          /* something was pulled from mapped memory */

	/* From INTRODUCED to CLOSING. */
	struct vb_list link; /* in connected */
	struct vb_shm *shm;
	int bell, pidfd;      /* -1: of ourselves; where there is none; in CLOSING */
	unsigned descriptors; /* that it has, of those counted */
	bool is_ours;         /* the lane with itself */
	bool is_our_users;    /* by the broker's word and by our own look: pidfd tells the process, which we see */
	bool is_used;         /* since it was last looked whether it is */
	bool awaits_memory;   /* we have said the number that we read of it, and wait to hear where its memory is */
	enum vb_host_peer_proof proof;
	uint32_t told[VB_SEGMENTS]; /* by place: the segments that it knows of */
	struct vb_puller puller;
	struct vb_local_peer engine;
	struct vb_host_peer_exchange exchange;
};

/* A lane's local peers. */
struct vb_host_peers {
	struct vb_host_lane *host_lane;
	int epoll_fd;
	struct vb_list connected; /* peers from INTRODUCED to CLOSING */
	unsigned awake_count;     /* of these, the ones that each turn looks at */
	unsigned turns;
	bool has_more; /* the lane has more to say to itself */
	unsigned awaited_count, closing_count;
	struct vb_deadline in_touch_until; /* the broker has lately said something of introductions */
	struct vb_host_peer *by_slot[VB_HOST_PEER_SLOTS];
	struct vb_here here;
	uint64_t *challenges;       /* by slot */
	bool is_open;               /* the broker was told that the lane takes datagrams */
	struct vb_deadline idle_at; /* when it is looked which peers are not used */
	struct vb_descriptor descriptors[VB_HOST_PEER_BATCH];
	struct vb_answer answers[VB_HOST_PEER_BATCH];
};

/* ---- host_peer.c ------------------------------------------------------------------------------------------------- */

bool vb_host_peer_may_become(enum vb_host_peer_state from, enum vb_host_peer_state to);
void vb_host_peer_become(struct vb_host_peer *peer, enum vb_host_peer_state state);
/* When the state's wait is over. */
struct vb_deadline vb_host_peer_deadline(const struct vb_host_peer *peer);
static inline bool vb_host_peer_is_connected(const struct vb_host_peer *peer)
{
	return peer->state >= VB_PEER_INTRODUCED;
}
/* The lane may hear from it by memory, and has told its QPs. */
static inline bool vb_host_peer_is_ready(const struct vb_host_peer *peer)
{
	return peer->state >= VB_PEER_READY;
}
/* The one in slot, made where there was none; NULL: there is no memory. */
struct vb_host_peer *vb_host_peer_get(struct vb_host_peers *all, uint8_t slot);
/* False: there is no memory. */
bool vb_host_peer_know_as(struct vb_host_peer *peer, const struct vb_gid *gid);
void vb_host_peer_await(struct vb_host_peer *peer, vb_time now);
/* Tells the lane that requests go to local peer, or over the wire (NULL). No QP waits any more. */
void vb_host_peer_answer(struct vb_host_peer *peer, struct vb_local_peer *local_peer);
/* QPs wait anew; datagrams leave over the wire. */
void vb_host_peer_put_off(struct vb_host_peer *peer, vb_time now);
void vb_host_peer_ask(struct vb_host_peer *peer); /* the broker, to introduce it */
/* A connected QP has it for its peer. */
bool vb_host_peer_has_use(const struct vb_host_peer *peer);
bool vb_host_peer_has_refused(const struct vb_host_peer *peer); /* for good */
/* Nothing is under way any more: requests go over the wire. */
void vb_host_peer_stay_alone(struct vb_host_peer *peer);
/* The broker has just said something of introductions. */
void vb_host_peers_hear_broker(struct vb_host_peers *all, vb_time now);
bool vb_host_peers_broker_is_silent(const struct vb_host_peers *all, vb_time now);

/* ---- host_peer_connection.c -------------------------------------------------------------------------------------- */

/* Opens the memory; false: there is none. side: which half of it is ours. */
bool vb_host_peer_connect(struct vb_host_peer *peer, int memory, unsigned side);
void vb_host_peer_watch(struct vb_host_peer *peer, int bell, int pidfd); /* takes both */
void vb_host_peer_ready(struct vb_host_peer *peer);                      /* its HELLO has come */
void vb_host_peer_end(struct vb_host_peer *peer, vb_time now);           /* its socket or process has ended */
void vb_host_peer_parted(struct vb_host_peer *peer, vb_time now);        /* it has let go, and lives */
void vb_host_peer_let_go(struct vb_host_peer *peer, vb_time now);        /* though both live: the peer is told */
void vb_host_peer_lose(struct vb_host_peer *peer, vb_time now);          /* at once; takes what it has sent */

/* ---- host_peer_fds.c --------------------------------------------------------------------------------------------- */

bool vb_host_peer_descriptors_take(unsigned count); /* false: all are taken */
void vb_host_peer_descriptors_give_back(unsigned count);
void vb_host_peer_descriptors_forked(void);
/* A descriptor of ours, or -1. Not cancelled: a thread of the program may be here, with the mutex. */
void vb_host_peer_descriptor_close(int fd);
/* Closes a peer's socket, which is counted among the descriptors, and gives it back. Another user's may take as long
 * to close as its other end likes: a thread of its own does that. */
void vb_host_peer_bell_close(int bell, bool is_our_users);
void vb_host_peer_bell_close_untaken(int bell); /* one that is not counted */

/* ---- host_peer_admission.c --------------------------------------------------------------------------------------- */

/* Is an introduction that has so many descriptors taken? IS_USED, or why not. They are counted then. */
enum vb_local_reason vb_host_peers_admit(struct vb_host_peers *all, uint8_t slot, unsigned count);
void vb_host_peers_say_open(struct vb_host_peers *all);                /* to the broker, when that has changed */
void vb_host_peers_watch_idle(struct vb_host_peers *all, vb_time now); /* there are peers, which may become idle */
void vb_host_peers_let_idle_go(struct vb_host_peers *all, vb_time now);

/* ---- host_peer_messages.c ---------------------------------------------------------------------------------------- */

enum vb_host_peer_message_kind {
	VB_PEER_HELLO = 1,
	VB_PEER_VERDICT,
	VB_PEER_SEGMENT,
	VB_PEER_WITHDRAWN,
	VB_PEER_PROOF,
	VB_PEER_MEMORY,
	VB_PEER_PARTED,
};

struct vb_host_peer_message {
	uint8_t kind;
	uint8_t reason; /* HELLO: why not, or IS_USED; VERDICT: why nothing is pulled */
	uint16_t spare;
	union {
		uint32_t pid;     /* HELLO: the sender's, in its own pid namespace */
		uint32_t segment; /* SEGMENT, which comes with its file; WITHDRAWN */
	};
	uint32_t lend_from; /* VERDICT: from how many bytes on the sender pulls; 0: never */
	uint32_t spare_too;
	union {
		uint64_t challenge; /* HELLO: its address; 0: there is none. PROOF: its number */
		struct {
			uint64_t nonce, epochs; /* MEMORY */
		};
		struct {
			uint64_t address, length; /* SEGMENT */
		};
	};
};
_Static_assert(sizeof(struct vb_host_peer_message) == 32, "no padding in a message");

/* Is the process of our user? The broker's word alone does not do: the process may have become another user's since it
 * connected there. IS_USED, or why not. */
enum vb_local_reason vb_host_peer_judge(int pidfd, bool is_same_user);
void vb_host_peer_say_hello(struct vb_host_peer *peer);
void vb_host_peer_say_refusal(int bell, enum vb_local_reason reason);
void vb_host_peer_say_proof(const struct vb_host_peer *peer, uint64_t number);
void vb_host_peer_say_memory(const struct vb_host_peer *peer);
void vb_host_peer_say_verdict(const struct vb_host_peer *peer);
void vb_host_peer_say_parted(const struct vb_host_peer *peer);
void vb_host_peer_say_segments(struct vb_host_peer *peer); /* those that it does not know of */

/* ---- host_peer_exchange.c ---------------------------------------------------------------------------------------- */

bool vb_host_peer_receive(struct vb_host_peer *peer, vb_time now);
void vb_host_peer_receive_all(struct vb_host_peer *peer, vb_time now); /* bounded by what the rings hold */
bool vb_host_peer_transmit(struct vb_host_peer *peer, vb_time now);
void vb_host_peer_settle(struct vb_host_peer *peer, vb_time now);
void vb_host_peer_rouse(struct vb_host_peer *peer);
/* When what is held back is to be sent. */
struct vb_deadline vb_host_peers_exchange_deadline(const struct vb_host_peers *all);

#endif
