/* In which order a stage of a pipeline does the passes of its micro-batches.
 *
 *   SCHEDULE_1F1B         forward passes until the last stage has one, then one backward and one forward in turn
 *   SCHEDULE_INTERLEAVED  the same of several parts of the model in each stage (arXiv 2104.04473, section 2.2)
 *   SCHEDULE_ZERO_BUBBLE  1F1B whose backward passes are two: gradients of inputs, which the stage before waits for,
 * and of weights, which nobody waits for. Stage i puts off i of these (ZB-H1, arXiv 2401.10241) */
#ifndef STEPS_SCHEDULE_H
#define STEPS_SCHEDULE_H

#include "steps/plan.h"

enum step_pass { PASS_FORWARD, PASS_BACKWARD, PASS_WEIGHTS }; /* the last: of SCHEDULE_ZERO_BUBBLE alone */

struct step_action {
	uint8_t pass;
	uint32_t micro_batch, part;
};

/* Of a plan that passed plan_check: so many actions, and each of them. */
uint32_t schedule_count(const struct step_plan *plan);
void schedule_fill(const struct step_plan *plan, uint32_t stage, struct step_action *actions);

#endif
