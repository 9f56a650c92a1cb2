/* Which replicas of a pipeline are one lane (steps/lanes.h): those whose messages have the same loads to share. */
#ifndef SIM_STEP_LANES_H
#define SIM_STEP_LANES_H

#include "steps/lanes.h"
#include "steps/plan.h"

/* Of a unit, from its messages. */
struct lane_sign {
	uint64_t hash;
	double slowness;
};

struct lane_signs {
	struct lane_sign *units;
	uint32_t unit, count; /* as in struct step_lanes */
};

/* Close them in every case. -ENOMEM. */
int lane_signs_open(struct lane_signs *signs, const struct step_plan *plan);
void lane_signs_close(struct lane_signs *signs);
/* A message of the rank at this place has a link for which so many contend. */
void lane_signs_note(struct lane_signs *signs, uint32_t place, double contend);
/* Those that are alike are one lane; where these are too many, those that are about as slow. -ENOMEM. */
int lane_signs_divide(const struct lane_signs *signs, struct step_lanes *lanes);

#endif
