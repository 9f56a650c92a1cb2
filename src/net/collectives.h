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
 *   "pat"                 doubling shares to the rank 1, 2, 4, ... further on, for any number of ranks; a
 *                         reduce-scatter the other way round (NCCL's PAT)
 *   "hierarchical"        of hosts with several GPUs: a ring's reduce-scatter in each host, a ring's allreduce between
 *                         the GPUs of the same place in all hosts, and a ring's all-gather in each host
 *   "pairwise"            an all-to-all's: a share to every other rank, eight at a time
 *   "chain"               a broadcast's from rank 0, and a reduce's to it: piece by piece to the next rank
 *   "double-tree"         half of the data up and down each of two binary trees, piece by piece; of hosts with several
 *                         GPUs the trees are over the hosts, and a chain leads on in each
 *
 *   "nvls"                as double-tree, but in a host the switch of the scale-up domain reduces: each GPU sends S to
 * it once and gets S from it once. The first GPU's program says what the switch does
 *
 * Ranks are 0 to n - 1 here; which ranks of a run they are is told by rank_groups.h. Reductions take no time. */
#ifndef NET_COLLECTIVES_H
#define NET_COLLECTIVES_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/time.h"
#include "net/hosts.h"

/* Values of NCCL's variables. */
struct nccl_settings {
	uint32_t channels;      /* it is at most so many rings or trees; 0: any number */
	uint32_t qps;           /* of a connection between hosts (collective_qps.h); 0: 1 */
	bool is_cut;            /* each request over all of them */
	uint64_t buffer;        /* of a connection, in bytes (collective_slots.h); 0: its receiver always has room */
	enum hosts_rails rails; /* of messages between hosts */
};

static inline bool nccl_settings_equal(const struct nccl_settings *a, const struct nccl_settings *b)
{
	return a->channels == b->channels && a->qps == b->qps && a->is_cut == b->is_cut && a->buffer == b->buffer &&
	       a->rails == b->rails;
}

struct collective {
	const char *kind, *algorithm; /* an algorithm that is NULL or empty: the kind's first */
	uint32_t ranks;               /* at least 2 */
	uint64_t bytes;               /* S */
	uint64_t wire;                /* what is sent for S bytes, by a protocol with flags; 0: S */
	struct nccl_settings nccl;
	vb_time start;
	uint8_t traffic_class;
	uint32_t gpus; /* consecutive ranks that share a host (rank_groups.h); 0: not equally many, or unknown */
	bool reduces;  /* the hosts' scale-up domains reduce in their switch */
	/* Of a collective that is one of several parts: which. Of rings and trees the ranks of each host are turned by
	 * `turned`, so that it enters and leaves by another GPU and its NIC. */
	uint32_t part, turned;
};

/* A rank's step: so many bytes to the rank `to`. */
struct collective_step {
	uint32_t to;
	uint64_t bytes; /* not 0 */
};

/* The messages that a rank waits for before it sends: they carry the data that it passes on. */
/* Messages of a rank at a time, FOR_A_PLACE: as many peers as NCCL's batches have. */
enum { COLLECTIVE_PLACES = 8 };

enum collective_waiting {
	FOR_THE_LAST,      /* that of the step before: they come from one rank, by one connection, in order */
	FOR_ALL_BEFORE,    /* those of all steps before, at most 64: they may overtake each other */
	FOR_ALL_OF_A_HALF, /* in the second half all of the first; in the first none */
	FOR_A_PLACE,       /* none, but a few of its own messages are under way at a time */
	FOR_BOTH_RINGS, /* as many as there are steps before it, of each of two rings: in its host, and between hosts */
};

enum { COLLECTIVE_EDGES = 10 };

/* Of a pipeline: a rank sends the data piece by piece along its edges. A piece goes on when it has come by all edges
 * that it needs. */
struct collective_edge {
	uint32_t to;
	uint16_t needs;   /* a bit for each edge by which it comes to this rank */
	uint8_t comes_by; /* the number of this edge at its receiver */
	/* By a switch that reduces: a copy goes to each GPU of the host, of which `to` is the first; a part of a sum
	 * comes from each. */
	bool is_copy, is_of_sum;
	uint64_t bytes;
};

/* Who sends to a place by one of its edges: so many places, from the first on, and so many bytes each. */
struct collective_source {
	uint32_t first, count; /* count 0: nobody */
	uint64_t bytes;
};

/* The messages of which a piece on this edge is made. */
static inline uint32_t collective_copies(const struct collective *of, const struct collective_edge *edge)
{
	return edge->is_copy ? of->gpus : 1;
}

/* Its time on a network without contention is alphas * alpha + bytes / B: alpha is the one-way time of a message of one
 * byte, B the rate at which payload passes a rank's link, or those of all
 * NICs of a host that has several. Where later messages wait for earlier ones of the same rank and others leave
 * meanwhile, links that are full hide all but full_alphas; else these are the same. */
struct collective_law {
	double alphas, bytes, full_alphas;
	/* Of pipelines: until the first piece is everywhere it goes by so many hops, but for the one that `bytes` has.
	 */
	double hops_in_host, hops_between;
	uint64_t piece; /* bytes */
};

/* transfer: bytes / B. While links are not full, about half of the bytes leave while nobody waits. */
static inline double collective_law_time(const struct collective_law *law, double alpha, double transfer)
{
	const double waits = law->alphas * alpha + transfer / 2, full = law->full_alphas * alpha + transfer;
	return waits > full ? waits : full;
}

/* How long a pipeline takes to fill, in the unit of time of the rates: those of one connection, in bytes. */
static inline double collective_law_fill(const struct collective_law *law, double in_host, double between)
{
	return (double)law->piece * ((law->hops_in_host > 0 ? law->hops_in_host / in_host : 0) +
					    (law->hops_between > 0 ? law->hops_between / between : 0));
}

/* By steps, or by edges. */
struct collective_algorithm {
	const char *name;
	uint32_t (*steps)(uint32_t ranks);
	struct collective_step (*step)(const struct collective *of, uint32_t rank, uint32_t step);
	enum collective_waiting waiting;
	bool is_by_powers_of_2;      /* of ranks */
	double (*buffers)(double n); /* what the busiest rank sends or gets, in buffers of S bytes */
	uint32_t (*edges)(const struct collective *of, uint32_t place, struct collective_edge edges[COLLECTIVE_EDGES]);
	double (*alphas)(double n); /* NULL: as many as there are steps that wait for each other */
	struct collective_source (*source)(const struct collective *of, uint32_t place, uint32_t edge); /* by edges */
	struct collective_law (*law)(const struct collective *of); /* NULL: by buffers and alphas */
	bool is_by_switch;
	bool is_by_nics; /* over hosts with several NICs it is as many, each entering and leaving by another GPU */
};

/* The pieces of so many bytes, and how large each is. */
uint32_t collective_pieces(const struct collective *of, uint64_t bytes);
uint64_t collective_piece(const struct collective *of, uint64_t bytes, uint32_t piece);
uint32_t collective_steps(const struct collective *of, const struct collective_algorithm *algorithm);
/* FOR_BOTH_RINGS: what a step waits for, and in which ring it is. */
struct collective_needs {
	uint32_t in_host, between;
};
struct collective_needs collective_needs(const struct collective *of, uint32_t step);
bool collective_is_in_host(const struct collective *of, uint32_t step);
/* How many messages a place sends and gets, and each that it sends, in no order. */
uint32_t collective_sends(const struct collective *of, const struct collective_algorithm *algorithm, uint32_t place);
uint32_t collective_receives(const struct collective *of, const struct collective_algorithm *algorithm, uint32_t place);
struct collective_step collective_message(
	const struct collective *of, const struct collective_algorithm *algorithm, uint32_t place, uint32_t number);
/* Of all places. */
uint64_t collective_messages(const struct collective *of);
/* Whether each message has a connection of its own: a rank sends to many, and once. */
bool collective_opens_each(const struct collective_algorithm *algorithm);
/* What nccl-tests multiplies S by for busbw. */
double collective_busbw(const struct collective *of);

/* Several parts at once, so that all NICs carry their share: of rings and trees over hosts one for each NIC, which
 * enters and leaves by it; of others one for each NIC of a GPU; of neither more than there are channels. NICs with
 * several ports have as many of them, since each is a flow. `part` is below that number. */
uint32_t collective_parts(const struct collective *collective, const struct hosts *hosts);
struct collective collective_part_of(const struct collective *collective, const struct hosts *hosts, uint32_t part);
/* Which of the collective's ranks is at this place of the algorithm, and back. */
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

/* After a check that passed. */
struct collective_law collective_law(const struct collective *collective);

#endif
