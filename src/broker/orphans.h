/* The connections of clients, learned from their MADs. When a process dies, its peers are told in its name, as a kernel
 * would when it closes a dead process's files. A worker's death loses this knowledge. */
#ifndef VB_BROKER_ORPHANS_H
#define VB_BROKER_ORPHANS_H

#include <stdbool.h>
#include <stdint.h>
#include "broker/qp1.h"

#define ORPHANS_KEPT 1024

struct orphans;

/* A request as it arrived; mad points into the bytes beside it. */
struct orphans_request {
	struct qp1_mad mad;
	struct vb_cm_message cm;
	uint8_t bytes[VB_MAD_LENGTH];
};

struct orphans *orphans_create(void);
void orphans_destroy(struct orphans *orphans);
/* client sends message from `from` to `to`, or receives mad, decoded, there. True: that finishes a handshake with its
 * initiator, which so is at the address that it claims. */
void orphans_note_sent(struct orphans *orphans, uint32_t client, const struct vb_gid *from, const struct vb_gid *to,
	const struct vb_cm_message *message);
/* A request that another client may take when this one dies is kept until it is answered, up to ORPHANS_KEPT of all
 * clients. */
bool orphans_note_received(struct orphans *orphans, uint32_t client, const struct qp1_mad *mad, bool may_another);
/* The request in mad was passed to client and now goes to another, so client can no longer refuse it. True: client had
 * not answered it. */
bool orphans_note_passed_to_another(struct orphans *orphans, uint32_t client, const struct qp1_mad *mad);
/* After the client's death: the next request that it has not answered and another may take; false: none is left. */
bool orphans_next_request(struct orphans *orphans, uint32_t client, struct orphans_request *request);
/* And then: the next farewell of one of its connections, to be sent; false: none is left. */
bool orphans_next_farewell(
	struct orphans *orphans, uint32_t client, struct vb_gid *from, struct vb_gid *to, uint8_t mad[VB_MAD_LENGTH]);

#endif
