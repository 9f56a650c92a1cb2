/* A step without packets: programs run as always. By formula each collective and message takes its time without
 * contention; by flows those that are under way together share the network. Ranks of a stage do the same at the same
 * time, so one stands for all of a lane (lanes.h): it computes as long as the slowest of them. */
#ifndef STEPS_TIMING_H
#define STEPS_TIMING_H

#include "steps/account.h"
#include "steps/loads.h"

/* Between two ranks: a message of one byte, and the rate of a rank's payload. */
struct step_link {
	double alpha;          /* picoseconds */
	double bytes_a_second; /* above 0 */
};

/* How ranks of a dimension reach each other. A ring over hosts with several ranks each has steps of two kinds. */
struct step_way {
	struct step_link link; /* the slowest: between hosts, where ranks are on several */
	struct step_link near; /* of a ring's steps that stay in their host */
	double near_part;      /* of a ring's steps, 0 to 1 */
	double near_rings;     /* that share a port; 0: likewise 1 */
	bool leaves_hosts;
};

struct step_network {
	struct step_way ways[STEP_DIMENSIONS]; /* of collectives */
	struct step_way *boundaries;    /* by stage: its messages to the next, the last's to the first; pp of them */
	const struct step_loads *loads; /* NULL: by formula */
	const struct step_lanes *lanes; /* likewise; of the plan */
};

/* Steps that run at once: by flows they share the network, which has one `loads` for all. -ENOMEM; -EHOSTUNREACH: a
 * link stays down for longer than messages are sent again. */
struct timing_step {
	const struct step_plan *plan;
	const struct step_network *network;
	struct step_times times; /* after the run */
};
int timing_run_all(struct timing_step *steps, uint32_t count);
/* One alone. Likewise. */
int timing_run(const struct step_plan *plan, const struct step_network *network, struct step_times *times);

#endif
