/* A step by formula: programs run as always, each collective and message takes its time without contention. Ranks of a
 * stage do the same at the same time, so one stands for all. */
#ifndef STEPS_FORMULA_H
#define STEPS_FORMULA_H

#include "steps/account.h"

/* How ranks of a dimension reach each other: a message of one byte, and the payload's rate of a rank. */
struct formula_way {
	double alpha;          /* picoseconds */
	double bytes_a_second; /* above 0 */
};

struct formula_network {
	struct formula_way ways[STEP_DIMENSIONS];
};

/* -ENOMEM. */
int formula_run(const struct step_plan *plan, const struct formula_network *network, struct step_times *times);

#endif
