/* Requests that came before anybody listened, and what else nobody answers for. A program may tell its peer, over a
 * connection that it has, to come to a port at which it is about to listen: so a request waits a moment before it is
 * refused. */
#ifndef VB_BROKER_EARLY_H
#define VB_BROKER_EARLY_H

#include "broker/qp1.h"

enum { EARLY_MS = 100, EARLY_MAX = 64 };

struct early {
	unsigned count;
	struct {
		uint64_t until; /* milliseconds, as the caller counts them */
		struct qp1_mad mad;
		struct vb_cm_message cm;
		uint8_t bytes[VB_MAD_LENGTH];
	} held[EARLY_MAX]; /* in the order in which they came */
};

/* False: as many as `most` wait already. */
bool early_hold(struct early *early, const struct qp1_mad *mad, uint64_t now, unsigned most);
/* The i-th of those that wait; is_due: it has waited long enough. NULL: there is none. */
const struct qp1_mad *early_look(struct early *early, unsigned i, uint64_t now, bool *is_due);
void early_forget(struct early *early, unsigned i);

#endif
