/* What a step of training takes, for people and as JSON. */
#ifndef SIM_STEP_REPORT_H
#define SIM_STEP_REPORT_H

#include <stdio.h>
#include "sim/step.h"
#include "sim/step_check.h"

/* Before it runs: model, plan, memory, work, and what a rank sends. */
void step_report_plan(FILE *out, const struct step *step);
/* After its run, which `how` says; steps 0: of no training. */
void step_report_times(FILE *out, const struct step *step, const char *how, uint32_t steps);
void step_report_check(FILE *out, const struct step_check *check);
/* An object; mode: in which it was run. check: NULL if there was none. */
void step_report_json(
	FILE *out, const struct step *step, const char *mode, uint32_t steps, const struct step_check *check);

/* A table of runs, a line for each; with errors it has their columns. check: NULL, where the line has none, or is of a
 * run by packets. */
void step_report_heading(FILE *out, bool with_errors);
void step_report_line(
	FILE *out, const char *name, const struct step *step, const struct step_check *check, bool with_errors);
/* Why another network gives the same step. Returns text. */
const char *step_report_why_same(const struct step *step, bool is_by_formula, char *text, size_t size);

#endif
