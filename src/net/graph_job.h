/* A graph of operations (graph.h) as a job: each begins when its waits and its stream let it, and what became of it is
 * kept. */
#ifndef NET_GRAPH_JOB_H
#define NET_GRAPH_JOB_H

#include "net/graph_mail.h"
#include "net/graph_shares.h"

/* What became of an operation, and why not sooner: the operation that it waited for last. */
struct graph_record {
	vb_time begin, end; /* -1: never */
	uint32_t let_begin; /* of the same rank: by its end, or begin, or by leaving the stream. GRAPH_NONE: none */
	uint32_t let_end; /* of another rank: the one whose message it waited for; of a collective, the one whose begin
			     let the messages go that it waited for, one after the other. GRAPH_NONE: none */
};

struct graph_job {
	struct job job;
	const struct graph *graph;
	struct graph_record *records; /* by operation */
	/* The rest is for graph_job.c alone. */
	uint32_t *waits_left, *link; /* by operation */
	struct graph_shares shares;
	struct graph_stream *streams; /* by rank, then by stream */
	struct graph_mail mail;
};

/* The graph has passed graph_finish, and is borrowed. Of the hosts, collectives go by all NICs. The settings are of all
 * its collectives, but for rails, which are the hosts'; graph_shares_have_room of them. -ENOMEM: nothing is open. */
int graph_job_open(
	struct graph_job *job, const struct graph *graph, const struct hosts *hosts, const struct nccl_settings *nccl);
void graph_job_close(struct graph_job *job);
/* How many messages an operation sends. */
uint64_t graph_job_sends(const struct graph_job *job, uint32_t operation);
/* How many of these leave its host: of a collective by a few of them. */
double graph_job_leaving(const struct graph_job *job, uint32_t operation);
/* The lowest operation that has not ended, and how many there are; GRAPH_NONE: all have. */
uint32_t graph_job_unfinished(const struct graph_job *job, uint32_t *count);
/* What let a collective end at this rank; NULL: it has not ended, or is no collective. */
const struct graph_chain *graph_job_chain(const struct graph_job *job, uint32_t operation);
/* The operation that ended last, of several the lowest, but no send: that ends when its acknowledgement is there, which
 * nobody waits for. GRAPH_NONE: none has ended. */
uint32_t graph_job_last(const struct graph_job *job);

#endif
