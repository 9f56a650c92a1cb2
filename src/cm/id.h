/* Shared by the files of cm/; no other room includes it (the tests do).
 *
 * From the top down, each file calls only those below it:
 *   states.c      which message and which timeout is handled in which state, and what every message passes first
 *   destroy.c     the end of an id whose holder lets go, from any state
 *   active.c      REQ_SENT, MRA_REQ_RCVD, REP_RCVD, MRA_REP_SENT
 *   passive.c     LISTEN, REQ_RCVD, MRA_REQ_SENT, REP_SENT, MRA_REP_RCVD
 *   sidr.c        SIDR_REQ_SENT, SIDR_REQ_RCVD
 *   room.c        half-open requests that are given up to make room for others
 *   disconnect.c  DREQ_SENT, DREQ_RCVD, and how a connection ends by REJ or because it is stale
 *   mra.c         "wait" (MRA), sent and received, on both sides
 *   timewait.c    TIMEWAIT, and records of how a request was answered
 *   retry.c       the timer of an id: sending again until an answer comes
 *   cm.c          the manager; ids, from creation to the end, and their state
 *   queues.c      events for the holder, MADs for the network
 *   half_open.c   requests that are not connections yet, by source address
 *   find.c        communication IDs, and the tables by which ids are found
 *   messages.c    building messages, and the times that they carry
 *   table.c       the hash table
 *
 * Holds: an id has a communication ID, and is found by it, in every state but IDLE and LISTEN; its timer is armed in
 * each state that waits for the peer or for time, and in no other. */
#ifndef VB_CM_ID_H
#define VB_CM_ID_H

#include "base/list.h"
#include "base/secret.h"
#include "base/timers.h"
#include "cm/cm.h"
#include "cm/table.h"

enum { VB_CM_STATES = VB_CM_SIDR_REQ_RCVD + 1, VB_CM_KINDS = VB_CM_APR + 1, VB_CM_BITS_24 = 0xFFFFFF };

struct vb_cm_id {
	struct vb_cm *cm;
	void *user;
	struct vb_list link;      /* in cm->ids */
	struct vb_list events;    /* its own, not yet taken */
	struct vb_list of_source; /* while it is half open */
	struct vb_cm_node by_local, by_remote, by_qp, by_service;
	struct vb_timer timer;

	enum vb_cm_state state;
	bool is_released;  /* the holder has let go: no events, and it is freed when it becomes IDLE */
	bool is_record;    /* released, in TIMEWAIT, and only repeats the answer to a request; counted in cm->records */
	bool is_abandoned; /* the holder knows the end: our DREQ causes no event. Counted in cm->abandoned */
	bool is_sidr;
	uint8_t retries; /* left */
	unsigned tries;  /* of the message that awaits its answer */
	uint8_t max_retries, ack_timeout, target_ack_delay;
	uint8_t reply_timeout; /* of the REQ: how long its sender may take to answer a REP */
	bool was_refused;      /* the peer's port was closed when the message was sent before */
	bool is_silence_told;  /* VB_CM_EVENT_SILENT was posted */
	bool is_early;         /* the first period is not over */
	int error;             /* 0, or why the message that awaits its answer certainly did not arrive */
	vb_time period;        /* between two attempts that cost a retry */
	vb_time due;           /* when the period ends: ours, or that of the peer's REQ or REP */
	vb_time asked_at;      /* when the message that awaits its answer was sent first */
	vb_time pause;         /* until the next attempt within the period, which costs no retry */

	struct vb_cm_path path; /* a listener's: only local, its address */
	uint64_t service_id, remote_guid, local_guid;
	uint64_t transaction_id, disconnect_transaction_id; /* of REQ or SIDR_REQ, and of DREQ */
	uint32_t local_id, remote_id, local_qpn, remote_qpn;
	uint8_t sent[VB_MAD_LENGTH]; /* the last message, to be sent again by timer or to a duplicate */
};

struct vb_cm_pending { /* an event not yet taken */
	struct vb_list link, of_id;
	struct vb_cm_event event;
};

struct vb_cm_source { /* an address that half-open requests came from */
	struct vb_cm_node by_gid;
	struct vb_list row;
	struct vb_list ids; /* the oldest first */
	struct vb_gid gid;
	uint32_t count;
};

enum { VB_CM_ROWS = 33 };

struct vb_cm_half_open {
	struct vb_cm_table by_source;
	struct vb_list rows[VB_CM_ROWS]; /* of sources: row n has those with 2^(n-1) to 2^n - 1 requests */
	uint32_t count, limit;
};

struct vb_cm {
	uint64_t hash_seed;
	struct vb_secret secret; /* source of IDs: one ID does not give away the next */
	uint32_t slot, next_number;
	vb_time tells_silence;
	uint32_t records, abandoned, id_count, outgoing_count;
	struct vb_cm_half_open half_open;
	struct vb_list ids, outgoing, events;
	struct vb_list spares; /* events to come: reserved before anything changes */
	unsigned spare_count;
	struct vb_cm_table by_local, by_remote, by_qp, by_service;
	struct vb_timers timers;
	uint64_t counters[VB_CM_COUNTER_COUNT];
};

