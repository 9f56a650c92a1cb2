/* The QPs of a collective's connection, where it has several (NCCL_IB_QPS_PER_CONNECTION). A request goes whole to the
 * next QP in turn, or is cut over all of them (NCCL_IB_SPLIT_DATA_ON_QPS). A QP keeps its own order. */
#ifndef NET_COLLECTIVE_QPS_H
#define NET_COLLECTIVE_QPS_H

#include <stdbool.h>
#include "base/number_map.h"
#include "net/collectives.h"

/* QPs of the connection between these places: one within a host, which has no QPs. */
uint32_t collective_qps(const struct collective *of, uint32_t place, uint32_t to);
/* Into so many messages requests are cut between these places. */
uint32_t collective_cuts(const struct collective *of, uint32_t place, uint32_t to);
/* The part that is cut off for this QP: parts rounded up to 128 bytes. One without bytes has one, since it is sent,
 * too. */
uint64_t collective_cut(uint64_t bytes, uint32_t cuts, uint32_t qp);
/* All messages of all places. */
uint64_t collective_cut_messages(const struct collective *of, const struct collective_algorithm *algorithm);

/* Notes that a part has come by this QP. 1: the last one of its request; 0: others are missing. Requests with the same
 * tag come in one order by each QP. -ENOMEM. */
int collective_cut_came(struct number_map *came, uint32_t tag, uint32_t cuts, uint32_t qp);

enum { COLLECTIVE_MOST_QPS = 128 };

#endif
