/* Where the connection manager's MADs go: a request to its listener, or to the client that already answered it; other
 * MADs to the slot in the recipient's communication ID, or, without one, to the client that got the request which is
 * given up. Also decides which MADs a client may send. */
#ifndef VB_BROKER_ROUTE_H
#define VB_BROKER_ROUTE_H

#include <stdbool.h>
#include <stdint.h>
#include "broker/ports.h"
#include "broker/qp1.h"
#include "broker/registry.h"
#include "broker/exchanges.h"

enum route_verdict {
	ROUTE_TO_CLIENT,
	ROUTE_TO_NOBODY, /* no listener, or its process is gone: `answer` is to be sent instead */
	ROUTE_REFUSED,   /* the same, for a request that was refused before */
	ROUTE_DROPPED,   /* malformed, or no answer is due */
};

struct route {
	enum route_verdict verdict;
	uint32_t client;
	uint8_t answer[VB_MAD_LENGTH];
};

/* asked: the clients to which requests were passed. */
struct route route_cm(
	struct ports *ports, const struct registry *registry, const struct exchanges *asked, const struct qp1_mad *mad);
/* True if client may send this to that address: under a communication ID in one of its own slots, or under none, as the
 * answer to a request that came from there for it. */
bool route_may_send(const struct registry *registry, const struct exchanges *asked, uint32_t client,
	const struct vb_gid *to, const struct vb_cm_message *message);
/* The client whose MAD could not be delivered: for the connection manager, the user of the slot in its communication
 * ID; else the client that asked. -1: none. */
int route_failure(const struct registry *registry, const struct exchanges *asking, const struct qp1_failure *failure);

#endif