static inline void vb_cm_count(struct vb_cm *cm, enum vb_cm_counter counter)
{
	cm->counters[counter]++;
}

/* The states whose timer is armed. */
static inline bool vb_cm_is_waiting(enum vb_cm_state state)
{
	switch (state) {
	case VB_CM_REQ_SENT:
	case VB_CM_MRA_REQ_RCVD:
	case VB_CM_REP_SENT:
	case VB_CM_MRA_REP_RCVD:
	case VB_CM_DREQ_SENT:
	case VB_CM_TIMEWAIT:
	case VB_CM_SIDR_REQ_SENT:
		return true;
	default:
		return false;
	}
}

/* The peer's REQ is to be answered by the holder; or the peer's REP. */
static inline bool vb_cm_owes_reply(enum vb_cm_state state)
{
	return state == VB_CM_REQ_RCVD || state == VB_CM_MRA_REQ_SENT;
}

static inline bool vb_cm_owes_confirmation(enum vb_cm_state state)
{
	return state == VB_CM_REP_RCVD || state == VB_CM_MRA_REP_SENT;
}

/* Our REQ is unanswered, but perhaps for an MRA; or our REP. */
static inline bool vb_cm_awaits_reply(enum vb_cm_state state)
{
	return state == VB_CM_REQ_SENT || state == VB_CM_MRA_REQ_RCVD;
}

static inline bool vb_cm_awaits_confirmation(enum vb_cm_state state)
{
	return state == VB_CM_REP_SENT || state == VB_CM_MRA_REP_RCVD;
}

/* ---- messages.c -------------------------------------------------------------------------------------------------- */

struct vb_cm_message vb_cm_message_of(const struct vb_cm_id *id, enum vb_cm_kind kind);
struct vb_cm_message vb_cm_rejection(const struct vb_cm_id *id, uint16_t reason);
/* Answers to a message that belongs to no id. */
struct vb_cm_message vb_cm_answer_to(const struct vb_cm_message *message, enum vb_cm_kind kind);
struct vb_cm_message vb_cm_rejection_of(const struct vb_cm_message *message, uint16_t reason);
uint64_t vb_cm_new_transaction(struct vb_cm_id *id);
/* 4.096 us * 2^code, but at most about two minutes, so that a peer cannot choose more. */
vb_time vb_cm_span(uint8_t code);
vb_time vb_cm_period(uint8_t ack_timeout, uint8_t response_timeout);

/* ---- find.c ------------------------------------------------------------------------------------------------------ */

uint64_t vb_cm_hash(const struct vb_cm *cm, uint64_t a, uint64_t b, const struct vb_gid *gid); /* gid may be NULL */
enum { VB_CM_NUMBER_BITS = 24, VB_CM_NUMBERS = 1 << VB_CM_NUMBER_BITS };
/* Gives the id a communication ID of its own, by which it is then found. */
void vb_cm_id_number(struct vb_cm_id *id);
void vb_cm_id_link_remote(struct vb_cm_id *id);
void vb_cm_id_link_qp(struct vb_cm_id *id);
void vb_cm_id_link_service(struct vb_cm_id *id);
void vb_cm_id_unlink(struct vb_cm_id *id); /* from all of them */
struct vb_cm_id *vb_cm_find_local(struct vb_cm *cm, uint32_t local_id);
/* The id that a request with the peer's communication ID has made; is_sidr: SIDR numbers its requests apart. */
struct vb_cm_id *vb_cm_find_remote(struct vb_cm *cm, const struct vb_gid *remote, uint32_t remote_id, bool is_sidr);
/* The id whose peer is this QP; NULL for QP 0, which identifies no QP. */
struct vb_cm_id *vb_cm_find_qp(struct vb_cm *cm, const struct vb_gid *remote, uint64_t guid, uint32_t qpn);
struct vb_cm_id *vb_cm_find_listener(struct vb_cm *cm, uint64_t service_id, const struct vb_gid *address);

/* ---- half_open.c ------------------------------------------------------------------------------------------------- */

int vb_cm_half_open_init(struct vb_cm_half_open *half_open, uint32_t limit); /* -ENOMEM */
void vb_cm_half_open_deinit(struct vb_cm_half_open *half_open);
void vb_cm_half_open_add(struct vb_cm_id *id);
void vb_cm_half_open_remove(struct vb_cm_id *id);
/* The id that has to make room for a newcomer from this source; NULL: no other source has more requests. */
struct vb_cm_id *vb_cm_half_open_victim(struct vb_cm *cm, const struct vb_gid *newcomer);

/* ---- queues.c ---------------------------------------------------------------------------------------------------- */

/* Events are reserved before a message or a timeout is handled, so that posting one never fails. */
enum { VB_CM_MOST_EVENTS = 3 /* of one message */ };
bool vb_cm_reserve_events(struct vb_cm *cm);
/* The id's holder gets an event; message may be NULL. */
void vb_cm_post(struct vb_cm_id *id, enum vb_cm_event_kind kind, const struct vb_cm_message *message);
/* A new id's first event, which belongs to its listener. */
void vb_cm_post_request(struct vb_cm_id *listener, struct vb_cm_id *id, enum vb_cm_event_kind kind,
	const struct vb_cm_message *message);
