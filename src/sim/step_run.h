/* Runs the steps of training of a scenario, and tells them. */
#ifndef SIM_STEP_RUN_H
#define SIM_STEP_RUN_H

#include "sim/session.h"
#include "sim/step.h"
#include "sim/step_check.h"

/* The steps of a session that is open, by workload. */
struct step_runs {
	struct step *steps;
	struct step_loads loads;   /* by flows: of all steps */
	struct step_check *checks; /* NULL: steps are not checked by packets */
	uint32_t count;            /* 0: their run did not come to its end */
};

/* By flows or by formula, each with its check by packets; or nothing but the plans of a dry run and what a run would
 * cost. An exit status. */
int step_run_all(struct session *session, const struct sim_options *options);
/* By the scenario's mode, and tells nothing; file: for errors. An exit status; close them in every case. */
int step_runs_make(
	struct session *session, const struct sim_options *options, const char *file, struct step_runs *runs);
/* Then, by flows or by formula: holds each against packets, unless the options want no check. An exit status. */
int step_runs_check(struct session *session, const struct sim_options *options, struct step_runs *runs);
void step_runs_close(struct step_runs *runs);
/* Of runs by flows or by formula: one object, without a newline. */
void step_runs_json(FILE *out, const struct session *session, const struct step_runs *runs);
/* What a dry run tells of the cost, in one line; opens steps and makes their operations. An exit status. */
int step_tell_cost(struct session *session, const char *file);
/* After a run by packets: what the step went to, behind what is told of every run. -ENOMEM. */
int step_tell_run(const struct simulation *simulation);

#endif
