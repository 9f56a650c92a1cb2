/* Input of training as a job: each step each rank gets so many bytes from a storage node, round robin over the nodes.
 */
#ifndef NET_INPUT_JOB_H
#define NET_INPUT_JOB_H

#include "net/job.h"
#include "net/storage_sides.h"

struct input {
	uint64_t bytes; /* of a rank and step */
	uint32_t steps;
	vb_time start, step; /* how long a step takes: the next one's input begins then */
	uint8_t traffic_class;
};

struct input_job {
	struct job job;
	struct input of;
	const struct storage_sides *sides; /* borrowed */
	vb_time *slowest;                  /* by rank: of its inputs; -1: none has come */
};

/* 0; -EINVAL and why, which begins with a key. */
int input_check(const struct input *of, const struct storage_sides *sides, char *why, unsigned why_size);
/* It has passed its check. -ENOMEM: nothing is open. */
int input_job_open(struct input_job *job, const struct input *of, const struct storage_sides *sides);
/* From the beginning of a step until a rank has its input, at most; -1: none has come. */
vb_time input_job_slowest(const struct input_job *job);
void input_job_close(struct input_job *job);

#endif
