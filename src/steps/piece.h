/* A short piece of a step, which runs by packets beside a faster mode, so that its error is known: the same ranks, the
 * same kinds of layers and messages, but as few layers and micro-batches as the schedule allows, and a part of the
 * bytes of each message. */
#ifndef STEPS_PIECE_H
#define STEPS_PIECE_H

#include "steps/plan.h"

/* Of a plan that passed plan_check, as the piece does. bytes_part: above 0, at most 1. */
struct step_plan piece_of(const struct step_plan *plan, double bytes_part);

#endif
