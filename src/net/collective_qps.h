/* The messages of a collective, and the QPs by which they go where a connection has several
 * (NCCL_IB_QPS_PER_CONNECTION). A request goes whole to the next QP in turn, or is cut over all of them
 * (NCCL_IB_SPLIT_DATA_ON_QPS). A QP keeps its own order. */
#ifndef NET_COLLECTIVE_QPS_H
#define NET_COLLECTIVE_QPS_H

#include <stdbool.h>
#include "base/number_map.h"
#include "net/collectives.h"

/* The tag and `cut` are for the part of its receiver; the flags: as in struct message. */
struct collective_sent {
	uint32_t to, tag;
	uint64_t bytes;
	uint32_t turn; /* of those to the same rank: one more with each */
	bool is_piece, is_copy, is_of_sum;
	bool opens; /* a slot: by a connection of its own, and never cut */
	/* Filled in by collective_send. qp: of the connection between both, which has a path of its own; what opens a
	 * slot has one behind the others. cut: 0: it is the whole request; otherwise the part for QP cut - 1. */
	uint32_t qp, cut;
};

struct collective_out {
	void (*send)(const struct collective_out *out, const struct collective_sent *sent);
};

/* A rank counts the parts of cut requests that have come, and those of its own that have ended. */
struct collective_cut_parts {
	struct number_map came, ended;
};

/* Sends a request of this place by its QPs, in parts or whole. */
void collective_send(const struct collective *of, uint32_t place, const struct collective_sent *request,
	const struct collective_out *out);

/* QPs of the connection between these places: one within a host, which has no QPs. */
uint32_t collective_qps(const struct collective *of, uint32_t place, uint32_t to);
/* Into so many messages requests are cut between these places. */
uint32_t collective_cuts(const struct collective *of, uint32_t place, uint32_t to);
/* The part that is cut off for this QP: parts rounded up to 128 bytes. One without bytes has one, since it is sent,
 * too. */
uint64_t collective_cut(uint64_t bytes, uint32_t cuts, uint32_t qp);
/* The messages that a place sends, and those of all places. */
uint64_t collective_cut_sends(
	const struct collective *of, const struct collective_algorithm *algorithm, uint32_t place);
uint64_t collective_cut_messages(const struct collective *of, const struct collective_algorithm *algorithm);

/* Notes that a part has come by this QP. 1: the last one of its request; 0: others are missing. Requests with the same
 * tag come in one order by each QP. -ENOMEM. */
int collective_cut_came(struct number_map *came, uint32_t tag, uint32_t cuts, uint32_t qp);

enum { COLLECTIVE_MOST_QPS = 128 };

#endif
