/* Each rank of a graph has a share of a collective. The share sends its messages, takes those of others, and is done
 * when all are there. Why it could send or end is told by chains (graph_chain.h), which go with the messages.
 *
 * Holds: calls for one rank touch only what is of that rank. Messages may come before their receiver's share begins. */
#ifndef NET_GRAPH_SHARES_H
#define NET_GRAPH_SHARES_H

#include "net/graph_chain.h"
#include "net/graph.h"
#include "net/job.h"

struct graph_shares {
	const struct graph *graph; /* borrowed */
	struct hosts hosts;
	struct nccl_settings nccl;
	uint32_t *state_of;         /* by operation: which of `shares` */
	struct graph_share *shares; /* of collectives, one for each operation */
	uint32_t count;
	struct graph_order *orders; /* by group */
};

/* The graph has passed graph_finish. Collectives go by all NICs of the hosts, with these settings. -ENOMEM: nothing is
 * open. */
int graph_shares_open(struct graph_shares *shares, const struct graph *graph, const struct hosts *hosts,
	const struct nccl_settings *nccl);
void graph_shares_close(struct graph_shares *shares);

/* The collective of an operation, as its group has it: all parts together. */
struct collective graph_shares_collective(const struct graph_shares *shares, uint32_t operation);
/* Whether there are connections for so many QPs: MESSAGE_MOST_CHANNEL of two ranks, for all parts together. */
bool graph_shares_have_room(const struct hosts *hosts, const struct nccl_settings *nccl);
/* Of a collective: how many messages its rank sends, and how many of these leave the rank's host: by a few of them. */
uint64_t graph_shares_sends(const struct graph_shares *shares, uint32_t operation);
double graph_shares_leaving(const struct graph_shares *shares, uint32_t operation);
/* Of a collective that has ended: the chain that let it end. */
const struct graph_chain *graph_shares_chain(const struct graph_shares *shares, uint32_t operation);

/* Whether a message with this tag is a share's. The tags of a graph's other messages are below 2^32. */
bool graph_shares_have(uint64_t tag);
/* The operation begins; a message of a share has arrived at its rank, or has ended at its sender. Each returns the
 * operation that is done by that; GRAPH_NONE: none is. */
uint32_t graph_shares_begin(struct graph_shares *shares, uint32_t operation, vb_time at, struct job_sink *sink);
uint32_t graph_shares_arrived(struct graph_shares *shares, uint64_t tag, vb_time at,
	const struct graph_carried *carried, struct job_sink *sink);
uint32_t graph_shares_ended(struct graph_shares *shares, uint32_t rank, uint64_t tag, vb_time at,
	const struct graph_carried *carried, struct job_sink *sink);

#endif
