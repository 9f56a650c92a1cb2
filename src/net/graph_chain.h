/* Why a part of a collective could do something just then: the chain of messages that led there, of which each let the
 * next one go. It goes with the messages, so that no rank remembers messages. */
#ifndef NET_GRAPH_CHAIN_H
#define NET_GRAPH_CHAIN_H

#include <stdint.h>
#include "base/time.h"

/* A message: from when it was sent until its arrival, or until its sender knew of it if that is what was waited for. */
struct graph_transfer {
	uint64_t tag;      /* as the network has it */
	uint32_t from, to; /* ranks */
	vb_time sent, took;
};

struct graph_chain {
	uint32_t origin;               /* the operation whose begin let the first message go */
	uint32_t transfers;            /* how many messages there were; 0: the origin's begin let it happen itself */
	struct graph_transfer longest; /* of these, the first; if there are any */
};

/* What goes with a message: the chain that let it go, and itself. */
struct graph_carried {
	struct graph_chain chain;
	uint32_t from, to;
	vb_time sent;
};

/* The chain with a message that has just been waited for. */
struct graph_chain graph_chain_after(const struct graph_carried *message, uint64_t tag, vb_time at);

#endif
