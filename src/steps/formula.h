/* A step by formula: programs run as always, each collective and message takes its time without contention. Ranks of a
 * stage do the same at the same time, so one stands for all. */
#ifndef STEPS_FORMULA_H
#define STEPS_FORMULA_H

#include "steps/program.h"

/* How ranks of a dimension reach each other: a message of one byte, and the payload's rate of a rank. */
struct formula_way {
	double alpha;          /* picoseconds */
	double bytes_a_second; /* above 0 */
};

struct formula_network {
	struct formula_way ways[STEP_DIMENSIONS];
};

/* Times are means over the ranks; compute, exposed and bubble sum up to the step's. exposed[STEP_PP] is the time of
 * messages between stages that nothing hid; bubble, other waiting for another stage. */
struct step_times {
	vb_time step;
	double compute, bubble;
	double exposed[STEP_DIMENSIONS];
	double bytes[STEP_DIMENSIONS]; /* that a rank sends */
};

/* -ENOMEM. */
int formula_run(const struct step_plan *plan, const struct formula_network *network, struct step_times *times);
/* Of one collective of a dimension, in picoseconds. */
double formula_collective(const struct formula_way *way, const char *kind, uint32_t members, uint64_t bytes);

#endif
