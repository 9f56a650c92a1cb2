/* Where the connection manager's MADs go: requests to whoever listens or, when they come again, has answered them; all
 * else to the slot that the recipient's communication ID names, or, when it names none, to whoever received the request
 * that is given up. And which of them a client may send. */
#ifndef VB_BROKER_ROUTE_H
#define VB_BROKER_ROUTE_H

#include <stdbool.h>
#include <stdint.h>
#include "broker/ports.h"
#include "broker/qp1.h"
#include "broker/registry.h"
#include "broker/relay.h"

enum route_verdict {
	ROUTE_TO_CLIENT,
	ROUTE_TO_NOBODY, /* no listener, or its process is gone: what is to be said instead is in answer */
	ROUTE_REFUSED,   /* the same, to a request that was told so before */
	ROUTE_DROPPED,   /* malformed, or nothing is to be said */
};

struct route {
	enum route_verdict verdict;
	uint32_t client;
	uint8_t answer[VB_MAD_LENGTH];
};

/* asked: who was passed which request. */
struct route route_cm(
	struct ports *ports, const struct registry *registry, const struct relay *asked, const struct qp1_mad *mad);
/* Whether client may send this to that address: in its own name, which is a communication ID in a slot of its own, or
 * in nobody's, as the answer to a request that came from there for it. */
bool route_may_send(const struct registry *registry, const struct relay *asked, uint32_t client,
	const struct vb_gid *to, const struct vb_cm_message *message);
/* Whose MAD it is that could not be delivered: of the connection manager's, the owner of the slot in its communication
 * ID; of others, who asked it. -1: nobody's. */
int route_failure(const struct registry *registry, const struct relay *asking, const struct qp1_failure *failure);

#endif
