/* Steps of training: the workloads of kind "step", by formula. */
#ifndef SIM_STEP_H
#define SIM_STEP_H

#include "sim/simulation.h"
#include "steps/formula.h"

struct step {
	uint32_t workload;
	const struct gpu *gpu;
	struct step_plan plan;
	struct plan_memory memory;
	struct formula_network network;
	bool is_beyond_host[STEP_DIMENSIONS]; /* its ranks are on several hosts */
	struct step_times times;              /* after step_run */
};

/* Completes the plan of a workload for the network: -EINVAL and why, -ENOMEM. */
int step_open(const struct simulation *simulation, uint32_t workload, struct step *step, char *why, size_t size);
/* -EINVAL and why: it does not fit into a GPU, and the scenario wants that checked. */
int step_check_memory(const struct simulation *simulation, const struct step *step, char *why, size_t size);
/* 0 or -ENOMEM. */
int step_run(struct step *step);

#endif
