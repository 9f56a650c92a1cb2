/* What the files of the worker share; nobody else looks inside.
 *
 *   worker.c     the poll loop, clients, what they ask for
 *   admission.c  who may be one
 *   slots.c      their shares of UDP 4791
 *   trust.c      whose they are, and what they may have
 *   carry.c      couriers, for processes that may not have a socket
 *   mads.c       what goes between them and the wire
 *   meetings.c   two of them who are to share memory
 *
 * Holds: a worker that is orphaned changes nothing any more; it leaves its loop. */
#ifndef VB_BROKER_WORKER_STATE_H
#define VB_BROKER_WORKER_STATE_H

#include "broker/backlog.h"
#include "broker/discovery.h"
#include "broker/early.h"
#include "broker/group.h"
#include "broker/limits.h"
#include "broker/orphans.h"
#include "broker/ports.h"
#include "broker/qp1.h"
#include "broker/registry.h"
#include "broker/relay.h"
#include "broker/sources.h"
#include "broker/traffic.h"
#include "broker/undertaker.h"
#include "broker/worker.h"
#include "host/protocol.h"
#include "os/user.h"

_Static_assert(DISCOVERY_CLIENTS >= REGISTRY_CLIENTS, "discovery counts clients as the registry does");

/* What a courier has said: for whom it carries. */
struct carries {
	bool is_courier;
	uint8_t slot; /* that it wants; 0: any */
	pid_t pid;
	uid_t uid;
	uint32_t number; /* its own, which the worker gave it */
};

struct client_state {
	struct carries carries;
	int channel; /* of one that waits for its courier's slot: its end; or -1 */
	uint32_t courier_number;
	uint32_t courier_request; /* and for which request; 0: in the place of one that has died */
	uint8_t courier_slot;     /* which it is to have; 0: any */
	uint64_t leaves_at;       /* connection is gone; 0: it is not */
	uint64_t since;           /* when it came */
	bool has_spoken;
	uid_t speaker; /* the user who sent its last message; as registry's */
	bool wants_slot;
	uint32_t request, receive_buffer;
	unsigned unheard; /* introductions that it may not have read */
	struct backlog backlog;
};

#define PARTING_MAX 64

struct parting { /* a connection that was refused */
	int connection;
	uint64_t until;
};

/* The same two are introduced again when it is over. */
struct meeting_pause {
	uint32_t since; /* the last introduction, on the clock of worker_now_ms */
	uint32_t ms;    /* 0: there was none */
};

struct worker {
	struct registry *registry;
	int link;
	bool stays, is_orphaned;
	bool says_clients;
	const struct trusted *trusted;
	struct limits limits;
	struct vb_users users;
	unsigned parting_count;
	struct parting parting[PARTING_MAX];
	struct undertaker undertaker;
	uint32_t last_courier; /* number of the one started last */
	struct group group;
	struct qp1 *qp1;
	struct discovery *discovery;
	struct relay *asking; /* clients' own MADs, by transaction */
	struct relay *asked;  /* requests passed to clients, by the asker's communication ID */
	struct ports *ports;
	struct orphans *orphans;
	struct sources *sources;
	struct traffic *traffic;
	struct early early;
	struct meeting_pause pauses[REGISTRY_SLOTS]
				   [REGISTRY_SLOTS]; /* of who meets again and again: by the lower slot */
	uint64_t has_met[REGISTRY_SLOTS]
			[REGISTRY_SLOTS / 64]; /* by slot: those that it was introduced to, and has not let go */
	uint64_t awaits[REGISTRY_SLOTS]
		       [REGISTRY_SLOTS / 64]; /* by slot: those that it asked for, and that did not want it yet */
	bool is_open[REGISTRY_SLOTS];
	uint64_t knows_ports_at; /* until then a listener may not have told a new worker of itself */
	struct client_state clients[REGISTRY_CLIENTS];
	bool is_adopting[REGISTRY_SLOTS]; /* the owner waits to hear that steering is right */
	bool survives[REGISTRY_SLOTS]; /* another broker's clients had them, and may come; not given to others meanwhile
					*/
	uint64_t survivors_until;
	bool is_settled; /* surviving sockets are known, or their time is up */
	bool must_repair;
	bool is_mixed; /* processes of several users have sockets of the group */
	uint64_t settle_at, repair_at, check_at, idle_at;
};

/* ---- worker.c --------------------------------------------------------------------------------------------------- */

