/* Flows and their order: each is a message from one endpoint to another, and some wait for others.
 *
 * A flow without waits begins at its start. A flow with waits, for any number of others, begins `start` after its
 * source has heard of the last of them. There are two things to hear of a flow:
 *
 *   FLOW_ENDED    the source has seen it done: its last byte is acknowledged, or it has failed
 *   FLOW_ARRIVED  the destination has all of its bytes; a flow that fails before this never arrives
 *
 * The first is heard at that flow's source and the second at its destination, and nowhere else. The flow that waits
 * must have this endpoint as its source; the flow that it waits for may be of any endpoint. No news crosses the network
 * for free: if an endpoint must learn what happened elsewhere, a flow is sent to it and it waits for the arrival.
 * Therefore the shards of a run need not tell each other about operations.
 *
 * A flow may begin before all of its waits are over: `spare` of them, whichever come last, need not be.
 *
 * A list without waits takes memory for its flows only. */
#ifndef NET_FLOWS_H
#define NET_FLOWS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/time.h"

#define FLOW_NONE UINT32_MAX

enum { FLOW_LIST_NOTES = 4 };

enum flow_event {
	FLOW_ENDED,
	FLOW_ARRIVED,
};

struct flow {
	uint32_t src, dst; /* endpoints */
	uint64_t bytes;    /* not 0 */
	vb_time start;     /* of a flow that waits: how long after the last event that it waits for */
	uint32_t waits;    /* how many of the list's waits are for this flow to begin */
	uint8_t traffic_class;
	uint16_t spare; /* how many of its waits need not be over; fewer than there are */
};

struct flow_wait {
	uint32_t flow; /* this flow does not begin before `event` of `before` */
	uint32_t before : 31;
	uint32_t event : 1; /* enum flow_event */
};
_Static_assert(sizeof(struct flow_wait) == 8, "a job has millions");

/* How a flow ended. */
struct flow_result {
	vb_time start;  /* when its program began it */
	vb_time fct;    /* from then until the program hears that the last byte was acknowledged; -1: never */
	uint32_t error; /* enum vb_wc_status */
	uint32_t cause; /* enum vb_cause_kind */
};

struct flow_list {
	struct flow *flows;
	uint32_t count, room;
	struct flow_wait *waits; /* in any order */
	uint32_t wait_count, wait_room;
	/* What a file has and is not modelled, or is taken otherwise than there. Valid for ever. */
	const char *notes[FLOW_LIST_NOTES];
	unsigned note_count;
};

void flow_list_note(struct flow_list *list, const char *note); /* each is kept once */

int flow_list_add(struct flow_list *list, const struct flow *flow); /* without waits, and spare ones; -ENOMEM */
/* `flow` is in the list; flow_list_check tells whether `before` is. -ENOMEM. */
int flow_list_add_wait(struct flow_list *list, uint32_t flow, uint32_t before, enum flow_event event);
void flow_list_cut(
	struct flow_list *list, uint32_t count); /* keeps the first `count` flows, and the waits among these */
void flow_list_free(struct flow_list *list);

/* Whether the list can run on a network with so many endpoints: 0; -EINVAL and why, -ENOMEM. */
int flow_list_check(const struct flow_list *list, uint32_t endpoints, char *why, unsigned why_size);

/* The lowest flow that never begins because it waits for itself, or for a flow that never begins; FLOW_NONE if all
 * begin. -ENOMEM. */
int flow_list_find_stuck(const struct flow_list *list, uint32_t *flow);

struct flow_follower {
	uint32_t flow : 31;
	uint32_t event : 1; /* enum flow_event that it waits for */
};

/* The waits, sorted by what they wait for: flow i is awaited by followers[first[i]] to followers[first[i + 1] - 1]. */
struct flow_followers {
	uint32_t *first; /* NULL: the list has no waits */
	struct flow_follower *followers;
};

int flow_followers_make(struct flow_followers *followers, const struct flow_list *list); /* -ENOMEM */
void flow_followers_free(struct flow_followers *followers);

#endif
