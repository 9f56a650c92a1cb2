/* A summary of a run: percentiles, also by size of flow, and the busiest links. */
#ifndef SIM_SUMMARY_H
#define SIM_SUMMARY_H

#include "sim/simulation.h"

enum { SUMMARY_LINKS = 5, SUMMARY_BUCKETS = 6 };

struct summary_flows {
	const char *name;                         /* "up to 1 kB" */
	uint32_t count;                           /* that ended successfully */
	vb_time p50, p95, p99, most;              /* nearest rank */
	double slow50, slow95, slow99, slow_most; /* divided by the ideal; at least 1 */
};

struct summary_links {
	uint32_t link[SUMMARY_LINKS], count; /* busiest first */
};

struct summary {
	struct summary_flows all, buckets[SUMMARY_BUCKETS];
	struct summary_links links, front_links; /* of the back end; of the front end */
};

int summary_make(struct summary *summary, const struct simulation *simulation); /* -ENOMEM */

/* For a flow that ended successfully. */
double flow_slowdown(const struct simulation *simulation, uint32_t flow);
bool flow_is_done(const struct simulation *simulation, uint32_t flow);
/* The share of time for which a link was sending, up to the end of the last flow, or of the run. */
double link_load(const struct simulation *simulation, uint32_t link);
/* The mean of bytes in its queue over the same time, with the unsent part of the packet on the wire; for runs that
 * measure queues. */
double link_mean_queue(const struct simulation *simulation, uint32_t link);

#endif
