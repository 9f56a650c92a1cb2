/* The worker's state, shared by its files only.
 *
 *   worker.c the poll loop, clients, what they ask for
 *   admission.c who may be one
 *   slots.c their shares of UDP 4791
 *   trust.c whose they are, and what they may have
 *   carry.c forwarders, for processes that may not have a socket
 *   mads.c what goes between them and the wire
 *   introductions.c two of them who are to share memory
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
#include "broker/exchanges.h"
#include "broker/sources.h"
#include "broker/traffic.h"
#include "broker/closer.h"
#include "broker/worker.h"
#include "host/protocol.h"
#include "os/clock.h"
#include "os/user.h"

_Static_assert(DISCOVERY_CLIENTS >= REGISTRY_CLIENTS, "discovery counts clients as the registry does");

/* A forwarder's CARRY message: the process that it serves. */
struct carries {
	bool is_forwarder;
	uint8_t slot; /* the slot that it wants; 0: any */
	pid_t pid;
	uid_t uid;
	uint32_t number; /* the number that the worker gave it */
};

struct client_state {
	struct carries carries;
	int channel; /* the client's end of the channel, while it waits for its forwarder's slot; or -1 */
	uint32_t forwarder_number;
	uint32_t forwarder_request; /* the request that it will answer; 0: it replaces a forwarder that died */
	uint8_t forwarder_slot;     /* the slot to ask for; 0: any */
	uint64_t leaves_at;         /* set when the connection is gone; else 0 */
	uint64_t since;             /* when it connected */
	bool has_spoken;
	uid_t speaker; /* the user that sent its last message; like the registry's uid */
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

/* The pause before the same two are introduced again. */
struct introduction_pause {
	uint32_t since; /* the last introduction, on the clock of vb_clock_ms() */
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
	struct closer closer;
	uint32_t last_forwarder; /* number of the last one started */
	struct group group;
	struct qp1 *qp1;
	struct discovery *discovery;
	struct exchanges *asking; /* clients' own requests, by transaction */
	struct exchanges *asked;  /* requests passed to clients, by the requester's communication ID */
	struct ports *ports;
	struct orphans *orphans;
	struct sources *sources;
	struct traffic *traffic;
	struct early early;
	struct introduction_pause pauses[REGISTRY_SLOTS][REGISTRY_SLOTS]; /* pauses of pairs that meet again and again:
									     by the lower slot */
	uint64_t has_met[REGISTRY_SLOTS]
			[REGISTRY_SLOTS / 64]; /* by slot: the slots that it was introduced to and has not let go */
	uint64_t awaits[REGISTRY_SLOTS]
		       [REGISTRY_SLOTS / 64]; /* by slot: the slots that it asked for and that have not asked for it */
	bool is_open[REGISTRY_SLOTS];
	uint64_t knows_ports_at; /* until then, a new worker may not know every listener */
	struct client_state clients[REGISTRY_CLIENTS];
	bool is_adopting[REGISTRY_SLOTS]; /* the owner waits for the steering to be right */
	/* a dead broker's clients had these slots and may come back; not given to others meanwhile */
	bool survives[REGISTRY_SLOTS];
	uint64_t survivors_until;
	bool is_settled; /* all surviving sockets are known, or their time is up */
	bool must_repair;
	bool is_mixed; /* processes of several users have sockets of the group */
	uint64_t settle_at, repair_at, check_at, idle_at;
};

static inline bool worker_is_before(uint64_t at_ms)
{
	return (uint64_t)vb_clock_ms() < at_ms;
}

/* ---- worker.c ---------------------------------------------------------------------------------------------------- */

void worker_reset_client(struct client_state *state);
void worker_remove_client(struct worker *worker, unsigned number);
/* Reports a client on stderr, in a foreground broker with VERBENA_LOG=info. */
void worker_say_client(const struct worker *worker, unsigned number, const char *does);
/* Sends a message; it waits in the backlog while the client does not read. A client with too many waiting messages is
 * dropped, as if it had left. */
void worker_say(struct worker *worker, unsigned client, const struct vb_message *message, const int *fd);
__attribute__((format(printf, 5, 6))) void worker_refuse(
	struct worker *worker, unsigned client, uint32_t request, int error, const char *format, ...);

/* ---- admission.c ------------------------------------------------------------------------------------------------- */

void worker_accept_clients(struct worker *worker);
/* True if uid may have another connection, its forwarders' included; holders: the users of the present ones. */
bool worker_may_connect(const struct worker *worker, uid_t uid, struct holders *holders);
/* Closes connections that were refused a while ago. */
void worker_part(struct worker *worker, uint64_t now);

/* ---- slots.c ----------------------------------------------------------------------------------------------------- */

/* Call when slots changed: peers are told the smallest receive buffer of a slot, and several users may have sockets
 * now. */
void worker_note_slots(struct worker *worker);
void worker_free_slot(struct worker *worker, uint8_t slot);
/* client gives the slot back. False: it is another client's. */
bool worker_release_slot(struct worker *worker, unsigned client, uint8_t slot);
/* True: fd is now the group's. */
bool worker_adopt_slot(struct worker *worker, unsigned client, const struct vb_message *message, int fd);
/* Puts the group in order when all survivors are known or their time is up, then serves the clients that waited for
 * that. */
void worker_keep_group(struct worker *worker);

/* ---- trust.c ----------------------------------------------------------------------------------------------------- */

/* The user that connected; VB_USER_UNKNOWN if the last message was another user's. */
uid_t worker_user_of(const struct worker *worker, unsigned client);
/* True if client may have a socket of the group, with which it can disturb all others. */
bool worker_trusts(const struct worker *worker, unsigned client);
/* True if both processes are of one user at this moment. */
bool worker_are_of_one_user(const struct worker *worker, unsigned one, unsigned other);

/* ---- carry.c ----------------------------------------------------------------------------------------------------- */

/* Starts a forwarder for client; slot: the one that client already has, or 0. */
void worker_send_forwarder(struct worker *worker, unsigned client, uint8_t slot);
/* The forwarder for which client waits has ended. */
void worker_miss_forwarder(struct worker *worker, unsigned client);
/* CARRY, from a forwarder. True: fd is now the group's. *is_good false: it breaks the protocol. */
bool worker_hear_forwarder(
	struct worker *worker, unsigned client, const struct vb_message *message, int fd, bool *is_good);
/* Finds the client that the forwarder serves. False: it has gone, and the forwarder is told. */
bool worker_find_user(struct worker *worker, unsigned forwarder, struct client_slot *slot);
/* The same if the client may not have connected yet. */
void worker_name_user(struct worker *worker, unsigned forwarder, struct client_slot *slot);
/* The slot's user gets its end of the channel. */
void worker_hand_over_channel(struct worker *worker, uint8_t slot);
/* A process with a living forwarder has connected to a new broker. */
void worker_adopt_carried(struct worker *worker, unsigned client, const struct vb_message *message);
/* Ends the slot's forwarder, which is no longer needed; returns when it is dead. */
void worker_end_forwarder(struct worker *worker, uint8_t slot);
void worker_join_group(struct worker *worker, unsigned client, const struct vb_message *message);
/* Reaps forwarders that have ended. */
void worker_reap(void);

/* ---- mads.c ------------------------------------------------------------------------------------------------------ */

void worker_send_mad(struct worker *worker, unsigned client, const struct vb_message *message); /* it is answered */
void worker_post_mad(struct worker *worker, unsigned client, const struct vb_message *message);
void worker_receive_mads(struct worker *worker);
void worker_pass_failures(struct worker *worker);
/* Serves requests that waited for a listener, if there is one now or they have waited long enough. */
void worker_serve_early(struct worker *worker, uint64_t now);
/* The client's process is gone: tells its peers, once. A peer that misses it learns it by its next request. */
void worker_bid_farewell(struct worker *worker, unsigned number);

/* ---- introductions.c --------------------------------------------------------------------------------------------- */

void worker_meet(struct worker *worker, unsigned client, const struct vb_message *message); /* it is answered */
void worker_open(struct worker *worker, unsigned client, const struct vb_message *message);
void worker_let_part(struct worker *worker, unsigned client, const struct vb_message *message);
/* The slot was freed or changed its owner: it has met no other. */
void worker_forget_introductions(struct worker *worker, uint8_t slot);

#endif
