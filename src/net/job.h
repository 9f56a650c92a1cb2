/* A job: what the programs of ranks do, told as the run goes along. The run tells the job what a program hears, and
 * the job answers with what that program does next. So a job holds what is under way and no more.
 *
 * A rank is an endpoint of the network, or a GPU of a host that has several (hosts.h).
 *
 * Holds: a program hears only of its own rank: that a message of its own begins or has ended, that a message to it
 * has arrived, that a computation of its own is over. Calls for one rank come from one thread, in order of time;
 * those for different ranks may come at the same time from several threads. So a job keeps its state by rank,
 * and the same things happen with any number of threads. */
#ifndef NET_JOB_H
#define NET_JOB_H

#include "net/flows.h"
#include "net/hosts.h"

/* A run has room for so many between two ranks. */
enum { MESSAGE_MOST_CHANNEL = 2047 };

struct message {
	uint32_t src, dst; /* ranks; src: the one that the call is for */
	uint64_t bytes;    /* not 0 */
	vb_time start;     /* when the program begins it: not before the time of the call */
	uint64_t tag;      /* the job's own name for it. What begins at one time begins in the order of tags */
	/* 0: the message has a connection of its own. Otherwise it goes by the connection between these ranks' NICs
	 * that has this number: messages of a connection are sent in the order in which they begin, and it stays open.
	 */
	uint32_t channel; /* at most MESSAGE_MOST_CHANNEL */
	uint16_t part;    /* of a GPU's NICs, the turn of the one that it goes by (hosts_turn_of); any number */
	uint16_t entropy; /* distinguishes messages between the same endpoints for ECMP, where connections do not */
	uint8_t traffic_class;
	bool tells_arrival; /* the destination is to hear of it */
	bool is_piece;      /* in a host it waits for those before it on its connection; others share the ports */
	/* In a host whose domain reduces: a copy leaves its sender with another message, a part of a sum arrives at its
	 * receiver with others. So one port is enough, and src may be dst: the switch has the bytes in between. */
	bool is_copy, is_of_sum;
	const void *carried; /* job_kind.carried_bytes of the job's own, which are copied; NULL: none */
};

/* Where a job puts what the program does next. */
struct job_sink {
	void (*send)(struct job_sink *sink, const struct message *message);
	void (*compute)(struct job_sink *sink, vb_time until, uint64_t tag);
	/* The job has no memory for what it has to keep: some of it is lost, and the run must end. */
	void (*lack_memory)(struct job_sink *sink);
};

struct job;

/* at: when the program hears of it, from 0. carried: as it was sent. A function that is NULL is not called. */
struct job_kind {
	void (*begin)(struct job *job, uint32_t rank, struct job_sink *sink); /* once for each rank, at 0 */
	void (*begun)(struct job *job, uint32_t rank, uint64_t tag, struct job_sink *sink);
	void (*ended)(struct job *job, uint32_t rank, uint64_t tag, vb_time at, const struct flow_result *result,
		const void *carried, struct job_sink *sink);
	void (*arrived)(
		struct job *job, uint32_t rank, uint64_t tag, vb_time at, const void *carried, struct job_sink *sink);
	void (*computed)(struct job *job, uint32_t rank, uint64_t tag, vb_time at, struct job_sink *sink);
	/* The job is over when its last message has arrived; otherwise, when the last has ended. */
	bool ends_by_arrival;
	uint32_t carried_bytes; /* with each message; a message that carries none of them carries zeros */
};

struct job {
	const struct job_kind *kind;
	uint64_t operations; /* messages and computations in all */
	uint32_t ranks;      /* 0 to ranks - 1 take part */
	enum hosts_rails rails;
};

#endif
