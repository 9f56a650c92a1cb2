/* Collectives: the messages of which one is made, and which message waits for which (net/flows.h).
 *
 * Sizes are as nccl-tests counts them: S bytes are all that a rank has before an allreduce or a reduce-scatter, and all
 * that it has after an all-gather. A share is S / n; the first S mod n shares have one byte more. A message without
 * bytes has one byte, because it still must be waited for.
 *
 * In every algorithm but "direct" a rank sends one message a step, and a step begins when the messages have arrived
 * whose data it sends: that of the step before, and unless it is a ring's, those of all steps before.
 *
 *   "ring"                a share to the next rank, n - 1 times, or 2 (n - 1) times for an allreduce
 *   "recursive-doubling"  all that a rank has, to the rank whose number differs in one bit, log2 n times
 *   "halving-doubling"    halves of halves, to the rank whose number differs in one bit; an allreduce then doubles
 *   "direct"              a share to every other rank at once; an allreduce's second half waits for all of the first
 *   "dissemination"       a barrier's: one byte to the rank 1, 2, 4, ... further on
 *
 * Ranks are endpoints 0 to n - 1. Reductions take no time. */
#ifndef NET_COLLECTIVES_H
#define NET_COLLECTIVES_H

#include <stddef.h>
#include "net/flows.h"

struct collective {
	const char *kind, *algorithm; /* an algorithm that is NULL or empty: the kind's first */
	uint32_t ranks;               /* at least 2 */
	uint64_t bytes;               /* S */
	vb_time start;
	uint8_t traffic_class;
};

bool collective_is_kind(const char *kind);
/* 0; -EINVAL and why: there is no such algorithm of this kind, it does not work for so many ranks, or it would have
 * more messages or waits than a run takes. */
int collective_check(const struct collective *collective, char *why, unsigned why_size);
/* After a check that passed: how many messages it has. */
uint64_t collective_messages(const struct collective *collective);
/* After a check that passed: -ENOMEM, and the list has some of its flows. */
int collective_add(struct flow_list *list, const struct collective *collective);
/* Its time on a network without contention is alphas * alpha + bytes / B: alpha is the one-way time of a message of one
 * byte, B the rate at which payload passes a rank's link. After a check that passed. */
struct collective_law {
	double alphas, bytes;
};
struct collective_law collective_law(const struct collective *collective);
/* The name of a kind's algorithm of this number, the default's from 0; NULL: there is none. */
const char *collective_algorithm(const char *kind, uint32_t number);

#endif
