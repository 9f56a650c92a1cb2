/* Whether a step can be made of a plan. */
#ifndef STEPS_PLAN_CHECK_H
#define STEPS_PLAN_CHECK_H

#include "steps/plan.h"

/* 0; -EINVAL and why: the key at fault as scenarios call it, a colon, what is wrong, and the cure. */
int plan_check(const struct step_plan *plan, char *why, unsigned why_size);

#endif
