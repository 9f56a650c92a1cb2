/* The connections of processes, as their MADs pass by: when a process dies, its peers are told in its name, for a
 * kernel that closes a dead process's files would tell them too. What a worker that died knew is lost with it. */
#ifndef VB_BROKER_ORPHANS_H
#define VB_BROKER_ORPHANS_H

#include <stdbool.h>
#include <stdint.h>
#include "broker/qp1.h"

#define ORPHANS_KEPT 1024

struct orphans;

/* As it came; mad points at what is beside it. */
struct orphans_request {
	struct qp1_mad mad;
	struct vb_cm_message cm;
	uint8_t bytes[VB_MAD_LENGTH];
};

struct orphans *orphans_create(void);
void orphans_destroy(struct orphans *orphans);
/* client sends message from `from` to `to`, or receives mad, decoded, there; true when that finishes a handshake with
 * who began it, so that he is where he says. */
void orphans_note_sent(struct orphans *orphans, uint32_t client, const struct vb_gid *from, const struct vb_gid *to,
	const struct vb_cm_message *message);
/* May another have a request when client dies, it is kept until it is answered, up to ORPHANS_KEPT of all clients. */
bool orphans_note_received(struct orphans *orphans, uint32_t client, const struct qp1_mad *mad, bool may_another);
/* The request in mad, which client was passed before, goes to another now: it is no longer client's to refuse. True: it
 * had not answered it. */
bool orphans_note_passed_to_another(struct orphans *orphans, uint32_t client, const struct qp1_mad *mad);
/* The client died: the next request that it has not answered and another may have; false: that was all. */
bool orphans_next_request(struct orphans *orphans, uint32_t client, struct orphans_request *request);
/* And then: the next farewell of one of its connections, to be sent; false: that was all. */
bool orphans_next_farewell(
	struct orphans *orphans, uint32_t client, struct vb_gid *from, struct vb_gid *to, uint8_t mad[VB_MAD_LENGTH]);

#endif
