/* Lanes of a step by flows: replicas whose messages between stages take as long. In a pipeline a message that is late
 * holds up its own replica alone, until gradients are added up; so each lane has a timeline of its own.
 *
 * Replicas that share experts are in one lane: they exchange tokens in each layer. */
#ifndef STEPS_LANES_H
#define STEPS_LANES_H

#include <stdint.h>

enum { STEP_MOST_LANES = 16 };

struct step_lanes {
	uint32_t count;
	uint32_t unit;                   /* ranks of a stage that are in one lane for sure */
	uint32_t units;                  /* of a stage */
	uint8_t *of;                     /* by unit: its lane; NULL: there is one */
	uint32_t sizes[STEP_MOST_LANES]; /* units */
	uint32_t first_class;            /* of the step's loads */
};

/* Of a rank by its place in the stage (plan.h). */
static inline uint32_t step_lane_of(const struct step_lanes *lanes, uint32_t place)
{
	return lanes->of ? lanes->of[place / lanes->unit] : 0;
}

#endif
