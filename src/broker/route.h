/* Where the connection manager's MADs go: requests to whoever listens, all else to the slot that the recipient's
 * communication ID names, or, when it names none, to whoever received the request that is given up. */
#ifndef VB_BROKER_ROUTE_H
#define VB_BROKER_ROUTE_H

#include <stdbool.h>
#include <stdint.h>
#include "broker/orphans.h"
#include "broker/ports.h"
#include "broker/qp1.h"
#include "broker/registry.h"

enum route_verdict {
	ROUTE_TO_CLIENT,
	ROUTE_TO_NOBODY, /* no listener, or its process is gone: what is to be said instead is in answer */
	ROUTE_DROPPED,   /* malformed, or nothing is to be said */
};

struct route {
	enum route_verdict verdict;
	uint32_t client;
	uint8_t answer[VB_MAD_LENGTH];
};

/* True when the MAD is the connection manager's. */
bool route_is_cm(const struct qp1_mad *mad);
struct route route_cm(
	struct ports *ports, const struct registry *registry, struct orphans *orphans, const struct qp1_mad *mad);
/* Whose request it is that could not be delivered: the owner of the slot in its communication ID, or -1. */
int route_failure(const struct registry *registry, const struct qp1_failure *failure);

#endif