uint64_t worker_now_ms(void);
void worker_reset_client(struct client_state *state);
void worker_remove_client(struct worker *worker, unsigned number);
/* On stderr, of a broker in the foreground with VERBENA_LOG=info. */
void worker_say_client(const struct worker *worker, unsigned number, const char *does);
/* Waits in the backlog while the client does not read; one that lets too much pile up is dropped, as if it went
 * away. */
void worker_say(struct worker *worker, unsigned client, const struct vb_message *message, const int *fd);
__attribute__((format(printf, 5, 6))) void worker_refuse(
	struct worker *worker, unsigned client, uint32_t request, int error, const char *format, ...);

/* ---- admission.c ------------------------------------------------------------------------------------------------ */

void worker_accept_clients(struct worker *worker);
/* Whether uid may have another connection, its couriers' among them; holders: who has them. */
bool worker_may_connect(const struct worker *worker, uid_t uid, struct holders *holders);
/* Closes the connections of those who were refused a while ago. */
void worker_part(struct worker *worker, uint64_t now);

/* ---- slots.c ---------------------------------------------------------------------------------------------------- */

/* Slots have changed: peers are told the smallest receive buffer of one, and more than one user may have sockets
 * now. */
void worker_note_slots(struct worker *worker);
void worker_free_slot(struct worker *worker, uint8_t slot);
/* client gives it back. False: it is another's. */
bool worker_release_slot(struct worker *worker, unsigned client, uint8_t slot);
/* True when fd has become the group's. */
bool worker_adopt_slot(struct worker *worker, unsigned client, const struct vb_message *message, int fd);
/* Puts the group in order when it is known or its time has come, then serves those who waited for that. */
void worker_keep_group(struct worker *worker);

/* ---- trust.c ---------------------------------------------------------------------------------------------------- */

/* The user that client connected as; VB_USER_UNKNOWN when its last message was another user's. */
uid_t worker_user_of(const struct worker *worker, unsigned client);
/* May client have a socket of the group? Whoever has one can disturb all others. */
bool worker_trusts(const struct worker *worker, unsigned client);
/* Are the processes of both one user's, at this moment? */
bool worker_are_of_one_user(const struct worker *worker, unsigned one, unsigned other);

/* ---- carry.c ---------------------------------------------------------------------------------------------------- */

/* Starts a courier for client; slot: that it had already, or 0. */
void worker_send_courier(struct worker *worker, unsigned client, uint8_t slot);
/* The one that client waits for has ended. */
void worker_miss_courier(struct worker *worker, unsigned client);
/* CARRY, from a courier. True when fd has become the group's; *is_good false: it breaks the protocol. */
bool worker_hear_courier(
	struct worker *worker, unsigned client, const struct vb_message *message, int fd, bool *is_good);
/* For whom the courier carries: false when he has gone, which the courier is told. */
bool worker_find_user(struct worker *worker, unsigned courier, struct client_slot *slot);
/* The same where he may not have come yet. */
void worker_name_user(struct worker *worker, unsigned courier, struct client_slot *slot);
/* The user gets his end of the channel. */
void worker_hand_over_channel(struct worker *worker, uint8_t slot);
/* A process whose courier lives has come to a new broker. */
void worker_adopt_carried(struct worker *worker, unsigned client, const struct vb_message *message);
/* Its courier is not needed any more; returns when it is dead. */
void worker_end_courier(struct worker *worker, uint8_t slot);
void worker_join_group(struct worker *worker, unsigned client, const struct vb_message *message);
/* Of the clients that have ended: children of ours are taken. */
void worker_reap(void);

/* ---- mads.c ----------------------------------------------------------------------------------------------------- */

void worker_send_mad(struct worker *worker, unsigned client, const struct vb_message *message); /* it is answered */
void worker_post_mad(struct worker *worker, unsigned client, const struct vb_message *message);
void worker_receive_mads(struct worker *worker);
void worker_pass_failures(struct worker *worker);
/* Requests that waited for somebody to listen: now somebody does, or they have waited long enough. */
void worker_serve_early(struct worker *worker, uint64_t now);
/* Its process is gone: its peers are told, once; who misses it finds out by asking. */
void worker_bid_farewell(struct worker *worker, unsigned number);

/* ---- meetings.c ------------------------------------------------------------------------------------------------- */

void worker_meet(struct worker *worker, unsigned client, const struct vb_message *message); /* it is answered */
void worker_open(struct worker *worker, unsigned client, const struct vb_message *message);
void worker_let_part(struct worker *worker, unsigned client, const struct vb_message *message);
/* The slot is freed, or another's: he has met nobody. */
void worker_forget_meetings(struct worker *worker, uint8_t slot);

#endif
