/* What the files of cm/ share; nobody else looks inside.
 *
 *   states.c      which message and which timeout is taken in which state, and what any message comes through
 *   active.c      REQ_SENT, MRA_REQ_RCVD, REP_RCVD, MRA_REP_SENT
 *   passive.c     LISTEN, REQ_RCVD, MRA_REQ_SENT, REP_SENT, MRA_REP_RCVD
 *   disconnect.c  DREQ_SENT, DREQ_RCVD, TIMEWAIT, and how any state ends by REJ, staleness or destruction
 *   sidr.c        SIDR_REQ_SENT, SIDR_REQ_RCVD
 *   half_open.c   requests that are not connections yet, by whence they come
 *   cm.c          the manager: ids and how they are found, queues in and out
 *   messages.c    building messages, and the times that they carry
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

enum { VB_CM_STATES = VB_CM_SIDR_REQ_RCVD + 1, VB_CM_KINDS = VB_CM_APR + 1 };

struct vb_cm_id {
	struct vb_cm *cm;
	void *user;
	struct vb_list link;      /* in cm->ids */
	struct vb_list events;    /* its own, not yet taken */
	struct vb_list of_source; /* while it is half open */
	struct vb_cm_node by_local, by_remote, by_qp, by_service;
	struct vb_timer timer;

	enum vb_cm_state state;
	bool is_orphan; /* nobody holds it: it has no events and is freed when it would become idle */
	bool is_ghost;  /* an orphan that only knows what a request was answered */
	bool is_sidr;
	bool is_over;    /* its user knows: what becomes of our DREQ is no event. Counted in cm->abandoned */
	uint8_t retries; /* left */
	unsigned tries;  /* of what awaits its answer */
	uint8_t max_retries, ack_timeout, target_ack_delay;
	uint8_t reply_timeout; /* of the REQ: for how long its sender may take to answer a REP */
	bool was_refused;      /* the peer's port was closed when it was sent before */
	bool is_silence_told;
	bool is_early; /* its first period is not over */
	int error;     /* why a message that awaits its answer did not get there, for certain; 0 */
	vb_time period,
		due; /* until a message is sent again and counted, and when that is: ours, or the peer's REQ or REP */
	vb_time asked_at; /* when what awaits its answer was sent first */
	vb_time pause;    /* until it is sent again before, which costs no retry */

	struct vb_cm_path path; /* a listener's: only local, its address */
	uint64_t service_id, remote_guid, local_guid;
	uint64_t transaction_id, disconnect_transaction_id; /* of REQ or SIDR_REQ, and of DREQ */
	uint32_t local_id, remote_id, local_qpn, remote_qpn;
	uint8_t sent[VB_MAD_LENGTH]; /* last: what is sent again, by timer or to a duplicate */
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
	struct vb_list rows[VB_CM_ROWS]; /* of sources: in row n, those with 2^(n-1) to 2^n - 1 requests */
	uint32_t count, limit;
};

struct vb_cm {
	uint64_t hash_seed;
	struct vb_secret secret; /* of IDs: one tells nothing of the next */
	uint32_t slot, next_number;
	vb_time tells_silence;
	uint32_t ghosts, abandoned, id_count, outgoing_count;
	struct vb_cm_half_open half_open;
	struct vb_list ids, outgoing, events;
	struct vb_list spares; /* events to come: reserved before anything changes */
	unsigned spare_count;
	struct vb_cm_table by_local, by_remote, by_qp, by_service;
	struct vb_timers timers;
	uint64_t counters[VB_CM_COUNTER_COUNT];
};

/* ---- cm.c ------------------------------------------------------------------------------------------------------- */

void vb_cm_id_free(struct vb_cm_id *id);
/* Gives the id a communication ID of its own, by which it is then found. */
void vb_cm_id_number(struct vb_cm_id *id);
uint64_t vb_cm_hash(const struct vb_cm *cm, uint64_t a, uint64_t b, const struct vb_gid *gid); /* gid may be NULL */
void vb_cm_id_link_remote(struct vb_cm_id *id);
void vb_cm_id_link_qp(struct vb_cm_id *id);
/* Stops the timer. Becoming IDLE forgets the peer; an orphan is freed by it and must not be used again. */
void vb_cm_id_enter(struct vb_cm_id *id, enum vb_cm_state state);
struct vb_cm_id *vb_cm_find_local(struct vb_cm *cm, uint32_t local_id);
/* Whom a request of the peer's communication ID has made; is_sidr: request IDs of SIDR are numbers of their own. */
struct vb_cm_id *vb_cm_find_remote(struct vb_cm *cm, const struct vb_gid *remote, uint32_t remote_id, bool is_sidr);
/* Whose peer is this QP; NULL for QP 0, which says nothing. */
struct vb_cm_id *vb_cm_find_qp(struct vb_cm *cm, const struct vb_gid *remote, uint64_t guid, uint32_t qpn);
struct vb_cm_id *vb_cm_find_listener(struct vb_cm *cm, uint64_t service_id, const struct vb_gid *address);
/* May one more request of this source wait to be answered, be it in another's place? Counts it if not. */
bool vb_cm_make_room(struct vb_cm *cm, const struct vb_gid *source, vb_time now);
/* An id for a request that came, with what its message says of the peer; NULL: out of memory. */
struct vb_cm_id *vb_cm_id_create_for(
	struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *message, bool is_sidr);

