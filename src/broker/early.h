/* Requests without a listener yet. A program may tell its peer, over another connection, to connect to a port on which
 * it is about to listen. So a request waits a moment before it is refused. */
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
	} held[EARLY_MAX]; /* in order of arrival */
};

/* False: `most` requests already wait. */
bool early_hold(struct early *early, const struct qp1_mad *mad, uint64_t now, unsigned most);
/* The i-th waiting request; is_due: it has waited long enough. NULL: there is none. */
const struct qp1_mad *early_look(struct early *early, unsigned i, uint64_t now, bool *is_due);
void early_forget(struct early *early, unsigned i);

#endif