void vb_cm_drop_events(struct vb_cm_id *id);

void vb_cm_send(struct vb_cm_id *id, const struct vb_cm_message *message); /* kept in id->sent */
void vb_cm_send_again(struct vb_cm_id *id);                                /* by timer */
void vb_cm_send_kept(struct vb_cm_id *id);                                 /* to a duplicate */
void vb_cm_send_unkept(struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *message);
enum vb_cm_kind vb_cm_kept(const struct vb_cm_id *id);

/* ---- cm.c -------------------------------------------------------------------------------------------------------- */

void vb_cm_id_free(struct vb_cm_id *id);
/* Stops the timer. An id that becomes IDLE forgets its peer; if it is released, it is freed and must not be used
 * again. */
void vb_cm_id_enter(struct vb_cm_id *id, enum vb_cm_state state);
/* An id for a request that came, with what its message says of the peer; NULL: out of memory. */
struct vb_cm_id *vb_cm_id_create_for(
	struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *message, bool is_sidr);
/* Numbers an IDLE id for a request of our own, and begins the request: the caller adds what it asks for. */
struct vb_cm_message vb_cm_id_begin(
	struct vb_cm_id *id, enum vb_cm_kind kind, const struct vb_cm_path *path, uint64_t service_id);

/* ---- retry.c ----------------------------------------------------------------------------------------------------- */

/* Each sets the timer from now on. */
void vb_cm_await(struct vb_cm_id *id, uint8_t retries, vb_time now); /* for id->sent, to be sent again so often */
void vb_cm_wait(struct vb_cm_id *id, vb_time span, vb_time now);     /* for what the peer needs until it answers */
void vb_cm_arm(struct vb_cm_id *id, vb_time span, vb_time now);      /* for a while */
/* Sends a message, enters the state that awaits its answer, and waits. */
void vb_cm_ask(
	struct vb_cm_id *id, const struct vb_cm_message *message, enum vb_cm_state state, uint8_t retries, vb_time now);
/* Sends it again and waits; false when no retries are left. Within the first period this is free, at pauses that
 * double: duplicates are legal, and the retries are for the peer's time, not for losses. */
bool vb_cm_try_again(struct vb_cm_id *id, vb_time now);
/* There shall be no further attempt. */
void vb_cm_give_up(struct vb_cm_id *id, int error, vb_time now);

/* ---- The states: each function handles a message or a timeout; states.c's tables name them ----------------------- */

typedef void vb_cm_taker(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now);
typedef void vb_cm_timeout(struct vb_cm_id *id, vb_time now);

/* timewait.c */
vb_cm_taker vb_cm_take_late_dreq, vb_cm_take_late;
vb_cm_timeout vb_cm_timewait_over;
void vb_cm_enter_timewait(struct vb_cm_id *id, vb_time now);
/* For `span`, a duplicate of the request gets the same answer. _create: the request was refused without an id. _answer:
 * it is id's, and the answer is in id->sent. */
void vb_cm_record_create(struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *request,
	bool is_sidr, const uint8_t answer[VB_MAD_LENGTH], vb_time span, vb_time now);
void vb_cm_record_answer(struct vb_cm_id *id, vb_time span, vb_time now);

/* mra.c */
vb_cm_taker vb_cm_take_mra_of_req, vb_cm_take_mra_of_rep, vb_cm_take_mra_again;
/* A REQ or REP that the holder has not answered has come again. */
void vb_cm_hold_off(struct vb_cm_id *id, vb_time now);

/* disconnect.c */
vb_cm_taker vb_cm_take_dreq, vb_cm_take_dreq_as_established, vb_cm_take_dreq_as_rejection, vb_cm_take_dreq_crossing,
	vb_cm_take_drep, vb_cm_take_rej, vb_cm_take_rej_and_wait, vb_cm_take_rej_as_end;
vb_cm_timeout vb_cm_dreq_unanswered;
struct vb_cm_message vb_cm_make_dreq(struct vb_cm_id *id);
void vb_cm_abandon_reply(struct vb_cm_id *id, uint16_t reason, vb_time now);
/* The peer's QP belongs to another connection now. */
void vb_cm_end_stale(struct vb_cm_id *id, vb_time now);

/* room.c. True if one more request from this source may wait for an answer; in a full table another is given up for it.
 * Counts either. */
bool vb_cm_make_room(struct vb_cm *cm, const struct vb_gid *source, vb_time now);

/* sidr.c */
vb_cm_taker vb_cm_take_sidr_rep;
vb_cm_timeout vb_cm_sidr_unanswered;
void vb_cm_take_sidr_req(
	struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *message, vb_time now);

/* passive.c */
vb_cm_taker vb_cm_take_rtu;
vb_cm_timeout vb_cm_rep_unanswered;
void vb_cm_take_req(struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *message, vb_time now);

/* active.c */
vb_cm_taker vb_cm_take_rep, vb_cm_take_rep_unread, vb_cm_take_rep_again;
vb_cm_timeout vb_cm_req_unanswered;

#endif
