/* What the files of the worker share; nobody else looks inside.
 *
 *   worker.c  the poll loop, clients, what they ask for
 *   slots.c   their shares of UDP 4791
 *   mads.c    what goes between them and the wire
 *
 * Holds: a worker that is orphaned changes nothing any more; it leaves its loop. */
#ifndef VB_BROKER_WORKER_STATE_H
#define VB_BROKER_WORKER_STATE_H

#include "broker/backlog.h"
#include "broker/discovery.h"
#include "broker/early.h"
#include "broker/group.h"
#include "broker/orphans.h"
#include "broker/ports.h"
#include "broker/qp1.h"
#include "broker/registry.h"
#include "broker/relay.h"
#include "host/protocol.h"

_Static_assert(DISCOVERY_CLIENTS >= REGISTRY_CLIENTS, "discovery counts clients as the registry does");

struct client_state {
	uint64_t leaves_at; /* connection is gone; 0: it is not */
	bool wants_slot;
	uint32_t request, receive_buffer;
	struct backlog backlog;
};

struct worker {
	struct registry *registry;
	int link;
	bool stays, is_orphaned;
	struct group group;
	struct qp1 *qp1;
	struct discovery *discovery;
	struct relay relay;
	struct ports *ports;
	struct orphans *orphans;
	struct early early;
	uint64_t knows_ports_at; /* until then a listener may not have told a new worker of itself */
	struct client_state clients[REGISTRY_CLIENTS];
	bool is_adopting[REGISTRY_SLOTS]; /* the owner waits to hear that steering is right */
	bool is_settled;                  /* surviving sockets are known, or their time is up */
	bool must_repair;
	uint64_t settle_at, repair_at, check_at, idle_at;
};

/* ---- worker.c --------------------------------------------------------------------------------------------------- */

uint64_t worker_now_ms(void);
/* A client that does not read its answers is dropped, as one that went away. */
void worker_say(struct worker *worker, unsigned client, const struct vb_message *message, const int *fd);
__attribute__((format(printf, 5, 6))) void worker_refuse(
	struct worker *worker, unsigned client, uint32_t request, int error, const char *format, ...);

/* ---- slots.c ---------------------------------------------------------------------------------------------------- */

/* Peers are told the smallest receive buffer of a slot. */
void worker_update_receive_buffer(struct worker *worker);
void worker_free_slot(struct worker *worker, uint8_t slot);
/* True when fd has become the group's. */
bool worker_adopt_slot(struct worker *worker, unsigned client, const struct vb_message *message, int fd);
/* Puts the group in order when it is known or its time has come, then serves those who waited for that. */
void worker_keep_group(struct worker *worker);

/* ---- mads.c ----------------------------------------------------------------------------------------------------- */

void worker_send_mad(struct worker *worker, unsigned client, const struct vb_message *message); /* it is answered */
void worker_post_mad(struct worker *worker, unsigned client, const struct vb_message *message);
void worker_receive_mads(struct worker *worker);
void worker_pass_failures(struct worker *worker);
/* Requests that waited for somebody to listen: now somebody does, or they have waited long enough. */
void worker_serve_early(struct worker *worker, uint64_t now);
/* Its process is gone: its peers are told, once; who misses it finds out by asking. */
void worker_bid_farewell(struct worker *worker, unsigned number);

#endif
