/* A scenario that is prepared and run, and its result. */
#ifndef SIM_SIMULATION_H
#define SIM_SIMULATION_H

#include <stdbool.h>
#include <stdint.h>
#include "fabric/fabric.h"
#include "net/collective_job.h"
#include "net/graph_job.h"
#include "net/job_file.h"
#include "net/workloads.h"
#include "sim/estimate.h"
#include "sim/flow_check.h"
#include "sim/scenario.h"
#include "sim/services.h"
#include "sim/step_times.h"
#include "sim/warnings.h"

enum { SIMULATION_LABELS = 8 };

struct simulation {
	const struct scenario *scenario; /* borrowed */
	struct network network;
	struct flow_list flows;
	struct hosts hosts;
	uint32_t *gpu_of;             /* of hosts; NULL: ranks are packed */
	struct dimensions dimensions; /* the scenario's, with all sizes; count 0: there are none */
	const char *network_note;     /* what of the network's file is not modelled; NULL: nothing */
	struct job_file job_file;     /* if has_graph */
	struct graph_job graph_job;
	bool has_graph;
	struct collective given;            /* of the last workload that is a collective; ranks 0: there is none */
	struct rank_groups *groups;         /* by workload; of those that are no collective, empty */
	struct collective_job *collectives; /* by job: a collective may be several parts */
	uint32_t collective_count;
	struct service *services; /* their jobs are behind those of collectives */
	uint32_t service_count;
	struct job **jobs;
	uint32_t *workload_of;          /* by job of a collective */
	bool tries_alone;               /* the caller's */
	bool is_checked;                /* the caller's: a run by flows is held against packets */
	struct check_limit check_limit; /* the caller's, of checks */
	bool is_checking;               /* it runs for that */
	struct flow_check check;
	bool explains_job;   /* the caller's, with config.tells_messages and tells_series: transfers have causes */
	vb_time *alone;      /* by workload: how long it takes without the others; NULL: it was not tried */
	uint32_t runs_alone; /* that have begun */
	enum fabric_end alone_end; /* of the first of them that did not come to its end; FABRIC_DONE: all did */
	uint32_t job_count;
	struct compute_trace *traces; /* by workload (step_times.h); NULL: no step has one */
	uint32_t step_count; /* workloads that are steps of training (step_workloads.h); by packets they are a graph,
				which is the last job */
	uint32_t *captured;
	uint32_t captured_count;
	struct vb_cc_config cc;
	struct fabric_config config; /* points into all of these */
	struct fabric_result result;
	vb_time *ideals;    /* of each flow, alone on the network (ideal.h) */
	uint32_t *culprits; /* for each flow, the link that it failed at (culprits.h); NULL: none failed */
	uint32_t failure_culprits[FABRIC_FAILURES]; /* likewise of result.failures */
	/* Remarks to read before the figures. */
	const char *labels[SIMULATION_LABELS];
	unsigned label_count;
	struct warnings warnings;
	struct estimate estimate;
	double prepare_cpu_s; /* of simulation_prepare; a part of result.setup_cpu_s */
};

/* Files that replace the scenario's workloads; each may be NULL. */
struct simulation_files {
	const char *flows, *job;
	const char *groups;  /* of the job's ranks */
	bool are_for_a_plan; /* nothing will run: steps of training are not made into operations */
};

/* Prepares network, flows and transport. files: NULL is none. -EINVAL and why,
 * -ENOMEM; free the simulation in every case. The caller sets the callbacks (config.on_...). */
int simulation_prepare(struct simulation *simulation, const struct scenario *scenario,
	const struct simulation_files *files, char *why, size_t size);
/* After it was prepared for a plan: makes its step into operations after all, so that the estimate is theirs. -EINVAL
 * and why the step would not run, -ENOMEM. */
int simulation_plan_step(struct simulation *simulation, char *why, size_t size);
uint32_t simulation_ranks(const struct simulation *simulation); /* endpoints, or GPUs */
/* The scenario's workload of this number, completed from the network. */
struct workload simulation_workload(const struct simulation *simulation, uint32_t number);
int simulation_run(struct simulation *simulation, char *why, size_t size);
const char *simulation_control(const struct simulation *simulation);
bool simulation_heeds_marks(const struct simulation *simulation); /* the name of its congestion control */
void simulation_free(struct simulation *simulation);

#endif
