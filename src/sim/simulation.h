/* A scenario made ready, run, and what came of it. */
#ifndef SIM_SIMULATION_H
#define SIM_SIMULATION_H

#include <stdbool.h>
#include <stdint.h>
#include "fabric/fabric.h"
#include "net/workloads.h"
#include "sim/estimate.h"
#include "sim/scenario.h"
#include "sim/warnings.h"

enum { SIMULATION_LABELS = 4 };

struct simulation {
	const struct scenario *scenario; /* borrowed */
	struct network network;
	struct flow_list flows;
	uint32_t *captured;
	uint32_t captured_count;
	struct vb_cc_config cc;
	struct fabric_config config; /* points into all of these */
	struct fabric_result result;
	vb_time *ideals;    /* of each flow, alone on the network (ideal.h) */
	uint32_t *culprits; /* of each flow the link that it failed at (culprits.h); NULL: none failed */
	/* What a reader must know before he believes a figure. */
	const char *labels[SIMULATION_LABELS];
	unsigned label_count;
	struct warnings warnings;
	struct estimate estimate;
	double prepare_cpu_s; /* that simulation_prepare took: part of result.setup_cpu_s */
};

/* Network, flows and transport. flow_file: instead of the scenario's workloads, or NULL. -EINVAL and why, -ENOMEM; to
 * be freed whatever the answer. What is heard of the run (config.on_...) is the caller's to set. */
int simulation_prepare(
	struct simulation *simulation, const struct scenario *scenario, const char *flow_file, char *why, size_t size);
/* The scenario's workload of this number, with what it leaves to the network. */
struct workload simulation_workload(const struct simulation *simulation, uint32_t number);
int simulation_run(struct simulation *simulation, char *why, size_t size);
const char *simulation_control(const struct simulation *simulation);
bool simulation_heeds_marks(const struct simulation *simulation); /* its congestion control's name */
void simulation_free(struct simulation *simulation);

#endif
