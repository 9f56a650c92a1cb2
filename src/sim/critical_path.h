/* The chain of operations that made a job as long as it was: from the one that ended last back to one that waited for
 * nothing. Each was let go by the one before it: by its end, by a message of it, or by leaving the stream. */
#ifndef SIM_CRITICAL_PATH_H
#define SIM_CRITICAL_PATH_H

#include "net/graph_job.h"

enum critical_cause {
	CRITICAL_NOTHING,   /* it began when the job did */
	CRITICAL_OPERATION, /* an operation of its rank that it waits for, or that had its stream */
	CRITICAL_MESSAGE,   /* a message of another rank's operation, while it was under way itself; of a collective,
			       messages that let each other go, from the rank that let the first go */
};

struct critical_step {
	uint32_t operation;
	vb_time from, until; /* the part of the job's time that this operation is on the path */
	enum critical_cause cause;
	const struct graph_chain *chain; /* of a collective: the messages that the step is; NULL */
};

struct critical_path {
	struct critical_step *steps; /* in order of time */
	uint32_t count;
	vb_time computing, network; /* of all steps */
};

/* Of a step that waited for another rank: how much later that began; 0: it did not. */
vb_time critical_late(const struct graph_job *job, const struct critical_step *step);
/* The message that the step is, or of a collective the longest of those; false: it is none. */
bool critical_transfer(const struct graph_job *job, const struct critical_step *step, struct graph_transfer *transfer);
int critical_path_find(struct critical_path *path, const struct graph_job *job); /* -ENOMEM */
void critical_path_free(struct critical_path *path);

/* What an operation is, for people: "rank 3: receive from rank 1 (line 12)". */
struct job_file;
const char *operation_kind(const struct graph_operation *operation); /* "compute" */
const char *operation_text(const struct job_file *file, uint32_t operation, char *text, size_t size);

#endif
