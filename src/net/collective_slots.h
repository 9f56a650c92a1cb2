/* Slots of a pipeline's connections. NCCL's receivers have eight, of a piece each, and a sender may only fill one that
 * its receiver has opened (2.30.7, NCCL_STEPS): piece k waits until piece k - 8 has gone on by all edges that need it.
 * Of that the sender hears by a message of its own, as NCCL's clear-to-send. A switch that reduces has such slots for
 * each tree's sums always, other connections if their buffer is given (struct nccl_settings). */
#ifndef NET_COLLECTIVE_SLOTS_H
#define NET_COLLECTIVE_SLOTS_H

#include "net/collectives.h"

enum { COLLECTIVE_SLOTS = 8, COLLECTIVE_OPENING_BYTES = 64 /* struct ncclIbSendFifo */ };

/* Whether what comes to a place by this edge comes into slots. */
bool collective_has_slots(const struct collective *of, const struct collective_algorithm *algorithm, uint32_t edge);
/* The messages by which a place opens slots of what comes to it by this edge. */
uint32_t collective_openings(
	const struct collective *of, const struct collective_algorithm *algorithm, uint32_t place, uint32_t edge);
/* Likewise those that come to the sender of an edge. */
uint32_t collective_opened(
	const struct collective *of, const struct collective_algorithm *algorithm, const struct collective_edge *edge);
/* The number, at its sender, of the edge by which it sends to `to`; there is one. */
uint32_t collective_edge_number(const struct collective *of, const struct collective_algorithm *algorithm,
	uint32_t sender, uint32_t to, uint32_t edge);

#endif
