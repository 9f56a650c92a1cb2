/* Collectives: the messages of which one is made, and which message waits for which. collective_job.h sends them.
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
#include <stdbool.h>
#include <stdint.h>
#include "base/time.h"

struct collective {
	const char *kind, *algorithm; /* an algorithm that is NULL or empty: the kind's first */
	uint32_t ranks;               /* at least 2 */
	uint64_t bytes;               /* S */
	vb_time start;
	uint8_t traffic_class;
	/* Rings over hosts with several GPUs: the ranks of each host are turned by `turned`, so that the ring enters
	 * and leaves by another GPU and its NIC. gpus 0: no ranks share a host. */
	uint32_t gpus, turned;
};

/* A rank's step: so many bytes to the rank `to`. */
struct collective_step {
	uint32_t to;
	uint64_t bytes; /* not 0 */
};

/* The messages that a rank waits for before it sends: they carry the data that it passes on. */
enum collective_waiting {
	FOR_THE_LAST,      /* that of the step before: they come from one rank, by one connection, in order */
	FOR_ALL_BEFORE,    /* those of all steps before, at most 64: they may overtake each other */
	FOR_ALL_OF_A_HALF, /* in the second half all of the first; in the first none */
};

struct collective_algorithm {
	const char *name;
	uint32_t (*steps)(uint32_t ranks);
	struct collective_step (*step)(const struct collective *of, uint32_t rank, uint32_t step);
	enum collective_waiting waiting;
	bool is_by_powers_of_2;      /* of ranks */
	double (*buffers)(double n); /* what a rank sends, in buffers of S bytes */
};

/* `arrived` is what a rank remembers of messages that have come, at first 0. */
void collective_note_arrival(
	const struct collective_algorithm *algorithm, uint32_t ranks, uint32_t step, uint64_t *arrived);
/* A rank that has sent all steps before may send this one. */
bool collective_may_send(const struct collective_algorithm *algorithm, uint32_t ranks, uint32_t step, uint64_t arrived);

/* Several rings, so that all NICs of a host have their part: the collective of ring number `ring`, from 0 to this many.
 * Other algorithms are one. */
uint32_t collective_rings(const struct collective *collective, uint32_t nics);
struct collective collective_ring(const struct collective *collective, uint32_t nics, uint32_t ring);
/* Which rank is at this place of the algorithm, and back. */
uint32_t collective_rank_at(const struct collective *collective, uint32_t place);
uint32_t collective_place_of(const struct collective *collective, uint32_t rank);

bool collective_is_kind(const char *kind);
const char *collective_kind_name(const char *kind); /* the kind's own name, which is valid for ever */
/* The kind's algorithm of this number, the default from 0; NULL: there is none. */
const struct collective_algorithm *collective_algorithm(const char *kind, uint32_t number);
/* NULL: there is no such algorithm of this kind. */
const struct collective_algorithm *collective_find(const struct collective *collective);
/* 0; -EINVAL and why: there is no such algorithm of this kind, it does not work for so many ranks, or it would have
 * more messages than a run takes. */
int collective_check(const struct collective *collective, char *why, unsigned why_size);

/* Its time on a network without contention is alphas * alpha + bytes / B: alpha is the one-way time of a message of one
 * byte, B the rate at which payload passes a rank's link. After a check that passed. */
struct collective_law {
	double alphas, bytes;
};
struct collective_law collective_law(const struct collective *collective);

#endif
