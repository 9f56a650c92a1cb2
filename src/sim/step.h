/* Steps of training: the workloads of kind "step", by formula. */
#ifndef SIM_STEP_H
#define SIM_STEP_H

#include "sim/simulation.h"
#include "steps/timing.h"
#include "steps/step_graph.h"

struct step {
	uint32_t workload;
	const struct gpu *gpu;
	const struct gpu *kinds[PLAN_RANGES]; /* by range of plan.kinds (step_gpus.h) */
	const char *slow;                     /* as the scenario has it; NULL: none is */
	const char *compute_times; /* the file of kernels' times; NULL: they reach a part of the GPU's peak */
	struct step_plan plan;
	struct plan_memory memory;
	struct step_network network; /* after steps_run, or step_take_times */
	struct step_times times;     /* likewise */
	vb_time alone; /* likewise: without the other steps; 0: there is none, or it was not tried; -1: it has not ended
			*/
	bool is_upper_bound; /* without packets: its time is none but the longest that it may be (speeds.h) */
	double bound;        /* likewise: what of the step a network between hosts that took no time would save */
};

/* Completes the plan of a workload for the network: -EINVAL and why, which begins with the key at fault; -ENOMEM. */
int step_open(const struct simulation *simulation, uint32_t workload, struct step *step, char *why, size_t size);
void step_close(struct step *step);
/* -EINVAL and why: it does not fit into a GPU, and the scenario wants that checked. */
int step_check_memory(const struct simulation *simulation, const struct step *step, char *why, size_t size);
/* All steps of a scenario that are open, in a simulation that is prepared: by formula each by itself, by flows all at
 * once. Fills in the loads, which the steps borrow; free them, and close the steps, in every case. -EINVAL
 * and why, -ENOMEM. */
int steps_run(const struct simulation *simulation, struct step *steps, uint32_t count, struct step_loads *loads,
	bool tries_alone, char *why, size_t size);
/* What that would take. -ENOMEM. */
struct step_cost {
	double operations, cpu_s, bytes;
};
int step_cost_by_formula(const struct simulation *simulation, const struct step *step, struct step_cost *cost);
/* By packets: fills in the simulation's job, of all steps. -EINVAL and why, -ENOMEM. */
int steps_make_graph(struct simulation *simulation, char *why, size_t size);
/* After that job's run, which has come to its end: opens this step and fills in its times. -ENOMEM; close
 * the step in every case. */
int step_take_times(const struct simulation *simulation, uint32_t workload, struct step *step);

/* Communication with ranks of other hosts that nothing hides, as a part of the step. */
double step_exposed_between_hosts(const struct step *step);
/* What takes most of the step: "computing", "communication in hosts", "communication between hosts" or "the bubble". */
const char *step_bound_by(const struct step *step);

#endif
