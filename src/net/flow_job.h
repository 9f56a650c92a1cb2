/* A list of flows as a job: each flow is a message with a connection of its own, and its tag is its number. */
#ifndef NET_FLOW_JOB_H
#define NET_FLOW_JOB_H

#include "net/job.h"

struct flow_job {
	struct job job;
	const struct flow_list *list;
	struct flow_result *results; /* by flow */
	struct flow_followers followers;
	uint32_t *waits_left; /* by flow: the events that have not happened yet. NULL: no flow waits */
	/* Flows without waits, by source and start: those of source i are order[first[i]] to order[first[i + 1] - 1].
	 * Only the next of each source is put into the run. */
	uint32_t *first, *next, *order;
};

/* The list has passed its check, and is borrowed like the results, which are filled in. -ENOMEM: nothing is open. */
int flow_job_open(struct flow_job *job, const struct flow_list *list, uint32_t endpoints, struct flow_result *results);
void flow_job_close(struct flow_job *job);
bool flow_job_tells(const struct flow_job *job, uint32_t flow); /* a flow waits for this one's arrival */

#endif
