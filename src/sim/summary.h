/* What a run comes to: percentiles, by size of flow too, and the links that had most to do. */
#ifndef SIM_SUMMARY_H
#define SIM_SUMMARY_H

#include "sim/simulation.h"

enum { SUMMARY_LINKS = 5, SUMMARY_BUCKETS = 6 };

struct summary_flows {
	const char *name;                         /* "up to 1 kB" */
	uint32_t count;                           /* that ended well */
	vb_time p50, p95, p99, most;              /* nearest rank */
	double slow50, slow95, slow99, slow_most; /* by the ideal; 1 at least */
};

struct summary {
	struct summary_flows all, buckets[SUMMARY_BUCKETS];
	uint32_t links[SUMMARY_LINKS], link_count; /* busiest first */
};

int summary_make(struct summary *summary, const struct simulation *simulation); /* -ENOMEM */

/* Of a flow that ended well. */
double flow_slowdown(const struct simulation *simulation, uint32_t flow);
bool flow_is_done(const struct simulation *simulation, uint32_t flow);
/* The share of the time that a link was sending: until the last flow ended, or the run. */
double link_load(const struct simulation *simulation, uint32_t link);
/* Bytes before it on average over the same time, with what was still to leave of a packet; of a run that tells of
 * queues. */
double link_mean_queue(const struct simulation *simulation, uint32_t link);

#endif
