/* The load that the communication of each stage puts on the network, by flows (run.mode: flows), of one step or of
 * several. All ranks of a stage do the same at the same time, so the flows of one operation of all of them are a class:
 * they have one rate.
 *
 * A class is the communication of a stage's lane (lanes.h) in one dimension; what all lanes do together is of the
 * first. A link of a network is a limit: links that the same classes load alike are one. Where links go down, loads are
 * of a time: classes are the same at all times. */
#ifndef STEPS_LOADS_H
#define STEPS_LOADS_H

#include "net/max_min.h"
#include "net/stalls.h"
#include "steps/lanes.h"
#include "steps/program.h"

/* The dimensions, and messages to the stage before, which take another way than those to the next. */
enum { STEP_PP_BACK = STEP_DIMENSIONS, STEP_CLASSES };

/* Of the rate at which a rank of the class sends. hop_count 0: its communication is too little to share. */
struct step_load {
	struct max_min_hop *hops; /* by limit */
	uint32_t hop_count;
	uint32_t component; /* classes of different components have no limit in common */
	uint64_t alone;     /* its rate if nothing else is under way */
	bool is_down;       /* a link that it goes by is down */
};

struct step_loads {
	struct step_load *classes; /* of each step by (stage * lanes + lane) * STEP_CLASSES + class */
	uint32_t class_count;
	uint64_t *limits; /* payload bytes a second */
	uint32_t limit_count;
	struct step_lanes *lanes; /* by step */
	uint32_t step_count;
	/* Where links go down. */
	vb_time until; /* from then on `next` holds; -1: never */
	struct step_loads *next;
	struct resending resending;
};

/* Of a lane's. */
static inline uint32_t step_class_of(
	const struct step_plan *plan, uint32_t stage, const struct step_operation *operation)
{
	const bool is_back = operation->dimension == STEP_PP && operation->peer != (stage + 1) % plan->pp;
	return is_back ? (uint32_t)STEP_PP_BACK : operation->dimension;
}

/* Whether all lanes of a stage do it together, as one. */
static inline bool step_joins_lanes(const struct step_operation *operation)
{
	return operation->dimension == STEP_DP || operation->dimension == STEP_EXPERTS_DP;
}

/* Finds components and `alone`, when classes and limits are filled in. -ENOMEM. */
int step_loads_finish(struct step_loads *loads);
/* Without classes and limits, to be made anew. */
void step_loads_empty(struct step_loads *loads);
/* And those of later times. */
void step_loads_free(struct step_loads *loads);

#endif
