/* What workload text of AICB says, between its reader (job_read_aicb.c) and the graph that is made of it
 * (aicb_graph.c). */
#ifndef NET_AICB_H
#define NET_AICB_H

#include "net/job_file.h"

enum { AICB_MOST_RANKS = 1 << 24 };

enum aicb_pass { FORWARD, INPUT, WEIGHT, PASSES }; /* the last two are gradients */

enum aicb_members { TP, DP, EP, DP_EP, MEMBERS };

/* In which order the passes of the lines run, and which of them do. */
enum aicb_order { TRANSFORMER, MICRO, DATA, MODEL, NEEDS_DIMENSIONS };

/* A communication of a line; there is none if bytes is 0. */
struct aicb_communication {
	const char *kind; /* of collectives.c */
	uint64_t bytes;
	enum aicb_members members;
};

struct aicb_line {
	uint32_t number;
	vb_time time[PASSES];
	struct aicb_communication communication[PASSES];
};

/* How many ranks there are in each direction: all is tp * dp * pp, and ep divides dp. */
struct aicb_shape {
	uint32_t all, tp, dp, pp, ep;
	bool has_experts; /* the head says how many */
};

struct aicb {
	enum aicb_order order;
	struct aicb_shape shape;
	struct aicb_line *lines;
	uint32_t count, room;
};

/* How many operations each rank has, at most. */
uint64_t aicb_operations_each(const struct aicb *aicb);
/* Fills in the graph, which is empty: 0 or -ENOMEM. */
int aicb_add(const struct aicb *aicb, struct job_file *file);

#endif