/* Events are reserved before a message or a timeout is taken, so that telling never fails. */
enum { VB_CM_MOST_EVENTS = 3 /* of one message */ };
bool vb_cm_reserve_events(struct vb_cm *cm);
void vb_cm_tell(struct vb_cm_id *id, enum vb_cm_event_kind kind, const struct vb_cm_message *message);
void vb_cm_tell_listener(struct vb_cm_id *listener, struct vb_cm_id *id, enum vb_cm_event_kind kind,
	const struct vb_cm_message *message);
void vb_cm_drop_events(struct vb_cm_id *id);
/* Takes back the requests that nobody has heard of yet. */
void vb_cm_drop_requests_of(struct vb_cm_id *listener, vb_time now);

void vb_cm_count(struct vb_cm *cm, enum vb_cm_counter counter);
void vb_cm_send(struct vb_cm_id *id, const struct vb_cm_message *message); /* kept in id->sent */
void vb_cm_send_kept(struct vb_cm_id *id);                                 /* to a duplicate */
void vb_cm_send_unkept(struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *message);
enum vb_cm_kind vb_cm_kept(const struct vb_cm_id *id);

/* The timer, from now on: for a message just sent, which may be sent so often again; for what the peer needs until it
 * answers; or just for a while. */
void vb_cm_await(struct vb_cm_id *id, uint8_t retries, vb_time now);
void vb_cm_wait(struct vb_cm_id *id, vb_time span, vb_time now);
void vb_cm_arm(struct vb_cm_id *id, vb_time span, vb_time now);
/* Sends it again and waits; false when no retries are left. Within the first period this is free, at pauses that
 * double: duplicates are legal, and the retries are for the peer's time, not for losses. */
bool vb_cm_try_again(struct vb_cm_id *id, vb_time now);
/* It is not to be tried again. */
void vb_cm_give_up(struct vb_cm_id *id, int error, vb_time now);

/* ---- half_open.c ------------------------------------------------------------------------------------------------ */

int vb_cm_half_open_init(struct vb_cm_half_open *half_open, uint32_t limit); /* -ENOMEM */
void vb_cm_half_open_deinit(struct vb_cm_half_open *half_open);
void vb_cm_half_open_add(struct vb_cm_id *id);
void vb_cm_half_open_remove(struct vb_cm_id *id);
/* Who has to make room for a newcomer from there; NULL: nobody, for none has more. */
struct vb_cm_id *vb_cm_half_open_victim(struct vb_cm *cm, const struct vb_gid *newcomer);

/* ---- messages.c ------------------------------------------------------------------------------------------------- */

struct vb_cm_message vb_cm_message_of(const struct vb_cm_id *id, enum vb_cm_kind kind);
struct vb_cm_message vb_cm_rejection(const struct vb_cm_id *id, uint16_t reason);
/* By somebody who remembers nothing, to what has arrived. */
struct vb_cm_message vb_cm_answer_to(const struct vb_cm_message *message, enum vb_cm_kind kind);
struct vb_cm_message vb_cm_rejection_of(const struct vb_cm_message *message, uint16_t reason);
uint64_t vb_cm_new_transaction(struct vb_cm_id *id);
/* 4.096 us * 2^code, at most about two minutes, whatever a peer says. */
vb_time vb_cm_span(uint8_t code);
vb_time vb_cm_period(uint8_t ack_timeout, uint8_t response_timeout);

/* ---- The states: what is done with a message or timeout; found through the tables in states.c ------------------- */

typedef void vb_cm_taker(struct vb_cm_id *id, const struct vb_cm_message *message, vb_time now);
typedef void vb_cm_timeout(struct vb_cm_id *id, vb_time now);

/* active.c */
vb_cm_taker vb_cm_take_mra_of_req, vb_cm_take_mra_again, vb_cm_take_rep, vb_cm_take_rep_unread, vb_cm_take_rep_again;
vb_cm_timeout vb_cm_req_unanswered;

vb_cm_taker vb_cm_take_mra_of_rep, vb_cm_take_rtu; /* passive.c */
vb_cm_timeout vb_cm_rep_unanswered;
void vb_cm_take_req(struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *message, vb_time now);
/* The REQ or REP, whose answer is the user's, has come again. */
void vb_cm_hold_off(struct vb_cm_id *id, vb_time now);

/* disconnect.c */
vb_cm_taker vb_cm_take_dreq, vb_cm_take_dreq_as_established, vb_cm_take_dreq_as_rejection, vb_cm_take_dreq_crossing,
	vb_cm_take_late_dreq, vb_cm_take_late, vb_cm_take_drep, vb_cm_take_rej, vb_cm_take_rej_and_wait,
	vb_cm_take_rej_as_end;
vb_cm_timeout vb_cm_dreq_unanswered, vb_cm_timewait_over;
void vb_cm_enter_timewait(struct vb_cm_id *id, vb_time now);
/* A half-open id makes room. */
void vb_cm_displace(struct vb_cm_id *id, vb_time now);
void vb_cm_abandon_reply(struct vb_cm_id *id, uint16_t reason, vb_time now);
/* The peer's QP belongs to another connection now. */
void vb_cm_end_stale(struct vb_cm_id *id, vb_time now);
/* Whoever asks again hears the same, from a ghost: what was refused without an id, or what id was asked, which is about
 * to be idle itself. */
void vb_cm_create_ghost(struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *request,
	bool is_sidr, const uint8_t answer[VB_MAD_LENGTH], vb_time span, vb_time now);
void vb_cm_leave_ghost(struct vb_cm_id *id, vb_time span, vb_time now);

vb_cm_taker vb_cm_take_sidr_rep; /* sidr.c */
vb_cm_timeout vb_cm_sidr_unanswered;
void vb_cm_take_sidr_req(
	struct vb_cm *cm, const struct vb_cm_path *path, const struct vb_cm_message *message, vb_time now);

#endif
