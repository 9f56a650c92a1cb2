/* A graph of operations under LogGOPS, the model of LogGOPSim (Hoefler, Schneider, Lumsdaine: "LogGOPSim - Simulating
 * Large-Scale Applications in the LogGOPS Model", 2010): no network, so no congestion.
 *
 *   A send takes its processor for o + (size-1)O, and its NIC for g + (size-1)G.
 *   The first byte is there after o + L. Then the message takes a processor for o + (size-1)max(O, G) and a NIC for
 *   g + (size-1)G, once both are free; they have the numbers of the sender's. The receive ends with that, or when it
 *   begins, if that is later.
 *   A send of at most S bytes ends after o, whether or not anyone receives. A longer one ends when it pairs up with its
 *   receive, which is known at once.
 *   A computation takes its processor. A receive takes none before its message is there.
 *
 * What wants a processor or NIC at the same time gets it in the order in which it asked first; of what one event lets
 * begin at one rank, sends ask before receives, and these before computations. This is as LogGOPSim has it. But here an
 * operation never begins before one that it waits for has ended, or begun: LogGOPSim looks at the processor alone,
 * which differs where a rank has several. And where more than 16 operations begin at once, those of a kind do so in the
 * file's order, which LogGOPSim leaves to its sort. */
#ifndef NET_LOGGOPS_H
#define NET_LOGGOPS_H

#include "net/graph.h"
#include "net/text.h"

/* The model's own letters. */
struct loggops {
	vb_time L, o, g; /* latency; overhead of a message at either end; gap between messages of a NIC */
	vb_time G, O;    /* for each byte but the first: of the gap, of the overhead */
	uint64_t S;      /* bytes of the largest message that is sent before its receive is known */
};

/* "L=2500,o=1500,g=1000,G=6,O=0,S=65535": ns, ns a byte, bytes. A parameter that is not given has
 * the value here, which is LogGOPSim's. Times have whole picoseconds: G=0.04 is 40 ps. -EINVAL and why. */
int loggops_read(struct span text, struct loggops *parameters, char *why, unsigned why_size);

struct loggops_result {
	vb_time *ends;             /* by rank: when its processors have done the last that they did */
	uint32_t last_rank;        /* the first of those whose end is the latest */
	uint32_t unfinished;       /* operations that never ended, as they wait for messages that nobody sends */
	uint32_t first_unfinished; /* GRAPH_NONE: all have ended */
	uint32_t unreceived;       /* messages that nobody received */
};

/* The graph has passed graph_finish, and is of sends, receives and computations. -ERANGE: it takes longer than a day.
 * -ENOMEM. The result is freed then. */
int loggops_play(const struct graph *graph, const struct loggops *parameters, struct loggops_result *result);
void loggops_result_free(struct loggops_result *result);

#endif
