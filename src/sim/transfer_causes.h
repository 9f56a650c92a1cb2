/* What each transfer on the critical path waited for, by the links that its packets went by: for runs that tell
 * messages and sample links (--explain job). What is told of a link is what it did while the transfer was under way, as
 * exactly as the run's samples have it. */
#ifndef SIM_TRANSFER_CAUSES_H
#define SIM_TRANSFER_CAUSES_H

#include "sim/critical_path.h"
#include "sim/simulation.h"

enum transfer_cause_kind {
	TRANSFER_NONE,     /* no transfer, or one that has not ended */
	TRANSFER_LOSS,     /* a link dropped or lost packets, and some were sent again */
	TRANSFER_PAUSE,    /* a link was paused */
	TRANSFER_QUEUE,    /* packets waited before a link */
	TRANSFER_LOAD,     /* a link sent most of the time */
	TRANSFER_DISTANCE, /* no link was busy */
	TRANSFER_IN_HOST,  /* by the scale-up domain */
};

struct transfer_cause {
	enum transfer_cause_kind kind;
	struct graph_transfer of;
	uint32_t link;    /* NETWORK_NONE: none */
	bool is_sure;     /* all packets went by this link; false: by one of several ways */
	vb_time queueing; /* how long a packet waited before it, in the mean over the transfer's time */
	vb_time paused;   /* summed over all classes */
	uint64_t missing; /* packets that were dropped before it or lost on it */
	double load;      /* the share of the time in which it sent */
	uint32_t stopper; /* of a pause: the link whose queue it began with, as far as is known; NETWORK_NONE */
	uint32_t beside;  /* the rank of which most other bytes went by the link meanwhile */
	uint64_t beside_bytes;
};

/* By step of the path; the caller frees them. -ENOMEM. */
int transfer_causes_find(
	const struct simulation *simulation, const struct critical_path *path, struct transfer_cause **causes);
const char *transfer_kind_name(enum transfer_cause_kind kind); /* "queue" */
const char *transfer_cause_text(
	const struct simulation *simulation, const struct transfer_cause *cause, char *text, size_t size);

#endif
