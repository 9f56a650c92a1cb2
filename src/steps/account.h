/* What a step's time went to, from when the operations of ranks began and ended. */
#ifndef STEPS_ACCOUNT_H
#define STEPS_ACCOUNT_H

#include "steps/program.h"

/* Times are means over ranks; compute, exposed and bubble sum up to the step's. exposed[STEP_PP] is the time of
 * messages between stages that nothing hid; bubble, other waiting for another stage. */
struct step_times {
	vb_time step;
	double compute, bubble;
	double exposed[STEP_DIMENSIONS];
	double bytes[STEP_DIMENSIONS]; /* that a rank sends */
	double took[STEP_DIMENSIONS];  /* its communication, hidden or not; of messages, from when they were sent */
};

/* A rank's run, by operation of its program; borrowed. */
struct step_rank {
	const struct step_program *program;
	const vb_time *begin, *end;
	const vb_time *left; /* of a STEP_RECEIVE: when its message was sent */
};

/* Adds the rank, which stands for so many, to the sums; times->step is set. -ENOMEM. */
int account_add(const struct step_plan *plan, const struct step_rank *rank, uint32_t count, struct step_times *times);
/* Sums of so many ranks become means. */
void account_mean(struct step_times *times, uint32_t ranks);

#endif
