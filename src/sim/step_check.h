/* How far a step in a fast mode is from packets: a short piece of it (steps/piece.h) runs both ways, on the same
 * network and the same ranks. */
#ifndef SIM_STEP_CHECK_H
#define SIM_STEP_CHECK_H

#include "sim/step.h"

struct step_check {
	bool is_made;
	char why_not[500]; /* it is not made */
	uint32_t layers, micro_batches;
	double bytes_part;               /* of each message */
	struct step_times ours, packets; /* of the piece */
	uint64_t packet_hops;
	double cpu_s;
	/* What packets meet, and a fast mode does not see. */
	uint64_t drops, pauses, resent;
};

/* Within the limit. The simulation is prepared, with its callback
 * for progress; the step has run. -EINVAL and why, -ENOMEM. */
int step_check_run(const struct simulation *simulation, const struct step *step, const struct check_limit *limit,
	struct step_check *check, char *why, size_t size);

#endif
