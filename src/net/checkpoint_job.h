/* A checkpoint as a job: all ranks write their equal parts to storage nodes, in messages of a size, round robin over
 * the nodes. To restore it a rank that has written all asks for each message, and the node sends it back. */
#ifndef NET_CHECKPOINT_JOB_H
#define NET_CHECKPOINT_JOB_H

#include "net/job.h"
#include "net/storage_sides.h"

/* Messages that a rank has under way, each way: messages to as many nodes end at the same time, perhaps, and while the
 * next ones begin the rank's link is idle. */
enum { CHECKPOINT_UNDER_WAY = 32 };

struct checkpoint {
	uint64_t bytes;   /* of all ranks */
	uint64_t message; /* bytes */
	bool restores;
	vb_time start;
	uint8_t traffic_class;
};

struct checkpoint_rank; /* how far one is */

struct checkpoint_job {
	struct job job;
	struct checkpoint of;
	const struct storage_sides *sides; /* borrowed */
	struct checkpoint_rank *ranks;
	vb_time *stored; /* by node: when the last of what was written came; -1: nothing has */
};

/* 0; -EINVAL and why, which begins with a key. */
int checkpoint_check(const struct checkpoint *of, const struct storage_sides *sides, char *why, unsigned why_size);
/* It has passed its check. -ENOMEM: nothing is open. */
int checkpoint_job_open(struct checkpoint_job *job, const struct checkpoint *of, const struct storage_sides *sides);
/* After the start: when all was stored, and when all was back; -1: never. A rank reads while others still write. */
vb_time checkpoint_job_stored(const struct checkpoint_job *job);
vb_time checkpoint_job_restored(const struct checkpoint_job *job);
void checkpoint_job_close(struct checkpoint_job *job);

#endif
