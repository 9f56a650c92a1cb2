/* A graph of operations on ranks: what a job's programs do, as other tools' traces say it. A reader adds operations and
 * waits; graph_finish checks the whole; graph_job.h runs it.
 *
 *   GRAPH_COMPUTE     takes a time
 *   GRAPH_SEND        a message to a rank; it has ended when its sender knows that it was received
 *   GRAPH_RECEIVE     ends when a message from that rank with that tag is there: the first that was sent goes to the
 * first that was begun. A message is sent whether or not its receive has begun GRAPH_COLLECTIVE  this rank's part in a
 * collective of a group. The n-th of a group at one rank is the n-th at all of its ranks. It ends when the rank has
 * sent and received all of its messages
 *
 * An operation begins when all that it waits for has ended (or begun), and its stream is free: of one rank and stream
 * one operation runs at a time, and of those that may begin the next is the one of the highest priority, then the one
 * that was added first. Operations without a stream begin at once. */
#ifndef NET_GRAPH_H
#define NET_GRAPH_H

#include "base/number_map.h"
#include "net/collectives.h"

#define GRAPH_ANY       UINT32_MAX /* of a receive: any peer, any tag */
#define GRAPH_NO_STREAM 255
#define GRAPH_NONE      UINT32_MAX

enum graph_kind {
	GRAPH_COMPUTE,
	GRAPH_SEND,
	GRAPH_RECEIVE,
	GRAPH_COLLECTIVE,
};

enum graph_event {
	GRAPH_ENDED,
	GRAPH_BEGUN,
};

struct graph_operation {
	uint32_t rank;
	uint8_t kind, stream, traffic_class; /* kind: enum graph_kind */
	int8_t priority;
	union {
		vb_time time;   /* GRAPH_COMPUTE: not below 0 */
		uint64_t bytes; /* others; a collective's as struct collective counts them. A send of 0 has one byte */
	};
	union {
		struct {
			uint32_t peer, tag; /* GRAPH_SEND, GRAPH_RECEIVE */
		};
		struct {
			uint32_t group, collective; /* GRAPH_COLLECTIVE: of graph->groups, of graph->collectives */
		};
	};
	uint32_t waits; /* filled in by graph_add_wait */
	union {
		uint32_t instance; /* GRAPH_COLLECTIVE, filled in by graph_finish: which of its group's at this rank,
				      from 0 */
		/* GRAPH_SEND, GRAPH_RECEIVE: the rank's processor and NIC, for loggops.h alone. A computation's
		 * processor is its stream. */
		struct {
			uint8_t cpu, nic;
		};
	};
};
_Static_assert(sizeof(struct graph_operation) == 32, "a job has millions");

struct graph_wait {
	uint32_t operation; /* this one waits... */
	uint32_t before : 31;
	uint32_t event : 1; /* ...for this event of `before`, which is of the same rank: enum graph_event */
};

struct graph_group {
	uint32_t *ranks; /* NULL: all ranks of the graph */
	uint32_t count;
	struct number_map members; /* of `ranks`: which each is, the first of equals */
	uint32_t *first;           /* filled in by graph_finish: member m's collectives are ordered[first[m]] to
				      ordered[first[m+1]-1] */
};

struct graph_collective {
	const char *kind, *algorithm; /* of the tables in collectives.c: valid for ever */
};

struct graph {
	uint32_t ranks;
	struct graph_operation *operations; /* sorted by rank: each rank's are added after those of lower ranks */
	uint32_t count, room;
	struct graph_wait *waits;
	uint32_t wait_count, wait_room;
	struct graph_group *groups;
	uint32_t group_count, group_room;
	struct graph_collective *collectives;
	uint32_t collective_count, collective_room;
	uint64_t beside_gpu; /* a bit for each stream up to 63 whose computations are not the GPU's: the reader's */
	/* Filled in by graph_finish. */
	uint32_t *first;   /* by rank: its first operation; ranks + 1 of them */
	uint32_t *ordered; /* collectives by group, member and order */
	uint32_t *followers_first,
		*followers; /* as struct flow_followers has them; a follower is operation << 1 | event */
	uint32_t streams;   /* one more than the highest that is used */
};

/* Each: 0, or -ENOMEM. */
int graph_add(struct graph *graph, const struct graph_operation *operation);
int graph_add_wait(struct graph *graph, uint32_t operation, uint32_t before, enum graph_event event);
/* `ranks` is copied; NULL: all. The group's number is graph->group_count - 1 then. */
int graph_add_group(struct graph *graph, const uint32_t *ranks, uint32_t count);
/* The number of this kind and algorithm (NULL: the kind's first) in graph->collectives. The kind exists. */
int graph_find_collective(struct graph *graph, const char *kind, const char *algorithm, uint32_t *number);

/* Called once, when all is added. Errors name operations by `name`, which writes what the file calls an operation;
 * NULL: by number. -EINVAL and why: a rank, peer or group that does not exist, a wait for another rank's operation, a
 * cycle, sends and receives that do not pair up, collectives of a group that differ between its ranks. -ENOMEM. */
struct graph_names {
	void (*name)(void *user, uint32_t operation, char *text, unsigned size);
	void *user;
};
int graph_finish(struct graph *graph, const struct graph_names *names, char *why, unsigned why_size);
void graph_free(struct graph *graph);

/* After graph_finish. */
struct collective graph_collective_of(const struct graph *graph, uint32_t operation);
uint32_t graph_member(const struct graph_group *group, uint32_t rank); /* GRAPH_NONE: it is no member */
uint32_t graph_rank_of(const struct graph_group *group, uint32_t member);
/* The operation of that rank for the same collective as this one. */
uint32_t graph_same_at(const struct graph *graph, uint32_t operation, uint32_t member);

#endif
